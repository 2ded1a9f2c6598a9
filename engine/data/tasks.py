"""The task of each registered data set, the number of its examples, and the set that fits a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.data import datasets, image_datasets
from engine.data.labels import NLI_LABELS, SENTIMENT_LABELS
from engine.data.slices import whole_name

PAIRS = " (pairs)"
NEXT_TOKEN = "Next token"


@dataclass(frozen=True)
class DatasetFacts:
    """`examples`: the size of the default split; None for a set that Exegesis does not ship, whose copies differ."""

    task: str
    examples: int | None = None


FACTS: Mapping[str, DatasetFacts] = {
    "reviews": DatasetFacts("Sentiment", 320),
    "reviews-generated": DatasetFacts("Sentiment", 1000),
    "reviews-written": DatasetFacts("Sentiment", datasets.embedded_file("reviews-written").read_bytes().count(b"\n")),
    "reviews-marked": DatasetFacts("Marker word", 1000),
    "nli": DatasetFacts(f"Inference{PAIRS}", 219),
    "nli-generated": DatasetFacts(f"Inference{PAIRS}", 1000),
    "quality": DatasetFacts(f"Translation quality{PAIRS}", 1000),
    "agreement": DatasetFacts(NEXT_TOKEN, 1000),
    "indirect-object": DatasetFacts(NEXT_TOKEN, 1000),
    "facts": DatasetFacts(NEXT_TOKEN, 1000),
    "sentiment-prompt": DatasetFacts(NEXT_TOKEN, 1000),
    "sst2": DatasetFacts("Sentiment"),
    "imdb": DatasetFacts("Sentiment"),
    "movies": DatasetFacts("Sentiment"),
    "sentences": DatasetFacts("Sentiment"),
    "esnli": DatasetFacts(f"Inference{PAIRS}"),
    "multinli": DatasetFacts(f"Inference{PAIRS}"),
    "snli-sick": DatasetFacts(f"Inference{PAIRS}"),
    "mlqe-pe": DatasetFacts(f"Translation quality{PAIRS}"),
    "scenes": DatasetFacts("Objects", 1000),
    "scenes-marked": DatasetFacts("Marker", 1000),
    "digits": DatasetFacts("Digits", 500),
    "photos": DatasetFacts("", 12),
    "cifar10": DatasetFacts("Objects"),
}
"""By registered name; of a task, the sets that Exegesis ships come first. The photographs have no labels."""
TASKS = tuple(dict.fromkeys(facts.task for facts in FACTS.values() if facts.task))
TASK_LABELS = {"Sentiment": SENTIMENT_LABELS, f"Inference{PAIRS}": NLI_LABELS}
"""The classes of tasks whose sets all have the same ones."""
DRAW_OPTIONS = frozenset({"count", "seed", "sentences", "kind", "cues", "size"})
"""Options by which other examples are drawn whose labels mean the same. Others, such as `context`, change that."""


def registered_dataset(name: str) -> str:
    """The registered name in a name with or without options; empty for a file, a folder or a hub id."""
    return datasets.registered_name(name) or image_datasets.registered_name(name) or ""


def task_of_dataset(name: str) -> str:
    """The task of a registered data set, with or without options; empty for any other."""
    facts = FACTS.get(registered_dataset(name))
    return facts.task if facts else ""


def label_name(name: str) -> str:
    """The name of a set without its slice and without the options that leave the meaning of its labels as it is.

    Sets of the same label name answer the same question, so an accuracy on one says something of the others.
    """
    return _without(name, DRAW_OPTIONS)


def source_name(name: str) -> str:
    """The name of a set without its slice, number of examples and seed: draws from one source are as hard."""
    return _without(name, {"count", "seed"})


def _without(name: str, dropped: Collection[str]) -> str:
    bare, _, options = whole_name(name).partition(":")
    kept = [one for one in options.split(",") if one.partition("=")[0].strip() not in {"", *dropped}]
    return f"{bare}:{','.join(kept)}" if kept else bare


def example_count(name: str) -> int | None:
    """The number of examples in a registered set's default split; None where options or a copy decide it."""
    facts = FACTS.get(name)
    return facts.examples if facts else None


def shipped_dataset(task: str) -> str:
    """The first shipped data set of a task; empty if there is none."""
    shipped = (name for name, facts in FACTS.items() if facts.task == task and facts.examples is not None)
    return next(shipped, "") if task else ""
