"""`exegesis attack`: find small changes of inputs that change their maps but not the predicted class.

Prints a table per model, the skipped examples, and a legend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from engine.attacks.experiment import attack_example
from engine.attacks.experiment_result import EXCLUDED, AttackExperimentResult, AttackScore
from engine.attacks.plan import ATTACK, METHODS, OBJECTIVES, TOLERANCE, AttackPlan, check_method
from engine.cli import options
from engine.cli.experiments import require_value, run_experiment
from engine.cli.inputs import read_methods, read_typed_params
from engine.cli.output import NOTHING, table, visible
from engine.errors import UsageError, not_allowed
from engine.experiments.options import DATASET_HELP
from engine.params import parse_fraction
from engine.progress import CancelToken, Report
from engine.registry import explainer

BOTH = "both"
HEADS = {
    "rank_change": "rank change",
    "top_k_sum_change": "top-k sum change",
    "top_k_sum_change_normalised": "normalized",
    "probability_change": "probability change",
    "probability_distance": "distance",
    "class_kept": "class kept",
    "fooled": "fooled",
}
LEGEND = (
    "mean [95% interval]. rank change: share of the top k ranks held by another feature after the attack. top-k sum "
    "change: total drop in the top-k scores; normalized: for maps divided by their sum of absolute values. fooled: "
    "share of attacks that changed the top k and met their constraint: the class stays, and in constrained attacks its "
    f"probability changes by at most {TOLERANCE:g}. Other attacks are excluded from the means of their maps. Low "
    "values suggest a robust method. a -> b: the map of b after attacks on a."
)


def attack(
    models: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated models.")] = options.DEFAULT_MODEL,
    dataset: Annotated[str, typer.Option(metavar="D", help=DATASET_HELP)] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated methods to attack.")] = "",
    examples: Annotated[str, typer.Option(metavar="N", help="Number of examples, sampled with the seed.")] = "16",
    index: Annotated[
        str | None, typer.Option(metavar="I", help="Attack only the example with this index, from 0.")
    ] = None,
    seed: options.SeedOption = "0",
    split: options.SplitOption = None,
    objective: Annotated[str, typer.Option(metavar="O", help="unconstrained, constrained or both.")] = BOTH,
    quantity: Annotated[
        str,
        typer.Option(
            metavar="Q",
            help="Model output to explain and to constrain: logit, probability, or mixed (explain the logit, constrain "
            "the probability; needs a large beta).",
        ),
    ] = "logit",
    place: Annotated[str, typer.Option(metavar="P", help="What to perturb: embedding or pixels.")] = "embedding",
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="Maximum change of each value. [default: 2; pixels 8/255]")
    ] = None,
    top_k: Annotated[
        str, typer.Option("--top-k", metavar="K", help="Number of top features to attack, or a share below 1.")
    ] = "0.15",
    alpha: Annotated[str, typer.Option(metavar="A", help="Constrained attacks: weight of the map.")] = "1",
    beta: Annotated[str, typer.Option(metavar="B", help="Constrained attacks: weight of the penalty.")] = "1",
    starts: Annotated[str, typer.Option(metavar="N", help="Random starts; the best one is used.")] = "3",
    steps: Annotated[str, typer.Option(metavar="N", help="Steps of gradient ascent.")] = "500",
    learning_rate: Annotated[str, typer.Option(metavar="R", help="Initial step size, halved every 200 steps.")] = "0.1",
    sign_steps: Annotated[bool, typer.Option("--sign-steps", help="Use only the sign of the gradient.")] = False,
    specials: Annotated[bool, typer.Option("--specials", help="Perturb special tokens too.")] = False,
    transfer: Annotated[
        str, typer.Option(metavar="A,B", help="Other methods to measure on attacked inputs, or 'all'.")
    ] = "",
    param: options.ParamOption = None,
    dtype: options.DtypeOption = "float32",
    job: options.JobOption = False,
    executor: options.ExecutorOption = "local",
    address: options.AddressOption = None,
    out: options.OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help=ATTACK.json_help)] = False,
) -> None:
    """Attack explanations of many examples. Run it again to resume."""

    def read_plan() -> AttackPlan:
        if objective not in (*OBJECTIVES, BOTH):
            raise not_allowed("--objective", f"one of {', '.join((*OBJECTIVES, BOTH))}", objective)
        plan = AttackPlan(
            models=tuple(options.read_names("--models", models)),
            dataset=require_value("--dataset", dataset),
            methods=(),
            objectives=OBJECTIVES if objective == BOTH else (objective,),
            examples=options.read_whole("--examples", examples, 1),
            seed=options.read_whole("--seed", seed),
            split=split,
            dtype=dtype,
            attack={
                **({} if epsilon is None else {"epsilon": parse_fraction("--epsilon", epsilon)}),
                "place": place,
                "top_k": parse_fraction("--top-k", top_k),
                "quantity": quantity,
                "alpha": parse_fraction("--alpha", alpha),
                "beta": parse_fraction("--beta", beta),
                "starts": options.read_whole("--starts", starts, 1),
                "steps": options.read_whole("--steps", steps, 1),
                "learning_rate": parse_fraction("--learning-rate", learning_rate),
                "sign_steps": sign_steps,
                "specials": specials,
            },
        )
        return _with_methods(plan, methods, transfer, param)

    def attack_one(plan: AttackPlan, report: Report, cancel: CancelToken) -> AttackExperimentResult:
        return attack_example(plan, at, report, cancel)

    if index is not None and (job or executor != "local"):
        raise UsageError("--index: cannot be combined with --job or --executor. Remove one of them.")
    at = 0 if index is None else options.read_whole("--index", index)
    shared = {"dtype": dtype, "job": job, "executor": executor, "address": address, "out": out, "as_json": as_json}
    work = None if index is None else attack_one
    run_experiment(ATTACK, sections, read_plan, shared, work, failed="no example could be attacked")


def _with_methods(plan: AttackPlan, methods: str, transfer: str, param: list[str] | None) -> AttackPlan:
    """Return the plan with its methods and their parameters."""
    kind = plan.kind
    if not methods.strip():
        raise UsageError(f"--methods: is missing. Methods that can be attacked: {', '.join(METHODS)}.")
    attacked = options.read_names("--methods", methods)
    for method in attacked:
        check_method(method, kind)
    others = read_methods("--transfer", transfer, kind, plan.models)[0] if transfer.strip() else []
    every = list({spec.id: spec for spec in [*(explainer(method, kind) for method in attacked), *others]}.values())
    params = read_typed_params(param, every)
    return replace(plan, methods=tuple(attacked), transfer=tuple(spec.id for spec in others), params=params)


def sections(result: AttackExperimentResult) -> Iterator[RenderableType]:
    """Yield a table per model, the skipped examples, and a legend."""
    for model, own in groupby(result.scores, key=lambda score: score.key.model):
        scores = list(own)
        yield Text(visible(f"{model} on {scores[0].key.dataset}"), style="bold")
        yield _table(scores)
        yield from (Text(visible(line)) for line in _skipped(scores))
        yield ""
    yield from (Text(visible(f"! {line}"), style="bold red") for line in result.problems())
    yield from (Text(visible(line)) for line in result.notes)
    yield Text(LEGEND, style="dim")


def _table(scores: Sequence[AttackScore]) -> RenderableType:
    """Create a table with a row per objective, attacked method and measured method."""
    rows = table(["objective", "method", "n", *HEADS.values()], right=["n", *HEADS.values()])
    groups: dict[tuple[str, str, str], dict[str, AttackScore]] = {}
    for score in scores:
        key = score.key
        groups.setdefault((key.objective, key.attacked, key.method), {})[key.metric] = score
    for (objective, attacked, method), cells in groups.items():
        name = method if method == attacked else f"{attacked} -> {method}"
        n = max(score.n for score in cells.values())
        numbers = [_cell(cells[metric]) if metric in cells else NOTHING for metric in HEADS]
        rows.add_row(*(Text(visible(cell)) for cell in (objective, name, str(n), *numbers)))
    return rows


def _cell(score: AttackScore) -> str:
    if score.value is None:
        return NOTHING
    if score.interval is None or score.doubt:
        return f"{score.value:.3g}"
    low, high = score.interval
    return f"{score.value:.3g} [{low:.3g}, {high:.3g}]"


def _skipped(scores: Sequence[AttackScore]) -> Iterator[str]:
    """Yield a line per reason and method. Reported problems are omitted, since they are listed separately."""
    groups = {(score.key.objective, score.key.method, reason, count): None
              for score in scores for reason, count in score.skipped.items()}  # fmt: skip
    for objective, method, reason, count in groups:
        if reason not in EXCLUDED.values():
            yield f"skipped, {method}, {objective}: {count} {'example' if count == 1 else 'examples'}: {reason}"
