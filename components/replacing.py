"""Other characters in the place of pinned tokens, in a text that may have been edited since. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from components.without import pinned
from engine.alignment import align
from engine.request import Example
from engine.result import Token

Span = tuple[int, int, int]
"""Which of the texts, 0 or 1, and its characters from the first to before the last."""


def replaceable(tokens: Sequence[Token], pins: Sequence[int]) -> Span | None:
    """What the pins span; None where they are not neighbours of one text."""
    chosen = pinned(pins, tokens)
    if not chosen or len(chosen) != chosen[-1] - chosen[0] + 1:
        return None
    spanned = [tokens[i] for i in chosen]
    if len({token.segment for token in spanned}) > 1:
        return None
    return spanned[0].segment, min(token.start for token in spanned), max(token.end for token in spanned)


def replaceable_in(edited: Sequence[Token], parent: Sequence[Token], pins: Sequence[int]) -> Span | None:
    """What stands in the edited text for the parent's pinned tokens; None where nothing does."""
    chosen, places, ours = pinned(pins, parent), list[int](), False
    for column in align(parent, edited):
        # What is inserted behind a changed token is the rest of what came in its place.
        ours = column.parent in chosen or (ours and column.kind == "inserted")
        if ours and column.child is not None:
            places.append(column.child)
        ours = ours and column.kind != "kept"
    return replaceable(edited, places)


def with_replaced(example: Example, span: Span, new: str) -> Example:
    """The example with other characters in the span. Blank ones delete it, with one of two spaces around it."""
    segment, start, end = span
    texts = [example.text, example.text_pair]
    old = texts[segment] or ""
    before, after = old[:start], old[end:]
    if not new.strip():
        new, double = "", (not before or before[-1].isspace()) and after[:1].isspace()
        after = after[1:] if double else after
    texts[segment] = f"{before}{new}{after}"
    return Example(texts[0] or "", texts[1])
