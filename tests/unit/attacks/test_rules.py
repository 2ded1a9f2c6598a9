"""The rules of an attack: bounds, k, the step that is kept, early stops, and numbers that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import engine.attacks.attack as attack_module
from engine.attacks.attack import NOTHING_MOVES, attack_many
from engine.attacks.optimizer import group_by_length
from engine.attacks.plan import METHODS, AttackParams
from engine.attacks.result import rank_change, sum_change
from engine.attacks.saliency import PointValues, SaliencyMapper
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.params import from_mapping
from engine.progress import CancelToken
from engine.store import result_store
from tests.explaining import classifier, fingerprint
from tests.unit.attacks.making import TEXTS, asked, attacked
from tests.unit.vision.tiny_vit import blobs

LONG_STEP = 50.0
"""A learning rate at which bounds are reached at once."""


def test_the_numbers_of_the_thesis_example() -> None:
    assert rank_change(np.array([12, 3, 7]), np.array([3, 15, 7]), 3) == pytest.approx(2 / 3)
    assert sum_change(np.array([5.0, 1.0, 3.0]), np.array([1.0, 9.0, 2.0]), [0, 2]) == 5


@pytest.mark.parametrize(("top_k", "n", "k"), [(0.15, 20, 3), (0.15, 19, 2), (0.15, 4, 1), (0.29, 100, 29), (3.0, 9, 3),
                                               (50.0, 9, 9), (1.0, 9, 1)])  # fmt: skip
def test_k_is_a_share_rounded_down_or_a_number(top_k: float, n: int, k: int) -> None:
    assert AttackParams(top_k=top_k).k_of(n) == k


@pytest.mark.parametrize(("name", "value"), [("top_k", 0), ("top_k", 1.5), ("epsilon", -1), ("steps", 0), ("beta", -1),
                                             ("objective", "both"), ("place", "words")])  # fmt: skip
def test_values_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        from_mapping(AttackParams, {name: value}, "attack")


def test_nothing_moves_further_than_epsilon_and_special_tokens_only_where_asked() -> None:
    near, free = attacked(
        [asked(epsilon=0.05, steps=3, learning_rate=LONG_STEP),
         asked(epsilon=0.05, steps=3, learning_rate=LONG_STEP, specials=True)]
    )  # fmt: skip
    special = [token.special for token in near.tokens]
    assert near.largest.max() == pytest.approx(0.05)
    assert not near.length[special].any()
    assert (free.length[special] > 0).all()
    np.testing.assert_allclose(near.length, np.sqrt((near.delta**2).sum(1)))


def test_pixels_stay_colors_and_the_picture_shows_what_was_done() -> None:
    (found,) = attacked([asked(blobs(), "gradient", place="pixels", steps=4, learning_rate=LONG_STEP)])
    picture = found.picture
    assert picture is not None
    exact = picture.before / 255 + picture.difference
    assert exact.min() >= -1e-6
    assert exact.max() <= 1 + 1e-6
    assert np.abs(picture.difference).max() == pytest.approx(8 / 255, rel=1e-5)
    assert picture.before.max() == 255, "some pixel could not grow"
    np.testing.assert_array_equal(picture.after, (exact * 255).round().clip(0, 255))
    assert found.nearest == ()


def test_epsilon_0_runs_changes_nothing_and_says_so() -> None:
    (found,) = attacked([asked(epsilon=0, steps=100)])
    assert (found.best, found.steps, found.rank_change, found.probability_change) == (None, 20, 0, 0)
    assert found.notes == (NOTHING_MOVES,)
    np.testing.assert_array_equal(found.before, found.after)


def test_more_features_than_there_are_is_all_of_them_and_said() -> None:
    (found,) = attacked([asked(top_k=99, steps=2)])
    assert found.k == len(found.features) == len(found.top)
    assert f"top_k is 99, but there are only {found.k} tokens" in found.notes[0]


def test_the_same_attack_alone_and_in_company() -> None:
    company = attacked([asked(text, steps=6) for text in TEXTS])
    result_store().clear()
    for text, beside in zip(TEXTS, company, strict=True):
        (alone,) = attacked([asked(text, steps=6)])
        assert not alone.cached
        np.testing.assert_allclose(alone.delta, beside.delta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_all_features_of_a_shorter_text_beside_a_longer_one(family: str) -> None:
    """Where no special token stands first, a place that the shorter text lacks must not stand for its first word."""
    given = ("the acting is a quiet triumph", "the acting is a quiet triumph and warm")
    company = attacked([asked(text, family=family, top_k=99, steps=2) for text in given])
    result_store().clear()
    for text, beside in zip(given, company, strict=True):
        (alone,) = attacked([asked(text, family=family, top_k=99, steps=2)])
        np.testing.assert_allclose(alone.trajectory.objective, beside.trajectory.objective, rtol=1e-6)


def test_unconstrained_keeps_the_class_and_constrained_its_probability() -> None:
    free, bound = (
        attacked([asked(text, objective=objective, beta=1e4, steps=12) for text in TEXTS[:2]])
        for objective in ("unconstrained", "constrained")
    )
    assert all(found.class_kept for found in free)
    assert max(found.probability_distance for found in bound) < 0.02
    assert sum(found.top_k_sum_change for found in free) > sum(found.top_k_sum_change for found in bound) > 0


def test_what_is_not_finite_stops_that_example_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, calls = SaliencyMapper.evaluate, []

    def broken(self: SaliencyMapper, delta: torch.Tensor, items: np.ndarray, objective: Any = None) -> PointValues:
        found = evaluate(self, delta, items, objective)
        calls.append(items)
        if len(calls) == 5 and found.gradient is not None:  # the map of the input itself, then steps 0 to 3
            found.gradient[0] = torch.nan
        return found

    monkeypatch.setattr(SaliencyMapper, "evaluate", broken)
    one, other = attacked([asked(f"the {word} drags", steps=6, seed=5, starts=1) for word in ("plot", "film")])
    assert "Stopped at step 3: the gradient of the objective was not finite." in one.notes[0]
    assert (one.steps, other.steps, other.notes) == (3, 6, ())
    assert one.best is not None
    assert one.top_k_sum_change > 0


def test_a_stopped_attack_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel, requests = CancelToken(), [asked(text, steps=8, seed=77) for text in (TEXTS[0], " ".join(TEXTS))]

    def report(step: int, steps: int, label: str) -> None:
        if step == 2 and (attack_module.attack_key(requests[0]) in finished()):
            cancel.cancel()

    def finished() -> list[str]:
        return [key for key in map(attack_module.attack_key, requests) if result_store().contains(key)]

    with pytest.raises(Cancelled):
        attack_many(requests, report, cancel)
    assert finished() == [attack_module.attack_key(requests[0])]


def test_methods_that_cannot_be_attacked_are_refused_with_those_that_can() -> None:
    with pytest.raises(UsageError, match=f"lime cannot be attacked.*{', '.join(METHODS)}"):
        attacked([asked(method="lime")])
    with pytest.raises(UsageError, match="unknown name 'gradent'"):
        attacked([asked(method="gradent")])


def test_a_sum_that_is_zero_by_construction_is_refused_and_the_length_offered() -> None:
    with pytest.raises(UsageError, match=r"zero by construction.*Attack gradient_l2 instead"):
        attacked([asked(method="gradient", steps=2)])


@pytest.mark.parametrize(("parts", "words"), [
    ({"place": "pixels"}, "texts have no pixels"),
    ({"method": "integrated_gradients", "params": {"steps": "auto"}}, "must be fixed in an attack"),
    ({"labels": 1}, "no class to keep. Use constrained"),
    ({"seed": -1}, "seed: must be"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_words(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        attacked([asked(**parts)])


def test_a_score_is_attacked_under_the_constraint() -> None:
    (found,) = attacked([asked(labels=1, objective="constrained", steps=5)])
    assert found.class_kept is None
    assert found.probability_change == found.prediction.logits[0] - found.prediction_after.logits[0]
    assert found.top_k_sum_change > 0


def test_the_model_is_unchanged_afterwards_also_when_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert")
    before = fingerprint(model)
    attacked([asked(steps=2, seed=11)])
    monkeypatch.setattr(SaliencyMapper, "evaluate", lambda *given: (_ for _ in ()).throw(ExegesisError("broken")))
    with pytest.raises(ExegesisError, match="broken"):
        attacked([asked(steps=2, seed=12)])
    assert fingerprint(model) == before


def test_the_words_nearest_to_an_embedding_that_hardly_moved_are_its_own() -> None:
    (found,) = attacked([asked(epsilon=1e-6, steps=2)])
    for token, near, moved in zip(found.tokens, found.nearest, found.length, strict=True):
        assert near == () if token.special else near[0][0].replace("##", "") == token.text
        assert token.special or near[0][1] == pytest.approx(moved, abs=2e-3)


def test_like_lengths_go_together() -> None:
    assert group_by_length([10, 3, 11, 40, 3], most=16) == [[1, 4], [0, 2], [3]]
    assert group_by_length([5] * 5, most=2) == [[0, 1], [2, 3], [4]]
