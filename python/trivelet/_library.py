"""libtrivelet and what trivelet.h declares, as far as this package uses it, in the order of that header.

Written by hand; tests/python/python_test.py compares names, types and order of everything here with the header.
"""

from __future__ import annotations

import ctypes
import operator
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from .errors import ArgumentError

SONAME = "libtrivelet.so.1"


def members(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Structure(ctypes.Structure):
    """Converts numbers that fit; ctypes would truncate others."""

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(value, "__index__"):
            value = operator.index(value)
        super().__setattr__(name, value)
        if isinstance(value, int) and (getattr(self, name) or 0) != value:
            raise ArgumentError(f"{name} is {value}, which is out of its range")


LOG = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class Video(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "width height colour_model bits log2_chroma_w log2_chroma_h alpha is_signed"),
        *members(c_int32, "frame_rate_num frame_rate_den sample_aspect_num sample_aspect_den"),
        *members(c_int32, "time_base_num time_base_den primaries transfer matrix range chroma_location rotation"),
        ("field_order", c_int32),
        ("frames", c_uint64),
        *members(c_int32, "mirrored reserved"),
    ]


class Chapter(Structure):
    _fields_ = [*members(c_int64, "begin end"), ("title", c_char_p)]


class Entry(Structure):
    _fields_ = members(c_char_p, "key value")


class Metadata(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "has_mastering_display has_content_light"),
        ("chromaticity", c_int32 * 8),
        *members(c_uint32, "max_luminance min_luminance"),
        *members(c_int32, "max_content_light max_frame_average chapter_time_base_num chapter_time_base_den"),
        ("chapters", POINTER(Chapter)),
        ("chapter_count", c_uint64),
        ("entries", POINTER(Entry)),
        ("entry_count", c_uint64),
    ]


class Plane(Structure):
    _fields_ = [("data", c_void_p), ("row_stride", c_int64), ("sample_stride", c_int64)]


class Frame(Structure):
    _fields_ = [("planes", Plane * 4), ("pts", c_int64), ("duration", c_int64)]


WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint64)


class Packet(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "kind key"),
        *members(c_uint64, "first_frame frames"),
        *members(c_int64, "pts duration"),
    ]


PACKET = CFUNCTYPE(c_int, c_void_p, POINTER(Packet), c_void_p, c_uint64)


class Sink(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("path", c_char_p),
        *members(c_int32, "overwrite reserved"),
        ("data", c_void_p),
        ("capacity", c_uint64),
        ("write", WRITE),
        ("user", c_void_p),
        ("packet", PACKET),
    ]


READ = CFUNCTYPE(c_int64, c_void_p, c_void_p, c_uint64)
SEEK = CFUNCTYPE(c_int, c_void_p, c_uint64)


class Source(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("path", c_char_p),
        ("data", c_void_p),
        ("size", c_uint64),
        ("read", READ),
        ("seek", SEEK),
        ("user", c_void_p),
    ]


class EncodeParams(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "lossless profile"),
        *members(c_double, "quality step"),
        ("target_bytes", c_uint64),
        *members(c_double, "bits_per_pixel bit_rate psnr"),
        *members(c_int32, "gop_frames temporal_levels spatial_levels temporal_wavelet spatial_wavelet"),
        *members(c_int32, "reserved_layout motion"),
        *members(c_int32, "reserved_staged block_size layers reserved_even_ends visual"),
        *members(c_int32, "part_checks measure_errors threads device"),
        ("device_memory", c_uint64),
        *members(c_char_p, "settings spool_path"),
        ("key_interval", c_int64),
        ("metadata", POINTER(Metadata)),
        *members(c_double, "max_rate rate_window"),
        ("key_prediction", c_int32),
    ]


class DecodeParams(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "reduce temporal_reduce max_layers max_planes"),
        ("max_bytes", c_uint64),
        ("max_bits_per_pixel", c_double),
        *members(c_uint64, "first_frame end_frame"),
        *members(c_int32, "x y region_width region_height keep_partial verify_hash threads device"),
        *members(c_uint64, "device_memory max_memory max_samples max_frames max_samples_per_byte"),
    ]


class StreamInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "format_version profile lossless motion gop_frames block_size layers temporal_levels"),
        *members(c_int32, "spatial_levels layout is_volume has_index index_rebuilt complete"),
        *members(c_uint64, "gops bytes"),
    ]


class Gop(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_uint64, "offset bytes first_frame frames"),
        ("layer_bytes", c_uint64 * 16),
        ("layer_error", c_double * 16),
        *members(c_int64, "pts duration"),
        *members(c_int32, "key reserved"),
    ]


class Volume(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "type big_endian channels width height reserved"),
        *members(c_uint64, "slices volumes"),
    ]


class Voxels(Structure):
    _fields_ = [("data", c_void_p), *members(c_int64, "row_stride slice_stride volume_stride")]


class VolumeParams(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_double, "max_error quality psnr bits_per_voxel"),
        ("total_bytes", c_uint64),
        *members(c_int32, "transform effort profile block_size layers slab verify threads"),
        ("settings", c_char_p),
        ("envelope", c_void_p),
        ("envelope_bytes", c_uint64),
        ("fill_values", POINTER(c_double)),
        ("fill_count", c_uint64),
        *members(c_int32, "device access"),
        ("device_memory", c_uint64),
    ]


class VolumeDecodeParams(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_uint64, "x y z width height depth"),
        *members(c_int32, "reduce max_layers max_planes threads"),
        *members(c_uint64, "max_memory max_samples max_frames max_samples_per_byte"),
        *members(c_int32, "device reserved"),
        *members(c_uint64, "device_memory first_volume volumes"),
    ]


class VolumeJob(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("stream", c_void_p),
        ("size", c_uint64),
        ("params", POINTER(VolumeDecodeParams)),
        ("voxels", c_void_p),
        *members(c_uint64, "capacity needed"),
        ("result", c_int),
        ("error", ctypes.c_char * 260),
    ]


class EncodeJob(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("volume", POINTER(Volume)),
        ("params", POINTER(VolumeParams)),
        ("voxels", Voxels),
        ("stream", c_void_p),
        *members(c_uint64, "capacity size"),
        ("result", c_int),
        ("error", ctypes.c_char * 260),
    ]


class BatchParams(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "threads device"),
        ("device_memory", c_uint64),
        *members(c_int32, "streams_there reserved"),
    ]


class VolumeInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        *members(c_int32, "exact has_bound"),
        *members(c_double, "max_error least largest"),
        *members(c_int32, "prediction marked"),
        *members(c_uint64, "x y z width height depth step_x step_y step_z"),
    ]


class Range(Structure):
    _fields_ = members(c_uint64, "offset size")


BUFFER_TOO_SMALL = 9
CPU = -1
STRUCTURES = {
    "tvl_video": Video,
    "tvl_chapter": Chapter,
    "tvl_entry": Entry,
    "tvl_metadata": Metadata,
    "tvl_plane": Plane,
    "tvl_frame": Frame,
    "tvl_packet": Packet,
    "tvl_sink": Sink,
    "tvl_source": Source,
    "tvl_encode_params": EncodeParams,
    "tvl_decode_params": DecodeParams,
    "tvl_stream_info": StreamInfo,
    "tvl_gop": Gop,
    "tvl_volume": Volume,
    "tvl_voxels": Voxels,
    "tvl_volume_params": VolumeParams,
    "tvl_volume_decode_params": VolumeDecodeParams,
    "tvl_volume_info": VolumeInfo,
    "tvl_volume_job": VolumeJob,
    "tvl_volume_encode_job": EncodeJob,
    "tvl_batch_params": BatchParams,
    "tvl_range": Range,
}

# Results and arguments; handles are c_void_p.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "tvl_result_text": (c_char_p, [c_int]),
    "tvl_version": (c_char_p, []),
    "tvl_gpu_count": (c_int32, []),
    "tvl_video_set_format": (c_int, [POINTER(Video), c_char_p]),
    "tvl_encoder_new": (c_void_p, []),
    "tvl_encoder_free": (None, [c_void_p]),
    "tvl_encoder_error": (c_char_p, [c_void_p]),
    "tvl_encoder_set_log": (None, [c_void_p, LOG, c_void_p]),
    "tvl_encoder_cancel": (None, [c_void_p]),
    "tvl_encoder_open": (c_int, [c_void_p, POINTER(Video), POINTER(EncodeParams), POINTER(Sink)]),
    "tvl_encoder_write": (c_int, [c_void_p, POINTER(Frame), c_uint64]),
    "tvl_encoder_end_gop": (c_int, [c_void_p]),
    "tvl_encoder_finish": (c_int, [c_void_p]),
    "tvl_encoder_stream": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_uint64)]),
    "tvl_decoder_new": (c_void_p, []),
    "tvl_decoder_free": (None, [c_void_p]),
    "tvl_decoder_error": (c_char_p, [c_void_p]),
    "tvl_decoder_set_log": (None, [c_void_p, LOG, c_void_p]),
    "tvl_decoder_cancel": (None, [c_void_p]),
    "tvl_encoder_set_memory": (c_int, [c_void_p, c_int32, c_void_p]),
    "tvl_decoder_set_memory": (c_int, [c_void_p, c_int32, c_void_p]),
    "tvl_decode_volumes": (c_int, [c_void_p, POINTER(VolumeJob), c_uint64, POINTER(BatchParams)]),
    "tvl_encode_volumes": (c_int, [c_void_p, POINTER(EncodeJob), c_uint64, POINTER(BatchParams)]),
    "tvl_encode_volume_bound": (c_uint64, [POINTER(Volume), POINTER(VolumeParams)]),
    "tvl_decoder_open": (c_int, [c_void_p, POINTER(Source), POINTER(DecodeParams)]),
    "tvl_decoder_gop": (c_int, [c_void_p, c_uint64, POINTER(Gop)]),
    "tvl_decoder_stream": (c_int, [c_void_p, POINTER(StreamInfo)]),
    "tvl_decoder_settings": (c_char_p, [c_void_p]),
    "tvl_decoder_metadata": (c_int, [c_void_p, POINTER(Metadata)]),
    "tvl_decoder_video": (c_int, [c_void_p, POINTER(Video)]),
    "tvl_decoder_gop_frames": (c_int32, [c_void_p]),
    "tvl_decoder_read": (c_int, [c_void_p, POINTER(Frame), c_uint64, POINTER(c_uint64)]),
    "tvl_encoder_write_volume": (
        c_int,
        [c_void_p, POINTER(Volume), POINTER(VolumeParams), POINTER(Voxels), c_void_p, c_void_p, POINTER(Sink)],
    ),
    "tvl_decoder_open_volume": (c_int, [c_void_p, POINTER(Source), POINTER(VolumeDecodeParams)]),
    "tvl_decoder_volume": (c_int, [c_void_p, POINTER(Volume), POINTER(Volume), POINTER(VolumeInfo)]),
    "tvl_decoder_envelope": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_uint64)]),
    "tvl_decoder_read_slices": (c_int, [c_void_p, POINTER(Voxels), c_uint64, POINTER(c_uint64)]),
    "tvl_plan_new": (c_void_p, []),
    "tvl_plan_free": (None, [c_void_p]),
    "tvl_plan_error": (c_char_p, [c_void_p]),
    "tvl_plan_begin_volume": (c_int, [c_void_p, c_uint64, POINTER(VolumeDecodeParams)]),
    "tvl_plan_next": (c_int, [c_void_p, POINTER(Range), c_uint64, POINTER(c_uint64)]),
    "tvl_plan_give": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64]),
    "tvl_plan_source": (c_int, [c_void_p, POINTER(Source)]),
}
# Structures that have their own size as a field.
for name, structure in STRUCTURES.items():
    if structure._fields_[0][0] == "struct_size":
        FUNCTIONS[name + "_init"] = (None, [POINTER(structure), c_uint64])


def load() -> ctypes.CDLL:
    """Loads the library: $TRIVELET_LIBRARY, else the file beside this one, else from the system's path."""
    beside = Path(__file__).with_name(SONAME)
    path = os.environ.get("TRIVELET_LIBRARY") or (str(beside) if beside.exists() else SONAME)
    try:
        library = ctypes.CDLL(path)  # which lets other threads of Python run during calls
    except OSError as error:
        raise ImportError(
            f"{error}: Trivelet's library is neither beside {__file__} nor where the system looks for {SONAME}; "
            "install the wheel, or let TRIVELET_LIBRARY name the file"
        ) from error
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"{path} has no {name}: it is older than this package") from error
        function.restype = result
        function.argtypes = arguments
    return library


library = load()


def make(structure: Any) -> Any:
    """A structure initialised with the library's defaults."""
    name = next(name for name, kind in STRUCTURES.items() if kind is structure)
    made = structure()
    getattr(library, name + "_init")(ctypes.byref(made), ctypes.sizeof(made))
    return made
