"""The models that are drawn together: those of the check that is asked for, and of finished checks beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache import key_for
from components.experiment.runs import CachedResults, Run, ended_of, results_of
from components.numbers import count
from engine.errors import ExegesisError
from engine.home import product_version
from engine.randomization.plan import RANDOMIZE, RandomizationPlan

if TYPE_CHECKING:
    from engine.randomization.result import ModelRandomization

MARK_LENGTH = 10
"""Letters that tell checks apart in a link."""
GONE = (
    "Beside this check another was drawn that is not finished on this machine: {}. Randomize the same here, then "
    "choose it again."
)


@dataclass(frozen=True)
class DrawnModel:
    """One model of a check. `name`: what tells it from the others that are drawn with it."""

    results: CachedResults
    found: ModelRandomization
    name: str


def drawn_models(checks: Sequence[CachedResults]) -> list[DrawnModel]:
    """Every model of every check. A data set is named where there are several, a number where names still recur."""
    several = len({one.plan.dataset for one in checks}) > 1
    models: list[DrawnModel] = []
    names: list[str] = []
    for one in checks:
        for found in one.found:
            name = f"{found.model} on {found.dataset}" if several else found.model
            before = names.count(name)
            models.append(DrawnModel(one, found, f"{name} ({before + 1})" if before else name))
            names.append(name)
    return models


def methods_drawn(models: Sequence[DrawnModel]) -> list[str]:
    """The methods of all that is drawn."""
    return list(dict.fromkeys(method for one in models for method in one.results.plan.methods_with_baselines))


def offered_checks(plan: RandomizationPlan, runs: Sequence[Run]) -> dict[str, RandomizationPlan]:
    """Other checks of the same kind of input that were finished here or come with the project, by their marks."""
    done = [of for job, of in runs if job.state == "done" and _kind(of) == plan.kind]
    return {mark_of(one): one for one in (*done, RANDOMIZE.opens_with[plan.kind]) if one != plan}


def compared_checks(
    chosen: Sequence[str], offered: Mapping[str, RandomizationPlan], runs: Sequence[Run]
) -> tuple[list[CachedResults], list[str]]:
    """The chosen checks as far as they can be drawn, and a sentence for each that cannot."""
    found, missing = list[CachedResults](), list[str]()
    for mark in chosen:
        try:
            one = results_of(offered[mark], ended_of(offered[mark], runs)) if mark in offered else None
        except ExegesisError as error:  # its data set is gone
            missing.append(str(error))
            continue
        if one is not None and one.found:
            found.append(one)
        else:
            missing.append(GONE.format(mark))
    return found, missing


def mark_of(plan: RandomizationPlan) -> str:
    """What stands for a check in a link."""
    return key_for(plan.as_plain())[:MARK_LENGTH]


def words_of(plan: RandomizationPlan) -> str:
    """A check in a line."""
    sizes = count(plan.examples, "example"), count(plan.seeds, "randomization"), count(len(plan.methods), "method")
    return f"{', '.join(plan.models)} on {plan.dataset}: {', '.join(sizes)}"


def cite(plan: RandomizationPlan) -> str:
    """One sentence: what made these numbers, of which models and data."""
    return (
        f"Exegesis {product_version()}. Randomization of {', '.join(plan.models)} on {plan.dataset}, "
        f"{len(plan.methods_with_baselines)} methods, seeds {plan.all_seeds[0]} to {plan.all_seeds[-1]}, {plan.dtype}."
    )


def _kind(plan: RandomizationPlan) -> str:
    try:
        return plan.kind
    except ExegesisError:  # its model is gone
        return ""
