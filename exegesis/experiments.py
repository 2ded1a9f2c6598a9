"""Experiments of the Python interface: each takes the fields of its plan as keyword arguments.

Signature and reference are generated from the plan: a new field of a plan becomes an argument without further code.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from engine.attacks.plan import ATTACK, AttackParams
from engine.cli.compare import explain_columns
from engine.comparison.agreement import AgreementOptions
from engine.comparison.alignment import align_maps
from engine.comparison.experiment import (
    SkippedMap,
    comparison_to_json,
    find_disagreements,
    search_to_json,
)
from engine.comparison.plan import ComparisonPlan, ModelMethodPair, check_pairs, read_pair
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.evaluation.plan import EVALUATE
from engine.experiments.base import Experiment
from engine.experiments.options import Option, options_of
from engine.experiments.run import carry_out
from engine.input_kinds import check_unit, kind_of_model
from engine.params import from_mapping
from engine.randomization.plan import RANDOMIZE
from exegesis.display import working
from exegesis.inputs import Methods, dataset_name, read_input, read_methods
from exegesis.models import default_dtype, model_name
from exegesis.results import ExperimentRun, MapComparison

Function = TypeVar("Function", bound=Callable[..., ExperimentRun])
ARGUMENTS = ("models", "dataset", "methods")
Models = Any
"""A model or several: names, folders or loaded transformers models."""


def documented(own: Experiment) -> Callable[[Function], Function]:
    """Add the fields of a plan to a function's signature and reference."""

    def document(function: Function) -> Function:
        signature = inspect.signature(function)
        fixed = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        fields = _fields(own)
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.hint)
            for name, one in fields.items()
        ]
        function.__signature__ = signature.replace(parameters=[*fixed, *added])  # type: ignore[attr-defined]
        lines = [f"    {name} : {_type_name(one)}, default {one.default!r}\n        {_help(own, one)}\n"
                 for name, one in fields.items()]  # fmt: skip
        function.__doc__ = str(function.__doc__).replace("    **options\n", "".join(lines), 1)
        return function

    return document


def _fields(own: Experiment) -> Mapping[str, Option]:
    """Return the options of a plan that are keyword arguments; for an attack also those of the attack itself."""
    fields = {name: one for name, one in options_of(own.plan).items() if name not in ARGUMENTS}
    if "attack" in fields:
        more = {name: one for name, one in options_of(AttackParams).items() if name != "objective"}
        fields = {name: one for name, one in fields.items() if name != "attack"} | more
    return fields


def _type_name(one: Option) -> str:
    return one.hint.__name__ if isinstance(one.hint, type) else str(one.hint).replace("typing.", "")


def _help(own: Experiment, one: Option) -> str:
    if one.name == "params":
        return "Parameters by method, where not at their defaults. They can also be given with the methods."
    choices = tuple(map(str, one.get("choices") or ()))
    listed = f" One of: {', '.join(choices)}." if choices else ""
    return f"{one.get('help') or one.get('about') or f'See `{own.plan.__name__}`.'}{listed}"


def run_experiment(
    own: Experiment, models: Models, dataset: Any, methods: Methods | None, options: dict[str, Any], progress: bool
) -> ExperimentRun:
    """Carry out an experiment. Errors: an invalid option; an unknown one, with the known ones."""
    plan = make_plan(own, models, dataset, methods, options)
    with working(own.doing, progress) as (report, cancel):
        return ExperimentRun(carry_out(plan, report, cancel))


def make_plan(own: Experiment, models: Models, dataset: Any, methods: Methods | None, options: dict[str, Any]) -> Any:
    """Create the plan from the arguments, equal to that of the page and the command."""
    tokenizer, processor = options.pop("tokenizer", None), options.pop("processor", None)
    fields, known = _fields(own), options_of(own.plan)
    for name in options:
        if name not in fields:
            raise unknown(f"option of {own.id}", name, [*fields, *ARGUMENTS, "progress"])
    each = models if isinstance(models, list | tuple) else [models]
    names = tuple(model_name(one, tokenizer, processor) for one in each)
    if not names:
        raise UsageError("models: must name at least one, got none.")
    kind = kind_of_model(names[0])
    if methods is None:
        page = own.opens_with.get(kind)
        methods = known["methods"].default if page is None else page.methods
        if methods is dataclasses.MISSING:
            raise UsageError("methods: is missing. Name one or more, such as ['gradient_x_input'].")
    params = read_methods(methods, kind)
    values = {name: _value(known[name], value) for name, value in options.items() if name in known}
    given = {id: own_params for id, own_params in params.items() if own_params}
    values["params"] = {**values.get("params", {}), **given}
    values.setdefault("dtype", default_dtype(each[0]))
    if "attack" in known:
        attack = {name: value for name, value in options.items() if name not in known}
        from_mapping(AttackParams, attack, own.id)
        values["attack"] = attack
    return own.plan(models=names, dataset=dataset_name(dataset), methods=tuple(params), **values)


def _value(one: Option, value: Any) -> Any:
    """Convert the value of an option: a single name becomes a list."""
    if not one.is_list:
        return value
    if isinstance(value, str | int):
        return (value,)
    if not isinstance(value, Sequence):
        raise not_allowed(one.name, "a list", value)
    return tuple(value)


@documented(EVALUATE)
def evaluate(
    models: Models, dataset: Any, methods: Methods | None = None, *, progress: bool = True, **options: Any
) -> ExperimentRun:
    """Score methods on many examples: faithfulness, plausibility, agreement, with intervals.

    Results that were computed before, here, on the page or by the command, are read from the cache. A run that was
    stopped resumes where it stopped.

    Parameters
    ----------
    models : str, path, loaded transformers model, or a list of them
        A loaded model also needs `tokenizer` or `processor`.
    dataset : str, list, pandas.DataFrame or datasets.Dataset
        A name, a file, a folder or `hub:owner/name`; or what `exegesis.dataset` takes.
    methods : str, list or dict, optional
        Ids, or ids with their parameters. Default: those of the page.
    progress : bool
        Whether to show a progress bar.
    **options

    >>> import exegesis
    >>> run = exegesis.evaluate("bert-marked", "reviews-marked", ["gradient_x_input"], examples=4, progress=False,
    ...                         metrics=["mean_rank"], second_removal="none")
    >>> sorted({row["method"] for row in run.rows()})
    ['gradient_x_input', 'random']
    """
    return run_experiment(EVALUATE, models, dataset, methods, options, progress)


@documented(RANDOMIZE)
def randomize(
    models: Models, dataset: Any, methods: Methods | None = None, *, progress: bool = True, **options: Any
) -> ExperimentRun:
    """Randomize a model block by block and test whether explanations change (Adebayo et al., 2018).

    The model itself is not changed: a copy is randomized.

    Parameters
    ----------
    models, dataset, methods, progress
        As for `evaluate`. Default methods: those of the page.
    **options

    >>> import exegesis
    >>> run = exegesis.randomize("bert-marked", "reviews-marked", "gradient_x_input", examples=2, seeds=1,
    ...                          modes="cascading", progress=False)
    >>> set(run.to_pandas()["mode"])
    {'cascading'}
    """
    return run_experiment(RANDOMIZE, models, dataset, methods, options, progress)


@documented(ATTACK)
def attack(
    models: Models, dataset: Any, methods: Methods | None = None, *, progress: bool = True, **options: Any
) -> ExperimentRun:
    """Attack explanations of many examples: a small change of the input that changes the map and keeps the class.

    Parameters
    ----------
    models, dataset, methods, progress
        As for `evaluate`. The methods are required, and have to be differentiable.
    **options

    >>> import exegesis
    >>> run = exegesis.attack("bert-marked", "reviews-marked", "gradient_x_input", examples=1, steps=5, starts=1,
    ...                       objectives="unconstrained", progress=False)
    >>> "fooled" in set(run.to_pandas()["metric"])
    True
    """
    return run_experiment(ATTACK, models, dataset, methods, options, progress)


def compare(
    columns: Sequence[str | tuple[Any, ...]],
    text: Any = None,
    *,
    dataset: Any = None,
    examples: int = 50,
    split: str | None = None,
    target: str | None = None,
    contrast: str | None = None,
    chat: bool = False,
    unit: str = "word",
    measure: str = "spearman",
    order: str = "sign",
    percent: int = 15,
    seed: int = 0,
    progress: bool = True,
) -> MapComparison:
    """Compare models and methods: side by side on one input, or where they disagree most in a data set.

    Parameters
    ----------
    columns : list
        Two to eight pairs of method and model: `"occlusion@reviews-minilm"`, `"occlusion,window=2@reviews-minilm"`, or
        tuples (method, model) or (method, model, parameters); their model may be one that `exegesis.wrap` has stored.
    text : str, tuple or picture, optional
        One input, as for `explain`. If it is left out, `examples` of `dataset` are searched.
    target, contrast, chat
        As for `explain`.
    unit : str
        Unit of texts: token, word, sentence or turn.
    measure : str
        `spearman` or `top_k`, over the top `percent` percent.
    order : str
        Rank scores with their `sign`, or by `size`.

    >>> import exegesis
    >>> pairs = ["gradient_x_input@bert-marked", "random@bert-marked"]
    >>> exegesis.compare(pairs, "A fine film. positive", progress=False).to_dict()["agreement"]["n"]
    4
    """
    options = AgreementOptions(measure, order, percent)
    pairs = _pairs(columns)
    check_pairs(pairs)
    model = pairs[0].model
    kind = kind_of_model(model)
    check_unit(unit if kind == "text" else "patch", kind)
    if (text is None) == (dataset is None):
        raise UsageError(f"compare: needs text or dataset, got {'none' if text is None else 'both'} of them.")
    if text is None:
        plan = ComparisonPlan(dataset_name(dataset), pairs, kind, split, examples, seed, target)
        skipped: list[SkippedMap] = []
        with working("comparing", progress) as (report, cancel):
            ordered = find_disagreements(plan, options, unit, None, True, report, cancel, skipped.append)
        if skipped and not ordered:
            raise ExegesisError(f"compare: no example has two maps. Example {skipped[0].index}: {skipped[0].why}")
        return MapComparison(search_to_json(plan, ordered, skipped), plan, measure)
    content, named = read_input(model, text, target, contrast, chat)
    label = None if named is None else str(named)
    with working("comparing", progress) as (report, _):
        requests = {pair.code: pair.request(content, label, seed) for pair in pairs}
        explanations, failed = explain_columns(requests, report)
    if len(explanations) < 2:
        raise ExegesisError(f"compare: fewer than two columns could be explained. {' '.join(failed.values())}")
    maps = list(explanations.values())
    aligned = align_maps(maps, content, unit)
    plain = comparison_to_json(list(explanations), maps, aligned, options, failed)
    return MapComparison(plain, ComparisonPlan("", pairs, kind, seed=seed, target=label), measure, content, tuple(maps))


def _pairs(columns: Any) -> tuple[ModelMethodPair, ...]:
    """Return the pairs of model and method. Parameters in a tuple may have any plain values."""
    pairs: list[ModelMethodPair] = []
    for column in [columns] if isinstance(columns, str) else columns:
        if isinstance(column, ModelMethodPair):
            pairs.append(column)
        elif isinstance(column, str):
            model = column.partition("@")[2].strip()
            pairs.append(read_pair(column, kind_of_model(model) if model else "text"))
        elif isinstance(column, tuple) and len(column) in (2, 3) and isinstance(column[0], str):
            method, model = column[0], model_name(column[1])
            params = dict(column[2]) if len(column) == 3 else {}
            code = ModelMethodPair(model, method, tuple(sorted((name, str(value)) for name, value in params.items())))
            pairs.append(read_pair(code.code, kind_of_model(model)))
        else:
            raise not_allowed("columns", "method@model or (method, model)", column)
    return tuple(pairs)
