"""Texts and pictures with a suppressor: what is drawn, what a model learns of it, how results are judged and stored."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
import torch

from engine import shipped
from engine.errors import ExegesisError
from engine.progress import CancelToken, silent
from engine.registry import all_explainers
from engine.request import Example
from engine.suppressor import scene, text, trained
from engine.suppressor.criterion import NOT_FINITE, SuppressorVerdict
from engine.suppressor.linear import LinearClassifier
from engine.suppressor.scene import (
    CORRELATION,
    LABELS,
    NOISE,
    PATCH,
    PLATES,
    SIGNAL,
    draw_scene,
    draw_scenes,
    scene_key,
)
from engine.suppressor.text import ADJECTIVES, ERRORS, FEATURES, HOURS, ROOMS, ClockText, text_key, word_tokenizer
from engine.suppressor.trained import association, expectation_spreads, judge_model

ALL_TEXTS = [
    ClockText(label, error, room, adjective)
    for label, error, room, adjective in product(
        range(2), range(len(ERRORS)), range(len(ROOMS)), range(len(ADJECTIVES))
    )
]


def test_the_error_word_alone_says_nothing_and_together_with_the_hour_all() -> None:
    """Counted over every text that there is."""
    by_error = {word: [one.label for one in ALL_TEXTS if word in one.text.split()] for word in (*ERRORS, *ROOMS)}
    assert {np.mean(labels) for labels in by_error.values()} == {0.5}
    by_hour = [np.mean([one.label for one in ALL_TEXTS if hour in one.text.split()]) for hour in HOURS]
    assert by_hour == [0.0, 0.5, 0.5, 1.0]
    both: dict[tuple[str, str], set[int]] = {}
    for one in ALL_TEXTS:
        words = one.text.split()
        both.setdefault((words[FEATURES[0]], words[FEATURES[1]]), set()).add(one.label)
    assert all(len(labels) == 1 for labels in both.values())


def test_the_features_are_at_their_places_and_every_word_is_known() -> None:
    tokenizer = word_tokenizer()
    for one in ALL_TEXTS:
        tokens = tokenizer.convert_ids_to_tokens(tokenizer(one.text)["input_ids"])
        assert tokenizer.unk_token not in tokens
        expected = [HOURS[one.label + one.error], ERRORS[one.error], ROOMS[one.room]]
        assert [tokens[place + 1] for place in FEATURES] == expected


def test_a_trained_text_model_uses_the_suppressor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is trained, which takes some seconds: that a model learns to use the word is what the problem rests on."""
    monkeypatch.setattr(text, "CONFIG", dataclasses.replace(text.CONFIG, epochs=3))
    before = torch.random.get_rng_state()
    problem = text.build_text_problem(silent, CancelToken())
    assert torch.equal(before, torch.random.get_rng_state())
    checks = problem.checks
    assert checks.accuracy > 0.99
    assert checks.without < 0.75
    assert checks.without_unused > 0.99
    assert len({one.key for one in problem.encoded}) == len(problem.encoded), "no example counts twice"
    fast = problem.model.encode(Example("the old clock shows nine and runs fast in the hall"))
    right = problem.model.encode(Example("the old clock shows nine and runs right in the hall"))
    assert [one > 0.5 for one in trained.second_class(problem.model, [fast, right])] == [False, True]
    assert problem.firm[:, 0].min() > problem.firm[:, 1].max()


def test_the_sky_shows_the_noise_of_the_lamp_and_nothing_of_the_class() -> None:
    scenes = draw_scenes(20_000, "many")
    signs = 2 * scenes.labels - 1
    lamp = scenes.levels[:, 0] - SIGNAL * signs
    assert np.corrcoef(lamp, scenes.levels[:, 1])[0, 1] == pytest.approx(CORRELATION, abs=0.005)
    for plate in (1, 2):
        assert abs(np.corrcoef(signs, scenes.levels[:, plate])[0, 1]) < 0.03
        assert scenes.levels[:, plate].std() == pytest.approx(NOISE, rel=0.03)
    assert abs(np.corrcoef(lamp, scenes.levels[:, 2])[0, 1]) < 0.03


def test_plates_are_whole_patches_of_one_level_on_the_same_background() -> None:
    one, other = draw_scene("seed", np.array([10.4, 300.0, 77.0])), draw_scene("seed", np.array([20.0, 0.0, 78.0]))
    assert len(np.unique(one - other, axis=None)) > 1
    levels = [np.unique(one[r * PATCH : (r + 1) * PATCH, c * PATCH : (c + 1) * PATCH]).tolist() for r, c in PLATES]
    assert levels == [[10], [255], [77]]
    changed = (one != other).any(2)
    assert changed.sum() == 3 * PATCH**2


def test_pictures_go_through_training_explainers_and_judgment(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little data and one epoch: whether a model learns it is measured by the shipped results."""
    for name, value in {"TRAINING": 64, "HELD_OUT": 20, "EXPLAINED": 3, "DATA_SETS": 2}.items():
        monkeypatch.setattr(scene, name, value)
    monkeypatch.setattr(trained, "DATA_SETS", 2)
    monkeypatch.setattr(scene, "CONFIG", dataclasses.replace(scene.CONFIG, epochs=1))
    some = [method for method in all_explainers("image").values() if method.id in ("gradient", "attn_lrp")]
    monkeypatch.setattr(trained, "applicable_methods", lambda kind: some)
    problem = scene.build_scene_problem(silent, CancelToken())
    assert problem.model.labels == LABELS
    places = [problem.encoded[0].features.tolist().index(place) for place in problem.places]
    assert [divmod(place, scene.SIDE) for place in places] == list(PLATES)
    result = judge_model("image", problem)
    assert [one.method for one in result.verdicts] == [*(method.id for method in some), "firm"]
    assert result.explained == 3


def test_firm_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "DATA_SETS", 1)
    monkeypatch.setattr(trained, "ROWS", 4)
    values = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    spreads = expectation_spreads(values, np.array([0.0, 0.2, 0.8, 1.0]))
    np.testing.assert_allclose(spreads, [[0.4, 0.1, 0.0]])


def test_association_is_found_where_there_is_one() -> None:
    labels = np.tile([0, 1], 50)
    assert association(labels, labels) < 1e-6
    assert association(np.repeat([0, 1], 50), labels) > 0.9


def test_a_result_survives_the_store_and_its_key_knows_the_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = SuppressorVerdict("lime", 1.0, 0.5, 0.1, 0.9, 0.8, 1.0, 0.001, "passes")
    checks = trained.ProblemChecks(0.5, 0.6, 1.0, 0.6, 1.0, 10)
    result = trained.TrainedResult("text", checks, (verdict,), {"gradient": "zero"}, 4)
    assert trained._unpacked(trained._packed(result)) == result
    assert text_key() != scene_key()
    before = text_key()
    monkeypatch.setattr(text, "CONFIG", dataclasses.replace(text.CONFIG, epochs=3))
    trained_less = text_key()
    monkeypatch.setattr(trained, "keyed_params", lambda params: {"other": 1, **params})
    other_defaults = text_key()
    monkeypatch.setattr(trained, "versions_of", lambda method: [99])
    assert len({before, trained_less, other_defaults, text_key()}) == 4


def test_a_method_that_fails_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [method for method in all_explainers("text").values() if method.id in ("gradient", "lime", "random")]
    monkeypatch.setattr(trained, "applicable_methods", lambda kind: some)
    monkeypatch.setattr(trained, "predict_encoded", lambda model, encoded: [])

    def run(id: str, *given: object) -> np.ndarray:
        if id == "lime":
            raise ExegesisError("lime: no luck.")
        return np.full((4, 3), np.nan if id == "gradient" else 1.0)

    monkeypatch.setattr(trained, "run_explainer", run)
    checks = trained.ProblemChecks(0.5, 0.6, 1.0, 0.6, 1.0, 10)
    problem = trained.TrainedProblem(LinearClassifier(np.ones(3)), [], (0, 1, 2), checks, np.ones((2, 3)))
    result = judge_model("text", problem)
    assert result.skipped == {"lime": "lime: no luck.", "gradient": NOT_FINITE}
    assert [one.method for one in result.verdicts] == ["random", "firm"]


def test_both_results_are_shipped_and_current() -> None:
    assert {text_key(), scene_key()} <= set(shipped.entries()), "run python -m engine.suppressor.ship"
