"""Measures generated reviews and writes `reviews_generated_report.md`: `python -m engine.data.generated_report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.data.datasets import load
from engine.data.examples import LabelledExample
from engine.data.report import marked_words
from engine.data.wording import word_spans

FOLDER = Path(__file__).resolve().parent
TRAIN, TEST = 8_000, 2_000
RUNS = (1, 2, 3)
"""The longest run of words that a bag holds."""


@dataclass(frozen=True)
class Bag:
    """Accuracy of a bag of words on the test split, whole and by kind."""

    longest: int
    accuracy: float
    by_kind: dict[str, float]


def bag_of_words(train: Sequence[LabelledExample], test: Sequence[LabelledExample], longest: int) -> Bag:
    """Logistic regression on which runs of up to `longest` words a text holds."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    bags = CountVectorizer(ngram_range=(1, longest), token_pattern=r"[\w']+", binary=True, min_df=2)
    seen = bags.fit_transform([example.text for example in train])
    model = LogisticRegression(C=0.3, max_iter=1000).fit(seen, [example.label for example in train])
    guessed = model.predict(bags.transform([example.text for example in test]))
    right = [bool(guess == example.label) for guess, example in zip(guessed, test, strict=True)]
    kinds = [str(example.extra["kind"]) for example in test]
    by_kind = {kind: _mean([r for r, k in zip(right, kinds, strict=True) if k == kind]) for kind in sorted(set(kinds))}
    return Bag(longest, _mean(right), by_kind)


def render(train: Sequence[LabelledExample], test: Sequence[LabelledExample], bags: Sequence[Bag]) -> str:
    """The report as Markdown."""
    kinds = tuple(bags[0].by_kind)
    head = "| runs of | all | " + " | ".join(kinds) + " |\n|---|---|" + "---|" * len(kinds)
    rows = "\n".join(
        f"| {_runs(bag.longest)} | {bag.accuracy:.3f} | " + " | ".join(f"{bag.by_kind[k]:.3f}" for k in kinds) + " |"
        for bag in bags
    )
    traits = Counter(trait for example in train for trait in _traits(example))
    told = "\n".join(f"* {trait}: {count / len(train):.1%}" for trait, count in sorted(traits.items()))
    lengths = [len(word_spans(example.text)) for example in train]
    marked = _mean([marked_words({"text": e.text, "rationale": e.rationale}) for e in train])
    return f"""# Generated reviews, measured

Written by `python -m engine.data.generated_report` from the first {len(train):,} reviews for training and
{len(test):,} for test of seed 0.

## What a bag of words finds

Accuracy of logistic regression on the words of a text, whatever their order. The label follows from the grammar, so the
truth is 1.000, and guessing is right in half of the cases.

{head}
{rows}

## Language

{min(lengths)} to {max(lengths)} words, mean {_mean(lengths):.1f}; {len({e.text for e in train}):,} different texts.
Share of words marked as the reason: {marked:.1%}.

Share of reviews with

{told}
"""


def _traits(example: LabelledExample) -> list[str]:
    found = example.extra["traits"]
    return [str(trait) for trait in found] if isinstance(found, list) else []


def _runs(longest: int) -> str:
    return "one word" if longest == 1 else f"up to {longest} words"


def _mean(values: Sequence[int | float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    train = load("reviews-generated", split="train", limit=TRAIN).examples
    test = load("reviews-generated", split="test", limit=TEST).examples
    bags = [bag_of_words(train, test, longest) for longest in RUNS]
    (FOLDER / "reviews_generated_report.md").write_text(render(train, test, bags), encoding="utf-8")
    print(f"reviews_generated_report.md: a bag of words reaches {bags[0].accuracy:.3f}")


if __name__ == "__main__":
    main()
