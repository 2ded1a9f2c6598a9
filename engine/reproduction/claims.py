"""The declared claims: what each compares, by which rule it holds, and the digest that shows none was moved."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from cache import canonical
from engine.errors import unknown
from engine.reproduction.verdicts import Bounds

FILE = Path(__file__).with_name("thesis.json")
FILES = {"faithfulness": FILE, "sanity": FILE.with_name("thesis_sanity.json")}
"""What is declared, by topic: each with a digest of its own, so that one can be run, and revised, without the other."""
TOPICS = tuple(FILES)
Rule = Literal["at least", "more than", "at most", "within"]
Take = Literal["mean", "variance"]
Names = Mapping[str, tuple[str, ...]]
Over = Mapping[str, str | list[str]]
"""What a claim goes through one by one: members, or the name of their group."""


@runtime_checkable
class Declaration(Protocol):
    """What the claims of every paper have: what is told of them, and what their numbers are held against."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def says(self) -> str: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def least(self) -> int | None: ...
    @property
    def by_construction(self) -> str: ...


@dataclass(frozen=True)
class Term:
    """The mean of a metric over methods and models, `times` that. `models`: by the part they play, such as `size-1`.

    `take`: "variance" for the variance of the models' means, without the noise of their examples.
    """

    times: int | float
    task: str
    metric: str
    methods: tuple[str, ...]
    models: tuple[str, ...]
    take: Take = "mean"


@dataclass(frozen=True)
class Contrast:
    """A sum of terms; `name`: what is compared, as far as it differs within the claim."""

    name: str
    terms: tuple[Term, ...]
    oriented: bool = False
    """Whether metrics where lower is better count with the other sign, so that more is always better."""


@dataclass(frozen=True)
class Claim:
    """What the thesis found, in our words, and the rule by which it holds. `title`: in few words.

    `asked`: entries that must follow the rule; an entry follows it as soon as one of its contrasts does. `least`: how
    many must, None for all. `bounds`: what a contrast must lie between, None where there is no such bound.
    `by_construction`: why it holds with random weights too, else empty.
    """

    id: str
    title: str
    section: str
    says: str
    rule: Rule
    bounds: Bounds
    asked: tuple[tuple[Contrast, ...], ...]
    least: int | None = None
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
        return tuple(dict.fromkeys(term.task for one in self.contrasts for term in one.terms))


@dataclass(frozen=True)
class Declared:
    """All claims of a topic. `revised`: when and why they were. `tasks`: the metrics that each needs. `settings`: of
    the experiments of each source, by scale; `examples` of one are those of the source, where it takes fewer. `digest`:
    SHA-256 of all that is declared.
    """

    source: str
    revised: str
    examples: Mapping[str, int]
    tasks: Names
    claims: tuple[Claim, ...]
    topic: str
    settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(repr=False)
    digest: str = field(repr=False)

    def chosen(self, ids: Sequence[str]) -> tuple[Claim, ...]:
        """The claims of these ids in the order of the thesis, all where none are named. Errors list the known ones."""
        known = {claim.id: claim for claim in self.claims}
        for id in ids:
            if id not in known:
                raise unknown("claims", id, known)
        return tuple(claim for claim in self.claims if not ids or claim.id in ids)


@functools.cache
def declared(file: Path = FILE) -> Declared:
    """What the file declares."""
    plain = json.loads(file.read_text(encoding="utf-8"))
    reader = _Reader(_tuples(plain["methods"]), _tuples(plain["models"]))
    return Declared(
        plain["source"],
        plain["revised"],
        plain["examples"],
        _tuples(plain["tasks"]),
        tuple(reader.claim(one) for one in plain["claims"]),
        next((topic for topic, own in FILES.items() if own == file), TOPICS[0]),
        plain.get("settings", {}),
        hashlib.sha256(canonical(plain)).hexdigest(),
    )


def every_claim() -> tuple[Claim, ...]:
    """Of all topics, in the order of the thesis."""
    claims = (claim for file in FILES.values() for claim in declared(file).claims)
    return tuple(sorted(claims, key=lambda claim: claim.section.partition(",")[0]))


def _tuples(plain: Mapping[str, Sequence[str]]) -> Names:
    return {name: tuple(values) for name, values in plain.items()}


@dataclass(frozen=True)
class _Reader:
    """Puts the members of named groups, and what a claim goes through one by one, where their names stand."""

    methods: Names
    models: Names

    def claim(self, plain: Mapping[str, Any]) -> Claim:
        asked = [
            tuple(found for one in self._through(plain["some"]) if (found := self._contrast(plain, {**each, **one})))
            for each in self._through(plain["each"])
        ]
        bounds = bounds_of(plain["rule"], plain["threshold"])
        return Claim(
            plain["id"], plain["title"], plain["section"], plain["says"], plain["rule"], bounds, tuple(asked),
            plain.get("least"), plain.get("by_construction", ""),
        )  # fmt: skip

    def _through(self, over: Over) -> list[dict[str, str]]:
        return gone_through(over, {**self.methods, **self.models})

    def _contrast(self, plain: Mapping[str, Any], chosen: Mapping[str, str]) -> Contrast | None:
        """None where it would compare something with itself."""
        terms = tuple(self._term(part, chosen) for part in plain["sum"])
        same = {(term.task, term.metric, term.methods, term.models) for term in terms}
        if len(same) < len(terms):
            return None
        return Contrast(", ".join(chosen.values()), terms, plain["oriented"])

    def _term(self, part: Mapping[str, Any], chosen: Mapping[str, str]) -> Term:
        task, metric, methods, models = (
            chosen.get(part[name], part[name]) for name in ("task", "metric", "methods", "models")
        )
        return Term(
            part["times"],
            task,
            metric,
            self.methods.get(methods, (methods,)),
            self.models.get(models, (models,)),
            part.get("take", "mean"),
        )


def gone_through(over: Over, groups: Names) -> list[dict[str, str]]:
    """Each choice of one member for each name. `groups`: the members of named groups."""
    members = [tuple(named) if isinstance(named, list) else groups[named] for named in over.values()]
    return [dict(zip(over, chosen, strict=True)) for chosen in itertools.product(*members)]


def bounds_of(rule: Rule, threshold: Any) -> Bounds:
    """What a number must lie between, None where there is no such bound."""
    if rule == "within":
        low, high = threshold
        return low, high
    return (None, threshold) if rule == "at most" else (threshold, None)
