"""Readings and scores of all heads, from memory, from the cache, or computed with progress."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator

from components.attention.state import BOARD_KEYS, AttentionState, key
from components.compute import Tick, explain, is_cached, is_stopped, run_cached
from components.controls import PERSIST
from components.inputs.choices import CHOICES
from components.method_row import explained_name
from components.numbers import count, plain, plural, signed
from components.prediction import PROBE
from components.progress import run_with_progress
from components.widgets.attention_board import (
    AGAINST,
    BoardOptions,
    Head,
    HeadScoreMap,
    describe_view,
    feature_maps,
    head_name,
    query_position,
    selected_head,
    strongest_head,
    visible_numbers,
)
from engine.errors import ExegesisError
from engine.explain import key_of
from engine.heads.readings import HeadAblation, HeadReading, read_heads, reading_key, switch_off_each, switching_key
from engine.heads.scores import AGREEMENT, AGREES, IMPORTANCE, OFF, SCORES, PerHead, agreement_with
from engine.input_kinds import INPUT_KINDS
from engine.metrics.ranking import rho_limit
from engine.registry import explainer
from engine.request import Input, Request
from engine.result import Explanation
from engine.store import result_store

MAX_READINGS = 3
"""Maximum number of readings in memory. One of a long text takes about 100 MB, and a page draws it repeatedly."""
CAUTION = (
    "Attention shows where a head reads from, not what the prediction depends on (Jain and Wallace, 2019; Wiegreffe "
    "and Pinter, 2019). The test here: does a head's map rank the {units} as an attribution of this {kind} does?"
)
MIN_FEATURES = 2
"""Smallest number of features that can be ranked."""
MAX_LIMITS = 64
CLOSE = 0.9
"""Share of the largest score from which another head is called close to it."""


class ReadingMemory:
    """The most recent readings of all sessions."""

    def __init__(self, size: int = MAX_READINGS) -> None:
        self._size, self._lock = size, threading.Lock()
        self._readings: OrderedDict[str, HeadReading] = OrderedDict()

    def get(self, key: str) -> HeadReading | None:
        with self._lock:
            if key in self._readings:
                self._readings.move_to_end(key)
            return self._readings.get(key)

    def put(self, key: str, reading: HeadReading) -> None:
        with self._lock:
            self._readings[key] = reading
            self._readings.move_to_end(key)
            while len(self._readings) > self._size:
                self._readings.popitem(last=False)


@st.cache_resource(show_spinner=False)
def reading_memory() -> ReadingMemory:
    """Return the memory that all sessions share."""
    return ReadingMemory()


def await_reading(state: AttentionState) -> HeadReading | None:
    """Return the reading of the page's input; None after a message if there is none."""
    request = state.request(PROBE)
    return run_with_progress(
        st.empty(), lambda: reading_key(request), "Reading the heads", "Stopped before the heads were read.",
        lambda tick: load_reading(request, tick),
    )  # fmt: skip


def load_reading(request: Request, tick: Tick) -> HeadReading:
    """Return the reading, computed if missing. `tick` gets the progress. Errors: `Cancelled` if the user stops it."""
    key = reading_key(request)
    reading = reading_memory().get(key)
    if reading is None:
        reading = run_cached(key, lambda token: read_heads(request, token), tick)
        reading_memory().put(key, reading)
    return reading


def await_scores(state: AttentionState, reading: HeadReading, place: DeltaGenerator) -> HeadScoreMap | None:
    """Return the chosen score of every head; None after a message in `place`, an empty element, if there is none.

    Scores that are not part of the reading are computed here, with their progress in `place`.
    """
    if state.board.score == AGREEMENT:
        attribution = await_attribution(state, place)
        return None if attribution is None else agreement_score_map(reading, attribution, state.board)
    if state.board.score == OFF:
        ablation = await_ablation(state, place)
        return None if ablation is None else ablation_score_map(ablation, reading.explanation.prediction.regression)
    return _build_score_map(state.board.score, reading.scores[state.board.score])


def is_pending(state: AttentionState) -> bool:
    """Whether `await_scores` would have to compute: neither cached nor stopped."""
    keys = {
        OFF: lambda: switching_key(state.request(PROBE)),
        AGREEMENT: lambda: key_of(state.request(state.board.against)),
    }
    if state.board.score not in keys:
        return False
    try:
        key = keys[state.board.score]()
    except ExegesisError:  # `await_scores` reports it
        return False
    return not is_stopped(key) and not result_store().contains(key)


def await_ablation(state: AttentionState, place: DeltaGenerator) -> HeadAblation | None:
    """Return the predictions with each head switched off in turn; None after a message if there are none."""
    request = state.request(PROBE)

    def work(tick: Tick) -> HeadAblation:
        return run_cached(switching_key(request), lambda token: switch_off_each(request, cancel=token), tick)

    stopped = "Stopped before every head was switched off."
    return run_with_progress(place, lambda: switching_key(request), "Switching each head off", stopped, work)


def await_attribution(state: AttentionState, place: DeltaGenerator) -> Explanation | None:
    """Return the attribution that head maps are compared with, of the same input, class and switched heads."""
    request = state.request(state.board.against)
    title = explainer(request.method, state.kind).title
    return run_with_progress(
        place, lambda: key_of(request), f"Computing: {title}", f"Stopped: {title}.", lambda tick: explain(request, tick)
    )


def ablation_score_map(ablation: HeadAblation, regression: bool) -> HeadScoreMap:
    """Return the drop in the prediction without each head; positive if the head supports the class."""
    if regression:
        return _build_score_map(OFF, ablation.fall, unit="score")
    flips = int(ablation.flipped.sum())
    words = f"The predicted class changes for {count(flips, 'head') if flips else 'no head'}."
    return _build_score_map(OFF, ablation.fall, words)


def agreement_score_map(reading: HeadReading, attribution: Explanation, options: BoardOptions) -> HeadScoreMap:
    """Return the rank agreement of each head's map, as the board draws it, with an attribution."""
    title, units = method_title(attribution), plural(unit_noun(attribution))
    return HeadScoreMap(
        AGREEMENT,
        f"Agreement with {title}",
        AGREES.unit,
        AGREES.signed,
        agreement_with(feature_maps(reading, options), attribution.scores[attribution.features]),
        f"Rank correlation over {units} between a head's map ({describe_view(reading, options)}) and "
        f"the absolute scores of {title}: +1 is the same order, 0 is no relation. Undefined if the map is constant.",
        AGREES.citation,
    )


def _build_score_map(id: str, values: PerHead, more: str = "", unit: str | None = None) -> HeadScoreMap:
    score = SCORES[id]
    words = " ".join(filter(None, (score.about, more)))
    return HeadScoreMap(id, score.title, unit or score.unit, score.signed, values, words, score.citation)


def answer_html(scores: HeadScoreMap, options: BoardOptions, reading: HeadReading, example: Input) -> str:
    """HTML that says which visible head has the largest score, and how it compares with the others.

    All names are escaped.
    """
    layers, heads = reading.slope.shape
    rows, columns = visible_numbers(options.layers, layers), visible_numbers(options.heads, heads)
    values = scores.values[np.ix_(rows, columns)]
    sizes = np.abs(values[~np.isnan(values)])
    if not len(sizes) or not sizes.max():
        return f'<div class="xg"><p>No head differs from the others: {escape(scores.title)} is 0 or missing.</p></div>'
    head = strongest_head(scores, options, layers, heads)
    value, label = float(scores.values[head]), f"<i>{escape(explained_name(reading.explanation, example))}</i>"
    name = f"Layer {head[0]}, head {head[1]}"
    if scores.id == IMPORTANCE:
        text = f"{name} matters most for {label}: importance {plain(value)} {scores.unit}"
    elif scores.id == OFF:
        subject = "score" if reading.explanation.prediction.regression else f"probability of {label}"
        verb = "falls" if value > 0 else "rises"
        text = f"The {subject} {verb} most without {name[0].lower()}{name[1:]}: by {plain(abs(value))}"
    elif scores.id == AGREEMENT:
        order = "" if value > 0 else " in the opposite order"
        text = f"{name} has the strongest {scores.title[0].lower()}{scores.title[1:]}{order}: ρ = {signed(value)}"
    else:
        text = f"{name} has the largest value of {scores.title.lower()}: {plain(value)} {scores.unit}"
    text += _compare_with_median(float(sizes.max()), sizes, scores.signed) + _close_seconds(scores, rows, columns, head)
    return f'<div class="xg"><p><b>{text}.</b></p></div>'


def _close_seconds(scores: HeadScoreMap, rows: list[int], columns: list[int], first: Head) -> str:
    """Describe the heads that are nearly as strong as the first, so that it is not read as the only one."""
    least = CLOSE * abs(float(scores.values[first]))
    close = [(row, column) for row in rows for column in columns if abs(scores.values[row, column]) >= least]
    others = [head for head in close if head != first]
    if len(others) == 1:
        layer, head = others[0]
        return f". Close second: layer {layer}, head {head} ({plain(float(scores.values[layer, head]))})"
    return f". {len(others)} other heads are within 10% of it" if others else ""


def _compare_with_median(largest: float, sizes: Float[np.ndarray, "head"], is_signed: bool) -> str:
    """Compare the largest score with the median over heads, by absolute value if scores are signed."""
    median = float(np.median(sizes))
    of = f"{'median size' if is_signed else 'median'} of {count(len(sizes), 'head')}"
    if len(sizes) == 1:
        return ""
    return f", {plain(largest / median)} times the {of}" if median else f"; the {of} is 0"


def method_title(explanation: Explanation) -> str:
    """The title of the explanation's method."""
    return explainer(explanation.provenance.method, explanation.kind).title


def unit_noun(explanation: Explanation) -> str:
    """The noun for a feature of the explanation's input."""
    return INPUT_KINDS[explanation.kind].feature


@dataclass(frozen=True, eq=False)
class HeadAgreement:
    """The agreement of every head's map with one attribution.

    `view`: a noun phrase for the maps. `rho`: NaN if a map is constant. `limit`: result of `rho_limit`, None if no rho
    can differ from chance.
    """

    title: str
    view: str
    unit: str
    n: int
    rho: PerHead
    limit: float | None

    def agrees(self, head: Head) -> bool:
        """Whether the head's map has the same order as the attribution, significantly more than by chance."""
        return self.limit is not None and bool(self.rho[head] > self.limit)

    @property
    def agreeing(self) -> int:
        return 0 if self.limit is None else int((self.rho > self.limit).sum())

    @property
    def opposite(self) -> int:
        return 0 if self.limit is None else int((self.rho < -self.limit).sum())

    @property
    def best(self) -> Head:
        layer, head = np.unravel_index(np.nanargmax(self.rho), self.rho.shape)
        return int(layer), int(head)


def agreement_section(state: AttentionState, reading: HeadReading, scores: HeadScoreMap | None) -> None:
    """Draw the caution about attention, and the agreement of the heads with an attribution, computed on request."""
    st.subheader("Is attention an explanation here?", anchor=False)
    unit, kind = unit_noun(reading.explanation), CHOICES[state.kind].noun
    st.html(f'<div class="xg"><p class="xg-small">{CAUTION.format(units=plural(unit), kind=kind)}</p></div>')
    if len(reading.explanation.features) < MIN_FEATURES:
        st.info(f"This {kind} has only one {unit} to rank, so there is nothing to compare.")
        return
    st.segmented_control(
        "Compare with",
        AGAINST,
        key=key(state.kind, f"{BOARD_KEYS}against"),
        required=True,
        format_func=lambda method: explainer(method, state.kind).title,
        persist_state=PERSIST,
        help="The attribution explains the same input and class, with the same head changes. Its absolute scores are "
        "compared, because attention has no sign.",
    )
    if scores is None and state.board.score == AGREEMENT:  # the reason is shown above the board
        return
    place = st.empty()
    if not _is_wanted(state):
        _compare_button(state, place)
        return
    attribution = await_attribution(state, place)
    if attribution is not None:
        agreement = measure_agreement(state, reading, attribution)
        place.html(agreement_html(agreement, selected_head(state.board, scores, reading), kind))


def measure_agreement(state: AttentionState, reading: HeadReading, attribution: Explanation) -> HeadAgreement:
    """Compare each head's map, as the board draws it, with the attribution."""
    options, maps, scores = state.board, feature_maps(reading, state.board), attribution.scores[attribution.features]
    visible = ~np.isnan(maps).any((0, 1))  # a causal model's query does not attend to later positions
    n = int(visible.sum())
    query = query_position(reading, options) if options.view == "query" else None
    name = f"{key_of(state.request(attribution.provenance.method))}.{query}"
    grid = attribution.grid if visible.all() else None
    return HeadAgreement(
        title=method_title(attribution),
        view=describe_view(reading, options),
        unit=unit_noun(attribution),
        n=n,
        rho=agreement_with(maps, scores),
        limit=_limit(name, maps[..., visible].reshape(-1, n), scores[visible], grid),
    )


@st.cache_data(show_spinner=False, max_entries=MAX_LIMITS)
def _limit(
    name: str,
    _maps: Float[np.ndarray, "map feature"],
    _scores: Float[np.ndarray, "feature"],
    _grid: tuple[int, int] | None,
) -> float | None:
    """Return `rho_limit`; `name` determines the other arguments in the cache."""
    return rho_limit(_maps, _scores, _grid)


def agreement_html(agreement: HeadAgreement, head: Head, kind: str) -> str:
    """HTML of the agreement and of its meaning for one head. All names are escaped."""
    if np.isnan(agreement.rho).all():
        lines = [f"Nothing to rank: all scores of {escape(agreement.title)}, or of each head's map, are equal."]
    else:
        verdict = _describe_verdict(agreement, head, kind)
        lines = [_describe_head(agreement, head), _describe_all_heads(agreement), f"<b>{verdict}</b>"]
    return f'<div class="xg">{"".join(f"<p>{line}</p>" for line in lines)}</div>'


def _describe_head(agreement: HeadAgreement, head: Head) -> str:
    own, best = agreement.rho[head], agreement.rho[agreement.best]
    rho = "its map is constant" if np.isnan(own) else f"ρ = <b>{signed(float(own))}</b>"
    return (
        f"ρ is the rank agreement between {escape(agreement.view)} and {escape(agreement.title)}, over "
        f"{_count_features(agreement)}. Head {head_name(head)}, shown above: {rho}. Best: head "
        f"{head_name(agreement.best)}, ρ = <b>{signed(float(best))}</b>."
    )


def _describe_all_heads(agreement: HeadAgreement) -> str:
    if agreement.limit is None:
        return (
            f"With {_count_features(agreement)}, not even the best of {agreement.rho.size:,} heads can differ "
            "significantly from chance."
        )
    kind = "pictures" if agreement.unit == "patch" else "texts"
    limit, agreeing, opposite = plain(agreement.limit), agreement.agreeing, agreement.opposite
    return (
        f"By chance, at least one of {agreement.rho.size:,} heads has ρ above {limit} or below −{limit} in 5% of "
        f"{kind}. Here <b>{count(agreeing, 'head')}</b> {'has' if agreeing == 1 else 'have'} ρ above {limit} (the same "
        f"order as {escape(agreement.title)}), and {count(opposite, 'head')} {'has' if opposite == 1 else 'have'} ρ "
        f"below −{limit} (the opposite order)."
    )


def _count_features(agreement: HeadAgreement) -> str:
    return f"{agreement.n:,} {agreement.unit if agreement.n == 1 else plural(agreement.unit)}"


def _describe_verdict(agreement: HeadAgreement, head: Head, kind: str) -> str:
    units, title, name = plural(agreement.unit), escape(agreement.title), head_name(head)
    if agreement.limit is None:
        return f"This {kind} has too few {units} for the test: do not read attention as an explanation."
    if agreement.agrees(head):
        return f"Head {name} agrees with {title} on the order of the {units}, significantly more than chance."
    unread = "do not read {} as an explanation"
    if agreement.agreeing:
        return f"Head {name} does not agree with {title} significantly: {unread.format('its map')}."
    return f"No head agrees with {title} significantly: {unread.format('attention')}."


def _is_wanted(state: AttentionState) -> bool:
    """Whether the attribution is cached, cheap, requested, or needed by the board."""
    request = state.request(state.board.against)
    try:
        return (
            key_of(request) == st.session_state.get(_requested_key(state))
            or is_cached(request)
            or state.board.score == AGREEMENT
            or explainer(request.method, state.kind).cheap
        )
    except ExegesisError:
        return True  # its message is shown in place of the values


def _compare_button(state: AttentionState, place: DeltaGenerator) -> None:
    title = explainer(state.board.against, state.kind).title
    place.button(
        f"Compare the heads with {title}", key=key(state.kind, "compare"), on_click=_request_attribution,
        args=(state,), help="Takes a second or more, so it runs only on request.",
    )  # fmt: skip


def _request_attribution(state: AttentionState) -> None:
    st.session_state[_requested_key(state)] = key_of(state.request(state.board.against))


def _requested_key(state: AttentionState) -> str:
    return key(state.kind, "compared")
