#!/usr/bin/env python3
"""A model of clusters that encode long videos: simulates the distribution of GOPs by apps/cluster/encode_together.cpp.

    tests/bench/cluster_model.py                      # the tables of docs/CLUSTER.md
    tests/bench/cluster_model.py --check P1 P2 … --kind "fast -q 60" --cores 16
                                                      # against frames a second of 1080p measured with 1, 2 … GPUs of a
                                                      # host of so many cores (gpus.sh), or processes (cluster.sh, no --kind)

A GOP is found by the first process, goes to the rank that is free first, is read over the link of its node from shared
storage, coded, for which the cores of its node have work, too, and written by that rank over the same link to the place that
the first process tells it. Every one of these is a server that does one thing after another; a rank reads the next GOP while
it codes one. Measured rates are marked so, with where they stand; what is not
marked is an assumption about a machine, to be changed by options.
"""

import argparse
import heapq

MEASURED = {
    # frames/s of 1080p 8-bit 4:2:0 on an H200, from page-locked memory, and bits per pixel (docs/GPU.md "Codec"); seconds of
    # a thread of the host for each, all threads of its cores being busy ("One GPU and two", gpu/BENCHMARKS.md: 44 s for
    # 15,360 and 42 for 7,680; without loss not measured)
    "fast -q 60": (16630, 0.433, 2.9e-3),
    "dense -q 60": (5083, 0.375, 5.5e-3),
    "dense --lossless": (1553, 1.708, 5.5e-3),
}
PIXELS_1080P = 1920 * 1080
PCIE = 55.0e9  # bytes/s, up (gpu/BENCHMARKS.md "Wavelet transform")
# Of the first process: frames/s whose ends of scenes 16 threads have found beside two GPUs that code, of any size, for they
# look at about 100 rows. Bytes/s that a process writes ("One GPU and two", "In the program", gpu/BENCHMARKS.md).
LOOK = 12000
WRITE = 1.6e9
# Bytes/s of voxels on a core, --preset fast (docs/VOLUMES.md "Speed")
VOXELS = 129e6


class Server:
    """A resource that serves one request after another."""

    def __init__(self, rate):
        self.rate, self.free, self.busy = rate, 0.0, 0.0

    def serve(self, at, amount):
        taken = amount / self.rate
        self.free = max(self.free, at) + taken
        self.busy += taken
        return self.free


def simulate(o, ranks, frames, width, height, bytes_per_sample, coder_rate, bits_per_pixel, host_rate):
    """Total seconds and the utilisation of every resource. `coder_rate`: samples/s of a rank, `host_rate`: of a
    node's cores."""
    pixels = width * height
    samples = pixels * 1.5 * o.gop
    raw = samples * bytes_per_sample
    packet = pixels * o.gop * bits_per_pixel / 8
    nodes = -(-ranks // o.per_node)
    look, storage = Server(o.look), Server(o.storage)
    links = [Server(o.link) for _ in range(nodes)]
    coders = [Server(coder_rate) for _ in range(ranks)]
    hosts = [Server(host_rate) for _ in range(nodes)]
    back = [Server(o.link) for _ in range(nodes)]  # links go both ways
    writers, shared = [Server(o.write) for _ in range(ranks)], Server(o.storage)
    started = [0.0] * ranks  # start of the rank's last GOP, when it begins to read the next
    free = [(0.0, r) for r in range(ranks)]
    end = 0.0
    for _ in range(frames // o.gop):
        found = look.serve(0.0, o.gop)
        _, r = heapq.heappop(free)
        at = max(found, started[r])
        read = max(storage.serve(at, raw), links[r // o.per_node].serve(at, raw))
        begin = max(read, coders[r].free)
        coded = max(coders[r].serve(begin, samples), hosts[r // o.per_node].serve(begin, samples))
        started[r] = begin
        heapq.heappush(free, (coded, r))
        end = max(end, writers[r].serve(coded, packet), back[r // o.per_node].serve(coded, packet),
                  shared.serve(coded, packet))
    shares = {"GPUs": sum(c.busy for c in coders) / (end * ranks), "first: finding": look.busy / end,
              "writing": max(w.busy for w in writers) / end, "storage": max(storage.busy, shared.busy) / end,
              "node link": max(l.busy for l in links) / end, "host": max(h.busy for h in hosts) / end}
    return end, shares


def video(o):
    width, height, rate = 7680, 4320, 60
    print(f"A day of 8K at {rate} frames/s, 8 bits, 4:2:0; GOPs of {o.gop} frames\n")
    print("| | GPUs | frames/s | times one | real time takes | what limits | GPU hours | cost of an hour |")
    print("|-|-|-|-|-|-|-|-|")
    for name, (fps, bpp, host) in MEASURED.items():
        coder = min(fps * PIXELS_1080P * 1.5, PCIE)
        on_host = PIXELS_1080P * 1.5 * 2 * o.cores * o.per_node / host
        one = None
        for ranks in (1, 8, 64, 1024):
            # A part of the day is enough, because the rate is constant by then.
            frames = o.gop * max(3000, 40 * ranks)
            seconds, shares = simulate(o, ranks, frames, width, height, 1, coder, bpp, on_host)
            speed = frames / seconds
            one = one or speed
            limit, share = max(shares.items(), key=lambda x: x[1])
            hours = 86400 * rate / speed / 3600 * ranks
            print(f"| `{name}` | {ranks:,} | {speed:,.0f} | {speed / one:.1f} | {rate / speed * 100:.2g} % | "
                  f"{limit} {100 * share:.0f} % | {hours:,.1f} | ${hours / 24 * o.price:,.2f} |")


def volumes(o):
    print("\nA petabyte of volumes, lossless by prediction on the CPU: a volume is one process's, on all cores of a GPU's share\n")
    print("| cores | GB/s | days | what limits |\n|-|-|-|-|")
    for shares in (1, 8, 64, 1024):
        cores = shares * o.cores
        rate = min(cores * VOXELS, o.storage, -(-shares // o.per_node) * o.link)
        limit = "cores" if rate == cores * VOXELS else "storage" if rate == o.storage else "links"
        print(f"| {cores:,} | {rate / 1e9:,.1f} | {1e15 / rate / 86400:,.2g} | {limit} |")


def check(o):
    one = o.check[0]
    host = MEASURED[o.kind][2] if o.kind else 0
    on_host = PIXELS_1080P * 1.5 * 2 * o.cores / host if o.kind else float("inf")
    print("    ranks  measured  simulated  frames/s")
    for i, measured in enumerate(o.check):
        ranks = 2 ** i
        # One node, rates as seen with one process.
        o.per_node = ranks
        seconds, _ = simulate(o, ranks, o.gop * 1000, 1920, 1080, 1, one * PIXELS_1080P * 1.5, 0.4, on_host)
        print(f"{ranks:9}  {measured:8.1f}  {o.gop * 1000 / seconds:9.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gop", type=int, default=33)
    parser.add_argument("--per-node", type=int, default=8, help="GPUs")
    parser.add_argument("--cores", type=int, default=16, help="for each GPU; with --check of the host; of two threads each")
    parser.add_argument("--link", type=float, default=50e9, help="bytes/s between a node and all else (400 Gb/s)")
    parser.add_argument("--storage", type=float, default=1e12, help="bytes/s of the shared file system")
    parser.add_argument("--look", type=float, default=LOOK, help="frames/s that the first process looks at")
    parser.add_argument("--write", type=float, default=WRITE, help="bytes/s that a process writes")
    parser.add_argument("--price", type=float, default=3.0, help="of a GPU hour")
    parser.add_argument("--check", type=float, nargs="+", help="frames/s measured with 1, 2, 4 … GPUs or processes")
    parser.add_argument("--kind", choices=MEASURED, help="of --check: what the host does besides")
    o = parser.parse_args()
    if o.check:
        return check(o)
    video(o)
    volumes(o)


if __name__ == "__main__":
    main()
