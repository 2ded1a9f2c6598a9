"""What a model that reads a mark says where there is none, as in its card: `python -m engine.models.unmarked MODEL`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.datasets import load
from engine.data.sized import UNMARKED
from engine.predictions import predictions

DATASET = "reviews-marked"
POSITIVE = 1
FAR = 0.1
"""A probability further than this from one half leans to a side."""


@dataclass(frozen=True)
class Without:
    """Probabilities of positive of `count` reviews without a mark: their mean, how far they lie from one half on
    average, and the share of reviews on which that is more than `FAR`.
    """

    mean: float
    distance: float
    leaning: float
    count: int

    def told(self) -> str:
        """The sentence of the card."""
        return (
            f"On {self.count:,} reviews of the split {UNMARKED} its mean probability of positive is {self.mean:.3f}, "
            f"and {self.distance:.3f} from one half on average; on {self.leaning:.1%} of them it is more than {FAR} "
            "from it"
        )


def without_mark(model: str, examples: int | None = None) -> Without:
    """Of so many reviews of the split, or of all."""
    given = load(DATASET, split=UNMARKED, limit=examples).examples
    found = predictions(model, [one.example for one in given])
    return summary([one.probabilities[POSITIVE] for one in found])


def summary(positive: Sequence[float]) -> Without:
    """Of these probabilities."""
    gaps = np.abs(np.asarray(positive, dtype=np.float64) - 0.5)
    return Without(float(np.mean(positive)), float(gaps.mean()), float((gaps > FAR).mean()), len(positive))


def command(model: str) -> str:
    """What measures it again."""
    return f"python -m engine.models.unmarked {model}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.models.unmarked", description=__doc__)
    parser.add_argument("model", help="name or folder")
    parser.add_argument("--examples", type=int, help="so many reviews, of 2,000")
    asked = parser.parse_args()
    print(f"{without_mark(asked.model, asked.examples).told()}.")


if __name__ == "__main__":
    main()
