"""Where the result of a finished job is: the link to its page, or a sentence for what no page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from components.adversarial.state import MEASURES, settings_as_text
from components.adversarial.state import state_of_plan as attack_state
from components.adversarial.state import write as attack_link
from components.compare.state import EXAMPLES as COMPARE_EXAMPLES
from components.compare.state import CompareState, CompareViewOptions
from components.compare.state import write as compare_link
from components.experiment.state import plan_link
from components.inputs.link import LONGEST_IN_LINK
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import Query
from components.navigation import (
    ADVERSARIAL,
    COMPARE,
    EVALUATE,
    IMAGES,
    RANDOMIZATION,
    REPRODUCTION,
    SCAFFOLD,
    TEXT,
    PageEntry,
)
from components.reproduction.state import SMAT, ReproductionState, default_state
from components.reproduction.state import write as reproduction_link
from components.scaffold.state import state_of as scaffold_state
from components.scaffold.state import write_state as scaffold_link
from engine.attacks.plan import AttackPlan
from engine.comparison.plan import plan_of as comparison_plan
from engine.errors import ExegesisError, UsageError
from engine.experiments.base import experiment
from engine.experiments.options import options_of
from engine.input_kinds import kind_of_model
from engine.jobs import Job
from engine.reproduction.run import check
from engine.reproduction.smat import SmatQuery
from engine.request import DTYPES
from engine.scaffold.plan import plan_from_json

Spec = Mapping[str, Any]
PageLink = tuple[PageEntry, Query]
IN_CACHE = "The result is in the cache: the command that computed it prints it again without running the model."


def result_link(job: Job) -> PageLink | str:
    """The page and the link that show the result of a job; else a sentence that says why no page does and where it is.

    The sentence is empty for a kind of job without a result of its own.
    """
    if job.kind not in LINKS:
        return ""
    try:
        return LINKS[job.kind](job.spec)
    except ExegesisError as error:
        return f"No page shows this result. {error} {IN_CACHE}"


def _explain_link(spec: Spec) -> PageLink:
    """The first example."""
    _check_dtype(spec)
    example, query = spec["examples"][0], {"model": [spec["model"]], "method": list(spec["methods"])}
    for method, params in spec.get("params", {}).items():
        query |= {f"{method}.{name}": [str(value)] for name, value in params.items()}
    query |= {name: [str(spec[name])] for name in ("target", "seed") if spec.get(name) is not None}
    if "text" not in example:
        return IMAGES, query | {"data": [example["dataset"]]} | _split(example) | {"index": [str(example["index"])]}
    texts = {name: example[field] for name, field in (("text", "text"), ("pair", "text_pair")) if example.get(field)}
    if sum(map(len, texts.values())) > LONGEST_IN_LINK:
        raise UsageError("examples: the first text is too long for a link; paste it on the Text page.")
    return TEXT, query | {name: [text] for name, text in texts.items()}


def _predict_link(spec: Spec) -> PageLink:
    """The list of the data set."""
    _check_dtype(spec)
    query = {"model": [spec["model"]], "data": [spec["data"]], **_split(spec), "open": ["browse"]}
    return (IMAGES if kind_of_model(spec["model"]) == "image" else TEXT), query


def _plan_link(id: str, page: PageEntry, spec: Spec) -> PageLink:
    """For experiments whose page is made from their plan."""
    plan = experiment(id).plan_of(spec)
    for one in options_of(experiment(id).plan).values():
        if not one.get("page", True) and (value := getattr(plan, one.name)) != one.default:
            raise UsageError(f"{one.name}: is {value}, and the page always uses {one.default}.")
    _check_dtype(spec)
    return page, plan_link(plan)


def _attack_link(spec: Spec) -> PageLink:
    plan: AttackPlan = experiment("attack").plan_of(spec)
    state = attack_state(plan, MEASURES[0])
    if plan.kind == "image":
        focus = PictureFocus(plan.models[0], plan.dataset, plan.split or "")
        state = replace(state, kind="image", focus=focus, strength=settings_as_text("image", plan.attack))
    if state.plan() != plan:
        raise UsageError("The Adversarial page does not offer these settings of the attack.")
    return ADVERSARIAL, {name: values for name, values in attack_link(state).items() if name != "digest"}


def _compare_link(spec: Spec) -> PageLink:
    plan = comparison_plan(spec)
    if plan.examples not in COMPARE_EXAMPLES:
        allowed = ", ".join(map(str, COMPARE_EXAMPLES))
        raise UsageError(f"examples: is {plan.examples}, and the page offers {allowed}.")
    model = plan.pairs[0].model
    focus: TextFocus | PictureFocus = (
        PictureFocus(model, plan.dataset, plan.split or "") if plan.kind == "image"
        else TextFocus(model, "", None, 0, plan.dataset)
    )  # fmt: skip
    state = CompareState(
        kind=plan.kind, focus=focus, columns=plan.pairs, target=plan.target, seed=plan.seed,
        view=CompareViewOptions(examples=plan.examples), open_sections=("search",),
    )  # fmt: skip
    return COMPARE, {name: values for name, values in compare_link(state).items() if name != "digest"}


def _scaffold_link(spec: Spec) -> PageLink:
    return SCAFFOLD, scaffold_link(scaffold_state(plan_from_json(spec)))


def _reproduce_link(job: str, spec: Spec) -> PageLink:
    query = check(job, spec)
    state = replace(default_state(), paper=SMAT) if job == SmatQuery.job else (
        ReproductionState(examples=query.count, seed=query.seed)
    )  # fmt: skip
    if query.command() not in [one.command() for one in state.queries]:
        raise UsageError(f"The page does not cover this run: {query.command()}.")
    return REPRODUCTION, reproduction_link(state)


def _check_dtype(spec: Spec) -> None:
    if spec.get("dtype", DTYPES[0]) != DTYPES[0]:
        raise UsageError(f"dtype: is {spec['dtype']}, and pages compute in {DTYPES[0]}.")


def _split(spec: Spec) -> Query:
    return {"split": [spec["split"]]} if spec.get("split") else {}


LINKS: Mapping[str, Callable[[Spec], PageLink]] = {
    "attack": _attack_link,
    "compare": _compare_link,
    "evaluate": partial(_plan_link, "evaluate", EVALUATE),
    "explain": _explain_link,
    "predict": _predict_link,
    "randomize": partial(_plan_link, "randomize", RANDOMIZATION),
    "reproduce": partial(_reproduce_link, "reproduce"),
    "reproduce_smat": partial(_reproduce_link, "reproduce_smat"),
    "scaffold": _scaffold_link,
}
"""By kind of job: the page and the link of a result. Errors: no page shows it."""
