"""nibabel images of streams; voxels are decoded on access."""

from __future__ import annotations

import importlib
import io
import math
import warnings
from typing import Any, Optional

import numpy as np

from . import _envelope
from ._streams import Readable
from .errors import StreamError, UnsupportedError
from .volume import Array, Volume, _ranges_of


class VolumeProxy:
    """A volume with nibabel's axes: x, y, z, then those of the volumes; scaled as its header says."""

    is_proxy = True

    def __init__(self, volume: Volume, shape: tuple[int, ...], dtype: Any, slope: float, inter: float) -> None:
        self._volume, self.shape, self.slope, self.inter = volume, shape, slope, inter
        self._stored = np.dtype(dtype)
        scaled = np.result_type(self._stored, np.float64) if (slope, inter) != (1, 0) else self._stored
        self.dtype: np.dtype[Any] = scaled

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _read(self, index: Any) -> Array:
        ranges = _ranges_of(index, self.shape)
        extents = [r.extent for r in ranges] + [1] * (3 - self.ndim)
        box = tuple(slice(r.first, r.end) for r in ranges[:3]) + (slice(0, 1),) * (3 - self.ndim)
        found = np.empty(extents[::-1], self._stored)
        if 0 not in extents:
            # Among the axes of the volumes, the fourth varies fastest.
            numbers = np.arange(math.prod(self.shape[3:])).reshape(self.shape[3:], order="F")
            numbers = numbers[tuple(slice(r.first, r.end) for r in ranges[3:])].ravel(order="F")
            first = int(numbers.min())
            wanted = (slice(first, int(numbers.max()) + 1), *box[::-1])
            parts = dict(zip("tzyx", wanted))
            array = self._volume[tuple(parts[a] for a in self._volume.axes if a != "c")]
            if "c" in self._volume.axes:
                array = np.ascontiguousarray(array).view(self._stored)[..., 0]
            found = array.reshape([s.stop - s.start for s in wanted])[numbers - first].reshape(extents[::-1])
        part: Array = found.T[tuple(r.within for r in ranges) + (0,) * (3 - self.ndim)]
        return part

    def get_unscaled(self) -> Array:
        return self._read(...)

    def __getitem__(self, index: Any) -> Any:
        stored = self._read(index)
        return stored if self.dtype == self._stored else stored * self.slope + self.inter

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        array: Array = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)


def nibabel_image(
    source: Readable, *, affine: Any = None, reduce: int = 0, layers: Optional[int] = None, threads: int = 0
) -> Any:
    """A `nibabel.Nifti1Image` (or of NIfTI-2, or a pair) of a stream, with the header, the extensions and the affine of
    the file that it was made of. `img.dataobj[..., 5]` and `img.slicer[10:20]` decode only what they need.

    source: what `trivelet.open` takes.
    affine: a 4x4 matrix for streams of other files than NIfTI and DICOM (such as Analyze), whose orientation is not
        read.
    reduce, layers, threads: as of `trivelet.open` and `Volume.at`; affine and zooms are those of the smaller image.
    """
    nibabel: Any = importlib.import_module("nibabel")
    volume = Volume(source, threads=threads).at(reduce, layers)
    envelope = _envelope.parse(volume.envelope)
    stored: Any = volume.dtype
    if envelope is not None and _envelope.is_nifti(envelope):
        image_class = _class_of(nibabel, envelope)
        header = image_class.header_class.from_fileobj(io.BytesIO(envelope.files[0].head))
        full, stored = header.get_data_shape(), header.get_data_dtype()
        if volume._full[1:4] != tuple((*full, 1, 1)[2::-1]) or volume._full[0] != math.prod(full[3:]):
            raise StreamError(f"a volume of {volume._full} along tzyxc; its header says {full} along x, y, z, ...")
    else:
        if affine is None:
            affine = _envelope.affine_of(envelope)
        if envelope is not None and affine is None and envelope.format != "raw":
            raise UnsupportedError(
                f"the stream was made of {envelope.format}, whose orientation is not read here or not known; give an "
                "affine, or write NIfTI with 'trivelet decode IN.tvl OUT.nii'"
            )
        image_class, header = nibabel.Nifti1Image, nibabel.Nifti1Header()
        if "c" in volume.axes:
            raise UnsupportedError(f"a volume of {volume._full[4]} scalars a voxel that was not made of a NIfTI file")
        full = tuple(volume._full[3:0:-1]) + ((volume._full[0],) if volume._full[0] > 1 else ())
        header.set_data_dtype(stored)
        header.set_data_shape(full)
        spacing = _envelope.spacing_of(envelope, volume._full[0], volume._full[4])
        if spacing:
            header.set_zooms(spacing[: len(full)])
        scale = _envelope.scale_of(envelope)
        if scale is None:
            warnings.warn("the slices have slopes of their own: the image has the stored values", stacklevel=2)
        elif scale != (1, 0):
            header.set_slope_inter(*scale)
    slope, inter = header.get_slope_inter()
    steps = volume._step[::-1]
    if steps[2] > 1 and volume._full[1] > volume._slab and volume._slab % steps[2] != 0:
        raise UnsupportedError(
            f"reduce={reduce} leaves slices at uneven distances: groups of {volume._slab} of them give one of {steps[2]}"
        )
    shape = (*volume._extents[3:0:-1], *full[3:])[: len(full)]
    best = header.get_best_affine() if affine is None else np.asarray(affine)
    zooms = header.get_zooms()
    if shape != full:  # the voxel that represents a group has the position of the first
        header.set_data_shape(shape)
        header.set_zooms([z * s for z, s in zip(zooms, (*steps, *[1] * 4))])
        best = best @ np.diag([*steps, 1])
    proxy = VolumeProxy(volume, shape, stored, 1.0 if slope is None else slope, 0.0 if inter is None else inter)
    image = image_class(proxy, best if (affine is not None or envelope is not None) else None, header)
    image.header.set_slope_inter(float("nan"), float("nan"))  # as in nibabel, because `dataobj` is already scaled
    return image


def _class_of(nibabel: Any, envelope: _envelope.Envelope) -> Any:
    magic = envelope.files[0].head[344:348] if envelope.format == "nifti-1" else envelope.files[0].head[4:8]
    if envelope.format == "nifti-1":
        return nibabel.Nifti1Pair if magic == b"ni1\0" else nibabel.Nifti1Image
    return nibabel.Nifti2Pair if magic == b"ni2\0" else nibabel.Nifti2Image
