"""Empirical explainers: what a head recovers, what it cannot learn, its errors by hand, files that refuse to serve."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from engine import jobs
from engine.empirical import explainer as trained_explainers
from engine.empirical.errors import MapErrors, map_errors
from engine.empirical.explainer import (
    EmpiricalExplainer,
    find_explainer,
    free_name,
    load,
    predict,
    preview_explainer,
    save,
    trained_for,
)
from engine.empirical.features import count_shared, token_features
from engine.empirical.training import (
    EmpiricalPlan,
    MapData,
    check,
    fit,
    held_out_errors,
    requests_of,
    ridge,
    source_of,
    train,
)
from engine.errors import ExegesisError, UsageError
from engine.explain import explain, explain_many, key_of
from engine.models.loading import load_model
from engine.request import Example, Request
from engine.result import Explanation, Provenance
from engine.scaffold.learned_explainer import MOST_BYTES
from tests.estimated import GOOD, for_model
from tests.explaining import run, task_for
from tests.linear import WORDS, bag_of_embeddings
from tests.tiny import save_checkpoint

pytestmark = pytest.mark.usefixtures("home", "none_shipped")
TEXT = "the acting is warm"


@pytest.fixture
def none_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trained_explainers, "SHIPPED", tmp_path / "shipped")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(save_checkpoint("bert", tmp_path / "tiny"))


def linear_data(first: int, count: int, shuffled: bool = False) -> MapData:
    """Maps that are linear in the embeddings; `shuffled`: scores of any texts, of either sign, in their place."""
    model = bag_of_embeddings(2)
    generator = np.random.default_rng(first)
    texts = [" ".join(generator.choice(WORDS, size=generator.integers(3, 9))) for _ in range(count)]
    task = task_for(model, texts)
    task = dataclasses.replace(task, items=[dataclasses.replace(i, target=at % 2) for at, i in enumerate(task.items)])
    maps = [made.scores for made in run("gradient_x_input", task)]
    maps = [scores - 0.3 * (1 - 2 * item.target) for scores, item in zip(maps, task.items, strict=True)]
    if shuffled:
        pool = np.concatenate(maps)
        maps = [generator.choice(np.concatenate([pool, -pool]), size=len(scores)) for scores in maps]
    exact = [
        Explanation(
            item.encoded.tokens, np.where(item.encoded.special, 0, scores), item.prediction,
            Provenance("bag", "seed-0", "kernel_shap", 3, {}, item.target, "", 0, "float64", "cpu"), 10, 0.1,
        )
        for item, scores in zip(task.items, maps, strict=True)
    ]  # fmt: skip
    requests = [Request("bag", "random", Example(text)) for text in texts]
    rows = [own[one.features] for own, one in zip(token_features(task), exact, strict=True)]
    return MapData(requests, exact, rows, 0.01, count_shared(model, rows[0].shape[1]))


def test_a_map_that_is_linear_in_the_embeddings_is_recovered_for_every_class() -> None:
    data, tests = linear_data(1, 60), linear_data(2, 20)
    weights, _ = fit(data)
    errors = held_out_errors(data, tests, weights)
    assert len(tests.exact) == errors["predicted class"].count + errors["other classes"].count
    for name in ("predicted class", "other classes"):
        assert errors[name].relative < 1e-6
        assert errors[name].pearson == pytest.approx(1, abs=1e-6)
    assert errors["mean score everywhere"].relative > 0.5


def test_maps_of_other_texts_cannot_be_learned() -> None:
    data, tests = linear_data(1, 200, shuffled=True), linear_data(2, 100, shuffled=True)
    weights, _ = fit(data)
    errors = held_out_errors(data, tests, weights)
    assert errors["predicted class"].relative == pytest.approx(1, abs=0.15)
    assert abs(errors["predicted class"].pearson or 0) < 0.2


def test_errors_by_hand() -> None:
    exact = [np.array([3.0, 0, 4]), np.array([0.0, 0])]
    errors = map_errors(exact, [np.array([3.0, 1, 2]), np.array([1.0, 0])])
    assert errors is not None
    assert errors.relative == pytest.approx(6 / 25)
    assert errors.cosine == pytest.approx(17 / (5 * np.sqrt(14)))
    assert errors.spearman == pytest.approx(0.5)
    assert errors.pearson == pytest.approx(np.corrcoef([3, 0, 4], [3, 1, 2])[0, 1])
    assert errors.count == 2
    zero = map_errors(exact, [np.zeros(3), np.zeros(2)])
    assert zero is not None
    assert (zero.relative, zero.pearson, zero.cosine) == (1, None, None)
    assert map_errors([np.zeros(2)], [np.ones(2)]) is None


@pytest.mark.parametrize("shape", [(30, 5), (6, 20)])
def test_both_forms_of_ridge_solve_the_normal_equations(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=shape), generator.normal(size=shape[0])
    for penalty, weights in zip((0.1, 10.0), ridge(x, y, (0.1, 10.0)), strict=True):
        np.testing.assert_allclose(x.T @ (y - x @ weights), penalty * weights, atol=1e-9)


def plan_for(model: str, **changes: object) -> EmpiricalPlan:
    small = {"train_size": 10, "held_out": 6, "params": {"n_samples": 12}}
    return EmpiricalPlan(model, "kernel_shap", "reviews", **{"out": "mine", **small, **changes})  # type: ignore[arg-type]


def test_larger_train_sets_contain_smaller_ones_and_leave_the_held_out_texts_out(model: str) -> None:
    source = source_of(plan_for(model))
    train_few, held_few = requests_of(plan_for(model), source)
    train_many, held_many = requests_of(plan_for(model, train_size=20), source)
    assert (train_many[:10], held_many) == (train_few, held_few)
    texts = [one.example for one in (*train_many, *held_many)]
    assert len({text.text for text in texts}) == len(texts)
    assert {one.target for one in train_many} == {None, 0, 1}


def test_train_explain_and_serve(model: str) -> None:
    plan = plan_for(model)
    trained = train(plan)
    assert trained_for(model)[0].digest == trained.digest
    card = trained.card
    assert card.train_size == 10
    assert card.params == {"removal": "mask", "n_samples": 12}
    assert card.training_passes == sum(
        one.evaluations for part in requests_of(plan, source_of(plan)) for one in explain_many(part)
    )
    assert card.break_even == int(np.ceil(card.training_passes / (card.passes - 1)))
    assert trained_explainers.LOWEST_COST in card.errors
    made = explain(Request(model, "empirical", Example(TEXT), {"of": "kernel_shap"}))
    assert made.provenance.params == {"of": trained.reference}
    task = task_for(load_model(model, "float32"), [TEXT])
    [rows] = token_features(task)
    np.testing.assert_allclose(made.scores[made.features], predict(trained, rows)[made.features], atol=1e-5)
    assert not made.scores[[token.special for token in made.tokens]].any()
    assert "Estimated map of Kernel SHAP by mine" in made.notes[0]
    for target, predicted in ((made.prediction.index, True), (1 - made.prediction.index, False)):
        one = explain(Request(model, "empirical", Example(TEXT), {"of": "kernel_shap"}, target))
        assert f"Expected relative squared error {card.expected(predicted):.2f} (0" in one.notes[0]
    assert f"{card.expected(True):.2f}" != f"{card.expected(False):.2f}"
    with pytest.raises(UsageError, match="mine is taken"):
        train(plan)


def test_a_preview_never_shares_the_key_of_the_exact_map(model: str) -> None:
    trained = for_model(model)
    exact = Request(model, "kernel_shap", Example(TEXT))
    preview = Request(model, "empirical", Example(TEXT), {"of": trained.reference})
    assert key_of(exact) != key_of(preview)
    assert explain(preview).provenance.method == "empirical"


def test_a_job_trains_it_and_resumes(model: str) -> None:
    job = jobs.run_now(jobs.create("empirical", plan_for(model).as_plain()))
    assert (job.state, job.total, job.failed) == ("done", 17, 0), job.error
    assert find_explainer("kernel_shap", model).name == "mine"
    again = jobs.run_now(jobs.create("empirical", plan_for(model, out="second").as_plain()))
    assert (again.state, again.computed) == ("done", 1)


def test_another_revision_or_version_is_refused(model: str) -> None:
    for_model(model, "old-model", revision="1" * 16)
    with pytest.raises(UsageError, match=r"another revision of .*Train it again"):
        find_explainer("old-model", model)
    for_model(model, "old-method", versions=(1, 2))
    with pytest.raises(UsageError, match=r"version 1\.2 of kernel_shap, now 1\.3"):
        find_explainer("old-method", model)
    assert trained_for(model) == []
    with pytest.raises(UsageError, match=r"no empirical explainer for .*exegesis empirical train --model"):
        find_explainer("", model)
    with pytest.raises(UsageError, match=r"no empirical explainer of lime .*--method lime"):
        find_explainer("lime", model)
    with pytest.raises(UsageError, match="no-such"):
        find_explainer("no-such", model)


def test_a_changed_or_damaged_file_is_told(model: str) -> None:
    first = for_model(model)
    for_model(model, train_size=5)
    with pytest.raises(UsageError, match="has changed"):
        find_explainer(first.reference, model)
    folder = trained_explainers.explainers_folder()
    card = json.loads((folder / "made-up.json").read_text())
    (folder / "made-up.json").write_text(json.dumps({**card, "passes": "many"}))
    with pytest.raises(ExegesisError, match="its card is invalid"):
        load(folder / "made-up")
    assert trained_for(model) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "my_method"}, {"passes": float("inf")}, {"train_size": "300"}, {"model": 5}, {"versions": ["1"]},
        *({"errors": {"predicted class": {**vars(GOOD.errors["predicted class"]), "relative": value}}}
          for value in (None, float("nan"))),
    ],
)  # fmt: skip
def test_a_card_of_wrong_values_takes_no_other_down(model: str, changes: dict[str, object]) -> None:
    for_model(model, "good")
    for_model(model, "bad")
    card = trained_explainers.explainers_folder() / "bad.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), **changes}))
    with pytest.raises(ExegesisError, match="bad: its card is invalid"):
        load(card.with_suffix(""))
    assert [one.name for one in trained_for(model)] == ["good"]


def test_one_whose_method_raises_is_left_out(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(method: str) -> tuple[int, ...]:
        raise UsageError(method)

    for_model(model)
    monkeypatch.setattr(trained_explainers, "current_versions", refuse)
    assert trained_for(model) == []


def test_the_smaller_error_is_first_among_those_of_one_method(model: str) -> None:
    errors = {"predicted class": MapErrors(0.1, None, None, None, 9)}
    for_model(model, "a", passes=210.0)
    for_model(model, "b", errors=errors)
    for_model(model, "c", passes=205.0, params={**GOOD.params, "n_samples": 64}, errors=errors)
    assert [one.name for one in trained_for(model)] == ["b", "a", "c"]
    preview = preview_explainer(model, "kernel_shap", {})
    assert preview
    assert preview.name == "b"


def test_names_of_open_jobs_are_not_free(model: str) -> None:
    name = free_name(model, "kernel_shap")
    jobs.create("empirical", plan_for(model, out=name).as_plain())
    assert free_name(model, "kernel_shap") == f"{name}-2"


def test_a_file_of_any_size_is_refused_before_it_is_read(model: str) -> None:
    for_model(model)
    file = trained_explainers.explainers_folder() / "made-up.json"
    with file.open("ab") as opened:
        opened.truncate(MOST_BYTES + 1)
    with pytest.raises(ExegesisError, match="is too large for an empirical explainer"):
        load(file.with_suffix(""))


def test_weights_of_another_size_are_refused(model: str) -> None:
    trained = for_model(model)
    with pytest.raises(ExegesisError, match="Train it again"):
        predict(dataclasses.replace(trained, weights=np.ones(3)), np.ones((2, 4)))
    with pytest.raises(ExegesisError, match="not finite"):
        save(EmpiricalExplainer("bad", trained.card, np.array([np.nan], dtype=np.float32)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "gradient_x_input"}, "there is nothing to save"),
        ({"model": "tiny-llama"}, "tiny-llama is a language model, .* Choose a classifier"),
        ({"model": "nli-minilm?labels=a|b"}, "once per label"),
        ({"out": "../x"}, "letters, digits"),
        ({"params": {"n_samples": 1}}, "n_samples"),
    ],
)
def test_plans_that_cannot_be_carried_out(model: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(dataclasses.replace(plan_for(model), **changes))  # type: ignore[arg-type]


def test_long_texts_are_left_out_and_the_others_keep_their_classes(model: str) -> None:
    source = source_of(plan_for(model))
    everything = {
        one.example.text: one.target for part in requests_of(plan_for(model, train_size=300), source) for one in part
    }
    short = [one for part in requests_of(plan_for(model, longest=60), source) for one in part]
    assert len(short) == 16
    assert max(len(one.example.text) for one in short) <= 60
    assert all(everything[one.example.text] == one.target for one in short)


def test_too_few_examples_are_told(model: str) -> None:
    plan = plan_for(model, train_size=1000)
    with pytest.raises(UsageError, match="has 320 examples of at most 1,000 characters, but 1,006 are needed"):
        requests_of(plan, source_of(plan))
