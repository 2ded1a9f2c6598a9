"""One clause about one part of a thing, and what becomes of it when it is denied, hedged or told by somebody else.

A clause carries its meaning with it: `value` is how much it speaks for (above 0) or against the thing, from 1 to 4;
0 says nothing. The words that make it so stand in [[double brackets]].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from engine.data.grammar.domains import Domain, Group
from engine.data.grammar.words import (
    BE_NOT,
    DENIED,
    DO_NOT,
    EXPECTED,
    HAD,
    HEDGED,
    HELD,
    LIKE,
    LIKED,
    LOWERED,
    NOT_FIND,
    PEOPLE,
    PLAIN,
    RAISED,
    RIGHT,
    STRONG,
    STRONGLY,
    UTTERLY,
)

TURNED = 2
"""What is turned round counts as a plain word of the other side: "not bad" and "not dreadful" are no praise."""


@dataclass(frozen=True)
class Clause:
    """Words with marks and what they are worth. `own`: the writer's voice ("I liked ..."), which nobody else can use.

    `traits` name how it is built.
    """

    text: str
    value: int
    own: bool = False
    traits: tuple[str, ...] = ()

    @property
    def sign(self) -> int:
        return (self.value > 0) - (self.value < 0)

    def bare(self) -> str:
        """The words without marks: they decide nothing here."""
        return self.text.replace("[[", "").replace("]]", "")


@dataclass(frozen=True)
class Part:
    """A part of the thing with its verb's number, and what it can be called."""

    name: str
    several: bool
    group: Group

    @property
    def be(self) -> str:
        return "were" if self.several else "was"

    def number(self, words: str) -> str:
        """Words written for one, for several where there are."""
        return words.replace("wasn't", "weren't").replace("was", "were") if self.several else words


def clause(domain: Domain, sign: int, chance: Random) -> Clause:
    """A clause that is worth something of that sign: said plainly, or turned round from the other side."""
    part = _part(domain, chance)
    made = chance.choice(TURNS if chance.random() < 0.48 else STRAIGHT)(part, sign, chance)
    if made.own or chance.random() < 0.72:
        return _hedged(made, chance) if chance.random() < 0.12 else made
    return chance.choice((denied, told, expected))(domain, sign, chance)


def denied(domain: Domain, sign: int, chance: Random) -> Clause:
    """Such as "it is not true that the plot was dull"."""
    inner = _foreign(domain, -sign, chance)
    return Clause(f"[[{chance.choice(DENIED)}]] {inner.text}", sign * TURNED, True, (*inner.traits, "denial"))


def told(domain: Domain, sign: int, chance: Random) -> Clause:
    """Somebody else's view, with what the writer thinks of it."""
    right = chance.random() < 0.5
    inner = _foreign(domain, sign if right else -sign, chance)
    value = inner.value if right else sign * TURNED
    text = f"{chance.choice(PEOPLE)} said that {inner.text}, [[{chance.choice(RIGHT[right])}]]"
    return Clause(text, value, True, (*inner.traits, "told"))


def expected(domain: Domain, sign: int, chance: Random) -> Clause:
    """What the writer had expected, and whether it came so."""
    held = chance.random() < 0.5
    part = _part(domain, chance)
    word = chance.choice(part.group.called.of(sign if held else -sign))
    text = f"{chance.choice(EXPECTED)} that {part.name} would be [[{word}]], [[{chance.choice(HELD[held])}]]"
    return Clause(text, sign * PLAIN, True, ("expectation",))


def hearsay(domain: Domain, chance: Random) -> Clause:
    """Somebody else's view, of which the writer says nothing: it is worth nothing."""
    inner = _foreign(domain, chance.choice((-1, 1)), chance)
    return Clause(f"{chance.choice(PEOPLE)} said that {inner.bare()}", 0, True, ("hearsay",))


def verdict(domain: Domain, sign: int, chance: Random) -> Clause:
    """What the writer thinks of the thing as a whole."""
    if chance.random() < 0.4:
        return Clause(chance.choice(domain.verdicts.of(sign)), sign * STRONG, True)
    thing, called = chance.choice(domain.things), chance.choice(domain.groups).called
    if chance.random() < 0.5:
        word = chance.choice(called.of(-sign))
        return _turned(f"this was [[not]] {_article(word)} [[{word}]] {thing}", sign, own=True)
    word = chance.choice(called.of(sign) if chance.random() < 0.5 else STRONGLY.of(sign))
    return Clause(f"this was {_article(word)} [[{word}]] {thing}", sign * PLAIN, True)


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _part(domain: Domain, chance: Random) -> Part:
    group = chance.choice(domain.groups)
    several = chance.random() < 0.35
    name = f"the {chance.choice(group.several if several else group.one)}"
    return Part(f"{name} of this {chance.choice(domain.things)}" if chance.random() < 0.12 else name, several, group)


def _foreign(domain: Domain, sign: int, chance: Random) -> Clause:
    """A clause that anybody could say."""
    while True:
        made = chance.choice(TURNS if chance.random() < 0.4 else STRAIGHT)(_part(domain, chance), sign, chance)
        if not made.own:
            return made


def _hedged(made: Clause, chance: Random) -> Clause:
    """The same with less weight, but never none."""
    value = made.sign * max(1, abs(made.value) - 1)
    return replace(
        made, text=f"{chance.choice(HEDGED[made.own])} {made.text}", value=value, traits=(*made.traits, "hedge")
    )


def _described(part: Part, sign: int, chance: Random) -> tuple[str, int, tuple[str, ...]]:
    """An adjective with its degree, and what they are worth together."""
    way = chance.random()
    if way < 0.2:
        word = chance.choice(STRONGLY.of(sign))
        utterly = chance.random() < 0.3
        return f"{chance.choice(UTTERLY)} {word}" if utterly else word, sign * (STRONG + utterly), ("intensity",)
    word = chance.choice(part.group.called.of(sign))
    if way < 0.4:
        return f"{chance.choice(RAISED)} {word}", sign * (PLAIN + 1), ("intensity",)
    if way < 0.55:
        return f"{chance.choice(LOWERED.of(sign))} {word}", sign * (PLAIN - 1), ("intensity",)
    return word, sign * PLAIN, ()


def _is(part: Part, sign: int, chance: Random) -> Clause:
    words, value, traits = _described(part, sign, chance)
    return Clause(f"{part.name} {part.be} [[{words}]]", value, False, traits)


def _found(part: Part, sign: int, chance: Random) -> Clause:
    words, value, traits = _described(part, sign, chance)
    verb = chance.choice(("I found {} {}", "{} struck me as {}", "{} felt {} to me"))
    return Clause(verb.format(part.name, f"[[{words}]]"), value, True, traits)


def _something(part: Part, sign: int, chance: Random) -> Clause:
    words, value, traits = _described(part, sign, chance)
    return Clause(f"there was something [[{words}]] about {part.name}", value, False, traits)


def _liked(part: Part, sign: int, chance: Random) -> Clause:
    weight = chance.choice(tuple(LIKED))
    return Clause(f"I [[{chance.choice(LIKED[weight].of(sign))}]] {part.name}", sign * weight, True)


def _had(part: Part, sign: int, chance: Random) -> Clause:
    return Clause(f"{part.name} had [[{chance.choice(HAD.of(sign))}]]", sign * PLAIN)


def _is_not(part: Part, sign: int, chance: Random) -> Clause:
    words = f"{part.number(chance.choice(BE_NOT))} {chance.choice(part.group.called.of(-sign))}"
    first, _, rest = words.partition(" ")
    # The bare verb says nothing; "wasn't" carries the "not".
    marked = f"[[{words}]]" if first.endswith("n't") else f"{first} [[{rest}]]"
    return _turned(f"{part.name} {marked}", sign)


def _nothing(part: Part, sign: int, chance: Random) -> Clause:
    return _turned(f"there was [[nothing {chance.choice(part.group.called.of(-sign))}]] about {part.name}", sign)


def _did_not(part: Part, sign: int, chance: Random) -> Clause:
    verb = chance.choice(LIKE.of(-sign))
    return _turned(f"I [[{chance.choice(DO_NOT)} {verb}]] {part.name}", sign, own=True)


def _did_not_find(part: Part, sign: int, chance: Random) -> Clause:
    word = chance.choice(part.group.called.of(-sign))
    return _turned(f"I [[{chance.choice(NOT_FIND)}]] find {part.name} [[{word}]]", sign, own=True)


def _without(part: Part, sign: int, chance: Random) -> Clause:
    lacks = chance.choice((f"{part.be} [[without", "had [[no", "[[lacked"))
    return _turned(f"{part.name} {lacks} {chance.choice(HAD.of(-sign))}]]", sign)


def _turned(text: str, sign: int, own: bool = False) -> Clause:
    return Clause(text, sign * TURNED, own, ("negation",))


Maker = Callable[[Part, int, Random], Clause]
STRAIGHT: tuple[Maker, ...] = (_is, _is, _found, _something, _liked, _had)
TURNS: tuple[Maker, ...] = (_is_not, _is_not, _nothing, _did_not, _did_not_find, _without)
