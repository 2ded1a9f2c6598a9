"""What a reproduction is asked to do, and the experiments that its claims need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import ExegesisError, not_allowed, unknown
from engine.models import catalog
from engine.reproduction.claims import FILES, TOPICS, Claim, Declared, declared
from engine.reproduction.measures import Source, measure
from engine.reproduction.scales import Data, Places, Scale, family_of, scale_of
from engine.reproduction.sources import WAYS, Wanted, Way

FOLDER = "reproduction"
FILE = "places.json"
"""What a report calls the file of folders by name."""


@dataclass(frozen=True)
class Asked:
    """`examples`: None for as many as are declared. `claims`: none for all. `places`: folders of models, bases and data
    sets by name. `folder`: where models that are fine-tuned for it go. `topic`: which claims are meant."""

    scale: str = "embedded"
    examples: int | None = None
    seed: int = 0
    claims: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    folder: str = FOLDER
    topic: str = TOPICS[0]

    def as_plain(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "claims": list(self.claims)}

    def check(self) -> None:
        """Refuses an unknown topic, scale or claim, and numbers that are none."""
        if self.topic not in TOPICS:
            raise unknown("topic", self.topic, TOPICS)
        scale_of(self.scale)
        self.declared.chosen(self.claims)
        if self.examples is not None and (type(self.examples) is not int or self.examples < 2):
            raise not_allowed("examples", "a whole number of at least 2", self.examples)
        if type(self.seed) is not int or self.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", self.seed)

    @property
    def declared(self) -> Declared:
        return declared(FILES[self.topic])

    @property
    def chosen(self) -> tuple[Claim, ...]:
        return self.declared.chosen(self.claims)

    @property
    def count(self) -> int:
        """Examples of each data set, where it has as many."""
        return self.declared.examples[self.scale] if self.examples is None else self.examples

    def wanted(self, source: Source, models: tuple[str, ...], data: Data, metrics: tuple[str, ...]) -> Wanted:
        """What an experiment is told: of its examples as many fewer as is declared, but two at least."""
        settings = dict(self.declared.settings.get(self.scale, {}).get(source, {}))
        usual = self.declared.examples[self.scale]
        count = max(2, round(self.count * settings.pop("examples", usual) / usual))
        return Wanted(models, self.where.dataset(data.dataset), metrics, count, self.seed, settings)

    @property
    def where(self) -> Places:
        return Places(scale_of(self.scale), self.places, Path(self.folder))

    def command(self) -> str:
        """What repeats it. `FILE` names the folders of `places`, which are those of this machine."""
        claims = f" --claims {','.join(self.claims)}" if self.claims else ""
        places = f" --places {FILE}" if self.places else ""
        topic = "" if self.topic == TOPICS[0] else f" --topic {self.topic}"
        numbers = f"--scale {self.scale} --examples {self.count} --seed {self.seed}"
        return f"exegesis reproduce thesis{topic} {numbers}{claims}{places}"


def of_topics(whole: Asked, topics: Sequence[str] = TOPICS) -> tuple[Asked, ...]:
    """The same of each topic of which claims are chosen. Of all but the first at most as many examples as declared.

    Errors: an unknown scale or claim.
    """
    scale_of(whole.scale)
    known = {topic: [claim.id for claim in declared(FILES[topic]).claims] for topic in topics}
    for id in whole.claims:
        if not any(id in own for own in known.values()):
            raise unknown("claims", id, [id for own in known.values() for id in own])
    chosen = {topic: tuple(id for id in whole.claims if id in own) for topic, own in known.items()}
    asked = [replace(whole, topic=topic, claims=own) for topic, own in chosen.items() if own or not whole.claims]
    return (*asked[:1], *map(_at_most_declared, asked[1:]))


def _at_most_declared(asked: Asked) -> Asked:
    most = asked.declared.examples[asked.scale]
    return asked if asked.examples is None or asked.examples < most else replace(asked, examples=None)


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
    """The models of one comparison on one data set. `tasks`: of the claims that it is for. `source`: what is done."""

    name: str
    data: Data
    source: Source
    tasks: tuple[str, ...]
    players: tuple[Player, ...]
    metrics: tuple[str, ...]

    @property
    def way(self) -> Way:
        """How it is done."""
        return WAYS[self.source]

    def plan(self, asked: Asked) -> Any:
        """Of the models that are there; None where none is."""
        models = tuple(dict.fromkeys(one.place for one in self.players if one.there))
        return self.way.plan(asked.wanted(self.source, models, self.data, self.metrics)) if models else None


def experiments(asked: Asked) -> tuple[Experiment, ...]:
    """Those that the chosen claims need. Looks where the models are; loads none."""
    scale = scale_of(asked.scale)
    found: dict[tuple[Data, str, Source], list[tuple[str, str]]] = {}
    for task, part, source in _needed(asked.chosen):
        found.setdefault((scale.tasks[task], family_of(part), source), []).append((task, part))
    return tuple(_experiment(asked, *of, pairs) for of, pairs in found.items())


def experiment_names(claim: Claim, scale: Scale) -> tuple[str, ...]:
    """The experiments that the claim rests on."""
    of = ((scale.tasks[task], family_of(part), source) for task, part, source in _needed([claim]))
    return tuple(dict.fromkeys(_name(*one) for one in of))


def _name(data: Data, family: str, source: Source) -> str:
    return f"{data.key}, {family}" if source == "evaluation" else f"{data.key}, {family}, {source}"


def _needed(claims: Sequence[Claim]) -> list[tuple[str, str, Source]]:
    """Tasks with the parts of models that are tried on them, and what is done to these; each once, as declared."""
    terms = [term for claim in claims for contrast in claim.contrasts for term in contrast.terms]
    needed = ((term.task, model, measure(term.metric).source) for term in terms for model in term.models)
    return list(dict.fromkeys(needed))


def _experiment(asked: Asked, data: Data, family: str, source: Source, pairs: Sequence[tuple[str, str]]) -> Experiment:
    scale, where = scale_of(asked.scale), asked.where
    parts: dict[str, list[str]] = {}
    for task, part in pairs:
        parts.setdefault(scale.model(part, task), []).append(part)
    players = tuple(
        Player(name, tuple(dict.fromkeys(own)), data, where.model(name), *_looked(where.model(name)))
        for name, own in parts.items()
    )
    name, metrics = _name(data, family, source), _metrics(asked.declared, scale, data)
    return Experiment(name, data, source, _tasks(scale, data), players, metrics)


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
