"""Vocabulary of the generated pairs for inference: groups, properties, people, acts and places, and their relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.data.vocabulary import parse_list

Relation = Literal["same", "below", "above", "disjoint", "independent"]
"""Of a first word to a second. Below: whatever the first describes, the second describes too."""


@dataclass(frozen=True)
class Taxonomy:
    """Words and the more general word of some of them. `opposites`: sets of words that exclude each other."""

    parents: Mapping[str, str]
    opposites: Sequence[frozenset[str]] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All words."""
        return tuple(self.parents)

    def relation(self, first: str, second: str) -> Relation:
        """The relation of two words."""
        if first == second:
            return "same"
        above_first, above_second = self._lineage(first), self._lineage(second)
        if second in above_first:
            return "below"
        if first in above_second:
            return "above"
        excluded = any(one != other and {one, other} <= opposites for opposites in self.opposites
                       for one in above_first for other in above_second)  # fmt: skip
        return "disjoint" if excluded else "independent"

    def relatives(self, word: str) -> tuple[str, ...]:
        """The other words that are related to a word."""
        return tuple(other for other in self.words if self.relation(word, other) not in ("same", "independent"))

    def _lineage(self, word: str) -> list[str]:
        lineage = [word]
        while self.parents[lineage[-1]]:
            lineage.append(self.parents[lineage[-1]])
        return lineage


def parse_taxonomy(*lines: str, opposites: Sequence[str] = ()) -> Taxonomy:
    """Parse lines `general: special, special`; a line without a colon lists words without a general one."""
    parents: dict[str, str] = {}
    for line in lines:
        general, _, special = line.rpartition(": ")
        if general:
            parents.setdefault(general, "")
        parents |= dict.fromkeys(parse_list(special), general)
    return Taxonomy(parents, tuple(frozenset(parse_list(words)) for words in opposites))


@dataclass(frozen=True)
class WordGroup:
    """Nouns in the plural, and the properties that they can have."""

    nouns: Taxonomy
    properties: Taxonomy


GROUPS = (
    WordGroup(
        parse_taxonomy("animals: dogs, cats, birds", "dogs: poodles, terriers", "birds: robins, sparrows"),
        parse_taxonomy(
            "resting: sleeping", "moving: running, jumping", "eating: eating meat", opposites=["resting, moving"]
        ),
    ),
    WordGroup(
        parse_taxonomy("children: girls, boys", "adults: women, men", "visitors: tourists"),
        parse_taxonomy(
            "talking: whispering, shouting", "reading: reading letters", "smiling", "sitting", "standing",
            opposites=["sitting, standing", "whispering, shouting"],
        ),
    ),
    WordGroup(
        parse_taxonomy("vehicles: cars, trucks, bicycles", "cars: taxis"),
        parse_taxonomy("damaged: burnt", "blue: dark blue", "red: bright red", "new", opposites=["blue, red"]),
    ),
    WordGroup(
        parse_taxonomy("plants: flowers, trees", "flowers: roses, tulips", "trees: oaks, birches"),
        parse_taxonomy("wet: soaked", "dry", "tall", "healthy", "sick", opposites=["wet, dry", "healthy, sick"]),
    ),
)  # fmt: skip
PEOPLE = parse_list("doctor, farmer, teacher, nurse, pilot, baker, lawyer, painter, singer, guard, judge, waiter")
VERBS = parse_taxonomy(
    "touched: hugged, pushed", "followed: chased", "noticed: greeted, insulted", "helped: rescued", "praised", "paid"
)
"""Acts in the past; the form after "was" is the same."""
BASE_FORMS = dict(
    zip(
        VERBS.words,
        parse_list("touch, hug, push, follow, chase, notice, greet, insult, help, rescue, praise, pay"),
        strict=True,
    )
)
PLACES = {
    **dict.fromkeys(parse_list("garden, kitchen, park, library, hall, harbor"), "in"),
    **dict.fromkeys(parse_list("station, market, school, airport"), "at"),
}
"""Each with its preposition."""
