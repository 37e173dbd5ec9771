#!/usr/bin/env python3
"""The Python package: round trips of arrays and frames, and its errors for mistakes and damage.

    tests/python/python_test.py path/to/libtrivelet.so.1 [unittest's arguments]

What is decoded in parts is compared with slices of the whole, and declarations with the header they were written from.
"""

import contextlib
import doctest
import faulthandler
import importlib
import io
import logging
import os
import pickle
import re
import signal
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    library = Path(sys.argv.pop(1)).resolve()
    if not library.exists():
        print(f"skipped: {library} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    sys.path.insert(0, str(ROOT / "python"))
import trivelet
from trivelet import _library, volume

logging.getLogger("trivelet").addHandler(logging.NullHandler())

RANDOM = np.random.default_rng(7)


def blob(shape, dtype=np.int16, top=1000) -> np.ndarray:
    """Smooth, with a little noise."""
    grid = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    values = sum(np.sin(g * (i + 1)) for i, g in enumerate(grid)) * top / 8 + top / 2
    values = values + RANDOM.normal(0, top / 500, shape)
    if np.dtype(dtype).kind == "u":
        values = np.clip(values, 0, top)
    return values.astype(dtype)


class Header(unittest.TestCase):
    """Names, types and order of what _library.py declares; the compiler lays both out by the same rules."""

    TYPES = {
        "uint64_t": "c_ulong",
        "int64_t": "c_long",
        "int32_t": "c_int",
        "uint32_t": "c_uint",
        "double": "c_double",
        "int": "c_int",
        "char": "c_char",
        "tvl_result": "c_int",
    }

    def setUp(self) -> None:
        text = (ROOT / "include/trivelet/trivelet.h").read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        self.text = re.sub(r"\s+", " ", text)

    def ctype(self, declared: str) -> str:
        """Of a type in C: the name of a type of ctypes."""
        declared = declared.replace("const ", "").strip()
        if declared in self.TYPES:
            return self.TYPES[declared]
        if declared == "char*":
            return "c_char_p"
        if declared in ("void*", "tvl_encoder*", "tvl_decoder*", "tvl_plan*"):
            return "c_void_p"
        if declared == "void":
            return "NoneType"
        if declared in ("void**", "uint64_t*", "double*"):
            return "LP_" + self.ctype(declared[:-1])
        kinds = {**_library.STRUCTURES, "tvl_log": _library.LOG}
        if declared.endswith("*"):
            return "LP_" + kinds[declared[:-1]].__name__
        return kinds[declared].__name__

    def test_structures(self) -> None:
        seen = dict(re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", self.text))
        for name, structure in _library.STRUCTURES.items():
            expected = []
            for member in filter(None, map(str.strip, seen[name].split(";"))):
                if function := re.fullmatch(r"(\w+) \(\*(\w+)\)\((.*)\)", member):
                    kinds = [self.ctype(re.sub(r"\w+$", "", a)) for a in function[3].split(",")]
                    expected.append((function[2], self.ctype(function[1]), kinds))
                    continue
                kind, names = re.fullmatch(r"((?:const )?\w+\*?) (.*)", member).groups()
                for one in names.split(","):
                    one, _, count = one.strip().rstrip("]").partition("[")
                    expected.append((one, self.ctype(kind) + (f"_Array_{count}" if count else ""), None))
            declared = []
            for member, kind in structure._fields_:
                if hasattr(kind, "_argtypes_"):
                    kinds = [a.__name__ for a in kind._argtypes_]
                    declared.append((member, kind._restype_.__name__, kinds))
                else:
                    declared.append((member, kind.__name__, None))
            self.assertEqual(declared, expected, name)

    def test_functions(self) -> None:
        seen = {n: (r, a) for r, n, a in re.findall(r"TVL_API ([^;(]*?)(\btvl_\w+)\((.*?)\);", self.text)}
        for name, (result, arguments) in _library.FUNCTIONS.items():
            declared_result, declared = seen[name]
            self.assertEqual(
                type(None).__name__ if result is None else result.__name__, self.ctype(declared_result), name
            )
            kinds = [] if declared.strip() == "void" else [re.sub(r"\w+$", "", a.strip()) for a in declared.split(",")]
            callbacks = [k.strip() == "tvl_slice_reader" for k in kinds]  # given as NULL
            expected = ["c_void_p" if c else self.ctype(k) for k, c in zip(kinds, callbacks)]
            if name.endswith("_set_log"):
                self.assertEqual(arguments[1], _library.LOG)
                arguments, expected = [arguments[0], arguments[2]], [expected[0], expected[2]]
            self.assertEqual([a.__name__ for a in arguments], expected, name)

    def test_constants(self) -> None:
        from trivelet import errors, volume

        results = dict(re.findall(r"TVL_(\w+) = (\d)", re.search(r"typedef enum tvl_result \{(.*?)\}", self.text)[1]))
        for name, number in results.items():
            if name not in ("OK", "BUFFER_TOO_SMALL"):
                exception = name.title().replace("_", "")
                for short, long in (("BadArgument", "Argument"), ("BadStream", "Stream")):
                    exception = exception.replace(short, long)
                self.assertEqual(errors.BY_RESULT[int(number)].__name__, exception + "Error")
        types = re.findall(r"TVL_([UIF])(\d+) = (\d)", self.text)
        self.assertEqual(len(types), len(volume._TYPES))
        for kind, bits, number in types:
            self.assertEqual(volume._TYPES[int(number)], f"{kind.lower()}{int(bits) // 8}")
        for prefix, names in (
            ("PROFILE", volume._PROFILES),
            ("TRANSFORM", volume._TRANSFORMS),
            ("EFFORT", volume._EFFORTS),
            ("ACCESS", volume._ACCESSES),
            ("MOTION", trivelet.video._MOTIONS),
        ):
            found = [
                n.lower() for n, _ in sorted(re.findall(rf"TVL_{prefix}_(\w+) = (\d)", self.text), key=lambda p: p[1])
            ]
            self.assertEqual(names, found[: len(names)], prefix)

    def test_defaults_are_the_library_s(self) -> None:
        self.assertEqual(_library.make(_library.EncodeParams).quality, 60)
        self.assertEqual(_library.make(_library.VolumeParams).block_size, 0)
        self.assertEqual(_library.make(_library.DecodeParams).end_frame, 2**64 - 1)


class Arrays(unittest.TestCase):
    def assert_same(self, a: np.ndarray, b: np.ndarray, what: object = None) -> None:
        self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), what)
        self.assertEqual(a.tobytes(), b.tobytes(), what)  # also of NaN

    def test_types(self) -> None:
        for code in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"):
            for order in "<>":
                array = blob((3, 20, 25), code, 100).astype(order + code)
                if code[0] == "f":
                    array[1, 2, 3], array[0, 0, 0] = np.nan, -0.0
                elif int(code[1]) > 1:
                    array[0, 0, 0], array[2, 2, 2] = np.iinfo(code).min, np.iinfo(code).max
                self.assert_same(trivelet.decode(trivelet.encode(array, verify=True)), array, array.dtype)

    def test_axes(self) -> None:
        for shape in (
            (50,),
            (20, 30),
            (5, 20, 30),
            (3, 4, 20, 30),
            (2, 3, 20, 30, 3),
            (1, 20, 30),
            (1, 1, 20, 30),
            (1,),
        ):
            array = blob(shape)
            self.assert_same(trivelet.decode(trivelet.encode(array)), array, shape)
        for shape, axes in (((20, 30, 3), "yxc"), ((4, 20, 30, 1), "zyxc"), ((6, 30), "zx"), ((3, 20, 30), "tyx")):
            array = blob(shape)
            volume = trivelet.open(trivelet.encode(array, axes=axes))
            self.assertEqual(
                (volume.axes, volume.shape, volume.ndim, volume.size), (axes, shape, array.ndim, array.size)
            )
            self.assert_same(np.asarray(volume), array, axes)
            self.assert_same(np.array(list(volume)), array, axes)
            self.assert_same(volume[..., :1], array[..., :1], axes)
            self.assert_same(volume[-1], array[-1], axes)

    def test_memory_with_gaps(self) -> None:
        base = blob((8, 24, 30))
        given = [
            base[::2],
            base[:, ::-1],
            base[::-1, 1:, 3:9],
            base[:, :, ::2],
            base[:, :, ::-1],
            base.T,
            base.transpose(1, 0, 2),
            np.asfortranarray(base),
            np.broadcast_to(base[0], (5, 24, 30)),
            np.broadcast_to(base[:, :1], (8, 24, 30)),
            np.broadcast_to(base[:, :, :1], (8, 24, 30)),
            np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.int16).reshape(base.shape),
        ]
        for i, array in enumerate(given):
            self.assert_same(trivelet.decode(trivelet.encode(array)), np.ascontiguousarray(array), i)
        series = blob((2, 6, 3, 20, 30)).swapaxes(1, 2)
        self.assert_same(trivelet.decode(trivelet.encode(series[:, 0])), series[:, 0].copy())
        frozen = base.copy()
        frozen.flags.writeable = False
        self.assert_same(trivelet.decode(trivelet.encode(frozen)), base)

    def test_the_stream_depends_on_values_alone(self) -> None:
        base = blob((8, 24, 30))
        stream = trivelet.encode(base)
        self.assertEqual(trivelet.encode(np.asfortranarray(base), threads=3), stream)
        self.assertEqual(trivelet.encode(base[:, ::-1][:, ::-1], threads=1), stream)

    def test_out(self) -> None:
        array = blob((6, 20, 30))
        stream = trivelet.encode(array)
        room = np.full((12, 40, 60), 7, np.int16)
        outs = [
            room[:6, :20, :30],
            room[::2, ::2, :30],
            room[::-2, 20:, 30:],
            room[:6, :20, ::2],
            room[6:, 20::-1, :30][:, :20],
        ]
        for i, out in enumerate(outs):
            room[...] = 7
            self.assertIs(trivelet.decode(stream, out=out), out)
            self.assert_same(out.copy(), array, i)
            self.assertEqual(int((room != 7).sum()), int((array != 7).sum()), i)  # nothing beside it
        odd = np.zeros(array.nbytes + 1, np.uint8)[1:].view(np.int16).reshape(array.shape)
        self.assert_same(trivelet.decode(stream, out=odd).copy(), array)
        part = np.empty((2, 20, 5), np.int16)
        trivelet.decode(stream, region=np.s_[1:3, :, 25:], out=part)
        self.assert_same(part, array[1:3, :, 25:].copy())
        series = blob((3, 4, 20, 30))
        out = np.zeros((3, 2, 4, 20, 30), np.int16)[:, 1]
        self.assert_same(trivelet.decode(trivelet.encode(series), out=out).copy(), series)
        for wrong in (np.empty((6, 20, 31), np.int16), np.empty((6, 20, 30), np.uint16), [1]):
            with self.assertRaisesRegex(trivelet.ArgumentError, "out is .* must be an array of int16 of shape"):
                trivelet.decode(stream, out=wrong)
        frozen = np.empty((6, 20, 30), np.int16)
        frozen.flags.writeable = False
        with self.assertRaisesRegex(trivelet.ArgumentError, "read-only"):
            trivelet.decode(stream, out=frozen)


def matroska(stream: bytes) -> bytes:
    """A film of the stream, with blocks of another track between (codec/FORMAT.md, "In Matroska")."""

    def element(name: int, *parts: bytes) -> bytes:
        content = b"".join(parts)
        return name.to_bytes((name.bit_length() + 7) // 8, "big") + (len(content) | 1 << 56).to_bytes(8, "big") + content

    boxes, at = [], 8
    while at < len(stream):
        end = at + 16 + int.from_bytes(stream[at + 4 : at + 12], "little")
        boxes.append(stream[at:end])
        at = end
    gops = [i for i, box in enumerate(boxes) if box[:4] == b"Gop "]
    head = stream[:8] + b"".join(boxes[: gops[0]])
    packets = [head + b"".join(boxes[i:j]) for i, j in zip(gops, [*gops[1:], gops[-1] + 1])]
    packets.append(b"".join(boxes[gops[-1] + 1 :]))
    private = element(0x63A2, bytes(16) + b"TRVL" + bytes(20) + head + b"\0")  # padded to an even size
    tracks = element(0x1654AE6B, element(0xAE, element(0xD7, b"\1"), element(0x86, b"A_PCM")),
                     element(0xAE, element(0xD7, b"\2"), private))  # fmt: skip
    blocks = []
    for i, packet in enumerate(packets):
        blocks.append(element(0xA3, b"\x81\0\0\x80", b"sound"))
        block = b"\x82\0\0\0" + packet
        blocks.append(element(0xA0, element(0xA1, block)) if i % 2 else element(0xA3, block))
    half = len(blocks) // 2
    clusters = [element(0x1F43B675, element(0xE7, b"\0"), *some) for some in (blocks[:half], blocks[half:])]
    return element(0x1A45DFA3, element(0x4282, b"matroska")) + element(0x18538067, tracks, *clusters)


class Masks(unittest.TestCase):
    def test_masks(self) -> None:
        z, y, x = np.mgrid[:9, :40, :50]
        mask = (x - 20) ** 2 + (y - 20) ** 2 + z**2 < 150
        for options in ({}, {"transform": "wavelet"}):
            stream = trivelet.encode(mask, **options)
            back = trivelet.decode(stream)
            self.assertEqual(back.dtype, bool)
            np.testing.assert_array_equal(back, mask)
            np.testing.assert_array_equal(trivelet.open(stream)[2:4, ::-1, 7], mask[2:4, ::-1, 7])
        out = np.zeros(mask.shape, bool)
        self.assertIs(trivelet.decode(stream, out=out), out)
        np.testing.assert_array_equal(out, mask)
        self.assertEqual(trivelet.decode(stream, reduce=1).dtype, bool)
        self.assertEqual(repr(trivelet.open(stream)), "<trivelet.Volume zyx (9, 40, 50) bool>")

    def test_half_floats(self) -> None:
        every = np.arange(65536, dtype=np.uint16).reshape(16, 64, 64)
        for order in "<>":
            array = every.astype(order + "u2").view(order + "f2")
            back = trivelet.decode(trivelet.encode(array))
            self.assertEqual(back.dtype, array.dtype)
            np.testing.assert_array_equal(back.view(order + "u2"), every)
        array = (blob((8, 40, 40), float, 900) - 300).astype(np.float16)
        array[0, 0] = np.nan
        for bound in (0.3, 1, 5):
            volume = trivelet.open(trivelet.encode(array, max_error=bound))
            back = volume[...]
            self.assertEqual(back.dtype, np.float16)
            errors = np.abs(back.astype(float) - array.astype(float))
            self.assertLessEqual(np.nanmax(errors), volume.max_error)
            self.assertLessEqual(volume.max_error, bound)
            np.testing.assert_array_equal(np.isnan(back), np.isnan(array))
        several = trivelet.decode_many([trivelet.encode(array), trivelet.encode(array > 0)])
        self.assertEqual([a.dtype for a in several], [np.float16, bool])
        np.testing.assert_array_equal(several[0], array)
        np.testing.assert_array_equal(several[1], array > 0)
        largest = np.full((4, 40, 40), 65504, np.float16)
        self.assertTrue(np.isfinite(trivelet.decode(trivelet.encode(largest + blob((4, 40, 40), float, 9), quality=20))).all())


class Elsewhere(unittest.TestCase):
    """Arrays of other libraries, of which fakes have what is asked of them; memory of the host stands for a GPU's."""

    class OnGpu:
        def __init__(self, array, stream=None):
            self.array = array
            shape, strides = array.shape, array.strides
            data = (array.ctypes.data, False)
            self.__cuda_array_interface__ = dict(
                shape=shape, typestr=array.dtype.str, data=data, strides=strides, version=3, stream=stream
            )

    class Packed:
        """A producer of DLPack; `kind` is what it says to be."""

        def __init__(self, array, kind=1):
            self.array, self.kind = array, kind

        def __dlpack__(self, **_):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.kind, 0

    def test_dlpack(self) -> None:
        array = blob((6, 20, 30))
        stream = trivelet.encode(array)
        self.assertEqual(trivelet.encode(self.Packed(array)), stream)
        self.assertEqual(trivelet.encode(self.Packed(array[::-1])), trivelet.encode(array[::-1]))
        with self.assertRaisesRegex(trivelet.ArgumentError, "type 4"):
            trivelet.encode(self.Packed(array, 4))
        np.testing.assert_array_equal(np.from_dlpack(trivelet.decode(stream, out=np.empty_like(array))), array)

    def test_views(self) -> None:
        from trivelet._arrays import on_device

        array = blob((6, 20, 30), np.float32)
        for part in (array, array[::-1, 2:, ::3], array[1:2, ::-1], array[:0]):
            for fake in (self.OnGpu(part, 7), self.Packed(part, 2)):
                far = on_device(fake)
                np.testing.assert_array_equal(far.view, part)
                self.assertEqual((far.view.shape, far.device), (part.shape, 0))
                self.assertTrue(far.view.strides == part.strides or part.size == 0)
                self.assertEqual(far.stream, 7 if isinstance(fake, self.OnGpu) else None)
        self.assertIsNone(on_device(array))
        self.assertIsNone(on_device([1, 2]))
        before = sys.getrefcount(array)
        for _ in range(100):
            on_device(self.Packed(array, 2))
        self.assertEqual(sys.getrefcount(array), before)

    def test_room_for_many(self) -> None:
        arrays = [blob((6, 20, 30)), blob((9, 12)) + 1, np.full((3, 4, 8, 8), 7, np.uint8)]
        streams = [trivelet.encode(array) for array in arrays]
        out = [np.zeros_like(array) for array in arrays]
        for given, back in zip(out, trivelet.decode_many(streams, out=out)):
            self.assertIs(given, back)
        for array, back in zip(arrays, out):
            np.testing.assert_array_equal(array, back)
        frozen = np.zeros_like(arrays[0])
        frozen.flags.writeable = False
        for wrong, why in (
            (out[:2], "2 arrays for 3"),
            ([out[1], *out[1:]], "stream 0: out is"),
            ([frozen, *out[1:]], "stream 0: .* written"),
            ([np.zeros((6, 20, 60), arrays[0].dtype)[:, :, ::2], *out[1:]], "stream 0: .* gaps"),
            ([None, *out[1:]], "stream 0: out is NoneType"),
            ([self.OnGpu(out[0]), *out[1:]], "several places"),
        ):
            with self.assertRaisesRegex(trivelet.ArgumentError, why):
                trivelet.decode_many(streams, out=wrong)

    def test_without_a_gpu(self) -> None:
        """What one does is in python_gpu_test.py."""
        if _library.library.tvl_gpu_count():
            self.skipTest("there is a GPU")
        array = blob((9, 20, 30))
        stream, out = trivelet.encode(array, transform="wavelet"), np.zeros_like(array)
        for work in (
            lambda: trivelet.encode(self.OnGpu(array)),
            lambda: trivelet.decode(stream, out=self.OnGpu(out)),
            lambda: trivelet.decode_many([stream], device=0),
            lambda: trivelet.decode_many([stream], out=[self.OnGpu(out)]),
        ):
            with self.assertRaisesRegex(trivelet.UnsupportedError, "CUDA|no GPU"):
                work()

    def test_decoders_of_batches_are_kept(self) -> None:
        from trivelet import _handles

        trivelet.release_gpus()
        with _handles.decoder_of_batches(0) as first:
            with _handles.decoder_of_batches(0) as beside:
                self.assertIsNot(first, beside)
        self.assertTrue(first.closed and not beside.closed)  # which was given back before
        with _handles.decoder_of_batches(0) as again, _handles.decoder_of_batches(None) as other:
            self.assertIs(again, beside)
        self.assertTrue(other.closed)  # on the CPU there is nothing to keep
        with self.assertRaises(ZeroDivisionError), _handles.decoder_of_batches(0) as failed:
            self.assertIs(failed, beside)
            1 / 0
        self.assertTrue(failed.closed)
        with _handles.decoder_of_batches(0) as kept, _handles.decoder_of_batches(1) as another:
            pass
        child = os.fork()
        if child == 0:
            os._exit(0 if not _handles._kept and kept.closed else 1)  # closed without a call of the library
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        trivelet.release_gpus()
        self.assertTrue(kept.closed and another.closed and not _handles._kept)

    def test_many(self) -> None:
        arrays = [blob((4, 20, 10 + n), dtype) for n, dtype in enumerate(("i2", ">u2", "u1", "f4", "i8"))]
        streams = [trivelet.encode(a) for a in arrays]
        for back, array in zip(trivelet.decode_many(streams, threads=3), arrays):
            self.assertEqual(back.dtype, array.dtype)
            np.testing.assert_array_equal(back, array)
        self.assertEqual(trivelet.decode_many([]), [])
        streams[3] = streams[3][:200] + bytes(100) + streams[3][300:]
        with self.assertRaisesRegex(trivelet.StreamError, "stream 3: "):
            trivelet.decode_many(streams)
        streams[1] = b"nothing"
        with self.assertRaisesRegex(trivelet.StreamError, "stream 1: "):
            trivelet.decode_many(streams)


    def test_colour(self) -> None:
        grey = blob((4, 40, 50, 1), np.uint8, 200)
        rgb = np.concatenate([grey, grey + 5, 255 - grey], -1)
        volume._said_colour = False
        with self.assertLogs("trivelet", "WARNING") as said:
            streams = {n: trivelet.encode(rgb[0] if n == 3 else rgb.astype(t)) for n, t in ((4, "u1"), (2, ">u2"), (3, "u1"))}
        self.assertEqual(len(said.output), 1)
        self.assertIn("axes='zyxc'", said.output[0])
        self.assertEqual(streams[4], trivelet.encode(rgb, axes="zyxc"))
        self.assertEqual(trivelet.open(streams[3]).axes, "yxc")
        for stream in streams.values():
            np.testing.assert_array_equal(trivelet.decode(stream), rgb if trivelet.open(stream).ndim == 4 else rgb[0])
        for other in (rgb.astype(np.int16), rgb[:, :4], rgb[..., :2]):
            self.assertNotIn("c", trivelet.open(trivelet.encode(other)).axes)


class Parts(unittest.TestCase):
    """Regions, sizes and layers against the whole."""

    def index(self, shape: tuple) -> tuple:
        parts: list = []
        for n in shape:
            a, b = sorted(int(i) for i in RANDOM.integers(-n - 2, n + 3, 2))
            step = int(RANDOM.choice([-3, -1, 1, 1, 1, 2]))
            choice = RANDOM.integers(0, 5)
            parts.append(
                int(RANDOM.integers(-n, n))
                if choice == 0
                else slice(None) if choice == 1 else slice(b, a, step) if step < 0 else slice(a, b, step)
            )
        if RANDOM.integers(0, 3) == 0:
            at = int(RANDOM.integers(0, len(parts)))
            parts[at : at + int(RANDOM.integers(1, 3))] = [Ellipsis]
        return tuple(parts)

    def test_indices(self) -> None:
        for shape, more in (
            ((40, 70, 90), {"transform": "wavelet", "block_size": 32}),
            ((40, 70, 90), {"transform": "prediction"}),
            ((3, 8, 40, 50), {"transform": "wavelet"}),
            ((4, 20, 30, 3), {"axes": "zyxc"}),
        ):
            array = blob(shape)
            volume = trivelet.open(trivelet.encode(array, effort="fast", **more))
            for _ in range(25):
                index = self.index(shape)
                expected = array[index]
                given = volume[index]
                self.assertEqual(given.shape, expected.shape, index)
                np.testing.assert_array_equal(given, expected, str(index))

    def test_wrong_indices(self) -> None:
        volume = trivelet.open(trivelet.encode(blob((4, 20, 30))))
        for index in (4, -5, (0, 20), (0, 0, 0, 0), (..., ...), None, [1, 2], 1.5, "x", np.ones(4, bool)):
            with self.assertRaises(IndexError, msg=repr(index)):
                volume[index]
        with self.assertRaises(trivelet.ArgumentError):
            trivelet.decode(trivelet.encode(blob((4, 20, 30))), region=np.s_[::2])

    def test_only_a_part_is_read(self) -> None:
        class Counting(io.BytesIO):
            count = 0

            def read(self, size=-1):
                data = super().read(size)
                self.count += len(data)
                return data

        array = RANDOM.integers(0, 4000, (32, 256, 256), np.uint16)
        file = Counting(trivelet.encode(array, transform="wavelet", effort="fast", block_size=64, slab=8))
        volume = trivelet.open(file)
        file.count = 0
        np.testing.assert_array_equal(volume[9:12, 10:20, 200:210], array[9:12, 10:20, 200:210])
        self.assertLess(file.count, len(file.getvalue()) / 4)

    def test_reduced(self) -> None:
        layouts = set()
        for shape, more in (
            ((40, 70, 90), {"effort": "fast"}),
            ((40, 70, 90), {"effort": "fast", "slab": 12}),
            ((37, 33, 45), {"effort": "fast", "slab": 5}),
            ((2, 16, 40, 50), {"effort": "fast", "slab": 8}),
        ):
            array = blob(shape)
            stream = trivelet.encode(array, transform="wavelet", **more)
            for reduce in (1, 2, 3):
                volume = trivelet.open(stream).at(reduce=reduce)
                whole = volume[...]
                self.assertEqual(whole.shape, volume.shape)
                self.assertEqual(whole.shape[-2:], tuple(-(-n // 2**reduce) for n in shape[-2:]))
                layouts.add(whole.shape[-3] < shape[-3])
                np.testing.assert_array_equal(trivelet.decode(stream, reduce=reduce), whole)
                # About the means of what was left out.
                coarse = array[..., :: 2**reduce, :: 2**reduce]
                self.assertLess(abs(whole.mean() - coarse.mean()), 30)
                for _ in range(8):
                    index = self.index(whole.shape)
                    np.testing.assert_array_equal(volume[index], whole[index], str(index))
                # A region is of the full size, and all that its voxels are left as comes.
                for z in (0, 4, 7, shape[-3] - 1):
                    part = trivelet.decode(stream, reduce=reduce, region=np.s_[..., z : z + 1, 9:22, 33:34])
                    y = slice(9 >> reduce, (21 >> reduce) + 1)
                    x = slice(33 >> reduce, (33 >> reduce) + 1)
                    self.assertTrue(
                        any(np.array_equal(part, whole[..., k : k + 1, y, x]) for k in range(whole.shape[-3])),
                        (reduce, z),
                    )
        self.assertIn(True, layouts, "no stream of these is reduced across slices")

    def test_layers(self) -> None:
        array = blob((16, 64, 64))
        volume = trivelet.open(trivelet.encode(array, transform="wavelet", layers=4, effort="fast"))
        errors = [float(np.abs(volume.at(layers=n)[...] - array.astype(float)).mean()) for n in (1, 2, 3, 4)]
        self.assertEqual(volume.layers, 4)
        self.assertEqual(sorted(errors, reverse=True), errors)
        self.assertGreater(errors[0], errors[3])
        self.assertEqual(errors[3], 0)
        self.assertTrue(volume.exact and volume.max_error == 0)
        self.assertFalse(volume.at(layers=2).exact)
        self.assertIsNone(volume.at(layers=2).max_error)
        with self.assertRaises(trivelet.ArgumentError):
            volume.at(layers=0)
        with self.assertRaisesRegex(trivelet.ArgumentError, "reduced 0.."):
            volume.at(reduce=30)
        predicted = trivelet.open(trivelet.encode(array, transform="prediction"))
        self.assertEqual(predicted.reductions, 0)
        with self.assertRaisesRegex(NotImplementedError, "prediction"):
            predicted.at(reduce=1)


class Targets(unittest.TestCase):
    def test_bounds(self) -> None:
        array = blob((12, 60, 70))
        for bound in (1, 3, 20):
            volume = trivelet.open(trivelet.encode(array, max_error=bound))
            self.assertLessEqual(int(np.abs(volume[...].astype(int) - array).max()), bound)
            self.assertLessEqual(volume.max_error, bound)
            self.assertFalse(volume.exact)
        real = blob((12, 60, 70), np.float32)
        back = trivelet.decode(trivelet.encode(real, max_error=0.25))
        self.assertLessEqual(float(np.abs(back - real).max()), 0.25)

    def test_fill_values(self) -> None:
        real = blob((12, 60, 70), np.float32)
        real[3:6, 10:20, 30:50] = np.nan
        real[:, :, 5] = -9999
        volume = trivelet.open(trivelet.encode(real, max_error=0.25, fill_values=-9999))
        back = volume[...]
        np.testing.assert_array_equal(np.isnan(back), np.isnan(real))
        np.testing.assert_array_equal(back == -9999, real == -9999)
        self.assertLessEqual(float(np.nanmax(np.abs(back - real))), 0.25)
        np.testing.assert_array_equal(volume[4, 5:25, 20:60], back[4, 5:25, 20:60])
        for bad in ({"fill_values": 1}, {"max_error": 1, "fill_values": [0.5]}):
            with self.assertRaises(trivelet.ArgumentError):
                trivelet.encode(blob((4, 20, 20)), **bad)

    def test_sizes(self) -> None:
        array = blob((12, 60, 70))
        self.assertLessEqual(len(trivelet.encode(array, size=4000)), 4000)
        self.assertLessEqual(len(trivelet.encode(array, bpp=0.7)), array.size * 0.7 / 8)
        self.assertGreaterEqual(array.nbytes / len(trivelet.encode(array, ratio=20)), 20)
        back = trivelet.decode(trivelet.encode(array, psnr=50)).astype(float)
        peak = int(array.max()) - int(array.min())
        self.assertGreater(10 * np.log10(peak**2 / ((back - array) ** 2).mean()), 49.9)
        self.assertLess(len(trivelet.encode(array, quality=30)), len(trivelet.encode(array, quality=70)))

    def test_mistakes(self) -> None:
        array = blob((4, 20, 30))
        nan = float("nan")
        for more in (
            {"quality": -1},
            {"quality": 101},
            {"quality": nan},
            {"psnr": -1},
            {"psnr": nan},
            {"bpp": 0},
            {"bpp": -1},
            {"size": 0},
            {"ratio": 0},
            {"ratio": nan},
            {"max_error": -1},
            {"max_error": nan},
            {"effort": "hard"},
            {"access": "rows"},
            {"profile": ""},
            {"transform": "dct"},
            {"block_size": 100},
            {"layers": 17},
            {"slab": 129},
            {"threads": -1},
            {"threads": 1 << 32},
            {"block_size": (1 << 32) + 128},
            {"quality": 50, "psnr": 40},
            {"max_error": 0, "size": 10},
            {"axes": "xyz"},
            {"axes": "zy"},
            {"axes": "yx"},
        ):
            with self.assertRaises(trivelet.ArgumentError, msg=str(more)):
                trivelet.encode(array, **more)
        for wrong in (
            np.ones((2, 2), complex),
            np.ones((2, 2), "M8[s]"),
            np.ones((0, 2), np.uint8),
            np.ones((1,) * 6, np.uint8),
            np.array(["a"]),
            np.array(1.0),
            np.zeros(70000, np.uint8),
        ):
            with self.assertRaises(trivelet.ArgumentError, msg=str(wrong.dtype)):
                trivelet.encode(wrong)
        with self.assertRaises(trivelet.ArgumentError):
            trivelet.encode(np.ones((4, 5, 5), np.uint8), axes="yxc")
        with self.assertRaises(TypeError):
            trivelet.encode(array, size=10.5)
        with self.assertRaises(trivelet.UnsupportedError):
            trivelet.decode(trivelet.encode(array), max_memory=1000)
        stream = trivelet.encode(array, transform="wavelet")
        for limit in ({"max_samples": 10}, {"max_frames": 2}, {"max_memory": 1000}):
            with self.assertRaises(trivelet.UnsupportedError, msg=str(limit)):
                trivelet.decode(stream, **limit)
            with self.assertRaises(trivelet.UnsupportedError, msg=str(limit)):
                trivelet.open(stream, **limit)[0]
            with self.assertRaises(trivelet.UnsupportedError, msg=str(limit)):
                next(iter(trivelet.VideoReader(stream, **limit)))
        self.assertTrue(np.array_equal(trivelet.open(stream, max_frames=len(array)).at()[...], array))
        with self.assertRaises(trivelet.ArgumentError):
            trivelet.decode(stream, max_samples=-1)
        with self.assertRaises(TypeError):
            trivelet.decode(stream, max_sample=1)
        for device, error in ((-1, trivelet.ArgumentError), (1000, trivelet.UnsupportedError)):
            with self.assertRaises(error):
                trivelet.encode(array, transform="wavelet", device=device)
            with self.assertRaises(error):
                trivelet.decode(stream, device=device)


class Files(unittest.TestCase):
    def test_sources(self) -> None:
        array = blob((6, 30, 40))
        stream = trivelet.encode(array, transform="wavelet")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a b ü.tvl"
            path.write_bytes(stream)
            with open(path, "rb") as file, open(path, "rb", buffering=0) as raw:
                for source in (
                    path,
                    str(path),
                    bytearray(stream),
                    memoryview(stream),
                    np.frombuffer(stream, np.uint8),
                    file,
                    raw,
                    io.BytesIO(stream),
                ):
                    np.testing.assert_array_equal(trivelet.open(source)[2:4, 3:5], array[2:4, 3:5])
                    np.testing.assert_array_equal(trivelet.decode(source), array)
            volume = pickle.loads(pickle.dumps(trivelet.open(path).at(layers=1)))
            self.assertEqual(repr(volume), "<trivelet.Volume zyx (6, 30, 40) int16, layers=1>")
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(trivelet.open(stream)))[1], array[1])
            with self.assertRaises(FileNotFoundError):
                trivelet.open(Path(folder) / "none.tvl")
            with self.assertRaises(trivelet.IoError):
                trivelet.open(folder)
            with self.assertRaises(TypeError):
                trivelet.open(io.StringIO("text"))

    def test_a_file_that_became_another(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "v.tvl"
            path.write_bytes(trivelet.encode(blob((6, 30, 40))))
            volume = trivelet.open(path)
            path.write_bytes(trivelet.encode(blob((6, 30, 40), np.float64, 9)))
            with self.assertRaises(trivelet.StreamError):
                volume[...]
            path.write_bytes(trivelet.encode(blob((9, 60, 40))))
            np.testing.assert_array_equal(volume[:2, :3].shape, (2, 3, 40))

    def test_what_files_raise(self) -> None:
        class Broken(io.BytesIO):
            left = 3

            def read(self, size=-1):
                self.left -= 1
                if self.left < 0:
                    raise ZeroDivisionError("a network that went away")
                return super().read(size)

            def write(self, data):
                raise ZeroDivisionError("a disk that went away")

        stream = trivelet.encode(blob((6, 30, 40)))
        with self.assertRaisesRegex(ZeroDivisionError, "network"):
            trivelet.decode(Broken(stream))
        with self.assertRaisesRegex(ZeroDivisionError, "disk"):
            with trivelet.VideoWriter(Broken(), 16, 16, "gray") as writer:
                writer.write(np.zeros((16, 16), np.uint8))

    def test_files_that_do_not_block(self) -> None:
        noise = RANDOM.integers(0, 255, (8, 100, 200), np.uint8)  # more than a pipe holds

        def write(target) -> None:
            with trivelet.VideoWriter(target, 200, 100, "gray", gop=2, lossless=True) as writer:
                for plane in noise:
                    writer.write(plane)

        whole = io.BytesIO()
        write(whole)
        for buffering in (0, -1):
            end, begin = os.pipe()
            for descriptor in (end, begin):
                os.set_blocking(descriptor, False)
            with open(end, "rb", buffering=0) as reads, ThreadPoolExecutor(1) as pool:
                with open(begin, "wb", buffering=buffering) as writes:
                    back = pool.submit(lambda: [frame.planes[0] for frame in trivelet.VideoReader(reads)])
                    write(writes)
                np.testing.assert_array_equal(back.result(), noise)

        class Sized(io.RawIOBase):
            def __init__(self, takes) -> None:
                self.takes, self.got = takes, b""

            def write(self, data):
                self.got += bytes(data[: self.takes])
                return min(self.takes, len(data)) if self.takes < 1000 else self.takes

        class Full(io.RawIOBase):
            def write(self, data):
                return None

        with self.assertRaisesRegex(BlockingIOError, "has no descriptor"):
            with trivelet.VideoWriter(Full(), 16, 16, "gray") as writer:
                writer.write(np.zeros((16, 16), np.uint8))
        few = Sized(7)
        with trivelet.VideoWriter(few, 16, 16, "gray") as writer:
            writer.write(np.zeros((16, 16), np.uint8))
        self.assertEqual(len(list(trivelet.VideoReader(few.got))), 1)
        for takes in (0, -1, 1 << 40):
            with self.assertRaisesRegex(OSError, "took"):
                with trivelet.VideoWriter(Sized(takes), 16, 16, "gray") as writer:
                    writer.write(np.zeros((16, 16), np.uint8))

    def test_damage(self) -> None:
        array = blob((6, 40, 50))
        for transform in ("wavelet", "prediction"):
            stream = trivelet.encode(array, transform=transform, effort="fast")
            refused = 0
            for _ in range(40):
                damaged = bytearray(stream)
                at = int(RANDOM.integers(0, len(stream)))
                damaged[at] ^= 1 << int(RANDOM.integers(0, 8))
                try:
                    np.testing.assert_array_equal(trivelet.decode(damaged), array)  # where nothing depends on it
                except trivelet.Error as error:
                    self.assertGreater(len(str(error)), 10)
                    refused += 1
            self.assertGreater(refused, 30)
            for cut in (0, 1, 8, 50, len(stream) // 2):
                with self.assertRaises(trivelet.Error, msg=str(cut)):
                    trivelet.decode(stream[:cut])
            with self.assertLogs("trivelet", "WARNING"):  # the index alone is lost
                np.testing.assert_array_equal(trivelet.decode(stream[:-10]), array)
        with self.assertRaises(trivelet.StreamError):
            trivelet.open(b"not a stream at all" * 10)


class Videos(unittest.TestCase):
    def frames(self, shapes, bits=8, count=12, signed=False) -> list:
        kind = ("i" if signed else "u") + ("1" if bits <= 8 else "2")
        low = 1 << (bits - 1) if signed else 0
        return [
            [
                (blob(s, float, (1 << bits) - 1) + t).clip(0, (1 << bits) - 1).astype(int).__sub__(low).astype(kind)
                for s in shapes
            ]
            for t in range(count)
        ]

    def test_formats(self) -> None:
        h, w = 30, 45
        for name, shapes, bits in (
            ("gray", [(h, w)], 8),
            ("gray12", [(h, w)], 12),
            ("ya8", [(h, w)] * 2, 8),
            ("gbrp16", [(h, w)] * 3, 16),
            ("yuv420p", [(h, w), (15, 23), (15, 23)], 8),
            ("yuv422p10", [(h, w), (h, 23), (h, 23)], 10),
            ("yuva444p", [(h, w)] * 4, 8),
            ("yuv410p", [(h, w), (8, 12), (8, 12)], 8),
            ("gray1", [(h, w)], 1),
        ):
            frames, file = self.frames(shapes, bits), io.BytesIO()
            with trivelet.VideoWriter(file, w, h, name, 30, lossless=True, gop=5) as writer:
                for planes in frames:
                    writer.write(planes)
            with trivelet.VideoReader(file.getvalue()) as reader:
                self.assertEqual((reader.info.format, reader.info.rate, reader.info.frames), (name, 30, len(frames)))
                back = list(reader)
            self.assertEqual(len(back), len(frames))
            for t, (frame, planes) in enumerate(zip(back, frames)):
                self.assertEqual((frame.pts, frame.duration, frame.time), (t, 1, t / 30))
                for a, b in zip(frame.planes, planes):
                    np.testing.assert_array_equal(a, b, name)

    def test_index(self) -> None:
        frames, file = self.frames([(30, 45), (15, 23), (15, 23)], count=26), io.BytesIO()
        with trivelet.VideoWriter(file, 45, 30, "yuv420p", 30, lossless=True, gop=8) as writer:
            for planes in frames:
                writer.write(planes)
        stream = file.getvalue()
        film = matroska(stream)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "film.mkv"
            path.write_bytes(film)
            for source in (stream, io.BytesIO(stream), film, io.BytesIO(film), path):
                reader = trivelet.VideoReader(source)
                self.assertEqual(len(reader), 26)
                first = next(reader)
                for i in (25, 0, 7, 8, -1, -26):
                    self.assertEqual(reader[i].pts, i % 26)
                    np.testing.assert_array_equal(reader[i].planes[0], frames[i][0])
                self.assertEqual([frame.pts for frame in reader[20:3:-6]], [20, 14, 8])
                self.assertEqual([first.pts, *(frame.pts for frame in reader)], [*range(26)])
                for i in (26, -27):
                    with self.assertRaises(IndexError):
                        reader[i]
                part = trivelet.VideoReader(source, start=5, stop=20, reduce=1)
                self.assertEqual((len(part), part[4].pts, part[-1].pts), (15, 9, 19))
                self.assertEqual(len(trivelet.VideoReader(source, temporal_reduce=1)), 13)
        cut = trivelet.VideoReader(film[: len(film) * 2 // 3])
        self.assertEqual(cut[7].pts, 7)
        with self.assertRaisesRegex(trivelet.UnsupportedError, "no track of Trivelet"):
            trivelet.VideoReader(film.replace(b"TRVL", b"XVID"))
        for size in range(0, 400, 7):  # any bytes are an error or a stream
            with contextlib.suppress(trivelet.Error, TypeError):
                list(trivelet.VideoReader(film[:size]))

    def test_rgb(self) -> None:
        # Red, green and blue of BT.601 in the limited range, white and black.
        colours = {(81, 90, 240): (255, 0, 0), (145, 54, 34): (0, 255, 0), (41, 240, 110): (0, 0, 255),
                   (235, 128, 128): (255, 255, 255), (16, 128, 128): (0, 0, 0)}  # fmt: skip
        for yuv, rgb in colours.items():
            planes = tuple(np.full(shape, value, np.uint8) for shape, value in zip([(4, 6), (2, 3), (2, 3)], yuv))
            frame = trivelet.Frame(planes, 0, 1, Fraction(1, 25), "yuv420p")
            self.assertEqual(frame.rgb().shape, (4, 6, 3))
            self.assertLessEqual(int(np.abs(frame.rgb().astype(int) - rgb).max()), 2, yuv)
            wide = tuple(plane.astype(np.uint16) << 2 for plane in planes)
            frame = trivelet.Frame(wide, 0, 1, Fraction(1, 25), "yuv420p10")
            self.assertLessEqual(int(np.abs(frame.rgb().astype(int) // 4 - rgb).max()), 2, yuv)
        full = trivelet.VideoInfo(4, 4, "yuv444p", range=2, matrix=1)
        frame = trivelet.Frame((np.full((4, 4), 200, np.uint8), *[np.full((4, 4), 128, np.uint8)] * 2), 0, 1,
                               Fraction(1, 25), "yuv444p", full)  # fmt: skip
        self.assertEqual(frame.rgb()[0, 0].tolist(), [200, 200, 200])
        grey = trivelet.Frame((np.arange(6, dtype=np.uint8).reshape(2, 3),), 0, 1, Fraction(1, 25), "gray")
        self.assertEqual(grey.rgb()[1, 2].tolist(), [5, 5, 5])
        planes = tuple(np.full((2, 2), n, np.uint8) for n in (2, 3, 1))
        self.assertEqual(trivelet.Frame(planes, 0, 1, Fraction(1, 25), "gbrp").rgb()[0, 0].tolist(), [1, 2, 3])

    def test_bounds_on_the_rate(self) -> None:
        noise = np.random.default_rng(1).integers(0, 255, (12, 30, 45), np.uint8)
        sizes = []
        for options in ({}, {"max_rate": 1e5, "rate_window": 0.08}, {"max_rate": 1e5, "bpp": 8}):
            file = io.BytesIO()
            if "bpp" not in options:
                options["quality"] = 95
            with trivelet.VideoWriter(file, 45, 30, "gray", 25, gop=2, **options) as w:
                for frame in noise:
                    w.write(frame)
            sizes.append(len(file.getvalue()))
        self.assertGreater(sizes[0], 12 * 30 * 45 / 2)
        self.assertLess(sizes[1], 1.25e4 * 12 / 25 + 900)  # beside the header and the index
        self.assertLess(sizes[2], 1.25e4 + 900)  # of a second
        with self.assertRaises(trivelet.ArgumentError):
            trivelet.VideoWriter(io.BytesIO(), 45, 30, "gray", 25, max_rate=1e5, psnr=40)

    def test_metadata(self) -> None:
        metadata = trivelet.Metadata(
            mastering_display=trivelet.MasteringDisplay(
                ((34000, 16000), (13250, 34500), (7500, 3000), (15635, 16450)), 10000000, 50
            ),
            content_light=trivelet.ContentLight(1000, 400),
            chapters=(trivelet.Chapter(-5, 40, "First"), trivelet.Chapter(40, 2**40, "Zweites – 三")),
            chapter_time_base=Fraction(1, 90000),
            entries=(("title", "A title"), ("comment", ""), ("comment", "again")),
        )
        for given in (metadata, trivelet.Metadata()):
            file = io.BytesIO()
            info = trivelet.VideoInfo(16, 16, "yuva420p", mirrored=True, premultiplied=True)
            planes = [np.zeros((n, n), np.uint8) for n in (16, 8, 8, 16)]
            with trivelet.VideoWriter(file, 16, 16, "yuva420p", info=info, metadata=given) as writer:
                writer.write(planes)
            reader = trivelet.VideoReader(file.getvalue())
            self.assertEqual(reader.metadata, given)
            self.assertTrue(reader.info.mirrored and reader.info.premultiplied)
        self.assertEqual(metadata.get("comment"), "")
        self.assertIsNone(metadata.get("artist"))
        for bad in (
            trivelet.Metadata(entries=(("", "x"),)),
            trivelet.Metadata(chapters=(trivelet.Chapter(5, 4),)),
            trivelet.Metadata(entries=(("title", "a\0b"),)),
            trivelet.Metadata(content_light=trivelet.ContentLight(70000, 0)),
        ):
            with self.assertRaises(trivelet.ArgumentError):
                trivelet.VideoWriter(io.BytesIO(), 16, 16, "gray", metadata=bad)

    def test_pixels(self) -> None:
        for name, channels in (("gbrp", 3), ("yuva444p", 4), ("gbrap", 4), ("gray", 1)):
            pixels = RANDOM.integers(0, 255, (16, 24, channels), np.uint8)[:, :, : channels if channels > 1 else None]
            pixels = pixels[..., 0] if channels == 1 else pixels
            file = io.BytesIO()
            with trivelet.VideoWriter(file, 24, 16, name, lossless=True) as writer:
                writer.write(pixels)
                writer.write(pixels[::-1])
                writer.write(np.broadcast_to(pixels[:1], pixels.shape))
            a, b, c = [frame.pixels() for frame in trivelet.VideoReader(file.getvalue())]
            np.testing.assert_array_equal(a, pixels)
            np.testing.assert_array_equal(b, pixels[::-1])
            np.testing.assert_array_equal(c, np.broadcast_to(pixels[:1], pixels.shape))
        file = io.BytesIO()
        with trivelet.VideoWriter(file, 24, 16, "gbrp", lossless=True) as writer:
            writer.write(np.full((16, 24, 3), (1, 2, 3), np.uint8))
        frame = next(trivelet.VideoReader(file.getvalue()))
        self.assertEqual([int(p[0, 0]) for p in frame.planes], [2, 3, 1])  # G, B, R

    def test_parts(self) -> None:
        frames = self.frames([(48, 64), (24, 32), (24, 32)], count=20)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "v.tvl"
            info = trivelet.VideoInfo(
                1, 1, "gray", time_base=Fraction(1, 90000), matrix=1, range=1, rotation=90, aspect=Fraction(4, 3)
            )
            with trivelet.VideoWriter(path, 64, 48, rate="30000/1001", lossless=True, gop=8, info=info) as writer:
                for t, planes in enumerate(frames):
                    if t == 4:
                        writer.end_gop()
                    writer.write(planes, pts=5 if t == 0 else None)
                self.assertFalse(path.exists())
            reader = trivelet.VideoReader(path)
            self.assertEqual(
                (reader.info.rate, reader.info.time_base, reader.info.matrix, reader.info.rotation, reader.info.aspect),
                (Fraction(30000, 1001), Fraction(1, 90000), 1, 90, Fraction(4, 3)),
            )
            times = [(f.pts, f.duration) for f in reader]
            self.assertEqual(times[:4], [(5, 3003), (3003, 3003), (6006, 3003), (9009, 3003)])
            part = list(trivelet.VideoReader(path, start=6, stop=9, region=np.s_[10:20, 32:]))
            self.assertEqual(len(part), 3)
            np.testing.assert_array_equal(part[1].planes[0], frames[7][0][10:20, 32:])
            np.testing.assert_array_equal(part[1].planes[2], frames[7][2][5:10, 16:])
            small = list(trivelet.VideoReader(path, reduce=1, temporal_reduce=1))
            self.assertEqual(small[0].planes[0].shape, (24, 32))
            self.assertEqual(len(small), 2 + 4 + 4)
            with self.assertRaisesRegex(trivelet.ArgumentError, "chroma sample"):
                trivelet.VideoReader(path, region=np.s_[1:9, 1:9])
            with self.assertRaises(trivelet.ArgumentError):
                trivelet.VideoReader(path, region=np.s_[::2, 1:9])
            with self.assertRaisesRegex(trivelet.ArgumentError, "a video, not a volume"):
                trivelet.open(path)
            # Again, from frames as they were read and through a pipe.
            copy = io.BytesIO()
            source = trivelet.VideoReader(path)
            with trivelet.VideoWriter(copy, 64, 48, info=source.info, lossless=True) as writer:
                for frame in source:
                    writer.write(frame)

            class Pipe:
                def __init__(self, data):
                    self.file = io.BytesIO(data)

                def seekable(self):
                    return False

                def read(self, size):
                    return self.file.read(min(size, 1000))

            self.assertEqual([(f.pts, f.duration) for f in trivelet.VideoReader(Pipe(copy.getvalue()))], times)

    def test_writer_that_fails(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "v.tvl"
            with self.assertRaises(KeyError):
                with trivelet.VideoWriter(path, 16, 16, "gray") as writer:
                    writer.write(np.zeros((16, 16), np.uint8))
                    raise KeyError
            self.assertEqual(os.listdir(folder), [])
            path.write_bytes(b"old")
            with self.assertRaises(trivelet.ArgumentError):
                trivelet.VideoWriter(path, 16, 16, "gray", overwrite=False)
            with trivelet.VideoWriter(path, 16, 16, "gray") as writer:
                for wrong in (
                    np.zeros((16, 17), np.uint8),
                    np.zeros((16, 16), np.uint16),
                    [],
                    np.zeros((16, 16, 3), np.uint8),
                ):
                    with self.assertRaises(trivelet.ArgumentError):
                        writer.write(wrong)
                writer.write(np.zeros((16, 16), np.uint8))
            self.assertEqual(len(list(trivelet.VideoReader(path))), 1)
            with self.assertRaises(ValueError):
                writer.write(np.zeros((16, 16), np.uint8))
        for more in (
            {"quality": -1},
            {"psnr": -1},
            {"size": 0},
            {"bpp": 0},
            {"bitrate": -5},
            {"rate": 0},
            {"gop": 129},
            {"lossless": True, "quality": 9},
            {"format": "rgb"},
            {"width": 0},
            {"device": -1},
            {"motion": "yes"},
            {"key_prediction": "yes"},
            {"key_prediction": "on", "psnr": 40},
        ):
            with self.assertRaises(trivelet.ArgumentError, msg=str(more)):
                trivelet.VideoWriter(io.BytesIO(), **{"width": 16, "height": 16, **more})

    def test_keys_of_a_still_scene_are_predicted(self) -> None:
        frame = np.random.default_rng(3).integers(0, 256, (48, 64), np.uint8)
        sizes = []
        for more in ({}, {"key_prediction": "auto"}, {"key_prediction": "off"}):
            file = io.BytesIO()
            with trivelet.VideoWriter(file, 64, 48, "gray", gop=4, motion="on", **more) as writer:
                for _ in range(16):
                    writer.write(frame)
            sizes.append(len(file.getvalue()))
        self.assertEqual(sizes[0], sizes[1])
        self.assertLess(sizes[0], sizes[2] * 0.6)

    def test_targets(self) -> None:
        frames, sizes = self.frames([(48, 64)], count=20), []
        for more in ({"quality": 30}, {"quality": 80}, {"size": 3000}, {"psnr": 38}, {"profile": "fast"}):
            file = io.BytesIO()
            with trivelet.VideoWriter(file, 64, 48, "gray", **more) as writer:
                for planes in frames:
                    writer.write(planes[0])
            sizes.append(len(file.getvalue()))
            back = np.array([f.planes[0] for f in trivelet.VideoReader(file.getvalue())], float)
            error = ((back - np.array([p[0] for p in frames])) ** 2).mean()
            if "psnr" in more:
                self.assertGreater(10 * np.log10(255**2 / error), 37.9)
        self.assertLess(sizes[0], sizes[1])
        self.assertLessEqual(sizes[2], 3000)

    def test_damage(self) -> None:
        file = io.BytesIO()
        frames = self.frames([(48, 64)], count=30)
        with trivelet.VideoWriter(file, 64, 48, "gray", lossless=True, gop=5, motion="off") as writer:
            for planes in frames:
                writer.write(planes)
        damaged = bytearray(file.getvalue())
        damaged[len(damaged) // 2] ^= 255
        reader, given = trivelet.VideoReader(damaged), []
        with self.assertRaises(trivelet.StreamError):
            for frame in reader:
                given.append(frame)
        self.assertEqual(len(given), 15)  # those before the damage
        for frame, planes in zip(given, frames):
            np.testing.assert_array_equal(frame.planes[0], planes[0])
        with self.assertLogs("trivelet", "WARNING"):
            self.assertGreaterEqual(len(list(trivelet.VideoReader(damaged, keep_partial=True))), 25)


class Together(unittest.TestCase):
    def test_threads(self) -> None:
        array = blob((24, 80, 90))
        volume = trivelet.open(io.BytesIO(trivelet.encode(array, transform="wavelet", effort="fast")), threads=1)
        stream = trivelet.encode(array[:4], effort="fast")

        def work(n: int) -> bool:
            if n % 4 == 0:
                return trivelet.encode(array[:4], effort="fast", threads=1) == stream
            return np.array_equal(volume[n % 20 : n % 20 + 4, n : n + 9], array[n % 20 : n % 20 + 4, n : n + 9])

        with ThreadPoolExecutor(6) as pool:
            self.assertTrue(all(pool.map(work, range(40))))

    def test_one_reader_of_many_threads(self) -> None:
        file = io.BytesIO()
        with trivelet.VideoWriter(file, 64, 48, "gray", gop=2, quality=30) as writer:
            for t in range(60):
                writer.write(np.full((48, 64), t, np.uint8))
        reader, lock, given = trivelet.VideoReader(file.getvalue()), threading.Lock(), []

        def read() -> None:
            for frame in reader:
                with lock:
                    given.append(frame.pts)

        threads = [threading.Thread(target=read) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(given), list(range(60)))

    def test_others_run_meanwhile(self) -> None:
        array = RANDOM.integers(0, 60000, (24, 200, 200), np.uint16)
        turns, done = 0, threading.Event()

        def encode() -> None:
            trivelet.encode(array, threads=1)
            done.set()

        thread = threading.Thread(target=encode)
        begun = time.monotonic()
        thread.start()
        while not done.wait(0.002):
            turns += 1
        thread.join()
        self.assertGreater(turns, (time.monotonic() - begun) * 20)  # of 500 a second that an idle machine would give

    def test_signals(self) -> None:
        array = RANDOM.integers(0, 60000, (128, 200, 200), np.uint16)
        stream = trivelet.encode(array[:, :100], slab=2)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for call in (
                lambda: trivelet.encode(array, slab=2, threads=1),
                lambda: trivelet.decode(stream, threads=1),
            ):
                used = time.process_time()
                signal.setitimer(signal.ITIMER_REAL, 0.03)
                with self.assertRaises(KeyboardInterrupt):
                    call()
                self.assertLess(time.process_time() - used, 1)  # the whole takes many times as long
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        small = blob((4, 20, 20))
        np.testing.assert_array_equal(trivelet.decode(trivelet.encode(small)), small)

    def test_fork(self) -> None:
        small = blob((4, 20, 20))
        trivelet.encode(small)
        child = os.fork()
        if child == 0:
            ok = np.array_equal(trivelet.decode(trivelet.encode(small)), small)
            os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_closed_by_a_signal(self) -> None:
        plane = RANDOM.integers(0, 255, (400, 400), np.uint8)
        file = io.BytesIO()
        with trivelet.VideoWriter(file, 400, 400, "gray", gop=32, lossless=True) as writer:
            for _ in range(32):
                writer.write(plane)

        def write() -> None:
            with trivelet.VideoWriter(io.BytesIO(), 400, 400, "gray", gop=32, lossless=True, threads=1) as writer:
                users.append(writer)
                while True:
                    writer.write(plane)

        def read() -> None:
            while True:  # a fast machine has read it all before it is closed
                users.append(trivelet.VideoReader(file.getvalue(), threads=1))
                list(users[-1])

        users: list = []
        before = signal.signal(signal.SIGALRM, lambda *_: users[-1].close())
        try:
            # More than once: a reader that has just ended does not see that it is closed.
            signal.setitimer(signal.ITIMER_REAL, 0.04, 0.04)
            with self.assertRaises(ValueError):
                read()
            signal.setitimer(signal.ITIMER_REAL, 0.04)
            reader = users[-1]
            with self.assertRaises((RuntimeError, ValueError)):
                write()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        with self.assertRaisesRegex(ValueError, "closed"):
            next(reader)

    def test_open_when_forked(self) -> None:
        file = io.BytesIO()
        with trivelet.VideoWriter(file, 64, 48, "gray", gop=2) as writer:
            for t in range(12):
                writer.write(np.full((48, 64), t, np.uint8))
        reader = trivelet.VideoReader(file.getvalue())
        next(reader)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # which ends it
            try:
                list(reader)
            except ValueError as error:
                reader.close()
                del reader
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(list(reader)), 11)

    def test_nothing_is_left(self) -> None:
        import gc
        import weakref

        def handles() -> int:
            return sum(
                f.peek() is not None and "Handle" in type(f.peek()[0]).__name__ for f in weakref.finalize._registry
            )

        stream = trivelet.encode(blob((4, 20, 20)))
        gc.collect()
        before = handles()

        def use() -> None:
            trivelet.decode(io.BytesIO(stream), threads=1)
            with self.assertRaises(trivelet.Error):
                trivelet.decode(io.BytesIO(stream[:60]))
            file = io.BytesIO()
            writer = trivelet.VideoWriter(file, 16, 16, "gray")
            writer.write(np.zeros((16, 16), np.uint8))
            writer.close()
            next(trivelet.VideoReader(io.BytesIO(file.getvalue())))  # and left
            trivelet.VideoWriter(io.BytesIO(), 16, 16, "gray")  # left unfinished

        def memory() -> int:
            return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])

        for _ in range(20):
            use()
        gc.collect()
        self.assertEqual(handles(), before)
        used = memory()
        for _ in range(100):
            use()
        gc.collect()
        self.assertEqual(handles(), before)
        self.assertLess(memory() - used, 8000)  # KiB; a decoder that stays takes about 100

    def test_ten_thousand_calls(self) -> None:
        """Of both directions where everything is tried; growth does not depend on how many there were."""

        def memory() -> int:
            return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])

        array = np.arange(512, dtype=np.int16).reshape(8, 8, 8)

        def work(times: int) -> None:
            for _ in range(times):
                trivelet.decode(trivelet.encode(array, effort="fast", threads=1), threads=1)

        def used_after(times: int) -> "tuple[int, int]":
            thread = threading.Thread(target=work, args=(times,))  # where calls need no thread of their own
            thread.start()
            thread.join()
            return memory(), len(os.listdir("/proc/self/fd"))

        full = os.environ.get("TRIVELET_FULL", "") not in ("", "0")
        used = [used_after(200)]
        grown = []
        while not grown or (min(grown) >= 1000 and len(grown) < 3):  # a heap may grow once; what leaks grows in every round
            used.append(used_after(10000 if full else 500))
            grown.append(used[-1][0] - used[-2][0])
        self.assertLess(min(grown), 1000, grown)  # KiB
        self.assertEqual({files for _, files in used}, {used[0][1]})


def load_tests(loader, tests, _pattern):
    for name in ("trivelet", "trivelet.volume", "trivelet.video"):
        tests.addTests(doctest.DocTestSuite(importlib.import_module(name)))
    tests.addTests(doctest.DocFileSuite(str(ROOT / "python/README.md"), module_relative=False))
    return tests


if __name__ == "__main__":
    faulthandler.enable()
    unittest.main()
