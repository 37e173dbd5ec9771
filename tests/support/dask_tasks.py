"""Tasks for the workers of dask_test.py: those of the samples, with a worker that dies in the middle of one."""

import os
import resource
from pathlib import Path

import dask_video
import dask_volume


def die_once(folder):
    """The worker that removes the file "die" exits at once, like one whose machine loses power."""
    try:
        (Path(folder) / "die").unlink()
    except FileNotFoundError:
        return
    os._exit(1)


def copy_box_or_die(source, target, box):
    if any(part.start > 0 for part in box):
        dask_volume.copy_box(source, target, box)
        die_once(Path(target).parent)  # after writing: the task is done again
    else:
        dask_volume.copy_box(source, target, box)


def encode_part_or_die(program, source, target, first, end, options):
    if first > 0:
        die_once(Path(target).parents[1])
    return dask_video.encode_part(program, source, target, first, end, options)


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
