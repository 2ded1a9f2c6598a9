"""Agreement of the heads' maps with an attribution: attention is no explanation by itself; whether it is one here."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator

from components.attention.readings import await_attribution, method_title, unit_noun
from components.attention.session import BOARD_KEYS, key
from components.attention.state import AttentionState
from components.compute import is_cached
from components.controls import PERSIST
from components.numbers import count, plain, plural, signed
from components.widgets.attention_board.options import (
    AGAINST,
    INPUTS,
    Head,
    HeadScoreMap,
    describe_view,
    feature_maps,
    head_name,
    query_position,
    selected_head,
)
from engine.errors import ExegesisError
from engine.explain import key_of
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREEMENT, PerHead, agreement_with
from engine.metrics.ranking import rho_limit
from engine.registry import explainer
from engine.result import Explanation

CAUTION = (
    "Attention says where a head reads from, not what the prediction rests on. Other attention can give the same "
    "prediction (Jain and Wallace, 2019, Attention is not explanation); whether it explains depends on what is asked "
    "of an explanation, and has to be tested (Wiegreffe and Pinter, 2019, Attention is not not explanation). The test "
    "here: does a head's map put the {units} in the same order as an attribution of the same {kind} does?"
)
MIN_FEATURES = 2
"""Features below which there is no order."""
MAX_LIMITS = 64


@dataclass(frozen=True, eq=False)
class HeadAgreement:
    """Every head's map compared with one attribution.

    `view`: a noun phrase for the maps. `rho`: NaN where a map is flat; `limit`: that of `rho_limit`, None where no rho
    differs from chance.
    """

    title: str
    view: str
    unit: str
    n: int
    rho: PerHead
    limit: float | None

    def agrees(self, head: Head) -> bool:
        """Whether the head's map is in the same order beyond chance."""
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
    """The caution about attention, and the agreement of the heads with an attribution, computed on request."""
    st.subheader("Is attention an explanation here?", anchor=False)
    unit, kind = unit_noun(reading.explanation), INPUTS[state.kind]
    st.html(f'<div class="xg"><p class="xg-small">{CAUTION.format(units=plural(unit), kind=kind)}</p></div>')
    if len(reading.explanation.features) < MIN_FEATURES:
        st.info(f"This {kind} has one {unit} that could be ordered, so there is nothing to compare.")
        return
    st.segmented_control(
        "Compare with",
        AGAINST,
        key=key(state.kind, f"{BOARD_KEYS}against"),
        required=True,
        format_func=lambda method: explainer(method, state.kind).title,
        persist_state=PERSIST,
        help="The attribution is of the same input and class, with the same heads switched. Its sizes are compared: "
        "attention has no sign.",
    )
    if scores is None and state.board.score == AGREEMENT:  # it stands above the board why there is none
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
    """Each head's map, as the board draws it, compared with the attribution."""
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
    """`name` determines the other arguments."""
    return rho_limit(_maps, _scores, _grid)


def agreement_html(agreement: HeadAgreement, head: Head, kind: str) -> str:
    """The numbers, then their meaning for one head. Every name is escaped."""
    if np.isnan(agreement.rho).all():
        lines = [f"No head's map has an order, or {escape(agreement.title)} has none: all its scores are equal."]
    else:
        verdict = _describe_verdict(agreement, head, kind)
        lines = [_describe_head(agreement, head), _describe_all_heads(agreement), f"<b>{verdict}</b>"]
    return f'<div class="xg">{"".join(f"<p>{line}</p>" for line in lines)}</div>'


def _describe_head(agreement: HeadAgreement, head: Head) -> str:
    own, best = agreement.rho[head], agreement.rho[agreement.best]
    rho = "its map is flat" if np.isnan(own) else f"ρ = <b>{signed(float(own))}</b>"
    return (
        f"ρ is the rank agreement between {escape(agreement.view)} and {escape(agreement.title)}, over "
        f"{_count_features(agreement)}. Head {head_name(head)}, shown above: {rho}. Best: head "
        f"{head_name(agreement.best)}, ρ = <b>{signed(float(best))}</b>."
    )


def _describe_all_heads(agreement: HeadAgreement) -> str:
    if agreement.limit is None:
        return (
            f"Over {_count_features(agreement)} no ρ of the best of {agreement.rho.size:,} heads can be told from "
            "chance."
        )
    kind = "pictures" if agreement.unit == "patch" else "texts"
    return (
        f"In 1 of 20 {kind}, chance alone takes one of {agreement.rho.size:,} heads beyond |ρ| = "
        f"{plain(agreement.limit)}. Here <b>{count(agreement.agreeing, 'head')}</b> "
        f"{'is' if agreement.agreeing == 1 else 'are'} beyond it in the same order, {agreement.opposite or 'none'} in "
        "the opposite order."
    )


def _count_features(agreement: HeadAgreement) -> str:
    return f"{agreement.n:,} {agreement.unit if agreement.n == 1 else plural(agreement.unit)}"


def _describe_verdict(agreement: HeadAgreement, head: Head, kind: str) -> str:
    units, title, name = plural(agreement.unit), escape(agreement.title), head_name(head)
    if agreement.limit is None:
        return f"This {kind} has too few {units} for the test: do not read attention as an explanation."
    if agreement.agrees(head):
        return f"Head {name} orders the {units} like {title}, more than chance does: so far its map explains."
    if agreement.agreeing:
        return (
            f"Head {name} does not order the {units} like {title} beyond chance: its map is not shown to explain here."
        )
    return f"No head orders the {units} like {title} beyond chance: attention is not shown to explain here."


def _is_wanted(state: AttentionState) -> bool:
    """Whether the attribution is there, costs little, or was requested."""
    request = state.request(state.board.against)
    try:
        return (
            key_of(request) == st.session_state.get(_requested_key(state))
            or is_cached(request)
            or state.board.score == AGREEMENT
            or explainer(request.method, state.kind).cheap
        )
    except ExegesisError:
        return True  # its sentence stands where the numbers would


def _compare_button(state: AttentionState, place: DeltaGenerator) -> None:
    title = explainer(state.board.against, state.kind).title
    place.button(
        f"Compare the heads with {title}", key=key(state.kind, "compare"), on_click=_request_attribution,
        args=(state,), help="It takes a second or more, so it is computed only when it is asked for.",
    )  # fmt: skip


def _request_attribution(state: AttentionState) -> None:
    st.session_state[_requested_key(state)] = key_of(state.request(state.board.against))


def _requested_key(state: AttentionState) -> str:
    return key(state.kind, "compared")
