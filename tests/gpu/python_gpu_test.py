#!/usr/bin/env python3
"""Arrays in GPU memory: the same streams and voxels as in host memory, by the package and through Zarr.

tests/gpu/python_gpu_test.py [path/to/libtrivelet_emulated.so] [unittest's arguments]

With that library GPUs are emulated, and memory of the host stands for theirs. Without, the installed package or the library
that the environment names is tried on a GPU, whose arrays are CuPy's.
"""

import ctypes
import logging
import os
import re
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

EMULATED = len(sys.argv) > 1 and not sys.argv[1].startswith("-")
if EMULATED:
    library = Path(sys.argv.pop(1)).resolve()
    if not library.exists():
        print(f"skipped: {library} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
try:
    import numpy as np

    if not EMULATED:
        import cupy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
try:
    import zarr
    from zarr.core.buffer.core import NDBuffer
    from zarr.registry import register_ndbuffer
    from zarr.storage import LocalStore
except ImportError:
    zarr, NDBuffer = None, object
import trivelet
from trivelet import _library

if _library.library.tvl_gpu_count() == 0:
    print("skipped: no GPU")
    sys.exit(77)
logging.getLogger("trivelet").addHandler(logging.NullHandler())
RANDOM = np.random.default_rng(8)


class Far:
    """As arrays of CuPy: whoever takes it for one of the host is told."""

    def __init__(self, array):
        self.host = array
        self.__cuda_array_interface__ = dict(
            shape=array.shape, typestr=array.dtype.str, data=(array.ctypes.data, False), strides=array.strides, version=3
        )

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)

    def __len__(self):
        return len(self.host)

    def __array__(self, *_, **__):
        raise TypeError("an array of the GPU as one of the host")

    def __getitem__(self, index):
        return Far(self.host[index])

    def __setitem__(self, index, value):
        self.host[index] = value.host if isinstance(value, Far) else value

    def reshape(self, *shape, **_):
        return Far(self.host.reshape(*shape))


class ByDlpack:
    def __init__(self, far):
        self.far = far

    def __dlpack__(self, **how):
        return self.far.host.__dlpack__() if EMULATED else self.far.__dlpack__(**how)

    def __dlpack_device__(self):
        return 2, 0


class FarNDBuffer(NDBuffer):
    """zarr.buffer.gpu.NDBuffer without CuPy."""

    def __init__(self, array):
        super().__init__(array if isinstance(array, Far) else Far(np.array(array)))

    @classmethod
    def create(cls, *, shape, dtype, order="C", fill_value=None):
        array = np.empty(tuple(shape), dtype, order)
        array[...] = 99 if fill_value is None else fill_value
        return cls(Far(array))

    @classmethod
    def empty(cls, shape, dtype, order="C"):
        return cls.create(shape=shape, dtype=dtype, order=order)

    @classmethod
    def from_numpy_array(cls, array_like):
        return cls(array_like)

    def as_numpy_array(self):
        return self._data.host

    def __getitem__(self, key):
        return FarNDBuffer(self._data[key])

    def __setitem__(self, key, value):
        self._data[key] = value._data if isinstance(value, NDBuffer) else value


def on_gpu(array):
    return Far(array.copy()) if EMULATED else cupy.asarray(array)


def on_host(array):
    if isinstance(array, np.ndarray):
        raise AssertionError("an array of the host")
    return array.host if EMULATED else cupy.asnumpy(array)


def blob(shape, dtype=np.int16):
    return (RANDOM.normal(0, 9, shape) + 5 * np.arange(shape[-1])).astype(dtype)


WAYS = (
    ("i2", {"transform": "wavelet"}),
    ("u2", {"transform": "wavelet", "profile": "fast"}),
    ("u1", {"transform": "wavelet", "max_error": 2}),
    ("f4", {"transform": "wavelet"}),
    ("i2", {"quality": 60}),
    ("u2", {}),
)


class Arrays(unittest.TestCase):
    def tearDown(self):
        trivelet.release_gpus()

    def test_streams(self):
        for dtype, how in WAYS:
            array = blob((9, 20, 30), dtype)
            stream = trivelet.encode(array, **how)
            expected = trivelet.decode(stream)
            far = on_gpu(array)
            for given in (far, ByDlpack(far)):
                self.assertEqual(trivelet.encode(given, **how), stream, (dtype, how))
            for given in (lambda out: out, ByDlpack):
                out = on_gpu(np.zeros_like(array))
                trivelet.decode(stream, out=given(out))
                np.testing.assert_array_equal(on_host(out), expected)

    def test_parts(self):
        array = blob((9, 20, 30))
        out = on_gpu(np.zeros((2, 20, 4), np.int16))
        trivelet.decode(trivelet.encode(array, transform="wavelet"), region=np.s_[2:4, :, 5:9], out=out)
        np.testing.assert_array_equal(on_host(out), array[2:4, :, 5:9])
        several, out = np.stack([array, array + 1]), on_gpu(np.zeros_like(array)[np.newaxis])
        trivelet.decode(trivelet.encode(several), region=np.s_[1:], out=out)
        np.testing.assert_array_equal(on_host(out), several[1:])

    def test_many(self):
        for dtype, how in WAYS:
            arrays = [blob((9, 20, 30), dtype) for _ in range(5)]
            streams = [trivelet.encode(array, **how) for array in arrays]
            expected = trivelet.decode_many(streams)
            for _ in range(2):  # by decoders that are kept the second time
                outs = [on_gpu(np.zeros_like(array)) for array in arrays]
                self.assertIs(trivelet.decode_many(streams, out=outs)[2], outs[2])
                np.testing.assert_array_equal([on_host(out) for out in outs], expected, f"{dtype} {how}")
            np.testing.assert_array_equal(trivelet.decode_many(streams, device=0), expected)

    def test_many_encoded(self):
        ways = [*WAYS, *((t, {"transform": "wavelet", "effort": "fast", "profile": p}) for t in ("i2", "u1") for p in ("fast", "dense"))]
        for dtype, how in ways:
            arrays = [blob((9 + n % 2, 20, 30), dtype) for n in range(3)]
            expected = [trivelet.encode(array, **how) for array in arrays]
            self.assertEqual(trivelet.encode_many(arrays, **how), expected)
            fast = how.get("effort") == "fast"
            for _ in range(2 if fast else 1):  # by encoders that are kept the second time
                fars = [on_gpu(array) for array in arrays]
                self.assertEqual(trivelet.encode_many(fars, **how), expected, f"{dtype} {how}")
                rooms = [on_gpu(np.zeros(array.nbytes + 65536, np.uint8)) for array in arrays]
                streams = trivelet.encode_many(fars, out=rooms, **how)
                self.assertEqual([on_host(stream).tobytes() for stream in streams], expected)
                outs = [on_gpu(np.zeros_like(array)) for array in arrays]
                trivelet.decode_many(streams, out=outs)
                for out, stream in zip(outs, expected):
                    np.testing.assert_array_equal(on_host(out), trivelet.decode(stream), f"{dtype} {how}")

    def test_many_refused(self):
        array = blob((9, 20, 30))
        stream = trivelet.encode(array, transform="wavelet")
        room = on_gpu(np.zeros(100, np.uint8))
        with self.assertRaisesRegex(trivelet.ArgumentError, "several places"):
            trivelet.encode_many([array, on_gpu(array)])
        with self.assertRaisesRegex(trivelet.ArgumentError, "out is for"):
            trivelet.encode_many([array], out=[np.zeros(9, np.uint8)])
        with self.assertRaisesRegex(trivelet.Error, "array 0: room"):
            trivelet.encode_many([on_gpu(array)], out=[room], transform="wavelet", effort="fast")
        there = on_gpu(np.frombuffer(stream, np.uint8))
        with self.assertRaisesRegex(trivelet.ArgumentError, "need out"):
            trivelet.decode_many([there])
        with self.assertRaisesRegex(trivelet.Error, "stream 0"):
            trivelet.decode_many([there], out=[on_gpu(array[1:])])
        with self.assertRaisesRegex(trivelet.ArgumentError, "bytes of voxels"):
            trivelet.decode_many([there], out=[on_gpu(np.zeros((10, 20, 30), np.int16))])

    def test_little_memory(self):
        """What is not enough for several at once is for one after the other."""
        from trivelet._handles import Handle

        array = blob((64, 64, 64))
        stream = np.frombuffer(trivelet.encode(array, transform="wavelet", profile="fast"), np.uint8)
        outs = [on_gpu(np.zeros_like(array)) for _ in range(8)]

        def decode(memory):
            params = _library.make(_library.BatchParams)
            params.device, params.threads, params.device_memory = 0, 4, memory
            jobs = (_library.VolumeJob * len(outs))()
            for job, out in zip(jobs, outs):
                _library.library.tvl_volume_job_init(ctypes.byref(job), ctypes.sizeof(job))
                job.stream, job.size = stream.ctypes.data, stream.nbytes
                job.voxels, job.capacity = out.__cuda_array_interface__["data"][0], array.nbytes
            with Handle("decoder") as decoder:
                decoder.call(_library.library.tvl_decoder_set_memory, 0, None)
                return decoder.try_call(_library.library.tvl_decode_volumes, jobs, len(jobs), ctypes.byref(params))

        said = re.match("job 0: a GOP needs ([0-9]+) MiB of device memory", str(decode(1 << 16)))
        needed = int(said[1])
        self.assertGreater(needed, 1)
        self.assertIsNone(decode((needed + 1) << 20))  # of which each of four streams has less than it needs
        np.testing.assert_array_equal([on_host(out) for out in outs], [array] * len(outs))

    def test_refused(self):
        array = blob((9, 20, 30))
        stream = trivelet.encode(array, transform="wavelet")
        with self.assertRaisesRegex(trivelet.ArgumentError, "gaps"):
            trivelet.encode(on_gpu(array)[:, :, ::2])
        with self.assertRaisesRegex(trivelet.ArgumentError, "shape"):
            trivelet.decode(stream, out=on_gpu(array[1:]))
        with self.assertRaisesRegex(trivelet.StreamError, "stream 1"):
            trivelet.decode_many([stream, stream[:-300]], out=[on_gpu(array), on_gpu(array)])


@unittest.skipIf(zarr is None, "no Zarr 3")
class Chunks(unittest.TestCase):
    """Zarr's arrays are in memory of the GPU, and chunks of a batch are decoded into it."""

    def setUp(self):
        from trivelet import zarr as trivelet_zarr

        self.codec, self.zarr = trivelet_zarr.TriveletCodec, trivelet_zarr
        if EMULATED:
            register_ndbuffer(FarNDBuffer, qualname="trivelet.test.FarNDBuffer")
            self.enterContext(zarr.config.set({"ndbuffer": "trivelet.test.FarNDBuffer", "codec_pipeline.batch_size": 8}))
        else:
            self.enterContext(zarr.config.enable_gpu())
            self.enterContext(zarr.config.set({"codec_pipeline.batch_size": 8}))
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.batches, decode = [], trivelet_zarr._decode_into
        self.enterContext(
            unittest.mock.patch.object(
                trivelet_zarr, "_decode_into", lambda arrays, *a: self.batches.append(len(arrays)) or decode(arrays, *a)
            )
        )
        self.addCleanup(trivelet.release_gpus)

    if not hasattr(unittest.TestCase, "enterContext"):  # before Python 3.11

        def enterContext(self, context):
            self.addCleanup(context.__exit__, None, None, None)
            return context.__enter__()

    def made(self, array, chunks, **how):
        with zarr.config.set({"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}):
            z = zarr.create_array(self.folder, shape=array.shape, chunks=chunks, dtype=array.dtype, compressors=None, overwrite=True, **how)
            z[...] = array

    def expected(self):
        with zarr.config.set({"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}):
            return zarr.open_array(self.folder, mode="r")[...]

    def test_batches(self):
        for dtype, how in WAYS:
            array = blob((8, 64, 96), dtype)
            mode, value = next(((k, how[k]) for k in ("max_error", "quality") if k in how), ("lossless", None))
            rest = {k: v for k, v in how.items() if k != mode}
            self.made(array, (4, 32, 32), serializer=self.codec(mode=mode, value=value, effort="fast", **rest), fill_value=7)
            Path(self.folder, "c/1/1/0").unlink()
            expected = self.expected()
            self.assertTrue((expected[4:, 32:, :32] == 7).all())
            z = zarr.open_array(self.folder, mode="r")
            self.batches.clear()
            np.testing.assert_array_equal(on_host(z[...]), expected)
            self.assertEqual(sum(self.batches), 11, (dtype, how))  # of two batches, one chunk was never written
            for index in (np.s_[3], np.s_[1:7, 20:50, 10:90], np.s_[:, 5, 5]):
                np.testing.assert_array_equal(on_host(z[index]), expected[index])

    def test_written(self):
        array = blob((8, 60, 70))
        z = zarr.create_array(self.folder, shape=array.shape, chunks=(4, 32, 32), dtype=array.dtype, compressors=None, serializer=self.codec(), overwrite=True, fill_value=None, config={"write_empty_chunks": True})  # fmt: skip
        z[...] = on_gpu(array)
        np.testing.assert_array_equal(self.expected(), array)

    def test_shards(self):
        array = blob((8, 60, 70))
        for ranged in (False, True):
            self.made(array, (4, 16, 16), shards=(4, 32, 32), serializer=self.codec(transform="wavelet", effort="fast"))
            if ranged:
                self.enterContext(self.zarr.read_shards_by_ranges())
            z = zarr.open_array(self.folder, mode="r")
            np.testing.assert_array_equal(on_host(z[...]), array)
            np.testing.assert_array_equal(on_host(z[1:7, 20:50, 10:60]), array[1:7, 20:50, 10:60])
            np.testing.assert_array_equal(self.zarr.read_smaller(z, 0), array)

    def test_damage(self):
        array = blob((8, 60, 70))
        self.made(array, (4, 32, 32), serializer=self.codec(transform="wavelet"))
        path = Path(self.folder, "c/0/1/1")
        path.write_bytes(path.read_bytes()[:-400])
        with self.assertRaisesRegex(trivelet.StreamError, "c/0/1/1: "):
            zarr.open_array(self.folder, mode="r")[...]


if __name__ == "__main__":
    unittest.main()
