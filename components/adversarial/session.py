"""The Adversarial page between runs: a link fills the widgets, they write the link, a page change keeps both.

A text and a picture have a session of their own each, so that turning from one to the other loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from components.adversarial.state import SECTIONS, AdversarialState, Many, read_picture, read_text, write
from components.adversarial.strength import NAMES, as_held, as_texts
from components.experiment.session import as_widget, widget_values
from components.input_kind import InputKind
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.inputs.link import Query
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.page_session import PageSession
from engine.registry import Explainer

LOOKINGS = {"text": text_choice.LOOKING, "image": picture_focus_controls.LOOKING}
SESSIONS = {kind: PageSession(f"adversarial_{kind}", looking, ()) for kind, looking in LOOKINGS.items()}
INPUT_KIND = InputKind("adversarial", LOOKINGS)
chosen_kind, kind_switch = INPUT_KIND.chosen, INPUT_KIND.switch
Opened = OpenTexts | OpenPictures
FIELDS = ("method", "objective", "seed", "points", "start", "scale", "others")
SET, MANY, OPEN = "set.", "many.", "open."


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def put(kind: str, name: str, value: object) -> None:
    """Sets a control before it is drawn."""
    SESSIONS[kind].put(name, value)


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AdversarialState, Opened, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened, (state, said) = _opened(kind, link, models, methods)
    if isinstance(state.focus, TextFocus) and isinstance(opened, OpenTexts):
        text_choice.fill_controls(state.focus, opened)
    elif isinstance(state.focus, PictureFocus) and isinstance(opened, OpenPictures):
        picture_focus_controls.fill_controls(state.focus, opened)
    session.fill({name: as_widget(getattr(state, name)) for name in FIELDS})
    session.fill({f"{SET}{name}": value for name, value in as_held(kind, state.strength).items()})
    session.fill({f"{MANY}{name}": as_widget(value) for name, value in vars(state.many).items()})
    session.fill({f"{OPEN}{name}": name in state.opened for name in SECTIONS})
    told = session.tell(said, fresh)
    if fresh and said:
        session.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, opened, told


def from_widgets(loaded: AdversarialState, opened: Opened) -> AdversarialState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session, names = SESSIONS[loaded.kind], [field.name for field in dataclasses.fields(Many)]
    strength = as_texts(loaded.kind, widget_values(session, SET, NAMES))
    many = widget_values(session, MANY, names)
    if "models" in many:
        many["models"] = tuple(dict.fromkeys(str(name).strip() for name in many["models"] if str(name).strip()))
    return dataclasses.replace(
        loaded,
        focus=_focus(opened),
        **widget_values(session, "", FIELDS),
        strength=strength,
        opened=tuple(name for name in SECTIONS if session.value(f"{OPEN}{name}")),
        many=dataclasses.replace(loaded.many, **many),
    )


def save(state: AdversarialState, loaded: AdversarialState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def show(state: AdversarialState, opened: Opened, model: str, index: int, method: str, objective: str) -> None:
    """Looks at one of many attacks above from now on: in a callback."""
    if isinstance(opened, OpenTexts):
        text_choice.show(opened, index)
    else:
        picture_focus_controls.show(opened, index)
    LOOKINGS[state.kind].put("model", model)
    put(state.kind, "method", method)
    if objective not in state.objectives:
        put(state.kind, "objective", objective)
    # The models of the many stay those that they were, whichever is looked at above.
    put(state.kind, f"{MANY}models", list(state.many.models or (state.focus.model,)))


def _opened(kind: str, link: Query, models: list[str], methods: Mapping[str, Explainer]) -> tuple[Opened, Any]:
    if kind == "text":
        data = open_texts(text_choice.requested_dataset(link))
        return data, read_text(link, models, methods, data)
    pictures = open_pictures(*picture_focus_controls.requested_dataset(link))
    return pictures, read_picture(link, models, methods, pictures)


def _focus(opened: Opened) -> TextFocus | PictureFocus:
    if isinstance(opened, OpenTexts):
        return text_choice.read_controls(opened)
    return picture_focus_controls.read_controls(opened)
