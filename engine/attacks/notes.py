"""What a reader of an attack must be told beside its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.attacks.ascent import Ascended
from engine.attacks.params import MIXED, PIXELS, AttackParams
from engine.input_kinds import input_kind
from engine.task import Item

if TYPE_CHECKING:
    from engine.attacks.findings import AttackOutcome

NOTHING_MOVES = "Epsilon is 0: nothing may move, so nothing changed."
NOTHING_FOUND = "No step was better than to change nothing, so the input is as it was: the map withstood this attack."
MIXED_SCALES = (
    "Mixed quantities: the map is of the logit, often tens, and the penalty a squared change of the probability, at "
    "most 1, so that it hardly counts unless beta is much larger than alpha."
)
FLAT = "The map is zero everywhere before the attack: its top is a matter of chance."


def notes_of(item: Item, params: AttackParams, ended: Ascended) -> tuple[str, ...]:
    """The sentences that this attack needs; none where all went as usual."""
    return tuple(_notes(item, params, ended))


def _notes(item: Item, params: AttackParams, ended: Ascended) -> Iterator[str]:
    encoded, n = item.encoded, len(item.encoded.features)
    if encoded.truncated:
        total = len(encoded) + encoded.truncated
        yield f"The text is longer than the model reads: {encoded.truncated} of its {total} tokens were cut off."
    if params.top_k > n:
        yield f"top_k is {params.top_k:g}, but {_only(n, input_kind(encoded.kind).feature)} attacked."
    if not ended.before[encoded.features].any():
        yield FLAT
    for start, where in ended.broken.items():
        which = "Stopped" if params.starts == 1 else f"Start {start + 1} of {params.starts} stopped"
        yield f"{which} at {where} was no finite number. What was best before is kept."
    if params.quantity == MIXED and params.objective == "constrained":
        yield MIXED_SCALES
    if params.bound == 0:
        yield NOTHING_MOVES
    elif ended.best is None and not ended.failed:
        yield NOTHING_FOUND


def _only(n: int, noun: str) -> str:
    return f"there is only 1 {noun}: it is" if n == 1 else f"there are only {n} {noun}s: all of them are"


def reach_words(params: AttackParams, relative: float | None) -> str:
    """How far epsilon lets a position move, as a multiple of what is there; empty where that is not known."""
    if relative is None:
        return ""
    if params.place == PIXELS:
        return f"epsilon {params.bound:.3g} is {relative:.1%} of the range of a color"
    return (
        f"epsilon {params.bound:.3g} allows a change of up to {relative:.3g} times the median length of the embeddings"
    )


def reach_of_many(outcomes: Sequence[AttackOutcome], params: AttackParams) -> Iterator[str]:
    """How far epsilon lets a position move, a sentence a model; of the examples' multiples the median and the range."""
    for model in dict.fromkeys(one.model for one in outcomes):
        own = [one.relative_epsilon for one in outcomes if one.model == model and one.relative_epsilon is not None]
        if not own:
            continue
        words = reach_words(params, float(np.median(own)))
        spread = f" ({min(own):.3g} to {max(own):.3g} over the examples)" if min(own) < max(own) else ""
        yield f"{model}: {words}{spread}."


def notes_of_many(notes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each kind of note: how many attacks have it, and what the first of them says.

    `notes`: which attack it is, and its note. Those that differ in their numbers alone are of one kind.
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for attack, note in notes:
        kinds.setdefault(re.sub(r"\d[\d.]*", "", note), []).append((attack, note))
    for own in kinds.values():
        attack, note = own[0]
        yield f"{attack}: {note}" if len(own) == 1 else f"{len(own)} attacks, such as {attack}: {note}"
