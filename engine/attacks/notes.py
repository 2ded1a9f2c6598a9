"""What a reader of an attack must be told beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from engine.attacks.ascent import Ascended
from engine.attacks.params import AttackParams
from engine.explain import noun
from engine.task import Item

NOTHING_MOVES = "Epsilon is 0: nothing may move, so nothing changed."
NOTHING_FOUND = "No step was better than to change nothing, so the input is as it was."
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
        yield f"top_k is {params.top_k:g}, but there are only {n} {noun(encoded)}s: all of them are attacked."
    if not ended.before[encoded.features].any():
        yield FLAT
    if ended.broken:
        yield f"Stopped at {ended.broken} was no finite number. What was best before is kept."
    if params.bound == 0:
        yield NOTHING_MOVES
    elif ended.best is None:
        yield NOTHING_FOUND
