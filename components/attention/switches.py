"""Heads switched off or scaled by hand, and the effect on the prediction and on any attribution.

Changes are plain values; a whole layer with one scale is one change. The changed model is shown next to the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.attention.state import AttentionState, key, lock, switch
from components.compute import explain
from components.controls import PERSIST
from components.numbers import count, signed
from components.prediction import PROBE
from components.progress import run_with_progress
from components.styles import use_sheet
from components.widgets.attention_board import Head, HeadScoreMap, head_name, selected_head
from components.widgets.base import Pins
from components.widgets.patch_map import (
    CARDS_KEY,
    MOST_CLASSES,
    draw_patch_picker,
    extent,
    patch_card,
    patch_card_html,
    picture_card_html,
    picture_style,
    use_picture_styles,
)
from components.widgets.token_map.edited import (
    edited_map,
    edited_map_html,
    explained_noun,
    predictions_html,
    same_html,
)
from components.widgets.view_options import ViewOptions
from engine.explain import key_of
from engine.heads.readings import HeadReading
from engine.metrics.ranking import spearman
from engine.registry import Explainer, all_explainers
from engine.request import LARGEST_SCALE, PLAIN, SWITCHED_OFF, Example, HeadScales, Input, Picture
from engine.result import Explanation
from engine.vision.picture import read_view

STEP = 0.1
UNCHANGED = 1.0
SIDES = ("original model", "changed heads")
ExplanationPair = tuple[Explanation, Explanation]


@dataclass(frozen=True)
class HeadChange:
    """One scale for a single head, or for all heads of a layer."""

    heads: tuple[Head, ...]
    scale: float
    name: str


def head_scale(scales: HeadScales, head: Head) -> float:
    """Return the factor of the head's output."""
    return _scales_by_head(scales).get(head, UNCHANGED)


def set_scale(scales: HeadScales, heads: Iterable[Head], scale: float) -> HeadScales:
    """Return the scales with those of these heads replaced; a scale of 1 restores a head."""
    return HeadScales.from_mapping({**_scales_by_head(scales), **dict.fromkeys(heads, scale)})


def layer_heads(layer: int, count: int) -> tuple[Head, ...]:
    """All heads of a layer."""
    return tuple((layer, head) for head in range(count))


def is_off(scales: HeadScales, heads: Iterable[Head]) -> bool:
    """Whether all these heads are switched off."""
    return all(head_scale(scales, head) == SWITCHED_OFF for head in heads)


def list_changes(scales: HeadScales, count: int) -> list[HeadChange]:
    """Return the changes by layer; a layer whose `count` heads have one scale is one change."""
    changes: list[HeadChange] = []
    by_head = _scales_by_head(scales)
    for layer in sorted({layer for layer, _ in by_head}):
        heads = [head for head in by_head if head[0] == layer]
        sizes = {by_head[head] for head in heads}
        if len(heads) == count > 1 and len(sizes) == 1:
            changes.append(HeadChange(tuple(heads), sizes.pop(), f"layer {layer}"))
        else:
            changes += [HeadChange((head,), by_head[head], head_name(head)) for head in heads]
    return changes


def describe_change(change: HeadChange) -> str:
    """Describe a change, such as “3.7 off” or “layer 2 × 0.5”."""
    return f"{change.name} off" if change.scale == SWITCHED_OFF else f"{change.name} × {change.scale:g}"


def _scales_by_head(scales: HeadScales) -> dict[Head, float]:
    return {(layer, head): float(scale) for layer, head, scale in scales.scales}


def switch_section(state: AttentionState, reading: HeadReading, scores: HeadScoreMap | None = None) -> None:
    """Draw the changed heads and, if there are any, the model with and without the changes."""
    st.subheader("Switch heads", anchor=False)
    opened = st.toggle(
        "Switch heads off, or scale them", key=key(state.kind, "open.switch"), persist_state=PERSIST,
        help="Each head's output is multiplied by its scale. Everything on this page then shows the changed model; "
        "its files are not modified.",
    )  # fmt: skip
    if not opened:
        return
    layers, heads = reading.slope.shape
    _head_controls(state, selected_head(state.board, scores, reading), heads)
    if not state.switched:
        st.caption("No head is changed. Switch a head off, or move its slider, to see how the prediction changes.")
        return
    _change_list(state, heads)
    if is_off(state.switched, [head for layer in range(layers) for head in layer_heads(layer, heads)]):
        st.caption("All heads are off: positions no longer exchange information.")
    _comparison(state)


def restore_button(state: AttentionState) -> None:
    """Draw a button that restores every head, including those of a link that the model does not have."""
    if state.switched:
        st.button("Restore all heads", key=key(state.kind, "restore"), on_click=switch, args=(state.kind, PLAIN))


def _head_controls(state: AttentionState, head: Head, count: int) -> None:
    """Draw the scale of the selected head, as a slider and as a switch, and the switch of its layer."""
    name, layer = key(state.kind, f"scale.{head_name(head)}"), layer_heads(head[0], count)
    st.session_state[name] = head_scale(state.switched, head)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key(state.kind, "switching")):
        st.slider(
            f"Scale of head {head_name(head)}", SWITCHED_OFF, LARGEST_SCALE, key=name, step=STEP, width=320,
            on_change=_apply_slider, args=(state, head, name),
            help="0 switches the head off, 1 leaves it unchanged, 2 doubles its output. Click a head above to choose "
            "another.",
        )  # fmt: skip
        _switch_button(state, head, (head,), f"head {head_name(head)}", "head")
        if count > 1:
            _switch_button(state, head, layer, f"all of layer {head[0]}", "layer")


def _switch_button(state: AttentionState, selected: Head, heads: tuple[Head, ...], title: str, name: str) -> None:
    off = is_off(state.switched, heads)
    scales = set_scale(state.switched, heads, UNCHANGED if off else SWITCHED_OFF)
    st.button(
        f"Switch {'on' if off else 'off'} {title}", key=key(state.kind, f"switch.{name}"),
        on_click=_apply_scales, args=(state, selected, scales),
    )  # fmt: skip


def _apply_slider(state: AttentionState, head: Head, name: str) -> None:
    _apply_scales(state, head, set_scale(state.switched, [head], round(st.session_state[name], 2)))


def _apply_scales(state: AttentionState, selected: Head, scales: HeadScales) -> None:
    """Apply the scales. The selected head stays selected, even if the change makes another the strongest."""
    switch(state.kind, scales)
    lock(state.kind, selected, alone=state.board.alone and state.board.head == selected)


def _change_list(state: AttentionState, count: int) -> None:
    """Draw a button for each change that reverts it, and one for all changes."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key(state.kind, "changed")):
        st.caption("Changed heads (click to restore):", width="content")
        for change in list_changes(state.switched, count):
            st.button(
                describe_change(change), key=key(state.kind, f"back.{change.name}"), icon=":material/close:",
                width="content", on_click=switch,
                args=(state.kind, set_scale(state.switched, change.heads, UNCHANGED)),
                help=f"Restores {change.name}.",
            )  # fmt: skip
        restore_button(state)


def _comparison(state: AttentionState) -> None:
    """Draw both predictions and one method's map of both, for the class explained in the original model."""
    use_sheet("questions")
    probes = _explain_both(state, PROBE, "the prediction", st.empty())
    if probes is None:
        return
    before, after = probes
    target = before.provenance.target
    assert state.input is not None
    noun = explained_noun(state.input)
    st.html(predictions_html(before.prediction, after.prediction, target, SIDES, MOST_CLASSES, noun))
    methods = all_explainers(state.kind)
    method = methods[_method_control(state, methods)]
    maps = _explain_both(state, method.id, method.title, st.empty())
    if maps is None:
        return
    st.html(how_to_read_html(maps[0], state.input))
    if isinstance(state.input, Example):
        st.html(edited_map_html(edited_map(method, *maps, state.input, state.input, "token")))
    elif isinstance(state.input, Picture):
        _picture_cards(state, state.input, method, maps, after.notes)


def _explain_both(state: AttentionState, method: str, name: str, place: DeltaGenerator) -> ExplanationPair | None:
    """Explain the original and the changed model with the method; None after a message if there is no explanation."""

    def explain_side(heads: HeadScales, target: int | str | None, side: str) -> Explanation | None:
        request = replace(state.request(method, heads=heads), target=target)
        title = f"{name}, {side}"
        return run_with_progress(
            place, partial(key_of, request), f"Computing {title}", f"Stopped: {title}.", partial(explain, request)
        )

    before = explain_side(PLAIN, state.target, SIDES[0])
    if before is None:
        return None
    after = explain_side(state.switched, before.provenance.target, SIDES[1])
    return None if after is None else (before, after)


def _method_control(state: AttentionState, methods: Mapping[str, Explainer]) -> str:
    id: str = st.selectbox(
        "Map", list(methods), key=key(state.kind, "method"), format_func=lambda id: methods[id].title, width=320,
        persist_state=PERSIST,
        help="Its maps of the original model and of the changed one, for the same class and on one scale.",
    )  # fmt: skip
    return id


def _picture_cards(
    state: AttentionState, picture: Picture, method: Explainer, maps: ExplanationPair, elsewhere: Sequence[str]
) -> None:
    """Draw the picture next to both maps, on one scale. `elsewhere`: notes shown elsewhere on the page."""
    use_picture_styles()
    name, grid = key(state.kind, "pins"), maps[0].grid
    if grid is not None:  # hovering and keys show the values of both maps
        draw_patch_picker(grid, tuple(st.session_state.get(name, ())), key(state.kind, "pick"), partial(_pin, name))
    end = max(extent(method, one) for one in maps)
    with st.container(gap=None, key=CARDS_KEY):
        st.html(picture_style(read_view(state.model).transform(picture.pixels)))
        st.html(picture_card_html("As the model sees it", (describe_map_agreement(*maps),)))
        for side, one in zip(SIDES, maps, strict=True):
            card = patch_card(method, one, elsewhere)
            view = replace(card.view, end=end, sharing="two maps", look=ViewOptions(scale="shared"))
            st.html(patch_card_html(replace(card, title=f"{method.title}, {side}", view=view)))


def _pin(name: str, pins: Pins) -> None:
    st.session_state[name] = list(pins)


def how_to_read_html(explanation: Explanation, example: Input) -> str:
    """HTML that explains the two maps."""
    return (
        f'<div class="xg"><p class="xg-small">Both maps explain {same_html(explanation, example)}, on one scale. '
        "ρ is the rank correlation of their scores: +1 is the same order, 0 is no relation.</p></div>"
    )


def describe_map_agreement(before: Explanation, after: Explanation) -> str:
    """Describe the rank correlation of the two maps, or why it is undefined."""
    rho = spearman(*(one.scores[one.features] for one in (before, after)))
    patches = count(len(before.features), "score")
    if rho is None:
        return f"{patches}: undefined, because all scores of a map are equal"
    return f"ρ = {signed(rho)} between the {patches} of the two maps"
