"""`exegesis attack`: can a small change of the input change its map, and leave its class?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.experiments import check_job, given, rows_file, worked
from engine.cli.guard import FAILED, fail
from engine.cli.inputs import check_dtype, read_methods, read_typed_params
from engine.cli.options import DEFAULT_MODEL, Dtype, Param, Seed, Split
from engine.cli.output import write_file
from engine.errors import UsageError, not_allowed

if TYPE_CHECKING:
    from engine.attacks.findings import Findings
    from engine.attacks.plan import AttackPlan
    from engine.progress import CancelToken, Report

    Work = Callable[[Report, CancelToken], Findings]

BOTH = "both"


def attack(
    models: Annotated[str, typer.Option(metavar="A,B", help="Models between commas.")] = DEFAULT_MODEL,
    dataset: Annotated[str, typer.Option(metavar="D", help="Name, file, folder or hub:owner/name.")] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Methods to attack, between commas.")] = "",
    examples: Annotated[str, typer.Option(metavar="N", help="How many, drawn by the seed.")] = "16",
    index: Annotated[str | None, typer.Option(metavar="I", help="This one example instead, from 0.")] = None,
    seed: Seed = "0",
    split: Split = None,
    objective: Annotated[str, typer.Option(metavar="O", help="unconstrained, constrained or both.")] = BOTH,
    quantity: Annotated[
        str,
        typer.Option(
            metavar="Q",
            help="Of map and penalty: logit, probability, or mixed: a map of the logit (often tens) against a penalty "
            "on the probability (at most 1), which hardly counts unless beta is large.",
        ),
    ] = "logit",
    place: Annotated[str, typer.Option(metavar="P", help="What is moved: embedding, or pixels.")] = "embedding",
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="How far. [default: 2; pixels 8/255]")] = None,
    top_k: Annotated[str, typer.Option("--top-k", metavar="K", help="Share below 1, or how many.")] = "0.15",
    alpha: Annotated[str, typer.Option(metavar="A", help="Weight of the map, constrained.")] = "1",
    beta: Annotated[str, typer.Option(metavar="B", help="Weight of the penalty, constrained.")] = "1",
    starts: Annotated[str, typer.Option(metavar="N", help="Random starts; the best is kept.")] = "3",
    steps: Annotated[str, typer.Option(metavar="N", help="Steps of gradient ascent.")] = "500",
    learning_rate: Annotated[str, typer.Option(metavar="R", help="Halved every 200 steps.")] = "0.1",
    sign_steps: Annotated[bool, typer.Option("--sign-steps", help="Step by the sign of the gradient.")] = False,
    specials: Annotated[bool, typer.Option("--specials", help="Move special tokens too.")] = False,
    transfer: Annotated[str, typer.Option(metavar="A,B", help="Other methods to look at, or 'all'.")] = "",
    param: Param = None,
    dtype: Dtype = "float32",
    job: Annotated[bool, typer.Option("--job", help="Do it as a job, seen and cancelled elsewhere.")] = False,
    executor: Annotated[str, typer.Option(metavar="local|ray", help="Here, or on a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(metavar="A", help="Of the Ray cluster, as host:port.")] = None,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="A row a value: .csv, .json or .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Attack maps on many examples; stopped, the same command goes on where it was."""
    from engine.attacks.export import FORMATS
    from engine.attacks.plan import AttackPlan, check
    from engine.cli import drawing_attack, output, plain_attack

    check_dtype(dtype)
    check_job(job, executor)
    if index is not None and (job or executor != "local"):
        raise UsageError("--index: one example is attacked here and at once. Leave --job and --executor out.")
    file = rows_file(out)
    plan = AttackPlan(
        models=tuple(options.read_names("--models", models)),
        dataset=given("--dataset", dataset),
        methods=(),
        objectives=_objectives(objective),
        examples=options.read_whole("--examples", examples, 1),
        seed=options.read_whole("--seed", seed),
        split=split,
        dtype=dtype,
        attack={
            **({} if epsilon is None else {"epsilon": _number("--epsilon", epsilon)}),
            "place": place,
            "top_k": _number("--top-k", top_k),
            "quantity": quantity,
            "alpha": _number("--alpha", alpha),
            "beta": _number("--beta", beta),
            "starts": options.read_whole("--starts", starts, 1),
            "steps": options.read_whole("--steps", steps, 1),
            "learning_rate": _number("--learning-rate", learning_rate),
            "sign_steps": sign_steps,
            "specials": specials,
        },
    )
    plan = _with_methods(plan, methods, transfer, param)
    check(plan)
    found = worked("attack", "attacking", _work(plan, index, executor, address), plan.as_plain() if job else None)
    if file is not None:
        write_file("--out", file, FORMATS[file.suffix.lower().removeprefix(".")](found))
    if as_json:
        output.print_json(plain_attack.as_plain(found))
    else:
        drawing_attack.draw(found, file)
    if not found.facts:
        raise typer.Exit(fail("attack: no example could be attacked; why is said above.", FAILED))


def _number(option: str, value: str) -> float:
    """A number, or a fraction such as 8/255."""
    over, _, under = value.partition("/")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        raise not_allowed(option, "a number, or a fraction such as 8/255", value) from None


def _objectives(given: str) -> tuple[str, ...]:
    from engine.attacks.params import OBJECTIVES

    if given not in (*OBJECTIVES, BOTH):
        raise not_allowed("--objective", f"one of {', '.join((*OBJECTIVES, BOTH))}", given)
    return OBJECTIVES if given == BOTH else (given,)


def _with_methods(plan: AttackPlan, methods: str, transfer: str, param: list[str] | None) -> AttackPlan:
    """With the parameters of all of them."""
    from dataclasses import replace

    from engine.attacks.params import METHODS, check_method
    from engine.registry import explainer

    kind = plan.kind
    if not methods.strip():
        raise UsageError(f"--methods: is missing. Can be attacked: {', '.join(METHODS)}. Give one or more.")
    asked = options.read_names("--methods", methods)
    for method in asked:
        check_method(method, kind)
    others = read_methods("--transfer", transfer, kind, plan.models)[0] if transfer.strip() else []
    every = list({spec.id: spec for spec in [*(explainer(method, kind) for method in asked), *others]}.values())
    params = read_typed_params(param, every)
    return replace(plan, methods=tuple(asked), transfer=tuple(spec.id for spec in others), params=params)


def _work(plan: AttackPlan, index: str | None, executor: str, address: str | None) -> Work:
    """What is to be done: the one example, or all that the seed draws."""
    from engine.attacks.executors import carry_out_on
    from engine.attacks.experiment import attack_example

    if index is None:
        return lambda report, cancel: carry_out_on(executor, plan, address, report, cancel)
    at = options.read_whole("--index", index)
    return lambda report, cancel: attack_example(plan, at, report, cancel)
