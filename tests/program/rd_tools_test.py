#!/usr/bin/env python3
"""The arithmetic of bench/rd_tools.py, on curves whose BD-rate and integrals are known; and its clips."""

from __future__ import annotations

import dataclasses
import math
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from rd_tools import Point, bd_rate, curve, dip_of, integral, load_clip, pchip  # noqa: E402


def points(pairs: list[tuple[float, float]]) -> list[Point]:
    return [Point("clip", 1, "codec", 0, 0, bpp, psnr, psnr, 1, 0, 1, 1) for bpp, psnr in pairs]


ANCHOR = [(0.1, 28.0), (0.25, 31.5), (0.5, 34.4), (1.0, 38.3), (1.5, 40.1)]


class BdRate(unittest.TestCase):
    def test_same_curve(self) -> None:
        difference, common = bd_rate(points(ANCHOR), points(ANCHOR))
        self.assertAlmostEqual(difference, 0)
        self.assertAlmostEqual(common, 12.1)

    def test_fewer_bytes_at_every_psnr(self) -> None:
        less = points([(0.55 * bpp, psnr) for bpp, psnr in ANCHOR])
        self.assertAlmostEqual(bd_rate(points(ANCHOR), less)[0], -45)
        self.assertAlmostEqual(bd_rate(less, points(ANCHOR))[0], 100 / 0.55 - 100)

    def test_straight_lines_of_different_knots(self) -> None:
        line = lambda factor, knots: points([(factor * 2 ** (x / 6), x) for x in knots])  # noqa: E731
        difference, common = bd_rate(line(1, [20, 27, 33, 40]), line(0.7, [25, 26, 38, 50]))
        self.assertAlmostEqual(difference, -30)
        self.assertAlmostEqual(common, 15)

    def test_order_and_points_that_do_not_rise_change_nothing(self) -> None:
        shuffled = points([ANCHOR[3], ANCHOR[0], (0.3, 30.0), ANCHOR[4], (0.9, math.inf), ANCHOR[2], ANCHOR[1]])
        self.assertEqual(curve(shuffled), curve(points(ANCHOR)))

    def test_nothing_in_common(self) -> None:
        self.assertIsNone(bd_rate(points([(1, 20), (2, 25)]), points([(1, 30), (2, 35)])))
        self.assertIsNone(bd_rate(points([(1, 20), (2, 25)]), points([(1, 24.5), (2, 35)])))

    def test_vmaf(self) -> None:
        def of(factor: float) -> list[Point]:
            return [dataclasses.replace(p, psnr=1, vmaf=p.psnr, bpp=p.bpp * factor) for p in points(ANCHOR)]

        self.assertAlmostEqual(bd_rate(of(1), of(0.8), "vmaf")[0], -20)
        self.assertIsNone(bd_rate(of(1), of(0.8)))
        self.assertIsNone(bd_rate(points(ANCHOR), points(ANCHOR), "vmaf"))  # not measured


class Pchip(unittest.TestCase):
    def test_slopes(self) -> None:
        # The values of scipy.interpolate.PchipInterpolator.
        slopes = pchip([0, 1, 3, 4], [0, 1, 2, 5])
        for got, want in zip(slopes, (1.16666667, 0.69230769, 0.93103448, 3.83333333)):
            self.assertAlmostEqual(got, want, places=7)

    def test_no_overshoot(self) -> None:
        x, y = [0, 1, 2, 3, 4], [0, 0, 1, 1, 2]
        self.assertEqual(pchip(x, y)[1:4], [0, 0, 0])

    def test_integral_of_a_part(self) -> None:
        x, y = [0, 1, 3, 7], [5, 7, 11, 19]  # 5 + 2 x
        self.assertAlmostEqual(integral(x, y, 0.5, 6), 5 * 5.5 + 36 - 0.25)


@unittest.skipUnless(shutil.which("ffmpeg") and shutil.which("ffprobe"), "ffmpeg unpacks clips")
class Clips(unittest.TestCase):
    def test_sources(self) -> None:
        width, height = 50, 38
        sizes = [(width, height), (width // 2, height // 2), (width // 2, height // 2)]
        planes = [bytes((3 * x + 5 * y) % 251 for y in range(h) for x in range(w)) for w, h in sizes]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"ramp_{width}x{height}.yuv"
            path.write_bytes(b"".join(planes))
            work = Path(folder) / "work"
            work.mkdir()
            whole, off, half = (load_clip(path, 9, work, source=s) for s in ("whole", "off", "half"))
            self.assertEqual(whole.raw.read_bytes(), path.read_bytes())
            self.assertEqual((off.name, off.width, off.height, off.frames), ("ramp-off", 42, 30, 1))
            inner = b""
            for plane, (w, h), cut in zip(planes, sizes, (4, 2, 2)):
                inner += b"".join(plane[y * w + cut : (y + 1) * w - cut] for y in range(cut, h - cut))
            self.assertEqual(off.raw.read_bytes(), inner)
            self.assertEqual((half.name, half.width, half.height, half.frames), ("ramp-half", 24, 18, 1))


class Dip(unittest.TestCase):
    def test_of_gops(self) -> None:
        self.assertAlmostEqual(dip_of([30, 32, 34, 40, 41], [3, 2]), (2 + 0.5) / 2)
        self.assertEqual(dip_of([30, math.inf, 34, 40], [3, 1]), 0)


if __name__ == "__main__":
    unittest.main()
