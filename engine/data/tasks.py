"""The task of each registered data set, the number of its examples, and the shipped data set of a task."""

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
    """Facts about a registered data set.

    `examples`: size of the default split; None if Exegesis does not ship the data set, as copies differ.
    """

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
"""Facts by registered name. Within a task, the data sets that Exegesis ships come first. `photos` has no labels."""
TASKS = tuple(dict.fromkeys(facts.task for facts in FACTS.values() if facts.task))
TASK_LABELS = {"Sentiment": SENTIMENT_LABELS, f"Inference{PAIRS}": NLI_LABELS}
"""Classes of the tasks whose data sets all have the same ones."""
DRAW_OPTIONS = frozenset({"count", "seed", "sentences", "kind", "cues", "size"})
"""Options that select other examples, but keep the meaning of labels. Others, such as `context`, change it."""


def registered_dataset(name: str) -> str:
    """Return the registered name of a data set without its options; empty for a file, a folder or a hub id."""
    return datasets.registered_name(name) or image_datasets.registered_name(name) or ""


def task_of_dataset(name: str) -> str:
    """Return the task of a registered data set, with or without options; empty for any other."""
    facts = FACTS.get(registered_dataset(name))
    return facts.task if facts else ""


def label_name(name: str) -> str:
    """Return the name of a data set without its slice and without the options that keep the meaning of its labels.

    Data sets with the same result ask the same question, so an accuracy on one is informative about the others.
    """
    return _without(name, DRAW_OPTIONS)


def source_name(name: str) -> str:
    """Return the name of a data set without its slice, number of examples and seed.

    Data sets with the same result are draws from one source, so they are equally difficult.
    """
    return _without(name, {"count", "seed"})


def _without(name: str, dropped: Collection[str]) -> str:
    bare, _, options = whole_name(name).partition(":")
    kept = [one for one in options.split(",") if one.partition("=")[0].strip() not in {"", *dropped}]
    return f"{bare}:{','.join(kept)}" if kept else bare


def example_count(name: str) -> int | None:
    """Return the number of examples in a data set's default split; None if it depends on options or on a local copy."""
    facts = FACTS.get(name)
    return facts.examples if facts else None


def shipped_dataset(task: str) -> str:
    """Return the first shipped data set of a task; empty if there is none."""
    shipped = (name for name, facts in FACTS.items() if facts.task == task and facts.examples is not None)
    return next(shipped, "") if task else ""
