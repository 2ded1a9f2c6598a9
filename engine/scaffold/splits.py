"""Which examples teach, which are held out, and which are measured on: parts of a data set."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from engine import runtime
from engine.data.sources import ExampleSource, load_source
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.experiments.sample import draw_indices
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.scaffold.plan import SPLIT, ScaffoldPlan

WHOLE = "all"


def source_of(plan: ScaffoldPlan) -> ExampleSource:
    """The part of the data set that the plan names, else its part for training, else all of a set without parts.

    Errors: those of reading it.
    """
    return split_and_source(plan)[1]


def split_and_source(plan: ScaffoldPlan) -> tuple[str, ExampleSource]:
    """As `source_of`, with the name of the part."""
    wanted = plan.split or SPLIT
    try:
        return wanted, _read(plan, wanted)
    except UsageError as error:
        if plan.split is not None:
            raise
        try:
            return WHOLE, _read(plan, WHOLE)
        except UsageError:
            raise error from None


def _read(plan: ScaffoldPlan, split: str) -> ExampleSource:
    return load_source(plan.kind, plan.dataset, split, tolerant=True)


@dataclass(frozen=True)
class Splits:
    """Indices of examples in the data set. `pool` holds the training and held-out examples of every seed."""

    pool: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def of_seed(self, seed: int, train_size: int, held_out: int) -> tuple[list[int], list[int]]:
        """(train, held out): disjoint, drawn from the pool by the seed; a larger train set holds the smaller ones."""
        order = list(self.pool)
        random.Random(f"{seed}/scaffold").shuffle(order)
        return order[held_out : held_out + train_size], order[:held_out]


def splits_of(count: int, plan: ScaffoldPlan) -> Splits:
    """The splits of a data set of `count` examples. Validation and test are the same for all students.

    Errors: fewer examples than the four splits need.
    """
    if count < plan.needed:
        recipe = plan.recipe
        raise ExegesisError(
            f"dataset: {plan.dataset} has {count:,} examples, but the four splits need {plan.needed:,}: "
            f"{max(plan.train_sizes):,} to learn, {recipe.held_out:,} held out, {recipe.validation:,} for validation, "
            f"{recipe.test:,} for the test. Lower one of these, or name a larger data set."
        )
    order = random.Random("scaffold splits").sample(range(count), plan.needed)
    test, validation = plan.recipe.test, plan.recipe.test + plan.recipe.validation
    return Splits(tuple(order[validation:]), tuple(order[test:validation]), tuple(order[:test]))


@dataclass(frozen=True)
class EvaluationSample:
    """Examples on which the teacher's explanations are judged, by their indices in a data set.

    `split`: None: the default one. `source`: the data set, read once for all queries about it.
    """

    teacher: str
    dataset: str
    split: str | None
    indices: tuple[int, ...]
    source: ExampleSource = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What the teacher reads, "text" or "image"."""
        return kind_of_model(self.teacher)

    @property
    def as_key(self) -> dict[str, Any]:
        """Its part of a cache key: all that the numbers depend on."""
        return {
            "teacher": [self.teacher, catalog.revision(self.teacher)],
            "data": [self.source.name, self.source.revision, self.source.count],
            "places": list(self.indices),
            "device": runtime.device_type(),
        }


def evaluation_sample(plan: ScaffoldPlan, examples: int = 50, dataset: str | None = None) -> EvaluationSample:
    """Examples to judge a plan's explainers on: of its own data set those of the test split, of another any.

    Errors: no examples wanted; a data set that holds none, or too few for the plan's splits.
    """
    if type(examples) is not int or examples < 1:
        raise not_allowed("examples", "a whole number of at least 1", examples)
    if dataset is None or dataset == plan.dataset:
        split, source = split_and_source(plan)
        return EvaluationSample(
            plan.teacher, plan.dataset, split, splits_of(source.count, plan).test[:examples], source
        )
    source = load_source(plan.kind, dataset, None, tolerant=True)
    if not source.count:
        raise ExegesisError(f"dataset: {dataset} has no examples. Name another.")
    return EvaluationSample(plan.teacher, dataset, None, tuple(draw_indices(source.count, examples, 0)), source)
