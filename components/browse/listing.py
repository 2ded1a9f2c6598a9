"""The filter and order of a list of examples: plain values, read from the link and written to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.params import option

FILTERS = ("all", "right", "wrong", "confident_wrong", "unsure", "off", "disagree", "rationale")
"""`off`: a score far from the true one. `disagree`: methods rank the tokens differently."""
SORTS = ("index", "mistakes", "confident", "doubtful", "error", "disagree", "agree", "short", "long")
"""`mistakes`: failure cases first."""
LONGEST_SEARCH = 200


def _read_words(given: Sequence[str], wrong: list[str]) -> str:
    return given[-1][:LONGEST_SEARCH] if given else ""


@dataclass(frozen=True)
class Listing:
    """The filter and order of a list.

    `search`: a text that examples must contain. `label`, `predicted`: names of the true and of the predicted class.
    Empty means any.
    """

    search: str = option("", link="find", exact=True, read=_read_words)
    show: str = option(FILTERS[0], choices=FILTERS)
    label: str = option("", exact=True, read=_read_words)
    sort: str = option(SORTS[0], choices=SORTS)
    predicted: str = option("", exact=True, read=_read_words)


DEFAULT_LISTING = Listing()
