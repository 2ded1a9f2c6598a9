"""The model with changed heads beside the model as it is: both predictions, and one method's map of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.attention.session import key
from components.attention.state import AttentionState
from components.awaiting import awaited
from components.engine_room import explain, explainers, key_of
from components.kept import KEPT
from components.numbers import count, signed
from components.pins import Pins
from components.prediction_area import PROBE
from components.question_styles import use_question_styles
from components.widgets.patch_map.card import MOST_CLASSES, extent, patch_card, patch_card_html, picture_card_html
from components.widgets.patch_map.picker import draw_patch_picker
from components.widgets.patch_map.picture import CARDS_KEY, picture_style, use_picture_styles
from components.widgets.token_map.edited import edited_map, edited_map_html, predictions_html
from components.widgets.view_options import ViewOptions
from engine.heads.scales import PLAIN
from engine.metrics.ranking import spearman
from engine.registry import Explainer
from engine.request import Example, Picture, Request
from engine.result import Explanation
from engine.vision.view import read_view

SIDES = ("as the model is", "with the changed heads")
Pair = tuple[Explanation, Explanation]


def with_and_without(state: AttentionState) -> None:
    """What the changed heads do. The class is the one that is explained without them, whatever is predicted."""
    use_question_styles()
    probes = _both(state, PROBE, "the prediction", st.empty())
    if probes is None:
        return
    before, after = probes
    target = before.provenance.target
    st.html(predictions_html(before.prediction, after.prediction, target, SIDES, MOST_CLASSES))
    methods = explainers(state.kind)
    method = methods[_method_control(state, methods)]
    made = _both(state, method.id, method.title, st.empty())
    if made is None:
        return
    st.html(how_to_read_html(made[0]))
    if isinstance(state.input, Example):
        st.html(edited_map_html(edited_map(method, *made, state.input, state.input, "token")))
    elif isinstance(state.input, Picture):
        _cards(state, state.input, method, made, probes[1].notes)


def _both(state: AttentionState, method: str, name: str, place: DeltaGenerator) -> Pair | None:
    """The method's explanation of the model as it is and as it is changed; None after saying why there is none."""
    plain = state.request(method, heads=PLAIN)
    before = _one(plain, f"{name}, {SIDES[0]}", place)
    if before is None:
        return None
    changed = replace(plain, heads=state.switched, target=before.provenance.target)
    after = _one(changed, f"{name}, {SIDES[1]}", place)
    return None if after is None else (before, after)


def _one(request: Request, name: str, place: DeltaGenerator) -> Explanation | None:
    return awaited(place, partial(key_of, request), f"Computing {name}", f"Stopped: {name}.", partial(explain, request))


def _method_control(state: AttentionState, methods: Mapping[str, Explainer]) -> str:
    chosen: str = st.selectbox(
        "Map", list(methods), key=key(state.kind, "method"), format_func=lambda id: methods[id].title, width=320,
        persist_state=KEPT,
        help="Its map of the model as it is, and of the model with the changed heads: the same class, one scale.",
    )  # fmt: skip
    return chosen


def _cards(state: AttentionState, picture: Picture, method: Explainer, made: Pair, said: Sequence[str]) -> None:
    """The picture beside both maps, which have one scale. `said`: notes that stand elsewhere on the page."""
    use_picture_styles()
    name, grid = key(state.kind, "pins"), made[0].grid
    if grid is not None:  # hovering and keys tell the numbers of both maps
        draw_patch_picker(grid, tuple(st.session_state.get(name, ())), key(state.kind, "pick"), partial(_pin, name))
    end = max(extent(method, one) for one in made)
    with st.container(gap=None, key=CARDS_KEY):
        st.html(picture_style(read_view(state.model).transform(picture.pixels)))
        st.html(picture_card_html("As the model sees it", (agreement_words(*made),)))
        for name, one in zip(SIDES, made, strict=True):
            card = patch_card(method, one, said)
            view = replace(card.view, end=end, sharing="two maps", look=ViewOptions(scale="shared"))
            st.html(patch_card_html(replace(card, title=f"{method.title}, {name}", view=view)))


def _pin(name: str, pins: Pins) -> None:
    st.session_state[name] = list(pins)


def how_to_read_html(made: Explanation) -> str:
    """What the two maps show, in words."""
    label = f"<bdi>{escape(made.provenance.target_label)}</bdi>"
    same = f"the score {label}" if made.prediction.regression else f"the same class, {label}, whatever is predicted"
    return (
        f'<div class="xg"><p class="xg-small">Both maps explain {same}, on one scale. ρ is the rank correlation of '
        "their scores: +1 the same order, 0 no relation.</p></div>"
    )


def agreement_words(before: Explanation, after: Explanation) -> str:
    """Whether the patches keep their order, or why there is none."""
    rho = spearman(*(one.scores[one.features] for one in (before, after)))
    patches = count(len(before.features), "score")
    if rho is None:
        return f"{patches}: no order, because all scores of a map are equal"
    return f"ρ = {signed(rho)} between the {patches} of the two maps"
