#!/usr/bin/env python3
"""Trivelet beside nvCOMP: batches of chunks from memory of a GPU to memory of the same GPU, voxels and streams.

    nvcomp_peers.py [--chunks 32] [--side 256] [--repeat 5] FILE.npy...

Needs CuPy, the package trivelet with CUDA (or TRIVELET_LIBRARY), and nvidia-nvcomp-cu13 or -cu12 of PyPI. A volume of 8
or 16 bits is mirrored, or cut, to chunks of side^3. All chunks of a batch have the same voxels, each in its own memory.
Prints a Markdown table: bits a voxel, and GB/s of voxels, the median of the turns by the host's clock with the device
idle before and after. What is decoded is compared with the voxels.
"""
import argparse
import os
import pathlib
import statistics
import time

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # before CuPy makes the context
import cupy
import numpy as np
import trivelet

try:
    from nvidia import nvcomp
except ImportError:
    nvcomp = None


def chunk_of(path, side):
    volume = np.load(path)
    while volume.ndim > 3:
        volume = volume[0]
    for axis in range(3):
        while volume.shape[axis] < side:
            volume = np.concatenate([volume, np.flip(volume, axis)], axis)
    return np.ascontiguousarray(volume[:side, :side, :side])


def timed(work, repeat):
    """The result of the last turn, and the median of the seconds; one turn before is not counted."""
    seconds = []
    for _ in range(repeat + 1):
        result = None  # its memory serves the next turn
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        result = work()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds[1:])


class Trivelet:
    def __init__(self, arrays, **how):
        self.arrays, self.how = arrays, how
        self.rooms = [cupy.empty(array.nbytes + array.nbytes // 8 + 65536, cupy.uint8) for array in arrays]
        self.outs = [cupy.empty_like(array) for array in arrays]

    def encode(self):
        return trivelet.encode_many(self.arrays, out=self.rooms, transform="wavelet", effort="fast", **self.how)

    def decode(self, streams):
        return trivelet.decode_many(streams, out=self.outs)


class Nvcomp:
    def __init__(self, arrays, algorithm, **how):
        self.codec = nvcomp.Codec(algorithm=algorithm, **how)
        self.type = arrays[0].dtype.str
        self.arrays = nvcomp.as_arrays([array.reshape(-1) for array in arrays])

    def encode(self):
        return self.codec.encode(self.arrays)

    def decode(self, streams):
        return self.codec.decode(streams, self.type)


def bytes_of(stream):
    return stream.nbytes if isinstance(stream, cupy.ndarray) else stream.buffer_size


def ways(arrays):
    kind = arrays[0].dtype.str
    yield "Trivelet `fast`", lambda: Trivelet(arrays, profile="fast")
    yield "Trivelet `fast`, one layer", lambda: Trivelet(arrays, profile="fast", layers=1)
    if nvcomp is None:
        return
    for name, how in (("Bitcomp", {"data_type": kind}), ("ANS", {"data_type": "|u1"}), ("Zstd", {}), ("LZ4", {"data_type": kind})):
        yield f"nvCOMP {nvcomp.__version__} {name}", lambda name=name, how=how: Nvcomp(arrays, name, **how)


def measure(name, make, chunk, arrays, repeat):
    way = make()
    streams, encoding = timed(way.encode, repeat)
    decoded, decoding = timed(lambda: way.decode(streams), repeat)
    for array in (decoded[0], decoded[-1]):
        if not np.array_equal(cupy.asnumpy(cupy.asarray(array)).reshape(-1), chunk.reshape(-1)):
            raise SystemExit(f"{name}: other voxels")
    voxels = sum(array.nbytes for array in arrays)
    bits = 8 * sum(map(bytes_of, streams)) / sum(array.size for array in arrays)
    return f"| {name} | {bits:.2f} | {1e-9 * voxels / encoding:.1f} | {1e-9 * voxels / decoding:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--chunks", type=int, default=32)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    for path in options.files:
        chunk = chunk_of(path, options.side)
        arrays = [cupy.asarray(chunk) for _ in range(options.chunks)]
        print(f"\n{path.stem}, {options.chunks} chunks of {options.side}^3 {chunk.dtype}, {device}\n")
        print("| | bits/voxel | encode, GB/s | decode, GB/s |\n|-|-|-|-|")
        for name, make in ways(arrays):
            try:
                print(measure(name, make, chunk, arrays, options.repeat), flush=True)
            except Exception as error:  # a peer that fails leaves the others
                print(f"| {name} | {type(error).__name__}: {error} | | |", flush=True)
            trivelet.release_gpus()
            cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
