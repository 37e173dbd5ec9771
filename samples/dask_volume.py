#!/usr/bin/env python3
"""A volume that no worker can hold, into Zarr with the codec `trivelet`, by workers of Dask that write chunks in parallel.

    samples/dask_volume.py ct.npy ct.zarr --chunk 64,256,256 --max-error 2 --workers 4 --memory 2GB
    samples/dask_volume.py ct.zarr again.zarr --scheduler tcp://10.0.0.1:8786     # a cluster that is running

Needs: pip install '.[zarr]' 'dask[array]' distributed. The input is a .npy file, which is mapped, or an array of
Zarr; all workers must see it and the output. A task is one chunk: it reads its part of the input, codes it and writes it,
and no other task writes to the same object of the store, which with shards means whole shards. The bytes of a chunk
depend on its voxels and the settings alone. So any number of workers, tasks that were repeated because a worker was lost,
and machines of different kinds give the same array, byte for byte.
"""

import argparse
import itertools
import os
import sys

import numpy as np
import zarr
from dask.distributed import Client, LocalCluster

from trivelet.zarr import TriveletCodec


def open_input(path):
    """What is sliced like an array, without reading it."""
    return np.load(path, mmap_mode="r") if path.endswith(".npy") else zarr.open_array(path, mode="r")


def copy_box(source, target, box):
    """One task, in a worker: paths go over the network, voxels do not."""
    zarr.open_array(target, mode="r+")[box] = open_input(source)[box]


def boxes_of(shape, steps):
    starts = itertools.product(*(range(0, n, s) for n, s in zip(shape, steps)))
    return [tuple(slice(a, min(a + s, n)) for a, s, n in zip(start, steps, shape)) for start in starts]


def convert(client, source, target, codec, chunks, shards=None, task=copy_box):
    """`source` into a new array at `target`; `client` shares the tasks out and repeats those that are lost."""
    like = open_input(source)
    zarr.create_array(
        target, shape=like.shape, chunks=chunks, shards=shards, dtype=like.dtype, compressors=None, serializer=codec
    )
    tasks = [client.submit(task, source, target, box, pure=False, retries=3) for box in boxes_of(like.shape, shards or chunks)]
    for future in tasks:
        future.result()  # raises what a task raised at last


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
    parser.add_argument("--memory", default="auto", help="of each of them; 2GB")
    parser.add_argument("--scheduler", help="address of a cluster instead")
    asked = parser.parse_args()
    mode = {} if asked.max_error is None else {"mode": "max_error", "value": asked.max_error}
    codec = TriveletCodec(transform=asked.transform, **mode)
    if asked.scheduler:
        client = Client(asked.scheduler)
    else:
        client = Client(
            LocalCluster(n_workers=asked.workers, threads_per_worker=1, memory_limit=asked.memory, dashboard_address=":0")
        )
    with client:
        convert(client, asked.source, asked.target, codec, asked.chunk, asked.shard)
    made = zarr.open_array(asked.target, mode="r")
    print(f"{made.shape} {made.dtype}, {made.nbytes} bytes in {made.nbytes_stored()}")


if __name__ == "__main__":
    sys.exit(main())
