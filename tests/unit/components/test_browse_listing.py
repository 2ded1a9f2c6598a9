"""The list of a data set and its place in the link."""

from __future__ import annotations

import pytest

from components.browse.listing import DEFAULT_LISTING, FILTERS, LONGEST_SEARCH, SORTS, Listing
from components.links import Query, read_record, write_record


def read(query: Query) -> tuple[Listing, list[str]]:
    said: list[str] = []
    return read_record(DEFAULT_LISTING, query, said), said


@pytest.mark.parametrize("show", FILTERS)
@pytest.mark.parametrize("sort", SORTS)
def test_a_link_keeps_the_list(show: str, sort: str) -> None:
    browse = Listing("not so good & <b>", show, "negative", sort)
    assert read(write_record(browse, DEFAULT_LISTING)) == (browse, [])


def test_only_what_differs_is_written() -> None:
    assert write_record(DEFAULT_LISTING, DEFAULT_LISTING) == {}
    assert write_record(Listing(show="wrong"), DEFAULT_LISTING) == {"show": ["wrong"]}
    assert read({}) == (DEFAULT_LISTING, [])


@pytest.mark.parametrize("name", ["show", "sort"])
def test_an_unknown_value_is_named_with_the_known_ones(name: str) -> None:
    browse, said = read({name: ["<b>x"]})
    assert browse == DEFAULT_LISTING
    assert len(said) == 1
    assert said[0].startswith(f"{name}: ")
    assert "<b>x" in said[0]


def test_an_endless_search_is_cut() -> None:
    assert len(read({"find": ["a" * 10_000]})[0].search) == LONGEST_SEARCH
