#!/usr/bin/env python3
"""The npm package in node and the page in Chromium show what 'decode' gives, and read what they need.

    tests/web/web_test.py APP path/to/trivelet

APP is the folder that web/build.sh makes. Clips and volumes are made here. Without Chromium the page is not tried, and
this says so. TRIVELET_WEB_SHOTS names a folder for pictures of the page; TRIVELET_NIIVUE a module that exports Niivue
(of @niivue/niivue): then NiiVue itself loads the volume.
"""

import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
sys.path.insert(0, str(ROOT / "tests/web"))
import chromium  # noqa: E402
import expected  # noqa: E402
import program  # noqa: E402
from program import check, failures, run  # noqa: E402

CUBE = (40, 52, 30)  # of the volume: columns, rows, slices
HDR = ["-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc"]
# name: pixel format, size, options of FFmpeg, options of 'trivelet encode'
CLIPS = {
    "plain": ("yuv420p", "160x96", [], ["--gop", "16"]),
    "odd": ("yuv422p10le", "97x53", ["-colorspace", "bt709"], ["-q", "80"]),
    "rgb": ("gbrp", "65x47", [], ["--lossless", "--preset", "fast"]),
    "grey": ("gray12le", "64x48", [], ["-q", "70"]),
    "alpha": ("yuva420p", "64x48", [], ["-q", "70"]),
    "hdr": ("yuv420p10le", "96x64", HDR, ["-q", "80"]),
    "predicted": ("yuv444p16le", "64x48", [], ["--lossless"]),
    "motion": ("yuv420p", "160x96", [], ["--motion", "on", "--gop", "16", "--keyint", "64"]),
    "layers": ("yuv420p", "640x360", [], ["-q", "85", "--gop", "33", "--motion", "off"]),
}
FRAMES = {"motion": 160, "layers": 99}
MOST_MEMORY = 300e6  # bytes of the module for 1080p
BEEP = 2  # seconds before the sound of sound.mkv begins


def make_clips(folder: Path) -> None:
    for name, (pix_fmt, size, colour, options) in CLIPS.items():
        frames = FRAMES.get(name, 40)
        noise = ",noise=alls=3:allf=t" if name == "layers" else ""
        graph = f"testsrc2=size={size}:rate=25,trim=end_frame={frames},setsar=1,format={pix_fmt}{noise}"
        program.ffmpeg("-f", "lavfi", "-i", graph, *colour, "-c:v", "ffv1", folder / "source.mkv")
        run("encode", folder / "source.mkv", folder / f"{name}.tvl", "-y", "--quiet", *options)
    part = (folder / "layers.tvl").read_bytes()
    run("join", *[folder / "layers.tvl"] * 4, "-o", folder / "long.tvl", "-y")
    (folder / "cut.tvl").write_bytes(part[: len(part) * 6 // 10])
    graph = "testsrc2=size=160x96:rate=25,trim=end_frame=150,format=yuv420p"
    beep = f"aevalsrc='if(gte(t,{BEEP}),0.5*sin(2*PI*440*t),0)':s=48000:d=6"
    program.ffmpeg("-f", "lavfi", "-i", graph, "-f", "lavfi", "-i", beep, "-c:v", "ffv1", "-c:a", "libopus",
                   folder / "source.mkv")  # fmt: skip
    run("encode", folder / "source.mkv", folder / "sound.mkv", "-y", "--quiet", "--motion", "on", "--gop", "16")
    bad = bytearray((folder / "motion.tvl").read_bytes())
    for at in random.Random(3).sample(range(len(bad) // 3, len(bad) // 2), 8):
        bad[at] ^= 255
    (folder / "bad.tvl").write_bytes(bad)
    (folder / "other.tvl").write_bytes(b"this is no stream" * 4000)


def make_volume(folder: Path) -> np.ndarray:
    """As NIfTI; returns slices, rows, columns."""
    z, y, x = np.ogrid[: CUBE[2], : CUBE[1], : CUBE[0]]
    voxels = (900 * np.cos(np.hypot(np.hypot(x - 20, y - 30), 2 * z - 25) / 4) + 3 * x).astype("<i2")
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *CUBE, 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, 4, 16)
    struct.pack_into("<8f", head, 76, *[1, 0.8, 0.8, 2, 1, 1, 1, 1])
    struct.pack_into("<2f", head, 108, 352, 1)
    head[344:347] = b"n+1"
    (folder / "volume.nii").write_bytes(bytes(head) + voxels.tobytes())
    run("encode", folder / "volume.nii", folder / "volume.tvl", "-y", "--quiet", "--transform", "wavelet")
    return voxels


def file_of(name: str) -> str:
    return name if "." in name else f"{name}.tvl"


def decoded(folder: Path, name: str, *options) -> bytes:
    run("decode", folder / file_of(name), folder / "out.yuv", "--format", "raw", "-y", "--quiet", *options)
    return (folder / "out.yuv").read_bytes()


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


# ---- node


def in_node(app: Path, folder: Path, requests: list) -> list:
    """The package as npm packs it, found by its name."""
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    if not (modules / "trivelet").exists():
        packed = subprocess.run(["npm", "pack", "--silent", "--offline", "--pack-destination", folder, app],
                                check=True, capture_output=True, text=True).stdout.split()[-1]  # fmt: skip
        shutil.unpack_archive(folder / packed, folder / "packed")
        (folder / "packed/package").rename(modules / "trivelet")
    shutil.copy(ROOT / "tests/web/package_user.mjs", folder)
    done = subprocess.run(["node", folder / "package_user.mjs", json.dumps(requests)], capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    check(done.returncode == 0, f"node: {done.stderr[-1500:]}")
    return json.loads(done.stdout or "[]")


def test_package(app: Path, folder: Path, voxels: np.ndarray) -> None:
    if not shutil.which("npm"):
        print("skipped: no npm, and so the package was not packed")
        return
    cases = [(name, threads, {}, []) for name in CLIPS for threads in (1, 2)]
    cases += [
        ("layers", 1, {"reduce": 1, "layers": 3}, ["--reduce", "1", "--max-layers", "3"]),
        ("layers", 2, {"temporal_reduce": 1}, ["--temporal-reduce", "1"]),
        ("motion", 1, {"reduce": 1}, ["--reduce", "1"]),
    ]
    asked = [{"file": f"{folder}/{name}.tvl", "threads": n, "request": request} for name, n, request, _ in cases]
    for (name, threads, request, options), got in zip(cases, in_node(app, folder, asked)):
        wanted = md5(decoded(folder, name, *options))
        what = f"node, {name}, {threads} threads, {request}"
        check(got.get("md5") == wanted and got.get("format") == CLIPS[name][0], f"{what}: {got}, not {wanted}")
    # Jumps: GOPs that depend on others, out of their order.
    whole = decoded(folder, "motion")
    gop = len(whole) // 10
    order = [7, 2, 3, 9, 0, 5, 5]
    wanted = md5(b"".join(whole[n * gop : (n + 1) * gop] for n in order))
    got = in_node(app, folder, [{"file": f"{folder}/motion.tvl", "threads": 1, "order": order}])[0]
    check(got.get("md5") == wanted, f"node, motion, GOPs {order}: {got}, not {wanted}")
    got = in_node(app, folder, [{"file": f"{folder}/sound.mkv", "threads": 1}])[0]
    check(got.get("md5") == md5(decoded(folder, "sound.mkv")), f"node, a film in Matroska: {got}")
    box = {"x": 3, "y": 10, "z": 5, "width": 20, "height": 30, "depth": 9}
    part = voxels[5:14, 10:40, 3:23].tobytes()
    got = in_node(app, folder, [{"file": f"{folder}/volume.tvl", "threads": n, "box": box} for n in (1, 2)])
    for answer in got:
        check(answer.get("md5") == md5(part), f"node, box: {answer}")
        check(answer.get("nifti") == md5((folder / "volume.nii").read_bytes()), f"node, loader of NiiVue: {answer}")
    for name in ("other", "cut", "bad"):
        got = in_node(app, folder, [{"file": f"{folder}/{name}.tvl", "threads": 1}])[0]
        check(name == "cut" or got.get("result", 0) > 0, f"node, {name}.tvl: {got}")


def test_memory(app: Path, folder: Path) -> None:
    """The module's memory for 1080p: three GOPs, the last one shorter, and jumps to what needs the key frame before."""
    if not shutil.which("npm"):
        return
    graph = "testsrc2=size=1920x1080:rate=25,trim=end_frame=87,format=yuv420p"
    program.ffmpeg("-f", "lavfi", "-i", graph, "-c:v", "rawvideo", folder / "source.nut")
    names = {"still": ["--motion", "off"], "moving": ["--motion", "on", "--preset", "fast", "--keyint", "128"]}
    for name, options in names.items():
        run("encode", folder / "source.nut", folder / f"{name}.tvl", "-y", "--quiet", *options)
        jumps = [[2, 1], [0, 2, 1]]
        asked = [{"file": f"{folder}/{name}.tvl", "threads": threads, "order": order}
                 for threads in (1, 2) for order in [[0, 1, 2], *jumps]]  # fmt: skip
        wanted = run("decode", folder / f"{name}.tvl", "md5", "--quiet")
        for request, got in zip(asked, in_node(app, folder, asked)):
            what = f"node, 1080p, {name}, {request['threads']} threads, GOPs {request['order']}"
            check(request["order"] in jumps or got.get("md5", "none") in wanted, f"{what}: {got}, not {wanted}")
            check(got.get("heap", 1e9) <= MOST_MEMORY, f"{what}: {got.get('heap')} bytes of memory")


# ---- the page


class Page:
    def __init__(self, app: Path, folder: Path, *options: str) -> None:
        command = [sys.executable, ROOT / "samples/serve.py", app, "--also", f"t={folder}", "--port", "0", "--quiet"]
        self.server = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().strip()
        self.browser = chromium.Chromium()
        self.value = self.browser.value

    def close(self) -> None:
        self.browser.close()
        self.server.terminate()
        self.server.wait()

    def open(self, name: str, query: str = "") -> str:
        """What the page says to be wrong."""
        self.counts(clear=True)
        self.browser.open(f"{self.address}?src=t/{file_of(name)}{query}")
        self.value("trivelet.ready")
        said = [line for line in self.browser.log if "404" not in line]  # which Chromium says of files that are missing
        check(not said, f"{name}: the console says {said}")
        return self.error()

    def error(self) -> str:
        return self.value("document.getElementById('error').textContent")

    def counts(self, clear: bool = False) -> dict:
        with urllib.request.urlopen(f"{self.address}counts{'?clear' if clear else ''}") as answer:
            return json.load(answer)

    def served(self, name: str) -> int:
        return self.counts().get(f"/t/{name}.tvl", {"bytes": 0})["bytes"]

    def pixels(self, element: str = "trivelet.film.picture.pixels()") -> np.ndarray:
        return np.frombuffer(self.browser.bytes(element), np.uint8)

    def picture(self) -> np.ndarray:
        width, height = self.value("[trivelet.film.canvas.width, trivelet.film.canvas.height]")
        return self.pixels().reshape(height, width, 4)[..., :3]

    def slide(self, control: str, value: int) -> None:
        """As a user does; ends when what it asks for is shown."""
        self.value(f"""new Promise(done => {{
          const it = document.getElementById('{control}'), shown = trivelet.film || trivelet.volume;
          const was = shown.on_change;
          shown.on_change = () => {{ was(); shown.on_change = was; done(); }};
          it.value = {value};
          it.dispatchEvent(new Event('input'));
        }})""")

    def shot(self, name: str) -> None:
        if folder := os.environ.get("TRIVELET_WEB_SHOTS"):
            self.browser.screenshot(Path(folder) / f"{name}.png")


def compare(page: Page, name: str, frame: bytes, what: str) -> None:
    """What is on the canvas with a frame of 'decode', turned into colours here."""
    video = page.value("trivelet.stream.video")
    wanted, got = expected.colours(video, frame), page.picture()
    if wanted.shape != got.shape:
        return check(False, f"{what}: {got.shape}, not {wanted.shape}")
    error = np.abs(wanted - got)
    most = 3 if name == "hdr" else 1.01
    check(error.max() <= most, f"{what}: colours differ by up to {error.max():.1f} (mean {error.mean():.3f})")


def test_pictures(page: Page, folder: Path) -> None:
    for name in CLIPS:
        if name == "layers":  # larger than what is there for it
            continue
        said = page.open(name, "&fit=0&frame=7")
        check(said == "", f"{name}: {said}")
        whole = decoded(folder, name)
        size = len(whole) // FRAMES.get(name, 40)
        compare(page, name, whole[7 * size : 8 * size], f"page, {name}")


def test_seeking(page: Page, folder: Path) -> None:
    whole = decoded(folder, "motion")
    size = len(whole) // FRAMES["motion"]
    page.open("motion", "&fit=0")
    for frame in random.Random(5).sample(range(FRAMES["motion"]), 10):
        page.slide("seek", frame)
        compare(page, "motion", whole[frame * size : (frame + 1) * size], f"page, seek to frame {frame}")
    page.value("trivelet.film.step(-1)")
    frame -= 1
    compare(page, "motion", whole[frame * size : (frame + 1) * size], "page, one frame back")


def test_playing(page: Page) -> None:
    page.open("plain", "&fit=0&canvas=16x16")
    page.value("document.getElementById('speed').value = '2'; document.getElementById('speed').onchange({target: "
               "document.getElementById('speed')})")  # fmt: skip
    page.value("trivelet.film.play()")
    counts = page.value("trivelet.film.counts")
    check(0.75 < counts["seconds"] < 4, f"1.6 s at twice the speed last {counts['seconds']} s")
    check(counts["shown"] + counts["late"] >= 30 and counts["shown"] >= 3, f"playing: {counts}")
    page.open("motion", "&fit=0&canvas=16x16")
    page.value("(async () => { const playing = trivelet.film.play(); await new Promise(r => setTimeout(r, 300));"
               " await trivelet.film.show(trivelet.film.pts_of(150)); await playing; })()")  # fmt: skip
    counts = page.value("trivelet.film.counts")
    check(counts["seconds"] < 5, f"a jump to the end while it plays is ignored: {counts}")


def test_sound(page: Page, folder: Path) -> None:
    """A film in Matroska: its pictures, and which second of the film what is heard belongs to."""
    said = page.open("sound.mkv", "&fit=0&frame=140")
    check(said == "", f"sound.mkv: {said}")
    size = 160 * 96 * 3 // 2
    compare(page, "sound.mkv", decoded(folder, "sound.mkv")[140 * size : 141 * size], "page, sound.mkv")
    if not page.value("!!trivelet.film.sound"):
        return check(False, f"the page plays no sound: '{page.value('trivelet.film.sound_text')}'")
    page.value("""(() => {
      const start = AudioBufferSourceNode.prototype.start;
      window.heard = [];
      AudioBufferSourceNode.prototype.start = function(when, offset) {
        const samples = this.buffer.getChannelData(0), at = samples.findIndex(x => Math.abs(x) > 0.2);
        const {zero, context} = trivelet.film.sound, {film} = trivelet;
        heard.push({
          from: when - offset - zero, beep: at < 0 ? -1 : when - offset - zero + at / this.buffer.sampleRate,
          apart: context.currentTime - zero - film.pts * film.unit,
        });
        start.call(this, when, offset);
      };
    })()""")
    page.value("(async () => { const {film} = trivelet; await film.show(film.pts_of(5)); const playing = film.play();"
               " await new Promise(done => setTimeout(done, 3000)); film.pause(); await playing; })()")  # fmt: skip
    heard = page.value("heard")
    beeps = [buffer["beep"] for buffer in heard if buffer["beep"] >= 0]
    check(beeps and abs(min(beeps) - BEEP) < 0.03, f"the sound begins at {beeps[:3]}, not at {BEEP} s; {heard[:3]}")
    check(heard and min(buffer["from"] for buffer in heard) > 0.05, f"sound from before the picture: {heard[:3]}")
    check(heard and min(abs(buffer["apart"]) for buffer in heard) < 0.2, f"sound beside the picture: {heard[:3]}")
    check(page.value("trivelet.film.sound.playing.length") == 0, "the sound goes on when the film stands")


def test_bytes(page: Page, folder: Path) -> None:
    size = (folder / "long.tvl").stat().st_size
    page.open("long", "&size=0")
    quick = page.value("trivelet.film.quick")
    check(quick["rounds"] <= 2 and quick["fetched"] <= 300_000, f"the first picture of {size} bytes: {quick}")
    check(page.served("long") == page.value("trivelet.stream.fetched"), "the page shows other bytes than were served")
    check(page.served("long") < size / 2, f"{page.served('long')} of {size} bytes read for one GOP of twelve")
    page.shot("film")
    seen = []
    for query in ("", "&rate=2", "&layers=4", "&size=1&layers=4", "&size=2&layers=2"):
        page.open("long", query + "&frame=200" if "size" in query else "&size=0" + query + "&frame=200")
        seen.append(page.served("long"))
    check(seen == sorted(seen, reverse=True) and seen[-1] < seen[0] / 3, f"bytes read by what is asked for: {seen}")
    page.open("long", "&size=2&layers=2&frame=200")
    before = page.served("long")
    page.slide("layers", 6)
    between = page.served("long")
    page.slide("size", 0)
    check(before < between < page.served("long"), "more layers and a larger size read no more bytes")
    shown = page.value("trivelet.film.drawn")
    check(shown["video"]["width"] == 640 and shown["layers"] == 6, f"after the sliders: {shown}")
    last = page.served("long")
    page.slide("layers", 3)
    check(page.served("long") == last, "fewer layers of what is there are read again")


def test_damage(page: Page, folder: Path) -> None:
    said = page.open("other")
    check(len(said) > 10, f"no stream: the page says '{said}'")
    said = page.open("cut", "&size=0")
    check(said != "" or page.value("!!trivelet.film.drawn"), "a file that is cut shows neither picture nor error")
    page.open("bad", "&fit=0")
    for frame in (0, 70, 159):
        page.value(f"trivelet.film.show(trivelet.film.pts_of({frame})).catch(error => error.message)")
    whole = decoded(folder, "motion")
    size = len(whole) // FRAMES["motion"]
    compare(page, "motion", whole[159 * size : 160 * size], "page, behind damage")
    check("404" in page.open("missing"), f"no such file: the page says '{page.error()}'")


def test_files(page: Page, folder: Path) -> None:
    """Chosen and dropped files, and one thread where pages are not isolated."""
    page.browser.open(page.address)
    page.browser.choose_file("#file", folder / "plain.tvl")
    page.value("(async () => { while (!trivelet.film?.drawn) await new Promise(r => setTimeout(r, 20)); })()")
    whole = decoded(folder, "plain")
    compare(page, "plain", whole[: len(whole) // 40], "page, a file that was chosen")
    page.value("""(async () => {
      const data = new DataTransfer(), bytes = await (await fetch('t/rgb.tvl')).arrayBuffer();
      data.items.add(new File([bytes], 'rgb.tvl'));
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
      while (trivelet.film?.drawn?.video.width !== 65) await new Promise(r => setTimeout(r, 20));
    })()""")
    whole = decoded(folder, "rgb")
    compare(page, "rgb", whole[: len(whole) // 40], "page, a file that was dropped")


def test_volume(page: Page, voxels: np.ndarray) -> None:
    said = page.open("volume", "&window=1200&level=100")
    check(said == "", f"volume: {said}")

    def planes() -> list:
        out = []
        for i in range(3):
            canvas = f"trivelet.volume.planes[{i}].canvas"
            width, height = page.value(f"[{canvas}.width, {canvas}.height]")
            data = page.pixels(f"{canvas}.getContext('2d').getImageData(0, 0, {width}, {height}).data")
            out.append(data.reshape(height, width, 4)[..., 0])
        return out

    def compare_planes(values: list, what: str) -> None:
        for name, wanted, got in zip(("axial", "coronal", "sagittal"), values, planes()):
            grey = np.clip((wanted.astype(float) - (100 - 600)) * 255 / 1200, 0, 255)
            check(grey.shape == got.shape and np.abs(grey - got).max() <= 0.51, f"page, {what}, {name}: other greys")

    x, y, z = (size // 2 for size in CUBE)
    compare_planes([voxels[z], voxels[::-1, y], voxels[::-1, :, x]], "planes")
    page.slide("z", 7)
    page.slide("x", 31)
    compare_planes([voxels[7], voxels[::-1, y], voxels[::-1, :, 31]], "planes after sliders")
    page.shot("volume")
    page.value("new Promise(done => { const was = trivelet.volume.on_change; trivelet.volume.on_change = () => { was();"
               " done(); }; document.getElementById('most').click(); })")  # fmt: skip
    compare_planes([voxels.max(0), voxels.max(1)[::-1], voxels.max(2)[::-1]], "largest values")


def test_niivue(page: Page, voxels: np.ndarray, module: Path) -> None:
    """NiiVue fetches the file, calls the loader and has the voxels and the spacing of the NIfTI file."""
    page.browser.open(page.address)
    said = page.value(f"""(async () => {{
      const {{Niivue}} = await import('/niivue/{module.name}'), {{use_trivelet}} = await import('/niivue.js');
      const canvas = document.createElement('canvas');
      document.getElementById('stage').replaceChildren(canvas);
      window.nv = new Niivue();
      await nv.attachToCanvas(canvas);
      use_trivelet(nv);
      await nv.loadVolumes([{{url: 't/volume.tvl'}}]);
      const {{dims, pixDims, datatypeCode}} = nv.volumes[0].hdr;
      return [[...dims].slice(1, 4), [...pixDims].slice(1, 4), datatypeCode];
    }})()""")
    check(said[0] == list(CUBE) and np.allclose(said[1], [0.8, 0.8, 2]) and said[2] == 4, f"NiiVue's header: {said}")
    image = "nv.volumes[0].img"
    got = page.pixels(f"new Uint8Array({image}.buffer, {image}.byteOffset, {image}.byteLength)")
    check(got.tobytes() == voxels.tobytes(), "NiiVue has other voxels")
    page.shot("niivue")


def main() -> int:
    app, program.path = Path(sys.argv[1]).resolve(), sys.argv[2]
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory(prefix="web_test.") as name:
        folder = Path(name)
        make_clips(folder)
        voxels = make_volume(folder)
        test_package(app, folder, voxels)
        test_memory(app, folder)
        if not chromium.find():
            print("skipped: no Chromium, and so the page was not tried")
            return 1 if failures else 0
        page = Page(app, folder)
        try:
            test_pictures(page, folder)
            check(page.value("crossOriginIsolated && trivelet.stream.threads > 1"), "the page has one thread alone")
            test_seeking(page, folder)
            test_playing(page)
            test_sound(page, folder)
            test_bytes(page, folder)
            test_damage(page, folder)
            test_files(page, folder)
            test_volume(page, voxels)
        finally:
            page.close()
        if module := os.environ.get("TRIVELET_NIIVUE"):
            page = Page(app, folder, "--also", f"niivue={Path(module).parent}")
            try:
                test_niivue(page, voxels, Path(module))
            finally:
                page.close()
        plain = Page(app, folder, "--plain")
        try:
            check(plain.open("plain", "&fit=0") == "", f"without isolation: {plain.error()}")
            check(plain.value("!crossOriginIsolated && trivelet.stream.threads === 1"), "threads without isolation")
            compare(plain, "plain", decoded(folder, "plain")[: 160 * 96 * 3 // 2], "page with one thread")
        finally:
            plain.close()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
