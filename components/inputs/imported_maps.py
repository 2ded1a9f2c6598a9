"""The imported maps that a page offers: all except those known not to cover the chosen data set or example."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import streamlit as st

from components.inputs.datasets import FileStamp, file_stamp
from engine.errors import ExegesisError
from engine.maps.imported import count_covered, find_imported, has_map
from engine.registry import IMPORTED_PREFIX, Explainer
from engine.request import Input

Methods = Mapping[str, Explainer]


def methods_for_dataset(methods: Methods, chosen: Collection[str], dataset: str, split: str | None = None) -> Methods:
    """Return the methods to offer for a data set.

    Imported maps are included only if they may cover one of its examples, or are chosen.
    """
    return {
        name: method
        for name, method in methods.items()
        if name in chosen or not method.digest or _covers(method, dataset, split)
    }


def methods_for_input(methods: Methods, chosen: Collection[str], input: Input | None) -> Methods:
    """Return the methods to offer for an input; imported maps only if they may cover it, or are chosen."""
    return {
        name: method
        for name, method in methods.items()
        if name in chosen or not method.digest or input is None or _has_map(method, input)
    }


def _has_map(method: Explainer, input: Input) -> bool:
    try:
        return has_map(find_imported(method.id.removeprefix(IMPORTED_PREFIX)), input) is not False
    except ExegesisError:  # the maps were removed or changed since the methods were listed
        return True


def _covers(method: Explainer, dataset: str, split: str | None) -> bool:
    """Whether imported maps cover an example of the data set, or may do so."""
    try:
        return _covers_file(method.id, method.digest, dataset, split, file_stamp(dataset))
    except ExegesisError:  # reported where the data set is read
        return True


@st.cache_data(max_entries=64, ttl=60, show_spinner=False)  # expires, because more pictures may be read soon
def _covers_file(id: str, digest: str, dataset: str, split: str | None, stamp: FileStamp) -> bool:
    covered = count_covered(find_imported(id.removeprefix(IMPORTED_PREFIX)), dataset, split)
    return covered is None or covered[0] > 0
