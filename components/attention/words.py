"""Honest words beside the heads: attention is no explanation by itself; whether it is one here, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator

from components.attention.look import AGAINST, INPUTS, LOOK, Head, head_name
from components.attention.scores import HeadMap, compared_with, noun, of_view, query_of, shown_maps, title_of
from components.attention.session import key
from components.attention.shown_head import shown_head
from components.attention.state import AttentionState
from components.engine_room import is_cached, key_of
from components.kept import KEPT
from components.numbers import count, plain, signed
from components.question_words import plural
from engine.errors import ExegesisError
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
FEWEST = 2
"""Features below which there is no order."""
REMEMBERED = 64


@dataclass(frozen=True, eq=False)
class Compared:
    """Every head's map beside one attribution. `rho`: NaN where a map is flat; `limit`: see `limit_of_rho`."""

    title: str
    of: str
    unit: str
    n: int
    rho: PerHead
    limit: float | None

    def agrees(self, head: Head) -> bool:
        """Whether the head's map is in the same order more than chance gives."""
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


def words_area(state: AttentionState, reading: HeadReading, scores: HeadMap | None) -> None:
    """What attention is good for, and the agreement of the heads with an attribution, computed when asked for."""
    st.subheader("Is attention an explanation here?", anchor=False)
    unit, kind = noun(reading.of), INPUTS[state.kind]
    st.html(f'<div class="xg"><p class="xg-small">{CAUTION.format(units=plural(unit), kind=kind)}</p></div>')
    if len(reading.of.features) < FEWEST:
        st.info(f"This {kind} has one {unit} that could be ordered, so there is nothing to compare.")
        return
    _against_control(state)
    if scores is None and state.look.score == AGREEMENT:  # it stands above the board why there is none
        return
    place = st.empty()
    if not _is_wanted(state):
        _offer(state, place)
        return
    made = compared_with(state, place)
    if made is not None:
        place.html(compared_html(compared(state, reading, made), shown_head(state.look, scores, reading), kind))


def compared(state: AttentionState, reading: HeadReading, made: Explanation) -> Compared:
    """Each head's map, as the board shows it, beside the attribution."""
    maps, scores = shown_maps(reading, state.look), made.scores[made.features]
    seen = ~np.isnan(maps).any((0, 1))  # a causal model's query does not attend to what comes after it
    query = query_of(reading, state.look) if state.look.view == "query" else None
    name = f"{key_of(state.request(made.provenance.method))}.{query}"
    limit = _limit(name, maps[..., seen].reshape(-1, int(seen.sum())), scores[seen], made.grid if seen.all() else None)
    rho = agreement_with(maps, scores)
    return Compared(title_of(made), of_view(reading, state.look), noun(made), int(seen.sum()), rho, limit)


def compared_html(found: Compared, head: Head, kind: str) -> str:
    """The numbers, then what they mean for the shown head. Everything that is not ours is escaped."""
    if np.isnan(found.rho).all():
        said = [f"No head's map has an order, or {escape(found.title)} has none: all its scores are equal."]
    else:
        said = [_numbers(found, head), _all_heads(found), f"<b>{_verdict(found, head, kind)}</b>"]
    return f'<div class="xg">{"".join(f"<p>{line}</p>" for line in said)}</div>'


def _numbers(found: Compared, head: Head) -> str:
    own, best = found.rho[head], found.rho[found.best]
    shown = "its map is flat" if np.isnan(own) else f"ρ = <b>{signed(float(own))}</b>"
    return (
        f"ρ is the rank agreement between {escape(found.of)} and {escape(found.title)}, over {_counted(found)}. "
        f"Head {head_name(head)}, shown above: {shown}. Best: head {head_name(found.best)}, "
        f"ρ = <b>{signed(float(best))}</b>."
    )


def _all_heads(found: Compared) -> str:
    if found.limit is None:
        return f"Over {_counted(found)} no ρ of the best of {found.rho.size:,} heads can be told from chance."
    kind = "pictures" if found.unit == "patch" else "texts"
    return (
        f"In 1 of 20 {kind}, chance alone takes one of {found.rho.size:,} heads beyond |ρ| = {plain(found.limit)}. "
        f"Here <b>{count(found.agreeing, 'head')}</b> {'is' if found.agreeing == 1 else 'are'} beyond it in the same "
        f"order, {found.opposite or 'none'} in the opposite order."
    )


def _counted(found: Compared) -> str:
    return f"{found.n:,} {found.unit if found.n == 1 else plural(found.unit)}"


def _verdict(found: Compared, head: Head, kind: str) -> str:
    units, title, name = plural(found.unit), escape(found.title), head_name(head)
    if found.limit is None:
        return f"This {kind} has too few {units} for the test: do not read attention as an explanation."
    if found.agrees(head):
        return f"Head {name} orders the {units} like {title}, more than chance does: so far its map explains."
    if found.agreeing:
        said = f"Head {name} does not order the {units} like {title} beyond chance"
        return f"{said}: its map is not shown to explain here."
    return f"No head orders the {units} like {title} beyond chance: attention is not shown to explain here."


def _against_control(state: AttentionState) -> None:
    st.segmented_control(
        "Compare with",
        AGAINST,
        key=key(state.kind, f"{LOOK}against"),
        required=True,
        format_func=lambda method: explainer(method, state.kind).title,
        persist_state=KEPT,
        help="The attribution is of the same input and class, with the same heads switched. Its sizes are compared: "
        "attention has no sign.",
    )


def _is_wanted(state: AttentionState) -> bool:
    """Whether the attribution is there, costs little, or was asked for."""
    request = state.request(state.look.against)
    try:
        asked = key_of(request) == st.session_state.get(_asked(state))
        return (
            asked or is_cached(request) or state.look.score == AGREEMENT or explainer(request.method, state.kind).cheap
        )
    except ExegesisError:
        return True  # its sentence stands where the numbers would


def _offer(state: AttentionState, place: DeltaGenerator) -> None:
    title = explainer(state.look.against, state.kind).title
    place.button(
        f"Compare the heads with {title}", key=key(state.kind, "compare"), on_click=_ask, args=(state,),
        help="It takes a second or more, so it is computed only when it is asked for.",
    )  # fmt: skip


def _ask(state: AttentionState) -> None:
    st.session_state[_asked(state)] = key_of(state.request(state.look.against))


def _asked(state: AttentionState) -> str:
    return key(state.kind, "compared")


@st.cache_data(show_spinner=False, max_entries=REMEMBERED)
def _limit(
    name: str,
    _maps: Float[np.ndarray, "map feature"],
    _scores: Float[np.ndarray, "feature"],
    _grid: tuple[int, int] | None,
) -> float | None:
    """`name` says all that it depends on."""
    return rho_limit(_maps, _scores, _grid)
