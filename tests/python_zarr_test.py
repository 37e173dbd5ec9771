#!/usr/bin/env python3
"""The codec for Zarr 3: arrays against NumPy, and how much of a chunk is read for a part of it.

tests/python_zarr_test.py path/to/libtrivelet.so.1 [unittest's arguments]
"""

import logging
import os
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import zarr
    from zarr.storage import LocalStore, MemoryStore
except ImportError:
    print("skipped: no Zarr 3")
    sys.exit(77)

if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    library = Path(sys.argv.pop(1)).resolve()
    if not library.exists():
        print(f"skipped: {library} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import trivelet
from trivelet.zarr import TriveletCodec

logging.getLogger("trivelet").addHandler(logging.NullHandler())
RANDOM = np.random.default_rng(5)


class Counting(LocalStore):
    """Counts what is read of chunks."""

    count = 0

    async def get(self, key, prototype=None, byte_range=None):
        data = await super().get(key, prototype, byte_range)
        if data is not None and "zarr.json" not in key:
            self.count += len(data)
        return data


def make(store, array, chunks, codec=None, **more):
    z = zarr.create_array(
        store,
        shape=array.shape,
        chunks=chunks,
        dtype=array.dtype,
        compressors=None,
        serializer=codec or TriveletCodec(),
        **more,
    )
    z[...] = array
    return zarr.open_array(store, mode="r")  # by the codec's name in the metadata


class Zarr(unittest.TestCase):
    def test_arrays(self) -> None:
        for shape, chunks, dtype in (
            ((20, 30, 40), (7, 30, 16), "<i2"),
            ((20, 30), (20, 8), ">u4"),
            ((50,), (20,), "f8"),
            ((3, 1, 9, 30, 20), (2, 1, 9, 16, 20), "u1"),
            ((3, 4, 20, 20), (1, 4, 10, 20), ">f4"),
            ((5, 5), (1, 1), "i8"),
        ):
            array = (RANDOM.normal(0, 30, shape) ** 2).astype(dtype)
            z = make(MemoryStore(), array, chunks)
            np.testing.assert_array_equal(z[...], array)
            for _ in range(12):
                index = tuple(
                    (
                        int(RANDOM.integers(0, n))
                        if RANDOM.integers(0, 4) == 0
                        else slice(*sorted(map(int, RANDOM.integers(0, n + 1, 2))), int(RANDOM.integers(1, 3)))
                    )
                    for n in shape
                )
                np.testing.assert_array_equal(z[index], array[index], str(index))
            rows = np.array([0, shape[0] - 1, shape[0] // 2])
            np.testing.assert_array_equal(z.oindex[rows], array[rows])
            mask = array > 100
            np.testing.assert_array_equal(z.vindex[mask], array[mask])

    def test_parts_by_ranges(self) -> None:
        for shape in ((32, 256, 256), (2, 16, 256, 256)):
            array = RANDOM.integers(0, 4000, shape, np.uint16)
            with tempfile.TemporaryDirectory() as folder:
                codec = TriveletCodec(transform="wavelet", effort="fast", block_size=32, slab=8)
                z = make(Counting(folder), array, shape, codec)
                store, whole = z.store, sum(f.stat().st_size for f in Path(folder).rglob("c/**/*") if f.is_file())
                slab, part = np.s_[..., 3:5, 64:96, 70:80], np.s_[..., 8:16, 64:128, 64:128]
                for index, share in ((slab, 8), (part, 8 if len(shape) == 3 else 3), (np.s_[...], 1)):
                    store.count = 0
                    np.testing.assert_array_equal(z[index], array[index])
                    self.assertGreater(store.count, 0)
                    self.assertLessEqual(store.count, whole / share, (index, store.count, whole))

    def test_modes(self) -> None:
        array = (RANDOM.normal(0, 30, (16, 64, 64)) + np.arange(64) * 20).astype(np.int16)
        for mode, value in (("max_error", 3), ("quality", 50), ("psnr", 50), ("bpp", 2), ("ratio", 10)):
            store = MemoryStore()
            back = make(store, array, (16, 64, 64), TriveletCodec(mode=mode, value=value))[...]
            if mode == "max_error":
                self.assertLessEqual(int(np.abs(back.astype(int) - array).max()), 3)
            self.assertFalse(np.array_equal(back, array))
        for wrong in (
            {"mode": "best"},
            {"mode": "psnr"},
            {"value": 3},
            {"mode": "max_error", "value": -1},
            {"block_size": 100},
            {"slab": 129},
        ):
            with self.assertRaises(trivelet.ArgumentError, msg=str(wrong)):
                TriveletCodec(**wrong)
        for dtype, chunks in (("float16", (2, 2)), ("bool", (2, 2)), ("u1", (2,) * 5)):
            with self.assertRaises(trivelet.ArgumentError, msg=dtype):
                zarr.create_array(
                    MemoryStore(),
                    shape=chunks,
                    chunks=chunks,
                    dtype=dtype,
                    compressors=None,
                    serializer=TriveletCodec(),
                )

    def test_shards_and_fill_values(self) -> None:
        array = RANDOM.integers(0, 999, (32, 64, 64), np.int32)
        z = make(MemoryStore(), array, (8, 32, 32), shards=(16, 64, 64))
        np.testing.assert_array_equal(z[...], array)
        np.testing.assert_array_equal(z[3:20, 5, ::7], array[3:20, 5, ::7])
        store = MemoryStore()
        z = zarr.create_array(
            store,
            shape=(40, 40),
            chunks=(20, 20),
            dtype="f4",
            fill_value=np.nan,
            compressors=None,
            serializer=TriveletCodec(),
        )
        z[:20, :20] = np.where(np.arange(400).reshape(20, 20) % 3 == 0, np.nan, 1.5)
        self.assertTrue(
            np.isnan(z[20:, 20:]).all() and np.isnan(z[0, 0]) and z[0, 1] == 1.5 and np.isnan(z[30, 2:4]).all()
        )

    def test_damage(self) -> None:
        array = RANDOM.integers(0, 4000, (16, 256, 256), np.uint16)
        with tempfile.TemporaryDirectory() as folder:
            z = make(LocalStore(folder), array, array.shape, TriveletCodec(transform="wavelet", effort="fast"))
            path = Path(folder) / "c/0/0/0"
            good = path.read_bytes()
            refused = 0
            for damaged in (good[: len(good) // 2], good[:1000] + bytes([good[1000] ^ 1]) + good[1001:], b"x" * 70000):
                path.write_bytes(damaged)
                for index in (np.s_[...], np.s_[3:5, 10:20, 200:]):
                    try:
                        np.testing.assert_array_equal(z[index], array[index])  # what is damaged was not needed
                    except trivelet.Error as error:
                        self.assertIn("c/0/0/0", str(error))
                        refused += 1
            self.assertGreaterEqual(refused, 5)


if __name__ == "__main__":
    unittest.main()
