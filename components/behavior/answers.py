"""The answers of the Ask the model page in sentences, computed from the data of its charts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from components.behavior.view import budget_words
from components.numbers import count
from engine.behavior.impossibility import Impossibility
from engine.behavior.plan import FEATURE, INPUTS, LOCAL, PARTS, RECOURSE, BehaviorPlan
from engine.behavior.result import ORDER, BehaviorAnswer, ModelBehavior, WayAccuracy
from engine.format import plural
from engine.metrics.results import Interval, share_interval

NOTHING = "No question has a clear answer here, so nothing can be compared. {}"
NEXT_STEP = {
    LOCAL: "Use a smaller margin (the smallest change), or more examples.",
    FEATURE: "Use another feature, or a data set whose {} have it.",
}
MORE_REMOVED = "Allow more removed {}, or use more examples."
NO_FLIP = "In none of {}, removing {} or fewer changes the class, so nothing can be compared. {}"
BY_DEFINITION = {
    LOCAL: "The question is about exactly this evaluation, so that the direct answer is right by definition.",
    FEATURE: "{}, the direct answer is right by definition: the question is about exactly these changes.",
    RECOURSE: "A direct search tries every {}, so that it finds each by definition, with about {} per {}.",
}


def share_words(share: float | None) -> str:
    """Format a share in whole percent, None as a dash."""
    return "–" if share is None else f"{100 * share:.0f}%"


def interval_words(interval: Interval | None) -> str:
    """Format an interval of shares in whole percent."""
    return "no interval" if interval is None else f"{share_words(interval[0])} to {share_words(interval[1])}"


def answer_text(answer: BehaviorAnswer, found: ModelBehavior, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """Return sentences on the accuracy of direct queries, of the best attribution, and of guessing. Not escaped."""
    if not answer.cases:
        part, input = PARTS[plan.kind], INPUTS[plan.kind]
        more = MORE_REMOVED.format(plural(part))
        if plan.task == RECOURSE and answer.all_cases:
            return NO_FLIP.format(count(answer.all_cases, input), count(plan.size, part), more)
        return NOTHING.format(NEXT_STEP.get(plan.task, more).format(plural(input)))
    head = [feature_text(found, plan)] if plan.task == FEATURE else []
    query = _recourse_text(answer, plan) if plan.task == RECOURSE else _query_text(answer, plan)
    return " ".join([*head, query, _method_text(answer, plan, titles), _chance_text(answer, plan)])


def _query_text(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    """Return sentences on the accuracy of direct queries.

    They name the largest and the smallest budget whose answers can be wrong, and those that are right by definition.
    """
    certain = [one for one in answer.queries if plan.answers_by_definition(one.budget)]
    uncertain = _uncertain(answer, plan)
    first, last = uncertain[0], uncertain[-1]
    parts = plural(PARTS[plan.kind])
    noun = f"pairs of {parts}" if answer.question == ORDER else parts if plan.task == LOCAL else "questions"
    interval = "" if last in certain else f" (95% interval {interval_words(last.interval)})"
    text = (
        f"Asking the model directly, with {_cost_words(last, plan)}, is right for {share_words(last.accuracy)} "
        f"of {answer.cases:,} {noun}{interval}"
    )
    if first is not last:
        text += f"; with {_cost_words(first, plan)}, for {share_words(first.accuracy)}"
    if not certain:
        return f"{text}."
    return f"{text}. {BY_DEFINITION[plan.task].format(f'With {_cost_words(certain[-1], plan)}')}"


def _uncertain(answer: BehaviorAnswer, plan: BehaviorPlan) -> list[WayAccuracy]:
    """Return the direct queries whose answers can be wrong, or all if none can."""
    return [one for one in answer.queries if not plan.answers_by_definition(one.budget)] or [*answer.queries]


def _cost_words(way: WayAccuracy, plan: BehaviorPlan) -> str:
    """Return the budget of a direct query and its evaluations per input in words."""
    return f"{budget_words(way.budget, plan)} (about {round(way.evaluations):,} per {INPUTS[plan.kind]})"


def _recourse_text(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    best = max(answer.queries, key=lambda one: (one.accuracy or 0.0, -one.evaluations))
    cost, part, input = count(round(best.evaluations), "evaluation"), PARTS[plan.kind], INPUTS[plan.kind]
    head = (
        f"In {count(answer.cases, input)} of {answer.all_cases:,}, removing {count(plan.size, part)} or fewer can "
        "change the class."
    )
    if plan.answers_by_definition(best.budget):
        return f"{head} {BY_DEFINITION[RECOURSE].format(part, cost, input)}"
    return (
        f"{head} A direct search with about {cost} per {input} changes it in {share_words(best.accuracy)} of them "
        f"(95% interval {interval_words(best.interval)})."
    )


def _method_text(answer: BehaviorAnswer, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """Return a sentence on the accuracy of the best attribution.

    It is selected on one half of the inputs and measured on the other half; without two halves, or if there is only one
    attribution, on all inputs.
    """
    verb, input = "changes it in" if plan.task == RECOURSE else "is right for", INPUTS[plan.kind]
    best, noun, where = answer.methods[0], "The attribution", ""
    if len(answer.methods) > 1:
        noun = "The best attribution"
    if answer.best is not None:
        best, where = answer.best, " on the other half"
        noun = f"The best attribution on one half of the {plural(input)}"
    return (
        f"{noun}, {titles.get(best.way, best.way)}, {verb} {share_words(best.accuracy)}{where} "
        f"({interval_words(best.interval)}), with {count(round(best.evaluations), 'evaluation')} per {input}."
    )


def always(answer: BehaviorAnswer) -> str:
    """Return the more frequent right answer, "yes" or "no"."""
    return "yes" if (answer.yes_share or 0) >= 0.5 else "no"


def _chance_text(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    chance = share_words(answer.chance)
    if answer.yes_share is None:
        return f"Random guessing: {chance}."
    asked = _uncertain(answer, plan)[-1].accuracy or 0.0
    more = ", more than asking the model" if (answer.majority or 0.0) > asked else ""
    return f"Always answering “{always(answer)}”: {share_words(answer.majority)}{more}; a coin: {chance}."


def feature_text(found: ModelBehavior, plan: BehaviorPlan) -> str:
    """Return a sentence on how many inputs change their class with the feature and with the control. Not escaped."""
    own = np.array([found.cases_of(place)[0] for place in range(len(found.examples))], dtype=int)
    control = np.setdiff1d(np.arange(len(found.truth)), own)
    parts = []
    for cases in (own, control):
        hits = int((found.truth[cases] > 0).sum())
        interval = interval_words(share_interval(hits, len(cases))) if len(cases) else "no interval"
        parts.append(f"{hits:,} of {count(len(cases), INPUTS[plan.kind])} (95% interval {interval})")
    of_texts = plan.kind == "text"
    words = " or ".join(f"“{word}”" for word in plan.feature_words) if of_texts else "the marked object"
    other = "as many other words" if of_texts else "a region of the same size elsewhere"
    return f"Changing {words} changes the class of {found.model} in {parts[0]}, changing {other} in {parts[1]}."


def answer_html(answer: BehaviorAnswer, found: ModelBehavior, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """Return the answer as HTML, with the model in bold."""
    text = escape(answer_text(answer, found, plan, titles))
    return f'<div class="xg"><p class="xg-answer"><b>{escape(found.model)}:</b> {text}</p></div>'


def constructed_text(found: Impossibility) -> str:
    """Return sentences on the accuracy of attributions and direct queries on the constructed models."""
    first, *_, last = found.queries
    methods = share_words(found.methods[0].accuracy)
    return (
        f"On {found.pairs:,} pairs of constructed models, integrated gradients and Shapley values are right for "
        f"exactly {methods} of the models, as a coin is. {last.evaluations} direct queries are right for "
        f"{share_words(last.accuracy)} (95% interval {interval_words(last.interval)}), {first.evaluations} for "
        f"{share_words(first.accuracy)}."
    )
