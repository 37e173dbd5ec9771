#!/usr/bin/env python3
"""Volume files of the program opened as images of nibabel and layers of napari.

tests/python/python_images_test.py path/to/libtrivelet.so.1 path/to/trivelet [unittest's arguments]
"""

import io
import logging
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if len(sys.argv) < 3:
    print(__doc__)
    sys.exit(2)
library, PROGRAM = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
if not library.exists() or not PROGRAM.exists():
    print(f"skipped: {library} or {PROGRAM} was not built")
    sys.exit(77)
os.environ["TRIVELET_LIBRARY"] = str(library)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
try:
    import nibabel
    import numpy as np
except ImportError:
    print("skipped: no nibabel")
    sys.exit(77)
try:
    import npe2
except ImportError:
    npe2 = None
    print("npe2 is not installed: napari's manifest is read as text only")

import trivelet
import trivelet.napari

logging.getLogger("trivelet").addHandler(logging.NullHandler())
RANDOM = np.random.default_rng(11)
TILTED = (0.8, 0.6, 0, -0.48, 0.64, 0.6)  # directions of rows and columns
AFFINE = np.array([[-2, 0.1, 0, 90], [0, 2.5, 0.2, -120], [0, 0, 3, -70], [0, 0, 0, 1.0]])


def blob(shape, dtype="i2"):
    grid = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    return (sum(np.sin(g * (i + 1)) for i, g in enumerate(grid)) * 90 + 300 + RANDOM.normal(0, 2, shape)).astype(dtype)


class Images(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def encode(self, path, *options) -> Path:
        out = self.folder / "out.tvl"
        command = [PROGRAM, "encode", path, out, "-y", *options]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def test_as_nibabel_reads_the_file(self) -> None:
        for image_class, name, shape, dtype, slope in (
            (nibabel.Nifti1Image, "a.nii", (20, 30, 12), "i2", None),
            (nibabel.Nifti1Image, "b.nii.gz", (20, 30, 12), "u1", (2.5, -7)),
            (nibabel.Nifti1Image, "c.nii", (10, 12, 5, 4), ">i2", (0.5, 0)),
            (nibabel.Nifti1Image, "d.nii", (10, 12, 3, 2, 3), "f4", None),
            (nibabel.Nifti1Pair, "e.hdr", (10, 12, 5), "u2", None),
            (nibabel.Nifti2Image, "f.nii", (10, 12, 5), "f8", None),
            (nibabel.Nifti1Image, "g.nii", (40, 30), "i4", None),
            (nibabel.Nifti1Image, "h.nii", (9, 10, 5), "rgb", None),
        ):
            if dtype == "rgb":
                array = RANDOM.integers(0, 255, (*shape, 3), "u1").view([("R", "u1"), ("G", "u1"), ("B", "u1")])[..., 0]
            else:
                array = blob(shape, dtype)
            image = image_class(array, AFFINE)
            if slope:
                image.header.set_slope_inter(*slope)
            extension = nibabel.nifti1.Nifti1Extension("comment", b"of a test")
            if name.endswith((".nii", ".gz")):
                image.header.extensions.append(extension)
            if slope:  # as it stands in files: nibabel would choose the scale factors itself
                with nibabel.openers.Opener(self.folder / name, "wb") as file:
                    image.header.write_to(file)
                    file.write(b"\0" * (int(image.header["vox_offset"]) - file.tell()))
                    file.write(array.tobytes(order="F"))
            else:
                nibabel.save(image, self.folder / name)
            expected = nibabel.load(self.folder / name)
            found = trivelet.nibabel_image(self.encode(self.folder / name))
            self.assertIsInstance(found, image_class)
            self.assertEqual(found.shape, expected.shape, name)
            self.assertEqual(len(found.header.extensions), len(expected.header.extensions))
            np.testing.assert_array_equal(found.affine, expected.affine)
            self.assertEqual(found.header.get_zooms(), expected.header.get_zooms())
            self.assertEqual(found.get_data_dtype(), expected.get_data_dtype())
            self.assertTrue(nibabel.is_proxy(found.dataobj))
            if dtype == "rgb":
                np.testing.assert_array_equal(np.asanyarray(found.dataobj), array)
                continue
            np.testing.assert_array_equal(found.get_fdata(), expected.get_fdata())
            np.testing.assert_array_equal(found.dataobj.get_unscaled(), expected.dataobj.get_unscaled())
            for _ in range(10):
                index = tuple(
                    (
                        int(RANDOM.integers(0, n))
                        if RANDOM.integers(0, 4) == 0
                        else slice(*sorted(map(int, RANDOM.integers(0, n + 1, 2))), int(RANDOM.integers(1, 3)))
                    )
                    for n in expected.shape
                )
                np.testing.assert_array_equal(found.dataobj[index], np.asanyarray(expected.dataobj)[index], str(index))
            if len(shape) > 2:
                np.testing.assert_array_equal(found.slicer[2:8].affine, expected.slicer[2:8].affine)
            if image_class is nibabel.Nifti1Image and slope:
                nibabel.save(found, self.folder / "again.nii")
                again = nibabel.load(self.folder / "again.nii")
                worst = np.abs(again.get_fdata() - expected.get_fdata()).max()
                self.assertLessEqual(worst, 0.5 * abs(float(again.dataobj.slope)) + 1e-6)

    def test_smaller(self) -> None:
        array = blob((64, 48, 32))
        nibabel.save(nibabel.Nifti1Image(array, AFFINE), self.folder / "a.nii")
        stream = self.encode(self.folder / "a.nii", "--transform", "wavelet")
        found = trivelet.nibabel_image(stream, reduce=2, layers=1)
        whole, volume = trivelet.nibabel_image(stream), trivelet.open(stream).at(reduce=2, layers=1)
        np.testing.assert_array_equal(np.asanyarray(found.dataobj), volume[...].T)
        steps = np.array(whole.shape) / found.shape
        self.assertEqual(list(steps[:2]), [4, 4])
        np.testing.assert_allclose(found.affine, AFFINE @ np.diag([*steps, 1]))
        np.testing.assert_allclose(found.header.get_zooms(), np.array(whole.header.get_zooms()) * steps, rtol=1e-5)

    def test_not_of_nifti(self) -> None:
        array = blob((12, 20, 30))
        found = trivelet.nibabel_image(trivelet.encode(array))
        np.testing.assert_array_equal(np.asanyarray(found.dataobj), array.T)
        found = trivelet.nibabel_image(trivelet.encode(array[0]), affine=AFFINE)
        np.testing.assert_array_equal(found.dataobj[5:9, 3, 0], array[0].T[5:9, 3])
        np.testing.assert_array_equal(found.affine, AFFINE)
        with open(self.folder / "a.mha", "wb") as file:
            file.write(b"ObjectType = Image\nNDims = 3\nDimSize = 30 20 12\nElementType = MET_SHORT\n")
            file.write(b"ElementSpacing = 0.5 0.75 2\nElementDataFile = LOCAL\n" + array.tobytes())
        stream = self.encode(self.folder / "a.mha")
        with self.assertRaisesRegex(trivelet.UnsupportedError, "metaimage.*affine"):
            trivelet.nibabel_image(stream)
        found = trivelet.nibabel_image(stream, affine=AFFINE)
        np.testing.assert_array_equal(np.asanyarray(found.dataobj), array.T)
        ((_, meta, _),) = trivelet.napari.get_reader(str(stream))(str(stream))
        self.assertEqual(meta["scale"], (2, 0.75, 0.5))
        vectors = RANDOM.normal(size=(12, 20, 30, 3)).astype("f4")  # more than a voxel has here: the first axis
        with open(self.folder / "v.mha", "wb") as file:
            file.write(b"ObjectType = Image\nNDims = 3\nDimSize = 30 20 12\nElementType = MET_FLOAT\n")
            file.write(b"ElementNumberOfChannels = 3\nElementSpacing = 0.5 0.75 2\nElementDataFile = LOCAL\n")
            file.write(vectors.tobytes())
        volume = trivelet.open(self.encode(self.folder / "v.mha"))
        np.testing.assert_array_equal(volume[...].reshape(vectors.shape), vectors)
        self.assertEqual((volume.axes, volume.spacing), ("tzyx", (2, 0.75, 0.5, 1)))
        self.assertRaises(trivelet.UnsupportedError, trivelet.nibabel_image, trivelet.encode(np.zeros((4, 4, 4, 4, 3), "u1")))

    def test_analyze_has_no_matrix(self) -> None:
        array = blob((10, 12, 5), "i2")
        header = nibabel.Spm99AnalyzeHeader()
        header.set_data_dtype("i2")
        header.set_data_shape(array.shape)
        header.set_zooms((2, 3, 4))
        header["origin"][:3] = 6, 4, 3  # where NIfTI has the code of a matrix
        (self.folder / "spm.hdr").write_bytes(header.binaryblock)
        (self.folder / "spm.img").write_bytes(array.astype(header.endianness + "i2").tobytes(order="F"))
        stream = self.encode(self.folder / "spm.hdr")
        volume = trivelet.open(stream)
        self.assertIsNone(volume.affine)
        self.assertEqual(volume.spacing[:3], (4, 3, 2))
        with self.assertRaisesRegex(trivelet.UnsupportedError, "affine"):
            trivelet.nibabel_image(stream)
        found = trivelet.nibabel_image(stream, affine=AFFINE)
        np.testing.assert_array_equal(np.asanyarray(found.dataobj), array)
        np.testing.assert_array_equal(found.affine, AFFINE)

    def dicom_series(self, name: str, places, *, explicit=True, big=False, **attributes) -> np.ndarray:
        """Writes a file for each place; the pixels, from file to file."""
        order = ">" if big else "<"

        def element(group, number, vr, value):
            value = value.encode() if isinstance(value, str) else value
            value += (b"\0" if vr in ("UI", "OW") else b" ") * (len(value) % 2)
            head = struct.pack(order + "HH", group, number)
            if not explicit:
                return head + struct.pack("<I", len(value)) + value
            long = vr in ("OW", "SQ")
            return head + vr.encode() + struct.pack(order + ("HI" if long else "H"), *([0] if long else []), len(value)) + value

        def short(group, number, value):
            return element(group, number, "US", struct.pack(order + "H", value))

        def text(values):
            return "\\".join(f"{v:.10g}" for v in values)

        pixels = blob((len(places), 10, 14))
        (self.folder / name).mkdir()
        syntax = b"1.2.840.10008.1.2" + (b".2" if big else b".1" if explicit else b"") + b"\0"
        syntax += b"\0" * (len(syntax) % 2)
        for z, place in enumerate(places):
            slope = attributes.get("slopes", [2.5] * len(places))[z]
            # A sequence of undefined length stands before the place.
            inside = element(8, 0x100, "SH", "code")
            items = struct.pack(order + "HHI", 0xFFFE, 0xE000, 0xFFFFFFFF) + inside
            items += struct.pack(order + "HHI", 0xFFFE, 0xE00D, 0) + struct.pack(order + "HHI", 0xFFFE, 0xE0DD, 0)
            sequence = struct.pack(order + "HH", 8, 0x2112) + (b"SQ\0\0" if explicit else b"") + b"\xff" * 4 + items
            data = [
                bytes(128), b"DICM", struct.pack("<HH2sH", 2, 0x10, b"UI", len(syntax)), syntax,
                element(8, 0x18, "UI", f"1.2.3.{z}"), sequence, element(0x18, 0x50, "DS", "4"),
                element(0x20, 0xE, "UI", "1.2.3"), element(0x20, 0x13, "IS", str(z)),
                element(0x20, 0x32, "DS", text(place)), element(0x20, 0x37, "DS", text(attributes.get("plane", TILTED))),
                short(0x28, 2, 1), short(0x28, 0x10, 10), short(0x28, 0x11, 14), element(0x28, 0x30, "DS", "0.75\\0.5"),
                short(0x28, 0x100, 16), short(0x28, 0x101, 16), short(0x28, 0x102, 15), short(0x28, 0x103, 1),
                element(0x28, 0x1052, "DS", "-1000"), element(0x28, 0x1053, "DS", str(slope)),
                element(0x7FE0, 0x10, "OW", pixels[z].astype(order + "i2").tobytes()),
            ]  # fmt: skip
            (self.folder / name / f"{z:02}.dcm").write_bytes(b"".join(data))
        return pixels

    def test_dicom(self) -> None:
        """Place, spacing and scale are those of the NIfTI file that the program makes of the same stream."""
        normal = np.cross(TILTED[:3], TILTED[3:])
        line = [np.array([-90.0, 20, 5]) + 2.5 * z * normal for z in range(7)]
        tilted = [np.array([-90.0, 20, 5]) + z * np.array([0, 0.9, 2.5]) for z in range(7)]
        flat = (1, 0, 0, 0, 1, 0)
        for name, places, options in (
            ("line", line, {}),
            ("implicit", line, {"explicit": False}),
            ("big", line, {"big": True}),
            ("tilted gantry", tilted, {"plane": flat}),
            ("times", [p for p in line for _ in range(3)], {}),
            ("a gap", line[:4] + [p + normal for p in line[4:]], {}),
            ("rounded", [line[0] + (2.5 * z + 0.006 * (z % 2)) * normal for z in range(7)], {}),
            ("the most frequent", [line[0] + z * normal for z in (0, 1, 2, 5, 9, 14)], {}),
            ("one", line[:1], {}),
            ("a localizer", line, {}),
        ):
            with self.subTest(name):
                self.dicom_series(name, places, **options)
                if name == "a localizer":
                    self.dicom_series("other", [(0, 0, 0)], plane=(0, 1, 0, 0, 0, -1))
                    (self.folder / "other" / "00.dcm").rename(self.folder / name / "00000.dcm")
                stream = self.encode(self.folder / name)
                nii = self.folder / (name + ".nii")
                subprocess.run([PROGRAM, "decode", stream, nii], check=True, capture_output=True)
                expected, found, volume = nibabel.load(nii), trivelet.nibabel_image(stream), trivelet.open(stream)
                np.testing.assert_allclose(volume.affine, expected.affine, atol=2e-5)
                np.testing.assert_allclose(found.affine, expected.affine, atol=2e-5)
                zooms = expected.header.get_zooms()
                np.testing.assert_allclose(volume.spacing, zooms[:3][::-1] if len(zooms) == 3 else zooms[::-1], rtol=1e-5)
                if name != "tilted gantry":  # nibabel takes the length of the step, which is not along the normal
                    np.testing.assert_allclose(found.header.get_zooms(), zooms, rtol=1e-5)
                self.assertEqual(volume.scale, (2.5, -1000.0))
                np.testing.assert_array_equal(found.get_fdata(), expected.get_fdata())
        self.dicom_series("slopes", line, slopes=[1, 2, 3, 4, 5, 6, 7])
        stream = self.encode(self.folder / "slopes")
        self.assertIsNone(trivelet.open(stream).scale)
        with self.assertWarnsRegex(UserWarning, "slopes of their own"):
            trivelet.nibabel_image(stream)
        volume = trivelet.open(self.encode(self.folder / "line", "--transform", "wavelet")).at(reduce=1)
        np.testing.assert_allclose(volume.spacing[1:], (1.5, 1.0))
        self.assertRegex(pickle.loads(pickle.dumps(volume)).__repr__(), "reduce=1")

    def test_nifti_place(self) -> None:
        """Without nibabel, from either matrix; None where the header has none."""
        array = blob((8, 7, 6))
        affine = AFFINE @ np.diag([-1, 1, 1, 1])  # no half turn, of which readers round the quaternion differently
        for name, codes in (("s.nii", (0, 2)), ("q.nii", (1, 0)), ("none.nii", (0, 0))):
            image = nibabel.Nifti1Image(array, affine)
            image.set_qform(affine, codes[0])
            image.set_sform(affine, codes[1])
            nibabel.save(image, self.folder / name)
            volume = trivelet.open(self.encode(self.folder / name))
            if name == "none.nii":
                self.assertIsNone(volume.affine)
            else:
                np.testing.assert_allclose(volume.affine, nibabel.load(self.folder / name).affine, atol=1e-5)
            self.assertEqual(volume.scale, (1.0, 0.0))
        volume = trivelet.open(trivelet.encode(array))
        self.assertEqual((volume.affine, volume.spacing, volume.scale), (None, None, (1.0, 0.0)))

    def test_layers(self) -> None:
        array = blob((600, 500, 6))
        nibabel.save(nibabel.Nifti1Image(array, AFFINE), self.folder / "a.nii")
        stream = self.encode(self.folder / "a.nii", "--transform", "wavelet", "--preset", "fast")
        reader = trivelet.napari.get_reader([str(stream)])
        ((data, meta, kind),) = reader([str(stream)])
        self.assertEqual((kind, meta["name"], meta["multiscale"]), ("image", "out", True))
        np.testing.assert_allclose(meta["scale"], nibabel.load(self.folder / "a.nii").header.get_zooms()[::-1], rtol=1e-6)
        self.assertEqual([d.shape[1:] for d in data], [(500, 600), (250, 300), (125, 150)])
        np.testing.assert_array_equal(np.asarray(data[0][3]), array.T[3])
        colours = self.folder / "colours.tvl"
        colours.write_bytes(trivelet.encode(RANDOM.integers(0, 255, (5, 20, 30, 3), "u1"), axes="zyxc"))
        ((data, meta, kind),) = trivelet.napari.read(str(colours))
        self.assertEqual((data.shape, meta.get("rgb"), len(meta["scale"])), ((5, 20, 30, 3), True, 3))
        video = self.folder / "video.tvl"
        with trivelet.VideoWriter(video, 32, 16, "gray") as writer:
            writer.write(np.zeros((16, 32), np.uint8))
        self.assertIsNone(trivelet.napari.get_reader(str(video)))
        self.assertIsNone(trivelet.napari.get_reader(str(self.folder / "missing.tvl")))

    def test_manifest(self) -> None:
        path = Path(trivelet.__file__).with_name("napari.yaml")
        if npe2:
            manifest = npe2.PluginManifest.from_file(path)
            (command,) = manifest.contributions.commands
            (reader,) = manifest.contributions.readers
            self.assertEqual((reader.command, reader.filename_patterns), (command.id, ["*.tvl"]))
        self.assertIn("python_name: trivelet.napari:get_reader", path.read_text())

    def test_damaged_headers(self) -> None:
        nibabel.save(nibabel.Nifti1Image(blob((8, 8, 4)), AFFINE), self.folder / "a.nii")
        from trivelet import _envelope

        good = trivelet.open(self.encode(self.folder / "a.nii")).envelope
        self.assertEqual(_envelope.parse(good).format, "nifti-1")
        for end in range(1, len(good)):
            self.assertRaises(trivelet.Error, _envelope.parse, good[:end])
        for _ in range(300):
            damaged = bytearray(good)
            damaged[int(RANDOM.integers(0, len(good)))] ^= 1 << int(RANDOM.integers(0, 8))
            try:
                _envelope.spacing_of(_envelope.parse(bytes(damaged)), 1)
            except trivelet.Error:
                pass


if __name__ == "__main__":
    unittest.main()
