"""Where they disagree most: a job makes the maps of many examples, the list shows those that differ most first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.browse.controls import Offer, draw_jobs, draw_walk
from components.browse.results import JobStamp, count_losses, portable_name, portable_picture_name, related_jobs
from components.compare.compared import Compared
from components.compare.look import EXAMPLES, CompareLook
from components.compare.session import LOOK, Opened, key
from components.compare.state import LETTERS
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.inputs.picture_choice import PictureFocus
from components.kept import KEPT
from components.numbers import count, hundredths
from components.row_choice import row_choice
from components.trouble import say_error, sentence
from engine.home import home
from engine.table_io import escape_cell

if TYPE_CHECKING:
    import pandas

    from engine.comparison.search import Disputed, Search

TABLE = "disputed"
MOST_IN_VIEW, MOST_CHARACTERS = 10, 160
FEW = "Two columns with a map are needed: what cannot read this example is not asked for others."


def search_area(compared: Compared, opened: Opened) -> None:
    """Opened by its switch. Columns without a map of the example at hand are not searched."""
    state = compared.state
    st.subheader("Where they disagree most", anchor=False)
    if not st.toggle(
        "Examples of the data set, most disagreement first", key=key(state.kind, "open.search"), persist_state=KEPT,
        help="Runs every column on many examples, as a job that goes on when you leave the page.",
    ):  # fmt: skip
        return
    if opened.error:
        st.info("The data set cannot be read: above it says why. Pick another one.")
        return
    if len(compared.there) < 2:
        st.info(FEW)
        return
    st.selectbox(
        "Examples", EXAMPLES, key=key(state.kind, f"{LOOK}examples"), width=150, persist_state=KEPT,
        help="How many are compared, drawn by the seed.",
    )  # fmt: skip
    try:
        _drawn(compared, opened)
    except Exception as error:
        say_error(sentence(error))


def search_of(compared: Compared, opened: Opened) -> Search:
    """What is searched: the columns that have a map here, on the data set that is open."""
    from engine.comparison.search import Search

    state = compared.state
    pairs = tuple(state.columns[LETTERS.index(column.letter)] for column in compared.there)
    split = None if isinstance(opened, OpenTexts) else opened.split or None
    return Search(
        _portable(opened), pairs, state.kind, split, state.look.examples, state.seed, state.target
    )  # fmt: skip


def _is_about(spec: Mapping[str, object], asked: Mapping[str, object]) -> bool:
    """Whether a job makes the same maps, of however many examples."""
    return {**spec, "examples": 0} == {**asked, "examples": 0}


def _portable(opened: Opened) -> str:
    return portable_name(opened.name) if isinstance(opened, OpenTexts) else portable_picture_name(opened.name)


def _drawn(compared: Compared, opened: Opened) -> None:
    search = search_of(compared, opened)
    spec = search.as_plain()
    jobs = related_jobs("compare", lambda job: _is_about(job.spec, spec))
    reference = None if compared.reference is None else compared.reference.row
    found = _found(
        search, compared.state.look, reference, opened.data.revision, jobs.stamp, count_losses(), str(home())
    )  # fmt: skip
    wanted = min(search.examples, len(opened.data))
    whole = [one for one in found if one.maps == len(search.pairs)]  # with fewer maps the number means something else
    missing = wanted - len(whole)
    label = f"Compare {count(wanted, 'example')}" if not whole else f"Compare the other {count(missing, 'example')}"
    offers = [Offer(label, "compare_columns", spec, kind="compare")] if missing else []
    draw_jobs(jobs, offers)
    if whole:
        _list(compared, opened, whole)
    elif jobs.running is None:
        st.info(f"Nothing is compared yet. Press {label}.")


def _list(compared: Compared, opened: Opened, found: Sequence[Disputed]) -> None:
    state = compared.state
    places = [one.index for one in found]
    current = state.focus.index if not isinstance(state.focus, PictureFocus) or not state.focus.own else None
    draw_walk(places, current, partial(_show, opened), partial(key, state.kind))
    row_choice(
        frame(found, compared),
        key(state.kind, TABLE),
        places.index(current) if current in places else None,
        lambda row: _show(opened, places[row]),
        {
            "#": st.column_config.NumberColumn(width=60, help="The place in the data set"),
            "Disagreement": st.column_config.NumberColumn(format="%.2f", width=110),
            "Example": st.column_config.TextColumn(width=420),
        },
        MOST_IN_VIEW,
    )
    st.caption(list_words(found, compared))


def frame(found: Sequence[Disputed], compared: Compared) -> pandas.DataFrame:
    """A row an example: place, disagreement, whether the predicted classes differ, what each model predicts, text."""
    import pandas

    columns: dict[str, list[object]] = {
        "#": [one.index for one in found],
        "Disagreement": [one.value for one in found],
        "Example": [_cell(one.name) for one in found],
    }
    models: dict[str, int] = {}
    for place, column in enumerate(compared.there):
        models.setdefault(column.model, place)
    if len(models) > 1:
        columns["Classes"] = ["differ" if one.labels_differ else "same" for one in found]
    columns |= {model: [_cell(one.predicted[place] or "") for one in found] for model, place in models.items()}
    return pandas.DataFrame(columns)


def list_words(found: Sequence[Disputed], compared: Compared) -> str:
    """What the number is, and over how many examples."""
    look = compared.look
    name = "ρ" if look.measure == "spearman" else f"shared top {look.percent} %"
    values = [one.value for one in found if one.value is not None]
    mean = f" Mean {hundredths(sum(values) / len(values))}." if values else ""
    left = len(found) - len(values)
    none = f" {count(left, 'example')} without an order to compare, last." if left else ""
    over = compared.apart_over
    return f"{count(len(found), 'example')}. Disagreement is 1 minus the mean {name} over {over}.{mean}{none}"


@st.cache_resource(max_entries=8, show_spinner="Reading the maps …")
def _found(
    search: Search,
    look: CompareLook,
    reference: int | None,
    revision: str,
    stamp: JobStamp,
    losses: int,
    home: str,
) -> list[Disputed]:
    from engine.comparison.search import disputed

    return disputed(search, look.how, look.unit, reference, made=False)


def _show(opened: Opened, index: int) -> None:
    if isinstance(opened, OpenTexts):
        text_choice.show(opened, index)
    else:
        picture_focus_controls.show(opened, index)


def _cell(text: str) -> str:
    line = " ".join(text.split())
    return escape_cell(line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…")
