"""The fields of a study's form: their widgets, and conversion between a design and the values of the fields.

A field is named as in the design: "title", "items.count", "exclusion.least_seconds"; bounds, choices and help are
declared there too. Model, data set and methods have separate fields for texts and for pictures.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, Literal, get_args, get_type_hints

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import describe_error
from components.inputs.datasets import dataset_label, label_models, model_name, sort_by_task
from components.state import renew_models
from engine.errors import not_allowed
from engine.study.design import FIELD_LABELS, Design, label_fields

WIDGETS = "study.form."
NARROW = 200
"""Width of a number input, in pixels."""

Fields = dict[str, Any]
PARTS = ("items", "exclusion")
ELSEWHERE = ("model", "dataset", "methods", *PARTS)
SPAN = re.compile(r"(\d{1,9})\s*[-–]\s*(\d{1,9})")
NUMBER = re.compile(r"\d{1,9}")
MOST_INDICES = 10_000
SHORTEST_SPAN = 3


def field_key(name: str) -> str:
    """Return the key of a field's widget."""
    return f"{WIDGETS}{name}"


def field_value(name: str) -> Any:
    """Return the value of a field, visible or hidden."""
    return st.session_state[field_key(name)]


def set_field(name: str, value: object) -> None:
    """Set the value of a field before it is drawn."""
    st.session_state[field_key(name)] = value


def describe_field_error(error: Exception) -> str:
    """Return the message of an error, with the label of a field instead of its name."""
    return label_fields(describe_error(error))


def draw_number(name: str, step: int | float = 1) -> None:
    """Draw a number input with the bounds of its field; empty means None if the field is optional."""
    hint, meta = _declaration(name)
    optional = type(None) in get_args(hint)
    kind = float if float in (hint, *get_args(hint)) else int
    low, high = (None if bound is None else kind(bound) for bound in (meta["low"], meta["high"]))
    draw: Callable[..., object] = st.number_input  # each of its overloads accepts one kind of number
    draw(
        FIELD_LABELS[name], low, high, value=None if optional else "min", key=field_key(name), step=kind(step),
        width=NARROW, format="%d" if kind is int else "%g", help=meta["help"], persist_state="page",
        placeholder="none" if optional else None,
    )  # fmt: skip


def draw_line(name: str, help: str | None = None, width: int | Literal["stretch"] = "stretch") -> None:
    """Draw a text input."""
    st.text_input(FIELD_LABELS[name], key=field_key(name), help=help, width=width, persist_state="page")


def draw_text(name: str, help: str | None = None, height: int = 160) -> None:
    """Draw a text area."""
    st.text_area(FIELD_LABELS[name], key=field_key(name), help=help, height=height, persist_state="page")


def draw_choice(name: str, words: Mapping[str, str], on_change: Callable[[], None] | None = None) -> None:
    """Draw the choice between options. `words`: the label of each. `on_change`: called after a change by the user."""
    st.segmented_control(
        FIELD_LABELS[name], list(words), key=field_key(name), format_func=words.__getitem__, required=True,
        help=_declaration(name)[1]["help"], on_change=on_change, persist_state="page",
    )  # fmt: skip


def draw_name(kind: str, name: str, options: Sequence[str], help: str) -> None:
    """Draw a select box of listed names that also accepts a typed name. `kind`: the kind of the items."""
    label, name = FIELD_LABELS[name], f"{kind}.{name}"
    current = st.session_state.get(field_key(name))
    if current and name.endswith(".model"):
        current = model_name(current)
    names = list(dict.fromkeys([*options, *filter(None, [current])]))
    label_of: Callable[[str], str] = dataset_label
    if name.endswith(".model"):
        label_of = labels = label_models(names, kind, str(st.session_state.get(field_key(f"{kind}.dataset")) or ""))
        names = sort_by_task(names, labels.misfits)
        renew_models(field_key(name), labels)
    st.selectbox(
        label, names, key=field_key(name), format_func=label_of, accept_new_options=True, help=help,
        persist_state="page",
    )  # fmt: skip


def field_row() -> DeltaGenerator:
    """Return a container of fields side by side, as many as fit in the window."""
    return st.container(horizontal=True, gap="small", vertical_alignment="bottom")


def _declaration(name: str) -> tuple[Any, Mapping[str, Any]]:
    """Return the type and the metadata of a field of the design or of one of its parts."""
    part, _, own = name.rpartition(".")
    owner: Any = type(getattr(Design(), part)) if part else Design
    declared = next(field for field in dataclasses.fields(owner) if field.name == own)
    return get_type_hints(owner)[own], declared.metadata


def fields_from_design(design: Design, zone: tzinfo) -> Fields:
    """Convert a design to the values of the fields. `zone`: the time zone of its times."""
    plain = design.to_json()
    fields = {name: value for name, value in plain.items() if name not in ELSEWHERE}
    for part in PARTS:
        fields |= {f"{part}.{name}": value for name, value in plain[part].items()}
    for name in ("items.split", "items.label"):
        fields[name] = fields[name] or ""
    closes = design.closes_at
    when = None if closes is None else datetime.fromtimestamp(closes, zone).replace(tzinfo=None)
    return fields | {"items.indices": format_indices(design.items.indices), "closes_at": when}


def design_from_fields(
    fields: Mapping[str, Any], model: str, dataset: str, methods: Sequence[Mapping[str, Any]], zone: tzinfo
) -> Design:
    """Convert the values of the fields to a design, not checked as a whole. Errors: a value that is not allowed."""
    plain = {name: value for name, value in fields.items() if "." not in name}
    for part in PARTS:
        start = f"{part}."
        plain[part] = {name.removeprefix(start): value for name, value in fields.items() if name.startswith(start)}
    for name in ("split", "label"):
        plain["items"][name] = plain["items"][name].strip() or None
    plain["items"]["indices"] = parse_indices(plain["items"]["indices"])
    closes = plain["closes_at"]
    plain["closes_at"] = None if closes is None else closes.replace(tzinfo=zone).timestamp()
    return Design.from_json({**plain, "model": model, "dataset": dataset, "methods": list(methods)})


def field_names() -> tuple[str, ...]:
    """Return the names of all fields, in the order of the design."""
    own = [field.name for field in dataclasses.fields(Design) if field.name not in ELSEWHERE]
    parts = {part: getattr(Design(), part) for part in PARTS}
    return (*own, *(f"{part}.{field.name}" for part, value in parts.items() for field in dataclasses.fields(value)))


def parse_indices(text: str) -> list[int]:
    """Parse `3, 7, 10-12` into 3, 7, 10, 11, 12, in that order."""
    indices: list[int] = []
    for part in filter(None, (one.strip() for one in re.split(r"[,;\n]", text))):
        span = SPAN.fullmatch(part)
        if not span and not NUMBER.fullmatch(part):
            raise not_allowed("design.items.indices", "numbers and spans such as 3, 7, 10-19", part)
        first, last = (int(span[1]), int(span[2])) if span else (int(part), int(part))
        if len(indices) + last - first >= MOST_INDICES or last < first:
            raise not_allowed("design.items.indices", f"ascending spans, and at most {MOST_INDICES:,} numbers", part)
        indices += range(first, last + 1)
    return indices


def format_indices(indices: Sequence[int]) -> str:
    """Format numbers in their order; three or more consecutive ones become a span."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) >= SHORTEST_SPAN else ", ".join(map(str, run)) for run in runs)
