"""The declared claims, and the question about them that a reproduction answers.

Declared are what each claim compares, the rule by which it holds, and the digest that shows that none was moved. The
question (`ReproductionQuery`) says at which scale and on how many examples claims are tried; each paper supplies the
experiments and numbers that answer it.
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
"""Examples of each train size of a task, by the task and the name of the size."""
SPARSEMAX = "sparsemax"
MISSING_SIZES = "Only some of the train sizes that it compares are taught at this scale."


@dataclass(frozen=True)
class Term:
    """`times` a number of a task."""

    times: int | float
    task: str
    metric: str

    @property
    def unit(self) -> str:
        """What its values are of."""
        return "examples"


@dataclass(frozen=True)
class MethodTerm(Term):
    """The mean of a metric over methods and models. `models`: by the part they play, such as `size-1`.

    `take`: "variance" for the variance of the models' means, without the noise of their examples.
    """

    methods: tuple[str, ...]
    models: tuple[str, ...]
    take: Literal["mean", "variance"] = "mean"

    @property
    def subject(self) -> tuple[object, ...]:
        """What two terms of a sum may not share."""
        return self.task, self.metric, self.methods, self.models


@dataclass(frozen=True)
class StudentTerm(Term):
    """A number of students or of their explainers. `size`: the name of a train size. `side`: of a pair, else empty."""

    setting: str
    size: str
    normalization: str = SPARSEMAX
    side: str = ""

    @property
    def subject(self) -> tuple[object, ...]:
        """What two terms of a sum may not share."""
        return self.task, self.metric, self.setting, self.size, self.normalization

    @property
    def unit(self) -> str:
        return "examples" if self.metric == AUC else "seeds"


@dataclass(frozen=True)
class Contrast:
    """A sum of terms; `name`: what is compared, as far as it differs within the claim."""

    name: str
    terms: tuple[Any, ...]
    oriented: bool = False
    """Whether metrics where lower is better count with the other sign, so that more is always better."""


@dataclass(frozen=True)
class Claim:
    """A finding of a paper, in our words, and the rule by which it holds. `title`: in few words.

    `entries`: each must follow the rule; an entry does as soon as one of its contrasts does. `least`: how many must,
    None for all. `bounds`: what a contrast must lie between, None where there is no such bound. `by_construction`: why
    it holds with random weights too, else empty. `people`: why only people can tell, else empty. `why`: why nothing of
    it can be run, else empty.
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
        """Whether the bound itself is too little."""
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
        """What its numbers differ by: examples, or the seeds of students."""
        return "examples" if self.people or any(term.unit == "examples" for term in self.terms) else "seeds"


@dataclass(frozen=True)
class Declaration:
    """All claims of a topic. `revised`: when and why they were. `examples`: by scale. `tasks`: the metrics that each
    needs. `settings`: of the experiments of each source, by scale; `examples` of one are those of the source, where it
    takes fewer. `seeds`: how many students are taught, and needed. `digest`: SHA-256 of all that is declared.
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
        """All of them; of claims about students those without train sizes."""
        return self._read({})

    def select(self, ids: Sequence[str] = (), sizes: Sizes | None = None) -> tuple[Claim, ...]:
        """The claims with these ids in the order of the paper, all where none are named. Errors list the known ones."""
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
    """The declaration of a topic."""
    return load_declaration(FOLDER / TOPICS[topic].declaration, topic)


def load_declaration(file: Path, topic: str) -> Declaration:
    """Read a file of claims."""
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
    """The claims of the thesis that are tried at a scale, in its order."""
    claims = (claim for topic in topics_at("thesis", scale) for claim in declaration(topic).claims)
    return tuple(sorted(claims, key=lambda claim: claim.section.partition(",")[0]))


def bounds_of(rule: Rule, threshold: Any) -> Bounds:
    """What a number must lie between, None where there is no such bound."""
    if rule == "within":
        low, high = threshold
        return low, high
    return (None, threshold) if rule == "at most" else (threshold, None)


Part = Mapping[str, Any]
Choice = Mapping[str, str]
"""What a claim goes through, one member of each group."""
TermReader = Callable[[Part, Choice, Names, Sizes], Any]
ContrastName = Callable[[Choice, Sequence[Any], Sizes], str]


@dataclass(frozen=True)
class _Reader:
    """Substitutes members of groups and train sizes for their names; leaves out what is not taught."""

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
        """Each choice of one member for each name. `groups`: members, or the name of their group."""
        members = [tuple(named) if isinstance(named, list) else self.groups[named] for named in groups.values()]
        return [dict(zip(groups, chosen, strict=True)) for chosen in itertools.product(*members)]

    def _contrast(self, plain: Mapping[str, Any], choice: Choice) -> Contrast | None:
        """None where it would compare something with itself, or needs a train size that is not taught."""
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
    """None where the train size is not taught."""
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
"""By paper: how a term is read, and how a contrast is named."""


PLACES_FILE = "places.json"
"""Name that a report gives the file of folders by name."""


class NoNumber(Exception):
    """Says why a contrast comes to no number."""


@runtime_checkable
class Findings(Protocol):
    """The values of all experiments, as claims ask for them."""

    def entries(self, claim: Claim) -> Sequence[Sequence[Contrast]]:
        """The claim's entries on the data sets that were used."""

    def missing(self, claim: Claim) -> str:
        """Why what the claim needs is not there, else empty."""

    def number(
        self, claim: Claim, contrast: Contrast, seed: int, error_rates: tuple[float, float]
    ) -> tuple[ClaimNumber, Margin]:
        """The number of a contrast, and how far it is inside the claim's bounds. Errors: `NoNumber`."""


@dataclass(frozen=True)
class Evidence:
    """What the experiments of a query yield. `rows`: of the paper's tables, None of a paper without."""

    findings: Findings
    models: tuple[ModelSummary, ...]
    experiments: tuple[ExperimentSummary, ...]
    rows: tuple[TableRow, ...] | None = None


@dataclass(frozen=True)
class ReproductionQuery(ABC):
    """`examples`: None for as many as are declared. `claims`: none for all. `places`: folders of models, bases and data
    sets by name."""

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
        """The topic whose claims are meant."""

    @property
    @abstractmethod
    def selected_claims(self) -> tuple[Claim, ...]:
        """The claims that are meant, in the order of the paper."""

    @abstractmethod
    def collect(self, report: Report = silent, compute: bool = True) -> Evidence:
        """Run the experiments that the claims need. `compute`: also what a job would have computed before.

        What is there from before is not computed again.
        """

    @abstractmethod
    def key_parts(self) -> dict[str, Any]:
        """What the report depends on, for its cache key: models and data sets as they are."""

    @abstractmethod
    def models_of_claims(self, models: Sequence[ModelSummary]) -> dict[str, list[ModelSummary]]:
        """The models that each claim rests on, by its id."""

    def duplicates(self) -> dict[str, str]:
        """Claims with the same numbers as an earlier one, and which that is."""
        return {}

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Raise `UsageError` for an unknown scale or claim, and for numbers that are not allowed."""
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
        """The topic as data."""
        return TOPICS[self.topic_id]

    @property
    def declaration(self) -> Declaration:
        return declaration(self.topic_id)

    @property
    def count(self) -> int:
        """Examples of each data set, where it has as many."""
        return self.declaration.examples[self.scale] if self.examples is None else self.examples

    def command(self) -> str:
        """The command that repeats it. `PLACES_FILE` names the folders of `places`, which are those of this machine."""
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
    """A number with its intervals. `intervals`: at the plain error rate, then at those of its claim."""
    plain, inner, outer = intervals
    inside = margin(value, inner, outer, claim.bounds, n, claim.strict, rates, smallest_gain)
    return ClaimNumber(contrast.name, value, *plain, *outer, n, inside.verdict, at_best, smallest_gain), inside
