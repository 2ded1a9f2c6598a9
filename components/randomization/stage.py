"""One example's maps stage by stage, below the curves: so that a number can be seen in what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.numbers import hundredths
from components.picture.variables import picture_style
from components.randomization.choose import one_of
from components.randomization.entries import Entry
from components.randomization.known import Held, ended_of, shown_of, spec_of
from components.randomization.look import LOOK, MEASURES, ORDERS, SCALES, SIGNS
from components.randomization.maps import Grid, Likeness, grid_html, stage_title
from components.randomization.session import put
from components.randomization.words import BELOW, ENDS, MAPS_APART, MODE_TITLES, NO_MAPS
from components.randomization.work import AREA
from components.trouble import say_error, say_note, sentence
from engine.errors import ExegesisError
from engine.randomization.curves import changes_of, order_examples
from engine.randomization.plan import MODES
from engine.randomization.result import MEASURES as MEASURED
from engine.registry import Explainer
from engine.request import Picture
from engine.vision.view import read_view as eyes_of

if TYPE_CHECKING:
    from components.randomization.known import Known
    from components.randomization.state import RandomizationState
    from engine.randomization.result import ModelRandomization
    from engine.randomization.stage_maps import StageMaps

ALL = "All stages"
LONGEST = 70


def stage_at(kind: str, picked: Mapping[str, object]) -> None:
    """Shows the stage that was picked in a chart; all stages where none was."""
    model, mode, stage, method = (picked.get(name) for name in ("model", "slice", "percent", "method"))
    if not isinstance(model, str) or mode not in MODES or not isinstance(stage, int | float):
        put(kind, f"{LOOK}stage", 0)
        return
    for name, value in {"of": model, "way": mode, "stage": int(stage), "by": method}.items():
        put(kind, f"{LOOK}{name}", value)


def stage_area(
    state: RandomizationState, seen: Known, entries: Sequence[Entry], methods: Mapping[str, Explainer]
) -> None:
    """The controls, then the maps."""
    st.subheader("One example, stage by stage", anchor=False)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        chosen = _model(state, entries)
        held, found = chosen.held, chosen.found
        way = one_of(state, "Mode", "way", {mode: MODE_TITLES[mode] for mode in held.plan.modes})
        stages = [stage for stage in found.stages if stage.mode == way]
        wanted = one_of(state, "Stage", "stage", {0: ALL} | {one.number: stage_title(one) for one in stages})
        draw = one_of(state, "Randomization", "draw", {n + 1: f"Seed {s}" for n, s in enumerate(found.seeds)})
        one_of(state, "Colours", "scale", SCALES)
    index = _example(state, held, found, methods, way, wanted)
    if index is None:
        return
    try:
        shown = shown_of(held, found.model, index, found.seeds[draw - 1], ended_of(held.plan, seen.before))
    except ExegesisError as error:
        say_error(sentence(error))
        return
    listed = [one for one in shown if one.stage is None or (one.stage.mode == way and wanted in (0, one.stage.number))]
    _draw(state, held, found, listed, index, draw - 1, methods)
    if len(listed) < 1 + (1 if wanted else len(stages)):
        _missing(seen, held)


def _model(state: RandomizationState, entries: Sequence[Entry]) -> Entry:
    by_name = {one.name: one for one in entries}
    if len(by_name) == 1:
        return entries[0]
    return by_name[one_of(state, "Model", "of", {name: name for name in by_name})]


def _example(
    state: RandomizationState,
    held: Held,
    found: ModelRandomization,
    methods: Mapping[str, Explainer],
    way: str,
    stage: int,
) -> int | None:
    """The chosen one, its place in the data set; None after saying why there is none."""
    if not found.examples:
        say_note("No example could be explained, so that there are no maps. Below, the reasons are listed.")
        return None
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        order = one_of(state, "Examples", "order", ORDERS)
        by = found.methods[0]
        if order != "index":
            by = one_of(state, "Changed by", "by", {id: _title(id, methods) for id in found.methods})
        changes = changes_of(found, by, way, stage, state.look.measure)
        measure = "" if order == "index" else state.look.measure
        listed = dict(_labels(held, found, order_examples(found, changes, order), changes, measure))
        return int(one_of(state, "Example", "example", listed, width=560))


def _labels(
    held: Held, found: ModelRandomization, places: Sequence[int], changes: np.ndarray, measure: str
) -> Iterator[tuple[str, str]]:
    """What each example is called: the number first that decides the order, then the text or the label."""
    for at in places:
        index = found.examples[at]
        yield str(index), f"#{index} {_number(changes[at], measure)}{_called(held, index)}"


def _number(value: float, measure: str) -> str:
    if not measure:
        return ""
    return "no number · " if np.isnan(value) else f"{SIGNS[measure]} {hundredths(float(value))} · "


def _called(held: Held, index: int) -> str:
    try:
        candidate = held.sample.source.read(index)
    except ExegesisError:
        return ""
    given = candidate.input
    words = (candidate.label or "") if isinstance(given, Picture) else " ".join(given.text.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _draw(
    state: RandomizationState, held: Held, found: ModelRandomization, listed: Sequence[StageMaps], index: int,
    draw: int, methods: Mapping[str, Explainer],
) -> None:  # fmt: skip
    if not listed:
        return
    given = held.sample.source.read(index).input
    wanted = [methods[id] for id in found.methods if not state.look.only or id in state.look.only]
    likeness = likeness_of(found, listed, index, draw, state.look.measure)
    if isinstance(given, Picture):
        st.html(picture_style(eyes_of(found.model).transform(given.pixels)))
    st.html(grid_html(Grid(listed, wanted, given, likeness, state.look.measure, state.look.scale == "shared")))
    st.caption(f"{BELOW.format(MEASURES[state.look.measure].lower())} {ENDS[state.look.scale]}")


def likeness_of(
    found: ModelRandomization, listed: Sequence[StageMaps], index: int, draw: int, measure: str
) -> dict[tuple[int, str], Likeness]:
    """By place among those listed and method: this example's own number at this randomization."""
    at, which = found.examples.index(index), MEASURED.index(measure)
    made: dict[tuple[int, str], Likeness] = {}
    for place, one in enumerate(listed):
        if one.stage is None:
            continue
        stage = found.stages.index(one.stage)
        for number, method in enumerate(found.methods):
            value = float(found.likeness[stage, draw, number, which, at])
            why = found.reason(stage, draw, number, at)
            made[place, method] = Likeness(None if np.isnan(value) else value, why)
    return made


def _missing(seen: Known, held: Held) -> None:
    """The numbers are there and maps are not: a job makes them again, of the check that the page is of."""
    if seen.running is not None:
        return
    if held.plan != seen.held.plan:
        say_note(MAPS_APART)
        return
    say_note(NO_MAPS)
    tried_above = bool(seen.held.missing or seen.held.lacking)
    if not tried_above and not AREA.go_on(seen.last):
        AREA.offer("Compute the maps", "maps", "randomize", spec_of(seen.held.plan))


def _title(id: str, methods: Mapping[str, Explainer]) -> str:
    return methods[id].title if id in methods else id
