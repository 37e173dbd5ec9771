#!/usr/bin/env python3
"""A volume that no worker can hold, into Zarr with the codec `trivelet`, by workers of Ray that write chunks in parallel.

    samples/ray_volume.py ct.npy ct.zarr --chunk 64,256,256 --max-error 2 --workers 8
    samples/ray_volume.py ct.zarr again.zarr --chunk 64,256,256 --address auto     # a cluster that is running

As dask_volume.py, which see: a task is one chunk, and the array does not depend on who coded what how often. Needs: pip
install '.[zarr]' ray.
"""

import argparse
import itertools
import os
import sys

import numpy as np
import ray
import zarr

from trivelet.zarr import TriveletCodec


def open_input(path):
    """What is sliced like an array, without reading it."""
    return np.load(path, mmap_mode="r") if path.endswith(".npy") else zarr.open_array(path, mode="r")


def copy_box(source, target, box):
    """One task, in a worker: paths go over the network, voxels do not."""
    zarr.open_array(target, mode="r+")[box] = open_input(source)[box]


def convert(source, target, codec, chunks, shards=None, task=copy_box):
    """`source` into a new array at `target`; tasks whose worker is lost, or that raise, are repeated."""
    like = open_input(source)
    zarr.create_array(
        target, shape=like.shape, chunks=chunks, shards=shards, dtype=like.dtype, compressors=None, serializer=codec
    )
    remote = ray.remote(max_retries=3, retry_exceptions=True, num_cpus=1)(task)
    steps = shards or chunks
    starts = itertools.product(*(range(0, n, s) for n, s in zip(like.shape, steps)))
    boxes = [tuple(slice(a, min(a + s, n)) for a, s, n in zip(start, steps, like.shape)) for start in starts]
    ray.get([remote.remote(source, target, box) for box in boxes])  # raises what a task raised at last


def numbers(text):
    return tuple(int(number) for number in text.split(","))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--chunk", type=numbers, required=True, help="extents of a chunk: 64,256,256")
    parser.add_argument("--shard", type=numbers, help="extents of a shard, multiples of the chunk's; none: a chunk is an object")
    parser.add_argument("--max-error", type=float, help="no voxel errs by more; else every voxel comes back")
    parser.add_argument("--transform", default="auto", help="auto, wavelet (parts of chunks are read), prediction")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes on this machine")
    parser.add_argument("--address", help="of a cluster instead")
    asked = parser.parse_args()
    mode = {} if asked.max_error is None else {"mode": "max_error", "value": asked.max_error}
    codec = TriveletCodec(transform=asked.transform, **mode)
    if asked.address:
        ray.init(asked.address, log_to_driver=False)
    else:
        ray.init(num_cpus=asked.workers, include_dashboard=False, log_to_driver=False)
    convert(os.path.abspath(asked.source), os.path.abspath(asked.target), codec, asked.chunk, asked.shard)
    made = zarr.open_array(asked.target, mode="r")
    print(f"{made.shape} {made.dtype}, {made.nbytes} bytes in {made.nbytes_stored()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
