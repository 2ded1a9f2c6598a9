"""The verdict of each method on one model: a mark in words, and the reason in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from components.randomization.words import JUDGED
from engine.randomization.stages import not_applicable

if TYPE_CHECKING:
    from engine.randomization.curves import Verdict

WORDS = {
    "at_once": "falls at once",
    "falls": "falls to zero",
    "partly": "falls in part",
    "high": "stays high",
    "invariant": "does not change",
    "unsure": "cannot be told yet",
    "no_order": "no correlation",
    "same_model": "not tested: the model answers as before",
    "baseline": "baseline",
}
"""By the kind of a verdict."""
MARKS = {True: ("✓", "depends on the model"), False: ("✗", "does not as it should"), None: ("·", "")}
NOT_MEANT = "not meant for it"


def verdicts_html(verdicts: Sequence[Verdict], titles: Mapping[str, str], kind: str, model: str) -> str:
    """A row a method."""
    return judged_html([(titles.get(one.method, one.method), one) for one in verdicts], kind, f"Verdicts on {model}")


def judged_html(verdicts: Sequence[tuple[str, Verdict]], kind: str, label: str) -> str:
    """A row a verdict, by what it is of. Everything that is not ours is escaped."""
    rows = "".join(_row(name, one, kind) for name, one in verdicts)
    return (
        f'<div class="xg"><div class="xg-judged" role="list" aria-label="{escape(label)}">{rows}</div>'
        f'<p class="xg-small">{JUDGED}</p></div>'
    )


def word_of(one: Verdict, kind: str) -> str:
    """The verdict in two or three words."""
    word = WORDS[one.kind]
    return f"{word}, {NOT_MEANT}" if not_applicable(one.method, kind) else word


def _row(name: str, one: Verdict, kind: str) -> str:
    mark, meaning = MARKS[one.passes]
    side = {True: " xg-good", False: " xg-fails", None: ""}[one.passes]
    told = f'<span class="xg-small"> · {meaning}</span>' if meaning else ""
    return (
        f'<div class="xg-judgement{side}" role="listitem"><p class="xg-title"><i aria-hidden="true">{mark}</i> '
        f"{escape(name)}</p><p><b>{escape(word_of(one, kind))}</b>{told}</p>"
        f'<p class="xg-small">{escape(one.reason)}</p></div>'
    )
