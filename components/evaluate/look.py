"""How an evaluation is looked at, as plain values: which view, ordered by what, which point's examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from components.links import Query, last_values, read_choice, whole_number
from engine.errors import not_allowed, unknown
from engine.metrics.catalog import METRICS

LOOK = "look."
"""Keys of its controls start so."""
VIEWS = {
    "leaderboard": "Leaderboard",
    "curves": "Removal curves",
    "scaling": "Scaling",
    "architecture": "Architectures",
    "plausibility": "Plausibility and faithfulness",
    "cost": "Cost",
    "slices": "Slices",
    "strength": "Strength",
}
SLICES = {"label": "Label", "correctness": "Right or wrong", "length": "Length"}
INSIDE = {
    "bars": "One metric",
    "curves": "Removal curves",
    "plausibility": "Plausibility and faithfulness",
    "cost": "Cost",
}
OVER = ("data", "training")
COSTS = {"evaluations": "Model evaluations", "seconds": "Seconds"}
ORDERS = {"high": "Highest first", "low": "Lowest first", "index": "As in the data set"}
WAYS = {"without_top": "The highest scores removed", "with_top": "Only the highest scores kept"}

NAMES = {"metric": "y", "other": "x", "model": "drawn", "columns": "column"}
"""In a link, where they differ from those of `Look`."""
SEVERAL = ("only", "columns", "point")
"""Fields of several values."""


@dataclass(frozen=True)
class Point:
    """What was clicked: a mean, whose examples are wanted. `against`, `percent`, `slice`: empty where there is none."""

    model: str
    method: str
    metric: str
    against: str = ""
    percent: str = ""
    slice: str = ""

    @property
    def at(self) -> int | None:
        """The percent as a number."""
        return int(self.percent) if self.percent else None


@dataclass(frozen=True)
class Look:
    """`sort`: the metric whose best method comes first, empty for the first column. `metric`, `other`: on a chart's
    axes, upwards and across. `model`, `family`: the one drawn, empty for the first. `inside`: the chart of each slice.
    `over`: whether marks are graded in the data or in the training. `only`: the methods drawn in charts, `columns`: the
    metrics on the leaderboard; none for all.

    `point`: the fields of a `Point`, empty where none is chosen; plain, since a reload replaces classes.
    """

    view: str = "leaderboard"
    sort: str = ""
    metric: str = ""
    other: str = ""
    way: str = "without_top"
    slice: str = "label"
    inside: str = "bars"
    cost: str = "evaluations"
    model: str = ""
    family: str = ""
    over: str = "data"
    order: str = "high"
    only: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    point: tuple[str, ...] = ()

    @property
    def picked(self) -> Point | None:
        """The point whose examples are shown."""
        return Point(*self.point) if self.point else None


PLAIN_LOOK = Look()


def read_look(query: Query, said: list[str]) -> Look:
    """What a link says of it; a sentence is added to `said` for what is not known."""
    last = last_values(query)
    return Look(
        view=read_choice("view", last, tuple(VIEWS), said),
        sort=_metric("sort", last, said),
        metric=_metric("y", last, said),
        other=_metric("x", last, said),
        way=read_choice("way", last, tuple(WAYS), said),
        slice=read_choice("slice", last, tuple(SLICES), said),
        inside=read_choice("inside", last, tuple(INSIDE), said),
        cost=read_choice("cost", last, tuple(COSTS), said),
        model=last.get("drawn", ""),
        family=last.get("family", ""),
        over=read_choice("over", last, OVER, said),
        order=read_choice("order", last, tuple(ORDERS), said),
        only=tuple(dict.fromkeys(query.get("only", []))),
        columns=read_metrics("column", query, said),
        point=_point(query.get("point", []), said),
    )


def write_look(look: Look) -> Query:
    """Those fields in a link: only what differs from the usual."""
    given = {one.name: getattr(look, one.name) for one in fields(look) if one.name not in SEVERAL}
    unusual = {name: value for name, value in given.items() if value != getattr(PLAIN_LOOK, name)}
    query = {NAMES.get(name, name): [value] for name, value in unusual.items()}
    return query | {NAMES.get(name, name): list(getattr(look, name)) for name in SEVERAL if getattr(look, name)}


def as_fields(point: Point) -> tuple[str, ...]:
    """The point as plain values."""
    return tuple(getattr(point, one.name) for one in fields(point))


def read_metrics(name: str, query: Query, said: list[str]) -> tuple[str, ...]:
    """Several metrics by that name; a sentence is added to `said` for each that is not known."""
    given = query.get(name, [])
    said += [str(unknown(name, one[:40], METRICS)) for one in given if one not in METRICS]
    return tuple(dict.fromkeys(one for one in given if one in METRICS))


def _metric(name: str, last: Mapping[str, str], said: list[str]) -> str:
    given = last.get(name, "")
    if not given or given in METRICS:
        return given
    said.append(str(unknown(name, given[:40], METRICS)))
    return ""


def _point(given: list[str], said: list[str]) -> tuple[str, ...]:
    if not given:
        return ()
    wanted = len(fields(Point))
    if len(given) == wanted and given[2] in METRICS and (not given[4] or whole_number(given[4], 100) is not None):
        return tuple(given)
    allowed = "model, method, metric, other method, percent and slice"
    said.append(str(not_allowed("point", allowed, [one[:40] for one in given[:wanted]], "No examples are shown.")))
    return ()
