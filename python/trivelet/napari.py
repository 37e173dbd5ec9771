"""A napari reader for volumes as multi-resolution layers, decoded on access."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Union

from . import _envelope
from .errors import Error
from .volume import Volume

_SMALLEST = 256  # sizes below this are not needed
Layer = tuple[Any, dict[str, Any], str]


def get_reader(path: Union[str, list[str]]) -> Optional[Callable[[Any], list[Layer]]]:
    """napari calls this for files that end in .tvl; None for streams that are not volumes, such as videos."""
    paths = [path] if isinstance(path, str) else path
    try:
        for one in paths:
            Volume(one)
    except (Error, OSError):
        return None
    return read


def read(path: Union[str, list[str]]) -> list[Layer]:
    return [_layer_of(one) for one in ([path] if isinstance(path, str) else path)]


def _layer_of(path: str) -> Layer:
    volume = Volume(path)
    sizes = [volume]
    while len(sizes) <= volume.reductions and max(sizes[-1]._extents[1:4]) > _SMALLEST:
        sizes.append(volume.at(reduce=len(sizes)))
    axes = [a for a in volume.axes if a != "c"]
    said = _envelope.spacing_of(_envelope.parse(volume.envelope), volume._full[0], volume._full[4])
    spacing = dict(zip("xyzt", said or (1.0,) * 4))
    meta: dict[str, Any] = {
        "name": os.path.splitext(os.path.basename(path))[0],
        "scale": tuple(spacing[a] for a in axes),
        "multiscale": len(sizes) > 1,
        "metadata": {"exact": volume.exact, "max_error": volume.max_error, "axes": volume.axes},
    }
    if "c" in volume.axes:
        if volume._full[4] in (3, 4) and volume.dtype.itemsize == 1:
            meta["rgb"] = True
        else:
            meta["channel_axis"] = volume.axes.index("c")
    return (sizes if len(sizes) > 1 else volume, meta, "image")
