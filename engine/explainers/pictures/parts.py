"""The parts of pictures that LIME and the Shapley values remove at a time."""

from __future__ import annotations

from engine.parts import Parts
from engine.task import Task
from engine.vision.segments import segments_of

SEGMENTS_HELP = "What is removed at a time: single patches, or superpixels (slic) of whole patches"
N_SEGMENTS_HELP = "Superpixels, about; only slic asks for it"


def picture_parts(task: Task, segments: str, n_segments: int) -> list[Parts]:
    """The parts of each picture."""
    return [segments_of(item.encoded, segments, n_segments) for item in task.items]


def plural(segments: str) -> str:
    """What such parts are called."""
    return "patches" if segments == "patch" else "superpixels"
