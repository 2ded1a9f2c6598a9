"""What a reproduction of SMaT found: the claims, and the rows of the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.reproduction.outcome import Reproduction
from engine.reproduction.outcome import from_plain as plain_report


@dataclass(frozen=True)
class Row:
    """A number of a table. `table`: a measure of `engine.reproduction.smat.claims.MEASURES`. `what`: the setting.

    Simulability and heads: median and quartiles over `n` students; `train_size` examples. AUC: mean and 95 % interval
    over `n` examples of a `side`, empty for all of it. `note`: what else is to be known, in words, else empty.
    """

    table: str
    task: str
    normalisation: str
    what: str
    side: str
    train_size: int
    value: float
    low: float
    high: float
    n: int
    note: str = ""


@dataclass(frozen=True)
class SmatReport(Reproduction):
    """All that a report says."""

    rows: tuple[Row, ...] = ()


def from_plain(plain: Mapping[str, Any]) -> SmatReport:
    """The opposite of `as_plain`."""
    shared = plain_report({name: value for name, value in plain.items() if name != "rows"})
    return SmatReport(**vars(shared), rows=tuple(Row(**one) for one in plain["rows"]))
