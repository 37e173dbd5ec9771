#!/usr/bin/env python3
"""Compares codecs on Zarr chunks: sizes, speeds, bytes read over a network. Writes the table of python/README.md.

    python/bench/compare.py --program build/release/apps/trivelet FOLDER     # measures; figures.json, pictures, README
    python/bench/compare.py --check                                         # the table is that of figures.json

FOLDER has the volumes, in any format that the program reads. Needs the package and numpy, zarr, imagecodecs,
numcodecs, fsspec, aiohttp, matplotlib; nd-image-codecs is measured where it is installed. All codecs use one thread
and the same chunks of at most 64 x 256 x 256; picture codecs code a chunk slice by slice. Speeds are bytes of the
array over CPU seconds, the best of three. For the reads, a local server delays each answer by 100 ms and counts.
"""

import argparse
import contextlib
import datetime
import functools
import http.server
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES, README = HERE / "figures.json", HERE.parent / "README.md"
BEGIN, END = "<!-- bench: figures.json -->", "<!-- end of bench -->"
LATENCY = 0.1
CHUNK = (64, 256, 256)
LOSSLESS = ["trivelet", "zstd", "blosc", "jpeg2k", "htj2k", "jpegls", "zfp", "nd-image-codecs"]
BOUNDED = ["trivelet", "zfp", "sperr"]


# ------------------------------------------------------------------------------------------------------------- codecs


def by_slices(encode, decode):
    """A codec of pictures for chunks."""

    def encode_chunk(chunk):
        return [encode(picture) for picture in chunk.reshape(-1, *chunk.shape[-2:])]

    def decode_chunk(coded, like):
        import numpy as np

        pictures = [decode(picture) for picture in coded]
        return np.stack(pictures).reshape(like.shape)

    return encode_chunk, decode_chunk


def codecs():
    """Functions of a chunk by name, and of what they made and a chunk like the first; without loss."""
    import imagecodecs as ic
    import numpy as np
    from numcodecs import Blosc, Zstd

    import trivelet

    blosc, zstd = Blosc("zstd", clevel=5, shuffle=Blosc.BITSHUFFLE), Zstd(level=0)
    back = lambda decode: lambda coded, like: np.frombuffer(decode(coded[0]), like.dtype).reshape(like.shape)
    floats = lambda chunk: chunk if chunk.dtype.kind == "f" else chunk.astype(np.int32)

    def whole(picture):  # JPEG-LS has no signs
        return (picture.astype(np.int32) - OFFSET[0]).astype(np.uint16 if picture.itemsize > 1 else np.uint8)

    found = {
        "trivelet": (lambda c: [trivelet.encode(c, threads=1)], lambda d, _: trivelet.decode(d[0], threads=1)),
        "zstd": (lambda c: [zstd.encode(c)], back(zstd.decode)),
        "blosc": (lambda c: [blosc.encode(c)], back(blosc.decode)),
        "jpeg2k": by_slices(functools.partial(ic.jpeg2k_encode, level=0, reversible=True, numthreads=1), ic.jpeg2k_decode),
        "htj2k": by_slices(functools.partial(ic.htj2k_encode, reversible=True), ic.htj2k_decode),
        "jpegls": by_slices(lambda p: ic.jpegls_encode(whole(p)), lambda d: ic.jpegls_decode(d).astype(np.int32) + OFFSET[0]),
        "zfp": (
            lambda c: [ic.zfp_encode(floats(c), mode="R", numthreads=1)],
            lambda d, like: ic.zfp_decode(d[0], numthreads=1).reshape(like.shape),
        ),
    }
    with contextlib.suppress(ImportError):
        found["nd-image-codecs"] = rival()
    return found


OFFSET = [0]  # of the measured volume: JPEG-LS codes values above it


def rival():
    """nd-image-codecs through Zarr, as it is meant to be used; its time has Zarr's in it."""
    import numpy as np
    import zarr
    from nd_image_codecs import codec_series

    def encode(chunk):
        shape = chunk.reshape(-1, *chunk.shape[-2:]).shape
        series = codec_series(["z", "y", "x"], list(shape), str(chunk.dtype), "nd-lift-ht")
        store = zarr.storage.MemoryStore()
        z = zarr.create(store=store, shape=shape, chunks=shape, dtype=chunk.dtype, codecs=series, zarr_format=3, fill_value=0)
        z[...] = chunk.reshape(shape)
        data = [bytes(v.to_bytes()) for k, v in store._store_dict.items() if k != "zarr.json"]
        return Stored(data, z)

    return encode, lambda coded, like: np.asarray(coded.array[...]).reshape(like.shape)


class Stored(list):
    def __init__(self, data, array):
        super().__init__(data)
        self.array = array


def bounded_codecs():
    """Functions of a chunk of floats and a bound."""
    import imagecodecs as ic

    import trivelet

    def zfp(chunk, bound):
        """Its tolerance is rarely used up: the largest one, in powers of two, that keeps the bound."""
        best = ic.zfp_encode(chunk, mode="a", level=bound, numthreads=1)
        for times in (2, 4, 8, 16, 32):
            coded = ic.zfp_encode(chunk, mode="a", level=bound * times, numthreads=1)
            if float(abs(ic.zfp_decode(coded) - chunk).max()) > bound:
                break
            best = coded
        return best

    return {
        "zfp": (zfp, lambda d, like: ic.zfp_decode(d).reshape(like.shape)),
        "sperr": (
            lambda c, bound: ic.sperr_encode(c.reshape(-1, *c.shape[-2:]), bound, "pwe", numthreads=1),
            lambda d, like: ic.sperr_decode(d, numthreads=1).reshape(like.shape),
        ),
        "trivelet": (
            lambda c, bound: trivelet.encode(c, max_error=bound, threads=1),
            lambda d, _: trivelet.decode(d, threads=1),
        ),
    }


# -------------------------------------------------------------------------------------------------------- sizes, speeds


def chunks_of(array):
    import itertools

    steps = (*array.shape[:-3], *CHUNK)
    for start in itertools.product(*(range(0, n, s) for n, s in zip(array.shape, steps))):
        yield array[tuple(slice(a, a + s) for a, s in zip(start, steps))].copy()


def timed(work):
    """The result and the CPU seconds of the best of three."""
    best, result = math.inf, None
    for _ in range(3):
        before = time.process_time()
        result = work()
        best = min(best, time.process_time() - before)
        if best > 1:
            break
    return result, best


def measure(array):
    """Bytes and MB/s without loss by codec; bytes with a bound of 1 % and 0.1 % of the values' range."""
    import numpy as np

    chunks = list(chunks_of(array))
    OFFSET[0] = int(array.min()) if array.dtype.kind != "f" else 0
    lossless = {}
    for name, (encode, decode) in codecs().items():
        try:
            coded, seconds = timed(lambda: [encode(c) for c in chunks])
            back, back_seconds = timed(lambda: [decode(d, c) for d, c in zip(coded, chunks)])
            exact = all(np.array_equal(b, c) for b, c in zip(back, chunks))
        except Exception as error:
            print(f"  {name}: {type(error).__name__} {str(error)[:90]}")
            continue
        if not exact:
            print(f"  {name}: does not give these voxels back")
            continue
        size = sum(len(part) for d in coded for part in d)
        lossless[name] = [size, array.nbytes / 1e6 / seconds, array.nbytes / 1e6 / back_seconds]
    bounded = {}
    spread = float(array.max()) - float(array.min())
    for share in (0.01, 0.001):
        bound, row = share * spread, {}
        for name, (encode, decode) in bounded_codecs().items():
            # Floats for those that bound errors of floats alone; whole numbers as they are where the bound counts them.
            given = chunks if name == "trivelet" else [c.astype(np.float32) for c in chunks]
            try:
                coded = [encode(c, bound) for c in given]
                worst = max(
                    float(abs(decode(d, c).astype(np.float64) - c.astype(np.float64)).max()) for d, c in zip(coded, given)
                )
            except Exception as error:
                print(f"  {name}, {bound}: {type(error).__name__} {str(error)[:90]}")
                continue
            if worst > bound * 1.001:  # floats are rounded
                print(f"  {name}: errs by {worst}, which is more than {bound}")
                continue
            row[name] = sum(len(d) for d in coded)
        bounded[str(share)] = row
    return {"bytes": array.nbytes, "shape": array.shape, "type": str(array.dtype), "lossless": lossless, "bounded": bounded}


# ---------------------------------------------------------------------------------------------------------------- reads


class Files(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, in ranges, late, and counted."""

    protocol_version = "HTTP/1.1"
    counts = {"bytes": 0, "requests": 0, "rounds": 0}  # the last: of answers, as many as had come before one was asked for
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        path = Path(self.translate_path(self.path))
        with self.lock:
            answered = self.counts["rounds"]
        time.sleep(LATENCY)
        with self.lock:
            self.counts["rounds"] = max(self.counts["rounds"], answered + 1)
        if not path.is_file():
            with self.lock:
                self.counts["requests"] += 1
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = path.stat().st_size
        first, end = 0, size
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            begin, last = asked[6:].split("-")
            if begin == "":
                first = max(0, size - int(last))
            else:
                first, end = int(begin), min(size, int(last) + 1) if last else size
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(end - first))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        self.end_headers()
        with self.lock:
            self.counts["requests"] += 1
            if body:
                self.counts["bytes"] += end - first
        if body:
            with open(path, "rb") as file:
                file.seek(first)
                self.wfile.write(file.read(end - first))


def measure_reads(volume, folder):
    """Bytes, requests and seconds for parts of one chunk, by codec."""
    import numpy as np
    import zarr
    from zarr.codecs import BloscCodec

    from trivelet.zarr import TriveletCodec, read_smaller

    array = volume[tuple(slice(n) for n in CHUNK)]
    z, y, x = array.shape
    wanted = {
        "2 slices": np.s_[z // 2 : z // 2 + 2],
        "1/64": np.s_[z // 4 : z // 2, y // 4 : y // 2, x // 4 : x // 2],
        "everything": np.s_[...],
    }
    arrangements = {
        "zstd": {},
        "blosc": {"compressors": [BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")]},
        "trivelet": {"serializer": TriveletCodec(), "compressors": None},
        "trivelet, wavelet": {"serializer": TriveletCodec(transform="wavelet"), "compressors": None},
        "trivelet, wavelet, blocks of 64, slabs of 16, a layer, slow": {
            "serializer": TriveletCodec(transform="wavelet", block_size=64, slab=16, layers=1, effort="slow"),
            "compressors": None,
        },
        "trivelet, wavelet, blocks of 32, slabs of 16": {
            "serializer": TriveletCodec(transform="wavelet", block_size=32, slab=16, layers=1),
            "compressors": None,
        },
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = {}
    try:
        for number, (name, how) in enumerate(arrangements.items()):
            made = zarr.create_array(f"{folder}/{number}.zarr", shape=array.shape, chunks=array.shape, dtype=array.dtype, **how)
            made[...] = array
            size = sum(f.stat().st_size for f in Path(folder, f"{number}.zarr", "c").rglob("*") if f.is_file())
            store = zarr.storage.FsspecStore.from_url(f"http://127.0.0.1:{server.server_port}/{number}.zarr")
            there = zarr.open_array(store, mode="r", zarr_format=3)
            reads = {what: functools.partial(there.__getitem__, index) for what, index in wanted.items()}
            if "wavelet" in name:
                reads["quarter size"] = functools.partial(read_smaller, there, 2)
            row = {}
            for what, read in reads.items():
                Files.counts.update(bytes=0, requests=0, rounds=0)
                before = time.perf_counter()
                got = read()
                seconds = time.perf_counter() - before
                if what in wanted:
                    np.testing.assert_array_equal(got, array[wanted[what]])
                row[what] = [Files.counts["bytes"], Files.counts["requests"], seconds, Files.counts["rounds"]]
            found[name] = {"size": size, "reads": row}
            print(f"  {name}: {size} bytes; " + "; ".join(f"{w} {r[0]} ({r[0] / size:.2%}) in {r[1]}, {r[3]} rounds, {r[2]:.2f} s" for w, r in row.items()))
    finally:
        server.shutdown()
    return {"shape": array.shape, "bytes": array.nbytes, "codecs": found}


def measure_zarr(volume):
    """MB/s of CPU time to decode a chunk by the library and through Zarr, by codec."""
    import numpy as np
    import zarr

    import trivelet
    from trivelet.zarr import TriveletCodec

    array = np.ascontiguousarray(volume[tuple(slice(n) for n in CHUNK)])
    found = {}
    for name, codec in {
        "prediction": TriveletCodec(),
        "wavelet": TriveletCodec(transform="wavelet"),
        "wavelet, fast": TriveletCodec(transform="wavelet", profile="fast"),
    }.items():
        made = zarr.create_array(
            zarr.storage.MemoryStore(), shape=array.shape, chunks=array.shape, dtype=array.dtype, compressors=None, serializer=codec
        )
        made[...] = array
        stream = codec.encode_chunk(array)
        seconds = [[], []]
        for _ in range(7):  # in turns, for other programs may run
            for which, decode in enumerate((lambda: trivelet.decode(stream, threads=1), lambda: made[...])):
                before = time.process_time()
                back = decode()
                seconds[which].append(time.process_time() - before)
                np.testing.assert_array_equal(back, array)
        found[name] = [array.nbytes / 1e6 / min(s) for s in seconds]
        print(f"  {name}: {found[name]}")
    return found


# ---------------------------------------------------------------------------------------------------------------- text


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(figures):
    """The part of README.md."""
    volumes = figures["volumes"]
    lines = [
        "Lossless bytes of chunks of at most 64x256x256, one thread for each codec. The smallest is bold; - marks what a",
        "codec cannot code or restore. Speeds are geometric means of MB a CPU second to encode and decode.",
        "",
        "| | " + " | ".join(LOSSLESS) + " |",
        "|-" * (len(LOSSLESS) + 1) + "|",
    ]
    for name, volume in volumes.items():
        sizes = {codec: volume["lossless"][codec][0] for codec in LOSSLESS if codec in volume["lossless"]}
        least = min(sizes.values())
        cells = [("**{:,}**" if sizes[c] == least else "{:,}").format(sizes[c]) if c in sizes else "-" for c in LOSSLESS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    speeds = []
    for codec in LOSSLESS:
        rows = [v["lossless"][codec] for v in volumes.values() if codec in v["lossless"]]
        speeds.append(f"{mean([r[1] for r in rows]):.0f} / {mean([r[2] for r in rows]):.0f}" if rows else "-")
    lines.append("| MB/s | " + " | ".join(speeds) + " |")
    lines += [
        "",
        "Bytes where no voxel errs by more than 1 % and 0.1 % of the range of values. zfp has the largest tolerance, in powers",
        "of two, with which it keeps the bound. zfp and SPERR bound errors of floats only and are given these; of 8 bits 0.1 %",
        "is less than 1, which leaves the whole numbers as they are.",
        "",
        "| | " + " | ".join(f"{c}, {float(s):.1%}" for s in ("0.01", "0.001") for c in BOUNDED) + " |",
        "|-" * (2 * len(BOUNDED) + 1) + "|",
    ]
    for name, volume in volumes.items():
        cells = []
        for share in ("0.01", "0.001"):
            row = volume["bounded"][share]
            for codec in BOUNDED:
                least = codec in row and row[codec] == min(row.values())
                cells.append(("**{:,}**" if least else "{:,}").format(row[codec]) if codec in row else "-")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    reads = figures["reads"]
    what = ["2 slices", "1/64", "quarter size", "everything"]
    lines += [
        "",
        f"One chunk of {'x'.join(map(str, reads['shape']))} ({reads['volume']}) over HTTP with 100 ms for each answer: share of",
        "the chunk's bytes, requests in rounds that wait for each other, seconds. Without a pyramid others read everything for",
        "the smaller size.",
        "",
        "| | bytes of the chunk | " + " | ".join(what) + " |",
        "|-" * (len(what) + 2) + "|",
    ]
    for name, row in reads["codecs"].items():
        cells = []
        for w in what:
            r = row["reads"].get(w)
            cells.append(f"{r[0] / row['size']:.1%}, {r[1]} in {r[3]}, {r[2]:.2f} s" if r else "-")
        lines.append(f"| {name} | {row['size']:,} | " + " | ".join(cells) + " |")
    through = ", ".join(f"{k}: {a:.0f} and {b:.0f} ({b / a:.0%})" for k, (a, b) in figures["zarr"].items())
    lines += ["", f"MB a CPU second to decode that chunk, by the library and through Zarr: {through}.", "", f"*{figures['where']}*"]
    return "\n".join(lines)


def write(figures):
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}\n{table(figures)}\n{END}{after}")


def draw(figures):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "trivelet"
    volumes = figures["volumes"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    names = [c for c in LOSSLESS if any(c in v["lossless"] for v in volumes.values())]
    for i, codec in enumerate(names):
        shares = [v["lossless"][codec][0] / v["lossless"]["trivelet"][0] for v in volumes.values() if codec in v["lossless"]]
        left.plot([i] * len(shares), shares, "o", color="tab:blue" if codec == "trivelet" else "tab:grey", alpha=0.6)
        left.plot([i - 0.3, i + 0.3], [mean(shares)] * 2, color="black")
    left.set_xticks(range(len(names)), names, rotation=40, ha="right")
    left.set_ylabel("bytes without loss over ours, by volume")
    reads = figures["reads"]["codecs"]
    what = ["2 slices", "1/64", "quarter size", "everything"]
    for i, (codec, row) in enumerate(reads.items()):
        heights = [row["reads"].get(w, row["reads"]["everything"])[0] / 1e3 for w in what]
        right.bar([k + (i - 2.5) * 0.14 for k in range(len(what))], heights, 0.13, label=codec)
    right.set_xticks(range(len(what)), what)
    right.set_yscale("log")
    right.set_ylabel("kB read of a chunk")
    right.legend(fontsize=7, ncol=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.tight_layout()
    figure.savefig(HERE / "figures.svg", metadata={"Date": None})


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--program", default="trivelet", help="which reads the volumes' formats")
    parser.add_argument("--check", action="store_true", help="compare README.md with figures.json")
    parser.add_argument("--draw", action="store_true", help="table and picture of figures.json again")
    asked = parser.parse_args()
    if asked.check:
        if f"{BEGIN}\n{table(json.loads(FIGURES.read_text()))}\n{END}" not in README.read_text():
            print("python/README.md has another table than python/bench/figures.json: python/bench/compare.py --draw")
            return 1
        return 0
    if asked.draw:
        figures = json.loads(FIGURES.read_text())
        write(figures)
        draw(figures)
        return 0
    if not asked.folder:
        parser.error("a folder with volumes")
    import numpy as np

    import trivelet

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    figures = {"volumes": {}, "where": f"{processor()}, {datetime.date.today()}, {commit}: python/bench/compare.py --program trivelet FOLDER"}
    with tempfile.TemporaryDirectory() as folder:
        largest = None
        for path in sorted(Path(asked.folder).iterdir()):
            stream = Path(folder, "a.tvl")
            raw = re.search(r"_(\d+x\d+x\d+)_(\w+)\.raw$", path.name)
            more = ["--size", raw[1], "--type", raw[2]] if raw else []
            command = [asked.program, "encode", path, stream, "-y", "--preset", "fast", "--no-verify", "--quiet", *more]
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{path.name}: {done.stderr.strip()}")
                continue
            volume = trivelet.open(stream.read_bytes())
            array = np.ascontiguousarray(volume[...].astype(volume.dtype.newbyteorder("=")))
            array = array.reshape([n for n in array.shape if n > 1])
            print(f"{path.name}: {array.shape} {array.dtype}")
            figures["volumes"][path.name.split(".")[0]] = measure(array)
            if array.ndim == 3 and all(n >= c for n, c in zip(array.shape, CHUNK)) and array.itemsize == 2 or largest is None:
                largest = path.name, array
        print(f"reads of {largest[0]}")
        figures["zarr"] = measure_zarr(largest[1])
        figures["reads"] = {"volume": largest[0].split(".")[0], **measure_reads(largest[1], folder)}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    write(figures)
    draw(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
