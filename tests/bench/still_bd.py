#!/usr/bin/env python3
"""VSTC against x264 (medium, one intra picture) as BD-rate: PSNR of luma over bits, QP 22, 27, 32, 37.

    tests/bench/still_bd.py TRIVELET PICTURE... [--options "--block 64"] [--tune psnr] [--qp 22,27,32,37]

Pictures are anything ffmpeg reads; their luma is coded (the first frame of videos). x264 runs through ffmpeg with constant
QP for the intra picture; its bytes are those of the parameter sets and the slice, without the comment it writes. Trivelet's
bytes are the whole file. BD-rate: mean difference of log rate over the common PSNR range, curves through the points by
monotone cubic pieces. "x264" is --preset medium; "x264 psnr" adds --tune psnr, which turns off what serves the eye only.
Needs ffmpeg with libx264, and nothing of Python beyond its library.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile


def run(*command, **kwargs):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs).stdout


def read_pgm(path):
    data = open(path, "rb").read()
    fields, at = [], 0
    while len(fields) < 4:
        end = at
        while data[end] not in b" \n\t\r":
            end += 1
        if end > at:
            fields.append(data[at:end])
        at = end + 1
    return int(fields[1]), int(fields[2]), data[at:]


def psnr(a, b):
    squares = sum((x - y) * (x - y) for x, y in zip(a, b))
    return 10 * math.log10(255 * 255 * len(a) / squares) if squares else 99.0


def nal_bytes(stream):
    """Bytes of the NAL units except comments (SEI) and delimiters."""
    starts, at = [], stream.find(b"\0\0\1")
    while at >= 0:
        starts.append(at)
        at = stream.find(b"\0\0\1", at + 3)
    total = 0
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(stream)
        if stream[start + 3] & 31 not in (6, 9):
            total += end - start
    return total


def slopes(x, y):
    """Fritsch-Butland slopes of a monotone cubic through the points."""
    h = [b - a for a, b in zip(x, x[1:])]
    d = [(b - a) / s for a, b, s in zip(y, y[1:], h)]
    m = [0.0] * len(x)
    for i in range(1, len(x) - 1):
        if d[i - 1] * d[i] > 0:
            p, q = 2 * h[i] + h[i - 1], h[i] + 2 * h[i - 1]
            m[i] = (p + q) / (p / d[i - 1] + q / d[i])
    for end, a, b in ((0, 0, 1), (-1, -1, -2)):
        v = ((2 * h[a] + h[b]) * d[a] - h[a] * d[b]) / (h[a] + h[b])
        m[end] = 0.0 if v * d[a] <= 0 else (3 * d[a] if d[a] * d[b] <= 0 and abs(v) > 3 * abs(d[a]) else v)
    return m


def integral(x, y, low, high):
    m = slopes(x, y)

    def value(t):
        i = max(k for k in range(len(x) - 1) if x[k] <= t or k == 0)
        h = x[i + 1] - x[i]
        s = (t - x[i]) / h
        return ((1 + 2 * s) * (1 - s) ** 2 * y[i] + s * (1 - s) ** 2 * h * m[i] + s * s * (3 - 2 * s) * y[i + 1]
                + s * s * (s - 1) * h * m[i + 1])
    n = 400
    step = (high - low) / n
    return sum(value(low + k * step) * (1 if k in (0, n) else 4 if k % 2 else 2) for k in range(n + 1)) * step / 3


def bd_rate(anchor, test):
    """Lists of (bytes, psnr). Percent of rate of `test` above `anchor`."""
    anchor, test = sorted(anchor, key=lambda p: p[1]), sorted(test, key=lambda p: p[1])
    low, high = max(anchor[0][1], test[0][1]), min(anchor[-1][1], test[-1][1])
    area = [integral([p[1] for p in c], [math.log(p[0]) for p in c], low, high) for c in (anchor, test)]
    return 100 * (math.exp((area[1] - area[0]) / (high - low)) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trivelet")
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--options", default="", help="further options of 'still encode'")
    parser.add_argument("--streams", help="folder of streams made before, PICTURE.QP.tvs, PICTURE without its extension")
    parser.add_argument("--qp", default="22,27,32,37")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    qps = [int(q) for q in args.qp.split(",")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        pgm, tvs, out, stream = (os.path.join(folder, n) for n in ("in.pgm", "a.tvs", "out.pgm", "a.264"))
        for picture in args.pictures:
            run("ffmpeg", "-v", "error", "-y", "-i", picture, "-frames:v", "1", "-vf", "extractplanes=y" if picture.endswith(
                (".mkv", ".y4m", ".mp4")) else "format=gray", "-pix_fmt", "gray", pgm)
            width, height, original = read_pgm(pgm)
            curves = {"vstc": [], "x264": [], "x264 psnr": []}
            seconds = 0
            for qp in qps:
                if args.streams:
                    name = os.path.splitext(os.path.basename(picture))[0]
                    tvs = os.path.join(args.streams, "%s.%d.tvs" % (name, qp))
                else:
                    said = json.loads(run(args.trivelet, "still", "encode", pgm, tvs, "-q", str(qp), "-y", "--json", "--quiet",
                                          *args.options.split()))
                    seconds += said["seconds"]
                run(args.trivelet, "still", "decode", tvs, out, "-y", "--quiet")
                curves["vstc"].append((os.path.getsize(tvs), psnr(original, read_pgm(out)[2])))
                for name, tune in (("x264", []), ("x264 psnr", ["-tune", "psnr"])):
                    # Raw samples on both ends: PGM would be converted to limited range and back.
                    raw = ["-f", "rawvideo", "-pix_fmt", "gray", "-color_range", "pc"]
                    run("ffmpeg", "-v", "error", "-y", *raw, "-s", "%dx%d" % (width, height), "-i", "-", "-c:v", "libx264",
                        "-color_range", "pc", "-preset", "medium", "-x264-params", "qp=%d:ipratio=1" % qp, *tune, stream, input=original)
                    decoded = run("ffmpeg", "-v", "error", "-i", stream, *raw, "-")
                    curves[name].append((nal_bytes(open(stream, "rb").read()), psnr(original, decoded)))
            bd = {name: bd_rate(curves[name], curves["vstc"]) for name in ("x264", "x264 psnr")}
            results.append((os.path.basename(picture), bd, curves, seconds))
            if not args.json:
                print("%-34s BD-rate %+6.2f %% (x264 psnr %+6.2f %%)  %.1f s" % (os.path.basename(picture), bd["x264"],
                                                                               bd["x264 psnr"], seconds))
                for name, curve in curves.items():
                    print("  %-10s" % name, "  ".join("%.4f bpp %.2f dB" % (8 * b / width / height, p) for b, p in curve))
                sys.stdout.flush()
    mean = {name: sum(r[1][name] for r in results) / len(results) for name in ("x264", "x264 psnr")}
    if args.json:
        print(json.dumps({"pictures": [{"name": n, "bd_rate": b, "curves": c, "seconds": s} for n, b, c, s in results],
                          "mean": mean}, indent=2))
    else:
        print("mean of %d: %+.2f %% (x264 psnr %+.2f %%)" % (len(results), mean["x264"], mean["x264 psnr"]))


if __name__ == "__main__":
    main()
