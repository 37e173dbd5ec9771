#!/usr/bin/env python3
"""One long video, coded in parts by workers of Dask, to a size over all of it.

    samples/dask_video.py film.mp4 film.tvl --size 200M --workers 8 -- --preset medium
    samples/dask_video.py film.mp4 film.tvl --scheduler tcp://10.0.0.1:8786

Needs: pip install dask distributed, the program `trivelet`, and ffprobe to count frames unless --frames tells them. All
workers must see the input and the output's folder. What stands behind -- goes to 'trivelet encode'.

A part is coded by `encode --joinable --frames A:B`; `join` makes one stream of them, the same bytes as coding the video at
once, for any number of workers and for parts that were coded again because a worker was lost. `truncate --size` then
spends the bytes where they matter in the whole video, which coders of chunks cannot: they would have to guess each
chunk's share.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from dask.distributed import Client, LocalCluster


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def count_frames(path):
    counted = run(
        "ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", path
    )  # fmt: skip
    return int(counted.strip().rstrip(","))


def encode_part(program, source, target, first, end, options):
    """One task, in a worker. The program gives a file its name when it is whole, so a part that is there is done."""
    if not os.path.exists(target):
        run(program, "encode", source, target, "--joinable", "--frames", f"{first}:{end}", "--threads", 1, "-y", *options)
    return target


def encode(client, program, source, target, frames, part_frames, size=None, options=(), task=encode_part):
    """`options`: of 'trivelet encode'. `part_frames`: a multiple of its --gop."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(target))) as folder:
        spans = [(first, min(first + part_frames, frames)) for first in range(0, frames, part_frames)]
        tasks = []
        for number, (first, end) in enumerate(spans):
            part = os.path.join(folder, f"{number:06}.tvl")
            more = list(options)
            if number > 0 and any("slow" in option for option in options):  # what it chose by the first part holds for all
                more += ["--pin-from", tasks[0].result()]
            tasks.append(client.submit(task, program, source, part, first, end, more, pure=False, retries=3))
        parts = [future.result() for future in tasks]
        joined = os.path.join(folder, "joined.tvl")
        run(program, "join", *parts, "-o", joined)
        if size is not None:
            run(program, "truncate", joined, target, "--size", size, "-y")
        else:
            os.replace(joined, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--size", help="bytes of the whole, 200M; else what constant quality gives")
    parser.add_argument("--frames", type=int, help="of the input; else ffprobe counts")
    parser.add_argument("--part", type=int, default=640, help="frames of a part, a multiple of --gop, which is 64, 32 or 33")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes on this machine")
    parser.add_argument("--scheduler", help="address of a cluster instead")
    parser.add_argument("--program", default=shutil.which("trivelet"), help="trivelet, if it is not in PATH")
    parser.add_argument("-y", "--overwrite", action="store_true", help="replace an existing output")
    given, options = (sys.argv[1:], []) if "--" not in sys.argv else (
        sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :])  # fmt: skip
    asked = parser.parse_args(given)
    if not asked.program:
        parser.error("there is no trivelet in PATH; --program names it")
    if os.path.exists(asked.target) and not asked.overwrite:
        parser.error(f"{asked.target} exists; -y replaces it")
    source = os.path.abspath(asked.source)
    frames = asked.frames or count_frames(source)
    if asked.scheduler:
        client = Client(asked.scheduler)
    else:
        client = Client(LocalCluster(n_workers=asked.workers, threads_per_worker=1, dashboard_address=":0"))
    with client:
        encode(client, asked.program, source, os.path.abspath(asked.target), frames, asked.part, asked.size, options)
    print(f"{frames} frames in {os.path.getsize(asked.target)} bytes")


if __name__ == "__main__":
    sys.exit(main())
