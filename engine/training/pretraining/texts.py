"""The texts of a pre-training: the train splits of one or more data sets, each text once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.data.examples import Dataset, LabelledExample
from engine.errors import ExegesisError, UsageError
from engine.training.corpus import known_card, train_part
from engine.training.pretraining.config import PretrainConfig
from engine.training.splits import drawn, held_out_split

SEPARATOR = "+"
"""Between the names of data sets; a comma is part of their options."""


@dataclass(frozen=True)
class Texts:
    """Train and held-out texts. `dropped`: train texts that are part of a held-out one."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]
    dropped: int
    revisions: tuple[str, ...]


def read_texts(config: PretrainConfig) -> Texts:
    """Reads, parts and draws; both texts of a pair count."""
    sets = [train_part(name) for name in named(config.dataset)]
    rows = [LabelledExample(text) for text in dict.fromkeys(text for data in sets for text in plain_texts(data))]
    if len(rows) < 10:
        raise ExegesisError(f"dataset: {config.dataset} has {len(rows)} texts; at least 10 are needed.")
    kept, held = held_out_split(rows, config.held_out, config.seed)
    dropped = len(rows) - len(kept) - len(held)
    train = drawn(kept, config.train_size, config.seed)
    return Texts(_only(train), _only(held), dropped, tuple(data.revision for data in sets))


def named(dataset: str) -> list[str]:
    """The data sets that `reviews-generated+sst2` names."""
    names = [part.strip() for part in dataset.split(SEPARATOR)]
    if not all(names):
        raise UsageError(f"dataset: must be names of data sets joined by {SEPARATOR}, got {dataset!r}.")
    return names


def plain_texts(data: Dataset) -> list[str]:
    """All texts that are not blank."""
    texts = (text for example in data.examples for text in (example.text, example.text_pair))
    return [text for text in texts if text and text.strip()]


def cards_of(dataset: str) -> dict[str, str]:
    """Name, source and licence of all the data sets together."""
    cards = [known_card(name) for name in named(dataset)]
    return {key: "; ".join(dict.fromkeys(card[key].rstrip(".") for card in cards)) for key in cards[0]}


def _only(rows: Iterable[LabelledExample]) -> tuple[str, ...]:
    return tuple(row.text for row in rows)
