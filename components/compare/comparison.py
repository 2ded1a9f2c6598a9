"""The comparison of one example as plain values: the map of each column on common parts, and their agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from components.compare.state import LETTERS, CompareState, CompareViewOptions
from components.method_row import explained_name
from components.numbers import percent, signed
from components.widgets.view_options import ViewOptions
from engine.comparison.agreement import (
    AgreementOptions,
    compare_maps,
    compared_pairs,
    find_random,
    mean_disagreement,
    measure_agreement,
    moved_share,
    rank_moves,
    share_differences,
)
from engine.comparison.alignment import AlignedMaps, PartScores
from engine.comparison.plan import ModelMethodPair
from engine.metrics.agreement import Agreement
from engine.registry import Explainer
from engine.result import Explanation, Prediction, predicted_name
from engine.word_units import BASELINE

Methods = Mapping[str, Explainer]


def pair_title(pair: ModelMethodPair, methods: Methods) -> str:
    """Return the title of the method, with the parameters that were changed."""
    title = methods[pair.method].title
    return f"{title}, {', '.join(f'{name} {value}' for name, value in pair.params)}" if pair.params else title


def model_name(pair: ModelMethodPair) -> str:
    """Return the display name of the model; for a folder, the last part of its path."""
    path = pair.model.rstrip("/")
    return path.rpartition("/")[2] if path.startswith(("/", ".", "~")) else path


def column_names(columns: Sequence[ModelMethodPair], methods: Methods) -> list[str]:
    """Return a unique name for each column: letter, method and, if there are several models, model."""
    several = len({pair.model for pair in columns}) > 1
    return [
        f"{letter} {pair_title(pair, methods)}{f' · {model_name(pair)}' if several else ''}"
        for letter, pair in zip(LETTERS, columns, strict=False)
    ]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """A column with its map.

    `explanation`: None if there is no map; `message` then says why, and `failed` whether that is an error. `row`: its
    row in the aligned maps.
    """

    letter: str
    name: str
    title: str
    model: str
    method: Explainer
    explanation: Explanation | None = None
    message: str = ""
    failed: bool = False
    row: int | None = None

    @property
    def signed(self) -> bool:
        return self.explanation is not None and self.method.is_signed(self.explanation.provenance.params)


@dataclass(frozen=True)
class RankedPair:
    """The names of two columns, and the agreement of their maps."""

    names: str
    value: float


@dataclass(frozen=True, eq=False)
class OtherMap:
    """A column's map of the other text."""

    column: ColumnMap
    explanation: Explanation


@dataclass(frozen=True, eq=False)
class Comparison:
    """All columns of one example. `maps`: the computed maps, None without any. `others`: maps of the other text."""

    state: CompareState
    columns: tuple[ColumnMap, ...]
    maps: AlignedMaps | None
    others: tuple[OtherMap, ...] = ()

    @property
    def view(self) -> CompareViewOptions:
        return self.state.view

    @property
    def agreement_options(self) -> AgreementOptions:
        return self.view.agreement_options

    @property
    def unit(self) -> str:
        """The noun for a part."""
        return self.view.unit if self.state.kind == "text" else "patch"

    def target(self, column: ColumnMap) -> str:
        """Return the name of what the column's map explains; empty if there is no map."""
        if column.explanation is None or self.state.input is None:
            return ""
        return explained_name(column.explanation, self.state.input)

    @property
    def explained(self) -> tuple[ColumnMap, ...]:
        """The columns that have a map."""
        return tuple(column for column in self.columns if column.explanation is not None)

    @property
    def explanations(self) -> list[Explanation]:
        """The explanations of the columns that have a map."""
        return [column.explanation for column in self.columns if column.explanation is not None]

    @property
    def reference(self) -> ColumnMap | None:
        """The pinned column; None if there is none or it has no map."""
        pinned = None if self.state.pinned is None else self.columns[self.state.pinned]
        return pinned if pinned is not None and pinned.row is not None else None

    @property
    def shows_moves(self) -> bool:
        """Whether maps show rank changes, which need a reference."""
        return self.view.shown == "moves" and self.reference is not None

    @property
    def shows_differences(self) -> bool:
        """Whether maps show how their shares differ from the reference's."""
        return self.view.shown == "difference" and self.reference is not None

    @property
    def is_relative(self) -> bool:
        """Whether maps are shown relative to the reference, whose own map is then empty."""
        return self.shows_moves or self.shows_differences

    @cached_property
    def agreement(self) -> Agreement | None:
        """The agreement of each pair of maps by the chosen measure."""
        return None if self.maps is None else self.agreement_of(self.view.measure)

    def agreement_of(self, measure: str) -> Agreement:
        """Return the agreement of each pair of maps by any measure."""
        scores = np.empty((0, 0)) if self.maps is None else self.maps.scores
        letters = [column.letter for column in self.explained]
        return measure_agreement(scores, letters, replace(self.agreement_options, measure=measure))

    @property
    def disagreement(self) -> float | None:
        """The disagreement of the maps, by `mean_disagreement`."""
        if self.agreement is None:
            return None
        reference = None if self.reference is None else self.reference.row
        return mean_disagreement(self.agreement, reference, find_random(self.explanations))

    @property
    def compared_pairs(self) -> list[RankedPair]:
        """The pairs of maps that the disagreement is averaged over, highest agreement first."""
        if self.agreement is None:
            return []
        reference = None if self.reference is None else self.reference.row
        names, random_rows = [column.name for column in self.explained], find_random(self.explanations)
        found = [
            RankedPair(f"{names[one]} and {names[other]}", float(self.agreement.values[one, other]))
            for one, other in compared_pairs(self.agreement, reference, random_rows)
        ]
        return sorted(found, key=lambda pair: -pair.value)

    @property
    def uncounted(self) -> list[ColumnMap]:
        """The random maps, left out of the disagreement; empty if a reference is pinned or too few others are left."""
        random = [column for column in self.explained if column.method.family == BASELINE]
        return random if self.reference is None and len(self.explained) - len(random) > 1 else []

    @property
    def disagreement_scope(self) -> str:
        """The pairs of maps that the disagreement is averaged over, in words."""
        if self.reference is not None:
            return f"the maps and the reference {self.reference.letter}"
        without = " and ".join(column.letter for column in self.uncounted)
        return f"all pairs of maps without {without} (random)" if without else "all pairs of maps"

    def agreement_with_reference(self, column: ColumnMap, measure: str) -> float | None:
        """Return a column's agreement with the reference; None if there is none."""
        if self.maps is None or self.reference is None or self.reference.row is None or column.row is None:
            return None
        scores = self.maps.scores
        return compare_maps(
            scores[self.reference.row], scores[column.row], replace(self.agreement_options, measure=measure)
        )

    def moved_share(self, column: ColumnMap) -> float | None:
        """Return `agreement.moved_share` of a column's map; None if differences are not shown."""
        return moved_share(self.scores(column)) if self.shows_differences and column is not self.reference else None

    def scores(self, column: ColumnMap) -> PartScores:
        """Return the values of the parts that the column's map shows in this view; NaN for parts without a value.

        Errors: a column without a map.
        """
        if self.maps is None or column.row is None:
            raise ValueError(f"column {column.letter}: has no map")
        own = self.maps.scores[column.row]
        if self.is_relative and self.reference is not None and self.reference.row is not None:
            compare = rank_moves if self.shows_moves else share_differences
            return compare(self.maps.scores[self.reference.row], own, self.agreement_options)
        return own / (np.nansum(np.abs(own)) or 1.0) if self.view.scale == "common" else own

    @cached_property
    def scale_end(self) -> float | None:
        """The end of the common scale; None if each map has its own. Maps relative to the reference share one."""
        if not self.is_relative and self.view.scale == "own":
            return None
        sizes = [np.abs(self.scores(column)) for column in self.explained]
        return max((float(np.nanmax(size)) for size in sizes if np.isfinite(size).any()), default=0.0)

    @property
    def map_view(self) -> ViewOptions:
        """View options of a single map."""
        return ViewOptions(gamma=self.view.gamma)


def empty_columns(state: CompareState, methods: Methods) -> tuple[ColumnMap, ...]:
    """The columns before anything is computed."""
    columns = zip(LETTERS, state.columns, column_names(state.columns, methods), strict=False)
    return tuple(
        ColumnMap(letter, name, pair_title(pair, methods), model_name(pair), methods[pair.method])
        for letter, pair, name in columns
    )


def prediction_text(prediction: Prediction) -> str:
    """Return the predicted class with its probability, or the score."""
    if prediction.regression:
        return f"{prediction.labels[0]} {signed(prediction.logits[0])}"
    return f"{predicted_name(prediction)} {percent(prediction.probabilities[prediction.index])}"


def class_labels(columns: Sequence[ColumnMap]) -> list[str]:
    """Return the classes of all models with an explanation, without duplicates."""
    predictions = [column.explanation.prediction for column in columns if column.explanation is not None]
    return list(dict.fromkeys(label for one in predictions if not one.regression for label in one.labels))


OWN_CLASSES = (
    "Each map explains the class that its own model predicts, so the agreement is between maps of different classes. "
    "Choose one class under Options, Explained class."
)


def class_verdict(columns: Sequence[ColumnMap]) -> str:
    """Say whether the models agree on the class; empty if fewer than two models have classes."""
    letters_by_label: dict[str, dict[str, None]] = {}
    models: set[str] = set()
    for column in columns:
        if column.explanation is not None and not column.explanation.prediction.regression:
            letters_by_label.setdefault(column.explanation.prediction.label, {})[column.letter] = None
            models.add(column.explanation.provenance.model)
    if len(models) < 2:
        return ""
    if len(letters_by_label) == 1:
        all_of = "Both" if len(models) == 2 else f"All {len(models)}"
        return f"{all_of} models predict {next(iter(letters_by_label))}."
    parts = "; ".join(f"{', '.join(letters)}: {label}" for label, letters in letters_by_label.items())
    return f"The models disagree on the class. {parts}."


def own_classes_note(columns: Sequence[ColumnMap]) -> str:
    """Return a note if the maps explain different classes, each that of its own model; else an empty string."""
    made = [column.explanation for column in columns if column.explanation is not None]
    explained = {one.provenance.target_label for one in made if not one.prediction.regression}
    return OWN_CLASSES if len(explained) > 1 else ""
