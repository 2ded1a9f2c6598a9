"""What is drawn together: the models of the check that is asked for, and those of finished checks beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cache import key_for
from components.numbers import count
from components.randomization.known import Held, Randomized, ended_of, held
from engine.errors import ExegesisError

if TYPE_CHECKING:
    from engine.randomization.plan import RandomizationPlan
    from engine.randomization.result import ModelRandomization

MARK = 10
"""Letters that tell checks apart in a link."""
GONE = (
    "Beside this check another was drawn that is not finished on this machine: {}. Randomize the same here, then "
    "choose it again."
)


@dataclass(frozen=True)
class Entry:
    """One model of a check. `name`: what tells it from the others that are drawn with it."""

    held: Held
    found: ModelRandomization
    name: str


def entries_of(checks: Sequence[Held]) -> list[Entry]:
    """Every model of every check. A data set is named where there are several, a number where names still recur."""
    several = len({one.plan.dataset for one in checks}) > 1
    pairs = [(one, found) for one in checks for found in one.found]
    names = [f"{found.model} on {found.dataset}" if several else found.model for _, found in pairs]
    return [
        Entry(one, found, _numbered(names[at], names[:at].count(names[at])))
        for at, (one, found) in enumerate(pairs)
    ]  # fmt: skip


def offered(plan: RandomizationPlan, before: Sequence[Randomized]) -> dict[str, RandomizationPlan]:
    """Other checks of the same kind of input that were finished here or come with the project, by their marks."""
    # Here and not above: it imports what reads data sets.
    from engine.shipped.experiments import RANDOMIZATION_PLANS

    done = [of for job, of in before if job.state == "done" and _reads(of) == plan.kind]
    return {mark_of(one): one for one in (*done, RANDOMIZATION_PLANS[plan.kind]) if one != plan}


def beside(
    chosen: Sequence[str], there: Mapping[str, RandomizationPlan], before: Sequence[Randomized]
) -> tuple[list[Held], list[str]]:
    """The chosen checks as far as they can be drawn, and a sentence for each that cannot."""
    found, said = list[Held](), list[str]()
    for mark in chosen:
        try:
            one = held(there[mark], ended_of(there[mark], before)) if mark in there else None
        except ExegesisError as error:  # its data set is gone
            said.append(str(error))
            continue
        if one is not None and one.found:
            found.append(one)
        else:
            said.append(GONE.format(mark))
    return found, said


def mark_of(plan: RandomizationPlan) -> str:
    """What stands for a check in a link."""
    return key_for(plan.as_plain())[:MARK]


def words_of(plan: RandomizationPlan) -> str:
    """A check in a line."""
    sizes = count(plan.examples, "example"), count(plan.seeds, "randomization"), count(len(plan.methods), "method")
    return f"{', '.join(plan.models)} on {plan.dataset}: {', '.join(sizes)}"


def _numbered(name: str, before: int) -> str:
    return f"{name} ({before + 1})" if before else name


def _reads(plan: RandomizationPlan) -> str:
    try:
        return plan.kind
    except ExegesisError:  # its model is gone
        return ""
