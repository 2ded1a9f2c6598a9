"""What the Compare page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from components.compare.look import PLAIN_COMPARE, CompareLook, read_compare_look, write_compare_look
from components.input_kind import PARAMETER
from components.inputs.datasets import OpenPictures, OpenTexts
from components.inputs.link import Query
from components.inputs.picture_choice import PictureFocus, read_picture_focus, write_picture_focus
from components.inputs.text_choice import TextFocus, read_text_focus, write_text_focus
from components.request_link import last_values, read_opened, read_seed, write_places, write_unusual
from engine.comparison.pairs import MOST, Pair, read_pair
from engine.errors import UsageError, unknown
from engine.request import Input

LETTERS = ascii_uppercase[:MOST]
"""What columns are called, from the left."""
START = {
    "text": ("gradient_x_input", "attention_rollout", "occlusion", "random"),
    "image": ("gradient_x_input", "grad_cam", "attention_rollout", "random"),
}
"""By kind of input, the methods of the columns that the page begins with."""
SECTIONS = ("search",)


@dataclass(frozen=True, kw_only=True)
class CompareState:
    """`columns` from the left; `reference`: the one that the others are held against. `target`: the label of the class
    that all explain, None for each model's own predicted class.
    """

    kind: str
    focus: TextFocus | PictureFocus
    columns: tuple[Pair, ...]
    reference: Pair | None = None
    target: str | None = None
    seed: int = 0
    look: CompareLook = PLAIN_COMPARE
    opened: tuple[str, ...] = ()

    @property
    def input(self) -> Input | None:
        """The text or picture; None where there is none to read."""
        return self.focus.example if isinstance(self.focus, TextFocus) else self.focus.picture

    @property
    def pinned(self) -> int | None:
        """The place of the reference among the columns."""
        return self.columns.index(self.reference) if self.reference in self.columns else None


def read_text(query: Query, models: list[str], opened: OpenTexts) -> tuple[CompareState, list[str]]:
    """The state that a link to a text asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    return _read("text", query, last, read_text_focus(last, models, opened, said), said), said


def read_picture(query: Query, models: list[str], opened: OpenPictures) -> tuple[CompareState, list[str]]:
    """The same of a link to a picture."""
    said: list[str] = []
    last = last_values(query)
    return _read("image", query, last, read_picture_focus(last, models, opened, said), said), said


def write(state: CompareState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always kind and columns."""
    focus = write_text_focus(state.focus) if isinstance(state.focus, TextFocus) else write_picture_focus(state.focus)
    columns = {"column": [pair.code for pair in state.columns] or ["none"]}
    others = write_unusual(
        (
            ("reference", "" if state.pinned is None else LETTERS[state.pinned], ""),
            ("target", state.target, None),
            ("seed", state.seed, 0),
            ("open", write_places(state.opened), ""),
        )
    )
    return {PARAMETER: [state.kind]} | focus | columns | others | write_compare_look(state.look)


def read_columns(codes: Sequence[str], kind: str, said: list[str]) -> tuple[Pair, ...]:
    """The columns of these codes, each once; a sentence is added to `said` for what cannot stand there."""
    found: dict[Pair, None] = {}
    for code in codes:
        try:
            found[read_pair(code, kind)] = None
        except UsageError as error:
            said.append(f"{error} The column is left out.")
    if len(found) > MOST:
        said.append(f"column: at most {MOST} columns stand side by side, got {len(found)}. The first {MOST} are shown.")
    return tuple(found)[:MOST]


def link_words(said: Sequence[str]) -> str:
    """All that was wrong in a link, as one text."""
    return " ".join([*said, "The address now says what is shown."])


def usual_columns(kind: str, model: str) -> tuple[Pair, ...]:
    """What the page begins with: a few methods on the model that was looked at."""
    return tuple(Pair(model, method) for method in START[kind]) if model else ()


def _read(
    kind: str, query: Query, last: Mapping[str, str], focus: TextFocus | PictureFocus, said: list[str]
) -> CompareState:
    codes = query.get("column", [])
    columns = read_columns([code for code in codes if code != "none"], kind, said) if codes else (
        usual_columns(kind, focus.model)
    )  # fmt: skip
    return CompareState(
        kind=kind,
        focus=focus,
        columns=columns,
        reference=_reference(last, columns, said),
        target=last.get("target"),
        seed=read_seed(last, said),
        look=read_compare_look(last, said),
        opened=read_opened(last, SECTIONS, said),
    )


def _reference(last: Mapping[str, str], columns: Sequence[Pair], said: list[str]) -> Pair | None:
    given = last.get("reference", "")
    known = dict(zip(LETTERS, columns, strict=False))
    if given and given not in known:
        said.append(str(unknown("reference", given[:40], known)))
    return known.get(given)
