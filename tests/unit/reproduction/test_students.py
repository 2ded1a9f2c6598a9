"""SMaT's claims on students made by hand: intervals apart and overlapping, missing cells, failed students."""

from __future__ import annotations

import dataclasses
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.stats

from engine.data.sources import load_source
from engine.reproduction import smat
from engine.reproduction.claims import Contrast, StudentTerm, declaration
from engine.reproduction.report import detectable_effect
from engine.reproduction.run import judge_claim
from engine.reproduction.smat import SmatQuery, StudentFindings, active_share, mean_depth
from engine.reproduction.wording import settling_text
from engine.scaffold.explainer_checks import Plausibility, PlausibilitySide
from engine.scaffold.plan import NONE, ScaffoldPlan, StudentRun
from engine.scaffold.plan import EvaluationSample as AskedOf
from engine.scaffold.result import HeadCoefficients, ScaffoldResult
from tests.unit.reproduction.student_reports import claim, findings_of, gain, students

LOW = (0.70, 0.71, 0.72, 0.73, 0.74)
HIGH = (0.81, 0.80, 0.84, 0.82, 0.83)
WIDE = (0.60, 0.95, 0.75, 0.70, 0.82)


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        (HIGH, LOW, "holds"),
        (LOW, HIGH, "does not hold"),
        (WIDE, LOW, "undecided"),
        ((0.7,) * 5, (0.7,) * 5, "undecided"),
    ],
    ids=["apart", "apart the other way", "overlapping", "equal"],
)
def test_intervals_over_paired_seeds_decide(mine: tuple[float, ...], theirs: tuple[float, ...], verdict: str) -> None:
    outcome = judge_claim(claim((gain(),)), findings_of(students({("smat", 20): mine, ("none", 20): theirs})), 0)
    assert outcome.verdict == verdict
    [number] = outcome.numbers
    assert number.value == pytest.approx(np.mean(mine) - np.mean(theirs))
    assert (number.n, outcome.unit) == (5, "seeds")
    if verdict != "undecided" or mine == WIDE:
        known = scipy.stats.ttest_rel(mine, theirs).confidence_interval(0.95)
        assert (number.low, number.high) == pytest.approx(known)


def test_only_seeds_count_that_have_every_student() -> None:
    some = students({("smat", 20): HIGH, ("none", 20): (0.5, None, *LOW[2:])})
    [number] = judge_claim(claim((gain(),)), findings_of(some), 0).numbers
    assert (number.n, number.value) == (4, pytest.approx(np.mean([0.31, 0.12, 0.09, 0.09])))


def test_several_numbers_need_more_to_fail_and_no_more_to_hold() -> None:
    sizes = tuple(gain(size=size) for size in ("small", "middle"))
    cells = {("smat", 10): HIGH, ("none", 10): LOW, ("smat", 20): HIGH, ("none", 20): LOW}
    first, _ = judge_claim(claim(sizes), findings_of(students(cells)), 0).numbers
    paired = scipy.stats.ttest_rel(HIGH, LOW)
    assert (first.low, first.high) == pytest.approx(paired.confidence_interval(0.95))
    assert (first.wide_low, first.wide_high) == pytest.approx(paired.confidence_interval(0.975))


def test_what_would_settle_it_is_told_in_seeds() -> None:
    outcome = judge_claim(claim((gain(),)), findings_of(students({("smat", 20): WIDE, ("none", 20): LOW})), 0)
    [number] = outcome.numbers
    power = (1 + 0.8416 / 1.95996) ** 2
    reach, nearest = number.high - number.value, max(number.value, number.smallest_gain - number.value)
    assert nearest > number.value, "it would be found too small before it were found to be there"
    assert outcome.settled_by == pytest.approx(np.ceil(5 * power * (reach / nearest) ** 2), abs=1)
    assert settling_text(outcome) == f"about {outcome.settled_by:,} seeds would decide"
    tie = judge_claim(
        claim((gain(),), rule="at least"), findings_of(students({("smat", 20): LOW, ("none", 20): LOW})), 0
    )
    assert (tie.settled_by, tie.on_bound) == (None, 1)
    assert settling_text(tie) == "its number lies on the bound itself, where no number of seeds would decide"


def test_a_gain_that_five_seeds_would_not_show_does_not_count() -> None:
    """Of two settings whose students differ by seed far more than the settings do."""
    values = tuple(0.6 + seed / 20 for seed in range(5))
    cells = {("smat", 20): tuple(value + 0.001 * (-1) ** at for at, value in enumerate(values)), ("none", 20): values}
    outcome = judge_claim(claim((gain(),)), findings_of(students(cells)), 0)
    [number] = outcome.numbers
    within = np.mean([np.var(own, ddof=1) for own in cells.values()]) ** 0.5
    assert number.smallest_gain == pytest.approx(detectable_effect(5) * within)
    assert (outcome.verdict, outcome.too_small, number.too_small) == ("does not hold", True, True)
    assert number.low < 0 < number.high < number.smallest_gain
    four = Contrast("", (*gain().terms, *gain(size="small").terms))
    cells |= {("smat", 10): HIGH, ("none", 10): LOW}
    heads = Contrast("", tuple(StudentTerm(times, "text", "active_share", "smat", "middle") for times in (1, -1)))
    for other in (
        claim((gain(),), rule="at least"),
        claim((gain(),), (0.05, None)),
        claim((gain(),), (None, 0.0), "at most"),
        claim((four,)),
        claim((heads,)),
        dataclasses.replace(claim((gain(), gain())), least=1),
        dataclasses.replace(claim((gain(),)), entries=((gain(), gain()),)),
    ):
        numbers = judge_claim(other, findings_of(students(cells)), 0).numbers
        assert {one.smallest_gain for one in numbers} == {0.0}, "its bound says what counts, or its numbers are others"


def test_equal_seeds_leave_room_for_what_they_cannot_show() -> None:
    other = students({("smat", 20): (0.68,) * 5, ("none", 20): (0.70,) * 5})
    [number] = judge_claim(claim((gain(),), (-0.02, None), "at least"), findings_of(other), 0).numbers
    unseen = 1 - 0.025 ** (1 / 5)
    assert (number.low, number.high) == pytest.approx((-0.02 - unseen * 0.98, -0.02 + unseen * 1.02))
    assert number.verdict == "undecided"


def test_one_number_outside_is_enough_and_one_open_keeps_it_open() -> None:
    sizes = tuple(gain(size=size) for size in ("small", "middle"))
    cells = {("smat", 10): HIGH, ("none", 10): LOW, ("smat", 20): LOW, ("none", 20): HIGH}
    assert judge_claim(claim(sizes), findings_of(students(cells)), 0).verdict == "does not hold"
    cells[("smat", 20)], cells[("none", 20)] = WIDE, LOW
    assert judge_claim(claim(sizes), findings_of(students(cells)), 0).verdict == "undecided"


def test_what_is_not_there_is_not_run_and_says_why() -> None:
    none = judge_claim(claim((gain(),)), findings_of(students({("smat", 20): HIGH})), 0)
    assert none.verdict == "not run"
    assert none.why == "Texts, no explanations, 20 examples: 0 of 5 students have a value; 3 are needed."
    few = students({("smat", 20): HIGH, ("none", 20): (0.7, 0.7, None, None, None)})
    few = dataclasses.replace(few, failed={StudentRun("none", 20, 2): "the loss is no number."})
    why = judge_claim(claim((gain(),)), findings_of(few), 0).why
    assert why.endswith("2 of 5 students have a value; 3 are needed. the loss is no number.")
    gone = judge_claim(claim((gain(),)), findings_of("model: unknown name 'teacher'."), 0)
    assert (gone.verdict, gone.why) == ("not run", "Texts: model: unknown name 'teacher'.")


def test_three_students_are_enough() -> None:
    some = students({("smat", 20): (*HIGH[:3], None, None), ("none", 20): LOW})
    outcome = judge_claim(claim((gain(),)), findings_of(some), 0)
    assert (outcome.verdict, outcome.numbers[0].n) == ("holds", 3)


def test_heads_are_told_for_each_learned_explainer() -> None:
    weights = np.array([[0.25, 0.0], [0.0, 0.75]])
    assert active_share(weights) == 0.5
    assert mean_depth(weights) == 0.75
    assert mean_depth(weights[:1]) is None, "one layer has no depth"
    assert mean_depth(np.zeros((2, 2))) is None
    few = claim((Contrast("", (StudentTerm(1, "text", "active_share", "smat", "middle"),)),), (None, 0.5), "at most")
    outcome = judge_claim(few, findings_of(students({("smat", 20): HIGH})), 0)
    [number] = outcome.numbers
    assert (outcome.verdict, number.value) == ("undecided", 0.25), "five equal students exclude little"
    assert (number.low, number.high) == pytest.approx((0.25 * 0.025**0.2, 1 - 0.75 * 0.025**0.2))


def plausible(mine: np.ndarray, heads: np.ndarray) -> StudentFindings:
    methods = {"smat": mine, "gradient_l2": mine - 0.3, "attention_logits": mine[::-1]}
    side = PlausibilitySide("", tuple(range(len(mine))), methods, heads.reshape(len(mine), 2, 2).mean(2), heads, {})
    learned = HeadCoefficients(np.array([0.0, 0.0, 0.0, 1.0]))
    source = load_source("text", "reviews", None, tolerant=True)
    asked = AskedOf("teacher", "data", None, side.examples, source)
    return StudentFindings({}, {"text": Plausibility(asked, learned, (2, 2), True, (side,))}, {"text": {"middle": 20}})


def auc(*terms: tuple[int, str]) -> Contrast:
    return Contrast("", tuple(StudentTerm(times, "text", "auc", setting, "middle") for times, setting in terms))


def test_plausibility_is_told_by_intervals_over_examples() -> None:
    random = np.random.default_rng(0)
    mine = random.uniform(0.4, 0.9, 60)
    heads = np.clip(mine[:, None] + np.array([-0.3, -0.2, -0.1, 0.05]) + random.normal(0, 0.02, (60, 4)), 0, 1)
    measured = plausible(mine, heads)
    above = judge_claim(claim((auc((1, "smat"), (-1, "gradient_l2")),)), measured, 0)
    assert (above.verdict, above.unit, above.numbers[0].n) == ("holds", "examples", 60)
    assert above.numbers[0].value == pytest.approx(0.3)
    same = judge_claim(claim((auc((1, "smat"), (-1, "attention_logits")),)), measured, 0)
    assert same.verdict == "undecided", "the same values in another order"
    best = judge_claim(claim((auc((1, "best_head")),)), measured, 0)
    assert best.numbers[0].value == pytest.approx(heads[:, 3].mean())
    active = judge_claim(claim((auc((1, "active_heads"), (-1, "inactive_heads")),)), measured, 0)
    assert active.numbers[0].value == pytest.approx(heads[:, 3].mean() - heads[:, :3].mean())
    sided = Contrast("", (StudentTerm(1, "text", "auc", "smat", "middle", side="first"),))
    assert judge_claim(claim((sided,)), measured, 0).why == "Texts: data has no first texts of pairs."


def test_people_alone_can_tell_of_people() -> None:
    one = next(one for one in SmatQuery(claims=("image-people-smat",)).selected_claims)
    outcome = judge_claim(one, StudentFindings({}), 0)
    assert outcome.verdict == "not run", "nothing was measured"
    assert settling_text(outcome) == one.people
    assert "study with people" in one.people


def test_claims_that_compare_sizes_need_them() -> None:
    [one] = declaration("smat").select(("image-gap-shrinks",), {"image": {"middle": 20}})
    assert judge_claim(one, StudentFindings({}), 0).why == one.why != ""


def test_students_that_are_finished_count_although_no_more_can_be_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ScaffoldPlan("teacher", "data", train_sizes=(10,), settings=(NONE,), seeds=(0,))
    query, why = Mock(spec=SmatQuery), "teacher: its files are gone."
    query.plan.return_value = query.training_plan.return_value = plan
    finished = students({(NONE, 10): (0.5,)}, plan)
    monkeypatch.setattr(smat, "load_result", Mock(return_value=finished))
    counted = SmatQuery._students(query, ("text", "sparsemax"), why)
    assert isinstance(counted, ScaffoldResult)
    assert counted.students == finished.students
    monkeypatch.setattr(smat, "load_result", Mock(return_value=students({}, plan)))
    assert SmatQuery._students(query, ("text", "sparsemax"), why) == why
