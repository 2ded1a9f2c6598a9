"""The tidy table of students, one observation a row, as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.scaffold.result import Outcome, Scaffold
from engine.table_io import to_csv, to_json, to_parquet

COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "train_size": int,
    "seed": int, "epoch": int,
}  # fmt: skip
"""`model`: the teacher. `example`: empty, all values are of many. `method`: the setting. `epoch`: a pass, from 1; empty
of the finished student."""
PASSES = ("validation", "loss", "outer")
"""Of each pass: simulability on the validation examples, the mean loss, and that of the learned explainer."""


@dataclass(frozen=True)
class Row:
    """One observation. `value`: None where it is not defined."""

    model: str
    dataset: str
    example: int | None
    method: str
    metric: str
    value: float | None
    train_size: int
    seed: int
    epoch: int | None = None

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)


def rows(found: Scaffold) -> Iterator[Row]:
    """Student by student: its simulability on the test examples, then what was measured pass by pass."""
    for outcome in found.outcomes:
        yield _row(found, outcome, "simulability", outcome.simulability)
        for one in outcome.history:
            for metric in PASSES:
                value = getattr(one, metric)
                if metric != "outer" or value is not None:
                    yield _row(found, outcome, metric, value, one.epoch + 1)


def _row(found: Scaffold, outcome: Outcome, metric: str, value: float | None, epoch: int | None = None) -> Row:
    plan, pupil = found.plan, outcome.pupil
    return Row(
        plan.teacher, plan.dataset, None, pupil.setting, metric, value, pupil.train_size, pupil.seed, epoch
    )  # fmt: skip


def _csv(found: Scaffold) -> bytes:
    return (to_csv(row.as_plain() for row in rows(found)) or ",".join(COLUMNS) + "\n").encode()


def _json(found: Scaffold) -> bytes:
    return to_json(row.as_plain() for row in rows(found)).encode()


def _parquet(found: Scaffold) -> bytes:
    return to_parquet((row.as_plain() for row in rows(found)), COLUMNS)


FORMATS: Mapping[str, Callable[[Scaffold], bytes]] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""By the ending of the file's name."""
