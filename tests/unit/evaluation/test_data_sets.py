"""The project's own data sets are evaluated as they come: pairs on both sides, one marked word, tags of errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.data.datasets import load
from engine.data.examples import LabeledExample, Span
from engine.data.registry import data_root
from engine.errors import UsageError
from engine.evaluation.experiment import evaluate
from engine.evaluation.result import PART_READ, Evaluation
from engine.metrics.plausibility import CUT_OFF, NOTHING, UNREAD
from tests.explaining import checkpoint

pytestmark = pytest.mark.usefixtures("home")

EXAMPLES = 12


def evaluated(data: str, labels: int) -> Evaluation:
    """By random orders, which cost nothing but the prediction."""
    metrics = ["gt_overlap", "plausibility_auc", "plausibility_auc_first", "plausibility_auc_second"]
    return evaluate([str(checkpoint("bert", labels))], data, ["random"], metrics, EXAMPLES, unit="word")


def drawn(found: Evaluation) -> list[LabeledExample]:
    """Those of which the tiny model, which reads 64 short tokens, has seen all that is marked."""
    data, cut = load(found.plan.dataset), {skip.example for skip in found.skips if skip.reason == CUT_OFF}
    return [data[one.example] for one in found.facts if one.example not in cut]


def decides(text: str | None, spans: Sequence[Span]) -> bool:
    """Whether some of its words are marked, and not all of them."""
    places, at = [], 0
    for word in (text or "").split():
        at = (text or "").index(word, at)
        places.append((at, at + len(word)))
        at += len(word)
    marked = [any(start < end and first < stop for first, end in spans) for start, stop in places]
    return any(marked) and not all(marked)


@pytest.mark.parametrize(("data", "labels"), [("quality", 1), ("nli", 3)])
def test_each_text_of_a_pair_is_judged_where_some_of_its_words_are_marked(data: str, labels: int) -> None:
    found = evaluated(data, labels)
    examples = drawn(found)
    counts = {score.metric: score.n for score in found.scores}
    assert len(examples) >= EXAMPLES // 2
    assert counts["plausibility_auc_first"] == sum(decides(one.text, one.rationale) for one in examples) > 0
    assert counts["plausibility_auc_second"] == sum(decides(one.text_pair, one.rationale_pair) for one in examples) > 0
    assert all(score.n + sum(score.skipped.values()) == EXAMPLES for score in found.scores)


def test_of_a_long_text_the_marks_that_are_read_count_on_request(tmp_path: Path) -> None:
    """The tiny model reads 64 tokens: the first text fits, the others do not, the last is marked at its end alone."""
    long, late = "the film " * 50, len("the film " * 49)
    spans = ([[0, 3]], [[0, 3], [late, late + 3]], [[late, late + 3]])
    rows = [
        {"text": text, "label": "good", "rationale": own}
        for text, own in zip(("the film", long, long), spans, strict=True)
    ]
    file = tmp_path / "long.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {**rows[0], "label": "bad"}]), encoding="utf-8")
    model, asked = [str(checkpoint("bert", 2))], (str(file), ["random"], ["gt_overlap"])
    whole, read = (evaluate(model, *asked, unit="word", marks=marks) for marks in ("whole", "read"))
    skipped = [{skip.example: skip.reason for skip in found.skips} for found in (whole, read)]
    assert skipped == [{1: CUT_OFF, 2: CUT_OFF}, {2: UNREAD}]
    assert [{row.example for row in found.rows} for found in (whole, read)] == [{0, 3}, {0, 1, 3}]
    with pytest.raises(UsageError, match="marks: "):
        evaluate(["scenes-vit"], "scenes", ["random"], marks="read")
    assert (PART_READ in whole.notes, PART_READ in read.notes) == (False, True)


def test_of_a_marked_review_one_word_is_true_and_chance_finds_it_at_its_rate() -> None:
    found = evaluated("reviews-marked", 2)
    marked = [one for one in drawn(found) if one.rationale]
    [overlap] = [score for score in found.scores if score.metric == "gt_overlap"]
    assert overlap.n == len(marked) > 0
    assert overlap.interval is not None
    assert overlap.interval[0] <= sum(1 / len(one.text.split()) for one in marked) / len(marked) <= overlap.interval[1]


@pytest.mark.skipif(not (data_root() / "mlqe_pe").is_dir(), reason="needs the MLQE-PE data in EXEGESIS_DATA")
def test_translations_without_errors_are_left_out() -> None:
    found = evaluated("mlqe-pe", 1)
    examples = drawn(found)
    faultless = sum(not one.rationale and not one.rationale_pair for one in examples)
    [auc] = [score for score in found.scores if score.metric == "plausibility_auc"]
    assert auc.skipped.get(NOTHING, 0) == faultless
    assert auc.n > 0
