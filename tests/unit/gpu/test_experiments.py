"""Metrics, heads, randomization, attacks and teaching on a GPU give the CPU's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.scaffold import VmappedStudents
from engine import runtime
from engine.attacks.attack import attack_many, measure_transfer
from engine.attacks.plan import METHODS as ATTACKED
from engine.attacks.plan import OBJECTIVES, QUANTITIES, AttackRequest
from engine.counterfactuals.patches import patch_counterfactuals
from engine.counterfactuals.search import SearchOptions
from engine.counterfactuals.texts import counterfactuals
from engine.data.sources import load_source
from engine.evaluation.experiment import evaluate
from engine.explain import explain_many
from engine.heads.readings import read_heads, switch_off_each
from engine.inside.lens import LensQuery, logit_lens
from engine.inside.patching import CORRUPTIONS, SITES, PatchQuery, patch_map
from engine.inside.routes import RoutesQuery, information_routes
from engine.metrics.ablation import ablated_predictions
from engine.metrics.catalog import METRICS
from engine.metrics.faithfulness import WAYS, removal_curves
from engine.models.inspection import inspect_model
from engine.predictions import predictions
from engine.randomization.experiment import randomize
from engine.request import Example, HeadScales, Request
from engine.scaffold.experiment import scaffold
from engine.scaffold.explainer_checks import compare_explainers, plausibility, trivial_protocols
from engine.scaffold.plan import ATTENTION, GRADIENTS, NONE, SMAT, EvaluationSample
from engine.scaffold.student import Student, head_count, projection
from engine.scaffold.training import StepRates, TeachingObjective
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.gpu.machine import assert_same, both, folder, inputs, loaded
from tests.unit.scaffold.making import taught
from tests.unit.scaffold.marking import marked_file
from tests.unit.scaffold.plans import plan, saved
from tests.unit.vision.tiny_vit import blobs

pytestmark = pytest.mark.usefixtures("home")

KINDS = ("gpt2", "vit")
TIMED = ("seconds",)


def request(kind: str, method: str = "gradient_x_input", **more: Any) -> Request:
    return Request(folder(kind), method, inputs(kind)[-1], **more)


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_and_maps_with_heads_scaled(kind: str) -> None:
    heads = HeadScales.off([(0, 1), (2, 3)])
    methods = ("gradient_l2", "attention_rollout", "occlusion")
    assert_same(*both(lambda: predictions(folder(kind), inputs(kind), heads=heads)))
    assert_same(*both(lambda: explain_many([request(kind, method, heads=heads) for method in methods])))


@pytest.mark.parametrize("kind", KINDS)
def test_removal_curves_and_predictions_without_features(kind: str) -> None:
    methods = ("gradient_x_input", "random")
    assert_same(*both(lambda: removal_curves([request(kind, method) for method in methods], ways=WAYS)))
    assert_same(*both(lambda: ablated_predictions(request(kind), (2, 4))))


@pytest.mark.parametrize("words", [2, 30])
def test_counterfactuals_of_a_text(words: int) -> None:
    example = Example("although the plot drags the ending is warm")
    options = SearchOptions(words=words, candidates=3, most_changes=2)
    assert_same(*both(lambda: counterfactuals(folder("bert"), example, options=options)))


def test_counterfactuals_of_a_picture() -> None:
    assert_same(*both(lambda: patch_counterfactuals(folder("vit"), blobs(1))))


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_lens_and_routes(kind: str) -> None:
    example = Example("although the plot drags the ending is warm")
    assert_same(*both(lambda: logit_lens(LensQuery(folder(kind), example))))
    assert_same(*both(lambda: information_routes(RoutesQuery(folder(kind), example))))


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_activation_and_attribution_patching(corruption: str) -> None:
    def shares() -> list[np.ndarray]:
        found = [
            patch_map(PatchQuery(folder("gpt2"), Example("good bad food"), "good food bad", corruption, (0, 2), site))
            for site in SITES
        ]
        return [array for one in found for array in (one.shares, one.preview.effects[one.site])]

    assert_same(*both(shares))


@pytest.mark.parametrize("kind", KINDS)
def test_heads_read_and_each_switched_off(kind: str) -> None:
    assert_same(*both(lambda: read_heads(request(kind))))
    assert_same(*both(lambda: switch_off_each(request(kind))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_inspected(kind: str) -> None:
    expected, got = both(lambda: inspect_model(folder(kind)))
    assert got == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_metric(kind: str, reviews: str) -> None:
    """One row is a time. In double precision: on a CPU more rows share what they begin with, which rounds otherwise."""
    data = reviews if kind == "gpt2" else "scenes:count=4"
    methods = ("gradient_x_input", "occlusion", "attention_mean")

    def measured() -> Any:
        found = evaluate([folder(kind, 2)], data, methods, tuple(METRICS), examples=3, samples=2, dtype="float64")
        assert {"sensitivity", "comprehensiveness", "gt_overlap"} <= {row.of.metric for row in found.rows}
        return [row for row in found.rows if row.of.metric not in TIMED]

    assert_same(*both(measured))


@pytest.mark.parametrize("kind", KINDS)
def test_randomization(kind: str, reviews: str) -> None:
    """Weights are drawn on the CPU, so that the same seed gives the same ones on any device."""
    data = reviews if kind == "gpt2" else "scenes:count=4"
    methods = ("gradient_l2", "attention_rollout")
    more = {"examples": 2, "seeds": 1, "head": True, "embeddings": True}
    assert_same(*both(lambda: randomize([folder(kind, 2)], data, methods, **more).models))


@pytest.mark.parametrize(("method", "objective"), list(zip(ATTACKED, OBJECTIVES * 2, strict=True)))
def test_attacks(method: str, objective: str) -> None:
    """In double precision, for an ascent makes rounding grow. At embeddings the plain gradient is zero: at pixels."""
    kind = "vit" if method == "gradient" else "gpt2"
    attack = {"steps": 3, "starts": 2, "objective": objective} | ({"place": "pixels"} if kind == "vit" else {})
    asked = [AttackRequest(folder(kind), method, one, attack, dtype="float64") for one in inputs(kind, 2)]
    assert_same(*both(lambda: attack_many(asked)))


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_attacks_carry_over_to_other_methods(quantity: str) -> None:
    attack = {"steps": 2, "starts": 2, "objective": "constrained", "quantity": quantity}
    asked = AttackRequest(folder("bert"), "gradient_l2", inputs("bert")[-1], attack, dtype="float64")

    def carried() -> Any:
        [attacked] = attack_many([asked])
        return attacked, [
            measure_transfer(asked, attacked, method, {}) for method in ("occlusion", "attention_rollout")
        ]

    assert_same(*both(carried))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bert", (SMAT, GRADIENTS[-1], ATTENTION[1])),
        ("t5", (SMAT,)),
        pytest.param("gpt2", (NONE, SMAT, *GRADIENTS, *ATTENTION), marks=pytest.mark.slow(reason="seven students")),
    ],
)
def test_students_and_explainers_that_teach_them(kind: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    asked = plan(tmp_path, teacher=saved(kind), base=saved(kind, seed=1), settings=settings)
    assert_same(*both(lambda: scaffold(asked).students))


def test_students_taught_together() -> None:
    rows = ((0, 2, 4), (1, 3, 5))

    def taught_once() -> Any:
        model = loaded("bert")
        split, held, count = taught(model, 6), taught(model, 6, seed=5), head_count(model)
        phi = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 2, count)).astype(np.float32)).to(model.device)
        objective, rates = TeachingObjective(projection("sparsemax"), 5.0, False), StepRates(inner=0.05, clip=0.5)
        together = VmappedStudents([Student(model, 2, seed, False) for seed in (0, 1)], phi[0], objective, rates)
        batches = [[part.batch(mine, model) for mine in rows] for part in (split, held)]
        stepped = together.step(phi[1], *batches)
        return stepped.losses, stepped.gradients, stepped.outer_losses, together.weights

    assert_same(*both(taught_once))


def test_learned_explainers_are_judged(tmp_path: Path) -> None:
    data = str(marked_file(tmp_path / "data.jsonl"))
    source = load_source("text", data, None, tolerant=True)
    asked = EvaluationSample(folder("bert", 2), data, None, tuple(range(source.count)), source)
    assert_same(*both(lambda: plausibility(asked, None)))
    assert_same(*both(lambda: trivial_protocols(asked, None)))
    assert_same(*both(lambda: compare_explainers(asked, 0, None)))


def test_the_device_is_told_with_each_result() -> None:
    expected, got = both(lambda: explain_many([request("gpt2")]))
    assert (expected[0].provenance.device, got[0].provenance.device) == ("cpu", "cuda")
    with pytest.raises(AssertionError):
        both(lambda: runtime.device())
