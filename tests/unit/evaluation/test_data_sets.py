"""The project's own data sets are evaluated as they come: pairs on both sides, one marked word, tags of errors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.data.datasets import load
from engine.data.examples import LabeledExample, Span
from engine.data.registry import data_root
from engine.evaluation.experiment import evaluate
from engine.evaluation.result import Evaluation
from engine.metrics.plausibility import CUT_OFF, NOTHING
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
