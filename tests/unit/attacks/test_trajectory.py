"""The recorder of an attack's steps, and the values that a listener gets."""

from __future__ import annotations

import numpy as np

from engine.attacks.optimizer import StepValues, TrajectoryRecorder


def test_who_watches_is_told_the_step_of_how_many_and_the_latest_values() -> None:
    seen: list[StepValues] = []
    recorder = TrajectoryRecorder(2, 10, seen.append)
    recorder.add(0, [0], np.array([[1.0, 2.0, 3.0, 1.0]]))
    recorder.add(4, [0, 1], np.array([[4.0, 5.0, 6.0, 0.0], [np.nan, 1.0, 1.0, 1.0]]))
    first, second = seen
    assert (first.step, first.steps, second.step, second.steps) == (0, 10, 4, 10)
    assert [values[0] for values in (second.objective, second.rank_change, second.probability)] == [4.0, 5.0, 6.0]
    assert np.isnan(second.objective[1]), "what is no number is not kept"
    assert recorder.trajectory(0).step.tolist() == [0, 4]
