"""What is kept of an attack's steps, and what who watches is told."""

from __future__ import annotations

import numpy as np

from engine.attacks.trail import Moment, Trails


def test_who_watches_is_told_the_step_of_how_many_and_the_latest_values() -> None:
    seen: list[Moment] = []
    trails = Trails(2, 10, seen.append)
    trails.add(0, [0], np.array([[1.0, 2.0, 3.0, 1.0]]))
    trails.add(4, [0, 1], np.array([[4.0, 5.0, 6.0, 0.0], [np.nan, 1.0, 1.0, 1.0]]))
    first, second = seen
    assert (first.step, first.steps, second.step, second.steps) == (0, 10, 4, 10)
    assert [values[0] for values in (second.objective, second.rank_change, second.probability)] == [4.0, 5.0, 6.0]
    assert np.isnan(second.objective[1]), "what is no number is not kept"
    assert trails.of(0).step.tolist() == [0, 4]
