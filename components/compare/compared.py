"""Everything that one example's comparison shows, in plain values: what there is of each column, on common parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from components.compare.columns import model_of, names_of, title_of
from components.compare.look import CompareLook
from components.compare.state import LETTERS, CompareState
from components.numbers import percent, signed
from components.widgets.view_options import ViewOptions
from engine.comparison.agreeing import How, agree, agreements, apart, by_chance, differences, moved_share, rank_moves
from engine.comparison.parts import Sheet
from engine.metrics.agreement import Agreement
from engine.registry import Explainer
from engine.result import Explanation, Prediction
from engine.word_units import BASELINE


@dataclass(frozen=True, eq=False)
class Column:
    """`made`: its explanation, else `said` tells why there is none, and `failed` whether that is an error.

    `row`: its place in the sheet.
    """

    letter: str
    name: str
    title: str
    model: str
    method: Explainer
    made: Explanation | None = None
    said: str = ""
    failed: bool = False
    row: int | None = None

    @property
    def signed(self) -> bool:
        return self.made is not None and self.method.is_signed(self.made.provenance.params)

    @property
    def target(self) -> str:
        return "" if self.made is None else self.made.provenance.target_label


@dataclass(frozen=True, eq=False)
class Compared:
    """`pinned`: the place of the reference. `sheet`: the maps that are there, None where there is none yet."""

    state: CompareState
    columns: tuple[Column, ...]
    sheet: Sheet | None

    @property
    def look(self) -> CompareLook:
        return self.state.look

    @property
    def how(self) -> How:
        return self.look.how

    @property
    def unit(self) -> str:
        """What a part is called."""
        return self.look.unit if self.state.kind == "text" else "patch"

    @property
    def there(self) -> tuple[Column, ...]:
        """The columns that have a map."""
        return tuple(column for column in self.columns if column.made is not None)

    @property
    def reference(self) -> Column | None:
        """The pinned column, while it has a map."""
        pinned = None if self.state.pinned is None else self.columns[self.state.pinned]
        return pinned if pinned is not None and pinned.row is not None else None

    @property
    def moving(self) -> bool:
        """Whether maps show moves in rank: they do once there is a reference to move from."""
        return self.look.shown == "moves" and self.reference is not None

    @property
    def differing(self) -> bool:
        """Whether maps show how their shares differ from the reference's."""
        return self.look.shown == "difference" and self.reference is not None

    @property
    def relative(self) -> bool:
        """Whether maps show anything that is held against the reference, which then shows nothing."""
        return self.moving or self.differing

    @cached_property
    def found(self) -> Agreement | None:
        """The measure between every two maps."""
        return None if self.sheet is None else self.by(self.look.measure)

    def by(self, measure: str) -> Agreement:
        """Another measure between every two maps."""
        scores = np.empty((0, 0)) if self.sheet is None else self.sheet.scores
        return agreements(scores, [column.letter for column in self.there], replace(self.how, measure=measure))

    @property
    def apart(self) -> float | None:
        """How much the maps disagree: `agreeing.apart`."""
        if self.found is None:
            return None
        reference = None if self.reference is None else self.reference.row
        return apart(
            self.found, reference, by_chance([column.made for column in self.there if column.made is not None])
        )

    @property
    def apart_over(self) -> str:
        """Which pairs of maps that is over."""
        if self.reference is not None:
            return f"the maps and the reference {self.reference.letter}"
        chance = [column.letter for column in self.there if column.method.family == BASELINE]
        informed = len(self.there) - len(chance) > 1
        return f"every two maps but {' and '.join(chance)}, by chance" if chance and informed else "every two maps"

    def with_reference(self, column: Column, measure: str) -> float | None:
        """How a column agrees with the reference; None where that cannot be told."""
        if self.sheet is None or self.reference is None or self.reference.row is None or column.row is None:
            return None
        scores = self.sheet.scores
        return agree(scores[self.reference.row], scores[column.row], replace(self.how, measure=measure))

    def elsewhere(self, column: Column) -> float | None:
        """How much of a column's map lies elsewhere than in the reference, from 0 to 1, where differences are shown."""
        return moved_share(self.scores(column)) if self.differing and column is not self.reference else None

    def scores(self, column: Column) -> Float[np.ndarray, "part"]:
        """What the column's map shows of each part, as the look says; NaN where there is nothing."""
        if self.sheet is None or column.row is None:
            raise ValueError(f"column {column.letter}: has no map")
        own = self.sheet.scores[column.row]
        if self.relative and self.reference is not None and self.reference.row is not None:
            against = rank_moves if self.moving else differences
            return against(self.sheet.scores[self.reference.row], own, self.how)
        return own / (np.nansum(np.abs(own)) or 1.0) if self.look.scale == "common" else own

    @cached_property
    def end(self) -> float | None:
        """Where the scale of all maps ends; None for a scale a map. What is held against the reference shares one."""
        if not self.relative and self.look.scale == "own":
            return None
        sizes = [np.abs(self.scores(column)) for column in self.there]
        return max((float(np.nanmax(size)) for size in sizes if np.isfinite(size).any()), default=0.0)

    @property
    def map_look(self) -> ViewOptions:
        """What the maps themselves need to know."""
        return ViewOptions(gamma=self.look.gamma)


def columns_of(state: CompareState, methods: Mapping[str, Explainer]) -> tuple[Column, ...]:
    """The columns before anything is made."""
    named = zip(LETTERS, state.columns, names_of(state.columns, methods), strict=False)
    return tuple(
        Column(letter, name, title_of(pair, methods), model_of(pair), methods[pair.method])
        for letter, pair, name in named
    )


def answer_of(prediction: Prediction) -> str:
    """The predicted class with its probability, or the score."""
    if prediction.regression:
        return f"{prediction.labels[0]} {signed(prediction.logits[0])}"
    return f"{prediction.label} {percent(prediction.probabilities[prediction.index])}"


def labels_of(columns: Sequence[Column]) -> list[str]:
    """The classes of all models that are there, each once."""
    made = [column.made.prediction for column in columns if column.made is not None]
    return list(dict.fromkeys(label for one in made if not one.regression for label in one.labels))


def verdict(columns: Sequence[Column]) -> str:
    """Whether the models agree on the class; empty where fewer than two models have classes."""
    told: dict[str, dict[str, None]] = {}
    models: set[str] = set()
    for column in columns:
        if column.made is not None and not column.made.prediction.regression:
            told.setdefault(column.made.prediction.label, {})[column.letter] = None
            models.add(column.made.provenance.model)
    if len(models) < 2:
        return ""
    if len(told) == 1:
        return f"All {len(models)} models predict {next(iter(told))}."
    said = "; ".join(f"{', '.join(letters)}: {label}" for label, letters in told.items())
    return f"The models disagree on the class. {said}."
