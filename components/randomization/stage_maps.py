"""The maps of one example by stage: a row for each method, a column for each stage, the similarity below each map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import describe_error, show_error, show_note
from components.experiment.runs import CachedResults, Ended, PlanStatus, ended_of, spec_of
from components.experiment.state import ExperimentState, Methods, chosen_of
from components.job_panel import JobPanel
from components.method_row import token_map
from components.numbers import hundredths, percent, plain, signed
from components.randomization.view import MEASURES, ORDERS, ORIGINAL, SCALES, SESSION, SIGNS, DrawnModel, choose
from components.widgets.patch_map import PatchMap, layers_html, patch_map, picture_style
from components.widgets.patch_map import sentence as sentence_of
from components.widgets.token_map import TokenMap, token_map_html
from engine.errors import ExegesisError
from engine.format import shorten
from engine.home import home
from engine.randomization.chunks import StageMaps, stage_maps
from engine.randomization.curves import changes_of, order_examples
from engine.randomization.plan import MODE_TITLES
from engine.randomization.result import MEASURES as MEASURED
from engine.randomization.result import ModelRandomization, Stage
from engine.registry import Explainer
from engine.request import Example, Input, Picture
from engine.result import Explanation, Prediction, explained_class
from engine.vision.picture import read_view

MapView = TokenMap | PatchMap
ALL = "All stages"
LABEL = "Maps by stage, a row for each method"
NO_MAP = "no map"
LONGEST = 70
MOST_CACHED = 24
NO_MAPS = "Some maps of this run are no longer in the cache. Only its numbers are."
MAPS_APART = (
    "Some maps of this run are no longer in the cache. To compute them again, select its models, data set and methods "
    "in the settings above."
)
BELOW = "Below each map: its {} with the original map, and the score of the strongest color."
ENDS = {
    "own": "Each map has its own color scale: compare the position of colors, not their strength.",
    "shared": "The maps of a method share a color scale: a map with small scores is pale.",
}
"""Note on the colors, by the selected scale."""


def stage_maps_area(
    state: ExperimentState, status: PlanStatus, models: Sequence[DrawnModel], methods: Methods,
    options: DeltaGenerator | None,
) -> None:  # fmt: skip
    """Draw the controls and the maps. `options`: container of the rare controls, or None while they are not drawn."""
    st.subheader("One example, stage by stage", anchor=False)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        drawn = _model(state, models)
        results, found = drawn.results, drawn.found
        way = choose(state, "Mode", "way", {mode: MODE_TITLES[mode] for mode in results.plan.modes})
        stages = [stage for stage in found.stages if stage.mode == way]
        wanted = choose(state, "Stage", "stage", {0: ALL} | {one.number: stage_title(one) for one in stages})
        draws = {n + 1: f"Seed {s}" for n, s in enumerate(found.seeds)}
        order, draw = chosen_of(state, "order", ORDERS), chosen_of(state, "draw", draws)
        by = chosen_of(state, "by", found.methods)
        if options is not None:
            with options, st.container(horizontal=True, gap="small"):
                _draw_options(state, found, methods, draws)
        if not found.examples:
            show_note("No maps: no example could be explained. The reasons are listed below.")
            return
        index = _example(state, drawn, changes_of(found, by, way, wanted, state.view.measure), order)
    ended = ended_of(results.plan, status.runs)
    try:
        every = _stage_maps(
            repr(spec_of(results.plan)), found.model, index, found.seeds[draw - 1], ended, str(home()), results
        )
    except ExegesisError as error:
        show_error(describe_error(error))
        return
    listed = [one for one in every if one.stage is None or (one.stage.mode == way and wanted in (0, one.stage.number))]
    _draw(state, drawn, listed, index, draw - 1, methods)
    if len(listed) < 1 + (1 if wanted else len(stages)):
        _offer_missing(status, results)


def _model(state: ExperimentState, models: Sequence[DrawnModel]) -> DrawnModel:
    by_name = {one.name: one for one in models}
    if len(by_name) == 1:
        return models[0]
    return by_name[choose(state, "Model", "of", {name: name for name in by_name})]


def _draw_options(
    state: ExperimentState, found: ModelRandomization, methods: Methods, draws: Mapping[int, str]
) -> None:  # fmt: skip
    """Draw the order of the examples, the method that it depends on, the randomization and the colors."""
    if choose(state, "Order of examples", "order", ORDERS) != "index":
        choose(state, "Changed by", "by", {id: methods[id].title if id in methods else id for id in found.methods})
    choose(state, "Randomization", "draw", draws)
    choose(state, "Map colors", "scale", SCALES)


def _example(state: ExperimentState, drawn: DrawnModel, changes: np.ndarray, order: str) -> int:
    """Draw the choice of the example. Return its index in the data set."""
    measure = "" if order == "index" else state.view.measure
    listed = dict(_labels(drawn, order_examples(drawn.found, changes, order), changes, measure))
    return int(choose(state, "Example", "example", listed, width=560))


def _labels(
    drawn: DrawnModel, places: Sequence[int], changes: np.ndarray, measure: str
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Yield the labels of the examples: index, the value that orders them, and the text or the label."""
    for at in places:
        index, number = drawn.found.examples[at], ""
        if measure:
            value = float(changes[at])
            number = "no value · " if np.isnan(value) else f"{SIGNS[measure]} {hundredths(value)} · "
        yield str(index), f"#{index} {number}{_title(drawn.results, index)}"


def _title(results: CachedResults, index: int) -> str:
    try:
        candidate = results.sample.source.read(index)
    except ExegesisError:
        return ""
    given = candidate.input
    return shorten(given.text if isinstance(given, Example) else candidate.label or "", LONGEST)


def _draw(
    state: ExperimentState, drawn: DrawnModel, listed: Sequence[StageMaps], index: int, draw: int, methods: Methods
) -> None:
    if not listed:
        return
    found, view = drawn.found, state.view
    given = drawn.results.sample.source.read(index).input
    wanted = [methods[id] for id in found.methods if not view.only or id in view.only]
    likeness = likeness_of(found, listed, index, draw, view.measure)
    if isinstance(given, Picture):
        st.html(picture_style(read_view(found.model).transform(given.pixels)))
    st.html(grid_html(MapGrid(listed, wanted, given, likeness, view.measure, view.scale == "shared")))
    st.caption(f"{BELOW.format(MEASURES[view.measure].lower())} {ENDS[view.scale]}")


def likeness_of(
    found: ModelRandomization, listed: Sequence[StageMaps], index: int, draw: int, measure: str
) -> dict[tuple[int, str], MapLikeness]:
    """Return the similarity of this example's maps at this randomization, by position in `listed` and method."""
    at, which = found.examples.index(index), MEASURED.index(measure)
    numbers: dict[tuple[int, str], MapLikeness] = {}
    for place, one in enumerate(listed):
        if one.stage is None:
            continue
        stage = found.stages.index(one.stage)
        for number, method in enumerate(found.methods):
            value = float(found.likeness[stage, draw, number, which, at])
            why = found.reason(stage, draw, number, at)
            numbers[place, method] = MapLikeness(None if np.isnan(value) else value, why)
    return numbers


def _offer_missing(status: PlanStatus, results: CachedResults) -> None:
    """Offer a job that computes missing maps again, if they belong to the plan of the page."""
    if status.running is not None:
        return
    if results.plan != status.results.plan:
        show_note(MAPS_APART)
        return
    show_note(NO_MAPS)
    area, tried_above = JobPanel(SESSION.page), bool(status.results.missing or status.results.incomplete)
    if not tried_above and not area.go_on(status.last):
        area.offer("Compute the maps", "maps", SESSION.experiment.id, spec_of(results.plan))


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the maps …")
def _stage_maps(
    written: str, model: str, index: int, seed: int, ended: Ended, home: str, _results: CachedResults
) -> list[StageMaps]:
    return stage_maps(_results.plan, model, _results.sample, index, seed)


@dataclass(frozen=True)
class MapLikeness:
    """The similarity below a map, or the reason why there is none."""

    value: float | None
    why: str = ""


@dataclass(frozen=True)
class MapGrid:
    """The table of maps.

    `stages`: the original model, then the stages. `likeness`: by position in `stages` and method. `shared`: whether the
    maps of a method share a color scale.
    """

    stages: Sequence[StageMaps]
    methods: Sequence[Explainer]
    given: Input
    likeness: Mapping[tuple[int, str], MapLikeness]
    measure: str
    shared: bool


def grid_html(grid: MapGrid) -> str:
    """HTML of the table. External text is escaped."""
    heads = "".join(f'<th scope="col">{_head(grid, place)}</th>' for place in range(len(grid.stages)))
    rows = "".join(_row(grid, method) for method in grid.methods)
    kind = "xg-pictures" if isinstance(grid.given, Picture) else "xg-texts-of"
    few = " xg-few" if len(grid.stages) < 3 else ""
    return (
        f'<div class="xg"><div class="xg-scroll xg-stages-box" tabindex="0" role="region" aria-label="{LABEL}">'
        f'<table class="xg-stages {kind}{few}"><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody>'
        f"</table></div></div>"
    )


def stage_title(stage: Stage | None) -> str:
    """Return the title of a stage; None stands for the original model."""
    return ORIGINAL.capitalize() if stage is None else f"{stage.words[:1].upper()}{stage.words[1:]}"


def view_of(method: Explainer, explanation: Explanation, given: Input, end: float | None = None) -> MapView:
    """Return the map of an explanation. `end`: end of its color scale, None for its own."""
    view: MapView = (
        token_map(method, explanation, given, "token") if isinstance(given, Example) else patch_map(method, explanation)
    )
    return view if end is None else replace(view, end=end)


def prediction_words(prediction: Prediction, target: int) -> str:
    """Describe the predicted class and the probability of the explained class."""
    if prediction.regression:
        return f"score {signed(prediction.logits[0])}"
    label = prediction.labels[prediction.index]
    if prediction.index == target:
        return f"{label} {percent(prediction.probabilities[target])}"
    return f"{label}; {prediction.labels[target]} {percent(prediction.probabilities[target])}"


def _head(grid: MapGrid, place: int) -> str:
    one, first = grid.stages[place], grid.stages[0].prediction
    changed = not first.regression and one.prediction.index != first.index
    mark = ' <span class="xg-changed">another class</span>' if changed else ""
    words = escape(prediction_words(one.prediction, explained_class(grid.given, first)))
    return f'<p class="xg-title">{escape(stage_title(one.stage))}</p><p class="xg-small"><bdi>{words}</bdi>{mark}</p>'


def _row(grid: MapGrid, method: Explainer) -> str:
    views = list(_views(grid, method))
    cells = "".join(_cell(grid, method, place, view) for place, view in enumerate(views))
    return f'<tr><th scope="row">{escape(method.title)}</th>{cells}</tr>'


def _views(grid: MapGrid, method: Explainer) -> Iterator[MapView | None]:
    """Yield the map of the method at each stage, or None if it has none."""
    explanations = [one.maps.get(method.id) for one in grid.stages]
    own = [None if one is None else view_of(method, one, grid.given) for one in explanations]
    end = max((view.largest for view in own if view is not None), default=0.0) if grid.shared else None
    yield from (None if view is None else view if end is None else replace(view, end=end) for view in own)


def _cell(grid: MapGrid, method: Explainer, place: int, view: MapView | None) -> str:
    if view is None:
        return f'<td><p class="xg-small">{NO_MAP}</p></td>'
    return f"<td>{_map(method, grid, place, view)}{_foot(grid, method, place, view)}</td>"


def _map(method: Explainer, grid: MapGrid, place: int, view: MapView) -> str:
    if isinstance(view, TokenMap):
        return token_map_html(view)
    words = escape(f"{method.title}, {stage_title(grid.stages[place].stage)}. {sentence_of(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{words}">{layers_html(view)}</div>'


def _foot(grid: MapGrid, method: Explainer, place: int, view: MapView) -> str:
    size = f"to {'±' if view.signed else ''}{plain(view.scale)}" if view.largest else "all zero"
    if place == 0:
        return f'<p class="xg-small">{size}</p>'
    one = grid.likeness.get((place, method.id), MapLikeness(None, NO_MAP))
    if one.value is None:
        return f'<p class="xg-small" title="{escape(one.why)}"><b>constant</b> · {size}</p>'
    number = f"{SIGNS[grid.measure]} {hundredths(one.value, sign=grid.measure != 'top_k')}"
    return f'<p class="xg-small"><b>{number}</b> · {size}</p>'
