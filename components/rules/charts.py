"""Bar charts with intervals, tables and sentences on the scores of rules. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from string import ascii_uppercase

import altair as alt
import pandas as pd

from components.charts.files import CaptionedChart, ChartCaption
from components.charts.frame import style_chart
from components.experiment.page import command_line
from components.export import REPEATS
from components.numbers import count, hundredths, percent, points
from components.palette import CHART_COLORS, Theme, browser_theme
from engine.format import join_names
from engine.registry import all_explainers
from engine.rules.plan import MOST_RULES, RulesPlan
from engine.rules.result import (
    ModelRules,
    RuleEstimate,
    RuleResult,
    RuleScores,
    compare_rules,
    excess_fall,
    holm,
    score_rule,
)

LETTERS = ascii_uppercase[:MOST_RULES]
"""Names of the rules, in order."""
ROW, FOOT = 48, 128
"""Height in pixels of a rule in a chart, and of the axis with its title and the legend."""
ALPHA, TEST = 0.05, "Fisher, Holm"
"""Significance level at which a rule is better than chance, and the names of the test and of its adjustment."""
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class ScoredRule:
    """A rule with its scores. `letter`: its name on the page. `p`: p-value adjusted for the number of rules (Holm)."""

    letter: str
    result: RuleResult
    scores: RuleScores
    p: float | None


@dataclass(frozen=True)
class RulePanel:
    """A chart of two values per rule.

    `axis`: title of the axis. `series`: for both values the name in the legend and the function that returns it.
    `ends`: ends of the axis; None for 0 or the outermost end of an interval.
    """

    name: str
    title: str
    axis: str
    series: tuple[tuple[str, Callable[[RuleScores], RuleEstimate]], ...]
    ends: Ends = (None, None)


TEXT_PANELS = (
    RulePanel(
        "predicted", "Does it predict the model?", "share predicted as the class",
        (("where the rule is true", lambda own: own.share), ("in all examples", lambda own: _base(own))), (0.0, 1.0),
    ),
    RulePanel(
        "removed", "Does the model need the words?", "fall of the probability without them",
        (("words of the rule", lambda own: own.fall), ("random words", lambda own: own.random_fall)),
    ),
    RulePanel(
        "inserted", "Do the words suffice?", "probability with them inserted",
        (("words of the rule", lambda own: own.inserted), ("other words there", lambda own: own.neutral)), (0.0, 1.0),
    ),
    RulePanel(
        "attribution", "Better than attribution?", "balanced accuracy, held-out half",
        (("rule", lambda own: own.own), ("best attribution word", lambda own: own.attribution)), (0.0, 1.0),
    ),
)  # fmt: skip
PICTURE_PANELS = (
    RulePanel(
        "removed", "Does the model need the region?", "fall of the probability without it",
        (("region of the rule", lambda own: own.fall), ("same size elsewhere", lambda own: own.random_fall)),
    ),
    RulePanel(
        "inserted", "Does the region suffice?", "probability with it alone",
        (("region of the rule", lambda own: own.inserted), ("same size elsewhere", lambda own: own.neutral)),
        (0.0, 1.0),
    ),
    RulePanel(
        "attribution", "Better than attribution?", "fall of the probability, held-out half",
        (("region of the rule", lambda own: own.own), ("top patches of a map", lambda own: own.attribution)),
    ),
)  # fmt: skip


def _base(own: RuleScores) -> RuleEstimate:
    return RuleEstimate(own.base, None, own.balanced.n)


def scored_rules(found: ModelRules, seed: int) -> list[ScoredRule]:
    """Return the rules of a model with their scores."""
    scores = [score_rule(one, seed) for one in found.rules]
    adjusted = holm([own.p for own in scores])
    return [ScoredRule(*each) for each in zip(LETTERS, found.rules, scores, adjusted, strict=False)]


def panel_data(rules: Sequence[ScoredRule], panel: RulePanel) -> pd.DataFrame:
    """Return a row for each rule and series that has a value."""
    rows = []
    for one in rules:
        for name, pick in panel.series:
            own = pick(one.scores)
            if own.value is not None:
                low, high = own.interval or (own.value, own.value)
                rows.append(
                    {"rule": one.letter, "condition": one.result.rule, "series": name, "value": own.value, "low": low,
                     "high": high, "shown": _estimate_text(own), "examples": own.n}
                )  # fmt: skip
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class RuleChart(CaptionedChart):
    """The chart of a panel with its files. `prefix`: prefix of the widget keys."""

    plan: RulesPlan
    model: str
    rules: Sequence[ScoredRule]
    panel: RulePanel
    prefix: str

    @property
    def file(self) -> str:
        return f"exegesis-rules-{self.panel.name}"

    @property
    def table(self) -> pd.DataFrame:
        return panel_data(self.rules, self.panel)

    def key(self, kind: str) -> str:
        return f"{self.prefix}.{self.panel.name}.{kind}"

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        return panel_chart(self.table, self.panel, theme or browser_theme())

    def caption(self) -> ChartCaption:
        named = [f"{one.letter}: {one.result.rule}" for one in self.rules]
        title = f"{self.panel.title} {self.model} on {self.plan.dataset}"
        return ChartCaption(title, [*named, "Lines: 95% intervals.", f"{REPEATS}:"], [command_line(self.plan)])


def panel_chart(table: pd.DataFrame, panel: RulePanel, theme: Theme) -> alt.LayerChart:
    """Horizontal bars with 95% intervals, one group per rule with a bar for each series."""
    names = [name for name, _ in panel.series]
    colors = [CHART_COLORS[theme][0], CHART_COLORS[theme][-1]]
    low, high = (
        given if given is not None else found(table[column]) if len(table) else edge
        for given, found, column, edge in zip(
            panel.ends, (lambda one: min(0.0, one.min()), lambda one: max(0.0, one.max())), ("low", "high"), (0, 1),
            strict=True,
        )
    )  # fmt: skip
    y = alt.Y("rule:N", title=None, axis=alt.Axis(labelFontSize=14))
    offset = alt.YOffset("series:N", sort=names)
    color = alt.Color(
        "series:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colors),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=260),
    )  # fmt: skip
    scale = alt.Scale(domain=[low, high], nice=panel.ends[0] is None)
    tooltip = [
        alt.Tooltip("condition:N", title="rule"), alt.Tooltip("series:N", title="what"),
        alt.Tooltip("shown:N", title=panel.axis), alt.Tooltip("examples:Q", title="examples"),
    ]  # fmt: skip
    base = alt.Chart(table).encode(y=y, yOffset=offset, tooltip=tooltip)
    bars = base.mark_bar().encode(x=alt.X("value:Q", title=panel.axis, scale=scale), color=color)
    lines = base.mark_rule(strokeWidth=2, color=_ink(theme)).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    height = ROW * max(1, table["rule"].nunique() if len(table) else 1) + FOOT
    return style_chart(alt.LayerChart(layer=[bars, lines]), height, theme)


def _ink(theme: Theme) -> str:
    return "#1c2127" if theme == "light" else "#f0f2f4"


def answer_html(rules: Sequence[ScoredRule], examples: int, seed: int) -> str:
    """HTML of the verdict on all rules, and of sentences on each rule. All text is escaped."""
    verdict = f'<p class="xg-answer"><b>{escape(verdict_text(rules, seed))}</b></p>'
    named = ((one.letter, escape(one.result.rule), " ".join(rule_sentences(one, examples))) for one in rules)
    lines = "".join(f"<p><b>{letter}</b> <code>{rule}</code><br>{escape(text)}</p>" for letter, rule, text in named)
    return f'<div class="xg">{verdict}{lines}</div>'


def verdict_text(rules: Sequence[ScoredRule], seed: int) -> str:
    """Return which rule is best, and whether it is significantly better than chance and than the others."""
    if rules[0].result.of_pictures:
        return _picture_verdict(rules, seed)
    scored = [one for one in rules if one.scores.balanced.value is not None]
    if not scored:
        return "No rule can be scored: the model predicts the same for all examples."
    better = [one for one in scored if one.p is not None and one.p < ALPHA]
    best = max(better or scored, key=lambda one: one.scores.balanced.value or 0.0)
    value = f"balanced accuracy {_estimate_text(best.scores.balanced, percents=False)}"
    if not better:
        test = "" if best.p is None else f", p = {best.p:.2f} ({TEST})"
        return f"No rule is significantly better than chance: the best is {best.letter}, {value}{test}."
    text = f"Rule {best.letter} predicts the model best: {value}, 0.50 by chance."
    gaps = compare_rules([one.result for one in rules], seed, rules.index(best))
    near = [
        rules[gap.other].letter for gap in gaps if gap.difference.interval is None or gap.difference.interval[0] <= 0
    ]
    return f"{text} Not significantly different: {join_names(near)}." if near else text


def _picture_verdict(rules: Sequence[ScoredRule], seed: int) -> str:
    """Return which regions the model needs, by simultaneous intervals over all rules (Bonferroni)."""
    ends = [(one.letter, excess_fall(one.result, seed, len(rules)).interval) for one in rules]
    needed = [letter for letter, interval in ends if interval is not None and interval[0] > 0]
    if not needed:
        return "The model needs none of these regions significantly more than others of their size."
    regions = "region of rule" if len(needed) == 1 else "regions of rules"
    return f"The model needs the {regions} {join_names(needed)} significantly more than others of the same size."


def rule_sentences(one: ScoredRule, examples: int) -> Iterator[str]:
    """Yield sentences on the test results of a rule."""
    own, label = one.scores, one.result.label
    if one.result.of_pictures:
        yield from _picture_sentences(one, examples)
        return
    if not own.share.n:
        yield f"True for none of {count(examples, 'text')}, so there is nothing to test."
        return
    yield (
        f"True for {own.share.n:,} of {count(examples, 'text')}. The model predicts {label} for "
        f"{_estimate_text(own.share)} of these, and for {percent(own.base)} of all."
    )
    if own.changed.value is not None:
        yield (
            f"Removing the words changes {percent(own.changed.value)} of the predictions, random words "
            f"{percent(own.random_changed or 0.0)}."
        )
    if own.toward.value is not None:
        yield (
            f"Inserting them raises the probability in {percent(own.toward.value)} of {own.toward.n:,} other texts, "
            f"compared with {f'“{one.result.neutral_word}”' if one.result.neutral_word else 'random words'}."
        )


def _picture_sentences(one: ScoredRule, examples: int) -> Iterator[str]:
    own = one.scores
    if not own.share.n:
        yield f"The model predicts {one.result.label} for none of {count(examples, 'picture')}."
        return
    if own.fall.value is not None and own.random_fall.value is not None:
        yield (
            f"The probability changes by {points(-own.fall.value)} points without the region, and by "
            f"{points(-own.random_fall.value)} without the same area elsewhere."
        )
    if own.changed.value is not None:
        yield (
            f"{percent(own.changed.value)} of {own.changed.n:,} predictions change, elsewhere "
            f"{percent(own.random_changed or 0.0)}."
        )


def notes_html(rules: Sequence[ScoredRule], seed: int) -> str:
    """HTML of the best attributions, the differences between rules, and the notes of rules. All text is escaped."""
    lines = [line for one in rules for line in _rule_notes(one)]
    for gap in compare_rules([one.result for one in rules], seed):
        best, other = rules[gap.best].letter, rules[gap.other].letter
        lines.append(
            f"{best} minus {other}, in pairs: {_estimate_text(gap.difference, percents=False)}. The intervals of all "
            "differences hold together (Bonferroni)."
        )
    return f'<div class="xg xg-small">{"".join(f"<p>{escape(line)}</p>" for line in lines)}</div>'


def _rule_notes(one: ScoredRule) -> Iterator[str]:
    if one.result.method:
        methods = all_explainers("image" if one.result.of_pictures else "text")
        title = methods[one.result.method].title if one.result.method in methods else one.result.method
        named = f"the word “{one.result.word}” by {title}" if one.result.word else title
        yield (
            f"{one.letter}: best attribution in the training half: {named}. Rule minus attribution, held-out half: "
            f"{_estimate_text(one.scores.gain, percents=False)}."
        )
    yield from (f"{one.letter}: {note}" for note in one.result.notes)


def scores_table(rules: Sequence[ScoredRule]) -> pd.DataFrame:
    """Return all scores: one row per score, one column per rule."""
    pictures = rules[0].result.of_pictures
    names = {} if pictures else {
        "True for": lambda own: f"{own.share.n:,}",
        "Predicted as the class where true": lambda own: _estimate_text(own.share),
        "Predicted as the class in all": lambda own: percent(own.base),
        "Lift": lambda own: _number(own.lift),
        "Balanced accuracy": lambda own: _estimate_text(own.balanced, percents=False),
        "Phi": lambda own: _number(own.phi),
    }  # fmt: skip
    names |= {
        "Fall of the probability": lambda own: _estimate_text(own.fall, percents=False),
        "Fall at random": lambda own: _estimate_text(own.random_fall, percents=False),
        "Difference of the falls": lambda own: _estimate_text(own.excess, percents=False),
        "Predictions that change": lambda own: _estimate_text(own.changed),
        "Predictions that change at random": lambda own: _share(own.random_changed),
        "Rise" if not pictures else "Alone, minus elsewhere": lambda own: _estimate_text(own.rise, percents=False),
        "Rule minus attribution, held out": lambda own: _estimate_text(own.gain, percents=False),
    }  # fmt: skip
    rows = [{"": name, **{one.letter: show(one.scores) for one in rules}} for name, show in names.items()]
    if not pictures:
        rows.append({"": f"p ({TEST})", **{one.letter: _number(one.p, 3) for one in rules}})
    return pd.DataFrame(rows)


def _estimate_text(own: RuleEstimate, percents: bool = True) -> str:
    if own.value is None:
        return "–"
    show = percent if percents else hundredths
    ends = "" if own.interval is None else f" ({show(own.interval[0])} to {show(own.interval[1])})"
    return f"{show(own.value)}{ends}"


def _number(value: float | None, decimals: int = 2) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)
