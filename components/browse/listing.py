"""The filter and order of a list of examples: plain values, read from the link and written to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.links import read_choice

FILTERS = ("all", "right", "wrong", "confident_wrong", "unsure", "off", "disagree", "rationale")
"""`off`: far from the score that a regression should give. `disagree`: methods rank the tokens differently."""
SORTS = ("index", "mistakes", "confident", "doubtful", "error", "disagree", "agree", "short", "long")
"""`mistakes`: failure cases first."""
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Listing:
    """The choice of a list.

    `search`: words that a text must have. `label`: the true class, by its name. Empty means any.
    """

    search: str = ""
    show: str = FILTERS[0]
    label: str = ""
    sort: str = SORTS[0]


DEFAULT_LISTING = Listing()


def write_listing(listing: Listing) -> dict[str, list[str]]:
    """The fields of a link: only what differs from the default."""
    fields = {"find": listing.search, "show": listing.show, "label": listing.label, "sort": listing.sort}
    defaults = {"find": "", "show": FILTERS[0], "label": "", "sort": SORTS[0]}
    return {name: [value] for name, value in fields.items() if value != defaults[name]}


def read_listing(last: Mapping[str, str], notes: list[str]) -> Listing:
    """The list that a link names; a sentence is added to `notes` for each unknown value."""
    return Listing(
        search=last.get("find", "")[:LONGEST_SEARCH],
        show=read_choice("show", last, FILTERS, notes),
        label=last.get("label", "")[:LONGEST_SEARCH],
        sort=read_choice("sort", last, SORTS, notes),
    )
