"""The examples that a plan's explainers are judged on, read once for all sections and runs of the page."""

from __future__ import annotations

import json
from collections.abc import Mapping

import streamlit as st

from components.inputs.datasets import FileStamp, file_stamp
from engine.home import home
from engine.scaffold.asked import Asked, asked_of
from engine.scaffold.plan import Plan

MOST_HELD = 6
MARKED_ALIKE: Mapping[str, tuple[str, ...]] = {
    "reviews-generated": ("reviews",),
    "sst2": ("reviews", "reviews-generated"),
    "reviews-marked": (),
}
"""Data sets of the same task in which other reasons are marked than in the plan's own, or any at all."""


def asked(plan: Plan, examples: int, dataset: str = "") -> Asked:
    """Of the plan's own data set where none is named: test examples. Errors: those of reading it."""
    name = dataset or plan.dataset
    return _asked(json.dumps(plan.as_plain(), sort_keys=True), examples, name, file_stamp(name), str(home()), plan)


def marked_sets(plan: Plan) -> dict[str, str]:
    """The data sets that explanations can be held against, by what a link calls them: the plan's own is empty."""
    alike = MARKED_ALIKE.get(plan.dataset.partition(":")[0], ())
    return {"": f"{plan.dataset}, test examples", **{name: name for name in alike}}


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the data set …")
def _asked(written: str, examples: int, dataset: str, data: FileStamp, home: str, _plan: Plan) -> Asked:
    return asked_of(_plan, examples, dataset)
