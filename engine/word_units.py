"""Units of a text: its tokens, words, sentences or turns, by character offsets into the original text.

`align` aligns the units of two versions of a text.

A word is a maximal run of characters without white space, and its score is the sum of its tokens' scores. Scripts
written without spaces (Chinese, Japanese, Thai, ...) have no such words: in a run that contains one of their characters
every token is its own unit. Tokens that share a character, or that split one visible character (byte-level pieces of an
emoji, a letter and its accent), can only be drawn together: they are one unit in all views.

A sentence ends with a period, a question mark, an exclamation mark or a line break. A turn is the text between two
special tokens: a message of a chat, a text of a pair.

Some tokens are white space only ("Ġ", "Ċ", "▁"): they have no characters of their own
(`engine.models.text_classifier` strips them) and are shown as a sign, never by the tokenizer's name for them.
"""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from engine.errors import unknown
from engine.registry import explainer
from engine.request import Example
from engine.result import Explanation, Token

UnitKind = Literal["token", "word", "sentence", "turn"]
UNITS: tuple[UnitKind, ...] = ("token", "word", "sentence", "turn")

BASELINE = "baseline"
"""The family of methods whose scores are a random order."""
ZERO_WIDTH_JOINER = "\u200d"
SPACE, TAB, BREAK = "␣", "⇥", "⏎"
"""The signs for units that consist of white space."""
# Scripts written without spaces between words, as [first, last] code points.
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # CJK radicals, symbols and punctuation, kana, bopomofo
    (0x31A0, 0x9FFF),  # more kana and bopomofo, CJK ideographs
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0xFF66, 0xFF9D),  # half-width kana
    (0x20000, 0x3FFFF),  # rarer ideographs
)
SENTENCE_END = re.compile(r"""[.!?…]+["'”’»)\]]*(?=\s)\s*|[。！？]+[」』”’）]*\s*|\s*\n\s*""")
"""Pattern of the end of a sentence, with the white space after it."""
ABBREVIATION = re.compile(r"\b(Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|cf|e\.g|i\.e|[A-Z])\.$")
"""Abbreviations and initials, whose period does not end a sentence."""


@dataclass(frozen=True)
class Unit:
    """A token, word, sentence or turn that is drawn, scored and ranked as one, with its place in its own text.

    `tokens`: positions of its tokens. `blank`: whether it consists of white space; `text` is then the sign for it.
    """

    text: str
    start: int
    end: int
    segment: int
    special: bool
    score: float
    tokens: tuple[int, ...]
    blank: bool = False


def units(
    tokens: Sequence[Token], scores: Float[np.ndarray, "seq"], example: Example, kind: str = "token"
) -> tuple[Unit, ...]:
    """Return the units of a kind in reading order; their scores add up to the same total for each kind."""
    if kind not in UNITS:
        raise unknown("unit", kind, UNITS)
    first, second = (*example.texts, "")[:2]
    texts = (first, second)
    return tuple(_unit(tokens, scores, group, texts) for group in _grouped(tuple(tokens), texts, kind))


@functools.lru_cache(maxsize=64)
def _grouped(tokens: tuple[Token, ...], texts: tuple[str, str], kind: str) -> tuple[tuple[int, ...], ...]:
    """Return the positions of each unit. Cached, since all maps of a text have the same units."""
    return tuple(map(tuple, _groups(tokens, texts, JOINED[kind])))


def units_of(explanation: Explanation, example: Example, kind: str = "token") -> tuple[Unit, ...]:
    """Return the units of an explanation as they are drawn, ranked and removed.

    Sums of ranks would put words of several tokens first. The words of the random baseline are therefore ranked by
    their first tokens, which makes every order equally probable; their scores are 1 to the number of words. Longer
    units are treated likewise.
    """
    all_units = units(explanation.tokens, explanation.scores, example, kind)
    by_chance = kind != UNITS[0] and explainer(explanation.provenance.method).family == BASELINE
    return _by_first_token(all_units, explanation.scores) if by_chance else all_units


def unit_scores(explanation: Explanation, example: Example, kind: str = "token") -> Float[np.ndarray, "unit"]:
    """Return a score for each unit that can be ranked, in reading order; special tokens cannot."""
    if kind == UNITS[0]:
        return explanation.scores[explanation.features]
    return np.array([unit.score for unit in units_of(explanation, example, kind) if not unit.special], dtype=np.float64)


def split_words(explanation: Explanation, example: Example) -> tuple[str, ...]:
    """Return, for each token that can be ranked, the word that it is a piece of; empty if it is not a piece.

    Punctuation around a word is not part of it.
    """
    words = {at: unit for unit in units_of(explanation, example, "word") for at in unit.tokens}
    tokens = (unit for unit in units_of(explanation, example) if not unit.special)
    return tuple(_split_word(unit, words[unit.tokens[0]]) for unit in tokens)


def _split_word(unit: Unit, word: Unit) -> str:
    ends = [at for at, character in enumerate(word.text) if character.isalnum()]
    core = word.text[ends[0] : ends[-1] + 1] if ends else ""
    own = unit.text.strip()
    return core if own in core and own != core and any(map(str.isalnum, own)) else ""


def _by_first_token(all_units: Sequence[Unit], scores: Float[np.ndarray, "seq"]) -> tuple[Unit, ...]:
    places = [place for place, unit in enumerate(all_units) if not unit.special]
    ordered = sorted(places, key=lambda place: scores[all_units[place].tokens[0]])
    ranks = {place: float(rank) for rank, place in enumerate(ordered, start=1)}
    return tuple(replace(unit, score=ranks.get(place, unit.score)) for place, unit in enumerate(all_units))


Joined = Callable[[str, int, int, Token], bool]


def _groups(tokens: Sequence[Token], texts: Sequence[str], joined: Joined) -> Iterator[list[int]]:
    """Yield the positions of each unit. `joined(text, start, end, token)`: whether a token continues a unit."""
    group: list[int] = []
    start = end = 0
    for position, token in enumerate(tokens):
        last = tokens[group[-1]] if group else None
        together = last is not None and not token.special and last.segment == token.segment
        if together and joined(texts[token.segment], start, end, token):
            end = max(end, token.end)
            group.append(position)
            continue
        if group:
            yield group
        group, start, end = [position], token.start, token.end
    if group:
        yield group


def _inseparable(text: str, start: int, end: int, token: Token) -> bool:
    return token.start < end or (end > start and token.start == end and _inside_character(text, end))


def _same_word(text: str, start: int, end: int, token: Token) -> bool:
    if _inseparable(text, start, end, token):
        return True
    between = text[max(start, end - 1) : max(token.start + 1, token.end)]
    return not any(c.isspace() for c in between) and not any(map(_unspaced, _run(text, token.start)))


def _same_sentence(text: str, start: int, end: int, token: Token) -> bool:
    # A white-space token is located at the end of the white space, but belongs to the text before it.
    place = token.start if token.start < token.end else max(start, token.start - 1)
    starts = _sentence_starts(text)
    return _inseparable(text, start, end, token) or bisect_right(starts, start) == bisect_right(starts, place)


@functools.lru_cache(maxsize=64)
def _sentence_starts(text: str) -> tuple[int, ...]:
    """Return the offsets at which the sentences after the first one start."""
    cased = text != text.lower()  # otherwise every sentence starts in lower case
    starts = []
    for end in SENTENCE_END.finditer(text):
        goes_on = cased and text[end.end() : end.end() + 1].islower()
        short = ABBREVIATION.search(text, max(0, end.start() - 6), end.start() + 1)
        if "\n" in end[0] or not (goes_on or short):
            starts.append(end.end())
    return tuple(starts)


def _same_turn(text: str, start: int, end: int, token: Token) -> bool:
    return True


JOINED: Mapping[str, Joined] = {
    "token": _inseparable, "word": _same_word, "sentence": _same_sentence, "turn": _same_turn,
}  # fmt: skip
"""By kind of unit, the function that says whether a token continues the unit before it."""


def _run(text: str, position: int) -> str:
    """Return the run of characters without white space around a position."""
    start = end = position
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[start:end]


def _unspaced(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in UNSPACED)


def _inside_character(text: str, i: int) -> bool:
    """Whether position `i` is inside a user-perceived character (the usual cases of UAX 29)."""
    if not 0 < i < len(text):
        return False
    before, after = text[i - 1], text[i]
    if after == ZERO_WIDTH_JOINER or unicodedata.category(after) in ("Mn", "Me", "Mc"):
        return not before.isspace()
    if 0x1F3FB <= ord(after) <= 0x1F3FF or 0xE0020 <= ord(after) <= 0xE007F:
        return not before.isspace()
    if before == ZERO_WIDTH_JOINER:
        return unicodedata.category(after) == "So"
    return _is_flag_half(after) and _flag_halves_before(text, i) % 2 == 1


def _is_flag_half(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _flag_halves_before(text: str, i: int) -> int:
    count = 0
    while count < i and _is_flag_half(text[i - count - 1]):
        count += 1
    return count


def _unit(
    tokens: Sequence[Token], scores: Float[np.ndarray, "seq"], group: Sequence[int], texts: Sequence[str]
) -> Unit:
    members = [tokens[position] for position in group]
    own = [token for token in members if token.start < token.end] or members  # white space does not extend a unit
    first, start, end = members[0], min(t.start for t in own), max(t.end for t in own)
    total = float(sum(scores[position] for position in group))
    if first.special:
        return Unit(first.text, start, end, first.segment, True, total, tuple(group))
    text = texts[first.segment]
    blank = not text[start:end].strip()
    name = _mark(text, start, end) if blank else text[start:end]
    return Unit(name, start, end, first.segment, False, total, tuple(group), blank)


def _mark(text: str, start: int, end: int) -> str:
    """Return the sign for the white space in the span; if the span is empty, for that before it, else after it."""
    # Stripped offsets of white space are at its end, so the white space that the token read is before them.
    near = (text[start:end], text[max(0, start - 1) : start], text[end : end + 1])
    white = next((part for part in near if part.isspace()), " ")
    return BREAK if len(white.splitlines()[0]) < len(white) else TAB if "\t" in white else SPACE


Piece = Token | Unit
Name = tuple[str, bool]
"""A piece's text, and whether it is special."""
Kind = Literal["kept", "changed", "inserted", "deleted"]
TEXTS = 2
"""Number of texts: the first one, and the second one of a pair."""


@dataclass(frozen=True)
class AlignedColumn:
    """Aligned positions in two versions, or one position: `deleted` is only in the parent, `inserted` in the child.

    `text`: 0 in the first text, 1 in the second of a pair.
    """

    parent: int | None
    child: int | None
    kind: Kind
    text: int = 0


def align(parent: Sequence[Piece], child: Sequence[Piece]) -> tuple[AlignedColumn, ...]:
    """Align two versions: each piece appears once, in reading order. First and second texts are aligned separately.

    Pieces with the same text are kept: the common prefix and suffix, and between them difflib's longest matching blocks
    (Ratcliff and Metzener, 1988). Between the blocks, pieces are paired in order as changed, and the remaining ones are
    deleted or inserted.
    """
    versions = zip(_by_text(parent), _by_text(child), strict=True)
    return tuple(
        AlignedColumn(*opposite, text)
        for text, (before, after) in enumerate(versions)
        for opposite in _opposite(parent, before, child, after)
    )


def _by_text(pieces: Sequence[Piece]) -> list[list[int]]:
    """Return positions by text. A special token belongs to the text before it, those at the start to the first text."""
    found: list[list[int]] = [[] for _ in range(TEXTS)]
    current = 0
    for position, piece in enumerate(pieces):
        current = current if piece.special else piece.segment
        found[current].append(position)
    return found


def _opposite(
    parent: Sequence[Piece], before: Sequence[int], child: Sequence[Piece], after: Sequence[int]
) -> Iterator[tuple[int | None, int | None, Kind]]:
    names = [(parent[i].text, parent[i].special) for i in before], [(child[i].text, child[i].special) for i in after]
    for tag, start, end, first, last in _steps(*names):
        old, new = before[start:end], after[first:last]
        both = min(len(old), len(new))
        kind: Kind = "kept" if tag == "equal" else "changed"
        yield from ((i, j, kind) for i, j in zip(old[:both], new[:both], strict=True))
        yield from ((i, None, "deleted") for i in old[both:])
        yield from ((None, j, "inserted") for j in new[both:])


def _steps(old: Sequence[Name], new: Sequence[Name]) -> list[tuple[str, int, int, int, int]]:
    """Return the edit operations from the old names to the new ones, as difflib's opcodes."""
    # Otherwise one changed word in "good good good good" would be found as the longest block shifted by one.
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    ends = len(old) - tail, len(new) - tail
    # No autojunk: it would ignore the frequent tokens of long texts.
    between = difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        *((tag, head + start, head + end, head + first, head + last) for tag, start, end, first, last in between),
        ("equal", ends[0], len(old), ends[1], len(new)),
    ]


def _shared(old: Sequence[Name], new: Sequence[Name]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))
