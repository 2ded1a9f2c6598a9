"""A review: clauses put together, of which the last word, the contrast or the sum decides."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from engine.data.build_reviews import unmark
from engine.data.grammar.domains import Domain
from engine.data.grammar.statement import Clause, clause, hearsay, verdict
from engine.data.grammar.words import CONTRASTS, SUMMED

ANY = "any"
LEAST = 2
"""Of a sum: less would be a matter of taste."""


@dataclass(frozen=True)
class Review:
    """`reasons`: where the words stand that the label follows from, in characters."""

    text: str
    positive: bool
    reasons: tuple[tuple[int, int], ...]
    kind: str
    traits: tuple[str, ...]


def review(domain: Domain, positive: bool, chance: Random, kind: str = ANY) -> Review:
    """A review of one thing of the domain whose meaning is the one asked for; it speaks of each part once.

    `kind`: one of `KINDS`, or any of them.
    """
    about = replace(domain, things=(chance.choice(domain.things),))
    while True:
        made = _review(about, 1 if positive else -1, chance, kind)
        if not _repeats(about, made.text):
            return made


def _review(about: Domain, sign: int, chance: Random, wanted: str) -> Review:
    drawn = chance.choices(tuple(KINDS), weights=(20, 32, 30, 18))[0]
    kind = drawn if wanted == ANY else wanted
    said = KINDS[kind](about, sign, chance)
    sentences = _scattered([made.text for made in said], _asides(about, chance), chance)
    text, spans = unmark(" ".join(map(_sentence, sentences)))
    traits = tuple(dict.fromkeys(trait for made in said for trait in made.traits))
    return Review(text, sign > 0, tuple((start, end) for start, end in spans), kind, traits)


def _repeats(about: Domain, text: str) -> bool:
    """Whether it says something of one part twice: that could be a contradiction."""
    named = {part for group in about.groups for part in (*group.one, *group.several)}
    found = re.findall(rf"\bthe ({'|'.join(sorted(named, key=len, reverse=True))})\b", text.lower())
    return len(set(found)) < len(found)


def _plain(domain: Domain, sign: int, chance: Random) -> list[Clause]:
    return [clause(domain, sign, chance)]


def contrast(domain: Domain, sign: int, chance: Random) -> Clause:
    """Two clauses of different signs; the connective tells which of them counts."""
    main, aside = clause(domain, sign, chance), clause(domain, -sign, chance)
    joined = chance.choice(CONTRASTS).format(main=main.text, aside=aside.bare())
    return Clause(joined, main.value, True, (*main.traits, *aside.traits, "contrast"))


def _contrasted(domain: Domain, sign: int, chance: Random) -> list[Clause]:
    return [contrast(domain, sign, chance)]


def _sum(domain: Domain, sign: int, chance: Random) -> list[Clause]:
    """Two or three clauses, the stronger side wins; those of the other side are no reason."""
    while True:
        parts = [_any(domain, chance) for _ in range(chance.choice((2, 3)))]
        if sign * sum(part.value for part in parts) >= LEAST:
            return [_reason(part, sign) for part in parts]


def _any(domain: Domain, chance: Random) -> Clause:
    sign = chance.choice((-1, 1))
    return contrast(domain, sign, chance) if chance.random() < 0.15 else clause(domain, sign, chance)


def _reason(part: Clause, sign: int) -> Clause:
    against = part.sign != sign
    return Clause(part.bare(), part.value, part.own, (*part.traits, "mixed")) if against else part


def _summed_up(domain: Domain, sign: int, chance: Random) -> list[Clause]:
    """One or two clauses of any sign, and what it all comes to: only that counts."""
    parts = [_any(domain, chance) for _ in range(chance.choice((1, 2)))]
    last = verdict(domain, sign, chance)
    closing = Clause(f"{chance.choice(SUMMED)}, {last.text}", last.value, True, (*last.traits, "verdict"))
    return [*(Clause(part.bare(), 0, part.own, part.traits) for part in parts), closing]


KINDS = {"plain": _plain, "contrast": _contrasted, "sum": _sum, "verdict": _summed_up}


def _asides(domain: Domain, chance: Random) -> list[str]:
    """Sentences that say nothing of what the writer thinks."""
    made = [chance.choice(domain.neutral)] if chance.random() < 0.35 else []
    return [*made, hearsay(domain, chance).text] if chance.random() < 0.25 else made


def _scattered(said: list[str], asides: list[str], chance: Random) -> list[str]:
    """The asides anywhere but at the end, which is where a verdict stands."""
    for aside in asides:
        said.insert(chance.randrange(len(said)), aside)
    return said


def _sentence(words: str) -> str:
    """With a capital and a full stop."""
    at = 2 if words.startswith("[[") else 0
    return f"{words[:at]}{words[at].upper()}{words[at + 1 :]}."
