"""The Words page: which words or patches matter to a model over a data set, by which scores and in which examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.charts.frame import style_chart
from components.controls import PERSIST
from components.errors import show_note
from components.experiment.page import ExperimentPage, export_area, references
from components.experiment.runs import PlanStatus, skip_reasons_html
from components.experiment.state import VIEW, ExperimentSession, ExperimentState, Methods, view_select
from components.export import citation_html
from components.navigation import WORDS
from components.numbers import count, fixed
from components.palette import PALETTES, STEPS, Theme, browser_theme, color
from components.tables import draw_table
from engine.corpus.experiment import ALL, CorpusWords
from engine.corpus.plan import CORPUS, CorpusPlan
from engine.corpus.scores import REMOVAL
from engine.experiments.options import RANDOM
from engine.home import product_version
from engine.params import option
from engine.significance.false_discovery import survives

MOST_DRAWN, NAMED = 15, 5
"""Maximum number of words in the chart, and in the answer."""
ROW, AXIS = 26, 60
"""Height in pixels of a word's row in the chart, and of the axis below."""
CELL = 34
"""Side of a patch in pixels."""
SIDES = 130
"""Width in pixels of the axis and the color legend next to the grid."""
UNITS = {"text": "word", "image": "patch"}
REMOVED = {
    "text": "fall of the probability of the predicted class when the word is deleted",
    "image": "fall of the probability of the predicted class when the mean color is in place of the patch",
}
ABOUT = (
    "Each word is scored in every text that has it, by deleting it and by attribution methods. A word matters if its "
    "mean score is farther from zero than if the scores of each text were shuffled among its words. For pictures, "
    "each patch of the grid is tested."
)
TEST = (
    "Randomization test with {} permutations within each example; Benjamini and Hochberg’s procedure over the {} of "
    "the chosen examples keeps the false discovery rate if p-values are independent or positively dependent. "
    "Intervals are 95% bootstrap intervals over examples. A {} can be significant although its interval contains 0: "
    "the test asks whether its mean is farther from 0 than if the scores within each example were shuffled, the "
    "interval how much the mean varies from one choice of examples to another."
)
CITED = (
    "Significance: C. Burns, J. Thomason and W. Tansey (2020), Interpreting black box models via hypothesis testing, "
    "FODS."
)
ROWS_HELP = "One row per slice, method and word: the output of `exegesis corpus --out`."


@dataclass(frozen=True)
class CorpusView:
    """View options. `by`: method of the scores. `among`: slice of examples. `rate`: false discovery rate in percent."""

    model: str = option("", link="drawn")
    by: str = REMOVAL
    among: str = ALL
    rate: int = option(10, choices=(5, 10, 20))


SESSION = ExperimentSession(CORPUS, "corpus", CorpusView)


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the controls of the view, the answer, the chart, all words, and the export."""
    results, kind = status.results, state.kind
    titles = {REMOVAL: "Removal", **{id: method.title for id, method in methods.items()}}
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        names = {one.model: one.model for one in results.found}
        model = view_select(SESSION, state, "Model", "model", names, 240) if len(names) > 1 else next(iter(names))
        found = next(one for one in results.found if one.model == model)
        method = view_select(SESSION, state, "Scores by", "by", {id: titles.get(id, id) for id in found.methods}, 240)
        slices = {name: f"{name} ({size:,})" for name, size in zip(found.slices, found.sizes, strict=True)}
        among = view_select(SESSION, state, "Include examples", "among", slices, 240)
        st.segmented_control(
            "False discovery rate", (5, 10, 20), key=SESSION.key(kind, f"{VIEW}rate"), required=True,
            format_func=lambda rate: f"{rate}%", persist_state=PERSIST,
            help="At a rate of 10%, at most 10% of the significant words are expected to be so by chance.",
        )  # fmt: skip
    table = words_table(found, method, among)
    rate, unit = state.view.rate / 100, UNITS[kind]
    st.html(answer_html(found, table, method, among, rate, kind, titles))
    if shortage := found.shortage(among, rate):
        show_note(shortage)
    if found.cut:
        show_note(f"{count(found.cut, 'text')} with words beyond what the model reads, left out.")
    if kind == "image" and len(table):
        chart = patches_chart(table, rate, browser_theme())
        columns = table["Word"].str.extract(r"column (\d+)")[0].astype(int).max()
        with st.container(width=CELL * int(columns) + SIDES):
            st.altair_chart(
                chart, key=SESSION.key(kind, "map"), alt="Mean score of each place; others are not significant"
            )
    elif significant(table, rate).any():
        chart = words_chart(table[significant(table, rate)].head(MOST_DRAWN), browser_theme())
        st.altair_chart(
            chart, key=SESSION.key(kind, "chart"), alt="Mean score of each word; all are in the table below"
        )
    with st.expander(f"All {unit}s" if kind == "text" else "All patches", key=SESSION.key(kind, "numbers")):
        draw_table(table, SESSION.key(kind, "table"))
        st.caption(TEST.format(f"{found.permutations:,}", "words" if kind == "text" else "patches", unit))
    if found.failed:
        reasons = Counter(found.failed.values()).items()
        lines = [(why, count(number, "example"), found.model) for why, number in reasons]
        with st.expander(f"Left out: {count(len(found.failed), 'example')}", key=SESSION.key(kind, "left_out")):
            st.html(skip_reasons_html(lines))
    cited = citation_html(cite(results.plan), references(results.plan, methods, [CITED]))
    export_area(SESSION, kind, results.result, cited, ROWS_HELP)


def words_table(found: CorpusWords, method: str, among: str) -> pd.DataFrame:
    """Return a row for each tested word or patch, the largest absolute mean first."""
    slice, place = found.slices.index(among), found.methods.index(method)
    tested = np.flatnonzero(found.tested(among))
    table = pd.DataFrame(
        {
            "Word": [found.words[at] for at in tested],
            "Examples": found.counts[slice, tested],
            "Mean": found.means[slice, place, tested].round(4),
            "Low": found.low[slice, place, tested].round(4),
            "High": found.high[slice, place, tested].round(4),
            "p": found.p_values[slice, place, tested].round(4),
            "Adjusted p": found.adjusted(among, method)[tested].round(4),
        }
    )
    return table.sort_values("Mean", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def significant(table: pd.DataFrame, rate: float) -> np.ndarray:
    """Return whether each row is significant at a false discovery rate."""
    return survives(table["Adjusted p"].to_numpy(dtype=np.float64), rate)


def answer_html(
    found: CorpusWords, table: pd.DataFrame, method: str, among: str, rate: float, kind: str, titles: dict[str, str]
) -> str:  # fmt: skip
    """HTML of the answer: how many words matter, the largest ones, and how many would matter with random scores."""
    unit = UNITS[kind]
    plural = "words" if kind == "text" else "patches"
    if table.empty:
        return (
            f'<div class="xg"><p class="xg-summary">No {unit} is in enough of these examples to be tested. Raise the '
            "number of examples, or lower the fewest examples.</p></div>"
        )
    rows = table[significant(table, rate)]
    listed = ", ".join(
        f"“<bdi>{escape(word)}</bdi>” {fixed(mean, 3, sign=True)}"
        for word, mean in zip(rows["Word"].head(NAMED), rows["Mean"].head(NAMED), strict=True)
    )
    verb = "matters" if len(rows) == 1 else "matter"
    number = f"{len(rows) or 'None'} of {len(table):,} {plural} {verb if len(rows) else 'matters'}"
    chance = int(survives(np.nan_to_num(found.adjusted(among, RANDOM), nan=1.0), rate).sum())
    by_chance = f"{chance:,} {unit if chance == 1 else plural}" if chance else f"no {unit}"
    scores = REMOVED[kind] if method == REMOVAL else f"score by {escape(titles.get(method, method))}"
    return (
        f'<div class="xg"><p class="xg-summary">{number} to <bdi>{escape(found.model)}</bdi> at a false discovery rate '
        f"of {rate:.0%}{': ' + listed if len(rows) else ''}.</p>"
        f'<p class="xg-small">Mean {scores}, over the examples with the {unit} ({escape(among)}). '
        f"With random scores {by_chance} would matter.</p></div>"
    )


def words_chart(table: pd.DataFrame, theme: Theme) -> alt.LayerChart:
    """Point with its interval for each word: blue for the predicted class, orange against it."""
    drawn = table.assign(Side=np.where(table["Mean"] > 0, "for", "against"))
    sides = alt.Scale(domain=["for", "against"], range=[color(theme, "for", STEPS), color(theme, "against", STEPS)])
    y = alt.Y("Word:N", sort=drawn["Word"].tolist(), title=None, axis=alt.Axis(labelLimit=140, labelFlush=False))
    base = alt.Chart(drawn).encode(
        y=y, color=alt.Color("Side:N", scale=sides, legend=None), tooltip=[f"{name}" for name in table.columns]
    )
    x = alt.X("Low:Q", title="Mean score for the predicted class", axis=alt.Axis(tickCount=5))
    zero = alt.Chart(pd.DataFrame({"zero": [0]})).mark_rule(color=PALETTES[theme].muted, strokeDash=[3, 3])
    layers = [
        zero.encode(x="zero:Q"),
        base.mark_rule(strokeWidth=4, strokeCap="round").encode(x=x, x2="High:Q"),
        base.mark_point(filled=True, opacity=1, size=110).encode(x="Mean:Q"),
    ]
    return style_chart(alt.LayerChart(layer=layers), ROW * len(drawn) + AXIS, theme)


def patches_chart(table: pd.DataFrame, rate: float, theme: Theme) -> alt.LayerChart:
    """Grid of the patches: significant ones in the color of their mean, the others with a dot."""
    places = table["Word"].str.extract(r"row (\d+), column (\d+)").astype(int)
    drawn = table.assign(Row=places[0], Column=places[1], Significant=significant(table, rate))
    largest = float(drawn["Mean"].abs().max()) or 1.0
    ends = [color(theme, "against", STEPS), PALETTES[theme].ground, color(theme, "for", STEPS)]
    scale = alt.Scale(domain=[-largest, 0, largest], range=ends, interpolate="lab")  # by hue it would pass through red
    base = alt.Chart(drawn).encode(
        x=alt.X("Column:O", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("Row:O", axis=alt.Axis(labelFlush=False)),
        tooltip=list(table.columns),
    )
    rest = "!datum.Significant"
    layers = [
        base.mark_rect(stroke=PALETTES[theme].line).encode(color=alt.Color("Mean:Q", scale=scale, title="Mean")),
        base.mark_rect(color=PALETTES[theme].ground, stroke=PALETTES[theme].line).transform_filter(rest),
        base.mark_text(text="·", fontSize=16, color=PALETTES[theme].muted).transform_filter(rest),
    ]
    return style_chart(alt.LayerChart(layer=layers), CELL * int(drawn["Row"].max()) + AXIS, theme)


def cite(plan: CorpusPlan) -> str:
    """Return a citation: version, data set, models, number of methods, seed and precision."""
    return (
        f"Exegesis {product_version()}. Words of {plan.dataset} that matter to {', '.join(plan.models)}, "
        f"{len(plan.methods_with_baselines)} methods, seed {plan.seed}, {plan.dtype}."
    )


PAGE = ExperimentPage(
    SESSION,
    ABOUT,
    results_area,
    failed="Some examples of {} failed. They are left out of the numbers.",
    entry=WORDS,
    recent=("Recent runs", "Runs of `exegesis corpus --job` are listed too."),
)
