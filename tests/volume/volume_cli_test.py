#!/usr/bin/env python3
"""Volumes through the program, checked with nibabel and pydicom: files round-trip byte for byte, parts equal those of
the whole, error bounds hold, bad input is refused with the right exit code.

    volume_cli_test.py TRIVELET [FILE...]     with files or folders: all promises on each of those instead
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import zlib

try:
    import nibabel
    import numpy as np
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TRIVELET = sys.argv[1]
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
failures = 0


def run(*args, code=0):
    r = subprocess.run([TRIVELET, *map(str, args)], capture_output=True, text=True)
    if r.returncode != code:
        raise AssertionError(f"{' '.join(map(str, args))}: exit code {r.returncode}, not {code}\n{r.stdout}{r.stderr}")
    return r.stdout, r.stderr


def content(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def unpacked(path):
    """What a file says, whatever its compression: NRRD and MetaImage pack their voxels themselves."""
    data = content(path)
    if data.startswith(b"NRRD") and b"encoding: gz" in data[:4096]:
        head, _, body = data.partition(b"\n\n")
        return head + b"\n\n" + gzip.decompress(body)
    if b"CompressedData = True" in data[:4096] and b"ElementDataFile = LOCAL" in data:
        head, mark, body = data.partition(b"ElementDataFile = LOCAL\n")
        lines = [l for l in head.split(b"\n") if not l.startswith(b"CompressedDataSize")]
        return b"\n".join(lines) + mark + zlib.decompress(body)
    return data


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", what)


def bytes_read(stderr):
    return int(stderr.split(" bytes read")[0].split()[-1])


def same_files(a, b, what):
    if os.path.isdir(a):
        names = sorted(os.listdir(a))
        check(names == sorted(os.listdir(b)), f"{what}: names of files")
        for n in names:
            check(content(os.path.join(a, n)) == content(os.path.join(b, n)), f"{what}: {n} differs")
    else:
        check(unpacked(a) == unpacked(b), f"{what}: the restored file differs")


def round_trip(path, folder, *options, typed=()):
    name = os.path.basename(path)
    coded = os.path.join(folder, name + ".tvl")
    again = os.path.join(folder, "again", name)
    run("encode", path, coded, "-y", *typed, *options)
    out, _ = run("verify", coded, "--against", path, *typed)
    check("identical" in out, f"{name}: verify says {out}")
    run("decode", coded, again, "-y")
    same_files(path, again, name)
    return coded, again


def noise_volume(shape, dtype, seed=1):
    """Smooth, a little noise, air around: what volumes are like."""
    random = np.random.default_rng(seed)
    grids = np.meshgrid(*[np.linspace(-1, 1, n) for n in shape[:3]], indexing="ij")
    v = np.where(sum(g * g for g in grids) < 0.8, 1 + np.sin(5 * grids[0]) * np.cos(4 * grids[1] + grids[2]), 0)
    v = v[..., None] if len(shape) > 3 else v
    noisy = np.broadcast_to(v, shape) * (1 + 0.02 * random.standard_normal(shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (1e-3 * noisy).astype(dtype)
    top = min(np.iinfo(dtype).max, 3000)
    low = max(np.iinfo(dtype).min, -1000)
    return np.clip(low + noisy * (top - low) / 2.2, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def test_nifti(folder):
    affine = np.array([[-2.0, 0, 0, 90], [0, 2, 0.5, -126], [0, -0.5, 3, -72], [0, 0, 0, 1]])
    kinds = [("int16", "<", (40, 33, 21)), ("uint8", "<", (37, 18, 9)), ("int8", "<", (16, 20, 5)),
             ("uint16", ">", (31, 17, 6)), ("int32", ">", (20, 21, 5)), ("float32", "<", (24, 22, 7)),
             ("float64", ">", (9, 10, 4)), ("int16", ">", (16, 18, 7, 9))]
    for i, (kind, order, shape) in enumerate(kinds):
        dtype = np.dtype(kind).newbyteorder(order)
        data = noise_volume(shape, kind, i).astype(dtype)
        header = nibabel.Nifti1Header(endianness=order)
        header.set_data_dtype(dtype)
        header["descrip"] = b"made for a test"
        image = nibabel.Nifti1Image(data, affine, header)
        if np.dtype(kind).kind != "f":
            image.header.set_slope_inter(2.0, -100)
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"an extension"))
        path = os.path.join(folder, f"{kind}{'be' if order == '>' else ''}{len(shape)}.nii" + (".gz" if i % 2 else ""))
        nibabel.save(image, path)
        coded, again = round_trip(path, folder)
        restored = nibabel.load(again)
        check(np.array_equal(restored.dataobj.get_unscaled(), nibabel.load(path).dataobj.get_unscaled()), f"{path}: voxels")
        check(np.allclose(restored.affine, nibabel.load(path).affine), f"{path}: affine")
        # a region is the sub-array, under a header that says where it lies
        w, h, d = shape[0] // 2, shape[1] // 3, 2
        part = os.path.join(folder, "again", "part.nii")
        run("decode", coded, part, "-y", "--region", f"3,2,1,{w},{h},{d}")
        p = nibabel.load(part)
        raw = np.asanyarray(nibabel.load(path).dataobj.get_unscaled())
        check(np.array_equal(p.dataobj.get_unscaled(), raw[3:3 + w, 2:2 + h, 1:1 + d]), f"{path}: region")
        check(np.allclose(p.affine[:3, 3], (affine @ [3, 2, 1, 1])[:3], atol=1e-4), f"{path}: place of the region")
        # bounds
        if np.dtype(kind).kind in "iu" and len(shape) == 3:
            for e in (1, 2, 5, 20) if FULL else (1, 5):
                near = os.path.join(folder, "near.tvl")
                run("encode", path, near, "-y", "--max-error", e, "--preset", "fast")
                run("decode", near, part, "-y")
                worst = np.abs(np.asanyarray(nibabel.load(part).dataobj.get_unscaled()).astype(np.int64) - raw.astype(np.int64)).max()
                check(worst <= e, f"{path}: error {worst} above {e}")
                check(e < 5 or worst > 0, f"{path}: nothing was lost with --max-error {e}")
                run("verify", near, "--against", path)
            out, _ = run("info", near, "--json")
            check(json.loads(out)["volume"]["max_error"] <= 20, f"{path}: info on the bound")
    pair = nibabel.Nifti1Pair(noise_volume((12, 11, 10), "int16"), affine)
    nibabel.save(pair, os.path.join(folder, "pair.hdr"))
    coded, again = round_trip(os.path.join(folder, "pair.hdr"), folder)
    same_files(os.path.join(folder, "pair.img"), os.path.join(folder, "again", "pair.img"), "pair.img")
    two = nibabel.Nifti2Image(noise_volume((12, 11, 10), "uint16"), affine)
    nibabel.save(two, os.path.join(folder, "two.nii.gz"))
    round_trip(os.path.join(folder, "two.nii.gz"), folder)
    # NaN: exact, lossless or not
    nan = noise_volume((12, 11, 10), "float32")
    nan[3, 3, 3] = np.nan
    path = os.path.join(folder, "nan.nii")
    nibabel.save(nibabel.Nifti1Image(nan, affine), path)
    round_trip(path, folder)
    for options in (("--max-error", "0.1"), ("-q", "50")):
        run("encode", path, os.path.join(folder, "n.tvl"), "-y", *options)
        run("decode", os.path.join(folder, "n.tvl"), os.path.join(folder, "again", "nan.nii"), "-y")
        found = np.asanyarray(nibabel.load(os.path.join(folder, "again", "nan.nii")).dataobj)
        check(np.array_equal(np.isnan(found), np.isnan(nan)), f"NaN with {options}")
    # lossy floats and wide integers are good in proportion to their values; a constant volume takes any target
    for kind in ("float32", "int32"):
        path = os.path.join(folder, f"wide_{kind}.nii")
        data = noise_volume((40, 40, 20), "float32") * (1 if kind == "float32" else 1e9)
        nibabel.save(nibabel.Nifti1Image(data.astype(kind), affine), path)
        run("encode", path, os.path.join(folder, "n.tvl"), "-y", "--bpp", 4)
        out, _ = run("compare", path, os.path.join(folder, "n.tvl"), "--json")
        check(json.loads(out)["psnr"] > 45, f"{path}: {json.loads(out)['psnr']} dB at 4 bits per voxel")
        check("max_error" not in json.loads(run("info", os.path.join(folder, "n.tvl"), "--json")[0])["volume"],
              f"{path}: a lossy stream promises a bound")
    path = os.path.join(folder, "constant.nii")
    nibabel.save(nibabel.Nifti1Image(np.full((9, 8, 7), 5, "int16"), affine), path)
    for options in ((), ("--psnr", 50), ("-q", 10), ("--max-error", 3)):
        run("encode", path, os.path.join(folder, "n.tvl"), "-y", *options)
        check("identical" in run("verify", os.path.join(folder, "n.tvl"), "--against", path)[0], f"constant, {options}")
    # the other formats it can be written in
    path = os.path.join(folder, "int163.nii")
    if not os.path.exists(path):
        path = os.path.join(folder, "int163.nii.gz")
    coded = os.path.join(folder, os.path.basename(path) + ".tvl")
    for name in ("o.nrrd", "o.mha", "o.nii.gz"):
        run("decode", coded, os.path.join(folder, "again", name), "-y")
        out, _ = run("compare", os.path.join(folder, "again", name), coded)
        check("identical" in out, f"{name}: {out}")


def test_parts_and_quality(folder):
    data = noise_volume((96, 80, 40), "int16")
    path = os.path.join(folder, "big.nii")
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    coded = os.path.join(folder, "big.tvl")
    part = os.path.join(folder, "again", "big.nii")
    for transform in ("wavelet", "prediction"):
        run("encode", path, coded, "-y", "--transform", transform, "--slab", 16)
        _, whole = run("decode", coded, part, "-y")
        check(content(part) == content(path), f"{transform}: restored")
        _, some = run("decode", coded, part, "-y", "--slices", "20:30")
        check(bytes_read(some) < 0.6 * bytes_read(whole), f"{transform}: a part reads {some}, the whole {whole}")
        check(np.array_equal(np.asanyarray(nibabel.load(part).dataobj), data[:, :, 20:30]), f"{transform}: slices")
        run("decode", coded, part, "-y", "--region", "5,6,30,20,30,9")
        check(np.array_equal(np.asanyarray(nibabel.load(part).dataobj), data[5:25, 6:36, 30:39]), f"{transform}: region")
    run("decode", coded, part, "-y", "--reduce", 1, code=5)
    run("encode", path, coded, "-y", "--transform", "wavelet", "--slab", 16, "--levels", "2x3")
    run("decode", coded, part, "-y", "--reduce", 1)
    small = nibabel.load(part)
    check(small.shape == (48, 40, 20), f"reduced to {small.shape}")
    check(np.allclose(small.header.get_zooms()[:3], 2), "spacing of the reduced volume")
    mean = data[::2, ::2, ::2].astype(float)
    reduced = np.asanyarray(small.dataobj).astype(float)[:, :, :mean.shape[2]]
    check(np.abs(reduced - mean[:, :, :reduced.shape[2]]).mean() < 0.1 * np.ptp(data), "the reduced volume looks like it")
    run("decode", coded, part, "-y", "--region", "90,0,0,10,10,10", code=2)
    run("decode", coded, part, "-y", "--slices", "80:90", code=2)
    # lossy targets
    run("encode", path, coded, "-y", "--bpp", "1")
    check(os.path.getsize(coded) <= data.size / 8, "--bpp 1 is exceeded")
    run("encode", path, coded, "-y", "--ratio", "20")
    check(os.path.getsize(coded) <= data.nbytes / 20, "--ratio 20 is exceeded")
    run("encode", path, coded, "-y", "--psnr", "50")
    out, _ = run("compare", path, coded, "--json")
    # What is clamped at the least value comes out better than asked for, and half of this volume is that.
    check(49.8 < json.loads(out)["psnr"] < 54, f"--psnr 50 gives {json.loads(out)['psnr']}")
    run("encode", path, coded, "-y", "--max-error", "3", "-q", "50", code=2)
    run("view", path, "--slice", "y=40", "-o", os.path.join(folder, "again", "y.pgm"))
    run("view", coded, "--montage", "-o", os.path.join(folder, "again", "m.pgm"))
    pgm = open(os.path.join(folder, "again", "y.pgm"), "rb").read()
    check(pgm.startswith(b"P5\n96 40\n255\n") or b"96 40" in pgm[:20], "size of the picture")
    picture = np.frombuffer(pgm[-96 * 40:], np.uint8).reshape(40, 96)[::-1]
    plane = data[:, 40, :].T.astype(float)
    wanted = np.rint(255 * (plane - plane.min()) / np.ptp(plane))
    check(np.abs(picture - wanted).max() <= 1, "the picture shows the plane")


def test_standard_input_and_header(folder):
    """A volume through a pipe comes back as the file; texts of its header are told when asked for, cleaned."""
    image = nibabel.Nifti1Image(noise_volume((12, 10, 8), "uint8"), np.eye(4))
    image.header["descrip"] = b"bell\x07 and patient"
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"sixteen bytes or more"))
    coded = os.path.join(folder, "piped.tvl")
    for kind in ("nii", "nhdr"):
        path = os.path.join(folder, f"piped.{kind}")
        if kind == "nii":
            nibabel.save(image, path)
        else:
            open(os.path.join(folder, "piped.raw"), "wb").write(bytes(960))
            open(path, "w").write("NRRD0004\ntype: uint8\ndimension: 3\nsizes: 12 10 8\nencoding: raw\n"
                                  "data file: piped.raw\nwho:=patient\n")  # fmt: skip
        run("encode", path, coded, "-y")
        out, _ = run("info", coded, "--show-private")
        check("patient" in out and "\x07" not in out, f"{kind}: info --show-private: {out}")
        check(kind == "nhdr" or "bytes of extensions" in out, f"info of extensions: {out}")
        check("patient" not in run("info", coded)[0], f"{kind}: info tells private texts")
        with open(path, "rb") as piped:
            r = subprocess.run([TRIVELET, "encode", "-", coded + "2", "-y", "--format", "nifti" if kind == "nii" else "nrrd"], stdin=piped, capture_output=True, text=True)
        if kind == "nii":
            check(r.returncode == 0, f"from a pipe: {r.stderr}")
            back = os.path.join(folder, "again", "piped.nii")
            run("decode", coded + "2", back)
            same_files(path, back, "from a pipe")
        else:
            check(r.returncode != 0 and "piped.raw" in r.stderr, f"a detached header from a pipe: {r.stderr}")


whole_volumes = {}  # voxels and bytes read, by the file's content and the options


def whole_volume(coded, folder, options):
    key = (hash(open(coded, "rb").read()), options)
    if key not in whole_volumes:
        path = os.path.join(folder, "again", "whole.nii")
        _, read = run("decode", coded, path, "-y", *options)
        whole_volumes[key] = (np.array(nibabel.load(path).dataobj.get_unscaled()), bytes_read(read))
    return whole_volumes[key]


def check_region(coded, shape, box, folder, what, *options, blocks=2):
    """A region is the sub-array of what is decoded with the same options, and reads fewer bytes where there are several
    code blocks."""
    part = os.path.join(folder, "again", "part.nii")
    a, all_bytes = whole_volume(coded, folder, options)
    _, some_read = run("decode", coded, part, "-y", "--region", ",".join(map(str, box)), *options)
    step = 2 ** int(options[options.index("--reduce") + 1]) if "--reduce" in options else 1
    b = np.asanyarray(nibabel.load(part).dataobj.get_unscaled())
    first = [v // step for v in box[:2]]
    last = [(v + n - 1) // step + 1 for v, n in zip(box[:2], box[3:5])]
    a = a[first[0]:last[0], first[1]:last[1]]
    if step == 1:
        a = a[:, :, box[2]:box[2] + box[5]]
    else:  # which slices are left depends on the slabs: find them
        n = b.shape[2]
        at = [z for z in range(a.shape[2] - n + 1) if np.array_equal(a[:, :, z:z + n], b)]
        check(len(at) > 0, f"{what}: {options} region {box} is no part of the whole")
        a = a[:, :, at[0]:at[0] + n] if at else b
    check(np.array_equal(a, b), f"{what}: {options} region {box} differs from the whole")
    check(blocks == 1 or bytes_read(some_read) < all_bytes,
          f"{what}: {options} region {box} of {shape} reads {bytes_read(some_read)} bytes, the whole {all_bytes}")
    return bytes_read(some_read) / all_bytes


def check_cuts(path, coded, folder, what, typed=()):
    """What info says of each layer is what decoding so many layers gives; truncate says the same of its result."""
    out, _ = run("info", coded, "--json")
    layers = json.loads(out)["layers"]
    cut, again = os.path.join(folder, "cut.tvl"), os.path.join(folder, "again", "cut.nii")
    for n, layer in enumerate(layers, 1):
        check("max_error" in layer, f"{what}: info does not know layer {n}")
        run("truncate", coded, cut, "-y", "--layers", n)
        out, _ = run("compare", path, cut, "--json", *typed)
        got = json.loads(out)
        check(got["max_error"] <= layer["max_error"], f"{what}: layer {n}: error {got['max_error']}, info says {layer}")
        psnr = lambda v: 999 if v is None or v == "inf" else float(v)  # infinite when exact
        check(abs(psnr(got["psnr"]) - psnr(layer["psnr"])) < 0.01, f"{what}: layer {n}: {got['psnr']} dB, info says {layer}")
        out, _ = run("info", cut, "--json")
        left = json.loads(out)["layers"]
        check(left[n - 1].get("max_error") == layer["max_error"] and left[-1].get("max_error") == layer["max_error"],
              f"{what}: layer {n}: info of the cut stream says {left}")
    check(layers[-1]["max_error"] == 0, f"{what}: the last layer is not exact")
    return [l["max_error"] for l in layers]


def check_kept_parts(folder):
    """--keep-partial: slices of damaged slabs are 0 and named, all others are as they were; the exit code says it."""
    broken, kept = os.path.join(folder, "kept.tvl"), os.path.join(folder, "kept.nii")

    def damaged(coded, which):
        stream = bytearray(open(coded, "rb").read())
        gops = json.loads(run("info", coded, "--json")[0])["gops"]
        for n in which:
            stream[gops[n]["offset"] + gops[n]["bytes"] // 2] ^= 0x55
        open(broken, "wb").write(bytes(stream))
        return gops

    for shape, slab in (((40, 30, 20), 8), ((40, 30, 6, 5), 4)):
        data = noise_volume(shape, "int16")
        if len(shape) == 4:  # volumes that have nothing in common are coded one after the other
            data = np.random.default_rng(5).integers(0, 2000, (40, 30, 1, 5)) + np.arange(6).reshape(1, 1, 6, 1)
            data = data.astype("int16")
        path, coded = os.path.join(folder, "whole.nii"), os.path.join(folder, "whole.tvl")
        nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
        for options in (("--transform", "prediction"), ("--transform", "wavelet")):
            run("encode", path, coded, "-y", "--slab", slab, *options)
            check(not json.loads(run("info", coded, "--json")[0])["volume"]["along_fourth_axis"], f"{shape}: the order")
            flat = data.reshape(40, 30, -1, order="F")
            for which in ((0,), (1,), (-1,), (0, 2), ()):
                gops = damaged(coded, which)
                due, at = flat.copy(), 0
                for n, gop in enumerate(gops):
                    if n in which or n - len(gops) in which:
                        due[..., at : at + gop["frames"]] = 0
                    at += gop["frames"]
                said = run("decode", broken, kept, "-y", "--keep-partial", code=4 if which else 0)[1]
                found = np.asanyarray(nibabel.load(kept).dataobj).reshape(flat.shape, order="F")
                check(np.array_equal(found, due), f"{shape}, {options}: kept parts without {which}")
                check(said.count("damaged, 0 instead: ") == len(which), f"{shape}, {options}: damage of {which}: {said}")
                if which == (1,):
                    place = "--slices 8:16 (" if len(shape) == 3 else "slice 4 of volume 0 to slice 1 of volume 1 ("
                    check(place in said, f"the place of the damage: {said}")
            # A part of every volume: damage between the parts does not matter.
            damaged(coded, (1,))
            last = np.s_[10:20, 5:25, 3:4]
            box = ("--region", "10,5,3,10,20,1")
            said = run("decode", broken, kept, "-y", "--keep-partial", *box, code=0)[1]
            check(np.array_equal(np.asanyarray(nibabel.load(kept).dataobj), data[last]), f"{shape}: a part of it: {said}")
        # The rest of a stream that was cut, if it can be read at all.
        stream = open(coded, "rb").read()
        open(broken, "wb").write(stream[: gops[2]["offset"] + 50])
        run("decode", broken, kept, "-y", "--keep-partial", code=4)
        found = np.asanyarray(nibabel.load(kept).dataobj).reshape(flat.shape, order="F")
        due = flat.copy()
        due[..., 2 * slab :] = 0
        check(np.array_equal(found, due), f"{shape}: a stream that was cut")
    run("decode", broken, kept, "-y", code=4)
    check_kept_parts_across_volumes(folder, damaged)
    check_many_lost_slabs(folder)


def check_kept_parts_across_volumes(folder, damaged):
    """Slabs that hold slices of all volumes: the fourth axis was coded first."""
    path, coded, broken, kept = (os.path.join(folder, n) for n in ("whole.nii", "whole.tvl", "kept.tvl", "kept.nii"))
    data = np.repeat(noise_volume((40, 30, 8, 1), "int16"), 6, axis=3)
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    gops = lambda: json.loads(run("info", coded, "--json")[0])["gops"]

    def check_lost(which, options, places, shown=np.s_[:]):
        damaged(coded, which)
        due, at = data.reshape(40, 30, 48).copy(), 0  # as they are coded
        for n, gop in enumerate(gops()):
            if n in which or n - len(gops()) in which:
                due[..., at : at + gop["frames"]] = 0
            at += gop["frames"]
        due = due.reshape(40, 30, 8, 6)[shown]
        run("decode", broken, kept, "-y", *options, code=4 if places else 0)
        said = run("decode", broken, kept, "-y", "--keep-partial", *options, code=4 if places else 0)[1]
        found = np.asanyarray(nibabel.load(kept).dataobj).reshape(due.shape)
        check(np.array_equal(found, due), f"the fourth axis, without {which}, {options}")
        check(said.count("damaged, 0 instead: ") == len(places), f"damage of {which}, {options}: {said}")
        for place, slices in places:
            check(f": damaged, 0 instead: {place} (" in said, f"the place of {which} is not {place}: {said}")
        slices = sum(n for _, n in places)
        check(not places or f"{slices} of {due.shape[2] * 6} slices are damaged" in said, f"{slices} slices: {said}")

    for options in (("--transform", "prediction"), ("--transform", "wavelet")):
        run("encode", path, coded, "-y", "--slab", 12, *options)
        check(json.loads(run("info", coded, "--json")[0])["volume"]["along_fourth_axis"], "the fourth axis first")
        check_lost((), (), [])
        check_lost((1,), (), [("slices 2 to 3 of all volumes", 12)])
        check_lost((0, 2), (), [("slices 0 to 1 of all volumes", 12), ("slices 4 to 5 of all volumes", 12)])
        check_lost((2, -1), (), [("slices 4 to 7 of all volumes", 24)])
        check_lost((1,), ("--slices", "4:8"), [], np.s_[:, :, 4:])
        check_lost((1,), ("--region", "5,3,3,20,10,2"), [("slice 3 of all volumes", 6)], np.s_[5:25, 3:13, 3:5])
    run("encode", path, coded, "-y", "--slab", 8, "--transform", "prediction")
    check_lost((1,), (), [("slice 1 of volumes 2 to 5, slice 2 of volumes 0 to 3", 8)])
    check_lost((1, 2), (), [("slice 1 of volumes 2 to 5, slices 2 to 3 of all volumes", 16)])
    run("encode", path, coded, "-y", "--slab", 4, "--transform", "prediction")
    check_lost((0,), (), [("slice 0 of volumes 0 to 3", 4)])
    # A stream that was cut.
    stream, at = open(coded, "rb").read(), gops()[2]["offset"]
    open(broken, "wb").write(stream[: at + 10])
    run("decode", broken, kept, "-y", "--keep-partial", code=4)
    due = data.reshape(40, 30, 48).copy()
    due[..., 8:] = 0
    found = np.asanyarray(nibabel.load(kept).dataobj)
    check(np.array_equal(found, due.reshape(40, 30, 8, 6)), "the fourth axis, a stream that was cut")


def check_many_lost_slabs(folder):
    """Of more than a thousand places 100 are named, the others counted."""
    path, coded, kept = (os.path.join(folder, n) for n in ("many.nii", "many.tvl", "many_kept.nii"))
    data = np.random.default_rng(2).integers(1, 200, (8, 8, 2600)).astype("uint8")
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    run("encode", path, coded, "-y", "--slab", 1, "--preset", "fast")
    stream, gops = bytearray(open(coded, "rb").read()), json.loads(run("info", coded, "--json")[0])["gops"]
    for gop in gops[::2]:
        stream[gop["offset"] + gop["bytes"] - 8] ^= 0x55
    open(coded, "wb").write(bytes(stream))
    said = run("decode", coded, kept, "-y", "--keep-partial", code=4)[1]
    found = np.asanyarray(nibabel.load(kept).dataobj)
    data[..., ::2] = 0
    check(np.array_equal(found, data), "1300 damaged slabs")
    check(said.count("damaged, 0 instead: --slices") == 100, f"places that are named: {said[:3000]}")
    check("1200 slices in 1200 places more, up to --slices 2598:2599" in said, f"the others: {said[-600:]}")
    check("1300 of 2600 slices are damaged" in said, f"all: {said[-600:]}")


def test_access(folder):
    """`--access` chooses what is read at least; typed sizes stay; it is refused for videos."""
    data = noise_volume((200, 180, 20), "uint8")
    path, coded = os.path.join(folder, "access.nii"), os.path.join(folder, "access.tvl")
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)

    def read(*options):
        run("encode", path, coded, "-y", "--preset", "fast", *options)
        run("verify", coded, "--against", path)
        coding = json.loads(run("info", coded, "--json")[0])["coding"]
        plan = json.loads(run("plan", coded, "--json", "--region", "70,70,9,50,45,5")[0])
        return coding["block_size"], coding["gop_frames"], plan["bytes"] / os.path.getsize(coded), plan["rounds"]

    whole, region = read("--access", "whole"), read("--access", "region")
    check(whole[:2] == (128, 20) and read()[:2] == whole[:2], f"whole volumes: {whole}")
    check(region[:2] == (64, 7) and region[2] < whole[2] / 2 and region[3] <= 2, f"regions: {region}, whole: {whole}")
    check(read("--access", "slices")[:2] == (256, 4), "slices")
    typed = read("--access", "region", "--block-size", 32, "--slab", 5)
    check(typed[:2] == (32, 5), f"typed sizes: {typed}")
    run("encode", path, coded, "-y", "--access", "boxes", code=2)
    film = os.path.join(folder, "film.y4m")
    with open(film, "wb") as f:
        f.write(b"YUV4MPEG2 W16 H16 F25:1 Cmono\nFRAME\n" + bytes(256))
    _, said = run("encode", film, coded, "-y", "--access", "region", code=2)
    check("--access" in said, f"a film with --access: {said}")


def test_regions_and_cuts(folder):
    data = noise_volume((300, 260, 12), "int16")
    path = os.path.join(folder, "wide.nii")
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    coded = os.path.join(folder, "wide.tvl")
    for options in (("--transform", "prediction"), ("--transform", "wavelet", "--slab", 8),
                    ("--levels", "2x3", "--wavelet", "5/3", "--gop", 8), ("-q", "70"),
                    ("--profile", "fast", "--lossless")):
        run("encode", path, coded, "-y", *options)
        for box in ((0, 0, 0, 20, 20, 12), (100, 90, 5, 60, 50, 6), (0, 100, 11, 300, 3, 1)):
            share = check_region(coded, data.shape, box, folder, f"{options}")
            check(share < (0.75 if box[3] == 20 else 1), f"{options}: region {box} reads {share:.2f} of the bytes")
        if "prediction" not in options:
            check_region(coded, data.shape, (33, 40, 6, 77, 60, 5), folder, f"{options}", "--reduce", 1)
            check_region(coded, data.shape, (0, 0, 0, 40, 40, 12), folder, f"{options}", "--max-layers", 4)
    # a file that standard output goes to can be written over, but not read back
    with open(coded, "wb") as f:
        r = subprocess.run([TRIVELET, "encode", path, "-", "--preset", "fast"], stdout=f, stderr=subprocess.PIPE, text=True)
    check(r.returncode == 0 and "not verified" in r.stderr, f"to a redirected standard output: {r.stderr}")
    run("verify", coded)
    # damage where the region does not look is not seen, damage where it does is
    run("encode", path, coded, "-y", "--transform", "wavelet", "--slab", 12)
    out, _ = run("info", coded, "--json")
    gop = json.loads(out)["gops"][0]
    stream = bytearray(open(coded, "rb").read())
    for at in range(gop["offset"] + gop["bytes"] // 2, gop["offset"] + gop["bytes"] - 100, 5000):
        stream[at] ^= 0x55
    broken = os.path.join(folder, "broken.tvl")
    open(broken, "wb").write(bytes(stream))
    run("decode", broken, os.path.join(folder, "again", "x.nii"), "-y", "--region", "100,90,5,60,50,6", code=4)
    # of a damaged slab the others are left, and the program says how to have them
    run("encode", path, coded, "-y", "--slab", 8)
    gops = json.loads(run("info", coded, "--json")[0])["gops"]
    check(len(gops) > 1, f"slabs: {gops}")
    stream = bytearray(open(coded, "rb").read())
    stream[gops[1]["offset"] + gops[1]["bytes"] // 2] ^= 0x55
    open(broken, "wb").write(bytes(stream))
    part = os.path.join(folder, "part.nii")
    check("--slices A:B and --region" in run("decode", broken, part, "-y", code=4)[1], "damage: what is intact")
    run("decode", broken, part, "-y", "--slices", "0:8")
    check(np.array_equal(np.asanyarray(nibabel.load(part).dataobj), data[..., :8]), "intact slices of a damaged volume")
    check_kept_parts(folder)
    # layers: a small volume, every filter
    small = os.path.join(folder, "small.nii")
    nibabel.save(nibabel.Nifti1Image(noise_volume((50, 40, 20), "int16"), np.eye(4)), small)
    for options in (("--transform", "wavelet"), ("--transform", "wavelet", "--profile", "fast"),
                    ("--levels", "1x2", "--wavelet", "haar")):
        run("encode", small, coded, "-y", *options)
        errors = check_cuts(small, coded, folder, f"{options}")
        check(errors[0] > 0, f"{options}: errors of the layers {errors}")
    run("truncate", coded, os.path.join(folder, "cut.tvl"), "-y", "--psnr", 40)
    out, _ = run("compare", small, os.path.join(folder, "cut.tvl"), "--json")
    check(float(json.loads(out)["psnr"] or 999) >= 40, f"truncate --psnr 40: {out}")
    run("extract", coded, os.path.join(folder, "cut.tvl"), "-y", "--reduce", 1, code=5)


def dicom_file(path, pixels, z, number, uid):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = uid
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    ds = FileDataset(path, {}, file_meta=meta, preamble=b"\0" * 128)
    ds.is_little_endian, ds.is_implicit_VR = True, False
    ds.SOPClassUID, ds.SOPInstanceUID = meta.MediaStorageSOPClassUID, uid
    ds.SeriesInstanceUID, ds.StudyInstanceUID = "1.2.3.4", "1.2.3"
    ds.PatientName, ds.PatientID, ds.Modality = "Secret^Patient", "007", "CT"
    ds.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.InstanceNumber = number
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [0, 0, z], [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing, ds.SliceThickness = [0.5, 0.5], 2
    ds.Rows, ds.Columns = pixels.shape
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 1
    ds.RescaleSlope, ds.RescaleIntercept = 2, -1024
    ds.PixelData = pixels.astype("<i2").tobytes()
    ds.save_as(path, write_like_original=False)
    return ds


def test_dicom(folder):
    series = os.path.join(folder, "series")
    os.mkdir(series)
    data = noise_volume((48, 40, 9), "int16")
    for i in range(9):
        dicom_file(os.path.join(series, f"s{(i * 5) % 9}.dcm"), data[:, :, i].T, 2.0 * i, i + 1, f"1.2.3.4.{i + 1}")
    coded, again = round_trip(series, folder)
    out, _ = run("info", coded)
    check("Secret" not in out and "007" not in out, "info names the patient")
    out, _ = run("info", coded, "--show-private")
    check("Secret^Patient" in out, "info --show-private does not")
    part = os.path.join(folder, "again", "dicom.nii")
    run("decode", coded, part, "-y")
    check(np.array_equal(np.asanyarray(nibabel.load(part).dataobj.get_unscaled()), data), "DICOM as NIfTI")
    restored = nibabel.load(part).dataobj
    check((restored.slope, restored.inter) == (2.0, -1024.0), "rescale slope in NIfTI")
    # lossy: marked, under new UIDs, with the bound in Hounsfield units
    lossy = os.path.join(folder, "lossy.tvl")
    run("encode", series, lossy, "--max-error-hu", "10")
    target = os.path.join(folder, "again", "lossy")
    run("decode", lossy, target)
    uids = set()
    worst = 0
    for n in sorted(os.listdir(series)):
        a, b = pydicom.dcmread(os.path.join(series, n)), pydicom.dcmread(os.path.join(target, n))
        worst = max(worst, np.abs(a.pixel_array.astype(int) - b.pixel_array).max() * 2)
        check(b.LossyImageCompression == "01" and float(b.LossyImageCompressionRatio) > 1, f"{n}: lossy marks")
        check(b.SOPInstanceUID != a.SOPInstanceUID and b.file_meta.MediaStorageSOPInstanceUID == b.SOPInstanceUID, f"{n}: UID")
        check(b.ImageType[0] == "DERIVED" and b.PatientName == a.PatientName, f"{n}: attributes")
        uids.add(b.SOPInstanceUID)
        for element in a:
            if element.tag not in (0x00080008, 0x00080018, 0x7FE00010):
                check(b.get(element.tag) == element, f"{n}: {element}")
    check(len(uids) == 9 and 0 < worst <= 10, f"lossy: {len(uids)} UIDs, largest error {worst} HU")
    # compressed pixels, if GDCM is there
    packed = os.path.join(folder, "packed")
    os.mkdir(packed)
    for n in os.listdir(series):
        ds = pydicom.dcmread(os.path.join(series, n))
        ds.compress(pydicom.uid.RLELossless)
        ds.save_as(os.path.join(packed, n))
    r = subprocess.run([TRIVELET, "encode", packed, os.path.join(folder, "packed.tvl")], capture_output=True, text=True)
    check(r.returncode in (0, 5), f"compressed DICOM: {r.stderr}")
    if r.returncode == 0:
        run("decode", os.path.join(folder, "packed.tvl"), part, "-y")
        check(np.array_equal(np.asanyarray(nibabel.load(part).dataobj.get_unscaled()), data), "DICOM RLE")
    else:
        check("GDCM" in r.stderr, r.stderr)
    ds = pydicom.dcmread(os.path.join(series, "s0.dcm"))
    ds.SeriesInstanceUID = "9.9"
    ds.save_as(os.path.join(series, "other.dcm"))
    run("encode", series, os.path.join(folder, "mixed.tvl"), code=2)


def test_fill_values(folder):
    x, y, z = np.meshgrid(np.arange(40), np.arange(30), np.arange(12), indexing="ij")
    data = (280 + 9 * np.sin(x / 7 + z / 5) * np.cos(y / 6)).astype("float32")
    data[(x - 20) ** 2 + (y - 12) ** 2 < 40 + z] = np.nan
    data[:3] = -9999
    path, coded, back = (os.path.join(folder, name) for name in ("ocean.nii", "ocean.tvl", "ocean_back.nii"))
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    for options, bound in ((("--max-error", 0.1), 0.1), (("-q", 60), 5)):
        run("encode", path, coded, "-y", "--fill-value", "-9999,1e20", *options)
        check("-9999" in run("info", coded)[0] and "NaN" in run("info", coded)[0], "marked values are told")
        for decoding, wanted in ((("--region", "1,4,2,25,20,6"), data[1:26, 4:24, 2:8]), ((), data)):
            run("decode", coded, back, "-y", *decoding)
            found = np.asanyarray(nibabel.load(back).dataobj)
            check(np.array_equal(np.isnan(found), np.isnan(wanted)) and np.array_equal(found == -9999, wanted == -9999) and
                  float(np.nanmax(np.abs(found - wanted))) <= bound, f"fill values, {options} {decoding}")
    run("encode", path, coded, "-y", "--fill-value", "-9999", code=2)  # lossless
    run("encode", path, coded, "-y", "--fill-value", "none", "-q", 60, code=2)


def test_bad_input(folder):
    def save(name, data):
        path = os.path.join(folder, name)
        open(path, "wb").write(data)
        return path

    good = content(os.path.join(folder, "big.nii"))
    out = os.path.join(folder, "bad.tvl")
    run("encode", save("cut.nii", good[:-1000]), out, code=4)
    run("encode", save("cut.nii.gz", gzip.compress(good)[:-1000]), out, code=4)
    zero = bytearray(good)
    zero[42:44] = b"\0\0"
    run("encode", save("zero.nii", bytes(zero)), out, code=4)
    tracked = save("tracked.mha", b"ObjectType = Image\nNDims = 3\nDimSize = 0 0 93\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n")
    check("holds no pixels" in run("encode", tracked, out, code=5)[1], "a file of positions alone")
    raw = save("v.raw", bytes(range(256)) * 2)
    run("encode", raw, out, "--size", "8x8x9", "--type", "u8", code=4)
    run("encode", raw, out, "--size", "8x8x8", "--type", "u7", code=2)
    check(not os.path.exists(out) and not os.path.exists(out + ".part"), "output of a failed encode")
    coded, _ = round_trip(raw, folder, typed=("--size", "8x8x8", "--type", "u8"))
    data = bytearray(open(coded, "rb").read())
    run("decode", save("cut.tvl", bytes(data[:len(data) // 2])), os.path.join(folder, "x.raw"), code=4)
    check(not os.path.exists(os.path.join(folder, "x.raw")), "output of a failed decode")
    run("decode", coded, raw, code=2)  # exists
    # options that volumes have no place for are refused
    for options in (("--max-bytes", "1k"), ("--max-bpp", 1), ("--device", "gpu"), ("--frames", "0:1")):
        run("decode", coded, os.path.join(folder, "x.raw"), *options, code=5)
    for options in (("--verify", "--no-verify"), ("--verify-full", "--no-verify")):
        run("encode", raw, out, "--size", "8x8x8", "--type", "u8", *options, code=2)
    said = run("encode", raw, out, "--size", "8x8x8", "--type", "u8", "--device", "gpu", code=5)[1]
    check("--transform wavelet" in said, f"prediction on a GPU: {said}")
    check(not os.path.exists(out), "output of a refused encode")
    damaged = save("damaged.nii", b"no volume at all" * 100)
    check("NIfTI" in run("encode", damaged, out, code=4)[1], "a damaged volume is called one")
    for command in ("encode", "decode", "info", "truncate", "verify", "compare", "view"):
        check("not a medical device" in run(command, "--help")[0], f"help of {command}")


def picture_of(path):
    kind, size, most, samples = open(path, "rb").read().split(b"\n", 3)
    width, height = map(int, size.split())
    check(most == b"255", f"{path}: {most}")
    return np.frombuffer(samples, np.uint8).reshape((height, width) if kind == b"P5" else (height, width, 3))


def test_thumbnails(folder):
    """The middle slice, halved until it fits, in a window that neither the filling nor single values shift."""
    y, x = np.mgrid[0:60, 0:100]
    data = np.zeros((20, 60, 100), np.int16)
    data[:] = x + y + 1000
    data[10] += 100  # the middle one differs
    truth = data[10].astype(float)
    data[:, :, :10] = -2000  # outside the scanner's circle
    data[:, 0, 10:14] = 30000  # metal
    raw, coded, shown = (os.path.join(folder, name) for name in ("thumb.raw", "thumb.tvl", "thumb.pgm"))
    data.tofile(raw)
    run("encode", raw, coded, "--size", "100x60x20", "--type", "s16", "--quiet")
    run("thumbnail", coded, shown, "--size", "100", "-y")
    picture = picture_of(shown).astype(float)
    check(picture.shape == (60, 100), f"thumbnail: {picture.shape}")
    inside = np.sort(truth[1:, 10:].ravel())
    low, high = inside[len(inside) // 100], inside[-len(inside) // 100]
    wanted = 255 * np.clip((truth - low) / (high - low), 0, 1)
    check(np.abs(picture - wanted)[1:, 10:].max() < 8, f"thumbnail: grey differs by {np.abs(picture - wanted)[1:, 10:].max()}")
    check((picture[1:, :10] == 0).all() and (picture[0, 10:14] == 255).all(), "thumbnail: what is outside the window")
    run("thumbnail", coded, shown, "--size", "32", "-y")
    check(picture_of(shown).shape == (15, 25), f"thumbnail: {picture_of(shown).shape} instead of 25x15")
    run("thumbnail", coded, shown, "--frame", "3", "-y")
    run("thumbnail", coded, shown, "--frame", "20", "-y", code=2)
    # Lossy, in colour, with values that are no numbers, of one value
    run("encode", raw, coded, "-y", "--size", "100x60x20", "--type", "s16", "--max-error", "5", "--transform", "wavelet")
    run("thumbnail", coded, shown, "--size", "100", "-y")
    check(np.abs(picture_of(shown) - wanted)[1:, 10:].max() < 24, "thumbnail of a lossy stream")
    floats = data.astype(np.float32) / 7
    floats[10, 30, 50] = np.nan
    floats.tofile(raw)
    run("encode", raw, coded, "-y", "--size", "100x60x20", "--type", "f32")
    run("thumbnail", coded, shown, "--size", "100", "-y")
    check(picture_of(shown)[30, 50] == 0 and np.abs(picture_of(shown)[31, 51] - wanted[31, 51]) < 8, "thumbnail: NaN")
    np.full((4, 8, 8), 7, np.uint8).tofile(raw)
    run("encode", raw, coded, "-y", "--size", "8x8x4", "--type", "u8")
    run("thumbnail", coded, shown, "-y")
    check((picture_of(shown) == 0).all(), "thumbnail of one value")
    colours = np.zeros((4, 8, 8, 3), np.uint8)
    colours[:] = (200, 100, 50)
    header = b"NRRD0004\ntype: uchar\ndimension: 4\nsizes: 3 8 8 4\nkinds: vector domain domain domain\nencoding: raw\n\n"
    rgb = os.path.join(folder, "rgb.nrrd")
    open(rgb, "wb").write(header + colours.tobytes())
    run("encode", rgb, coded, "-y")
    shown = os.path.join(folder, "thumb.ppm")
    run("thumbnail", coded, shown, "-y")
    check((picture_of(shown) == (200, 100, 50)).all(), f"thumbnail in colour: {picture_of(shown)[0, 0]}")


def test_standard_input_and_verifying(folder):
    size = (192, 192, 1000)  # more than is kept in memory
    plane = np.arange(192 * 192, dtype=np.uint32).reshape(192, 192)
    path, out = os.path.join(folder, "long.raw"), os.path.join(folder, "long.tvl")
    with open(path, "wb") as f:
        for z in range(size[2]):
            f.write((plane // (1 + z // 100)).astype(np.uint8).tobytes())
    typed = ("--size", "x".join(map(str, size)), "--type", "u8")
    with open(path, "rb") as f:
        encode = [TRIVELET, "encode", "-", out, *typed, "--preset", "fast", "--no-verify"]
        r = subprocess.run(["sh", "-c", 'cat | "$@"', "-", *encode], stdin=f, capture_output=True, text=True)
    check(r.returncode == 0, f"a long volume from a pipe: {r.stderr}")
    check("identical" in run("verify", out, "--against", path, *typed)[0], "a long volume from a pipe differs")
    short = os.path.join(folder, "short.raw")
    open(short, "wb").write(open(path, "rb").read(192 * 192 * 5))
    typed = ("--size", "192x192x5", "--type", "u8")
    files = []
    for options in ((), ("--verify",), ("--verify-full",)):
        said = run("encode", short, out, "-y", *typed, *options)[1]
        check("lossless, verified" in said, f"{options}: {said}")
        files.append(open(out, "rb").read())
    check(len(set(files)) == 1, "ways to verify give other streams")
    run("encode", short, "-", *typed, "--verify-full", code=2)


def read_voxels(path):
    """The stored scalars of a file (x, y, z[, t]), read without Trivelet."""
    if os.path.isdir(path):
        slices = [pydicom.dcmread(os.path.join(path, n)) for n in os.listdir(path)]
        o = np.array(slices[0].ImageOrientationPatient, float)
        slices.sort(key=lambda s: np.dot(np.cross(o[:3], o[3:]), np.array(s.ImagePositionPatient, float)))
        return np.stack([s.pixel_array.T for s in slices], axis=2)
    if path.endswith((".nii", ".nii.gz")):
        return np.asanyarray(nibabel.load(path).dataobj.get_unscaled())
    data = open(path, "rb").read()
    if path.endswith(".nrrd"):
        head, _, body = data.partition(b"\n\n")
        fields = dict(l.split(": ", 1) for l in head.decode().split("\n") if ": " in l)
        kind = {"short": "i2", "int16": "i2", "unsigned char": "u1", "uint8": "u1", "uint16": "u2"}[fields["type"]]
        order = ">" if fields.get("endian") == "big" else "<"
        body = gzip.decompress(body) if fields["encoding"].startswith("gz") else body
        size = [int(n) for n in fields["sizes"].split()]
    elif path.endswith(".mha"):
        head, _, body = data.partition(b"ElementDataFile = LOCAL\n")
        fields = dict(l.split(" = ", 1) for l in head.decode("latin1").split("\n") if " = " in l)
        kind = {"MET_SHORT": "i2", "MET_UCHAR": "u1", "MET_USHORT": "u2"}[fields["ElementType"].strip()]
        order = ">" if fields.get("BinaryDataByteOrderMSB", fields.get("ElementByteOrderMSB", "False")).strip() == "True" else "<"
        body = zlib.decompress(body) if fields.get("CompressedData", "False").strip() == "True" else body
        size = [int(n) for n in fields["DimSize"].split()]
    else:
        kind, order, body = "f4", "<", data
        size = [int(n) for n in os.path.basename(path).split("_")[1].split("x")]
    return np.frombuffer(body, np.dtype(kind).newbyteorder(order)).reshape(size[::-1]).T


def prove(path, folder):
    """Everything that is promised, on one file."""
    typed = ()
    name = os.path.basename(path)
    if path.endswith(".raw"):  # NAME_WxHxD_f32.raw
        typed = ("--size", name.split("_")[1], "--type", name.split("_")[2][:-4])
    coded, again = round_trip(path, folder, typed=typed)
    ratio = os.path.getsize(coded)
    if os.path.isdir(path):
        for n in os.listdir(path):
            a, b = pydicom.dcmread(os.path.join(path, n)), pydicom.dcmread(os.path.join(again, n))
            check(np.array_equal(a.pixel_array, b.pixel_array) and a == b, f"{name}: pydicom on {n}")
    truth = read_voxels(path)
    nifti = os.path.join(folder, "again", "as.nii")
    run("decode", coded, nifti, "-y")
    get = lambda p: np.asanyarray(nibabel.load(p).dataobj.get_unscaled()).reshape(truth.shape)
    check(np.array_equal(get(nifti), truth), f"{name}: nibabel reads other voxels")
    # bounds
    exact = truth.astype(np.float64)
    worst = []
    for bound in (1, 2, 5, 20, *((1e-3 * np.ptp(exact),) if truth.dtype.kind == "f" else ())):
        run("encode", path, coded, "-y", "--max-error", repr(bound), "--preset", "fast", *typed)
        run("verify", coded, "--against", path, *typed)
        run("decode", coded, nifti, "-y")
        worst.append(float(np.abs(get(nifti).astype(np.float64) - exact).max()))
        check(worst[-1] <= bound, f"{name}: error {worst[-1]} above {bound}")
    # parts and layers
    shape = truth.shape[:3]
    box = [n // 3 for n in shape] + [max(1, n // 8) for n in shape]
    shares = []
    for transform in ("prediction", "wavelet"):
        profile = ("--profile", "dense") if transform == "wavelet" else ()
        run("encode", path, coded, "-y", "--preset", "fast", *profile, "--transform", transform, *typed)
        block = json.loads(run("info", coded, "--json")[0])["coding"]["block_size"]
        shares.append(check_region(coded, shape, box, folder, name, blocks=1 if max(shape[:2]) <= block else 2))
    cuts = check_cuts(path, coded, folder, name, typed) if max(truth.shape[:3]) > 1 else []
    print(f"{name}: {ratio} bytes; largest errors for bounds 1, 2, 5, 20: {worst}; a region of an eighth each way reads "
          f"{shares[0]:.2f} and {shares[1]:.2f} of the bytes; errors of the layers {cuts}", flush=True)


if len(sys.argv) > 2:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "again"))
        for path in sys.argv[2:]:
            prove(path.rstrip("/"), folder)
else:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "again"))
        for test in (test_nifti, test_parts_and_quality, test_access, test_regions_and_cuts, test_dicom, test_bad_input, test_fill_values, test_thumbnails,
                     test_standard_input_and_header, test_standard_input_and_verifying):
            test(folder)
if failures:
    sys.exit(1)
print("all volumes came back")
