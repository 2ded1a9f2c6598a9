"""The list of examples as columns, and what it amounts to in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.browse.rows import CONFIDENT, Row, Table
from components.browse.state import Browse
from components.numbers import count, percent, plain
from engine.table_io import escape_cell

if TYPE_CHECKING:
    import pandas

MOST_SHOWN = 1000
"""More rows are not sent to the browser."""
MOST_CHARACTERS = 160
COMPARING = {"disagree", "agree"}
JUDGING = {"right", "wrong", "confident_wrong", "mistakes", "off", "error"}
PREDICTING = JUDGING | {"unsure", "confident", "doubtful"}
"""Filters and orders by what they need to know."""
JUDGED = {True: "✓ right", False: "✗ wrong", None: ""}


def frame(rows: Sequence[Row], found: Table) -> pandas.DataFrame:
    """The columns that have something to say, the first `MOST_SHOWN` rows."""
    import pandas

    shown = rows[:MOST_SHOWN]
    columns: dict[str, list[object]] = {"#": [row.index for row in shown], "Text": [_cell(row.text) for row in shown]}
    if any(row.pair is not None for row in found.rows):
        columns["Second text"] = [_cell(row.pair or "") for row in shown]
    if any(row.label is not None for row in found.rows):
        columns["Label"] = [_cell(row.label or "") for row in shown]
    columns |= _answers(shown, found)
    if found.compared:
        columns["Disagreement"] = [row.disagreement for row in shown]
    columns["Length"] = [row.length for row in shown]
    if any(row.marked for row in found.rows):
        columns["Rationale"] = [_cell(row.marked) for row in shown]
    return pandas.DataFrame(columns)


def _answers(shown: Sequence[Row], found: Table) -> dict[str, list[object]]:
    if found.regression is None:
        return {}
    if found.regression:
        scores: dict[str, list[object]] = {"Score": [row.score for row in shown]}
        return scores | ({"Error": [row.error for row in shown]} if found.judged else {})
    answers: dict[str, list[object]] = {
        "Prediction": [_cell(row.predicted or "") for row in shown],
        "Confidence": [row.confidence for row in shown],
    }
    return answers | ({"Verdict": [JUDGED[row.right] for row in shown]} if found.judged else {})


def _cell(text: str) -> str:
    """One line, not endless; and no formula where the table is saved as a file for a spreadsheet."""
    line = " ".join(text.split())
    return escape_cell(line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…")


def summary(found: Table) -> str:
    """How many there are, how many of them the model gets right, and what cannot be told."""
    told = [count(len(found.rows), "example")]
    if found.predicted < len(found.rows):
        told.append(f"{found.predicted:,} predicted" if found.predicted else "none predicted yet")
    return " ".join(filter(None, [f"{', '.join(told)}.", _accuracy(found), found.said]))


def _accuracy(found: Table) -> str:
    errors = [row.error for row in found.rows if row.error is not None]
    if errors:
        return f"Mean absolute error {plain(sum(errors) / len(errors))} on {count(len(errors), 'labelled example')}."
    verdicts = [row for row in found.rows if row.right is not None]
    if not verdicts:
        return ""
    wrong = [row for row in verdicts if not row.right]
    right = len(verdicts) - len(wrong)
    surely = sum((row.confidence or 0) >= CONFIDENT for row in wrong)
    return (
        f"Accuracy {percent(right / len(verdicts))}: {right:,} of {len(verdicts):,} right, {len(wrong):,} wrong, "
        f"{surely:,} of these with a confidence of at least {CONFIDENT:.0%}."
    )


def unanswered(found: Table, browse: Browse) -> str:
    """Why the list cannot be filtered or sorted as asked, and what to do; empty where it can."""
    asked = {browse.show, browse.sort}
    if asked & COMPARING and not found.compared:
        return "Not compared yet: press Compare methods above."
    if asked & PREDICTING and not found.predicted:
        return "Not predicted yet: press Predict above."
    return found.said if asked & JUDGING and not found.judged else ""


def left_out(found: Table, titles: dict[str, str]) -> str:
    """Which methods could not be compared on how many examples, because all their scores are equal."""
    counts: dict[str, int] = {}
    for method in (method for row in found.rows for method in row.left_out):
        counts[method] = counts.get(method, 0) + 1
    told = ", ".join(f"{titles.get(method, method)} on {count(n, 'example')}" for method, n in counts.items())
    return f"Left out, because all its scores are equal and have no order: {told}." if told else ""


def place(listed: Sequence[int], current: int | None) -> str:
    """Where the example stands in the list: 3 of 41 listed."""
    if not listed:
        return "none listed"
    if current in listed:
        return f"{listed.index(current) + 1:,} of {len(listed):,} listed"
    return f"{len(listed):,} listed; the example above is not among them"


def steps(listed: Sequence[int], current: int | None) -> tuple[int | None, int | None]:
    """The example before and the one after; from outside the list its last and its first."""
    if not listed:
        return None, None
    if current not in listed:
        return listed[-1], listed[0]
    at = listed.index(current)
    return (listed[at - 1] if at else None), (listed[at + 1] if at + 1 < len(listed) else None)
