"""The step of time between the volumes of DICOM files: the rules of io/volume/dicom_times.cpp. Source: PS3.3
C.7.6.16.2 (frame content, temporal position), C.8.3.1 (Repetition Time), C.8.9.4 (Frame Reference Time); PS3.5 6.2 (DA,
TM, DT)."""

from __future__ import annotations

import math
from typing import NamedTuple

_MILLISECOND = 1e-3
_SAME_PACE = 0.02
_DAY = 86400


class Times(NamedTuple):
    """What a file or a frame says of its time, in seconds; NaN or, of the last three, 0 where it says nothing."""

    offset: float = math.nan
    reference: float = math.nan
    trigger: float = math.nan
    acquired: float = math.nan
    resolution: float = 0
    repetition: float = 0
    echo: float = 0


# Attributes in milliseconds: their field, the value where there is none, and whether they are of type FD.
FIELDS = {
    0x00180080: ("repetition", 0.0, False),
    0x00180081: ("echo", 0.0, False),
    0x00189082: ("echo", math.nan, True),
    0x00181060: ("trigger", math.nan, False),
    0x00209153: ("trigger", math.nan, True),
    0x00200110: ("resolution", 0.0, False),
    0x00541300: ("reference", math.nan, False),
}
OFFSET = 0x0020930D  # in seconds, of type FD
ACQUIRED = (0x0008002A, 0x00189074)


def _number(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(digits)
    return int(digits)


def _days(year: int, month: int, day: int) -> float:
    """From 0000-03-01 in the Gregorian calendar."""
    y = year if month > 2 else year - 1
    return 365.0 * y + y // 4 - y // 100 + y // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 1


def seconds_of_date_and_time(date: str, time: str) -> float:
    whole, _, fraction = time.strip().replace(":", "").partition(".")
    if not 2 <= len(whole) <= 6 or len(whole) % 2:
        return math.nan
    try:
        parts = [_number(whole[i : i + 2]) for i in range(0, len(whole), 2)]
        seconds = float(sum(unit * part for unit, part in zip((3600, 60, 1), parts)))
        if fraction := fraction[:6]:
            seconds += _number(fraction) / 10.0 ** len(fraction)
    except ValueError:
        return math.nan
    date = date.strip()
    try:
        day = _days(_number(date[:4]), _number(date[4:6]), _number(date[6:])) if len(date) == 8 else 0
        return _DAY * day + seconds
    except ValueError:
        return seconds


def seconds_of_date_time(text: str) -> float:
    text = text.strip().partition("+")[0].partition("-")[0]
    return seconds_of_date_and_time(text[:8], text[8:]) if len(text) >= 14 else math.nan


def time_step(times: list[Times], is_3d: bool) -> float:
    """`times`: of a picture at the same place in each volume. 1 if the step is not known."""
    first = times[0]
    if len(times) < 2 or any(t.echo != first.echo for t in times):
        return 1.0
    repetition = 0.0 if any(t.repetition != first.repetition for t in times) else first.repetition
    is_uneven = False
    for field in ("offset", "reference", "trigger", "acquired"):
        clock: list[float] = [getattr(t, field) for t in times]
        mean = (clock[-1] - clock[0]) / (len(clock) - 1)
        steps = [b - a for a, b in zip(clock, clock[1:])]
        if not all(step > 0 for step in steps):
            continue
        if repetition > 0 and abs(mean - repetition) <= _SAME_PACE * repetition:
            return round(repetition, 6)
        if all(abs(step - mean) <= _SAME_PACE * mean + _MILLISECOND for step in steps):
            return round(mean, 6)
        is_uneven = True
    if is_uneven:
        return 1.0
    step = first.resolution if first.resolution > 0 else 0.0 if is_3d else repetition
    return round(step, 6) if step > 0 else 1.0
