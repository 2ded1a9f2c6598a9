"""Measures `nli.jsonl` and writes `nli_report.md`: `python -m engine.data.nli_report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.data.labels import NLI_LABELS
from engine.data.report import marked_words, read_records, shared_with
from engine.data.sst2 import data_root
from engine.data.tables import read_table
from engine.data.wording import ngrams, word_spans

FOLDER = Path(__file__).resolve().parent
FILES = ("snli_dev.tsv", "snli_test.tsv", "sick_train.tsv", "sick_trial.tsv")


@dataclass(frozen=True)
class Stats:
    """What the report says of the pairs; shares in 0..1, unknown is None."""

    pairs: int
    premises: int
    by_label: dict[str, int]
    by_phenomenon: dict[str, tuple[int, ...]]
    words: tuple[float, float]
    marked: tuple[float, float]
    hypothesis_alone: float
    shared_within: int
    shared: int | None
    sentences: int | None


def other_sentences(folder: Path) -> list[str] | None:
    """All sentences of the local SNLI and SICK, or None where a file of them is missing."""
    paths = [folder / name for name in FILES]
    if not all(path.is_file() for path in paths):
        return None
    rows = [row for path in paths for _, row in read_table(path)]
    return [str(row[side]) for row in rows for side in ("premise", "hypothesis")]


def hypothesis_alone(records: Sequence[dict[str, Any]], folds: int = 10) -> float:
    """Accuracy of a bag of words that never sees the premise, on pairs whose premise it was not trained on."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    premises = {record["text"]: number for number, record in enumerate(records)}
    groups = [premises[record["text"]] for record in records]
    labels = [record["label"] for record in records]
    model = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
    hypotheses = [record["text_pair"] for record in records]
    guessed = cross_val_predict(model, hypotheses, labels, groups=groups, cv=GroupKFold(folds))
    return sum(bool(guess == label) for guess, label in zip(guessed, labels, strict=True)) / len(labels)


def measure(records: Sequence[dict[str, Any]], others: Sequence[str] | None) -> Stats:
    """Everything that the report shows."""
    premises = list(dict.fromkeys(record["text"] for record in records))
    hypotheses = [record["text_pair"] for record in records]
    turned = [{"text": record["text_pair"], "rationale": record["rationale_pair"]} for record in records]
    labels = Counter(NLI_LABELS[record["label"]] for record in records)
    kinds = Counter((record["phenomenon"], record["label"]) for record in records)
    return Stats(
        pairs=len(records),
        premises=len(premises),
        by_label={name: labels[name] for name in NLI_LABELS},
        by_phenomenon={kind: tuple(kinds[kind, i] for i in range(3)) for kind in sorted({kind for kind, _ in kinds})},
        words=(_words(premises), _words(hypotheses)),
        marked=(_mean(map(marked_words, records)), _mean(map(marked_words, turned))),
        hypothesis_alone=hypothesis_alone(records),
        # A hypothesis may repeat its own premise, but no other text.
        shared_within=_shared_between(records),
        shared=None if others is None else shared_with([*premises, *hypotheses], others),
        sentences=None if others is None else len(others),
    )


def _shared_between(records: Sequence[dict[str, Any]]) -> int:
    """Runs of six words that texts of two premises share."""
    by_premise: dict[str, list[str]] = {}
    for record in records:
        by_premise.setdefault(record["text"], [record["text"]]).append(record["text_pair"])
    joined = [[gram for text in texts for gram in ngrams(text)] for texts in by_premise.values()]
    counts = Counter(gram for grams in joined for gram in set(grams))
    return sum(count > 1 for count in counts.values())


def _words(texts: Sequence[str]) -> float:
    return _mean(len(word_spans(text)) for text in texts)


def _mean(values: Any) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def overlap_line(stats: Stats) -> str:
    """The line on SNLI and SICK, which says so where the check could not be made."""
    if stats.shared is None:
        return "* with SNLI and SICK: not checked, their files were not found (`EXEGESIS_DATA` names their folder)"
    return f"* with SNLI (dev, test) and SICK (train, trial), {stats.sentences:,} sentences: {stats.shared}"


def render(stats: Stats) -> str:
    """The report as Markdown."""
    rows = "\n".join(f"| {kind} | " + " | ".join(map(str, n)) + " |" for kind, n in stats.by_phenomenon.items())
    return f"""# The pairs, measured

Written by `python -m engine.data.nli_report` from `nli.jsonl`.

{stats.pairs} pairs of {stats.premises} premises; {", ".join(f"{n} {name}" for name, n in stats.by_label.items())}.
A premise has {stats.words[0]:.1f} words on average, a hypothesis {stats.words[1]:.1f}.

## What one must understand

| phenomenon | {" | ".join(NLI_LABELS)} |
|---|---|---|---|
{rows}

## Highlights

Share of words marked: {stats.marked[0]:.1%} of a premise, {stats.marked[1]:.1%} of a hypothesis; every pair has both.

## What the hypothesis alone tells

A bag of words of the hypothesis, on premises that it was not trained on, is right in {stats.hypothesis_alone:.1%}
of the pairs; guessing is in 33.3%.

## Runs of six words

* shared by texts of two premises: {stats.shared_within}
{overlap_line(stats)}
"""


def main() -> None:
    stats = measure(read_records(FOLDER / "nli.jsonl"), other_sentences(data_root() / "nli"))
    (FOLDER / "nli_report.md").write_text(render(stats), encoding="utf-8")
    print(f"nli_report.md: {stats.pairs} pairs, {stats.shared_within} runs shared within")


if __name__ == "__main__":
    main()
