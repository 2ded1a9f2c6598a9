"""Checks that a trained model is only measured on data sets that it was not trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from engine.data.examples import Dataset, ImageDataset
from engine.data.slices import split_slice
from engine.errors import not_allowed

TRAINED_SPLITS = ("train", "all")
"""The splits that training reads: the training split, or the whole of a data set without splits."""


def refuse_trained_set(name: str, data: Dataset | ImageDataset, trained: Iterable[str], revision: str) -> None:
    """Raise an error if a data set to measure is also trained on.

    `trained`: names of the training sets. `revision`: content hash of the first one, by which a copy is recognized.
    """
    if data.split in TRAINED_SPLITS and (data.revision == revision or any(_share(name, other) for other in trained)):
        raise not_allowed(
            "measure",
            "data sets that are not trained on",
            name,
            "It has no other split to measure. Measure another set, or train on a slice and measure another one.",
        )


def measured_name(name: str, taken: Collection[str]) -> str:
    """Return the name of a measured data set in the scores: its file name, or its whole path if that is taken.

    Errors: both are taken.
    """
    for chosen in (Path(name).name, name):
        if chosen not in taken:
            return chosen
    raise not_allowed("measure", "data sets with different names", name, f"{name} is measured already. Rename it.")


def _share(first: str, second: str) -> bool:
    """Whether two data sets, given by name, have an example in common."""
    (one, rows), (other, others) = split_slice(first), split_slice(second)
    if Path(one).resolve() != Path(other).resolve():
        return False
    return rows is None or others is None or not {*rows.rows}.isdisjoint(others.rows)
