"""Errors that machines and hurried people make, put into a translation so that it is known which words they spoil."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from engine.data.quality.lexicon import SPURIOUS
from engine.data.quality.sentence import ARTICLE, NUMBER, TENSE, WORD, Sense, Sentence

MOST = 0.6
"""Share of words that a translation has errors in, at most."""
RIGHT = 0.12
"""Share of translations without any."""


@dataclass(frozen=True, eq=False)
class Word:
    """A word of the translation; `sense` is None where nothing in the source asks for it."""

    text: str
    sense: Sense | None
    bad: bool = False


@dataclass(frozen=True)
class Translation:
    """`words` as they came out, `missing` what was left out, `lost` what of the source does not come across.

    `errors`: their kinds in the order in which they were made.
    """

    words: tuple[Word, ...]
    missing: tuple[Sense, ...] = ()
    lost: tuple[Sense, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Share of intact words, 0 to 1: of those that are there and those that should be."""
        intact = sum(not word.bad for word in self.words)
        return intact / (len(self.words) + len(self.missing))


def translated(sentence: Sentence, chance: Random) -> Translation:
    """A translation with errors in none to about six of ten words; each word of the source is spoilt once at most."""
    made = Translation(tuple(Word(sense.german, sense) for sense in sentence.target))
    wanted = 0 if chance.random() < RIGHT else round(chance.random() * MOST * len(made.words))
    free = list(sentence.target)
    chance.shuffle(free)
    while free and len(made.errors) < wanted:
        made = _spoilt(made, free.pop(), free, chance)
    return made


def _spoilt(made: Translation, sense: Sense, free: list[Sense], chance: Random) -> Translation:
    """With an error in one word; as it was where no kind of error fits the word."""
    # A wrong form fits few words, so it is tried first more often than not.
    kinds = sorted(ERRORS, key=lambda kind: chance.random() * (0.4 if kind.startswith("wrong") else 1))
    at = next(i for i, word in enumerate(made.words) if word.sense is sense)
    for kind in kinds:
        found = ERRORS[kind](made, at, sense, free, chance)
        if found is not None:
            return replace(found, errors=(*made.errors, kind))
    return made


def _put(made: Translation, at: int, words: tuple[Word, ...], sense: Sense | None = None) -> Translation:
    """With other words in place of one; `sense` no longer comes across."""
    lost = made.lost if sense is None else (*made.lost, sense)
    return replace(made, words=(*made.words[:at], *words, *made.words[at + 1 :]), lost=lost)


def _dropped(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
    return replace(_put(made, at, (), sense), missing=(*made.missing, sense))


def _doubled(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
    return _put(made, at, (made.words[at], Word(sense.german, None, True)))


def _added(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
    return _put(made, at, (made.words[at], Word(chance.choice(SPURIOUS), None, True)))


def _swapped(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
    """With the next word of the same phrase: there another order is never right."""
    after = made.words[at + 1] if at + 1 < len(made.words) else None
    if after is None or after.sense not in free or not sense.block or after.sense.block != sense.block:
        return None
    free.remove(after.sense)
    swapped = (replace(after, bad=True), replace(made.words[at], bad=True))
    return replace(made, words=(*made.words[:at], *swapped, *made.words[at + 2 :]))


def _untranslated(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
    if len(sense.english) > 1 or sense.english[0] == sense.german:
        return None
    return _put(made, at, (Word(sense.english[0], sense, True),), sense)


def _wrong(kind: str, comes_across: bool = False) -> Maker:
    """Another form of the word, or another word of the same form."""

    def make(made: Translation, at: int, sense: Sense, free: list[Sense], chance: Random) -> Translation | None:
        forms = [form for form in sense.wrong.get(kind, ()) if form != sense.german]
        if not forms:
            return None
        word = Word(chance.choice(forms), sense, True)
        return _put(made, at, (word,), None if comes_across else sense)

    return make


Maker = Callable[[Translation, int, Sense, list[Sense], Random], Translation | None]
ERRORS: dict[str, Maker] = {
    "dropped": _dropped,
    "doubled": _doubled,
    "added": _added,
    "swapped": _swapped,
    "untranslated": _untranslated,
    "wrong word": _wrong(WORD),
    "wrong number": _wrong(NUMBER),
    "wrong tense": _wrong(TENSE),
    "wrong article": _wrong(ARTICLE, comes_across=True),
}
