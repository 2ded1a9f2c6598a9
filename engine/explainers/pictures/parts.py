"""The parts of pictures that LIME and the Shapley values remove at a time."""

from __future__ import annotations

from typing import cast

from engine.parts import Parts
from engine.task import Task
from engine.vision.picture import EncodedPicture
from engine.vision.segments import segments_of

SEGMENTS_HELP = "What is removed at a time: single patches, or superpixels (slic) of whole patches"
N_SEGMENTS_HELP = "Superpixels, about; only slic asks for it"


def picture_parts(task: Task, segments: str, n_segments: int) -> list[Parts]:
    """The parts of each picture."""
    return [segments_of(picture, segments, n_segments) for picture in pictures_of(task)]


def pictures_of(task: Task) -> list[EncodedPicture]:
    """The task's examples: methods that are registered for pictures are given nothing else."""
    return cast(list[EncodedPicture], task.examples)


def plural(segments: str) -> str:
    """What such parts are called."""
    return "patches" if segments == "patch" else "superpixels"
