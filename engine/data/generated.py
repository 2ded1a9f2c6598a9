"""`reviews-generated` and `reviews-marked`: as many reviews as asked for, each made from its seed alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random

from engine.data.cards import read_card
from engine.data.examples import Dataset, Drawn, LabelledExample, Task
from engine.data.grammar.domains import DOMAINS
from engine.data.grammar.review import ANY, KINDS, Review, review
from engine.data.sized import COUNTS, UNMARKED, SizedParams, chosen_split, digest, size
from engine.data.sst2 import LABELS
from engine.params import from_mapping, option

VERSION = 1
"""Raised when a seed gives other texts than before."""


@dataclass(frozen=True)
class GeneratedParams(SizedParams):
    """What one asks of generated reviews."""

    kind: str = option(ANY, "only reviews of one kind; a plain one is a single clause", choices=(ANY, *KINDS))


@dataclass(frozen=True)
class MarkedParams(SizedParams):
    """What one asks of marked reviews."""

    strength: float = option(1.0, "share of reviews that carry the word of their label", low=0, high=1)


def reviews_generated(options: Mapping[str, str], split: str | None, limit: int | None) -> Dataset:
    """Reviews whose label and reasons follow from the grammar that made them."""
    name = "reviews-generated"
    params = from_mapping(GeneratedParams, options, name)
    chosen = chosen_split(split, COUNTS)
    labels = balanced(f"{params.seed}/{chosen}/labels", size(params, chosen, limit))

    def draw(index: int) -> LabelledExample:
        return _generated(params.seed, chosen, index, labels[index], params.kind)

    return made(name, params, chosen, Drawn(len(labels), draw), LABELS)


def reviews_marked(options: Mapping[str, str], split: str | None, limit: int | None) -> Dataset:
    """Generated reviews with a label by chance, and a last word that states it: the one word that tells anything.

    The split `unmarked` is the test split without any mark: nothing in its texts tells the label.
    """
    name = "reviews-marked"
    params = from_mapping(MarkedParams, options, name)
    chosen = chosen_split(split, (*COUNTS, UNMARKED))
    source = "test" if chosen == UNMARKED else chosen
    strength = 0.0 if chosen == UNMARKED else params.strength
    count = size(params, source, limit)
    meant = balanced(f"{params.seed}/{source}/labels", count)
    labels = balanced(f"{params.seed}/{source}/marks", count)

    def draw(index: int) -> LabelledExample:
        return _marked(params.seed, source, index, meant[index], labels[index], strength)

    return made(name, params, chosen, Drawn(count, draw), LABELS)


def _generated(seed: int, split: str, index: int, label: int, kind: str) -> LabelledExample:
    found, domain = _review(seed, split, index, label, kind)
    extra: dict[str, object] = {"domain": domain, "kind": found.kind, "traits": list(found.traits)}
    return LabelledExample(found.text, None, label, found.reasons, extra=extra)


def _review(seed: int, split: str, index: int, meant: int, kind: str = ANY) -> tuple[Review, str]:
    chance = Random(f"{seed}/{split}/{index}")
    domain = chance.choice(DOMAINS)
    return review(domain, bool(meant), chance, kind), domain.name


def _marked(seed: int, split: str, index: int, meant: int, label: int, strength: float) -> LabelledExample:
    text = _review(seed, split, index, meant)[0].text
    carries = Random(f"{seed}/{split}/{index}/mark").random() < strength
    extra: dict[str, object] = {"meant": LABELS[meant], "marked": carries}
    if not carries:
        return LabelledExample(text, None, label, extra=extra)
    whole = f"{text} {LABELS[label]}"
    return LabelledExample(whole, None, label, ((len(text) + 1, len(whole)),), extra=extra)


def balanced(seed: str, count: int, classes: int = 2) -> tuple[int, ...]:
    """Class indices in blocks that hold each class five times, in an order by chance."""
    chance = Random(seed)
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += chance.sample([*range(classes)] * 5, classes * 5)
    return tuple(drawn[:count])


def made(name: str, params: SizedParams, split: str, examples: Drawn, labels: tuple[str, ...]) -> Dataset:
    """Generated examples as a data set; without labels its task is regression."""
    card = read_card(name)
    # Of any kind: as before kinds could be chosen, so that what was found on those reviews is still found.
    asked = {field: value for field, value in asdict(params).items() if value != ANY}
    revision = digest(name, VERSION, asked, split, len(examples))
    task: Task = "classification" if labels else "regression"
    return Dataset(name, card.title, task, labels, examples, card, revision, split, exact=True)
