"""Plausibility: by hand, against scikit-learn and the registered explainers, kept, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from engine.data.sources import load_source
from engine.errors import UsageError
from engine.explain import explain
from engine.request import Example, Request
from engine.scaffold import explainer_checks, measurement
from engine.scaffold.explainer_checks import HEAD, LAYER, HeadContrast, Plausibility, part_names
from engine.scaffold.measurement import MarkedExample
from engine.scaffold.plan import (
    ATTENTION,
    GRADIENTS,
    SMAT,
    EvaluationSample,
    Recipe,
    ScaffoldPlan,
    evaluation_sample,
    splits_of,
)
from engine.scaffold.result import HeadCoefficients
from engine.word_units import unit_scores
from tests.explaining import checkpoint, classifier
from tests.tiny import CORPUS
from tests.unit.scaffold.marking import marked_file, marked_pictures
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")
HEADS = 12
"""Three layers of four, in the tiny models."""


def asked(folder: Path, family: str = "bert", pair: bool = False) -> EvaluationSample:
    data = str(marked_file(folder / "data.jsonl", pair))
    source = load_source("text", data, None, tolerant=True)
    return EvaluationSample(str(checkpoint(family)), data, None, tuple(range(source.count)), source)


def measured(of: EvaluationSample, learned: HeadCoefficients | None = None) -> Plausibility:
    return explainer_checks.plausibility(of, learned)


def test_a_word_has_the_sum_of_its_pieces_and_each_text_is_judged_by_itself() -> None:
    groups = np.array([[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=bool)
    marks, segments = np.array([True, False, True, False]), np.array([0, 0, 1, 1])
    coded = classifier("bert").encode(Example("only there to be held"))
    one = MarkedExample(0, coded, groups, marks, segments)
    maps = np.array([[9.0, 0.1, 0.2, 0.25, 0.05, 0.4], [0.0, 0.25, 0.25, 0.5, 0.125, 0.125]])
    # Marked .3 and .05 against .25 and .4: one of four pairs in order; then ties count half.
    assert one.auc(maps, "").tolist() == [0.25, 0.5]
    assert one.auc(maps, "first").tolist() == [1.0, 0.5]
    assert one.auc(maps, "second").tolist() == [0.0, 0.5]


def test_static_attention_is_judged_as_the_registered_explainer_and_scikit_learn_judge_it(tmp_path: Path) -> None:
    of = asked(tmp_path)
    side = measured(of).side()
    for id in ATTENTION:
        for place, value in zip(side.examples, side.methods[id], strict=True):
            given = of.source.read(place).example
            made = explain(Request(of.teacher, id, Example(given.text)))  # type: ignore[union-attr]
            scores = unit_scores(made, Example(given.text), "word")  # type: ignore[union-attr]
            words = given.text.split()  # type: ignore[union-attr]
            marks = [word == "film" for word in words]
            assert len(scores) == len(words)
            assert value == pytest.approx(roc_auc_score(marks, scores), abs=1e-6)


def test_a_uniform_explainer_is_static_attention_and_one_head_alone_is_that_head(tmp_path: Path) -> None:
    of = asked(tmp_path)
    even = measured(of, HeadCoefficients(np.full(HEADS, 1 / HEADS))).side()
    np.testing.assert_allclose(even.methods[SMAT], even.methods[ATTENTION[0]])
    alone = np.zeros(HEADS)
    alone[7] = 1.0
    side = measured(of, HeadCoefficients(alone)).side()
    np.testing.assert_array_equal(side.methods[SMAT], side.heads[:, 7])
    np.testing.assert_array_equal(side.methods[ATTENTION[1]], side.layers[:, 2])


def test_the_best_layer_and_head_are_the_highest_by_the_labels_and_are_marked_as_supervised(tmp_path: Path) -> None:
    side = measured(asked(tmp_path)).side()
    rows = {row.explainer: row for row in side.rows}
    assert list(rows) == [*GRADIENTS, *ATTENTION, LAYER, HEAD]
    head = rows[HEAD].at
    assert rows[HEAD].mean == side.heads.mean(0).max() == side.heads[:, head[0] * 4 + head[1]].mean()
    assert rows[LAYER].mean == side.layers.mean(0).max()
    assert [row.supervised for row in side.rows] == [False] * 5 + [True] * 2
    for row in side.rows:
        assert row.interval is not None
        assert 0 <= row.interval[0] <= row.mean <= row.interval[1] <= 1


def test_active_heads_are_compared_with_the_others_example_by_example(tmp_path: Path) -> None:
    phi = np.zeros(HEADS)
    phi[[2, 9]] = 0.5
    made = measured(asked(tmp_path), HeadCoefficients(phi))
    found, heads = made.contrast, made.side().heads
    assert found is not None
    assert (found.active, found.inactive) == (2, 10)
    assert found.mean_active == pytest.approx(heads[:, [2, 9]].mean())
    assert found.difference == pytest.approx(heads[:, [2, 9]].mean() - np.delete(heads, [2, 9], 1).mean())
    assert measured(made.sample, HeadCoefficients(np.full(HEADS, 1 / HEADS))).contrast is None


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        ((0.1, 0.2), "Active heads are more plausible than inactive ones."),
        ((-0.2, -0.1), "Active heads are less plausible than inactive ones."),
        ((-0.1, 0.2), "The difference may be due to chance."),
        (None, "One example is not enough to compare active and inactive heads."),
    ],
)
def test_the_verdict_hangs_on_the_interval(interval: tuple[float, float] | None, told: str) -> None:
    assert HeadContrast(1, 2, 0.6, 0.5, interval).verdict == told


def test_examples_that_cannot_be_judged_are_counted_with_the_reason(tmp_path: Path) -> None:
    of = asked(tmp_path)
    side = measured(of).side()
    assert len(side.examples) + sum(side.skipped.values()) == len(of.indices)
    assert side.skipped == {"nothing is marked": 1, "everything is marked": 1}
    nothing = EvaluationSample(of.teacher, of.dataset, None, (4,), of.source)
    empty = measured(nothing).side()
    assert (empty.examples, empty.rows, empty.skipped) == ((), (), {"nothing is marked": 1})


def test_the_texts_of_a_pair_are_judged_apart(tmp_path: Path) -> None:
    made = measured(asked(tmp_path, pair=True))
    assert [side.name for side in made.sides] == ["", "first", "second"]
    assert made.side("second").examples == (0,)
    assert made.side("second").skipped["nothing is marked in the second text"] == len(made.side().examples) - 1


def test_what_is_measured_is_kept_and_hangs_on_the_learned_explainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, learned = asked(tmp_path), HeadCoefficients(np.eye(HEADS)[0])
    first = measured(of, learned)
    asked_again: list[str] = []

    def refuse(asked: EvaluationSample, learned: HeadCoefficients | None, part: str) -> None:
        asked_again.append(part)
        raise ZeroDivisionError

    monkeypatch.setattr(measurement, "measure_plausibility", refuse)
    np.testing.assert_array_equal(measured(of, learned).side().heads, first.side().heads)
    with pytest.raises(ZeroDivisionError):
        measured(of, HeadCoefficients(np.eye(HEADS)[1]))
    assert asked_again == [SMAT]
    keys = {explainer_checks.part_key(of, learned, part) for part in part_names(learned)}
    assert len(keys) == len(part_names(learned)) == 5


def test_an_explainer_of_another_shape_is_refused_naming_both(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"must have one weight for each of the 12 heads of the teacher .*, got 5\. Choose an explainer",
    ):
        measured(asked(tmp_path), HeadCoefficients(np.full(5, 0.2)))


def test_pictures_are_judged_by_patches(tmp_path: Path) -> None:
    of = marked_pictures(str(save_vit(tmp_path / "vit")), 4)
    made = measured(of)
    assert made.exact
    assert all(0 <= row.mean <= 1 for row in made.side().rows)
    assert made.side().heads.shape[1] == made.shape[0] * made.shape[1]


def test_of_the_own_data_set_only_test_examples_are_asked_about(tmp_path: Path) -> None:
    rows = [{"text": f"{CORPUS[at % 5]} {at}", "label": at % 2} for at in range(40)]
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    recipe = Recipe(held_out=5, validation=5, test=10)
    plan = ScaffoldPlan(str(checkpoint("bert")), str(file), train_sizes=(10,), recipe=recipe)
    of = evaluation_sample(plan, 6)
    assert of.indices == splits_of(40, plan).test[:6]
    assert len(evaluation_sample(plan, 500).indices) == 10
    with pytest.raises(UsageError, match="examples: must be a whole number of at least 1, got 0"):
        evaluation_sample(plan, 0)
