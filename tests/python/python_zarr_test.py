#!/usr/bin/env python3
"""The codec for Zarr 3: arrays compared with NumPy, and the bytes of a chunk read for a part of it.

tests/python/python_zarr_test.py path/to/libtrivelet.so.1 [unittest's arguments]
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import multiprocessing
import os
import sys
import tempfile
import unittest
import warnings
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import numpy as np
    import zarr
    from zarr.storage import LocalStore, MemoryStore
except ImportError:
    print("skipped: no Zarr 3")
    sys.exit(77)

if __name__ == "__main__" and len(sys.argv) > 1 and not sys.argv[1].startswith("-"):  # and not in other processes
    library = Path(sys.argv.pop(1)).resolve()
    if not library.exists():
        print(f"skipped: {library} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
try:
    import hypothesis
    from hypothesis import strategies as st
    from hypothesis.extra.numpy import arrays
except ImportError:
    hypothesis = None
import trivelet
import trivelet.zarr as trivelet_zarr
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


def zarr_drops_axes():
    """Up to 3.1.3 at least Zarr fails with a number beside a list where parts of chunks are decoded, with its own codecs."""
    z = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(2, 2), shards=(4, 4), dtype="u1", fill_value=0)
    z[...] = 1
    try:
        return bool((z.oindex[[0, 3], 1] == 1).all())
    except ValueError:
        return False


def sum_of(z):
    return int(z[...].sum())


def sum_in_process(folder, queue):
    queue.put(sum_of(zarr.open_array(folder, mode="r")))


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
        for dtype, chunks in (("complex64", (2, 2)), ("u1", (2,) * 5)):
            with self.assertRaises(trivelet.ArgumentError, msg=dtype):
                zarr.create_array(
                    MemoryStore(),
                    shape=chunks,
                    chunks=chunks,
                    dtype=dtype,
                    compressors=None,
                    serializer=TriveletCodec(),
                )

    def test_masks_and_half_floats(self) -> None:
        array = np.random.default_rng(3).normal(0, 50, (20, 70, 90))
        for given in (array > 20, array.astype(np.float16)):
            for options in ({}, {"transform": "wavelet", "block_size": 32, "slab": 8}):
                z = zarr.create_array(MemoryStore(), shape=given.shape, chunks=(20, 70, 45), dtype=given.dtype,
                                      compressors=None, serializer=TriveletCodec(**options))  # fmt: skip
                z[...] = given
                np.testing.assert_array_equal(z[...], given)
                np.testing.assert_array_equal(z[3:5, 40, 20:60], given[3:5, 40, 20:60])

    def test_codecs_behind_are_told(self) -> None:
        more = {"shape": (8, 8), "chunks": (4, 8), "dtype": "i2", "serializer": TriveletCodec()}
        for shards in (None, (8, 8)):
            with self.assertWarnsRegex(UserWarning, "ZstdCodec behind TriveletCodec.*compressors=None"):
                zarr.create_array(MemoryStore(), shards=shards, **more)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                zarr.create_array(MemoryStore(), shards=shards, compressors=None, **more)

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

    def test_zarr_2(self) -> None:
        import numcodecs

        from trivelet.numcodecs import Trivelet

        for shape, chunks, dtype in (((20, 30, 40), (7, 30, 16), "<i2"), ((50,), (20,), "<f8"), ((3, 1, 9, 30, 20), (2, 1, 9, 16, 20), ">u2")):
            array = (RANDOM.normal(0, 30, shape) ** 2).astype(dtype)
            for order in "CF":
                store = MemoryStore()
                z = zarr.create_array(
                    store, shape=shape, chunks=chunks, dtype=array.dtype, zarr_format=2, order=order, fill_value=3, compressors=Trivelet(effort="fast")
                )  # fmt: skip
                z[1:] = array[1:]
                array[:1] = z[:1]
                np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], array)
        codec = numcodecs.get_codec({"id": "trivelet", "mode": "max_error", "value": 2})
        self.assertEqual(numcodecs.get_codec(codec.get_config()), codec)
        array = (RANDOM.normal(0, 9, (16, 64, 64)) + np.arange(64)).astype(np.int16)
        out = np.empty_like(array)
        codec.decode(codec.encode(array), out)
        self.assertLessEqual(int(np.abs(out.astype(int) - array).max()), 2)
        self.assertRaises(trivelet.Error, codec.decode, b"no stream")
        self.assertRaises(trivelet.ArgumentError, Trivelet, mode="best")

    def test_fill_values_with_loss(self) -> None:
        array = (RANDOM.normal(0, 9, (16, 64, 64)) + np.arange(64)).astype("f4")
        nothing = RANDOM.integers(0, 3, array.shape) == 0
        for fill in (-9999.0, 1e35, float("nan")):
            array[nothing] = fill
            codec = TriveletCodec(mode="max_error", value=0.5, transform="wavelet", effort="fast")
            z = make(MemoryStore(), array, (10, 64, 64), codec, fill_value=fill)
            for index in (np.s_[...], np.s_[3:9, 5:50, 7]):
                back = z[index]
                np.testing.assert_array_equal(back[nothing[index]], array[index][nothing[index]])
                self.assertLessEqual(np.abs(back - array[index])[~nothing[index]].max(), 0.5)

    def test_shards_by_ranges(self) -> None:
        array = RANDOM.integers(0, 4000, (40, 256, 300), np.uint16)
        with tempfile.TemporaryDirectory() as folder:
            codec = TriveletCodec(transform="wavelet", effort="fast", profile="fast", block_size=32, slab=8)
            make(LocalStore(folder), array, (32, 128, 128), codec, shards=(32, 256, 256), fill_value=7)[...]
            whole = (Path(folder) / "c/0/0/0").stat().st_size
            counts = {}
            for ranged in (False, True):
                with trivelet_zarr.read_shards_by_ranges() if ranged else contextlib.nullcontext():
                    z = zarr.open_array(Counting(folder), mode="r")
                store = z.store
                for name, index in (("part", np.s_[3:5, 100:160, 70:80]), ("all", np.s_[:32, :256, :256]), ("edge", np.s_[-3:, 250, 200:])):
                    store.count = 0
                    np.testing.assert_array_equal(z[index], array[index])
                    counts[name, ranged] = store.count
                for _ in range(4):
                    index = tuple(slice(*sorted(map(int, RANDOM.integers(0, n + 1, 2))), int(RANDOM.integers(1, 4))) for n in array.shape)
                    np.testing.assert_array_equal(z[index], array[index], str(index))
                rows = np.array([0, 39, 17])
                five = 5 if zarr_drops_axes() else slice(5, 6)
                np.testing.assert_array_equal(z.oindex[rows, :, five], array[rows, :, five])
            self.assertLess(counts["part", True], counts["part", False] / 6)
            self.assertLess(counts["part", True], whole / 12)
            self.assertEqual(counts["all", True], counts["all", False])
            # What was never written, and damage.
            Path(folder, "c/0/0/1").unlink()
            self.assertTrue((z[3:5, 10:20, 256:] == 7).all())
            path = Path(folder, "c/0/0/0")
            path.write_bytes(bytes(1000) + path.read_bytes()[1000:])
            with self.assertRaisesRegex(trivelet.Error, "c/0/0/0"):
                z[3:5, 10:20, 20:30]
        store = MemoryStore()
        z = zarr.create_array(store, shape=(40, 40), chunks=(10, 10), shards=(20, 40), dtype="f4", fill_value=np.nan, compressors=None, serializer=TriveletCodec())  # fmt: skip
        z[2:5, :10] = 1.5
        with trivelet_zarr.read_shards_by_ranges():
            z = zarr.open_array(store, mode="r")
        self.assertTrue((z[2:5, 3:10] == 1.5).all() and np.isnan(z[2:5, 10:]).all() and np.isnan(z[30:35, 5]).all())

    def test_smaller(self) -> None:
        """As the library reduces each chunk; by few of its bytes."""
        array = (RANDOM.normal(0, 9, (40, 260, 256)) + np.arange(256)).astype(np.int16)
        chunks, codec = (16, 128, 128), TriveletCodec(transform="wavelet", effort="fast")
        for shards, kept in ((None, False), ((32, 256, 256), True), ((32, 256, 256), False)):
            with tempfile.TemporaryDirectory() as folder:
                z = make(Counting(folder), array, chunks, codec, shards=shards)
                with trivelet_zarr.read_shards_by_ranges() if kept else contextlib.nullcontext():
                    z = zarr.open_array(z.store, mode="r")
                z.store.count = 0
                small = trivelet_zarr.read_smaller(z, 2)
                size = sum(f.stat().st_size for f in Path(folder).rglob("c/**/*") if f.is_file())
                self.assertLess(z.store.count, size / 5)
                padded = np.zeros((48, 384, 256), np.int16)
                padded[:40, :260] = array
                for place in ((0, 0, 0), (1, 1, 1), (2, 2, 0)):
                    part = padded[tuple(slice(p * n, p * n + n) for p, n in zip(place, chunks))]
                    expected = trivelet.open(codec.encode_chunk(part)).at(reduce=2)[...]
                    at = tuple(slice(p * n, p * n + n) for p, n in zip(place, expected.shape))
                    np.testing.assert_array_equal(small[at], expected[tuple(slice(n) for n in small[at].shape)])
                np.testing.assert_array_equal(trivelet_zarr.read_smaller(z, 0), array)
                self.assertEqual(small.shape[1:], (65, 64))
        store = MemoryStore()
        z = zarr.create_array(store, shape=(50, 8), chunks=(25, 8), dtype="i2", fill_value=4, compressors=None, serializer=codec)
        z[:25] = 9
        with self.assertRaises(trivelet.UnsupportedError):
            trivelet_zarr.read_smaller(z, 1)  # 25 rows are 13, and the next begin in between
        z = zarr.create_array(MemoryStore(), shape=(64, 64), chunks=(32, 32), dtype="i2", fill_value=4, compressors=None, serializer=codec)  # fmt: skip
        z[:32] = 9
        small = trivelet_zarr.read_smaller(z, 1, layers=1)
        self.assertTrue(small.shape == (32, 32) and (small[:16] == 9).all() and (small[16:] == 4).all())
        with self.assertRaises(trivelet.ArgumentError):
            trivelet_zarr.read_smaller(zarr.create_array(MemoryStore(), shape=(8,), chunks=(8,), dtype="i2"), 1)

    def test_requests(self) -> None:
        """The front table is in the first answers: what it says is in the second, and nothing else is needed."""
        array = (RANDOM.normal(0, 9, (32, 256, 256)) + np.arange(256)).astype(np.int16)

        class Waiting(LocalStore):
            """Counts the times that nothing is under way when something is asked for."""

            under_way = rounds = 0

            async def get(self, key, prototype=None, byte_range=None):
                if "c/" in key and self.under_way == 0:
                    self.rounds += 1
                self.under_way += 1
                try:
                    await asyncio.sleep(0.003)
                    return await super().get(key, prototype, byte_range)
                finally:
                    self.under_way -= 1

        with tempfile.TemporaryDirectory() as folder:
            for codec in (
                TriveletCodec(transform="wavelet", effort="fast", block_size=64),
                TriveletCodec(transform="wavelet", effort="fast", block_size=64, slab=16, layers=1),
                TriveletCodec(transform="wavelet", effort="fast", block_size=32, slab=8, layers=4),
                TriveletCodec(transform="wavelet", block_size=64, slab=8, mode="quality", value=80),
                TriveletCodec(slab=16),
            ):
                make(LocalStore(folder), array, array.shape, codec, overwrite=True)
                z = zarr.open_array(Waiting(folder), mode="r")
                store, stream = z.store, Path(folder, "c/0/0/0").read_bytes()
                whole = trivelet.decode(stream)
                for index in (np.s_[:, 64:128, 64:128], np.s_[3:5], np.s_[16:24, 120:130, 5]):
                    store.rounds = 0
                    np.testing.assert_array_equal(z[index], whole[index])
                    self.assertEqual(store.rounds, 2, (codec, index))
                if codec.transform == "wavelet":
                    store.rounds = 0
                    small = trivelet_zarr.read_smaller(z, 2)
                    self.assertEqual(store.rounds, 2, codec)
                    np.testing.assert_array_equal(small, trivelet.open(stream).at(reduce=2)[...])

    def test_batches(self) -> None:
        """Several chunks in one call, with those that were never written, and damage."""
        array = (RANDOM.normal(0, 9, (12, 40, 40)) + np.arange(40)).astype(np.int16)
        with tempfile.TemporaryDirectory() as folder:
            z = make(LocalStore(folder), array, (4, 20, 20), TriveletCodec(), fill_value=0)
            Path(folder, "c/1/1/0").unlink()
            expected = array.copy()
            expected[4:8, 20:, :20] = 0
            calls = []
            batch = TriveletCodec._decode_batch
            with unittest.mock.patch.object(
                TriveletCodec, "_decode_batch", lambda self, chunks, names: calls.append(len(chunks)) or batch(self, chunks, names)
            ), zarr.config.set({"codec_pipeline.batch_size": 5}):
                z = zarr.open_array(folder, mode="r")
                np.testing.assert_array_equal(z[...], expected)
                self.assertEqual(sorted(calls), [2, 5, 5])
                path = Path(folder, "c/0/0/0")
                path.write_bytes(path.read_bytes()[:300])
                with self.assertRaisesRegex(trivelet.StreamError, "c/0/0/0: "):
                    z[...]

    def test_any(self) -> None:
        if hypothesis is None:
            self.skipTest("hypothesis is not installed")
        types = st.sampled_from(["u1", "i1", "<u2", ">i2", "<u4", ">u4", "<i8", "u8", "<f4", ">f4", "<f8"])

        @st.composite
        def cases(draw):
            shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple))
            chunks = tuple(draw(st.integers(1, n)) for n in shape)
            shards = tuple(c * draw(st.integers(1, 3)) for c in chunks) if draw(st.booleans()) else None
            array = draw(arrays(np.dtype(draw(types)), shape))
            index = tuple(
                draw(st.one_of(st.integers(-n, n - 1), st.builds(slice, *[st.one_of(st.none(), st.integers(0, n))] * 2, st.integers(1, 3))))
                for n in shape
            )
            return array, chunks, shards, index

        @hypothesis.settings(max_examples=int(os.environ.get("TRIVELET_EXAMPLES", 40)), deadline=None, database=None)
        @hypothesis.given(cases(), st.booleans())
        def check(case, ranged):
            array, chunks, shards, index = case
            store = MemoryStore()
            z = zarr.create_array(
                store, shape=array.shape, chunks=chunks, shards=shards, dtype=array.dtype, compressors=None,
                serializer=TriveletCodec(effort="fast")
            )  # fmt: skip
            z[...] = array
            with trivelet_zarr.read_shards_by_ranges() if ranged else contextlib.nullcontext():
                z = zarr.open_array(store, mode="r")
            np.testing.assert_array_equal(z[...], array)
            np.testing.assert_array_equal(z[index], array[index])

        check()

    def test_threads_and_processes(self) -> None:
        array = RANDOM.integers(0, 4000, (24, 64, 64), np.uint16)
        with tempfile.TemporaryDirectory() as folder:
            z = make(LocalStore(folder), array, (8, 32, 32))
            expected = int(array.sum())
            with ThreadPoolExecutor(3) as pool:
                self.assertEqual(set(pool.map(sum_of, [z] * 9)), {expected})
            for way in ("fork", "spawn"):  # fork: after the import, with a loop of Zarr's that is running here
                context = multiprocessing.get_context(way)
                queue = context.Queue()
                both = [context.Process(target=sum_in_process, args=(folder, queue)) for _ in range(2)]
                for process in both:
                    process.start()
                self.assertEqual([queue.get(timeout=100) for _ in both], [expected] * 2, way)
                for process in both:
                    process.join(100)
                    self.assertEqual(process.exitcode, 0)

    def test_text_for_the_registry(self) -> None:
        folder = Path(__file__).resolve().parents[2] / "python/zarr-extensions/trivelet"
        z = zarr.open_array(folder / "examples/range.zarr", mode="r")
        np.testing.assert_array_equal(z[...], np.arange(3600).reshape(6, 20, 30))
        schema = json.loads((folder / "schema.json").read_text())
        known = schema["oneOf"][0]["properties"]["configuration"]["properties"]
        self.assertEqual(list(known), [f.name for f in dataclasses.fields(TriveletCodec)])
        for name in known:
            self.assertIn(f"- `{name}` (", (folder / "README.md").read_text())
        try:
            import jsonschema
        except ImportError:
            self.skipTest("jsonschema is not installed: the schema's rules were not tried")
        for good in ({}, {"mode": "max_error", "value": 2}, {"transform": "wavelet", "slab": 8, "layers": 3}):
            jsonschema.validate(TriveletCodec(**good).to_dict(), schema)
        for wrong in ({"mode": "best"}, {"mode": "psnr"}, {"value": 3}, {"block_size": 100}, {"slab": 129}, {"speed": 3}):
            with self.assertRaises(jsonschema.ValidationError, msg=str(wrong)):
                jsonschema.validate({"name": "trivelet", "configuration": wrong}, schema)
            with self.assertRaises((trivelet.ArgumentError, TypeError), msg=str(wrong)):
                TriveletCodec.from_dict({"name": "trivelet", "configuration": wrong})

    def test_damage(self) -> None:
        array = RANDOM.integers(0, 4000, (16, 256, 256), np.uint16)
        with tempfile.TemporaryDirectory() as folder:
            z = make(LocalStore(folder), array, array.shape, TriveletCodec(transform="wavelet", effort="fast"))
            path = Path(folder) / "c/0/0/0"
            good = path.read_bytes()
            refused = 0
            changed = good[:9000] + bytes(byte ^ 1 for byte in good[9000:-9000]) + good[-9000:]
            for damaged in (good[: len(good) // 2], changed, b"x" * 70000):
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
