"""A study's design as what its form's controls hold, and back; pure.

A control is named by its field: "title", "items.count", "exclusion.least_seconds". Model, data set and methods have
controls of their own for texts and for pictures, and are not among them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from engine.errors import not_allowed
from engine.study.design import Design

Fields = dict[str, Any]
PARTS = ("items", "exclusion")
ELSEWHERE = ("model", "dataset", "methods", *PARTS)
SPAN = re.compile(r"(\d{1,9})\s*[-–]\s*(\d{1,9})")
NUMBER = re.compile(r"\d{1,9}")
MOST_INDICES = 10_000
SHORTEST_SPAN = 3


def fields_of(design: Design, zone: tzinfo) -> Fields:
    """What the controls hold for that design. `zone`: where its times are read."""
    plain = design.as_plain()
    fields = {name: value for name, value in plain.items() if name not in ELSEWHERE}
    for part in PARTS:
        fields |= {f"{part}.{name}": value for name, value in plain[part].items()}
    for name in ("items.split", "items.label"):
        fields[name] = fields[name] or ""
    closes = design.closes_at
    when = None if closes is None else datetime.fromtimestamp(closes, zone).replace(tzinfo=None)
    return fields | {"items.indices": write_indices(design.items.indices), "closes_at": when}


def design_of(
    fields: Mapping[str, Any], model: str, dataset: str, methods: Sequence[Mapping[str, Any]], zone: tzinfo
) -> Design:
    """The design that the controls describe, not checked as a whole. Errors name what is not allowed in one of them."""
    plain = {name: value for name, value in fields.items() if "." not in name}
    for part in PARTS:
        start = f"{part}."
        plain[part] = {name.removeprefix(start): value for name, value in fields.items() if name.startswith(start)}
    for name in ("split", "label"):
        plain["items"][name] = plain["items"][name].strip() or None
    plain["items"]["indices"] = read_indices(plain["items"]["indices"])
    closes = plain["closes_at"]
    plain["closes_at"] = None if closes is None else closes.replace(tzinfo=zone).timestamp()
    return Design.from_plain({**plain, "model": model, "dataset": dataset, "methods": list(methods)})


def control_names() -> tuple[str, ...]:
    """All of them, in the order of the design."""
    own = [field.name for field in dataclasses.fields(Design) if field.name not in ELSEWHERE]
    parts = {part: getattr(Design(), part) for part in PARTS}
    return (*own, *(f"{part}.{field.name}" for part, held in parts.items() for field in dataclasses.fields(held)))


def read_indices(text: str) -> list[int]:
    """`3, 7, 10-12` as 3, 7, 10, 11, 12, in the order written."""
    found: list[int] = []
    for part in filter(None, (one.strip() for one in re.split(r"[,;\n]", text))):
        span = SPAN.fullmatch(part)
        if not span and not NUMBER.fullmatch(part):
            raise not_allowed("design.items.indices", "numbers and spans such as 3, 7, 10-19", part)
        first, last = (int(span[1]), int(span[2])) if span else (int(part), int(part))
        if len(found) + last - first >= MOST_INDICES or last < first:
            raise not_allowed("design.items.indices", f"rising spans, and at most {MOST_INDICES:,} numbers", part)
        found += range(first, last + 1)
    return found


def write_indices(indices: Sequence[int]) -> str:
    """The numbers in their order; three and more that follow each other as a span."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ", ".join(_run(run) for run in runs)


def _run(run: Sequence[int]) -> str:
    return f"{run[0]}-{run[-1]}" if len(run) >= SHORTEST_SPAN else ", ".join(map(str, run))
