"""The state of the Compare page: plain values that a link fills, the widgets hold, and a page change keeps.

A text and a picture have a session of their own each, so that turning from one to the other loses nothing.
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
"""Contents of the maps: scores; each part's share of the map against its share in the reference; or how far it has
moved in rank from where the reference has it.
"""
SCALES = ("own", "common")
PERCENTS = (5, 10, TOP_PERCENT, 25, 50)
EXAMPLES = (10, 25, 50, 100, 250, 500)
DEFAULT_EXAMPLES = 50
LAYOUTS = ("both", "table", "text")
LETTERS = ascii_uppercase[:MOST]
"""Names of columns, from the left."""
START = {
    "text": ("gradient_x_input", "attention_rollout", "occlusion", "random"),
    "image": ("gradient_x_input", "grad_cam", "attention_rollout", "random"),
}
"""By kind of input, the methods of the columns that the page begins with."""
SECTIONS = ("search",)
SESSIONS = KindSessions("compare", SELECTIONS)
key = SESSIONS.key
VIEW = "look."
"""Prefix of the widget keys of view options."""
PLACE = ("data", "split", "index", "digest")
"""Fields of a link that name an example's place."""
OTHER = "other"
"""The field of a link that holds another text or prompt, all of whose maps are compared with those of the first."""
HAS_OTHER = "has_other"
"""The control that asks for it."""


@dataclass(frozen=True)
class CompareViewOptions:
    """`percent`: of the parts that count as the top. `examples`: how many are searched for disagreement.

    `scale`: "common" divides the scores of each map by the sum of their sizes, so that one scale fits all.
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
    """`columns` from the left; `reference`: the one that the others are compared with. `target`: the label of the class
    that all explain, None for each model's own predicted class. `other`: another text, which every column reads too.
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
        """The other text as an input like the first; None where there is none."""
        if self.other is None or not isinstance(self.input, Example):
            return None
        return dataclasses.replace(self.input, text=self.other)

    @property
    def input(self) -> Input | None:
        """The text or picture; None where there is none to read."""
        return self.focus.input

    @property
    def pinned(self) -> int | None:
        """The place of the reference among the columns."""
        return self.columns.index(self.reference) if self.reference in self.columns else None


def read_state(kind: str, query: Query, models: list[str], source: Opened) -> tuple[CompareState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
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
    """The link that reopens the state: only what differs from the usual is written, and always kind and columns."""
    focus = CHOICES[state.kind].to_link(state.focus)
    columns = {"column": [pair.code for pair in state.columns] or ["none"]}
    reference: Query = {} if state.pinned is None else {"reference": [LETTERS[state.pinned]]}
    others = write_record(state, names=["target", "seed", "open_sections", "view"])
    other: Query = {} if state.other is None else write_text(OTHER, state.other)
    return {PARAMETER: [state.kind]} | focus | columns | reference | other | others


def read_columns(codes: Sequence[str], kind: str, errors: list[str]) -> tuple[ModelMethodPair, ...]:
    """The columns of these codes, each once; a sentence is added to `errors` for what cannot stand there."""
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
    """The errors of a link as one text."""
    return " ".join([*errors, "The address now matches what is shown."])


def default_columns(kind: str, model: str) -> tuple[ModelMethodPair, ...]:
    """The columns that the page begins with: a few methods on the model that was looked at."""
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
    """Fill the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
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
        SELECTIONS[kind].carry(write(state))  # at once, as in `follow`
    return state, source, current


def from_widgets(loaded: CompareState, source: Opened) -> CompareState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    session = SESSIONS[loaded.kind]
    seed, focus = session.value("seed"), CHOICES[loaded.kind].controls(source)
    # A prompt names its token itself.
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
    """Remember the state and put it into the address, unless the address says it already."""
    SESSIONS.remember(state, loaded, write)


def remember_labels(kind: str, labels: Sequence[str]) -> bool:
    """Remember the classes that can be explained. Whether the control, which is drawn before, lacks any of them."""
    new = not set(labels) <= set(remembered_labels(kind))
    SESSIONS[kind].put("labels", list(labels))
    return new


def remembered_labels(kind: str) -> list[str]:
    """The classes of the models of the last run."""
    return list(SESSIONS[kind].value("labels") or ())


def put_columns(kind: str, columns: Sequence[ModelMethodPair]) -> None:
    """Compare these from now on: in a callback, or before the controls are drawn."""
    SESSIONS[kind].put("columns", [pair.code for pair in columns])


def put_other(text: str) -> None:
    """Set the other text, in a callback."""
    SESSIONS["text"].put(OTHER, text)


def pin(kind: str, pair: ModelMethodPair | None) -> None:
    """Compare the other columns with this one, or against none."""
    SESSIONS[kind].put("reference", "" if pair is None else pair.code)


def _without_place(link: Query, data: str) -> Query:
    """The link with a data set that can be had, and no place that was meant in another."""
    return {name: values for name, values in link.items() if name not in PLACE} | {"data": [data]}


def _values(state: CompareState) -> dict[str, object]:
    return {
        "columns": [pair.code for pair in state.columns],  # as texts: a reload of the code replaces classes
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
