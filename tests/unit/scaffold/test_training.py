"""Teaching: the same bits for the same seed, when it stops, what is kept, and how it goes on after a kill."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import Cancelled
from engine.progress import CancelToken, cancellable, silent
from engine.scaffold.plan import SETTINGS, UNEXPLAINED
from engine.scaffold.student import divergence, log_explanation
from engine.scaffold.training import StudentTraining, TrainingOutcome, inner_step
from engine.training.loop import CheckpointFolder
from tests.unit.scaffold.making import base, course, teaching

KINDS = ("bert", "gpt2", "t5", "vit")


def same(one: TrainingOutcome, other: TrainingOutcome) -> bool:
    """Bit by bit, but for the seconds."""
    states = [{**vars(lived.position), "seconds": 0} for lived in (one, other)]
    arrays = [(lived.logits, lived.phi, lived.student_phi) for lived in (one, other)]
    equal = (np.array_equal(a, b) if a is not None and b is not None else a is b for a, b in zip(*arrays, strict=True))
    return states[0] == states[1] and all(equal)


def scores_in_turn(patch: pytest.MonkeyPatch, *scores: float | None) -> None:
    """What is said of validation: before the first pass, then after each."""
    left = list(scores)
    patch.setattr(StudentTraining, "_validate", lambda self: left.pop(0))


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_teaches_and_learns_what_it_should(setting: str) -> None:
    given = teaching(setting, epochs=2, patience=2)
    start = {name: tensor.detach().clone() for name, tensor in given.weights.items()}
    lived = given.train(None, silent)
    assert lived.position.steps == 4
    assert 0 <= lived.simulability <= 1
    assert [row["epoch"] for row in lived.position.history] == [0, 1]
    assert all(math.isfinite(row["loss"]) for row in lived.position.history)
    assert all((row["outer"] is not None) == (setting == "smat") for row in lived.position.history)
    assert (lived.phi is None) == (setting != "smat")
    assert (lived.student_phi is None) == (setting in UNEXPLAINED)
    if lived.student_phi is not None:
        assert len(lived.student_phi) == (4 if setting == "attention_logits_last" else 12)
    assert lived.position.best_epoch == -1 or any(not torch.equal(start[n], given.best[n]) for n in start)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_bits_again_and_another_does_not(kind: str) -> None:
    there = course(base(kind, "float32"))
    one, again, other = (teaching("smat", seed, there, epochs=2, patience=2).train(None, silent) for seed in (4, 4, 5))
    assert same(one, again)
    assert not np.array_equal(one.logits, other.logits)


class Killed(Exception):
    """Somebody ended the process."""


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("setting", ["smat", "gradient_l2", "none"])
def test_a_killed_run_goes_on_to_the_same_bits(setting: str, passes: int, tmp_path: Path) -> None:
    whole = teaching(setting, epochs=4, patience=4).train(None, silent)
    folder = CheckpointFolder(tmp_path / "here")

    def killing(done: int, total: int, label: str) -> None:
        if done == passes:
            raise Killed

    with pytest.raises(Killed):
        teaching(setting, epochs=4, patience=4).train(folder, killing)
    resumed = teaching(setting, epochs=4, patience=4)
    lived = resumed.train(folder, silent)
    assert same(lived, whole)
    assert len(lived.position.history) == 4


def test_a_cancelled_run_ends_between_two_steps(tmp_path: Path) -> None:
    token = CancelToken()
    folder = CheckpointFolder(tmp_path / "here")
    with cancellable(token), pytest.raises(Cancelled):
        teaching("smat").train(folder, lambda *told: token.cancel())
    assert folder.load() is None, "no pass was finished"


def test_patience_stops_and_the_best_is_kept_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    scores_in_turn(monkeypatch, 0.2, 0.4, 0.6, 0.5, 0.6)
    given = teaching("smat", epochs=9, patience=2)
    lived = given.train(None, silent)
    assert (lived.position.stopped, lived.position.best_epoch, lived.position.best) == ("patience", 1, 0.6)
    assert [row["validation"] for row in lived.position.history] == [0.4, 0.6, 0.5, 0.6], "an equal score is no gain"
    short = teaching("smat", epochs=2, patience=2)
    scores_in_turn(monkeypatch, 0.2, 0.4, 0.6)
    assert np.array_equal(short.train(None, silent).logits, lived.logits)


def test_the_number_of_passes_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    scores_in_turn(monkeypatch, 0.2, 0.4, 0.6)
    assert teaching("none", epochs=2).train(None, silent).position.stopped == "epochs"


@pytest.mark.parametrize("start", [0.9, None])
def test_where_nothing_is_gained_the_start_is_kept(start: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    scores_in_turn(monkeypatch, start, *([None] * 3 if start is None else [0.9, 0.5, 0.8]))
    given = teaching("smat", patience=3, epochs=9)
    untaught = given.predict(given.sets.test)
    lived = given.train(None, silent)
    assert (lived.position.stopped, lived.position.best_epoch, len(lived.position.history)) == ("patience", -1, 3)
    assert np.array_equal(lived.logits, untaught)
    assert lived.phi is not None
    assert np.allclose(lived.phi, 1 / 12)


@pytest.mark.parametrize("setting", ["smat", "none"])
def test_one_that_diverges_stops_says_so_and_keeps_the_last_good_state(setting: str) -> None:
    given = teaching(setting, inner_rate=1e30, clip=0.0, epochs=5)
    untaught = given.predict(given.sets.test)
    lived = given.train(None, silent)
    assert lived.position.stopped.startswith("diverged: the loss became nan in step")
    assert lived.position.best_epoch == -1
    assert np.array_equal(lived.logits, untaught)
    assert math.isfinite(lived.simulability)


def test_the_best_pass_is_kept_where_a_later_one_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    given, step = teaching("none", epochs=5), StudentTraining._step

    def failing(self: StudentTraining, *batches: Any) -> tuple[float, float | None]:
        loss = step(self, *batches)
        return (math.inf, None) if self.position.epoch == 1 else loss

    scores_in_turn(monkeypatch, 0.1, 0.4)
    monkeypatch.setattr(StudentTraining, "_step", failing)
    lived = given.train(None, silent)
    assert lived.position.stopped == "diverged: the loss became inf in step 3"
    assert (lived.position.best_epoch, lived.position.best) == (0, 0.4)
    assert all(torch.equal(given.weights[name], given.best[name]) for name in given.weights)


def test_a_diverged_run_that_is_opened_again_is_not_taught_on(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "here")
    first = teaching("smat", inner_rate=1e30, clip=0.0).train(folder, silent)
    again = teaching("smat", inner_rate=1e30, clip=0.0).train(folder, silent)
    assert same(first, again)
    assert again.position.stopped.startswith("diverged")


def test_steps_bring_the_students_explanation_to_the_one_that_it_is_shown() -> None:
    given = teaching("gradient_l2", inner_rate=0.01, beta_gradient=5.0)
    batch = given.sets.train.batch(range(4), given.sets.base)
    assert given.phi_s is not None
    assert batch.maps is not None

    def apart() -> float:
        with torch.no_grad():
            heads = given.student.heads(batch)
            logs = log_explanation(given.objective.normalize(given.phi_s), heads, batch.features)
            return divergence(batch.maps, logs).item()

    before = apart()
    for _ in range(40):
        inner_step(given.student, given.phi_s, batch, given.objective, given.rates, None)
    assert 0 <= apart() < before / 2


def test_the_explainer_moves_by_its_own_steps_alone() -> None:
    given = teaching("smat", epochs=1)
    given.train(None, silent)
    assert given.phi_t is not None
    moments = given.optimizer.state[given.phi_t]  # type: ignore[union-attr]
    assert moments["step"] == 2
    still = teaching("smat", epochs=1, outer_rate=0.0)
    still.train(None, silent)
    assert still.phi_t is not None
    assert torch.equal(still.phi_t, torch.full((12,), 1 / 12))


def test_a_score_is_taught_too() -> None:
    there = course(base("bert", "float32"), outputs=1, regression=True)
    lived = teaching("smat", given=there, epochs=3, inner_rate=0.02).train(None, silent)
    assert lived.logits.shape == (7, 1)
    assert -1 <= lived.simulability <= 1
