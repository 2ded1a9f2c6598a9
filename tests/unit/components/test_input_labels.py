"""What a picker says beside the names of models and data sets."""

from __future__ import annotations

import pytest

from components.inputs.datasets import (
    dataset_label,
    describe_misfit,
    find_misfits,
    model_label,
    model_name,
    open_pictures,
    open_texts,
    sort_by_task,
)
from engine.input_kinds import list_models
from engine.models import catalog
from engine.models.summary import fitting_model

TEXT_MODELS = ["reviews-minilm", "bert-marked", "bert-nli", "bert-reviews", "nli-minilm", "quality-minilm"]
PICTURE_MODELS = ["digits-vit", "photos-vit", "scenes-marked-vit", "scenes-vit"]


def test_a_model_is_labeled_by_task_score_and_size_of_its_card() -> None:
    value = catalog.card("reviews-minilm")["scores"]["test"]["value"]
    assert model_label("reviews-minilm") == f"reviews-minilm · sentiment, {value:.1%}, 22.7M"
    assert model_label("quality-minilm") == "quality-minilm · translation quality (pairs), r = 0.755, 22.7M"
    assert model_label("tiny-llama") == "tiny-llama · language model, 100.0%, 809K", "short enough to be read whole"
    assert model_label("nli-minilm", fits=False) == "nli-minilm · other task: inference (pairs), 85.2%, 22.7M"


def test_beside_a_data_set_that_it_was_measured_on_a_model_has_the_score_there() -> None:
    value = catalog.card("reviews-minilm")["scores"]["reviews"]["value"]
    assert model_label("reviews-minilm", data="reviews") == f"reviews-minilm · sentiment, {value:.1%}, 22.7M"
    assert model_label("reviews-minilm", data="sst2") == model_label("reviews-minilm"), "the set that it was trained on"


def test_scores_on_draws_from_one_source_are_the_same_and_on_others_are_not() -> None:
    scores = catalog.card("t5-deep-nli")["scores"]
    for data, score in (("nli-generated:sentences=1,seed=4", "test"), ("nli-generated:count=50", "nli-generated")):
        assert f", {scores[score]['value']:.1%}, " in model_label("t5-deep-nli", data=data), data
    assert "%" not in model_label("t5-deep-nli", data="nli-generated:sentences=7")


@pytest.mark.parametrize("data", ["movies", "own.csv", "owner/name"])
def test_beside_a_data_set_that_it_was_not_measured_on_a_model_has_no_score(data: str) -> None:
    assert model_label("reviews-minilm", data=data) == "reviews-minilm · sentiment, 22.7M"
    assert model_label("tiny-llama", data=data) == "tiny-llama · language model, 809K"


@pytest.mark.parametrize("name", ["owner/name", "no such model", "a · b", "reviews-minilm · something", ""])
def test_a_model_of_which_nothing_is_known_is_its_name_and_is_read_back(name: str) -> None:
    assert model_name(name) == name
    if not name.startswith("reviews"):
        assert model_label(name) == name


@pytest.mark.parametrize("model", [*list_models("text"), *list_models("image")])
def test_all_labels_of_a_model_are_read_back(model: str) -> None:
    data_sets = ("", "other", *catalog.card(model).get("scores", {}))
    assert {model_name(model_label(model, fits, data)) for data in data_sets for fits in (True, False)} == {model}


def test_a_data_set_is_labeled_by_task_and_number_of_examples() -> None:
    assert dataset_label("reviews") == "reviews · sentiment, 320 examples"
    assert dataset_label("reviews-generated") == "reviews-generated · sentiment, 1,000 examples"
    assert dataset_label("sst2") == "sst2 · sentiment"
    assert dataset_label("photos") == "photos · 12 examples"
    assert dataset_label("scenes:seed=7") == "scenes:seed=7 · objects"
    assert dataset_label("/tmp/own.csv") == "/tmp/own.csv"


@pytest.mark.parametrize(
    ("dataset", "fitting", "best"),
    [
        ("reviews", ["reviews-minilm", "bert-reviews"], "reviews-minilm"),
        ("reviews-generated", ["reviews-minilm", "bert-reviews"], "bert-reviews"),
        ("reviews-marked", ["bert-marked"], "bert-marked"),
        ("nli", ["bert-nli", "nli-minilm"], "nli-minilm"),
        ("quality", ["quality-minilm"], "quality-minilm"),
    ],
)
def test_models_of_another_task_do_not_fit(dataset: str, fitting: list[str], best: str) -> None:
    misfits = find_misfits(TEXT_MODELS, dataset, open_texts(dataset).data)
    assert [model for model in TEXT_MODELS if model not in misfits] == fitting
    assert fitting_model(fitting, dataset) == best
    assert fitting_model([], dataset) == ""


@pytest.mark.parametrize(
    ("dataset", "misfits"),
    [
        ("scenes", ["digits-vit", "scenes-marked-vit"]),
        ("scenes-marked", ["digits-vit", "photos-vit", "scenes-vit"]),
        ("photos", []),
    ],
)
def test_models_of_other_pictures_do_not_fit(dataset: str, misfits: list[str]) -> None:
    assert find_misfits(PICTURE_MODELS, dataset, open_pictures(dataset).data) == misfits


def test_a_misfit_is_described_by_the_tasks_or_else_by_the_labels() -> None:
    reviews = open_texts("reviews").data
    assert describe_misfit("nli-minilm", "reviews", reviews) == (
        "nli-minilm was trained for inference (pairs), not for sentiment."
    )
    assert describe_misfit("nli-minilm", "own.csv", reviews) == (
        "nli-minilm predicts entailment, neutral, contradiction, but own.csv has the labels negative, positive."
    )
    assert describe_misfit("reviews-minilm", "own.csv", open_texts("quality").data) == (
        "reviews-minilm predicts negative, positive, but own.csv has scores."
    )


def test_models_are_grouped_by_task_and_those_that_do_not_fit_come_last() -> None:
    assert sort_by_task(TEXT_MODELS) == [
        "reviews-minilm", "bert-reviews", "bert-marked", "bert-nli", "nli-minilm", "quality-minilm"
    ]  # fmt: skip
    misfits = [model for model in TEXT_MODELS if "nli" not in model]
    assert sort_by_task(["owner/name", *TEXT_MODELS], misfits) == [
        "bert-nli", "nli-minilm", "owner/name", "reviews-minilm", "bert-reviews", "bert-marked", "quality-minilm"
    ]  # fmt: skip
