"""`exegesis behavior`: answer questions about a model's behavior by direct queries and by attributions.

Prints the accuracy and the evaluations of each way, and as baselines the more frequent answer and random guessing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.behavior.impossibility import Impossibility, demonstrate
from engine.behavior.plan import BEHAVIOR, INPUTS, PARTS, BehaviorPlan, question_text
from engine.behavior.result import FLIP, ORDER, BehaviorAnswer, BehaviorResult, WayAccuracy, answers_of
from engine.cli.experiments import command_of
from engine.cli.output import NOTHING, table, visible
from engine.format import count_text, plural

ORDER_QUESTION = "Which of two {} lowers the probability more?"
LEGEND = (
    "right: share of answers that are those of the truth; of recourse, share of inputs whose class the answer changes. "
    "Intervals are 95% over inputs. evaluations: of the model, the mean per input; the budget of a direct query is in "
    "its name. majority: the more frequent answer alone. --json adds the plan; --out has each answer."
)


def sections(result: BehaviorResult) -> Iterator[RenderableType]:
    """Yield a table per model and question, the reasons for omitted examples, and the constructed models."""
    plan = result.plan
    for found in result.models:
        for answer in answers_of(found, plan):
            yield Text(visible(f"{found.model} on {found.dataset}: {question_of(answer, plan)}"), style="bold")
            yield _accuracy_table(answer)
            yield Text(visible(_base_rates(answer, plan)))
        for why, number in Counter(found.failed.values()).items():
            yield Text(visible(f"{count_text(number, 'example')} left out: {why}"))
        for method, reasons in found.failures.items():
            for why, number in Counter(reasons.values()).items():
                yield Text(visible(f"{method}: {count_text(number, 'example')} left out for this method: {why}"))
        yield ""
    yield Text(describe_constructed(demonstrate()))
    yield Text(LEGEND, style="dim")


def question_of(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    """Return the question in words."""
    return ORDER_QUESTION.format(plural(PARTS[plan.kind])) if answer.question == ORDER else question_text(plan)


def _accuracy_table(answer: BehaviorAnswer) -> RenderableType:
    rows = table(["way", "right", "interval", "evaluations"], right=["right", "interval", "evaluations"])
    for one in (*answer.queries, *answer.methods):
        rows.add_row(*map(Text, (one.way, *_cells(one))))
    return rows


def _cells(one: WayAccuracy) -> tuple[str, str, str]:
    share = NOTHING if one.accuracy is None else f"{one.accuracy:.0%}"
    interval = NOTHING if one.interval is None else f"{one.interval[0]:.0%} to {one.interval[1]:.0%}"
    return share, interval, f"{one.evaluations:,.0f}"


def _base_rates(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    noun = "pair" if answer.question == ORDER else INPUTS[plan.kind] if answer.question == FLIP else "case"
    counted = f"{count_text(answer.cases, noun)} of {answer.all_cases:,} count"
    rates = [("majority", answer.majority), ("random guessing", answer.chance)]
    numbers = [counted, *(f"{name} {value:.0%}" for name, value in rates if value is not None)]
    if (best := answer.best) is not None and best.accuracy is not None:
        numbers.append(f"best attribution on one half, {best.way}, on the other half {best.accuracy:.0%}")
    return "; ".join(numbers) + "."


def describe_constructed(found: Impossibility) -> str:
    """Describe the constructed models in one sentence."""
    *_, last = found.queries
    shares = " and ".join(f"{one.accuracy:.0%}" for one in found.methods)
    return (
        f"On {found.pairs} pairs of constructed models with equal attributions, integrated gradients and Shapley "
        f"values are right for {shares} of the models, {last.evaluations} direct queries for {last.accuracy:.0%}."
    )


behavior = command_of(BEHAVIOR, sections)
