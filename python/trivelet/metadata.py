"""Descriptive metadata of videos: light levels, chapters, key-value pairs."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Optional

from . import _library
from .errors import ArgumentError


@dataclass(frozen=True)
class MasteringDisplay:
    """The display on which the video was mastered (SMPTE ST 2086)."""

    #: x, y of red, green, blue, white, in 1/50000
    chromaticity: tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]
    max_luminance: int  #: in 1/10000 cd/m^2, as the next
    min_luminance: int


@dataclass(frozen=True)
class ContentLight:
    """Light levels (CTA-861.3) in cd/m^2; 0 = unknown."""

    max_content: int  #: of a pixel
    max_frame_average: int  #: of a frame's average


@dataclass(frozen=True)
class Chapter:
    """Times are in units of `Metadata.chapter_time_base`, on the clock of the frames."""

    begin: int
    end: int
    title: str = ""


@dataclass(frozen=True)
class Metadata:
    """Descriptive data; decoding does not depend on it."""

    mastering_display: Optional[MasteringDisplay] = None
    content_light: Optional[ContentLight] = None
    chapters: tuple[Chapter, ...] = ()  #: in order of their begin
    chapter_time_base: Fraction = Fraction(1, 1000)  #: seconds
    #: keys, in lower case, and values: "title", "artist", "copyright", "comment", "creation_time", "timecode", "language"
    #: mean what they say; others are free, and each may occur more than once
    entries: tuple[tuple[str, str], ...] = ()

    def get(self, key: str, default: Optional[str] = None) -> Optional[str]:
        """The first value of a key."""
        return next((value for name, value in self.entries if name == key), default)


def _text(value: str) -> bytes:
    encoded = value.encode()
    if b"\0" in encoded:
        raise ArgumentError(f"{value!r} has a character 0 in it, which metadata cannot hold")
    return encoded


def to_structure(metadata: Metadata) -> Any:
    """The C structure, with the Python objects that it points to."""
    m = _library.make(_library.Metadata)
    display, light = metadata.mastering_display, metadata.content_light
    if display is not None:
        m.has_mastering_display = 1
        flat = [n for point in display.chromaticity for n in point]
        if len(flat) != 8 or not all(0 <= n <= 65535 for n in flat):
            raise ArgumentError(f"chromaticity {display.chromaticity}; it is four points of numbers 0..65535")
        m.chromaticity = (ctypes.c_int32 * 8)(*flat)
        m.max_luminance, m.min_luminance = display.max_luminance, display.min_luminance
    if light is not None:
        m.has_content_light = 1
        m.max_content_light, m.max_frame_average = light.max_content, light.max_frame_average
    base = Fraction(metadata.chapter_time_base)
    m.chapter_time_base_num, m.chapter_time_base_den = base.numerator, base.denominator
    chapters = [_library.Chapter(c.begin, c.end, _text(c.title)) for c in metadata.chapters]
    entries = [_library.Entry(_text(key), _text(value)) for key, value in metadata.entries]
    m.chapters, m.chapter_count = (_library.Chapter * len(chapters))(*chapters), len(chapters)
    m.entries, m.entry_count = (_library.Entry * len(entries))(*entries), len(entries)
    return m


def of_decoder(decoder: Any) -> Metadata:
    m = _library.make(_library.Metadata)
    decoder.call(_library.library.tvl_decoder_metadata, ctypes.byref(m))

    def text(value: bytes) -> str:
        return value.decode(errors="replace")

    display = light = None
    if m.has_mastering_display:
        x = list(m.chromaticity)
        points = (x[0], x[1]), (x[2], x[3]), (x[4], x[5]), (x[6], x[7])
        display = MasteringDisplay(points, m.max_luminance, m.min_luminance)
    if m.has_content_light:
        light = ContentLight(m.max_content_light, m.max_frame_average)
    return Metadata(
        mastering_display=display,
        content_light=light,
        chapters=tuple(Chapter(c.begin, c.end, text(c.title)) for c in m.chapters[: m.chapter_count]),
        chapter_time_base=Fraction(m.chapter_time_base_num, m.chapter_time_base_den),
        entries=tuple((text(e.key), text(e.value)) for e in m.entries[: m.entry_count]),
    )
