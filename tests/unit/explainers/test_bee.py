"""BEE: the metric that it names is the project's own, and no baseline that was tried does better by it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import UsageError
from engine.explain import explain
from engine.explainers.bee import (
    DISTRIBUTIONS,
    TUNED_ON,
    BeeParams,
    PatchBeeParams,
    draw_baseline,
    first_best,
    reward,
    sample_arm,
)
from engine.explainers.path_integrals import Paths
from engine.metrics.catalog import PERCENTS, SHARES, metric
from engine.metrics.faithfulness import faithfulness
from engine.params import from_mapping
from engine.registry import KINDS, TUNED_METHODS, all_explainers, explainer
from engine.removal_operators import BASELINES, PATCH_BASELINES
from engine.request import Example, Request
from tests.explaining import checkpoint, classifier, run, task_for
from tests.linear_patch import linear_patches, noise

TEXTS = ["although the plot drags the ending is warm", "never worth it", "a quiet triumph and the acting never falters"]
CHEAP = {"n_trials": 10, "n_steps": 9}


def measured(request: Request, id: str) -> float:
    """The metric by the evaluation's own functions."""
    percents = PERCENTS if metric(id).by_percent else (0, *SHARES, 100)
    [result] = faithfulness([request], percents, removal="mask", unit="token")
    return {
        "comprehensiveness": result.comprehensiveness,
        "sufficiency": result.sufficiency,
        "without_top": lambda: result.deletion.area,
        "with_top": lambda: result.insertion.area,
    }[id]()


@pytest.mark.parametrize("id", TUNED_ON)
def test_the_value_is_that_of_the_evaluation(id: str) -> None:
    for text in TEXTS:
        request = Request(str(checkpoint("bert", 3)), "bee", Example(text), {"metric": id, **CHEAP})
        extras = explain(request).extras
        assert extras["tuned_on"] == id
        assert extras["value"] == pytest.approx(measured(request, id), abs=1e-6)


@pytest.mark.parametrize("id", TUNED_ON)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_no_single_baseline_does_better_on_the_tuned_metric(family: str, id: str) -> None:
    """Integrated gradients from each fixed baseline, at the trial's nodes or complete, as the best one has them."""
    sign = 1 if metric(id).better == "high" else -1
    better = 0
    for text in TEXTS:
        model = str(checkpoint(family, 3))
        request = Request(model, "bee", Example(text), {"metric": id, **CHEAP}, seed=1)
        made = explain(request)
        tried = {trial["baseline"]: sign * trial["value"] for trial in made.extras["trials"]}
        assert sign * made.extras["value"] > max(tried.values()) - 1e-4
        for baseline in BASELINES:
            plain = {"baseline": baseline, "steps": "fixed", "n_steps": 9}
            alone = measured(Request(model, "integrated_gradients", Example(text), plain, seed=1), id)
            if made.extras["baseline"] != baseline:
                assert sign * made.extras["value"] > sign * alone - 1e-4
                better += sign * made.extras["value"] > sign * alone + 1e-3
    assert better, "a search that never gains would prove nothing"


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_map_is_complete_and_says_how_it_was_chosen(family: str) -> None:
    task = task_for(classifier(family, 3), TEXTS, seed=2)
    for item, made in zip(task.items, run("bee", task, **CHEAP), strict=True):
        assert made.check is not None
        assert made.check.name == "completeness gap"
        assert made.check.ok
        trials = made.extras["trials"]
        assert [trial["baseline"] for trial in trials[:4]] == list(BASELINES)
        assert {trial["baseline"] for trial in trials[4:]} <= set(DISTRIBUTIONS)
        best = made.extras["baseline"]
        assert made.notes[0].startswith(f"Tuned on comprehensiveness: of 10 baselines {best} is the best")
        assert "Judge this map by other metrics." in made.notes[0]
        assert made.evaluations > 10 * 10, "the paths and the removals"
        assert not made.scores[item.encoded.special].any()


def test_a_baseline_without_finite_gradients_is_never_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """At zero embeddings the gradient of a deep decoder overflows."""
    integrate, broken = Paths.integrate, BASELINES.index("zero")
    paths: list[Paths] = []

    def overflowing(self: Paths, items: np.ndarray, rule: str, steps: int) -> None:
        integrate(self, items, rule, steps)
        if self not in paths:
            paths.append(self)
        if paths.index(self) == broken:
            self._scores = [np.full_like(self.scores(i), np.nan) for i in range(len(self._scores))]

    monkeypatch.setattr(Paths, "integrate", overflowing)
    task = task_for(classifier("bert"), ["the plot never drags", "warm and funny"])
    for attribution in run("bee", task, n_trials=6, n_steps=5):
        assert np.isfinite(attribution.scores).all()
        assert any("no finite numbers: zero." in note for note in attribution.notes)
        trials = attribution.extras["trials"]
        assert [one["value"] is None for one in trials] == [place == broken for place in range(6)]


def test_a_search_of_the_first_baseline_is_integrated_gradients() -> None:
    task = task_for(classifier("bert", 3), TEXTS)
    for tuned, plain in zip(run("bee", task, n_trials=1, n_steps=17), run("integrated_gradients", task), strict=True):
        np.testing.assert_allclose(tuned.scores, plain.scores, atol=0.01 * np.abs(plain.scores).max())
        assert tuned.extras["baseline"] == "mask"


def test_pictures_try_their_own_baselines() -> None:
    [made] = run("bee", task_for(linear_patches(), [noise(0)]), n_trials=12)
    trials = [trial["baseline"] for trial in made.extras["trials"]]
    assert trials[:3] == list(PATCH_BASELINES)
    assert made.check is not None
    assert made.check.ok


@pytest.mark.parametrize("arm", DISTRIBUTIONS)
def test_baselines_of_texts(arm: str) -> None:
    model = classifier("bert", 3)
    encoded = model.encode(Example(TEXTS[0]))
    points = np.random.default_rng(0).normal(size=(len(encoded.features), 24))
    drawn = draw_baseline(arm, BeeParams(), model, encoded, points, np.random.default_rng(1))
    assert drawn.shape == points.shape
    if arm == "constant":
        rows = model.embedding.weight.numpy()
        assert (drawn == drawn[0]).all()
        assert (drawn[0] == rows).all(axis=1).any(), "a token of the vocabulary"
    if arm == "shuffled":
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, points))
    if arm == "uniform":
        assert points.min() <= drawn.min() < drawn.max() <= points.max()
    if arm == "normal":
        assert drawn.mean() == pytest.approx(points.mean(), abs=0.2)
        assert drawn.std() == pytest.approx(points.std(), rel=0.2)
    if arm == "smoothed":
        assert np.abs(np.diff(drawn, axis=0)).mean() < np.abs(np.diff(points, axis=0)).mean()
        assert points.min() < drawn.min() < drawn.max() < points.max(), "means of what is there"


def test_constant_pictures_are_of_one_color_and_blurred_ones_smoother() -> None:
    model = linear_patches()
    encoded = model.encode(noise(0))
    task = task_for(model, [noise(0)])
    points = model.points(task.batch(), "pixels")[0].numpy()[encoded.features]
    params, chance = PatchBeeParams(), np.random.default_rng(0)
    color = params.draw_constant(model, points, chance).reshape(len(points), 3, -1)
    assert (color == color[:1, :, :1]).all()
    assert len(np.unique(color)) == 3
    smooth = params.smooth(encoded, points, 1.0)
    assert smooth.shape == points.shape
    assert smooth.std() < points.std() / 2
    assert smooth.mean() == pytest.approx(points.mean(), abs=0.1)


def test_thompson_sampling_prefers_the_arm_that_wins() -> None:
    posteriors = {"poor": np.array([1.0, 9.0]), "good": np.array([9.0, 1.0])}
    picks = [sample_arm(posteriors, np.random.default_rng(seed)) for seed in range(200)]
    assert picks.count("good") > 190


@pytest.mark.parametrize(("value", "chance"), [(0.5, 1.0), (-1.0, 0.0), (0.2, 0.625)])
def test_a_trial_wins_as_often_as_it_beats_earlier_ones(value: float, chance: float) -> None:
    """Of four earlier values 0.2 is above two and equals one: (2 + 1/2) / 4."""
    won = [reward(value, [0.1, 0.2, 0.3, 0.0], np.random.default_rng(seed)).tolist() for seed in range(400)]
    assert all(one in ([1, 0], [0, 1]) for one in won)
    assert np.mean([one[0] for one in won]) == pytest.approx(chance, abs=0.08)


def test_ties_go_to_the_first() -> None:
    assert first_best([0.1, 0.3, 0.3 + 1e-7, 0.2]) == 1


def test_the_registry_knows_the_metric() -> None:
    kinds = [all_explainers(kind) for kind in KINDS]
    assert {id for known in kinds for id, method in known.items() if method.tuned_on} == set(TUNED_METHODS)
    assert explainer("bee").tuned_metric({}) == "comprehensiveness"
    assert explainer("bee").tuned_metric({"metric": "with_top"}) == "with_top"
    assert explainer("least_complex").tuned_metric({}) == "complexity"
    assert explainer("integrated_gradients").tuned_metric({}) == ""


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(UsageError, match=r"bee\.metric.*comprehensiveness.*plausibility"):
        from_mapping(BeeParams, {"metric": "plausibility"}, "bee")
