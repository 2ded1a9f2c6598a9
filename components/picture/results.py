"""The Images page's answer: the prediction, then a card a method side by side, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Bool
from streamlit.delta_generator import DeltaGenerator

from components.filling import Place, fill
from components.inputs.picture_choice import write_picture_focus
from components.picture.session import key
from components.picture.state import PictureState
from components.picture.truth import truth_lines
from components.prediction_area import PROBE
from components.prediction_area import prediction_area as draw_prediction
from components.scales import Ends, share_scales
from components.trouble import say_note
from components.widgets.heads_link import heads_link
from components.widgets.patch_map.card import (
    MOST_CLASSES,
    extent,
    patch_card,
    patch_card_html,
    picture_card_html,
    quiet_card_html,
)
from components.widgets.patch_map.picture import CARDS_KEY, picture_style
from engine.errors import UsageError
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store
from engine.vision.view import read_view

Truth = Bool[np.ndarray, "row column"] | None
"""The patches that show what the label names; None where that is not known."""


def request_for(state: PictureState, method: str) -> Request:
    """What is asked of the engine for one card."""
    if state.picture is None:
        raise UsageError(f"picture: {state.focus.error}")
    params = state.params.get(method, {})
    return Request(state.model, method, state.picture, dict(params), state.target, state.seed)


def prediction_area(state: PictureState) -> Explanation | None:
    """The prediction as bars beside the choice of the class; None after saying why there is none."""
    if state.picture is None:  # its controls have said why
        return None
    if not state.model:
        st.info("Pick a model above, or type the folder of a checkpoint or a hub id.")
        return None
    probe = Request(state.model, PROBE, state.picture, {}, None, state.seed)
    see = partial(heads_link, "image", write_picture_focus(state.focus), state.target, key("heads"))
    return draw_prediction(probe, state.target, key("target"), "picture", MOST_CLASSES, stacked=True, beside=see)


def method_cards(
    state: PictureState, methods: Mapping[str, Explainer], probe: Explanation, truth: Truth, lines: Sequence[str]
) -> dict[str, Explanation]:
    """The picture with `lines` below it, then a card for each chosen method in their order; what succeeded."""
    progress, cards = st.empty(), st.container(gap=None, key=CARDS_KEY)
    _draw_picture(state, cards, lines)
    if not state.methods:
        st.info("Pick at least one method above.")
        return {}
    places = [Place(methods[id], request_for(state, id), cards.empty(), quiet=quiet_card_html) for id in state.methods]

    def draw(method: Explainer, made: Explanation, ends: Ends | None) -> str:
        told = truth_lines(made, truth, state.seed)
        return patch_card_html(patch_card(method, made, probe.notes, state.look.maps, ends, tuple(told)))

    fill(places, lambda method, made: draw(method, made, None), progress)
    if state.look.maps.shared:
        share_scales(places, extent, draw)
    if trouble := result_store().status:
        say_note(trouble)
    return {place.method.id: place.made for place in places if place.made is not None}


def _draw_picture(state: PictureState, cards: DeltaGenerator, lines: Sequence[str]) -> None:
    """The picture once for all cards, and as a card of its own: as the model sees it."""
    if state.picture is None:
        return
    view, mask = read_view(state.model), state.focus.mask if state.look.outline else None
    outlined = None if mask is None else view.transform_mask(mask)
    cards.html(picture_style(view.transform(state.picture.pixels), outlined))
    cards.html(picture_card_html("As the model sees it", tuple(lines)))
