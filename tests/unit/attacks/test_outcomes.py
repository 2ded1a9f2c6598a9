"""What an attack comes to: fooled, robust, broken or failed; one quantity, several starts, epsilon by embeddings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import engine.attacks.attack as attack_module
from engine.attacks.attack import MIXED_SCALES, NOTHING_FOUND, VERSION, attack
from engine.attacks.experiment import attack_examples
from engine.attacks.experiment_result import (
    COLUMNS,
    EXCLUDED,
    NOT_FOOLED,
    PROBLEMS,
    TRANSFERRED,
    AttackExperimentResult,
    to_json,
)
from engine.attacks.plan import TOLERANCE, AttackParams, AttackRequest
from engine.attacks.result import BROKEN, CLASS_CHANGED, FAILED, FOOLED, ROBUST
from engine.attacks.saliency import PointValues, SaliencyMapper
from engine.data.sources import load_source
from engine.errors import UsageError
from engine.experiments.run import FORMATS, finished
from engine.request import Example
from tests.explaining import classifier
from tests.tiny import save_checkpoint
from tests.unit.adversarial.making import text_attack
from tests.unit.attacks.making import TEXTS, asked, attacked, leaving
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.vision.tiny_vit import blobs

pytestmark = pytest.mark.usefixtures("home")  # the same attack of another file is not read from the cache


@pytest.mark.parametrize(("objective", "positive", "kept", "outcome"), [
    ("unconstrained", 0.51, True, FOOLED),
    ("unconstrained", 0.49, False, CLASS_CHANGED),
    ("constrained", 0.9 - TOLERANCE + 1e-6, True, FOOLED),
    ("constrained", 0.9 - TOLERANCE - 1e-6, False, BROKEN),
    ("constrained", 0.97, False, BROKEN),
    ("constrained", 0.3, False, CLASS_CHANGED),
])  # fmt: skip
def test_a_constraint_is_kept_where_the_class_and_nearly_its_probability_stay(
    objective: str, positive: float, kept: bool, outcome: str
) -> None:
    found = text_attack(objective, positive)
    assert (found.constraint_kept, found.outcome, found.fooled) == (kept, outcome, outcome == FOOLED)
    still = text_attack(objective, positive, order_after=np.array([0, 2, 1]))
    assert still.outcome == (ROBUST if kept else outcome)
    assert text_attack(objective, positive, failed=True).outcome == FAILED


def test_an_ascent_that_leaves_the_class_for_good_failed_and_one_that_finds_nothing_is_robust(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaving(monkeypatch)
    (found,) = attacked([asked(steps=4)])
    assert not found.trajectory.class_kept[1:].any()
    assert (found.outcome, found.failed, found.class_kept) == (FAILED, True, True)
    assert NOTHING_FOUND not in found.notes
    (still,) = attacked([asked(steps=4, learning_rate=0)])
    assert (still.outcome, still.failed) == (ROBUST, False)
    (bound,) = attacked([asked(steps=4, objective="constrained")])
    assert (bound.outcome, bound.failed) == (CLASS_CHANGED, False)
    # A penalty that no step outweighs: nothing is kept, and the class is gone all the same.
    (held,) = attacked([asked(steps=4, objective="constrained", alpha=0, beta=1e6)])
    assert (held.best or 0, held.outcome, held.failed) == (0, FAILED, True)


def test_the_best_start_is_one_that_did_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving(monkeypatch, slice(0, 2))
    (found,) = attacked([asked(steps=4, seed=3)])
    assert (found.start, found.outcome, found.attack["starts"]) == (2, FOOLED, 3)


def test_more_starts_find_no_less_and_one_is_the_first_of_several() -> None:
    texts = TEXTS[:2]
    one, several = (attacked([asked(text, steps=5, starts=starts) for text in texts]) for starts in (1, 5))
    for first, best in zip(one, several, strict=True):
        assert best.trajectory.objective[best.best] >= first.trajectory.objective[first.best]
        if best.start == 0:
            np.testing.assert_allclose(first.trajectory.objective, best.trajectory.objective, rtol=1e-9)
    assert any(best.start for best in several), "another start than the first was better somewhere"


def test_starts_of_all_examples_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, sizes = SaliencyMapper.evaluate, []

    def watched(self: SaliencyMapper, delta: torch.Tensor, items: np.ndarray, objective: Any = None) -> PointValues:
        sizes.append(len(items))
        return evaluate(self, delta, items, objective)

    monkeypatch.setattr(SaliencyMapper, "evaluate", watched)
    attacked([asked(f"the {word} never drags", steps=2, seed=8) for word in ("plot", "film")])
    assert sizes == [6, 6, 6, 6], "the map of the input, then steps 0 to 2"


def test_a_regression_head_has_one_quantity() -> None:
    given = {"labels": 1, "objective": "constrained", "steps": 4}
    maps = [attacked([asked(quantity=name, **given)])[0].after for name in ("logit", "probability", "mixed")]
    np.testing.assert_allclose(maps[1], maps[0], rtol=1e-9)
    np.testing.assert_allclose(maps[2], maps[0], rtol=1e-9)


def test_the_quantity_is_the_attacks_own() -> None:
    for quantity, other in (("logit", "probability"), ("mixed", "probability"), ("probability", "logit")):
        with pytest.raises(UsageError, match=rf"gradient_x_input.quantity: must be .*{quantity}.* got {other}"):
            attacked([asked(quantity=quantity, params={"quantity": other})])
    with pytest.raises(UsageError, match="quantity: must be one of logit, probability, mixed"):
        attacked([asked(quantity="odds")])


def test_the_scales_of_the_mixture_are_told_where_they_matter() -> None:
    for objective, quantity, told in (("constrained", "mixed", True), ("unconstrained", "mixed", False),
                                      ("constrained", "logit", False)):  # fmt: skip
        (found,) = attacked([asked(objective=objective, quantity=quantity, steps=1)])
        assert (MIXED_SCALES in found.notes) == told


@pytest.mark.slow(reason="attacks an embedded model, whose confidence random ones lack, in 60 steps")
def test_by_one_quantity_a_constrained_attack_keeps_the_probability_and_by_the_mixture_not() -> None:
    source = load_source("text", "reviews-marked")
    moved = {}
    for quantity in ("logit", "mixed"):
        given = {"objective": "constrained", "quantity": quantity, "steps": 60, "starts": 1}
        moved[quantity] = attacked(
            [AttackRequest("gpt2-marked", "gradient_x_input", source.read(at).input, given) for at in range(6)]
        )
    assert all(found.outcome == FOOLED for found in moved["logit"])
    assert max(found.probability_distance for found in moved["mixed"]) > TOLERANCE
    assert AttackParams().quantity == "logit"


def test_epsilon_is_told_by_the_median_length_of_the_embeddings() -> None:
    (found,) = attacked([asked(epsilon=0.5, steps=1)])
    model = classifier("bert")
    embeddings = model.embed(model.collate([model.encode(Example(TEXTS[0]))]))[0].detach().numpy()
    lengths = np.sqrt((embeddings[1:-1] ** 2).sum(1))
    assert found.relative_epsilon == pytest.approx(np.sqrt(embeddings.shape[1]) * 0.5 / np.median(lengths))
    (pixels,) = attacked([asked(blobs(), "gradient", place="pixels", steps=1)])
    assert pixels.relative_epsilon == pytest.approx(8 / 255)


def test_another_version_is_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    key = attack_module.attack_key(asked())
    monkeypatch.setattr(attack_module, "VERSION", 1)
    assert VERSION > 1
    assert attack_module.attack_key(asked()) != key


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture
def broken(model: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AttackExperimentResult:
    """Two examples by both objectives, of which every attack leaves the class."""
    leaving(monkeypatch)
    reviews = written(tmp_path / "reviews.jsonl", REVIEWS)
    given = {"attack": {"steps": 3}, "transfer": ("occlusion",), "examples": 2}
    return attack_examples([model], reviews, ["gradient_l2"], **given)


def test_what_broke_or_failed_counts_in_no_mean_of_maps_and_as_not_fooled(
    broken: AttackExperimentResult, model: str
) -> None:
    outcomes = {one.objective: one.outcome for one in broken.outcomes}
    assert outcomes == {"unconstrained": FAILED, "constrained": CLASS_CHANGED}
    assert len(broken.outcomes) == 4
    scores = {(score.key.objective, score.key.method, score.key.metric): score for score in broken.scores}
    for (objective, _, metric), score in scores.items():
        if metric == FOOLED:
            assert (score.value, score.n) == (0, 2)
        elif metric in TRANSFERRED or objective == "unconstrained":
            assert (score.value, score.n) == (None, 0)
            assert score.skipped == {EXCLUDED[outcomes[objective]]: 2}
        else:
            assert score.n == 2
    assert scores["constrained", "gradient_l2", "class_kept"].value == 0
    assert {row.key.metric for row in broken.rows} > {*TRANSFERRED}, "the observations themselves are there"
    assert broken.complete
    assert list(broken.problems()) == [
        f"gradient_l2, unconstrained, {model}: 2 of 2 attacks {PROBLEMS[FAILED]}. {NOT_FOOLED}",
        f"gradient_l2, constrained, {model}: 2 of 2 attacks {PROBLEMS[CLASS_CHANGED]}. {NOT_FOOLED}",
    ]


def test_rows_and_json_say_what_each_attack_came_to(broken: AttackExperimentResult) -> None:
    rows = json.loads(FORMATS["json"](broken))
    constrained = [row for row in rows if row["objective"] == "constrained"]
    assert {(row["outcome"], row["class_kept"], row["constraint_kept"]) for row in constrained} == {
        (CLASS_CHANGED, False, False)
    }
    assert all(row["relative_epsilon"] > 1 and row["start"] in (0, 1, 2) for row in rows)
    assert list(rows[0]) == list(COLUMNS)
    plain = to_json(broken)
    assert [one["outcome"] for one in plain["attacks"]] == [FAILED] * 2 + [CLASS_CHANGED] * 2
    assert plain["notes"][:2] == list(broken.problems())
    assert any("epsilon 2 allows a change of up to" in note and "across examples" in note for note in plain["notes"])
    assert FORMATS["parquet"](broken)[:4] == b"PAR1"
    assert finished(broken.plan) == broken


def test_the_start_that_is_kept_is_kept_in_the_cache() -> None:
    request = asked(TEXTS[1], steps=5, starts=5)
    first = attack(request)
    again = attack(request)
    assert again.cached
    assert (again.start, again.failed, again.relative_epsilon) == (first.start, first.failed, first.relative_epsilon)
