"""From curves and attacks to numbers of examples and to verdicts, against what is computed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from engine.attacks.experiment_result import AttackExperimentResult, AttackMetricKey, AttackRow
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import FINE, MEASURES, ModelRandomization, RandomizationResult, stages_of
from engine.reproduction.claims import MethodTerm
from engine.reproduction.documents import markdown
from engine.reproduction.estimates import range_of_sum
from engine.reproduction.experiments import attack_rows, curve_numbers, randomization_rows
from engine.reproduction.papers import EMBEDDED
from engine.reproduction.report import ClaimOutcome, ExperimentSummary, ModelSummary, Reproduction
from engine.reproduction.run import judge_claims
from engine.reproduction.thesis import ThesisExperiment, ThesisQuery, findings_of

EXAMPLES = tuple(range(50))
Curves = Mapping[str, tuple[float, ...]]
"""By method: the cascade, which is taken for the blocks alone too."""


def of_model(model: str, curves: Curves, spread: float = 0.05) -> ModelRandomization:
    """Two seeds that lie apart around each curve, and examples that lie apart around these."""
    blocks = len(next(iter(curves.values())))
    stages = stages_of(RandomizationPlan((model,), "d"), blocks)
    shape = (len(stages), 2, len(curves), len(MEASURES), len(EXAMPLES))
    apart = spread * np.linspace(-1, 1, len(EXAMPLES))
    whole = np.array([curve * 2 for curve in curves.values()]).T[:, None, :, None, None]
    likeness = np.broadcast_to(whole + np.array([-0.01, 0.01])[:, None, None, None] + apart, shape).copy()
    return ModelRandomization(
        model, "d", stages, (0, 1), tuple(curves), EXAMPLES, ("good",) * len(EXAMPLES), likeness,
        np.full((len(stages), 2, len(curves), len(EXAMPLES)), FINE), (), np.ones(len(EXAMPLES)),
        np.ones((len(stages), 2, len(EXAMPLES))), np.zeros((len(stages), 2, len(EXAMPLES)), bool), {}, False, True,
    )  # fmt: skip


def judge(id: str, result_of: Callable[[ThesisExperiment], Any]) -> ClaimOutcome:
    query = ThesisQuery(topic="sanity", claims=(id,))
    results = []
    for one in query.experiments():
        available = dataclasses.replace(one, roles=tuple(dataclasses.replace(own, why="") for own in one.roles))
        results.append((available, result_of(available)))
    [outcome] = judge_claims(query, findings_of(results, EMBEDDED))
    return outcome


def randomized(curves: Callable[[str], Curves]) -> Callable[[ThesisExperiment], RandomizationResult]:
    """`curves`: of the model that plays a part."""

    def result_of(experiment: ThesisExperiment) -> RandomizationResult:
        places = tuple(role.place for role in experiment.roles)
        models = tuple(of_model(role.place, curves(role.parts[0])) for role in experiment.roles)
        return RandomizationResult(RandomizationPlan(places, "d"), models)

    return result_of


def test_the_numbers_of_a_curve_are_read_off_it() -> None:
    numbers = curve_numbers(np.array([0.9, 0.7, 0.8, 0.1]), np.array([0.9, 0.6, 0.4, 0.3]))
    assert numbers == pytest.approx({
        "cascading_first": 0.9, "cascading_second": 0.7, "cascading_half": 0.7, "cascading_end": 0.1,
        "cascading_mean": 0.625, "independent_first": 0.3, "independent_mean": 0.55,
        "cascading_trend": 1 - 6 * (16 + 4 + 1 + 1 + 16) / 120,
    })  # fmt: skip
    assert curve_numbers(np.array([0.9, np.nan]), np.array([0.9, 0.1])) == {}
    alone = curve_numbers(np.array([1.0]), np.array([1.0]))
    assert (alone["cascading_second"], alone["cascading_half"], alone["cascading_trend"]) == (1.0, 1.0, 0.0)


def test_a_value_is_the_mean_of_the_seeds_that_have_one() -> None:
    model = of_model("m", {"gradient_l2": (0.4, 0.2)})
    model.likeness[0, 0, 0, 0, 3] = np.nan
    model.likeness[1, :, 0, 0, 4] = np.nan
    rows = {(row.of.metric, row.example): row.value for row in randomization_rows([model])}
    assert rows["cascading_first", 25] == pytest.approx(0.4 + 0.05 / 49)
    assert rows["cascading_first", 3] == pytest.approx(0.41 - 0.05 * (1 - 6 / 49))
    assert ("cascading_first", 4) not in rows, "a curve with a gap has no number"


def test_of_attacks_only_the_attacked_method_counts() -> None:
    of = AttackMetricKey("m", "d", "gradient_l2", "rank_change", "constrained", "gradient_l2")
    others = (dataclasses.replace(of, method="lime"), dataclasses.replace(of, metric="class_kept"))
    [row] = attack_rows([AttackRow(one, 7, 0.5) for one in (of, *others)])
    assert (row.of.metric, row.of.method, row.example, row.value) == ("constrained_rank_change", "gradient_l2", 7, 0.5)


@pytest.mark.parametrize(("metric", "ends"), [
    ("cascading_end", (-1.0, 1.0)), ("unconstrained_rank_change", (0.0, 1.0)),
    ("constrained_top_k_sum_change_normalised", (-2.0, 2.0)), ("constrained_probability_change", (-1.0, 1.0)),
])  # fmt: skip
def test_values_lie_between_the_ends_of_their_measure(metric: str, ends: tuple[float, float]) -> None:
    terms = [MethodTerm(times, "marked", metric, (method,), ("t5",)) for times, method in ((1, "a"), (-0.5, "b"))]
    low, high = ends
    assert range_of_sum(terms[:1], [1]) == ends
    assert range_of_sum(terms, [1, -0.5]) == (low - 0.5 * high, high - 0.5 * low)


def test_rollout_that_ignores_later_blocks_holds_and_that_falls_does_not() -> None:
    def deep(part: str) -> Curves:
        return {"attention_rollout": (1.0, 0.97, 0.9, 0.4) if part == "size-4" else (0.9, 0.9, 0.3, 0.0)}

    held = judge("random-rollout-late", randomized(deep))
    assert held.verdict == "holds"
    assert [number.value for number in held.numbers] == pytest.approx([0.9, 0.97])
    assert held.numbers[0].n == 50
    fallen = judge("random-rollout-late", randomized(lambda part: {"attention_rollout": (0.9, 0.5, 0.4, 0.0)}))
    assert fallen.verdict == "does not hold"


def one_curve(curve: tuple[float, ...], part: str) -> Curves:
    return {"attention_mean": curve}


def test_about_linear_has_two_sides() -> None:
    """At the half less half of the end: 0.6 - 0.1, then 0.95 - 0.1 and 0.2 - 0.1."""
    for half, verdict in ((0.6, "holds"), (0.95, "does not hold"), (0.2, "does not hold")):
        curve = (0.8, half, 0.3, 0.2)
        outcome = judge("random-average-linear", randomized(partial(one_curve, curve)))
        assert (outcome.verdict, outcome.numbers[0].value) == (verdict, pytest.approx(half - 0.1))


def attacked(values: Mapping[str, float]) -> Callable[[ThesisExperiment], AttackExperimentResult]:
    """`values`: of measures by the ends of their names; examples lie up to 0.02 apart."""

    def result_of(experiment: ThesisExperiment) -> AttackExperimentResult:
        plan = experiment.plan
        ids = {id: id.partition("_")[::2] for id in values}
        ofs = {
            AttackMetricKey(place, plan.dataset, method, metric, objective, method): values[id]
            for place in plan.models
            for method in plan.methods
            for id, (objective, metric) in ids.items()
        }
        rows = [AttackRow(of, at, value + at / 800) for of, value in ofs.items() for at in range(16)]
        return AttackExperimentResult(plan, tuple(rows), (), ())

    return result_of


def test_attacks_that_keep_the_probability_and_move_the_order() -> None:
    held = judge("attack-constrained-probability", attacked({"constrained_probability_distance": 0.0}))
    assert (held.verdict, len(held.numbers), held.numbers[0].n) == ("holds", 12, 16)
    assert held.numbers[0].value == pytest.approx(np.mean(np.arange(16)) / 800)
    lost = judge("attack-constrained-probability", attacked({"constrained_probability_distance": 0.3}))
    assert lost.verdict == "does not hold"
    immune = {"constrained_rank_change": 0.05, "unconstrained_rank_change": 0.9}
    assert judge("attack-rank", attacked(immune)).verdict == "does not hold", "one of two objectives finds nothing"


def test_what_has_no_such_value_is_not_run_and_says_why() -> None:
    outcome = judge("attack-rank", attacked({"constrained_rank_change": 0.5}))
    assert outcome.verdict == "not run"
    assert "unconstrained_rank_change of gradient_l2 on size-1" in outcome.why


def test_the_report_says_what_was_randomized_and_attacked() -> None:
    query = ThesisQuery(topic="sanity", claims=("random-rollout-late", "attack-rank"))
    held = judge("random-rollout-late", randomized(lambda part: {"attention_rollout": (1.0, 0.97, 0.9, 0.4)}))
    ran = tuple(
        ExperimentSummary(one.name, dataclasses.asdict(one.plan), "", 0, one.source) for one in query.experiments()
    )
    report = Reproduction(
        query.command(), "embedded", 50, 0, "abc", {"Exegesis": "1"}, (ModelSummary("t5", "marked", "", None, 0),), ran,
        (held, ClaimOutcome("attack-rank", "not run", why="not there.")),
    )  # fmt: skip
    text = markdown(report, query)
    assert "# Claims of the thesis, embedded scale, sanity" in text
    assert "`engine/reproduction/thesis_sanity.json`" in text
    assert "### On deep T5 rollout ignores the later blocks: holds" in text
    assert "each part randomized 3 times, cascading and independent; methods gradient_l2" in text
    assert "up to 100 examples, attacked unconstrained and constrained, place embedding, top_k 0.15" in text
    assert "steps 100" in text
    assert "Why: not there." in text
