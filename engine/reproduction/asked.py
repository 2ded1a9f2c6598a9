"""What a reproduction is asked to do, and the evaluations that its claims need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import ExegesisError, not_allowed
from engine.evaluation.plan import Plan
from engine.explainers.ensemble import TOP_THREE
from engine.models import catalog
from engine.reproduction.claims import Claim, Declared, declared
from engine.reproduction.scales import Data, Places, Scale, family_of, scale_of

METHODS = (
    *TOP_THREE, "gradient_l2", "gradient_x_input", "attention_mean", "attention_rollout",
    "ensemble_all", "ensemble_top3",
)  # fmt: skip
"""The thesis's; why the L2 norm stands for its Gradients is told in what is declared."""
FOLDER = "reproduction"
FILE = "places.json"
"""What a report calls the file of folders by name."""


@dataclass(frozen=True)
class Asked:
    """`examples`: None for as many as are declared. `claims`: none for all. `places`: folders of models, bases and data
    sets by name. `folder`: where models that are fine-tuned for it go."""

    scale: str = "embedded"
    examples: int | None = None
    seed: int = 0
    claims: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    folder: str = FOLDER

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Refuses an unknown scale or claim, and numbers that are none."""
        scale_of(self.scale)
        self.declared.chosen(self.claims)
        if self.examples is not None and (type(self.examples) is not int or self.examples < 2):
            raise not_allowed("examples", "a whole number of at least 2", self.examples)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def declared(self) -> Declared:
        return declared()

    @property
    def chosen(self) -> tuple[Claim, ...]:
        return self.declared.chosen(self.claims)

    @property
    def count(self) -> int:
        """Examples of each data set, where it has as many."""
        return self.declared.examples[self.scale] if self.examples is None else self.examples

    @property
    def where(self) -> Places:
        return Places(scale_of(self.scale), self.places, Path(self.folder))

    def command(self) -> str:
        """What repeats it. `FILE` names the folders of `places`, which are those of this machine."""
        claims = f" --claims {','.join(self.claims)}" if self.claims else ""
        places = f" --places {FILE}" if self.places else ""
        start = f"exegesis reproduce thesis --scale {self.scale} --examples {self.count} --seed {self.seed}"
        return f"{start}{claims}{places}"


@dataclass(frozen=True)
class Player:
    """A model and the parts it plays on one data set. `place`: where it lies. `why`: it is not there, else empty.

    `revision`: a hash of its weights, empty where it is not there.
    """

    name: str
    parts: tuple[str, ...]
    data: Data
    place: str
    why: str
    revision: str = ""

    @property
    def there(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class Experiment:
    """One evaluation: the models of one comparison on one data set. `tasks`: of the claims that it is for."""

    name: str
    data: Data
    tasks: tuple[str, ...]
    players: tuple[Player, ...]
    metrics: tuple[str, ...]

    def plan(self, asked: Asked) -> Plan | None:
        """Of the models that are there; None where none is."""
        models = tuple(dict.fromkeys(one.place for one in self.players if one.there))
        dataset = asked.where.dataset(self.data.dataset)
        return Plan(models, dataset, METHODS, self.metrics, asked.count, asked.seed) if models else None


def experiments(asked: Asked) -> tuple[Experiment, ...]:
    """Those that the chosen claims need. Looks where the models are; loads none."""
    scale = scale_of(asked.scale)
    needed = _needed(asked.chosen)
    found: dict[tuple[Data, str], list[tuple[str, str]]] = {}
    for task, part in needed:
        found.setdefault((scale.tasks[task], family_of(part)), []).append((task, part))
    return tuple(_experiment(asked, data, family, pairs) for (data, family), pairs in found.items())


def experiment_names(claim: Claim, scale: Scale) -> tuple[str, ...]:
    """The evaluations that the claim rests on."""
    pairs = ((scale.tasks[task], family_of(part)) for task, part in _needed([claim]))
    return tuple(dict.fromkeys(_name(data, family) for data, family in pairs))


def _name(data: Data, family: str) -> str:
    return f"{data.key}, {family}"


def _needed(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Tasks with the parts of models that are tried on them, each once, in the order of the declared claims."""
    terms = [term for claim in claims for contrast in claim.contrasts for term in contrast.terms]
    return list(dict.fromkeys((term.task, model) for term in terms for model in term.models))


def _experiment(asked: Asked, data: Data, family: str, pairs: Sequence[tuple[str, str]]) -> Experiment:
    scale, where = scale_of(asked.scale), asked.where
    parts: dict[str, list[str]] = {}
    for task, part in pairs:
        parts.setdefault(scale.model(part, task), []).append(part)
    players = tuple(
        Player(name, tuple(dict.fromkeys(own)), data, where.model(name), *_looked(where.model(name)))
        for name, own in parts.items()
    )
    return Experiment(_name(data, family), data, _tasks(scale, data), players, _metrics(asked.declared, scale, data))


def _tasks(scale: Scale, data: Data) -> tuple[str, ...]:
    return tuple(task for task, own in scale.tasks.items() if own == data)


def _metrics(known: Declared, scale: Scale, data: Data) -> tuple[str, ...]:
    """Those of all tasks that the data set stands for, whichever claims are chosen, so that all share their work."""
    return tuple(dict.fromkeys(metric for task in _tasks(scale, data) for metric in known.tasks[task]))


def _looked(place: str) -> tuple[str, str]:
    """Why it is not there, and its revision where it is."""
    try:
        return "", catalog.revision(place)
    except ExegesisError as error:
        return " ".join(str(error).split()), ""
