"""Report on the pairs of `nli.jsonl`: `python -m engine.data.nli_report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from engine.data.labels import NLI_LABELS
from engine.data.registry import data_root
from engine.data.report import (
    FOLDER,
    count_shared,
    find_shared_ngrams,
    find_word_spans,
    marked_share,
    mean,
    read_records,
    read_sentences,
)

NLI_FILES = ("snli_dev.tsv", "snli_test.tsv", "sick_train.tsv", "sick_trial.tsv")


def nli_sentences(folder: Path) -> list[str] | None:
    """Read all sentences of the local SNLI and SICK, or None if a file is missing."""
    return read_sentences(folder, NLI_FILES, ("premise", "hypothesis"))


@dataclass(frozen=True)
class NliStatistics:
    """Statistics in the report on the pairs. Shares are from 0 to 1; None if unknown.

    `accuracy`: accuracy of a bag of words of the hypothesis alone.
    """

    pairs: int
    premises: int
    by_label: dict[str, int]
    by_phenomenon: dict[str, tuple[int, ...]]
    words: tuple[float, float]
    marked: tuple[float, float]
    accuracy: float
    shared_within: int
    shared: int | None
    sentences: int | None


def measure_hypotheses(records: Sequence[dict[str, Any]]) -> float:
    """Return the cross-validated accuracy of a bag of words of the hypothesis alone; folds share no premise."""
    premises = {record["text"]: number for number, record in enumerate(records)}
    groups = [premises[record["text"]] for record in records]
    labels = [record["label"] for record in records]
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
    hypotheses = [record["text_pair"] for record in records]
    predicted = cross_val_predict(model, hypotheses, labels, groups=groups, cv=GroupKFold(10))
    return mean(bool(index == label) for index, label in zip(predicted, labels, strict=True))


def count_shared_between(records: Sequence[Mapping[str, Any]]) -> int:
    """Count six-word n-grams shared between premises. A hypothesis may repeat its own premise only."""
    by_premise: dict[str, list[str]] = {}
    for record in records:
        by_premise.setdefault(record["text"], [record["text"]]).append(record["text_pair"])
    return len(find_shared_ngrams(by_premise.values()))


def measure_nli(records: Sequence[dict[str, Any]], others: Sequence[str] | None) -> NliStatistics:
    """Measure the pairs. `others`: sentences of SNLI and SICK."""
    premises = list(dict.fromkeys(record["text"] for record in records))
    hypotheses = [record["text_pair"] for record in records]
    labels = Counter(NLI_LABELS[record["label"]] for record in records)
    kinds = Counter((record["phenomenon"], record["label"]) for record in records)
    return NliStatistics(
        pairs=len(records),
        premises=len(premises),
        by_label={name: labels[name] for name in NLI_LABELS},
        by_phenomenon={kind: tuple(kinds[kind, i] for i in range(3)) for kind in sorted({kind for kind, _ in kinds})},
        words=(
            mean(len(find_word_spans(text)) for text in premises),
            mean(len(find_word_spans(text)) for text in hypotheses),
        ),
        marked=(
            mean(marked_share(record["text"], record["rationale"]) for record in records),
            mean(marked_share(record["text_pair"], record["rationale_pair"]) for record in records),
        ),
        accuracy=measure_hypotheses(records),
        shared_within=count_shared_between(records),
        shared=None if others is None else count_shared([*premises, *hypotheses], others),
        sentences=None if others is None else len(others),
    )


def nli_line(statistics: NliStatistics) -> str:
    """Write the line on overlap with SNLI and SICK, or that it was not checked."""
    if statistics.shared is None:
        return "* with SNLI and SICK: not checked, their files were not found (`EXEGESIS_DATA` names their folder)"
    return f"* with SNLI (dev, test) and SICK (train, trial), {statistics.sentences:,} sentences: {statistics.shared}"


def render_nli(statistics: NliStatistics) -> str:
    """Render the report on the pairs as Markdown."""
    rows = "\n".join(f"| {kind} | " + " | ".join(map(str, n)) + " |" for kind, n in statistics.by_phenomenon.items())
    by_label = ", ".join(f"{n} {name}" for name, n in statistics.by_label.items())
    premise, hypothesis = (f"{share:.1%}" for share in statistics.marked)
    return f"""# The pairs, measured

Written by `python -m engine.data.nli_report` from `nli.jsonl`.

{statistics.pairs} pairs of {statistics.premises} premises; {by_label}.
A premise has {statistics.words[0]:.1f} words on average, a hypothesis {statistics.words[1]:.1f}.

## What one must understand

| phenomenon | {" | ".join(NLI_LABELS)} |
|---|---|---|---|
{rows}

## Highlights

Share of words marked: {premise} of a premise, {hypothesis} of a hypothesis; every pair has both.

## What the hypothesis alone tells

A bag of words of the hypothesis, on premises that it was not trained on, is right in {statistics.accuracy:.1%}
of the pairs; guessing is in 33.3%.

## Runs of six words

* shared by texts of two premises: {statistics.shared_within}
{nli_line(statistics)}
"""


def main() -> None:
    pairs = measure_nli(read_records(FOLDER / "nli.jsonl"), nli_sentences(data_root() / "nli"))
    (FOLDER / "nli_report.md").write_text(render_nli(pairs), encoding="utf-8")
    print(f"nli_report.md: {pairs.pairs} pairs, {pairs.shared_within} runs shared within")


if __name__ == "__main__":
    main()
