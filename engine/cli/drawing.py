"""Explanations as a table for people: tokens or patches as rows, methods as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from engine.cli.output import console, table, visible

if TYPE_CHECKING:
    from rich.table import Table

    from engine.result import Check, Explanation

LARGEST_SHOWN = 3
LONGEST_TOKEN = 24
MOST_CLASSES = 10
GAP = 3


def draw(told: Sequence[str], explanations: Sequence[Explanation]) -> None:
    """Prints lines that say what the input is, the prediction, as many tables as the width needs, and all notes."""
    out = console()
    for line in header(told, explanations[0]):
        out.print(line)
    for group in _fitting(explanations, out):
        out.print()
        out.print(_table(group))
    for line in _notes(explanations):
        out.print(line)


def header(told: Sequence[str], first: Explanation) -> Iterator[Text]:
    """What ran where, what the input is, and the prediction."""
    origin = first.provenance
    yield Text(visible(f"{origin.model}, revision {origin.revision}, {origin.dtype} on {origin.device}"), style="dim")
    yield from (Text(visible(line)) for line in told)
    yield Text(visible(_predicted(first)), style="bold")


def _predicted(first: Explanation) -> str:
    made, origin = first.prediction, first.provenance
    if made.regression:
        return f"score {made.logits[0]:.4f}"
    ranked = sorted(zip(made.labels, made.probabilities, strict=True), key=lambda pair: -pair[1])
    shares = ", ".join(f"{label} {share:.4f}" for label, share in ranked[:MOST_CLASSES])
    if len(ranked) > MOST_CLASSES:
        shares += f" and {len(ranked) - MOST_CLASSES:,} more"
    return f"predicted {made.label} ({shares}); explained: {origin.target_label}"


def _fitting(explanations: Sequence[Explanation], out: Console) -> Iterator[Sequence[Explanation]]:
    room = out.width - LONGEST_TOKEN
    start = used = 0
    for end, explanation in enumerate(explanations):
        width = max(len(explanation.provenance.method), 12) + GAP
        if used and used + width > room:
            yield explanations[start:end]
            start, used = end, 0
        used += width
    yield explanations[start:]


def _table(group: Sequence[Explanation]) -> Table:
    names = [e.provenance.method for e in group]
    made = table(["token" if group[0].grid is None else "patch", *names], right=names)
    columns = [list(_scores(e)) for e in group]
    last = len(group[0].tokens) - 1
    for position, token in enumerate(group[0].tokens):
        name = Text(visible(token.text)[:LONGEST_TOKEN], style="dim" if token.special else "")
        made.add_row(name, *(column[position] for column in columns), end_section=position == last)
    checks = [() if e.check is None else e.check.parts for e in group]
    made.add_row("check", *(_checked(parts[0]) if parts else "none" for parts in checks))
    if any(len(parts) > 1 for parts in checks):
        made.add_row("second check", *(_checked(parts[1]) if len(parts) > 1 else "" for parts in checks))
    made.add_row("evaluations", *(f"{e.evaluations:,}" for e in group))
    made.add_row("seconds", *(f"{e.seconds:.3f}{' (cached)' if e.cached else ''}" for e in group))
    return made


def _scores(explanation: Explanation) -> Iterator[Text]:
    """One cell a token; the largest by absolute value stand out, special tokens recede."""
    scores, features = explanation.scores, explanation.features
    order = features[np.argsort(-np.abs(scores[features]), kind="stable")]
    top = {i for i in order[:LARGEST_SHOWN].tolist() if scores[i]}
    largest = float(np.abs(scores).max(initial=0.0))
    fixed = largest == 0 or 1e-2 <= largest < 1e4
    for position, (token, score) in enumerate(zip(explanation.tokens, scores, strict=True)):
        style = "dim" if token.special else "bold" if position in top else ""
        yield Text(f"{score:.4f}" if fixed else f"{score:.3e}", style=style)


def _checked(check: Check) -> str:
    return f"{check.value:.1e} {'ok' if check.ok else 'too large'}"


def _notes(explanations: Sequence[Explanation]) -> Iterator[Text]:
    """Each note once, with the methods that it belongs to, unless that is all of them."""
    owners: dict[str, list[str]] = {}
    for explanation in explanations:
        name = explanation.provenance.method
        for note in explanation.remarks:
            owners.setdefault(note, []).append(name)
        for part in () if explanation.check is None else explanation.check.parts:
            if not part.ok:
                said = f"{part.name} is {part.value:.2e}, above its limit {part.limit:.0e}."
                owners.setdefault(said, []).append(name)
    for note, names in owners.items():
        who = "" if len(names) == len(explanations) else f"{', '.join(names)}: "
        yield Text(f"note: {who}{visible(note)}")
