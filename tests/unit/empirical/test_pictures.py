"""Empirical explainers of pictures: what is recovered, features and errors by loops, what is trained and refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import jobs
from engine.empirical import explainer as trained_explainers
from engine.empirical.explainer import find_explainer, predict, preview_explainer
from engine.empirical.features import count_shared, margin, token_features
from engine.empirical.training import (
    GRADIENT,
    MEAN,
    MEAN_MAP,
    EmpiricalPlan,
    MapData,
    check,
    fit,
    held_out_errors,
    requests_of,
    source_of,
    train,
)
from engine.errors import UsageError
from engine.explain import explain, explain_many
from engine.models.loading import load_image_model
from engine.request import Request
from engine.result import Explanation, Provenance
from tests.estimated import for_model
from tests.explaining import task_for
from tests.linear_patch import PatchLine, linear_patches, noise
from tests.unit.vision.tiny_families import save_family
from tests.unit.vision.tiny_vit import blobs, patch_sums, plain_vit, save_vit, values_of, vit

pytestmark = pytest.mark.usefixtures("home", "none_shipped")


@pytest.fixture
def none_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trained_explainers, "SHIPPED", tmp_path / "shipped")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_vit(tmp_path / "vit"))


def plan_for(model: str, **changes: Any) -> EmpiricalPlan:
    small = {"train_size": 10, "held_out": 6, "params": {"n_samples": 12}}
    named = {"method": "kernel_shap", "dataset": "scenes:count=20", "out": "mine"}
    return EmpiricalPlan(model, **{**named, **small, **changes})


def linear_data(first: int, count: int) -> MapData:
    """Maps that are linear in pixels, and in the states of patches by the margin of the class."""
    model, place = linear_patches(3), np.arange(1, 7) / 10
    pictures = [noise(first + number) for number in range(count)]
    task = task_for(model, pictures)
    task = dataclasses.replace(task, items=[dataclasses.replace(i, target=at % 3) for at, i in enumerate(task.items)])
    places = model.module.vit.embeddings.position_embeddings[0, 1:].numpy()
    exact = []
    for item in task.items:
        line, others = PatchLine(model, item.encoded, item.target), np.delete(item.prediction.logits, item.target)
        states = 0.3 + (line.x + places) @ place
        scores = 0.7 * line.change("mean") + (item.prediction.logits[item.target] - others.mean()) * states
        exact.append(
            Explanation(
                item.encoded.tokens, np.concatenate([[0.0], scores]), item.prediction,
                Provenance("lines", "seed-0", "occlusion", 1, {}, item.target, "", 0, "float64", "cpu"), 10, 0.1,
                grid=item.encoded.grid,
            )
        )  # fmt: skip
    rows = [own[one.features] for own, one in zip(token_features(task), exact, strict=True)]
    requests = [Request("lines", "random", picture) for picture in pictures]
    return MapData(requests, exact, rows, 0.01, count_shared(model, rows[0].shape[1]))


def test_a_map_that_is_linear_in_pixels_and_states_is_recovered_for_every_class() -> None:
    data, tests = linear_data(0, 40), linear_data(100, 12)
    weights, _ = fit(data)
    errors = held_out_errors(data, tests, weights)
    assert errors["predicted class"].count + errors["other classes"].count == 12
    for name in ("predicted class", "other classes"):
        assert errors[name].count > 2
        assert errors[name].relative < 1e-6
    assert min(errors[name].relative for name in (MEAN, MEAN_MAP, GRADIENT)) > 0.05


def slow_error(exact: list[list[float]], estimated: list[list[float]]) -> tuple[float, float]:
    """The relative squared error, and the mean of Pearson's correlations."""
    squared = whole = 0.0
    correlations = []
    for own, other in zip(exact, estimated, strict=True):
        squared += sum((a - b) ** 2 for a, b in zip(own, other, strict=True))
        whole += sum(a * a for a in own)
        a_mean, b_mean = sum(own) / len(own), sum(other) / len(other)
        a_size = math.sqrt(sum((a - a_mean) ** 2 for a in own))
        b_size = math.sqrt(sum((b - b_mean) ** 2 for b in other))
        if a_size and b_size:
            both = sum((a - a_mean) * (b - b_mean) for a, b in zip(own, other, strict=True))
            correlations.append(both / (a_size * b_size))
    return squared / whole, sum(correlations) / len(correlations)


def test_the_table_by_loops() -> None:
    """The errors of the explainer itself and of the cheaper maps, from scores and features in plain Python."""
    data, tests = linear_data(0, 20), linear_data(50, 10)
    weights = np.random.default_rng(0).normal(size=data.features[0].shape[1])
    errors = held_out_errors(data, tests, weights)
    train_maps = [one.scores[1:].tolist() for one in data.exact]
    own = [at for at, one in enumerate(tests.exact) if one.provenance.target == one.prediction.index]
    exact = [tests.exact[at].scores[1:].tolist() for at in own]
    rows = [[[float(x) for x in row] for row in tests.features[at]] for at in own]
    predicted = [[sum(w * x for w, x in zip(weights.tolist(), row, strict=True)) for row in table] for table in rows]
    everywhere = [value for scores in train_maps for value in scores]
    mean = sum(everywhere) / len(everywhere)
    chosen = [
        scores
        for scores, one in zip(train_maps, data.exact, strict=True)
        if one.provenance.target == one.prediction.index
    ]
    mean_map = [sum(scores[patch] for scores in chosen) / len(chosen) for patch in range(len(chosen[0]))]
    pairs = [
        (float(row[0]), score)
        for table, scores in zip(data.features, train_maps, strict=True)
        for row, score in zip(table, scores, strict=True)
    ]
    factor = sum(g * score for g, score in pairs) / sum(g * g for g, _ in pairs)
    expected: dict[str, list[list[float]]] = {
        "predicted class": predicted,
        MEAN: [[mean] * len(scores) for scores in exact],
        MEAN_MAP: [mean_map] * len(exact),
        GRADIENT: [[factor * row[0] for row in table] for table in rows],
    }
    for name, estimated in expected.items():
        if name == MEAN:
            assert errors[name].pearson is None
            estimated = [[value + 1e-9 * at for at, value in enumerate(scores)] for scores in estimated]
        relative, pearson = slow_error(exact, estimated)
        assert errors[name].relative == pytest.approx(relative, rel=1e-6), name
        assert name == MEAN or errors[name].pearson == pytest.approx(pearson), name


@pytest.mark.parametrize("target", [0, 2])
def test_features_by_loops_on_the_plain_model(target: int) -> None:
    """Gradient x input at pixels and blocks and its shares, both times the probability, and the margin times states."""
    picture, plain, states = blobs(3), plain_vit(), []
    [rows] = token_features(task_for(vit(), [picture], target))
    values = values_of(vit(), picture).requires_grad_()
    hooks = [block.register_forward_pre_hook(lambda _, args: states.append(args[0])) for block in plain.vit.layers]
    logits = plain(pixel_values=values).logits[0]
    for hook in hooks:
        hook.remove()
    slopes = torch.autograd.grad(logits[target], [values, *states])
    products = [patch_sums((values * slopes[0]).detach(), (3, 4)).tolist()]
    for state, slope in zip(states, slopes[1:], strict=True):
        products.append([float(a @ b) for a, b in zip(state[0].detach()[1:], slope[0][1:], strict=True)])
    printed = logits.tolist()
    size = printed[target] - sum(one for at, one in enumerate(printed) if at != target) / 2
    assert size == pytest.approx(margin(np.array(printed), target))
    chance = math.exp(printed[target]) / sum(map(math.exp, printed))
    for patch in range(12):
        own = [level[patch] for level in products]
        shares = [level[patch] / sum(abs(one) for one in level) for level in products[:-1]] + [0.0]
        tail = [size, *(size * x for x in states[2][0, 1 + patch].tolist())]
        shrunk = [chance * one for one in (*own, *shares)]
        np.testing.assert_allclose(rows[1 + patch], [*own, *shares, *shrunk, *tail], atol=1e-9)
    # Only through its LayerNorm, which knows no scale, does a patch reach the class token in the last block.
    assert max(map(abs, products[-1])) < 1e-12 < 1e-3 < max(map(abs, products[-2]))


def test_the_margin_of_a_single_score_is_the_score() -> None:
    assert margin(np.array([2.0]), 0) == 2
    assert margin(np.array([2.0, 1.0, -4.0]), 1) == 2


def test_train_explain_and_serve(model: str) -> None:
    plan = plan_for(model)
    trained = train(plan)
    card = trained.card
    assert (card.kind, card.train_size) == ("image", 10)
    assert card.params == {"removal": "mean", "n_samples": 12, "segments": "patch", "n_segments": 24}
    assert {MEAN, MEAN_MAP, GRADIENT, trained_explainers.LOWEST_COST} < card.errors.keys()
    parts = requests_of(plan, source_of(plan))
    maps = [one for part in parts for one in explain_many(part)]
    assert card.training_passes == sum(one.evaluations for one in maps)
    assert card.passes == pytest.approx(sum(one.evaluations for one in maps) / len(maps))
    assert card.break_even == math.ceil(card.training_passes / (card.passes - 1))
    assert len({one.example for part in parts for one in part}) == 16
    found = preview_explainer(model, "kernel_shap", {"n_samples": 12})
    assert found is not None
    assert found.digest == trained.digest
    picture = blobs(5)
    made = explain(Request(model, "empirical", picture, {"of": "kernel_shap"}))
    assert made.provenance.params == {"of": trained.reference}
    assert made.grid == (3, 3)
    [rows] = token_features(task_for(load_image_model(model), [picture]))
    np.testing.assert_allclose(made.scores[made.features], predict(trained, rows)[made.features], atol=1e-5)
    assert made.scores[0] == 0
    assert "Estimated map of Kernel SHAP by mine, trained on 10 maps of scenes:count=20." in made.notes[0]


def test_a_job_trains_it_from_the_same_maps(model: str) -> None:
    job = jobs.run_now(jobs.create("empirical", plan_for(model).as_plain()))
    assert (job.state, job.total, job.failed) == ("done", 17, 0), job.error
    assert find_explainer("", model).name == "mine"


def test_parameters_of_pictures_choose_the_preview(model: str) -> None:
    for_model(model)
    assert preview_explainer(model, "kernel_shap", {}) is not None
    for params in ({"segments": "slic"}, {"removal": "zero"}, {"n_samples": 64}):
        assert preview_explainer(model, "kernel_shap", params) is None
    assert preview_explainer(model, "occlusion", {}) is None


def test_a_card_of_an_unknown_kind_of_input_is_refused(model: str) -> None:
    trained = for_model(model)
    file = trained_explainers.explainers_folder() / "made-up.json"
    assert trained.card.kind == "image"
    file.write_text(file.read_text().replace('"kind": "image"', '"kind": "sound"'))
    with pytest.raises(UsageError, match="no empirical explainer of kernel_shap"):
        find_explainer("kernel_shap", model)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "grad_cam"}, "there is nothing to save"),
        ({"method": "least_sensitive"}, "method for images: unknown name 'least_sensitive'"),
        ({"params": {"removal": "mask"}}, r"kernel_shap\.removal: must be one of mean"),
    ],
)
def test_plans_that_cannot_be_carried_out(model: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(dataclasses.replace(plan_for(model), **changes))  # type: ignore[arg-type]


def test_a_model_that_merges_patches_is_refused(tmp_path: Path) -> None:
    swin = str(save_family(tmp_path / "swin", "swin"))
    with pytest.raises(UsageError, match=r"merges patches, .* Choose a model whose blocks keep all patches"):
        check(plan_for(swin))


def test_too_few_pictures_and_a_data_set_of_texts_are_told(model: str) -> None:
    plan = plan_for(model, train_size=100)
    with pytest.raises(UsageError, match=r"scenes:count=20 has 20 examples, but 106 are needed"):
        requests_of(plan, source_of(plan))
    with pytest.raises(UsageError, match="reviews holds texts, but the models read pictures"):
        source_of(plan_for(model, dataset="reviews"))
