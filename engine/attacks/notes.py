"""What a reader of an attack must be told beside its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
        yield f"top_k is {params.top_k:g}, but {_only(n, noun(encoded))} attacked."
    if not ended.before[encoded.features].any():
        yield FLAT
    if ended.broken:
        yield f"Stopped at {ended.broken} was no finite number. What was best before is kept."
    if params.bound == 0:
        yield NOTHING_MOVES
    elif ended.best is None:
        yield NOTHING_FOUND


def _only(n: int, noun: str) -> str:
    return f"there is only 1 {noun}: it is" if n == 1 else f"there are only {n} {noun}s: all of them are"


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
