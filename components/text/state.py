"""The state of the Text page as plain values: in a link, in the widgets, and in the session between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.controls import PERSIST, gamma_slider, options_popover, scale_choice, seed_input
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts, open_texts
from components.inputs.imported_maps import methods_for_input
from components.inputs.text_choice import (
    TextFocus,
    draw_pair_switch,
    is_other_text,
    read_text_focus,
    write_text_focus,
)
from components.links import (
    Query,
    last_values,
    opened_option,
    pins_option,
    read_record,
    read_text,
    target_option,
    write_record,
    write_text,
)
from components.method_picker import all_methods
from components.state import PageSession, PageState, control_values, read_shared, write_shared
from components.widgets.base import Pins, draw_pin_hint
from components.widgets.token_map import draw_token_picker, to_tokens, to_units
from components.widgets.view_options import DEFAULT_VIEW, LAYOUTS, STYLES, ViewOptions
from engine.next_token import MOST_GENERATED
from engine.params import option
from engine.registry import Explainer
from engine.removal_operators import OPERATORS
from engine.request import Example, Request
from engine.result import Explanation
from engine.shipped.gallery import METHODS, find_card
from engine.word_units import UNITS, Unit, units

START = METHODS
OF_A_TEXT = ("pin", "edit", "edit_sha", "edit_pair", "edit_pair_sha", "flip_to")
"""Fields of a link that apply to one text only."""
SESSION = PageSession("text", text_choice.SELECTION, (*OF_A_TEXT, "target", "threshold"))
LARGEST_SCORE = 1e6
"""Largest absolute value of a threshold."""
CONTROLLED = ("unit", "encoder", "flip_to", "threshold")
"""Fields whose controls exist only on this page."""
OWN = (*CONTROLLED, "significance", "generation")
"""Fields of the link that exist only on this page, without those of a text or of the view."""
WIDGETS, key, value, put = SESSION.widgets, SESSION.key, SESSION.value, SESSION.put
PICKER = "text_token_pick"
TURN = UNITS[-1]
"""The unit that is offered only for a chat."""
ENCODER = "minilm"
REPLACEMENTS = ("masked", "dataset")
"""Sources of replacements in the test of words: a masked language model, or the words of the data set."""


@dataclass(frozen=True)
class SignificanceView:
    """The test of words: its false discovery rate in percent, its alternative, and the source of replacements."""

    rate: int = option(10, choices=(5, 10, 20))
    alternative: Literal["greater", "two-sided"] = option("greater", choices=("greater", "two-sided"))
    replacements: str = option(REPLACEMENTS[0], choices=REPLACEMENTS)


DEFAULT_TEST = SignificanceView()


@dataclass(frozen=True)
class GenerationView:
    """Options of the generated text.

    `tokens`: number of tokens. `decoding`: how each token is chosen. `text`: the text explained instead of a generated
    one, if the tokens are given. `method`: the method that explains each token. `step`: the token whose map is drawn,
    from 1.
    """

    tokens: int = option(8, low=1, high=MOST_GENERATED, link="generated_tokens")
    decoding: Literal["greedy", "sample", "given"] = option("greedy", choices=("greedy", "sample", "given"))
    text: str = option("", link="continuation")
    method: str = option("attn_lrp", link="generated_method")
    step: int = option(1, low=1, high=MOST_GENERATED, link="generated_step")


DEFAULT_GENERATION = GenerationView()


@dataclass(frozen=True, kw_only=True)
class TextState(PageState):
    """State of the Text page.

    `pins`: positions of tokens. `edit`: the edited text shown next to its parent. `encoder`: model of the similarity.
    `flip_to`: target class of the counterfactuals, None for any other class. `threshold`: the score that they cross.
    """

    focus: TextFocus
    unit: str = option(UNITS[0], choices=UNITS)
    edit: str | None = None
    edit_pair: str | None = None
    view: ViewOptions = DEFAULT_VIEW
    pins: tuple[int, ...] = pins_option("tokens")
    opened: tuple[str, ...] = opened_option(
        "browse", "questions", "similarity", "significance", "counterfactuals", "generation"
    )
    significance: SignificanceView = DEFAULT_TEST
    generation: GenerationView = DEFAULT_GENERATION
    flip_to: str | None = target_option()
    threshold: float | None = option(None, low=-LARGEST_SCORE, high=LARGEST_SCORE)
    removal: str = option(OPERATORS[0], choices=OPERATORS)
    encoder: str = option(ENCODER)

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def example(self) -> Example:
        return self.focus.example

    def request(self, method: str) -> Request:
        """Return the engine's request for one method."""
        params = self.params.get(method, {})
        return Request(self.model, method, self.example, dict(params), self.target, self.seed)


def read_state(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenTexts
) -> tuple[TextState, list[str]]:
    """Return the state of a link, and a note for each unknown value in it."""
    notes: list[str] = []
    last = last_values(query)
    focus = read_text_focus(last, models, opened, notes)
    if is_other_text(last, focus, opened):
        query = {name: values for name, values in query.items() if name not in OF_A_TEXT}
    # A link to a text of the gallery that names no methods opens with the card's own first.
    card = find_card(focus.model, focus.example) if {"index", "text"} & query.keys() else None
    start = TextState(focus=focus, methods=START if card is None else card.methods)
    state = read_record(start, query, notes, names=OWN)
    state = replace(state, **_read_edits(last_values(query), focus.example, notes))
    state = read_shared(read_record(state, query, notes, names=["view"]), query, methods, notes)
    return replace(state, target=None) if focus.causal else state, notes


def write_state(state: TextState) -> Query:
    """Return the link that reopens the state: the values that differ from the defaults."""
    query = write_text_focus(state.focus) | write_shared(state) | write_record(state, names=OWN)
    for name, text in (("edit", state.edit), ("edit_pair", state.edit_pair)):
        query |= {} if text is None else write_text(name, text)
    return query | write_record(state.view)


def _read_edits(last: Mapping[str, str], parent: Example, notes: list[str]) -> dict[str, Any]:
    """Read both texts of the edit; a link may name only the first."""
    edit, pair = (read_text(last, name, notes) for name in ("edit", "edit_pair"))
    return {"edit": edit, "edit_pair": parent.text_pair if pair is None and edit is not None else pair}


def load_state(models: list[str], methods: Mapping[str, Explainer]) -> tuple[TextState, OpenTexts, list[str]]:
    """Fill widgets that have no value. Returns the state of the last link, the open data set, and notes on the link."""
    link, fresh = SESSION.follow()
    opened = open_texts(text_choice.requested_dataset(link))
    state, notes = read_state(link, models, methods, opened)
    text_choice.fill_controls(state.focus, opened)
    own = {name: getattr(state, name) for name in (*CONTROLLED, "edit", "edit_pair")} | {"flip_to": state.flip_to or ""}
    sections = control_values("significance.", state.significance) | control_values("generation.", state.generation)
    SESSION.fill(own | control_values("", state.view) | sections)
    SESSION.fill_shared(state, methods)
    return state, opened, SESSION.tell(notes, fresh, state=state, more=OF_A_TEXT)


def read_controls(loaded: TextState, methods: Mapping[str, Explainer], opened: OpenTexts) -> TextState:
    """Return the state of the controls. Pins, edit and target class are cleared if their text or model changes."""
    if value("unit") is None:  # never chosen: a run that a click interrupted emptied the controls
        SESSION.clear()
        st.rerun()
    focus = text_choice.read_controls(opened)
    if focus.causal or focus.model != loaded.model:  # a prompt has its own target token
        put("target", "")
    if focus.model != loaded.model:
        put("threshold", None)
    other_text = (focus.text, focus.pair, focus.chat) != (loaded.focus.text, loaded.focus.pair, loaded.focus.chat)
    if focus.model != loaded.model or other_text:
        put("pins", [])
        put("flip_to", "")
    if other_text:
        put("edit", None)
        put("edit_pair", None)
    return replace(
        SESSION.read_shared(loaded, methods),
        focus=focus,
        unit=value("unit"),
        encoder=value("encoder").strip() or ENCODER,
        edit=value("edit"),
        edit_pair=value("edit_pair"),
        flip_to=value("flip_to") or None,
        threshold=value("threshold"),
        view=SESSION.read_record("", loaded.view),
        significance=SESSION.read_record("significance.", loaded.significance),
        generation=SESSION.read_record("generation.", loaded.generation),
    )


def offered_methods(methods: Mapping[str, Explainer], opened: OpenTexts) -> Mapping[str, Explainer]:
    """Return the methods to offer for the text that the controls show."""
    return methods_for_input(methods, value("methods") or (), text_choice.read_controls(opened).example)


def draw_options(methods: Mapping[str, Explainer], line: DeltaGenerator) -> DeltaGenerator | None:
    """Draw the popover of rarely used controls. Returns the place for the explained class; None while it is closed."""
    if (options := options_popover(WIDGETS, line)) is None:
        return None
    with options:
        all_methods(methods, START, WIDGETS, [str(SESSION.selection.value("model") or "")])
        place = st.container()
        draw_pair_switch()
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            turns = bool(text_choice.value("chat")) or value("unit") == TURN
            st.segmented_control(
                "Unit", [kind for kind in UNITS if turns or kind != TURN], key=key("unit"), required=True,
                format_func=lambda kind: f"{kind.title()}s", persist_state=PERSIST,
            )  # fmt: skip
            seed_input(key, 120)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            _draw_choice(
                "Layout", LAYOUTS, "Flow: each map is the text itself. Aligned: one table with a column for each token."
            )
            _draw_choice("Style", STYLES)
        scale_choice(key, "ensembles and random always have their own")
        gamma_slider(key, "tokens")
        st.toggle(
            "Values under the tokens", key=key("values"), persist_state=PERSIST,
            help="Adds space between tokens, so joined letters (as in Arabic) are no longer joined.",
        )  # fmt: skip
    return place


def _draw_choice(label: str, options: Sequence[str], help: str | None = None) -> None:
    st.segmented_control(
        label, options, key=key(label.lower()), required=True, format_func=str.capitalize, help=help,
        persist_state=PERSIST,
    )  # fmt: skip


def draw_pins(state: TextState, probe: Explanation) -> None:
    """Draw a hint on pinning, and the pinned units; nothing if there is no map to click. `probe`: has the tokens."""
    if state.methods:
        draw_pin_hint(state.unit)
        draw_token_picker(_units(state, probe), state.pins, PICKER, _set_pins)


def widen_pins(state: TextState, probe: Explanation) -> TextState:
    """Return the state with pins of whole units, as outlined; the link has the tokens that were picked.

    Pins that contain no unit of the text stay, so that the page can say that they cannot be removed.
    """
    drawn = _units(state, probe)
    return replace(state, pins=to_tokens(drawn, to_units(drawn, state.pins)) or state.pins)


def pinned_names(state: TextState, probe: Explanation) -> list[str]:
    """Return the names of the pinned units, as in the token picker."""
    drawn = _units(state, probe)
    return [drawn[position].text for position in to_units(drawn, state.pins)]


def _units(state: TextState, probe: Explanation) -> tuple[Unit, ...]:
    return units(probe.tokens, probe.scores, state.example, state.unit)


def _set_pins(pins: Pins) -> None:
    put("pins", list(pins))
