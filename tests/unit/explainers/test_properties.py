"""What must hold on any text."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.explainers.ensemble import normalize
from engine.explainers.shapley import EXACT_LIMIT
from engine.registry import SEVEN, TOP_THREE, explainer
from engine.task import Attribution, Task
from tests.explaining import METHODS, classifier, logit_of, run, task_for
from tests.linear import WORDS, bag_of_embeddings

SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ATTENTION = [m for m in METHODS if explainer(m).axes.behaviour == "attention, whatever the class"]
"""Methods that share out the attention itself, whatever the class."""


@few
@given(SENTENCES, st.sampled_from(["bert", "gpt2", "electra"]), st.integers(0, 2))
def test_integrated_gradients_add_up_to_the_change_of_the_logit(text: str, family: str, target: int) -> None:
    model = classifier(family, 3)
    task = task_for(model, [text], target=target)
    f, x = logit_of(model, text, target)
    start = x.clone()
    start[0, task.examples[0].features] = model.embedding.weight[model.mask_id]
    (made,) = run("integrated_gradients", task, steps="fixed", n_steps=150)
    assert made.scores.sum() == pytest.approx(float(f(x) - f(start)), abs=2e-3)


@few
@given(SENTENCES, st.sampled_from(["bert", "gpt2", "t5", "roberta"]))
def test_attention_is_a_share_of_one(text: str, family: str) -> None:
    task = task_for(classifier(family, 3), [text])
    for method in ATTENTION:
        (made,) = run(method, task)
        assert made.scores.sum() == pytest.approx(1, abs=1e-6)
        assert (made.scores >= 0).all()
        assert made.check is not None
        assert made.check.ok


@few
@given(SENTENCES)
def test_removal_effects_of_a_linear_model(text: str) -> None:
    """Occlusion, Shapley values and integrated gradients are the same thing there; equal words score the same."""
    task = task_for(bag_of_embeddings(), [text])
    methods = ["occlusion", "kernel_shap", "integrated_gradients"]
    methods += ["exact_shapley"] * (len(text.split()) <= min(EXACT_LIMIT, 8))
    maps = [run(method, task)[0].scores for method in methods]
    for other in maps[1:]:
        np.testing.assert_allclose(other, maps[0], atol=1e-6)
    for word in set(text.split()):
        places = [1 + i for i, w in enumerate(text.split()) if w == word]
        assert np.ptp(maps[0][places]) < 1e-9


@few
@given(SENTENCES, st.integers(0, 2**40))
def test_random_is_a_permutation(text: str, seed: int) -> None:
    task = task_for(bag_of_embeddings(), [text], seed=seed)
    (made,) = run("random", task)
    assert sorted(made.scores[task.examples[0].features]) == list(range(1, len(text.split()) + 1))


@few
@given(st.integers(0, 10_000), st.sampled_from(["ensemble_all", "ensemble_top3"]))
def test_ensembles_ignore_the_scale_of_their_members(seed: int, method: str) -> None:
    generator = np.random.default_rng(seed)
    task = task_for(bag_of_embeddings(), ["never worth it", "the plot drags and the ending falters"])
    maps = {m: [generator.normal(size=len(e)) for e in task.examples] for m in SEVEN}
    scale = {m: float(np.exp(generator.normal(0, 3))) for m in SEVEN}

    def members(factor: dict[str, float]) -> Task:
        return dataclasses.replace(
            task, explain_with=lambda m: [Attribution(factor[m] * scores, 1) for scores in maps[m]]
        )

    plain = run(method, members(dict.fromkeys(SEVEN, 1.0)))
    scaled = run(method, members(scale))
    chosen = SEVEN if method == "ensemble_all" else TOP_THREE
    for i, (a, b) in enumerate(zip(plain, scaled, strict=True)):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-12)
        assert np.abs(a.scores).sum() <= 1 + 1e-12
        assert a.evaluations == len(chosen)
        features = task.examples[i].features
        by_hand = np.mean([maps[m][i][features] / np.abs(maps[m][i][features]).sum() for m in chosen], axis=0)
        np.testing.assert_allclose(a.scores[features], by_hand, atol=1e-12)


def test_the_seven_are_the_theses() -> None:
    assert set(SEVEN) == {
        "gradient", "gradient_x_input", "integrated_gradients", "lime", "kernel_shap", "attention_mean",
        "attention_rollout",
    }  # fmt: skip
    assert set(TOP_THREE) == {"lime", "kernel_shap", "integrated_gradients"}


def test_a_flat_member_is_left_out_and_named() -> None:
    task = task_for(bag_of_embeddings(), ["never worth it"])
    scores = {"lime": [0, 1, 1, -2, 0], "kernel_shap": [0] * 5, "integrated_gradients": [0, 0, 3, 1, 0]}
    with_members = dataclasses.replace(task, explain_with=lambda m: [Attribution(np.array(scores[m], dtype=float), 2)])
    (made,) = run("ensemble_top3", with_members)
    np.testing.assert_allclose(made.scores, [0, 1 / 8, 1 / 8 + 3 / 8, -1 / 4 + 1 / 8, 0])
    assert made.notes == ("Left out, because all their scores are zero: kernel_shap.",)
    assert made.evaluations == 6
    assert normalize(np.zeros(5), task.items[0]) is None
