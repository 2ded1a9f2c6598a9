"""What is declared of SMaT: each claim's statistic, rule and bounds, for the train sizes of whatever is taught."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cache import canonical
from engine.errors import unknown
from engine.reproduction.claims import Names, Rule, bounds_of, gone_through
from engine.reproduction.smat.naming import named, size_named
from engine.reproduction.verdicts import Bounds

FILE = Path(__file__).parents[1] / "smat.json"
SIMULABILITY, AUC, ACTIVE, DEPTH = MEASURES = ("simulability", "auc", "active_share", "depth")
SPARSEMAX = "sparsemax"
RANKS = {0: (), 1: ("middle",), 2: ("small", "large"), 3: ("small", "middle", "large")}
"""What so many train sizes of a task are called, the smallest first."""
ONE_SIZE = "Only some of the train sizes that it compares are taught at this scale."

Sizes = Mapping[str, Mapping[str, int]]
"""By task, how many examples a train size has by its name."""


@dataclass(frozen=True)
class Term:
    """`times` a number. `of`: the task. `size`: the name of a train size. `side`: of a pair, empty for all of it."""

    times: int | float
    of: str
    measure: str
    setting: str
    size: str
    normalisation: str = SPARSEMAX
    side: str = ""


@dataclass(frozen=True)
class Contrast:
    """A sum of terms; `name`: what is compared, as far as it differs within the claim."""

    name: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Claim:
    """What the paper found, in our words, and the rule by which it holds; see `engine.reproduction.claims.Claim`.

    `people`: why only people can tell, else empty. `why`: why nothing of it is taught, else empty.
    """

    id: str
    title: str
    section: str
    says: str
    rule: Rule
    bounds: Bounds
    asked: tuple[tuple[Contrast, ...], ...]
    least: int | None = None
    people: str = ""
    why: str = ""
    by_construction: str = ""

    @property
    def strict(self) -> bool:
        """Whether the bound itself is too little."""
        return self.rule == "more than"

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        return tuple(contrast for choices in self.asked for contrast in choices)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term.of for one in self.contrasts for term in one.terms))

    @property
    def needed(self) -> tuple[tuple[str, str], ...]:
        """The tasks and normalisations that it is about."""
        terms = (term for one in self.contrasts for term in one.terms)
        return tuple(dict.fromkeys((term.of, term.normalisation) for term in terms))

    @property
    def by_seeds(self) -> bool:
        """Whether its numbers differ by students; else by examples."""
        return all(term.measure != AUC for one in self.contrasts for term in one.terms)


@dataclass(frozen=True)
class Declared:
    """`examples`: on which plausibility is measured, by scale. `normalisation_seeds`: students of each cell of table 7.
    `least_seeds`: without which a cell is not judged. `digest`: SHA-256 of all that is declared.
    """

    source: str
    revised: str
    examples: Mapping[str, int]
    normalisation_seeds: int
    least_seeds: int
    digest: str
    _claims: Sequence[Mapping[str, Any]] = field(repr=False)
    _groups: Names = field(repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one["id"] for one in self._claims)

    def chosen(self, sizes: Sizes, ids: Sequence[str] = ()) -> tuple[Claim, ...]:
        """The claims of these ids in the order of the paper, all where none are named. Errors list the known ones."""
        for id in ids:
            if id not in self.ids:
                raise unknown("claims", id, self.ids)
        reader = _Reader(self._groups, sizes)
        return tuple(reader.claim(one) for one in self._claims if not ids or one["id"] in ids)


@functools.cache
def declared(file: Path = FILE) -> Declared:
    """What the file declares."""
    plain = json.loads(file.read_text(encoding="utf-8"))
    return Declared(
        plain["source"],
        plain["revised"],
        plain["examples"],
        plain["seeds"]["normalisations"],
        plain["seeds"]["least"],
        hashlib.sha256(canonical(plain)).hexdigest(),
        plain["claims"],
        {name: tuple(values) for name, values in plain["groups"].items()},
    )


def sizes_named(train_sizes: Sequence[int]) -> dict[str, int]:
    """The train sizes of a plan by what claims call them; of more than three the smallest, middle and largest."""
    ordered = sorted(train_sizes)
    if len(ordered) > 3:
        ordered = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return dict(zip(RANKS[len(ordered)], ordered, strict=True))


@dataclass(frozen=True)
class _Reader:
    """Puts members of groups and train sizes where their names stand; what is not taught is left out."""

    groups: Names
    sizes: Sizes

    def claim(self, plain: Mapping[str, Any]) -> Claim:
        entries = [self._entry(plain, each) for each in gone_through(plain["each"], self.groups)]
        asked = tuple(entry for entry in entries if entry)
        people = plain.get("people", "")
        return Claim(
            plain["id"], plain["title"], plain["section"], plain["says"], plain["rule"],
            bounds_of(plain["rule"], plain["threshold"]), () if people else asked, plain.get("least"),
            people, "" if asked or people else ONE_SIZE, plain.get("by_construction", ""),
        )  # fmt: skip

    def _entry(self, plain: Mapping[str, Any], each: Mapping[str, str]) -> tuple[Contrast, ...]:
        choices = (self._contrast(plain["sum"], {**each, **one}) for one in gone_through(plain["some"], self.groups))
        return tuple(one for one in choices if one is not None)

    def _contrast(self, parts: Sequence[Mapping[str, Any]], chosen: Mapping[str, str]) -> Contrast | None:
        """None where it would compare something with itself, or needs a train size that is not taught."""
        terms = tuple(Term(**{name: chosen.get(value, value) for name, value in one.items()}) for one in parts)
        if len({(one.of, one.measure, one.setting, one.size, one.normalisation) for one in terms}) < len(terms):
            return None
        if any(one.size not in self.sizes.get(one.of, {}) for one in terms):
            return None
        words = (
            size_named(self.sizes[terms[0].of][value]) if name == "size" else named(value)
            for name, value in chosen.items()
        )
        return Contrast(", ".join(words), terms)
