"""The state of the Compare page as plain values: in its link, in the widgets, and in the session between pages.

Texts and pictures have separate sessions, so switching between them loses nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from components.inputs.choices import CHOICES, SELECTIONS, Focus, Opened
from components.links import (
    Query,
    last_values,
    opened_option,
    read_record,
    read_text,
    seed_option,
    target_option,
    write_record,
    write_text,
)
from components.state import MEASURES, PARAMETER, KindSessions, control_values
from components.widgets.patch_map import MOST_OPACITY, OPACITY
from components.widgets.view_options import gamma
from engine.comparison.agreement import ORDERS, AgreementOptions
from engine.comparison.plan import MOST, ModelMethodPair, read_pair
from engine.errors import UsageError, unknown
from engine.metrics.agreement import TOP_PERCENT
from engine.params import option
from engine.request import Example, Input, Prompt

UNITS = ("word", "token", "sentence", "turn")
SHOWN = ("scores", "difference", "moves")
"""Contents of the maps: scores, differences or rank changes.

A difference is a part's share of the map minus its share in the reference; a rank change is relative to the reference.
"""
SCALES = ("own", "common")
PERCENTS = (5, 10, TOP_PERCENT, 25, 50)
EXAMPLES = (10, 25, 50, 100, 250, 500)
DEFAULT_EXAMPLES = 50
LAYOUTS = ("both", "table", "text")
LETTERS = ascii_uppercase[:MOST]
"""Letters that name the columns, from the left."""
START = {
    "text": ("gradient_x_input", "attention_rollout", "occlusion", "random"),
    "image": ("gradient_x_input", "grad_cam", "attention_rollout", "random"),
}
"""Methods of the initial columns, by kind of input."""
SECTIONS = ("search",)
SESSIONS = KindSessions("compare", SELECTIONS)
key = SESSIONS.key
VIEW = "look."
"""Prefix of the widget keys of view options."""
PLACE = ("data", "split", "index", "digest")
"""Fields of a link that locate an example."""
OTHER = "other"
"""Field of a link with another text or prompt, whose maps are compared with those of the first."""
HAS_OTHER = "has_other"
"""Name of the switch for the other text."""


@dataclass(frozen=True)
class CompareViewOptions:
    """View options of the Compare page.

    `percent`: percentage of parts that count as the top. `examples`: number of examples searched for disagreement.
    `scale`: "common" divides the scores of each map by the sum of their absolute values, so that one scale fits all.
    """

    unit: str = option(UNITS[0], choices=UNITS)
    layout: str = option(LAYOUTS[0], choices=LAYOUTS)
    shown: str = option(SHOWN[0], choices=SHOWN)
    scale: str = option(SCALES[0], choices=SCALES)
    gamma: float = gamma()
    measure: str = option(MEASURES[0], choices=MEASURES)
    order: str = option(ORDERS[0], choices=ORDERS)
    percent: int = option(TOP_PERCENT, choices=PERCENTS)
    opacity: int = option(OPACITY, low=0, high=MOST_OPACITY)
    examples: int = option(DEFAULT_EXAMPLES, choices=EXAMPLES)

    @property
    def agreement_options(self) -> AgreementOptions:
        """How maps are compared."""
        return AgreementOptions(self.measure, self.order, self.percent)


DEFAULT_VIEW = CompareViewOptions()


@dataclass(frozen=True, kw_only=True)
class CompareState:
    """State of the Compare page.

    `columns`: the columns from the left. `reference`: the column that the others are compared with. `target`: the label
    of the class that all columns explain, None for each model's own predicted class. `other`: another text, which every
    column explains too.
    """

    kind: str
    focus: Focus
    columns: tuple[ModelMethodPair, ...]
    reference: ModelMethodPair | None = None
    target: str | None = target_option()
    seed: int = seed_option()
    view: CompareViewOptions = DEFAULT_VIEW
    open_sections: tuple[str, ...] = opened_option(*SECTIONS)
    other: str | None = None

    @property
    def other_input(self) -> Example | None:
        """The other text as an input like the first; None if there is none."""
        if self.other is None or not isinstance(self.input, Example):
            return None
        return dataclasses.replace(self.input, text=self.other)

    @property
    def input(self) -> Input | None:
        """The text or picture; None if there is none."""
        return self.focus.input

    @property
    def pinned(self) -> int | None:
        """The index of the reference among the columns; None if there is none."""
        return self.columns.index(self.reference) if self.reference in self.columns else None


def read_state(kind: str, query: Query, models: list[str], source: Opened) -> tuple[CompareState, list[str]]:
    """Return the state of a link, and an error for each unknown value in it."""
    errors: list[str] = []
    last = last_values(query)
    focus = CHOICES[kind].from_link(last, models, source, errors)
    columns = default_columns(kind, focus.model)
    if codes := query.get("column", []):
        columns = read_columns([code for code in codes if code != "none"], kind, errors)
    other = read_text(last, OTHER, errors) if kind == "text" else None
    reference = _reference(last, columns, errors)
    state = CompareState(kind=kind, focus=focus, columns=columns, reference=reference, other=other)
    return read_record(state, query, errors, names=["target", "seed", "view", "open_sections"]), errors


def write(state: CompareState) -> Query:
    """Return the link that reopens the state: the kind, the columns, and values that differ from the defaults."""
    focus = CHOICES[state.kind].to_link(state.focus)
    columns = {"column": [pair.code for pair in state.columns] or ["none"]}
    reference: Query = {} if state.pinned is None else {"reference": [LETTERS[state.pinned]]}
    others = write_record(state, names=["target", "seed", "open_sections", "view"])
    other: Query = {} if state.other is None else write_text(OTHER, state.other)
    return {PARAMETER: [state.kind]} | focus | columns | reference | other | others


def read_columns(codes: Sequence[str], kind: str, errors: list[str]) -> tuple[ModelMethodPair, ...]:
    """Return the columns of these codes without duplicates; invalid codes and excess columns add to `errors`."""
    pairs: dict[ModelMethodPair, None] = {}
    for code in codes:
        try:
            pairs[read_pair(code, kind)] = None
        except UsageError as error:
            errors.append(f"{error} The column is left out.")
    if len(pairs) > MOST:
        errors.append(
            f"column: must be given at most {MOST} times, got {len(pairs)}. The first {MOST} columns are shown."
        )
    return tuple(pairs)[:MOST]


def link_words(errors: Sequence[str]) -> str:
    """Join the errors of a link into one string."""
    return " ".join([*errors, "The address now matches what is shown."])


def default_columns(kind: str, model: str) -> tuple[ModelMethodPair, ...]:
    """Return the initial columns: a few methods on the current model."""
    return tuple(ModelMethodPair(model, method) for method in START[kind]) if model else ()


def _reference(
    last: Mapping[str, str], columns: Sequence[ModelMethodPair], errors: list[str]
) -> ModelMethodPair | None:
    letter = last.get("reference", "")
    by_letter = dict(zip(LETTERS, columns, strict=False))
    if letter and letter not in by_letter:
        errors.append(str(unknown("reference", letter[:40], by_letter)))
    return by_letter.get(letter)


def load(kind: str, models: list[str]) -> tuple[CompareState, Opened, list[str]]:
    """Fill widgets that have no value. Returns the state of the last link, the open data set, and the link's errors."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    choice = CHOICES[kind]
    source, wrong = choice.open(link), []
    if fresh and source.error:
        wrong = [source.error]
        link = _without_place(link, source.name)
        source = choice.open(link)
    state, errors = read_state(kind, link, models, source)
    choice.fill(state.focus, source)
    errors = [*wrong, *errors]
    session.fill(_values(state))
    current = session.tell(errors, fresh, lambda: write(state), state, ("column", "reference", OTHER, f"{OTHER}_sha"))
    if fresh and errors:
        SELECTIONS[kind].carry(write(state))  # immediately, as in `follow`
    return state, source, current


def from_widgets(loaded: CompareState, source: Opened) -> CompareState:
    """Return the state of the controls; the value of a control that is not drawn stays as loaded."""
    session = SESSIONS[loaded.kind]
    seed, focus = session.value("seed"), CHOICES[loaded.kind].controls(source)
    # A prompt has its own target token.
    target = None if isinstance(focus.input, Prompt) else session.value("target") or None
    return dataclasses.replace(
        loaded,
        focus=focus,
        columns=_pairs(session.value("columns") or [], loaded.kind),
        reference=next(iter(_pairs([session.value("reference") or ""], loaded.kind)), None),
        target=target,
        seed=loaded.seed if seed is None else int(seed),
        view=session.read_record(VIEW, loaded.view),
        open_sections=tuple(name for name in SECTIONS if session.value(f"open.{name}")),
        other=str(session.value(OTHER) or "") if session.value(HAS_OTHER) else None,
    )


def save(state: CompareState, loaded: CompareState) -> None:
    """Remember the state and write it to the address if it changed."""
    SESSIONS.remember(state, loaded, write)


def remember_labels(kind: str, labels: Sequence[str]) -> bool:
    """Remember the classes that can be explained.

    Returns whether the control, which is drawn earlier, lacks any of them.
    """
    new = not set(labels) <= set(remembered_labels(kind))
    SESSIONS[kind].put("labels", list(labels))
    return new


def remembered_labels(kind: str) -> list[str]:
    """The classes of the models of the last run."""
    return list(SESSIONS[kind].value("labels") or ())


def put_columns(kind: str, columns: Sequence[ModelMethodPair]) -> None:
    """Set the columns. Call it in a callback or before the controls are drawn."""
    SESSIONS[kind].put("columns", [pair.code for pair in columns])


def put_other(text: str) -> None:
    """Set the other text; for use in a callback."""
    SESSIONS["text"].put(OTHER, text)


def pin(kind: str, pair: ModelMethodPair | None) -> None:
    """Pin the column that the others are compared with; None removes the pin."""
    SESSIONS[kind].put("reference", "" if pair is None else pair.code)


def _without_place(link: Query, data: str) -> Query:
    """Return the link with an available data set, and without the place of an example in another one."""
    return {name: values for name, values in link.items() if name not in PLACE} | {"data": [data]}


def _values(state: CompareState) -> dict[str, object]:
    return {
        "columns": [pair.code for pair in state.columns],  # as strings, because a code reload replaces classes
        "reference": "" if state.reference is None else state.reference.code,
        "target": state.target or "",
        "seed": state.seed,
        HAS_OTHER: state.other is not None,
        OTHER: state.other or "",
        **control_values(VIEW, state.view),
        **{f"open.{name}": name in state.open_sections for name in SECTIONS},
    }


def _pairs(codes: Sequence[str], kind: str) -> tuple[ModelMethodPair, ...]:
    return read_columns([code for code in codes if code], kind, [])
