"""What the Text page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from components.browse_state import PLAIN_BROWSE, Browse, read_browse, write_browse
from components.focus import Focus, Query, is_another, read_focus, read_text, text_query, write_focus
from components.link_choice import choice
from components.look import PLAIN, Look
from components.look_link import read_look, write_look
from components.open_data import OpenData
from engine.errors import ExegesisError, unknown
from engine.operators import OPERATORS
from engine.params import as_plain, from_mapping
from engine.registry import Explainer
from engine.request import Example
from engine.words import UNITS

Params = dict[str, dict[str, str]]

START = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion", "integrated_gradients",
         "kernel_shap", "random")  # fmt: skip
SECTIONS = ("browse", "questions")
"""What is open only when asked for."""
QUESTIONS = ("curves", "agreement")
MEASURES = ("spearman", "top_k")
OF_A_TEXT = ("pin", "edit", "edit_sha", "edit_pair", "edit_pair_sha")
"""What a link says of one text and of no other."""
MOST_PINS = 512
PARAMETER = re.compile(r"(\w+)\.(\w+)")


@dataclass(frozen=True)
class TextState:
    """`pins`: positions of the selected tokens. `edit`: the edited text beside its parent. `params`: what was changed.

    `opened`: which of `SECTIONS` are open; `question`: which one is asked; `removal` and `measure`: by what it is
    answered.
    """

    focus: Focus
    methods: tuple[str, ...]
    target: str | None = None
    unit: str = "token"
    seed: int = 0
    pins: tuple[int, ...] = ()
    edit: str | None = None
    edit_pair: str | None = None
    look: Look = PLAIN
    browse: Browse = PLAIN_BROWSE
    opened: tuple[str, ...] = ()
    question: str = QUESTIONS[0]
    removal: str = OPERATORS[0]
    measure: str = MEASURES[0]
    params: Params = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def example(self) -> Example:
        return self.focus.example


def read(
    query: Mapping[str, list[str]], models: list[str], methods: Mapping[str, Explainer], opened: OpenData
) -> tuple[TextState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = {name: values[-1] for name, values in query.items() if values}
    focus = read_focus(last, models, opened, said)
    if is_another(last, focus, opened):
        last = {name: given for name, given in last.items() if name not in OF_A_TEXT}
    return TextState(
        focus=focus,
        methods=_methods(query.get("method", []), methods, said),
        target=last.get("target"),
        unit=choice("unit", last, UNITS, said),
        seed=_seed(last, said),
        pins=_pins(last, said),
        **_edits(last, focus.example, said),
        look=read_look(last, said),
        browse=read_browse(last, said),
        opened=_opened(last, said),
        question=choice("question", last, QUESTIONS, said),
        removal=choice("removal", last, OPERATORS, said),
        measure=choice("measure", last, MEASURES, said),
        params=_params(last, methods, said),
    ), said


def write(state: TextState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    query = write_focus(state.focus) | {"method": list(state.methods) or ["none"]}
    for name, value, usual in (
        ("target", state.target, None),
        ("unit", state.unit, UNITS[0]),
        ("seed", state.seed, 0),
        ("pin", ",".join(map(str, state.pins)), ""),
        ("open", ",".join(state.opened), ""),
        ("question", state.question, QUESTIONS[0]),
        ("removal", state.removal, OPERATORS[0]),
        ("measure", state.measure, MEASURES[0]),
    ):
        query |= {} if value == usual else {name: [str(value)]}
    for name, text in (("edit", state.edit), ("edit_pair", state.edit_pair)):
        query |= {} if text is None else text_query(name, text)
    query |= write_look(state.look) | write_browse(state.browse)
    for method in state.methods:
        query |= {f"{method}.{name}": [value] for name, value in state.params.get(method, {}).items()}
    return query


def differing(method: Explainer, values: Mapping[str, object]) -> dict[str, str]:
    """The parameters that differ from the method's defaults, as texts."""
    chosen = as_plain(from_mapping(method.params, values, method.id))
    defaults = as_plain(method.params())
    return {name: str(value) for name, value in chosen.items() if value != defaults[name]}


def _methods(given: list[str], known: Mapping[str, Explainer], said: list[str]) -> tuple[str, ...]:
    if given == ["none"]:
        return ()
    said += [str(unknown("method", name[:40], known)) for name in given if name not in known]
    return tuple(dict.fromkeys(name for name in given or START if name in known))


def _edits(last: Mapping[str, str], parent: Example, said: list[str]) -> dict[str, str | None]:
    """Both texts of the edit; a link may name the first alone."""
    edit, pair = (read_text(last, name, said) for name in ("edit", "edit_pair"))
    return {"edit": edit, "edit_pair": parent.text_pair if pair is None and edit is not None else pair}


def _pins(last: Mapping[str, str], said: list[str]) -> tuple[int, ...]:
    given = last.get("pin", "")
    parts = given.split(",") if given else []
    if len(parts) <= MOST_PINS and all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        return tuple(sorted(set(map(int, parts))))
    said.append(f"pin: must be places of tokens such as 3,4, got {given[:40]!r}. Nothing is pinned.")
    return ()


def _opened(last: Mapping[str, str], said: list[str]) -> tuple[str, ...]:
    given = last["open"].split(",") if last.get("open") else []
    said += [str(unknown("open", name[:40], SECTIONS)) for name in given if name not in SECTIONS]
    return tuple(name for name in SECTIONS if name in given)


def _seed(last: Mapping[str, str], said: list[str]) -> int:
    given = last.get("seed", "0")
    if given.isascii() and given.isdigit() and int(given) < 2**31:
        return int(given)
    said.append(f"seed: must be a whole number from 0 to {2**31 - 1}, got {given[:40]!r}. 0 is used.")
    return 0


def _params(last: Mapping[str, str], known: Mapping[str, Explainer], said: list[str]) -> Params:
    given: Params = {}
    for name, value in last.items():
        match = PARAMETER.fullmatch(name)
        if match and match[1] in known:
            given.setdefault(match[1], {})[match[2]] = value
    return {method: _checked(known[method], values, said) for method, values in given.items()}


def _checked(method: Explainer, values: Mapping[str, str], said: list[str]) -> dict[str, str]:
    good: dict[str, str] = {}
    for name, value in values.items():
        try:
            good |= differing(method, {name: value})
        except ExegesisError as error:
            said.append(f"{error} The default is used.")
    return good
