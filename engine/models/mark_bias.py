"""Bias of a model of marked reviews on unmarked ones: `python -m engine.models.mark_bias MODEL`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.datasets import load
from engine.data.generation import UNMARKED
from engine.predictions import predictions

DATASET = "reviews-marked"
POSITIVE = 1
LEANING = 0.1
"""Minimum distance from one half of a probability that leans to one side."""


@dataclass(frozen=True)
class MarkBias:
    """Statistics of the probability of positive on `count` reviews without marks.

    `distance`: mean distance from one half. `leaning`: share of reviews with a distance above `LEANING`.
    """

    mean: float
    distance: float
    leaning: float
    count: int

    def sentence(self) -> str:
        """Return the sentence for the model card."""
        return (
            f"On {self.count:,} reviews of the split {UNMARKED} its mean probability of positive is {self.mean:.3f}, "
            f"and {self.distance:.3f} from one half on average; on {self.leaning:.1%} of them it is more than "
            f"{LEANING} from it"
        )


def measure_mark_bias(model: str, examples: int | None = None) -> MarkBias:
    """Measure the bias on the first `examples` reviews of the split, or on all."""
    reviews = load(DATASET, split=UNMARKED, limit=examples).examples
    answers = predictions(model, [review.example for review in reviews])
    return summarize_probabilities([answer.probabilities[POSITIVE] for answer in answers])


def summarize_probabilities(positive: Sequence[float]) -> MarkBias:
    """Compute the bias from probabilities of positive."""
    gaps = np.abs(np.asarray(positive, dtype=np.float64) - 0.5)
    return MarkBias(float(np.mean(positive)), float(gaps.mean()), float((gaps > LEANING).mean()), len(positive))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.models.mark_bias", description=__doc__)
    parser.add_argument("model", help="name or folder")
    parser.add_argument("--examples", type=int, help="so many reviews, of 2,000")
    arguments = parser.parse_args()
    print(f"{measure_mark_bias(arguments.model, arguments.examples).sentence()}.")


if __name__ == "__main__":
    main()
