#!/usr/bin/env python3
"""The sample for Ray: a volume by several workers, one of which dies, gives the bytes of one process.

tests/python/ray_test.py path/to/libtrivelet.so.1 [unittest's arguments]

Without a library, of an installed package.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOUND = [str(ROOT / "samples")]
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    library = Path(sys.argv.pop(1)).resolve()
    if not library.exists():
        print(f"skipped: {library} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    FOUND.append(str(ROOT / "python"))
sys.path[:0] = FOUND
os.environ["RAY_AUTH_MODE"] = "disabled"  # or it makes a file in the home directory
os.environ["PYTHONPATH"] = os.pathsep.join(FOUND)  # of the workers
try:
    import numpy as np
    import ray
    import zarr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import ray_volume
from trivelet.zarr import TriveletCodec


def copy_box_or_die(source, target, box):
    """The worker that takes the file "die" away ends at once after writing: the task is done again."""
    ray_volume.copy_box(source, target, box)
    try:
        (Path(target).parent / "die").unlink()
    except FileNotFoundError:
        return
    os._exit(1)


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


class Ray(unittest.TestCase):
    def test_workers_and_retries(self) -> None:
        array = np.random.default_rng(1).integers(0, 60, (40, 90, 100), np.int16) + np.arange(100, dtype=np.int16) * 9
        codec = TriveletCodec(mode="max_error", value=3, transform="wavelet", effort="fast")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "a.npy", array)
            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
            self.addCleanup(ray.shutdown)
            for shards in (None, (32, 64, 64)):
                by_one, target = folder / f"one{shards}.zarr", folder / f"two{shards}.zarr"
                zarr.create_array(
                    by_one, shape=array.shape, chunks=(16, 32, 32), shards=shards, dtype=array.dtype, compressors=None, serializer=codec
                )[...] = array
                (folder / "die").write_text("")
                ray_volume.convert(str(folder / "a.npy"), str(target), codec, (16, 32, 32), shards, copy_box_or_die)
                self.assertFalse((folder / "die").exists(), "no worker died")
                self.assertTrue(contents(by_one) == contents(target))
                back = zarr.open_array(target, mode="r")[...]
                self.assertLessEqual(int(np.abs(back.astype(int) - array).max()), 3)


if __name__ == "__main__":
    unittest.main()
