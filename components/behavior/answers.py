"""The answers of the Ask the model page in sentences, computed from what its charts show."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from components.behavior.view import budget_words
from components.numbers import count
from engine.behavior.impossibility import Impossibility
from engine.behavior.plan import DELETE, FEATURE, LOCAL, RECOURSE, BehaviorPlan
from engine.behavior.result import ORDER, BehaviorAnswer, ModelBehavior
from engine.metrics.results import Interval, share_interval

NOTHING = "No question has a clear answer here, so nothing can be compared. {}"
NEXT_STEP = {
    LOCAL: "Use a smaller margin (the smallest change), or more examples.",
    FEATURE: "Use another feature, or a data set whose texts have its words.",
}
MORE_WORDS = "Allow more removed words, or use more examples."
BY_DEFINITION = "The question is about exactly this evaluation, so that the direct answer is right by definition."


def share_words(share: float | None) -> str:
    """A share in whole percent."""
    return "–" if share is None else f"{100 * share:.0f}%"


def interval_words(interval: Interval | None) -> str:
    """A 95% interval in whole percent."""
    return "no interval" if interval is None else f"{share_words(interval[0])} to {share_words(interval[1])}"


def answer_text(answer: BehaviorAnswer, found: ModelBehavior, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """The accuracy of direct queries, of the best attribution, and of guessing. Not escaped."""
    if not answer.cases:
        return NOTHING.format(NEXT_STEP.get(plan.task, MORE_WORDS))
    head = [feature_text(found, plan)] if plan.task == FEATURE else []
    query = _recourse_text(answer, plan) if plan.task == RECOURSE else _query_text(answer, plan)
    return " ".join([*head, query, _method_text(answer, plan, titles), _chance_text(answer)])


def _query_text(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    first, last = answer.queries[0], answer.queries[-1]
    noun = "pairs of words" if answer.question == ORDER else "words" if plan.task == LOCAL else "questions"
    text = (
        f"Asking the model directly, with {budget_words(last.budget, plan)}, is right for {share_words(last.accuracy)} "
        f"of {answer.cases:,} {noun} (95% interval {interval_words(last.interval)})"
    )
    if first is not last:
        text += f"; with {budget_words(first.budget, plan)}, for {share_words(first.accuracy)}"
    return f"{text}. {BY_DEFINITION}" if plan.task == LOCAL and plan.edit == DELETE else f"{text}."


def _recourse_text(answer: BehaviorAnswer, plan: BehaviorPlan) -> str:
    last = answer.queries[-1]
    return (
        f"In {count(answer.cases, 'text')} of {answer.all_cases:,}, removing {count(plan.size, 'word')} or fewer can "
        f"change the class. A direct search with about {count(round(last.evaluations), 'evaluation')} per text changes "
        f"it in {share_words(last.accuracy)} of them (95% interval {interval_words(last.interval)})."
    )


def _method_text(answer: BehaviorAnswer, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    best = answer.methods[0]
    verb = "changes it in" if plan.task == RECOURSE else "is right for"
    noun = "The best attribution" if len(answer.methods) > 1 else "The attribution"
    return (
        f"{noun}, {titles.get(best.way, best.way)}, {verb} {share_words(best.accuracy)} "
        f"({interval_words(best.interval)}), with {count(round(best.evaluations), 'evaluation')} per text."
    )


def always(answer: BehaviorAnswer) -> str:
    """The more frequent right answer."""
    return "yes" if (answer.yes_share or 0) >= 0.5 else "no"


def _chance_text(answer: BehaviorAnswer) -> str:
    chance = share_words(answer.chance)
    if answer.yes_share is None:
        return f"Random guessing: {chance}."
    return f"Always answering “{always(answer)}”: {share_words(answer.majority)}; a coin: {chance}."


def feature_text(found: ModelBehavior, plan: BehaviorPlan) -> str:
    """In how many texts the feature changes the class, and in how many the control does. Not escaped."""
    own = np.array([found.cases_of(place)[0] for place in range(len(found.examples))], dtype=int)
    control = np.setdiff1d(np.arange(len(found.truth)), own)
    parts = []
    for cases in (own, control):
        hits = int((found.truth[cases] > 0).sum())
        interval = interval_words(share_interval(hits, len(cases))) if len(cases) else "no interval"
        parts.append(f"{hits:,} of {count(len(cases), 'text')} (95% interval {interval})")
    words = " or ".join(f"“{word}”" for word in plan.feature_words)
    return f"Changing {words} changes the class of {found.model} in {parts[0]}, changing another word in {parts[1]}."


def answer_html(answer: BehaviorAnswer, found: ModelBehavior, plan: BehaviorPlan, titles: Mapping[str, str]) -> str:
    """The answer as HTML, with the model in bold."""
    text = escape(answer_text(answer, found, plan, titles))
    return f'<div class="xg"><p class="xg-answer"><b>{escape(found.model)}:</b> {text}</p></div>'


def constructed_text(found: Impossibility) -> str:
    """The answer about the constructed models."""
    first, *_, last = found.queries
    methods = share_words(found.methods[0].accuracy)
    return (
        f"On {found.pairs:,} pairs of constructed models, integrated gradients and Shapley values are right for "
        f"exactly {methods} of the models, as a coin is. {last.evaluations} direct queries are right for "
        f"{share_words(last.accuracy)} (95% interval {interval_words(last.interval)}), {first.evaluations} for "
        f"{share_words(first.accuracy)}."
    )
