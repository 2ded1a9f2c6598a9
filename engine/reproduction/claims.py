"""Declared claims, and the query that a reproduction answers.

A declaration states what each claim compares and the rule by which it holds; its digest shows that nothing was changed
later. The query (`ReproductionQuery`) sets the scale and the number of examples; each paper supplies the experiments
and numbers that answer it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from cache import canonical
from engine.errors import not_allowed, unknown
from engine.metrics.results import Interval
from engine.progress import Report, silent
from engine.reproduction.papers import (
    AUC,
    THESIS_TOPICS,
    TOPICS,
    Topic,
    choice_name,
    scale_of,
    size_name,
    topics_at,
)
from engine.reproduction.report import Bounds, ClaimNumber, ExperimentSummary, Margin, ModelSummary, TableRow, margin

FOLDER = Path(__file__).parent
Rule = Literal["at least", "more than", "at most", "within"]
Names = Mapping[str, tuple[str, ...]]
Sizes = Mapping[str, Mapping[str, int]]
"""Number of examples of each train size, by task and name of the size."""
SPARSEMAX = "sparsemax"
MISSING_SIZES = "Only some of the train sizes that it compares are taught at this scale."


@dataclass(frozen=True)
class Term:
    """A term of a contrast: a number of a task, multiplied by `times`."""

    times: int | float
    task: str
    metric: str

    @property
    def unit(self) -> str:
        """The unit that its values vary over, "examples" or "seeds"."""
        return "examples"


@dataclass(frozen=True)
class MethodTerm(Term):
    """The mean of a metric over methods and models. `models`: the parts that they play, such as `size-1`.

    `take`: "variance" for the variance between the models' means, without the noise of their examples.
    """

    methods: tuple[str, ...]
    models: tuple[str, ...]
    take: Literal["mean", "variance"] = "mean"

    @property
    def subject(self) -> tuple[object, ...]:
        """The measured quantity, which must differ between the terms of a contrast."""
        return self.task, self.metric, self.methods, self.models


@dataclass(frozen=True)
class StudentTerm(Term):
    """A measure of students or of their explainers. `size`: name of a train size. `side`: of a pair, else empty."""

    setting: str
    size: str
    normalization: str = SPARSEMAX
    side: str = ""

    @property
    def subject(self) -> tuple[object, ...]:
        """The measured quantity, which must differ between the terms of a contrast."""
        return self.task, self.metric, self.setting, self.size, self.normalization

    @property
    def unit(self) -> str:
        return "examples" if self.metric == AUC else "seeds"


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of terms. `name`: the parts of the comparison that differ within the claim."""

    name: str
    terms: tuple[Any, ...]
    oriented: bool = False
    """Whether metrics for which lower is better are negated, so that higher is always better."""


@dataclass(frozen=True)
class Claim:
    """A finding of a paper and the rule by which it holds. `says`: the finding in our words. `title`: a short form.

    `entries`: groups of alternative contrasts; an entry holds if one of its contrasts follows the rule. `least`: number
    of entries that must hold, None for all. `bounds`: lower and upper bound of a contrast, None for no bound.
    `by_construction`: why it holds with random weights too, else empty. `people`: why only a user study can decide it,
    else empty. `why`: why it cannot be run at all, else empty.
    """

    id: str
    title: str
    section: str
    says: str
    rule: Rule
    bounds: Bounds
    entries: tuple[tuple[Contrast, ...], ...]
    least: int | None = None
    by_construction: str = ""
    people: str = ""
    why: str = ""

    @property
    def strict(self) -> bool:
        """Whether a value on the bound fails."""
        return self.rule == "more than"

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        return tuple(contrast for choices in self.entries for contrast in choices)

    @property
    def terms(self) -> tuple[Any, ...]:
        return tuple(term for contrast in self.contrasts for term in contrast.terms)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term.task for term in self.terms))

    @property
    def unit(self) -> str:
        """The unit that its numbers vary over: "examples", or "seeds" of students."""
        return "examples" if self.people or any(term.unit == "examples" for term in self.terms) else "seeds"


@dataclass(frozen=True)
class Declaration:
    """All claims of a topic, as declared in its file.

    `revised`: when and why they were revised. `examples`: number of examples by scale. `tasks`: the metrics that each
    task needs. `settings`: settings of the experiments, by scale and source; the setting `examples` is the number of
    examples of a source that uses fewer. `seeds`: numbers of seeds that are trained, and that are needed. `groups`:
    members of the named groups in `entries`. `entries`: the claims as plain values. `digest`: SHA-256 of the whole
    declaration.
    """

    topic: str
    source: str
    revised: str
    examples: Mapping[str, int]
    tasks: Names
    digest: str = field(repr=False)
    settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(repr=False)
    seeds: Mapping[str, int] = field(repr=False)
    groups: Names = field(repr=False)
    entries: Sequence[Mapping[str, Any]] = field(repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(one["id"] for one in self.entries)

    @functools.cached_property
    def claims(self) -> tuple[Claim, ...]:
        """All claims; those about students have no entries, because they need train sizes."""
        return self._read({})

    def select(self, ids: Sequence[str] = (), sizes: Sizes | None = None) -> tuple[Claim, ...]:
        """Return the claims with these ids, in the paper's order; all if `ids` is empty. Errors list the known ids."""
        for id in ids:
            if id not in self.ids:
                raise unknown("claims", id, self.ids)
        claims = self.claims if sizes is None else self._read(sizes)
        return tuple(claim for claim in claims if not ids or claim.id in ids)

    def _read(self, sizes: Sizes) -> tuple[Claim, ...]:
        reader = _Reader(self.groups, sizes, *READERS[TOPICS[self.topic].paper])
        return tuple(reader.claim(one) for one in self.entries)


@functools.cache
def declaration(topic: str = THESIS_TOPICS[0]) -> Declaration:
    """Return the declaration of a topic."""
    return load_declaration(FOLDER / TOPICS[topic].declaration, topic)


def load_declaration(file: Path, topic: str) -> Declaration:
    """Read the declaration of a topic from a file."""
    plain = json.loads(file.read_text(encoding="utf-8"))
    groups = {name: tuple(own) for kind in ("methods", "models", "groups") for name, own in plain.get(kind, {}).items()}
    return Declaration(
        topic,
        plain["source"],
        plain["revised"],
        plain["examples"],
        {name: tuple(metrics) for name, metrics in plain.get("tasks", {}).items()},
        hashlib.sha256(canonical(plain)).hexdigest(),
        plain.get("settings", {}),
        plain.get("seeds", {}),
        groups,
        plain["claims"],
    )


def thesis_claims(scale: str = "embedded") -> tuple[Claim, ...]:
    """Return the claims of the thesis that are tested at a scale, in the order of the thesis."""
    claims = (claim for topic in topics_at("thesis", scale) for claim in declaration(topic).claims)
    return tuple(sorted(claims, key=lambda claim: claim.section.partition(",")[0]))


def bounds_of(rule: Rule, threshold: Any) -> Bounds:
    """Return the (lower, upper) bounds of a rule, None for no bound."""
    if rule == "within":
        low, high = threshold
        return low, high
    return (None, threshold) if rule == "at most" else (threshold, None)


Part = Mapping[str, Any]
Choice = Mapping[str, str]
"""One member of each group that a claim iterates over, by the name of the group."""
TermReader = Callable[[Part, Choice, Names, Sizes], Any]
ContrastName = Callable[[Choice, Sequence[Any], Sizes], str]


@dataclass(frozen=True)
class _Reader:
    """Reader of declared claims. It expands groups and names of train sizes, and drops sizes that are not trained."""

    groups: Names
    sizes: Sizes
    term: TermReader
    name: ContrastName

    def claim(self, plain: Mapping[str, Any]) -> Claim:
        people = plain.get("people", "")
        candidates = (
            tuple(filter(None, (self._contrast(plain, {**each, **one}) for one in self._choices(plain["some"]))))
            for each in self._choices(plain["each"])
        )
        entries = tuple(entry for entry in candidates if entry)
        return Claim(
            plain["id"], plain["title"], plain["section"], plain["says"], plain["rule"],
            bounds_of(plain["rule"], plain["threshold"]), () if people else entries, plain.get("least"),
            plain.get("by_construction", ""), people, "" if entries or people else MISSING_SIZES,
        )  # fmt: skip

    def _choices(self, groups: Mapping[str, str | list[str]]) -> list[dict[str, str]]:
        """Return all combinations of one member per group. `groups`: members, or the name of a declared group."""
        members = [tuple(named) if isinstance(named, list) else self.groups[named] for named in groups.values()]
        return [dict(zip(groups, chosen, strict=True)) for chosen in itertools.product(*members)]

    def _contrast(self, plain: Mapping[str, Any], choice: Choice) -> Contrast | None:
        """Return the contrast; None if it compares a quantity with itself or needs a train size that is not trained."""
        terms = tuple(self.term(part, choice, self.groups, self.sizes) for part in plain["sum"])
        if None in terms or len({term.subject for term in terms}) < len(terms):
            return None
        return Contrast(self.name(choice, terms, self.sizes), terms, plain.get("oriented", False))


def _method_term(part: Part, choice: Choice, groups: Names, sizes: Sizes) -> MethodTerm:
    task, metric, methods, models = (
        choice.get(part[name], part[name]) for name in ("task", "metric", "methods", "models")
    )
    return MethodTerm(
        part["times"],
        task,
        metric,
        groups.get(methods, (methods,)),
        groups.get(models, (models,)),
        part.get("take", "mean"),
    )


def _method_contrast(choice: Choice, terms: Sequence[MethodTerm], sizes: Sizes) -> str:
    return ", ".join(choice.values())


def _student_term(part: Part, choice: Choice, groups: Names, sizes: Sizes) -> StudentTerm | None:
    """Return the term, or None if its train size is not trained."""
    values: dict[str, Any] = {name: choice.get(value, value) for name, value in part.items()}
    term = StudentTerm(
        values["times"], values["of"], values["measure"], values["setting"], values["size"],
        values.get("normalisation", SPARSEMAX), values.get("side", ""),
    )  # fmt: skip
    return term if term.size in sizes.get(term.task, {}) else None


def _student_contrast(choice: Choice, terms: Sequence[StudentTerm], sizes: Sizes) -> str:
    words = (
        size_name(sizes[terms[0].task][value]) if name == "size" else choice_name(value)
        for name, value in choice.items()
    )
    return ", ".join(words)


READERS: Mapping[str, tuple[TermReader, ContrastName]] = {
    "thesis": (_method_term, _method_contrast),
    "smat": (_student_term, _student_contrast),
}
"""Functions that read a term and name a contrast, by paper."""


PLACES_FILE = "places.json"
"""Name of the file of folders in the command of a report."""


class NoNumber(Exception):
    """Raised if a contrast has no number; the message is the reason."""


@runtime_checkable
class Findings(Protocol):
    """Values of all experiments, from which the numbers of claims are computed."""

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        """Return the claim's entries, with the data sets that stand in for its tasks."""

    def missing(self, claim: Claim) -> str:
        """Return why results that the claim needs are missing, else an empty string."""

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        """Return the number of a contrast and its margin inside the claim's bounds. Errors: `NoNumber`."""


@dataclass(frozen=True)
class Evidence:
    """Results of a query's experiments. `rows`: rows of the paper's tables, None for a paper without."""

    findings: Findings
    models: tuple[ModelSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    rows: tuple[TableRow, ...] | None = None


@dataclass(frozen=True)
class ReproductionQuery(ABC):
    """Which claims of a topic to reproduce, and how.

    `examples`: None for the declared number. `claims`: ids, empty for all. `places`: folders of models, bases and data
    sets by name.
    """

    scale: str = "embedded"
    examples: int | None = None
    seed: int = 0
    claims: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    job: ClassVar[str]
    """The kind of job that answers it."""

    @property
    @abstractmethod
    def topic_id(self) -> str:
        """Id of the topic that the claims belong to."""

    @property
    @abstractmethod
    def selected_claims(self) -> tuple[Claim, ...]:
        """The selected claims, in the order of the paper."""

    @abstractmethod
    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """Run the experiments that the claims need. Cached results are not computed again.

        `compute`: False in a job whose earlier units have already trained the students.
        """

    @abstractmethod
    def key_parts(self) -> dict[str, Any]:
        """Return the parts of the report's cache key: the current models and data sets, and versions."""

    @abstractmethod
    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        """Return the models that each claim rests on, by claim id."""

    def duplicates(self) -> dict[str, str]:
        """Map the ids of claims that have the same numbers as an earlier claim to the id of that claim."""
        return {}

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Raise `UsageError` for an unknown scale or claim, or for invalid numbers."""
        scale_of(self.scale)
        if self.scale not in self.about.scales:
            raise not_allowed("scale", f"{' or '.join(self.about.scales)} for these claims", self.scale)
        self.declaration.select(self.claims)
        if self.examples is not None and (type(self.examples) is not int or self.examples < 2):
            raise not_allowed("examples", "a whole number of at least 2", self.examples)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def about(self) -> Topic:
        """The topic of the claims."""
        return TOPICS[self.topic_id]

    @property
    def declaration(self) -> Declaration:
        return declaration(self.topic_id)

    @property
    def count(self) -> int:
        """Number of examples of each data set, if it has as many."""
        return self.declaration.examples[self.scale] if self.examples is None else self.examples

    def command(self) -> str:
        """Return the command that repeats it, with `PLACES_FILE` in place of the local folders in `places`."""
        first = topics_at(self.about.paper, self.scale)[:1]
        topic = f" --topic {self.topic_id}" if first != (self.topic_id,) else ""
        claims = f" --claims {','.join(self.claims)}" if self.claims else ""
        places = f" --places {PLACES_FILE}" if self.places else ""
        numbers = f"--scale {self.scale} --examples {self.count} --seed {self.seed}"
        return f"exegesis reproduce {self.about.paper}{topic} {numbers}{claims}{places}"


def interval_number(
    claim: Claim,
    contrast: Contrast,
    value: float,
    intervals: Sequence[Interval],
    n: int,
    rates: tuple[float, float],
    at_best: bool,
    smallest_gain: float = 0.0,
) -> tuple[ClaimNumber, Margin]:
    """Return a claim's number and its margin. `intervals`: at `ERROR_RATE`, then at the claim's two error rates."""
    plain, inner, outer = intervals
    inside = margin(value, inner, outer, claim.bounds, n, claim.strict, rates, smallest_gain)
    return ClaimNumber(contrast.name, value, *plain, *outer, n, inside.verdict, at_best, smallest_gain), inside
