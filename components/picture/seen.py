"""What is said of a picture beside itself: what it is, what it shows, what became of it on its way to the model."""

from __future__ import annotations

from dataclasses import replace

from components.inputs.datasets import OpenPictures
from components.inputs.picture_choice import PictureFocus, true_class
from engine.vision.view import ModelView, read_view

Size = tuple[int, int]
"""Height and width in pixels."""
EVEN = 0.02
"""Proportions that differ by less are called the same: sides are whole pixels."""


def seen_lines(focus: PictureFocus, opened: OpenPictures) -> tuple[str, ...]:
    """Lines of plain text: name and true class, how that fits the model's classes, what the model sees. Loads nothing.

    Errors: those of a model whose files cannot be read.
    """
    if focus.picture is None:
        return ()
    view = read_view(focus.model)
    truth = true_class(focus, opened, view.labels)
    height, width, _ = focus.picture.pixels.shape
    return tuple(filter(None, (name_words(focus, truth.label), truth.note, view_words(view, (height, width)))))


def name_words(focus: PictureFocus, label: str) -> str:
    """What the picture is called, and what it shows where that is known."""
    named = focus.name or f"example {focus.index}"
    if not {".", "/"} & set(named):  # the name of a file stays as it is written
        named = f"{named[:1].upper()}{named[1:]}"
    return f"{named}: {label}." if label else f"{named}."


def view_words(view: ModelView, size: Size) -> str:
    """What the model sees of a picture of that size; empty where it sees every pixel as it is."""
    resized = replace(view.preprocessing, crop=None).output_size(*size)
    told = [*_resized(size, resized), *_placed(resized, view.size)]
    return f"{_told(size)} pixels, {' and '.join(told)}." if told else ""


def _resized(size: Size, resized: Size) -> list[str]:
    if size == resized:
        return []
    way = "shrunk" if resized[0] * resized[1] < size[0] * size[1] else "enlarged"
    stretched = abs(size[1] * resized[0] / (size[0] * resized[1]) - 1) > EVEN
    return [f"{way} to {_told(resized)}{' out of its proportions' if stretched else ''}"]


def _placed(resized: Size, seen: Size) -> list[str]:
    if resized == seen:
        return []
    if resized[0] >= seen[0] and resized[1] >= seen[1]:
        return [f"cut to the {_told(seen)} in its middle"]
    return [f"set in the middle of {_told(seen)} with black around it"]


def _told(size: Size) -> str:
    return f"{size[1]:,} × {size[0]:,}"
