"""How far a run is by the evaluations of its units, and the sentence on its work."""

from __future__ import annotations

import pytest

from engine.jobs.kinds import RunEstimate, UnitStep, WorkUnit, units_label


def units(count: int, rows: int, title: str = "LIME on m", of: int = 40, first: int = 1) -> list[WorkUnit]:
    return [
        WorkUnit(f"{title}{n}", f"unit {n}", print, step=UnitStep(title, n, of, rows))
        for n in range(first, first + count)
    ]


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("engine.jobs.kinds.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_units_that_are_computed_together_count_as_far_as_their_passes_are(clock: Clock) -> None:
    group = units(16, 100)
    estimate = RunEstimate(group)
    estimate.begin(group)
    assert (estimate.units_under_way(), estimate.seconds_left()) == (0, None)
    estimate.report(0, 1600)
    clock.now += 10
    estimate.report(400, 1600)
    assert (estimate.units_under_way(), estimate.seconds_left()) == (4, 30)
    clock.now += 10
    estimate.report(800, 1600)
    assert (estimate.units_under_way(), estimate.seconds_left()) == (8, 20)
    estimate.report(1600, 1600)
    assert estimate.units_under_way() == 15, "the last is done when it is stored"


def test_several_runs_of_passes_add_up(clock: Clock) -> None:
    group = units(4, 100)
    estimate = RunEstimate(group)
    estimate.begin(group)
    for done, total in ((0, 100), (100, 100), (0, 100), (50, 100)):
        estimate.report(done, total)
    assert estimate.units_under_way() == 1
    estimate.report(100, 100)
    assert estimate.units_under_way() == 2


def test_a_method_that_runs_the_model_often_has_its_share_of_the_time_left(clock: Clock) -> None:
    quick, slow = units(10, 10, "Quick"), units(10, 90, "Slow")
    estimate = RunEstimate([*quick, *slow])
    estimate.begin(quick)
    estimate.report(0, 100)
    clock.now += 5
    estimate.end(computed=True)
    assert estimate.seconds_left() == 45
    estimate.skip(slow[:5])
    assert estimate.seconds_left() == pytest.approx(22.5)


def test_loading_the_model_and_too_little_work_tell_nothing(clock: Clock) -> None:
    quick, slow = units(2, 1, "Quick"), units(10, 100, "Slow")
    estimate = RunEstimate([*quick, *slow])
    estimate.begin(quick)
    clock.now += 60  # the model is loaded
    estimate.report(0, 2)
    clock.now += 1
    estimate.end(computed=True)
    assert estimate.seconds_left() is None
    estimate.begin(slow)
    estimate.report(0, 1000)
    clock.now += 50
    estimate.report(100, 1000)
    assert estimate.seconds_left() == pytest.approx(51 / 102 * 900)


def test_what_failed_says_nothing_about_the_time(clock: Clock) -> None:
    group = units(4, 10)
    estimate = RunEstimate(group)
    for unit in group[:2]:
        estimate.begin([unit])
        clock.now += 5
        estimate.end(computed=unit is group[0])
    assert estimate.seconds_left() == 10


def test_the_sentence_names_the_work_and_the_examples_of_how_many() -> None:
    group = units(16, 100, first=17)
    estimate = RunEstimate(group)
    assert estimate.label() == ""
    estimate.begin(group)
    assert estimate.label() == "LIME on m, examples 17 to 32 of 40"
    estimate.report(400, 1600)
    assert estimate.label() == "LIME on m, examples 17 to 32 of 40, 400 of 1,600 model evaluations"
    assert units_label(group[:1]) == "LIME on m, example 17 of 40"
    plain = [WorkUnit(str(n), f"prediction, example {n}", print) for n in range(3)]
    assert units_label(plain) == "prediction, example 0 and 2 more"
    assert units_label(plain[:1]) == "prediction, example 0"


def test_units_that_tell_their_own_steps_and_units_of_several_examples() -> None:
    attacks = [
        WorkUnit(str(n), f"attack {n}", print, step=UnitStep("Attack on m", n + 1, 4, 300, "steps")) for n in range(4)
    ]
    estimate = RunEstimate(attacks)
    estimate.begin(attacks)
    estimate.report(150, 300)
    assert estimate.label() == "Attack on m, examples 1 to 4 of 4, 150 of 300 steps"
    several = [WorkUnit(str(n), f"gradient, 16 examples from {n}", print, step=UnitStep("", 0, 0, 32)) for n in (0, 16)]
    assert units_label(several) == "gradient, 16 examples from 0 and 1 more"
