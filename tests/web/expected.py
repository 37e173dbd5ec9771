"""The colours that a decoded frame has on a screen, by numpy and from the standards: web_test.py compares the page with
them."""

import numpy as np

WEIGHTS = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 6: (0.299, 0.114), 9: (0.2627, 0.0593)}  # Kr, Kb of H.273


def planes_of(video: dict, frame: bytes) -> list:
    """Planes of a frame as 'decode --format raw' writes them: from 0 to 1."""
    out, at = [], 0
    for plane in video["planes"]:
        count = plane["width"] * plane["height"]
        kind = "<u2" if plane["sample_bytes"] == 2 else "u1"
        samples = np.frombuffer(frame, kind, count, at).reshape(plane["height"], plane["width"])
        out.append(samples / (2 ** video["bits"] - 1))
        at += samples.nbytes
    return out


def at_places(plane: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Linear interpolation; edges are repeated."""

    def along(axis: int, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        last = values.shape[axis] - 1
        low = np.floor(places).astype(int)
        part = places - low
        first = np.take(values, np.clip(low, 0, last), axis)
        second = np.take(values, np.clip(low + 1, 0, last), axis)
        part = part[:, None] if axis == 0 else part[None, :]
        return first * (1 - part) + second * part

    return along(1, columns, along(0, rows, plane))


def chroma(video: dict, plane: np.ndarray) -> np.ndarray:
    """At luma's places. Location 0 (not said) and 1: chroma lies on the left one of its columns, between its rows."""
    rows, columns = np.arange(video["height"]), np.arange(video["width"])
    down, across = 2 ** video["log2_chroma_h"], 2 ** video["log2_chroma_w"]
    left = video["chroma_location"] in (0, 1, 3, 5)
    top = video["chroma_location"] in (3, 4)
    return at_places(plane, (rows - (0 if top else (down - 1) / 2)) / down,
                     (columns - (0 if left else (across - 1) / 2)) / across)  # fmt: skip


def yuv_to_rgb(video: dict, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    kr, kb = WEIGHTS.get(video["matrix"], (0.299, 0.114) if video["height"] < 720 else (0.2126, 0.0722))
    most = 2 ** video["bits"] - 1
    middle = 2 ** (video["bits"] - 1) / most
    u, v = u - middle, v - middle
    if video["range"] != 2:
        unit = 2 ** (video["bits"] - 8)
        y = (y * most - 16 * unit) / (219 * unit)
        u, v = (c * most / (224 * unit) for c in (u, v))
    red, blue = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
    return np.stack([red, (y - kr * red - kb * blue) / (1 - kr - kb), blue], -1)


def pq_on_screen(rgb: np.ndarray, peak: float) -> np.ndarray:
    """SMPTE ST 2084 in BT.2020 on a screen of BT.709 whose white is 203 cd/m2, by Reinhard's curve."""
    p = np.clip(rgb, 0, None) ** (1 / 78.84375)
    light = (np.clip(p - 0.8359375, 0, None) / (18.8515625 - 18.6875 * p)) ** (1 / 0.1593017578125) * 10000 / 203
    matrix = [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]]
    light = np.clip(light @ np.transpose(matrix), 0, None)
    white = max(203, peak or 1000) / 203
    most = light.max(-1, keepdims=True)
    return np.clip(light * (1 + most / white**2) / (1 + most), 0, 1) ** (1 / 2.2)


def colours(video: dict, frame: bytes) -> np.ndarray:
    """Rows, columns, R G B: 0 to 255."""
    planes = planes_of(video, frame)
    if video["colour_model"] == 0:
        grey = planes[0]
        if video["range"] == 1:
            most, unit = 2 ** video["bits"] - 1, 2 ** (video["bits"] - 8)
            grey = (grey * most - 16 * unit) / (219 * unit)
        rgb = np.stack([grey] * 3, -1)
    elif video["colour_model"] == 1:
        rgb = yuv_to_rgb(video, planes[0], chroma(video, planes[1]), chroma(video, planes[2]))
    else:
        rgb = np.stack([planes[2], planes[0], planes[1]], -1)
    if video["transfer"] == 16:
        rgb = pq_on_screen(rgb, video["peak"])
    if video["alpha"] == 1:
        height, width = rgb.shape[:2]
        rows, columns = np.arange(height)[::-1] // 8, np.arange(width) // 8  # of the canvas, from the bottom up
        board = ((columns[None, :] + rows[:, None]) % 2 * 0.2 + 0.4)[..., None]
        rgb = board + (rgb - board) * planes[3][..., None]
    return np.clip(rgb, 0, 1) * 255
