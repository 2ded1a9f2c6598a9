"""`exegesis rules`: test claims about a model, written as rules.

Prints how well each rule predicts the model, the effect of its words or region, and the best attribution-based rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import NOTHING, table, visible
from engine.experiments.base import ExperimentResult
from engine.format import count_text
from engine.rules.plan import RULES
from engine.rules.result import ModelRules, RuleEstimate, RuleScores, compare_rules, holm, score_rule

TEXT_COLUMNS = ("true", "share", "base", "balanced", "p (Holm)", "fall", "random", "changed", "rise", "held out")
PICTURE_COLUMNS = ("pictures", "fall", "elsewhere", "changed", "alone", "attribution")
TEXT_LEGEND = (
    "true: examples with the condition. share: of these, predicted as the class, with Wilson's 95% interval. base: "
    "share of all examples predicted as the class. balanced: balanced accuracy, 0.5 by chance. fall, random: mean fall "
    "of the class's probability without the words, and without as many random words. changed: share of predictions "
    "that change. rise: mean rise with the words inserted, minus that with other words. held out: balanced accuracy "
    "in the held-out half, minus that of the best attribution-based word. --json adds all intervals."
)
PICTURE_LEGEND = (
    "pictures: those that the model predicts as the class. fall, elsewhere: mean fall of the class's probability "
    "without the region, and without regions of its size elsewhere. changed: share of predictions that change. alone: "
    "mean probability with the region alone, minus that with other regions alone. attribution: mean fall in the "
    "held-out half, minus that without the patches with the highest scores."
)


def sections(result: ExperimentResult) -> Iterator[RenderableType]:
    """Yield a table per model, notes on its rules, differences between rules, and reasons for omitted examples."""
    seed = result.plan.seed
    for of_model in result.models:
        yield Text(visible(f"{of_model.model} on {of_model.dataset}, {len(of_model.examples)} examples"), style="bold")
        yield _table(of_model, seed)
        yield from (Text(visible(line)) for line in _notes(of_model, seed))
        yield ""
    yield Text(PICTURE_LEGEND if result.plan.kind == "image" else TEXT_LEGEND, style="dim")


def _table(of_model: ModelRules, seed: int) -> RenderableType:
    """Create a table with a row per rule."""
    columns = PICTURE_COLUMNS if any(one.of_pictures for one in of_model.rules) else TEXT_COLUMNS
    rows = table(["rule", *columns], right=columns)
    scores = [score_rule(one, seed) for one in of_model.rules]
    for one, own, p in zip(of_model.rules, scores, holm([own.p for own in scores]), strict=True):
        rows.add_row(visible(one.rule), *(_picture_cells(own) if one.of_pictures else _text_cells(own, p)))
    return rows


def _text_cells(own: RuleScores, p: float | None) -> list[str]:
    return [
        f"{own.share.n}", _interval(own.share), _number(own.base), _interval(own.balanced), _number(p),
        _interval(own.fall), _number(own.random_fall.value), _number(own.changed.value), _interval(own.rise),
        _interval(own.gain),
    ]  # fmt: skip


def _picture_cells(own: RuleScores) -> list[str]:
    return [
        f"{own.share.n}", _interval(own.fall), _number(own.random_fall.value), _number(own.changed.value),
        _interval(own.rise), _interval(own.gain),
    ]  # fmt: skip


def _notes(of_model: ModelRules, seed: int) -> Iterator[str]:
    for one in of_model.rules:
        if one.method:
            name = f"the word {one.word!r} by {one.method}" if one.word else f"the top patches by {one.method}"
            yield f"{one.rule}: the attribution-based rule is {name}."
        yield from (f"{one.rule}: {note}" for note in one.notes)
    for gap in compare_rules(of_model.rules, seed):
        best, other = of_model.rules[gap.best].rule, of_model.rules[gap.other].rule
        yield f"{best} minus {other}: {_interval(gap.difference)}"
    if of_model.failed:
        yield f"{count_text(len(of_model.failed), 'example')} left out: {next(iter(of_model.failed.values()))}"


def _interval(one: RuleEstimate) -> str:
    if one.value is None:
        return NOTHING
    ends = "" if one.interval is None else f" ({one.interval[0]:.2f} to {one.interval[1]:.2f})"
    return f"{one.value:.2f}{ends}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


rules = command_of(RULES, sections)
