"""One example on the Ask the model page: each question, the truth, the direct answer, and every method's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import streamlit as st

from components.behavior.answers import interval_words
from components.behavior.view import SESSION, budget_words, way_title
from components.errors import show_note
from components.experiment.runs import CachedResults
from components.experiment.state import ExperimentState, view_select
from components.numbers import brief, count, percent, plain
from components.styles import use_sheet
from components.widgets.patch_map import data_url
from engine.behavior.plan import DELETE, FEATURE, LOCAL, PARTS, QUERY, BehaviorPlan
from engine.behavior.result import ModelBehavior, WayAccuracy
from engine.errors import ExegesisError
from engine.format import plural, shorten
from engine.metrics.results import share_interval
from engine.request import Example, Picture
from engine.vision.picture import read_view

RIGHT, WRONG = ("✓", "right"), ("✗", "wrong")
CONTROLS = {"text": "as many other words of the text", "image": "a region of the same size elsewhere"}
HIDDEN = {"text": "Muted rows do not count", "image": "Patches that do not count have no row"}
LONGEST = 70
SIDE = 96
"""Width of a picture in pixels."""
EMPTY = "No example has a question here. The reasons are listed below."
LEGENDS = {
    LOCAL: "Truth and direct answers: the mean fall of the probability in percentage points, with a 95% interval. "
    "Methods: the score of the {part}, of which a positive one says that the probability falls; of a method without "
    "signs, one above its mean. ✓ right, ✗ wrong. {hidden}: the effect is below the smallest change, or its sign "
    "is uncertain.",
    FEATURE: "The second question is about {control}, as a control. Methods: the rank of the best of these {parts} "
    "among all, 1 for the highest score, which counts as yes. ✓ right, ✗ wrong.",
}
RECOURSE_LEGEND = "✓ the class changes, ✗ it does not. A method removes its highest scores in order, and each is tried."


def example_area(state: ExperimentState, results: CachedResults, titles: Mapping[str, str]) -> None:
    """Draw the choice of the model and the example, and the questions about it."""
    st.subheader("One example", anchor=False)
    models: Mapping[str, ModelBehavior] = {one.model: one for one in results.found}
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        if len(models) > 1:
            name = view_select(SESSION, state, "Model", "of", {name: name for name in models}, 220)
        else:
            [name] = models
        found = models[name]
        listed = {str(index): f"#{index} {_title(results, index)}" for index in _in_order(found)}
        index = int(view_select(SESSION, state, "Example", "example", listed, 560)) if listed else -1
    if not listed:
        show_note(EMPTY)
        return
    use_sheet("questions")
    use_sheet("behavior")
    shown = _picture_html(results, index) if state.kind == "image" else _text_html(_text(results, index))
    st.html(example_html(found, results.plan, found.examples.index(index), shown, titles))


def _in_order(found: ModelBehavior) -> list[int]:
    """Return the indices of the examples; those with a question that counts come first."""
    counts = {index: bool(found.counted[found.cases_of(place)].any()) for place, index in enumerate(found.examples)}
    return sorted(found.examples, key=lambda index: not counts[index])


def _text(results: CachedResults, index: int) -> str:
    """Return the text of an example, or the label of a picture; empty if it cannot be read."""
    try:
        one = results.sample.source.read(index)
    except ExegesisError:
        return ""
    if isinstance(one.input, Example):
        return " / ".join(filter(None, (one.input.text, one.input.text_pair)))
    return f"label {one.label}" if one.label is not None else ""


def _text_html(text: str) -> str:
    return f'<p class="xg-text" dir="auto"><bdi>{escape(text)}</bdi></p>'


def _picture_html(results: CachedResults, index: int) -> str:
    """HTML of the picture as the model sees it; empty if it can no longer be read."""
    try:
        own = results.sample.source.read(index).input
    except ExegesisError:
        return ""
    if not isinstance(own, Picture):
        return ""
    pixels = read_view(results.plan.models[0]).transform(own.pixels)
    return f'<img src="{data_url(pixels)}" width="{SIDE}" alt="Picture {index} as the model sees it.">'


def _title(results: CachedResults, index: int) -> str:
    return shorten(_text(results, index), LONGEST)


def example_html(
    found: ModelBehavior, plan: BehaviorPlan, position: int, shown: str, titles: Mapping[str, str]
) -> str:  # fmt: skip
    """HTML of an example, its prediction and its questions. `shown`: HTML of the input; everything else is escaped."""
    value = float(found.probabilities[position])
    said = f"Predicted {found.targets[position]}, {percent(value) if 0 <= value <= 1 else plain(value)}."
    legend = LEGENDS.get(plan.task, RECOURSE_LEGEND).format(
        part=PARTS[plan.kind], parts=plural(PARTS[plan.kind]), control=CONTROLS[plan.kind], hidden=HIDDEN[plan.kind]
    )
    rows = _recourse_rows(found, plan, position, titles) if plan.task not in LEGENDS else None
    table = _table(*(rows or _case_rows(found, plan, position, titles)))
    return f'<div class="xg">{shown}<p class="xg-small">{escape(said)}</p>{table}<p class="xg-small">{legend}</p></div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table that scrolls if it is too wide, or a sentence if it has no rows. The cells are HTML."""
    if not rows:
        return "<p>No question about this picture counts.</p>"
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return (
        '<div class="xg-scroll xg-asked-box" role="region" tabindex="0" aria-label="Answers on this example">'
        f'<table class="xg-table xg-asked"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _mark(right: bool, text: str) -> str:
    """HTML of an answer with its mark, which does not rely on color alone."""
    sign, name = RIGHT if right else WRONG
    side = "xg-is-right" if right else "xg-is-wrong"
    mark = f'<i aria-hidden="true">{sign}</i><span class="xg-hidden">{name}: </span>'
    return f'<span class="{side}">{mark}</span> {escape(text)}'


def _case_rows(
    found: ModelBehavior, plan: BehaviorPlan, position: int, titles: Mapping[str, str]
) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows, one per question: truth, direct answer with the largest budget, answer of each method."""
    last = len(found.ways) - 1
    ways = [last, *(at for at, way in enumerate(found.ways) if not way.startswith(QUERY))]
    asked = f"Ask: {budget_words(plan.budgets[-1], plan)}"
    first = [PARTS[plan.kind].capitalize(), "Truth"] if plan.task == LOCAL else ["Changed", "Truth"]
    heads = [*first, asked, *(titles.get(found.ways[at], found.ways[at]) for at in ways[1:])]
    rows = []
    answered = found.answered[position]
    for case in found.cases_of(position).tolist():
        if plan.kind == "image" and not found.counted[case]:
            continue
        cells = [_answer(found, plan, case, at) for at in ways]
        if found.counted[case]:
            right = found.yes[case] == (found.truth[case] > 0)
            pairs = zip(ways, cells, strict=True)
            cells = [_mark(bool(right[at]), cell) if answered[at] else cell for at, cell in pairs]
        else:
            cells = [f'<span class="xg-small">{escape(cell)}</span>' for cell in cells]
        if plan.task == LOCAL and plan.edit != DELETE:
            cells[0] += _draws(found, plan, case)
        rows.append([f"<bdi>{escape(found.words[case])}</bdi>", _truth(found, plan, case), *cells])
    return heads, rows


def _truth(found: ModelBehavior, plan: BehaviorPlan, case: int) -> str:
    truth = float(found.truth[case])
    if plan.task == FEATURE:
        return "changes the class" if truth > 0 else "class stays"
    error = float(found.truth_error[case])
    text = f"{'falls' if truth > 0 else 'rises'} {fall_text(truth)}{f' ± {fall_text(error)}' if error else ''}"
    return f"<b>{escape(text)}</b>" if found.counted[case] else f'<span class="xg-small">{escape(text)}</span>'


def _draws(found: ModelBehavior, plan: BehaviorPlan, case: int) -> str:
    """HTML of how many replacements of the largest budget lower the probability, with the interval of that share."""
    hits, draws = int(found.falls[case]), plan.budgets[-1]
    share = interval_words(share_interval(hits, draws))
    return f'<br><span class="xg-small">falls in {hits} of {draws} ({share})</span>'


def fall_text(value: float) -> str:
    """Format a fall in percentage points, without its sign: the word before it gives the direction.

    A small fall gets more digits instead of 0.00.
    """
    number = 100 * abs(value)
    return f"{number:.2f}" if number >= 0.005 or not number else plain(number)


def _answer(found: ModelBehavior, plan: BehaviorPlan, case: int, at: int) -> str:
    """Return the answer of a way in words. `at`: index of the way. Not escaped."""
    value, is_query = float(found.values[case, at]), found.ways[at].startswith(QUERY)
    if np.isnan(value):
        return "failed"
    if plan.task == FEATURE:
        if is_query:
            return f"{'yes' if found.yes[case, at] else 'no'} ({value:.0f} of {plan.budgets[-1]})"
        return f"{'yes' if found.yes[case, at] else 'no'} (rank {value:.0f})"
    word = "falls" if found.yes[case, at] else "rises"
    if is_query and value == 0:
        return "no change"
    if not is_query:
        column = np.abs(found.values[found.cases_of(int(found.owner[case])), at])
        return f"{word} ({brief(value, float(column.max()), sign=True)})"
    error = float(found.errors[case, at])
    if plan.edit == DELETE:
        return f"{word} {fall_text(value)}"
    return f"{word} {fall_text(value)}" if np.isnan(error) else f"{word} {fall_text(value)} ± {fall_text(error)}"


def _recourse_rows(
    found: ModelBehavior, plan: BehaviorPlan, position: int, titles: Mapping[str, str]
) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows, one per way: what it removes, how many, and its evaluations."""
    [case] = found.cases_of(position).tolist()
    number = float(found.truth[case])
    smallest = found.words[case] if number else f"none of at most {count(plan.size, PARTS[plan.kind])}"
    rows = [["All removals", _removal(smallest, number > 0), _words(number), ""]]
    order = [at for at, way in enumerate(found.ways) if way.startswith(QUERY)]
    order += [at for at in range(len(found.ways)) if at not in order]
    for at in order:
        way = WayAccuracy(found.ways[at], None, None, 0.0)
        success, cost = bool(found.yes[case, at]), f"{int(found.evaluations[position, at]):,}"
        text = found.edits[case][at] if success else "class stays"
        name = escape(way_title(way, plan, titles))
        if np.isnan(found.values[case, at]):
            rows.append([name, "failed", "–", ""])
            continue
        rows.append([name, _mark(success, text), _words(float(found.values[case, at])), cost])
    return ["Way", "Removes", plural(PARTS[plan.kind]).capitalize(), "Evaluations"], rows


def _removal(text: str, flips: bool) -> str:
    return f"<b><bdi>{escape(text)}</bdi></b>" if flips else escape(text)


def _words(number: float) -> str:
    return f"{number:.0f}" if number else "–"
