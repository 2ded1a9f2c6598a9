"""The plan of a test of concepts: the declaration of the experiment `concepts`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.data.registry import parse_names
from engine.errors import not_allowed
from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option

MOST_CONCEPTS = 8
LEAST_EXAMPLES = 10
"""Minimum number of examples of a concept."""
MOST_EXAMPLES = 400
"""Maximum number of examples of a concept; of more, a random sample is read."""
INCLUDED: Mapping[str, str] = json.loads((Path(__file__).parent / "included.json").read_text(encoding="utf-8"))
"""Included concepts, as slices of data sets: the first 400 positive written reviews, and the first 400 of restaurants;
reviews with not, never, no or n't; pictures of a boat."""
_INCLUDED_BY_KIND = "praise, restaurants or negation for texts, boats for pictures"
SETS = (
    f"An included concept ({_INCLUDED_BY_KIND}), or a data set, a slice, a file or a folder with at least "
    f"{LEAST_EXAMPLES} examples. Several between commas."
)
"""Description of the values of the field for concepts."""


def parse_layers(text: str) -> tuple[int, ...]:
    """Parse comma-separated layers; none for all. Errors: anything but different layers from 0."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(re.fullmatch(r"[0-9]{1,3}", part) for part in parts) or len({*map(int, parts)}) < len(parts):
        raise not_allowed("layers", "different layers from 0 between commas", text, "Example: 0,3,5.")
    return tuple(map(int, parts))


def parse_classes(text: str) -> tuple[str, ...]:
    """Parse comma-separated names of classes; none for all."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_concepts(text: str) -> tuple[str, ...]:
    """Parse comma-separated data sets, whose options may contain commas."""
    return tuple(parse_names(text))


@dataclass(frozen=True)
class ConceptsPlan(ExperimentPlan):
    """The plan of a test of concepts. `dataset`: data set of the scored examples and of the random examples.

    `concepts`: names in `INCLUDED`, or data sets whose examples have the concept. `texts`: examples of further
    concepts, one per line; a line "# name" begins another concept. `layers`, `classes`: empty for all. `runs`: number
    of concept activation vectors per concept.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    concepts: tuple[str, ...] = option(
        (), f"Included concepts ({_INCLUDED_BY_KIND}), data sets, slices, files or folders, between commas.",
        metavar="D,D", link="concept", parse=parse_concepts, label="Concepts: names or data sets", place="lead",
        about=SETS,
    )  # fmt: skip
    texts: str = option(
        "", "Examples of a concept, one a line; a line '# name' begins another concept.", metavar="T", place="lead",
    )  # fmt: skip
    classes: tuple[str, ...] = option(
        (), "Classes whose logits are tested. [default: all]", metavar="A,B", link="class", parse=parse_classes,
        label="Classes", about="Names between commas. Empty: all classes of the model.",
    )  # fmt: skip
    layers: tuple[int, ...] = option(
        (), "Layers, counted from 0. [default: all]", metavar="A,B", parse=parse_layers, label="Layers",
        about="Numbers from 0 between commas. Empty: all layers.",
    )  # fmt: skip
    examples: int = options.examples(200)
    runs: int = option(
        10, "Vectors a concept, each of its own examples.", low=2, most=100, metavar="N", label="Vectors",
        about="Concept activation vectors a concept, each trained on its own part of the concept's examples against "
        "its own random examples.",
    )  # fmt: skip
    seed: int = options.seed("Draws the examples, the random examples and the parts of each concept.")
    split: str | None = options.split()
    dtype: str = options.dtype()
    methods: tuple[str, ...] = options.no_methods()
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        """No methods: concepts are tested without explainers."""
        return ()


CONCEPTS = register(
    Experiment(
        id="concepts",
        plan=ConceptsPlan,
        module="engine.concepts.experiment",
        title="Concepts in {models} on {dataset}",
        noun="concepts",
        participle="tested concepts",
        summary="Test whether a prediction depends on concepts given by examples (TCAV). Run it again to resume.",
        doing="reading activations",
        json_help="Print all scores with p-values as JSON.",
        opens_with={
            "text": ConceptsPlan(("reviews-minilm",), "reviews-written", ("praise", "restaurants")),
            "image": ConceptsPlan(("scenes-vit",), "scenes", ("boats",), classes=("boat", "fish")),
        },
    )
)
