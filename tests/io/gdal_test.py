#!/usr/bin/env python3
"""GDAL's own programs with the raster driver: copies are exact or within their bound, windows are what the whole has,
georeference stays, what is damaged is refused.

    gdal_test.py PROGRAM PLUGIN [SERVER]   PROGRAM: trivelet; PLUGIN: gdal_Trivelet.so; SERVER: samples/serve.py
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

if not shutil.which("gdal_translate"):
    print("skipped: gdal_translate is not installed (Debian: gdal-bin)")
    sys.exit(77)

import numpy as np

PROGRAM, PLUGIN = (Path(arg).resolve() for arg in sys.argv[1:3])
SERVER = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
ENVIRONMENT = {**os.environ, "GDAL_DRIVER_PATH": str(PLUGIN.parent)}
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
ENVI_TYPES = {"u1": 1, "i2": 2, "i4": 3, "f4": 4, "f8": 5, "u2": 12}


def run(*words, fails=False):
    done = subprocess.run([str(w) for w in words], env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if not fails else done.stdout + done.stderr


def stack(kind, bands, rows, columns):
    b, y, x = np.mgrid[0:bands, 0:rows, 0:columns]
    noise = np.random.default_rng(7).normal(0, 2, b.shape)
    values = 900 + 300 * np.sin(x / 17 + b / 5) + 200 * np.cos(y / 11) + noise
    return (values / 8 if kind == "u1" else values).astype("<" + kind)


class Gdal(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gdal_test."))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, values):
        bands, rows, columns = values.shape
        values.tofile(self.folder / name)
        (self.folder / name).with_suffix(".hdr").write_text(
            f"ENVI\nsamples = {columns}\nlines = {rows}\nbands = {bands}\nheader offset = 0\n"
            "file type = ENVI Standard\n"
            f"data type = {ENVI_TYPES[values.dtype.str[1:]]}\ninterleave = bsq\nbyte order = 0\n"
            "map info = {UTM, 1, 1, 500000, 4600000, 30, 30, 33, North, WGS-84}\n")
        return self.folder / name

    def copy(self, path, *options, name="a.tvl"):
        run("gdal_translate", "-q", "-of", "Trivelet", *options, path, self.folder / name)
        return self.folder / name

    def read(self, path, kind, *options):
        """Bands, rows, columns by gdal_translate."""
        out = self.folder / "back.img"
        run("gdal_translate", "-q", "-of", "ENVI", *options, path, out)
        info = json.loads(run("gdalinfo", "-json", out))
        columns, rows = info["size"]
        return np.fromfile(out, "<" + kind).reshape(len(info["bands"]), rows, columns)

    def test_exact_copies(self):
        for kind in ENVI_TYPES if FULL else ["u1", "i2", "f4"]:
            values = stack(kind, 5, 70, 90)
            path = self.copy(self.write(f"{kind}.img", values))
            self.assertTrue(np.array_equal(self.read(path, kind), values), kind)
            run(PROGRAM, "decode", path, self.folder / "own.raw", "-y", "--quiet")
            self.assertEqual((self.folder / "own.raw").read_bytes(), values.tobytes(), kind)

    def test_what_gdalinfo_says(self):
        path = self.copy(self.write("a.img", stack("i2", 6, 120, 300)), "-co", "TRANSFORM=WAVELET")
        info = json.loads(run("gdalinfo", "-json", path))
        self.assertEqual(info["driverShortName"], "Trivelet")
        self.assertEqual((info["size"], len(info["bands"]), info["bands"][0]["type"]), ([300, 120], 6, "Int16"))
        self.assertEqual(info["geoTransform"], [500000.0, 30.0, 0.0, 4600000.0, 0.0, -30.0])
        self.assertIn("UTM", info["coordinateSystem"]["wkt"])
        self.assertEqual(info["metadata"]["IMAGE_STRUCTURE"]["COMPRESSION"], "Trivelet, lossless")

    def test_bounds_and_windows(self):
        values = stack("i2", 8, 300, 600)
        source = self.write("a.img", values)
        exact = self.copy(source, "-co", "TRANSFORM=WAVELET", "-co", "NUM_THREADS=2", name="exact.tvl")
        near = self.copy(source, "-co", "MAX_ERROR=3", "-co", "EFFORT=FAST", name="near.tvl")
        self.assertLess(near.stat().st_size, exact.stat().st_size)
        errors = np.abs(self.read(near, "i2").astype(int) - values)
        self.assertTrue(0 < errors.max() <= 3, errors.max())
        for x, y, width, height in [(0, 0, 10, 10), (250, 255, 300, 20), (599, 299, 1, 1)]:
            part = self.read(exact, "i2", "-srcwin", x, y, width, height)
            self.assertTrue(np.array_equal(part, values[:, y : y + height, x : x + width]), (x, y))
        band = self.read(exact, "i2", "-b", 8, "-b", 2)
        self.assertTrue(np.array_equal(band, values[[7, 1]]))
        none = self.folder / "no.tvl"
        run("gdal_translate", "-q", "-of", "Trivelet", "-co", "MAX_ERROR=much", source, none, fails=True)
        self.assertFalse(none.exists())

    def test_smaller_sizes(self):
        values = stack("u2", 1, 512, 512)
        path = self.copy(self.write("a.img", values), "-co", "TRANSFORM=WAVELET")
        overviews = json.loads(run("gdalinfo", "-json", path))["bands"][0]["overviews"]
        self.assertEqual(overviews[0]["size"], [256, 256])
        half = self.read(path, "u2", "-outsize", "50%", "50%")
        run(PROGRAM, "decode", path, self.folder / "half.raw", "--reduce", 1, "-y", "--quiet")
        self.assertEqual((self.folder / "half.raw").read_bytes(), half.tobytes())

    def test_channels_and_volumes(self):
        values = np.moveaxis(stack("u1", 3, 40, 50), 0, 2)  # as colours of a pixel
        (self.folder / "c.mhd").write_text(
            "ObjectType = Image\nNDims = 3\nDimSize = 50 40 1\nElementNumberOfChannels = 3\nElementType = MET_UCHAR\n"
            "ElementDataFile = c.raw\n")
        values.tofile(self.folder / "c.raw")
        run(PROGRAM, "encode", self.folder / "c.mhd", self.folder / "c.tvl", "--quiet")
        self.assertTrue(np.array_equal(np.moveaxis(self.read(self.folder / "c.tvl", "u1"), 0, 2), values))

    def test_what_is_refused(self):
        path = self.copy(self.write("a.img", stack("i2", 4, 64, 64)))
        whole = path.read_bytes()
        for at in range(20, len(whole), len(whole) // (40 if FULL else 5)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
            done = subprocess.run(["gdal_translate", "-q", "-of", "ENVI", path, self.folder / "b.img"], env=ENVIRONMENT,
                                  capture_output=True, timeout=300)
            self.assertIn(done.returncode, (0, 1), done)
            if done.returncode == 0:  # beside what is decoded
                self.assertEqual((self.folder / "b.img").read_bytes(), stack("i2", 4, 64, 64).tobytes(), at)
        path.write_bytes(whole[: len(whole) // 2])
        run("gdal_translate", "-q", "-of", "ENVI", path, self.folder / "b.img", fails=True)
        (self.folder / "f.y4m").write_bytes(b"YUV4MPEG2 W16 H16 F25:1 Cmono\n" + (b"FRAME\n" + bytes(256)) * 3)
        run(PROGRAM, "encode", self.folder / "f.y4m", self.folder / "f.tvl", "--quiet")
        self.assertIn("f.tvl", run("gdalinfo", self.folder / "f.tvl", fails=True))

    def test_bytes_of_a_window(self):
        if not SERVER:
            return
        source = self.write("a.img", stack("i2", 8, 1024, 1024))
        path = self.copy(source, "-co", "TRANSFORM=WAVELET", "-co", "EFFORT=FAST")
        server = subprocess.Popen([sys.executable, SERVER, self.folder, "--port", "0", "--quiet"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            part = self.read(f"/vsicurl/{address}a.tvl", "i2", "-srcwin", 300, 300, 100, 100)
            self.assertTrue(np.array_equal(part, stack("i2", 8, 1024, 1024)[:, 300:400, 300:400]))
            counts = json.load(urllib.request.urlopen(address + "counts"))
            self.assertLess(counts["/a.tvl"]["bytes"], path.stat().st_size * 3 / 4)  # GDAL reads ahead
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
