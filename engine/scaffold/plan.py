"""Plans of SMaT experiments as plain values, validated before any model is loaded."""

from __future__ import annotations

import dataclasses
import json
import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine import runtime
from engine.data.sources import ExampleSource, load_source
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.experiments.sample import draw_indices
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.params import Plain, from_mapping, option

NONE, SMAT = "none", "smat"
HELD_OUT = "none_held_out"
"""The setting without an explainer whose students also train on the held-out examples of SMaT's outer loop."""
UNEXPLAINED = (NONE, HELD_OUT)
ATTENTION = ("attention_logits", "attention_logits_last")
GRADIENTS = ("gradient_l2", "gradient_x_input", "integrated_gradients")
SETTINGS = (*UNEXPLAINED, *GRADIENTS, *ATTENTION, SMAT)
"""No explainer, the five static explainers of the paper's section 5, and the learned one."""
NORMALIZATIONS = ("sparsemax", "softmax", "entmax15", "none")
SEEDS = (0, 9, 11, 30, 69)
"""The seeds of the authors' published configuration."""
FEWEST_HEADS = 2
NEW = "vit"
"""The base in the cards of image models that were trained from random weights."""
_BASE = "base_model_name_or_path"
LIST_FIELDS = ("settings", "train_sizes", "seeds")
"""Fields of a plan that are tuples."""
DEFAULT_TRAIN_SIZES = (500,)
LAYER_FIELDS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
HEAD_FIELDS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads")
"""Names of the layer and head counts in the configs of model families."""
SPLIT = "train"
"""The split of the data set if the plan names none."""


@dataclass(frozen=True)
class Recipe:
    """How students are trained. Defaults: the authors' published configuration."""

    normalisation: str = option(
        "sparsemax", "how head coefficients become weights", choices=NORMALIZATIONS, label="Normalization"
    )
    batch_size: int = option(16, "examples per step", low=1)
    epochs: int = option(30, "maximum number of passes over the training examples", low=1)
    patience: int = option(5, "passes without improvement on validation before training stops", low=1)
    inner_rate: float = option(5e-3, "learning rate of the student (SGD)", low=0)
    outer_rate: float = option(5e-4, "learning rate of the learned explainer (AdamW)", low=0)
    clip: float = option(5.0, "maximum gradient norm; 0: no limit", low=0)
    beta_attention: float = option(5.0, "weight of the explanation loss, attention explainers", low=0)
    beta_gradient: float = option(0.2, "weight of the explanation loss, gradient explainers", low=0)
    soft_targets: bool = option(False, "learn the teacher's probabilities instead of its class")
    held_out: int = option(200, "held-out examples for the outer loss", low=1)
    validation: int = option(200, "examples that decide when to stop and which pass is used", low=2)
    test: int = option(500, "examples on which simulability is measured, once", low=2)

    def beta(self, setting: str) -> float:
        """Return the weight of the explanation loss in a setting."""
        if setting in UNEXPLAINED:
            return 0.0
        return self.beta_gradient if setting in GRADIENTS else self.beta_attention

    def used_by(self, setting: str) -> dict[str, Plain]:
        """Return the fields that affect students of a setting, for the cache key."""
        idle = {"beta_attention" if setting in GRADIENTS else "beta_gradient"}
        if setting != SMAT:
            idle.add("outer_rate")
        if setting in UNEXPLAINED:
            idle |= {"normalisation", "beta_attention"}
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in idle}


@dataclass(frozen=True, order=True)
class StudentRun:
    """One student: its setting (explainer), number of training examples, and seed."""

    setting: str
    train_size: int
    seed: int

    def __str__(self) -> str:
        return f"{self.setting}, {self.train_size:,} examples, seed {self.seed}"


@dataclass(frozen=True)
class ScaffoldPlan:
    """Students to train. `base`: model that they start from, None for the teacher's base. `split`: None for train."""

    teacher: str
    dataset: str
    settings: tuple[str, ...] = SETTINGS
    train_sizes: tuple[int, ...] = DEFAULT_TRAIN_SIZES
    seeds: tuple[int, ...] = SEEDS
    base: str | None = None
    split: str | None = None
    recipe: Recipe = dataclasses.field(default_factory=Recipe)

    @cached_property
    def kind(self) -> str:
        """The teacher's kind of input, "text" or "image"."""
        return kind_of_model(self.teacher)

    @property
    def students(self) -> tuple[StudentRun, ...]:
        """All students, ordered by train size, setting and seed."""
        return tuple(StudentRun(s, n, seed) for n in self.train_sizes for s in self.settings for seed in self.seeds)

    @property
    def needed(self) -> int:
        """Number of examples that the four splits need."""
        return max(self.train_sizes) + self.recipe.held_out + self.recipe.validation + self.recipe.test

    def examples_of(self, run: StudentRun) -> int:
        """Return the number of examples that a student is trained on."""
        return run.train_size + (self.recipe.held_out if run.setting == HELD_OUT else 0)

    def as_plain(self) -> dict[str, object]:
        """Return the plan as the specification of a job."""
        return dataclasses.asdict(self) | {name: list(getattr(self, name)) for name in LIST_FIELDS}


def plan_from_json(values: Mapping[str, object]) -> ScaffoldPlan:
    """Return the plan in a job's specification (`ScaffoldPlan.as_plain`). Errors: a missing, unknown or wrong field."""
    names = {field.name for field in dataclasses.fields(ScaffoldPlan)}
    if values.keys() - names or {"teacher", "dataset"} - values.keys():
        raise UsageError(
            f"plan of a scaffold: must have teacher and dataset, and may have "
            f"{', '.join(sorted(names - {'teacher', 'dataset'}))}, got {', '.join(sorted(map(str, values)))}."
        )
    fields = dict(values)
    for name in LIST_FIELDS:
        if name in fields:
            listed = fields[name]
            if not isinstance(listed, Sequence) or isinstance(listed, str):
                raise not_allowed(name, "a list", listed)
            fields[name] = tuple(listed)
    for name in ("teacher", "dataset", "base", "split"):
        needed = name in ("teacher", "dataset")
        if not isinstance(fields.get(name), str) and (needed or fields.get(name) is not None):
            raise not_allowed(name, "a text" if needed else "a text or null", fields[name])
    recipe = fields.pop("recipe", {})
    if not isinstance(recipe, Mapping):
        raise not_allowed("recipe", "an object with named settings", recipe)
    return ScaffoldPlan(**fields, recipe=from_mapping(Recipe, recipe, "recipe"))  # type: ignore[arg-type]


def check(plan: ScaffoldPlan) -> None:
    """Raise an error if the plan is invalid. No model is loaded."""
    for name in LIST_FIELDS:
        values = getattr(plan, name)
        if not values or len(set(values)) < len(values):
            raise not_allowed(name, "one or more different values", list(values))
    for setting in plan.settings:
        if setting not in SETTINGS:
            raise unknown("setting", setting, SETTINGS)
    for name in ("train_sizes", "seeds"):
        low = 1 if name == "train_sizes" else 0
        for value in getattr(plan, name):
            if type(value) is not int or value < low:
                raise not_allowed(name, f"whole numbers of at least {low}", value)
    from_mapping(Recipe, dataclasses.asdict(plan.recipe), "recipe")
    if catalog.is_causal(plan.teacher):
        raise UsageError(
            f"teacher: {plan.teacher} is a language model, whose classes are those of each prompt. Choose a classifier."
        )
    check_heads(plan.teacher)


def check_heads(teacher: str) -> None:
    """Raise an error if the teacher has fewer than two attention heads, so that there is nothing to weight."""
    config = catalog.config(catalog.locate(teacher))
    layers, heads = head_shape(config)
    if layers * heads < FEWEST_HEADS:
        raise UsageError(
            f"teacher: must have at least {FEWEST_HEADS} attention heads for a learned explainer to weight, got "
            f"{teacher} with {layers * heads}. Choose another model."
        )


def base_of(plan: ScaffoldPlan) -> str:
    """Return the base in the plan, else in the teacher's adapter config or card. Errors: none of them names one."""
    if plan.base:
        return plan.base
    source = catalog.locate(plan.teacher)
    adapter = source.folder / "adapter_config.json"
    named = json.loads(adapter.read_text(encoding="utf-8")).get(_BASE) if adapter.is_file() else None
    card = catalog.card(plan.teacher)
    named = named or card.get("student_base") or (card.get("settings") or {}).get("base")
    if named and named != NEW:
        return str(named)
    known = ", ".join(("minilm", *catalog.embedded_bases()))
    raise UsageError(
        f"base: is missing. Students start from the pre-trained model that {plan.teacher} was fine-tuned from, and its "
        f"files do not name one. Give a base of the same architecture: one of {known}, a folder or a hub ID."
    )


def head_shape(config: Mapping[str, object]) -> tuple[int, int]:
    """Return (layers, heads per layer) from a config.json of any model family; 0 for a number that is missing."""
    layers, heads = (
        next((config[name] for name in names if isinstance(config.get(name), int)), 0)
        for names in (LAYER_FIELDS, HEAD_FIELDS)
    )
    return int(layers), int(heads)  # type: ignore[call-overload]


def is_regression(teacher: str) -> bool:
    """Whether the teacher predicts a score, by its card or config."""
    card = catalog.card(teacher)
    if "labels" in card:
        return len(card["labels"]) == 1
    config = catalog.config(catalog.locate(teacher))
    return config.get("problem_type") == "regression" or len(config.get("id2label") or (0, 1)) == 1


def command_line(plan: ScaffoldPlan) -> str:
    """Return the command that trains the students, without default values.

    It names all train sizes, because the splits depend on the largest.
    """
    words = ["exegesis", "scaffold", "--teacher", plan.teacher, "--dataset", plan.dataset]
    for name, value, default in (
        ("settings", plan.settings, SETTINGS), ("train-sizes", plan.train_sizes, DEFAULT_TRAIN_SIZES),
        ("seeds", plan.seeds, SEEDS),
    ):  # fmt: skip
        words += [] if value == default else [f"--{name}", ",".join(map(str, value))]
    for name, text in (("base", plan.base), ("split", plan.split)):
        words += [f"--{name}", text] if text else []
    defaults = dataclasses.asdict(Recipe())
    for name, number in dataclasses.asdict(plan.recipe).items():
        words += [] if number == defaults[name] else [f"--{name.replace('_', '-')}", str(number).lower()]
    return shlex.join(words)


WHOLE = "all"


def source_of(plan: ScaffoldPlan) -> ExampleSource:
    """Load the split that the plan names, else the train split, else the whole data set if it has no splits.

    Errors: those of reading it.
    """
    return split_and_source(plan)[1]


def split_and_source(plan: ScaffoldPlan) -> tuple[str, ExampleSource]:
    """Return the name of the split and the examples, as in `source_of`."""
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
    """Indices of examples in the data set. `pool`: the training and held-out examples of all seeds."""

    pool: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def of_seed(self, seed: int, train_size: int, held_out: int) -> tuple[list[int], list[int]]:
        """Draw disjoint (train, held out) indices from the pool by seed. Larger train sets contain smaller ones."""
        order = list(self.pool)
        random.Random(f"{seed}/scaffold").shuffle(order)
        return order[held_out : held_out + train_size], order[:held_out]


def splits_of(count: int, plan: ScaffoldPlan) -> Splits:
    """Split a data set of `count` examples. Validation and test are the same for all students.

    Errors: fewer examples than the four splits need.
    """
    if count < plan.needed:
        recipe = plan.recipe
        raise ExegesisError(
            f"dataset: {plan.dataset} has {count:,} examples, but the four splits need {plan.needed:,}: "
            f"{max(plan.train_sizes):,} for training, {recipe.held_out:,} held out, {recipe.validation:,} for "
            f"validation, {recipe.test:,} for testing. Lower one of these, or choose a larger data set."
        )
    order = random.Random("scaffold splits").sample(range(count), plan.needed)
    test, validation = plan.recipe.test, plan.recipe.test + plan.recipe.validation
    return Splits(tuple(order[validation:]), tuple(order[test:validation]), tuple(order[:test]))


@dataclass(frozen=True)
class EvaluationSample:
    """Examples on which explanations of the teacher are evaluated, by their indices in a data set.

    `split`: None for the default one. `source`: the data set, read once.
    """

    teacher: str
    dataset: str
    split: str | None
    indices: tuple[int, ...]
    source: ExampleSource = dataclasses.field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The teacher's kind of input, "text" or "image"."""
        return kind_of_model(self.teacher)

    @property
    def as_key(self) -> dict[str, Any]:
        """The sample's part of a cache key: everything that measured values depend on."""
        return {
            "teacher": [self.teacher, catalog.revision(self.teacher)],
            "data": [self.source.name, self.source.revision, self.source.count],
            "places": list(self.indices),
            "device": runtime.device_type(),
        }


def evaluation_sample(plan: ScaffoldPlan, examples: int = 50, dataset: str | None = None) -> EvaluationSample:
    """Return examples to evaluate a plan's explainers on: test examples of its data set, or a sample of another one.

    Errors: fewer than one example; a data set that is empty or too small for the plan's splits.
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
        raise ExegesisError(f"dataset: {dataset} has no examples. Choose another data set.")
    return EvaluationSample(plan.teacher, dataset, None, tuple(draw_indices(source.count, examples, 0)), source)
