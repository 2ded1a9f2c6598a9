"""The card of a learned explainer: how it was made, from what, and how well it taught."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.errors import ExegesisError, excerpt
from engine.scaffold.plan import NONE, NORMALIZATIONS, SMAT

FORMAT = 1
"""Raised whenever the meaning of a field changes."""
FEW_SEEDS = 3
"""Fewer students say nothing of chance."""
METRICS = ("accuracy", "pearson")


@dataclass(frozen=True)
class SimulabilitySummary:
    """Simulability of the students in one setting: median and quartiles, and how many students these are of."""

    low: float
    median: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.median:.3f}, quartiles {self.low:.3f} to {self.high:.3f}"


@dataclass(frozen=True)
class ExplainerCard:
    """`revision`: of the teacher. `family`: the teacher's model_type. `shape`: its layers, and heads in each.

    `seed`: of the student that it was learned with. `metric`: what simulability is, "accuracy", 0 to 1, or "pearson",
    -1 to 1. `simulability`: by setting: smat, and as far as they were measured none and the best static explainer.
    """

    teacher: str
    revision: str
    family: str
    shape: tuple[int, int]
    normalisation: str
    dataset: str
    train_size: int
    seed: int
    made_by: str
    metric: str
    simulability: Mapping[str, SimulabilitySummary]
    date: str
    version: str
    licence: str

    @property
    def worth(self) -> str:
        """What it is worth, as the end of a sentence that begins with "It". Better: the quartiles do not overlap."""
        learned = self.simulability[SMAT]
        others = {name: summary for name, summary in self.simulability.items() if name != SMAT}
        if not others:
            return f"was compared with no other setting (simulability {learned})"
        if min(summary.seeds for summary in self.simulability.values()) < FEW_SEEDS:
            return (
                f"was learned with few seeds: whether it teaches better than {_setting_titles(others)} cannot be told"
            )
        return "; ".join(_against(learned, name, summary) for name, summary in others.items())

    def as_plain(self) -> dict[str, Any]:
        """What the card's file holds."""
        return {"format": FORMAT, **asdict(self), "shape": list(self.shape), "worth": f"It {self.worth}."}


def card_from_json(plain: object, source: str) -> ExplainerCard:
    """The card in plain values. Errors name the field of `source` that is missing or wrong."""
    if not isinstance(plain, dict):
        raise _wrong(source, "it", "a JSON object", plain)
    if plain.get("format") != FORMAT:
        raise _wrong(source, "format", str(FORMAT), plain.get("format"))
    known = {"format", "worth", *_FIELDS}
    if missing := sorted(known - {"worth"} - plain.keys()):
        raise ExegesisError(f"explainer {source}: {', '.join(missing)} is missing. {_NEXT}")
    if strange := sorted(map(str, plain.keys() - known)):
        raise ExegesisError(f"explainer {source}: unknown fields {', '.join(strange)}. {_NEXT}")
    return ExplainerCard(**{name: read(plain[name], name, source) for name, read in _FIELDS.items()})


def _setting_titles(names: Mapping[str, SimulabilitySummary]) -> str:
    return " and ".join(map(setting_title, names))


def setting_title(setting: str) -> str:
    """A setting in words."""
    return "no explainer" if setting == NONE else setting


def _against(learned: SimulabilitySummary, name: str, other: SimulabilitySummary) -> str:
    words = "no better, as far as can be told, than"
    if learned.low > other.high:
        words = "better than"
    elif learned.high < other.low:
        words = "worse than"
    return f"taught {words} {setting_title(name)} (simulability {learned}, against {other})"


_NEXT = "Train the explainer again, or get its files again."


def _wrong(source: str, field: str, allowed: str, got: object) -> ExegesisError:
    return ExegesisError(f"explainer {source}: {field} must be {allowed}, got {excerpt(got)}. {_NEXT}")


def _text(value: object, field: str, source: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(source, field, "a text", value)
    return value


def _one_of(*choices: str) -> Callable[[object, str, str], str]:
    def read(value: object, field: str, source: str) -> str:
        if value not in choices:
            raise _wrong(source, field, f"one of {', '.join(choices)}", value)
        return str(value)

    return read


def _whole(low: int) -> Callable[[object, str, str], int]:
    def read(value: object, field: str, source: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise _wrong(source, field, f"a whole number of at least {low}", value)
        return value

    return read


def _shape(value: object, field: str, source: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise _wrong(source, field, "[layers, heads in each]", value)
    layers, heads = (_whole(1)(one, field, source) for one in value)
    return layers, heads


def _simulability(value: object, field: str, source: str) -> dict[str, SimulabilitySummary]:
    if not isinstance(value, dict) or SMAT not in value:
        raise _wrong(source, field, f"an object by setting, {SMAT} among them", value)
    return {str(setting): _summary(summary, f"{field}.{setting}", source) for setting, summary in value.items()}


def _summary(value: object, field: str, source: str) -> SimulabilitySummary:
    names = ("low", "median", "high")
    if not isinstance(value, dict) or value.keys() != {*names, "seeds"}:
        raise _wrong(source, field, "an object of low, median, high and seeds", value)
    numbers = [value[name] for name in names]
    plain = all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers)
    if not plain or not -1 <= numbers[0] <= numbers[1] <= numbers[2] <= 1:
        raise _wrong(source, field, "low, median and high in that order, from -1 to 1", numbers)
    low, median, high = map(float, numbers)
    return SimulabilitySummary(low, median, high, _whole(1)(value["seeds"], f"{field}.seeds", source))


_FIELDS: dict[str, Callable[[object, str, str], Any]] = {
    "teacher": _text,
    "revision": _text,
    "family": _text,
    "shape": _shape,
    "normalisation": _one_of(*NORMALIZATIONS),
    "dataset": _text,
    "train_size": _whole(1),
    "seed": _whole(0),
    "made_by": _text,
    "metric": _one_of(*METRICS),
    "simulability": _simulability,
    "date": _text,
    "version": _text,
    "licence": _text,
}
