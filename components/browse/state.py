"""Which examples of a data set are listed, and in which order: plain values, read from the link and written to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.link_choice import choice

FILTERS = ("all", "right", "wrong", "confident_wrong", "unsure", "off", "disagree", "rationale")
"""`off`: far from the score that a regression should give. `disagree`: methods rank the tokens differently."""
SORTS = ("index", "mistakes", "confident", "doubtful", "error", "disagree", "agree", "short", "long")
"""`mistakes`: failure cases first."""
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Browse:
    """`search`: words that a text must have. `label`: the true class, by its name. Empty means any."""

    search: str = ""
    show: str = FILTERS[0]
    label: str = ""
    sort: str = SORTS[0]


PLAIN_BROWSE = Browse()


def write_browse(browse: Browse) -> dict[str, list[str]]:
    """What a link says of the list: only what differs from the usual."""
    said = {"find": browse.search, "show": browse.show, "label": browse.label, "sort": browse.sort}
    usual = {"find": "", "show": FILTERS[0], "label": "", "sort": SORTS[0]}
    return {name: [value] for name, value in said.items() if value != usual[name]}


def read_browse(last: Mapping[str, str], said: list[str]) -> Browse:
    """The list that a link asks for; a sentence is added to `said` for each value that is not known."""
    return Browse(
        search=last.get("find", "")[:LONGEST_SEARCH],
        show=choice("show", last, FILTERS, said),
        label=last.get("label", "")[:LONGEST_SEARCH],
        sort=choice("sort", last, SORTS, said),
    )
