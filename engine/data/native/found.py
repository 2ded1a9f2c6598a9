"""A data set in its own format: which splits there are and how one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.data.examples import Span
from engine.data.hub import ALIASES, in_order
from engine.data.jsonl import Row
from engine.errors import unknown


@dataclass(frozen=True)
class Reading:
    """The rows of a split, by the columns of the JSONL contract, and the files that they were read from.

    `labels`: the names of all classes in their order; None where the label is a score.
    """

    rows: Sequence[Row]
    files: Sequence[Path]
    labels: tuple[str, ...] | None = None


Read = Callable[[int | None], Reading]
"""Reads the first so many rows, or all."""


@dataclass(frozen=True)
class Found:
    """A folder or file of a known format. `aliases`: other names of its splits."""

    splits: Mapping[str, Read]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def chosen(self, split: str | None) -> str:
        """The split by whatever name; the usual one where none is asked for."""
        if split is None:
            return in_order(self.splits)[0]
        known = ALIASES | dict(self.aliases)
        name = known.get(split, split)
        if name not in self.splits:
            raise unknown("split", split, self.splits)
        return name


def word_places(text: str, words: Sequence[str]) -> list[Span] | None:
    """Where each word stands, one after another with only white space between; None where they do not fill the text."""
    places, at = list[Span](), 0
    for word in words:
        start = text.find(word, at)
        if start < 0 or text[at:start].strip():
            return None
        at = start + len(word)
        places.append((start, at))
    return None if text[at:].strip() else places


def placed(text: str, words: Sequence[str]) -> tuple[str, list[Span]]:
    """The text with the places of its words, or the words with a space between where they are not those of the text."""
    places = word_places(text, words)
    if places is not None:
        return text, places
    joined = " ".join(words)
    return joined, word_places(joined, words) or []


def runs(indices: Iterable[int], places: Sequence[Span]) -> list[list[int]]:
    """Words by their numbers as spans; neighbours are joined."""
    spans: list[list[int]] = []
    last = -2
    for index in sorted(set(indices)):
        start, end = places[index]
        if index == last + 1:
            spans[-1][1] = end
        else:
            spans.append([start, end])
        last = index
    return spans
