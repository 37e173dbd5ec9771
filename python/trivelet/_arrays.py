"""Arrays of other libraries: host memory by DLPack, GPU memory by `__cuda_array_interface__` or DLPack."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError

Array = npt.NDArray[Any]

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_USED = b"used_dltensor"  # the capsule keeps its address
_KINDS = {0: "i", 1: "u", 2: "f"}  # DLDataTypeCode


class OnDevice(NamedTuple):
    """An array in memory of a GPU."""

    view: Array  # address, shape and strides; not readable on the host
    device: int
    stream: Optional[int]  # a cudaStream_t; None = the default one
    keeps: Any  # objects that own the memory


class _Tensor(Structure):  # DLTensor
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):  # DLManagedTensor
    _fields_ = [("tensor", _Tensor), ("manager", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


def _view(address: int, shape: tuple[int, ...], dtype: Any, strides: Optional[tuple[int, ...]]) -> Array:
    dtype = np.dtype(dtype)
    if 0 in shape:
        return np.empty(shape, dtype)
    if strides is None:
        strides = tuple(dtype.itemsize * int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))
    ends = [s * (n - 1) for s, n in zip(strides, shape)]
    low = sum(e for e in ends if e < 0)
    span = sum(e for e in ends if e > 0) - low + dtype.itemsize
    memory = (ctypes.c_byte * span).from_address(address + low)
    return np.ndarray(shape, dtype, memory, -low, strides)


def _by_interface(given: Any) -> OnDevice:
    interface = given.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError("an array on a GPU with a mask")
    address, _ = interface["data"]
    view = _view(address or 0, tuple(interface["shape"]), interface["typestr"], interface.get("strides"))
    number = getattr(given, "device", 0)
    number = getattr(number, "id", getattr(number, "index", number))
    return OnDevice(view, number if isinstance(number, int) else 0, interface.get("stream"), given)


class _Capsule:
    """A tensor taken from a capsule; released when this object is deleted."""

    def __init__(self, capsule: Any) -> None:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.restype, rename.argtypes = c_int32, [ctypes.py_object, c_char_p]
        self._managed = ctypes.cast(get(capsule, b"dltensor"), POINTER(_Managed))
        rename(capsule, _USED)
        self._capsule = capsule

    @property
    def tensor(self) -> Any:
        return self._managed.contents.tensor

    def __del__(self) -> None:
        deleter = self._managed.contents.deleter
        if deleter:
            deleter(ctypes.cast(self._managed, c_void_p).value)


def _by_dlpack(given: Any, device: int) -> OnDevice:
    keeps = _Capsule(given.__dlpack__(stream=1))  # later work on the default stream sees the values
    tensor = keeps.tensor
    if tensor.lanes != 1 or tensor.code not in _KINDS or tensor.bits % 8:
        raise ArgumentError(f"a tensor of type code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes")
    dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(s * dtype.itemsize for s in tensor.strides[: tensor.ndim]) if tensor.strides else None
    return OnDevice(_view((tensor.data or 0) + tensor.byte_offset, shape, dtype, strides), device, None, keeps)


def on_device(given: Any) -> Optional[OnDevice]:
    """None for host memory."""
    if isinstance(given, np.ndarray):
        return None
    if hasattr(given, "__cuda_array_interface__"):
        return _by_interface(given)
    if hasattr(given, "__dlpack_device__"):
        kind, number = given.__dlpack_device__()
        if kind in (_CUDA, _CUDA_MANAGED):
            return _by_dlpack(given, number)
        if kind not in (_CPU, _CUDA_HOST):
            raise ArgumentError(f"an array on a device of type {int(kind)} of DLPack; there are the CPU and CUDA's")
    return None


def on_host(given: Any) -> Array:
    """A NumPy array over the memory of a DLPack producer, otherwise NumPy's conversion of it."""
    if not isinstance(given, np.ndarray) and hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
        return np.from_dlpack(given)
    return np.asarray(given)
