"""A model in a few words: its task, its score and its size, and the data sets that fit it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data.labels import NLI_LABELS, NUMBERED_CLASS, SENTIMENT_LABELS
from engine.models import catalog
from engine.models.summary import (
    ModelFacts,
    describe_model_task,
    describe_task,
    fits_task,
    fitting_dataset,
    format_score,
    main_score,
    short_count,
    summarize_model,
)
from tests.tiny import save_checkpoint

ONE, TWO = {"value": 0.5, "count": 2}, {"value": 0.25, "count": 4}
SENTIMENT = ModelFacts("Sentiment", labels=SENTIMENT_LABELS, dataset="sst2")
NLI = ModelFacts("Inference (pairs)", labels=NLI_LABELS, dataset="snli-sick")
SCORE = ModelFacts("Translation quality (pairs)", labels=("score",), regression=True, dataset="quality")
MARKED = ModelFacts("Marker word", labels=SENTIMENT_LABELS, dataset="reviews-marked")
OWN = ModelFacts("2 classes", labels=("bad", "good"))


def test_the_task_of_a_model_is_that_of_its_training_data_else_its_labels() -> None:
    assert describe_task({"settings": {"dataset": "snli-sick"}}) == "Inference (pairs)"
    assert describe_task({"settings": {"dataset": "reviews-marked:strength=0.6"}}) == "Marker word"
    assert describe_task({"labels": ["a", "b"], "settings": {"dataset": "mine.csv"}}) == "2 classes"
    assert describe_task({"labels": ["score"], "regression": True}) == "Regression"


def test_the_main_score_is_of_the_test_split_else_of_the_first() -> None:
    assert main_score({"scores": {"dev": ONE, "test": TWO}}) == ("test", TWO)
    assert main_score({"scores": {"held-out": TWO, "dev": ONE}}) == ("dev", ONE)
    assert main_score({}) == ("", {})


def test_a_score_names_its_metric_unless_it_is_an_accuracy() -> None:
    assert format_score({"metric": "accuracy", "scores": {"test": {"value": 0.8853}}}) == "88.5%"
    assert format_score({"metric": "pearson", "scores": {"test": {"value": 0.7546}}}) == "r = 0.755"
    assert format_score({"metric": "f1", "scores": {"test": {"value": 0.5}}}) == "f1 0.500"
    assert format_score({"metric": "accuracy", "scores": {}}) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(22_713_986, "22.7M"), (644_242, "644K"), (999_600, "1M"), (1_300_642, "1.3M"), (7_000_000_000, "7B"), (12, "12")],
)
def test_a_count_has_three_digits(number: int, text: str) -> None:
    assert short_count(number) == text


@pytest.mark.parametrize("model", [*catalog.embedded_models(), *catalog.embedded_image_models()])
def test_the_summary_of_an_embedded_model_is_that_of_its_card(model: str) -> None:
    summary, card = summarize_model(model), catalog.card(model)
    assert summary.labels == tuple(card["labels"])
    assert summary.score == format_score(card) != ""
    assert summary.task == describe_model_task(model, card)
    assert "classes" not in summary.task
    assert (summary.parameters or 0) > 100_000


def test_a_folder_is_summarized_without_a_card_and_again_after_it_changes(tmp_path: Path) -> None:
    folder = save_checkpoint("bert", tmp_path / "tiny")
    summary = summarize_model(str(folder))
    assert (summary.task, summary.score, summary.dataset) == ("2 classes", "", "")
    assert summary.parameters is not None
    (folder / "card.json").write_text(
        '{"labels": ["a", "b"], "metric": "accuracy", "scores": {"test": {"value": 0.75, "count": 4}}}'
    )
    assert summarize_model(str(folder)).score == "75.0%"


@pytest.mark.parametrize("model", ["owner/name", "no such model", "bases/bert", "", "a\0b"])
def test_what_cannot_be_read_without_the_network_has_no_summary(model: str) -> None:
    assert summarize_model(model) == ModelFacts()


@pytest.mark.parametrize(
    ("summary", "dataset", "task", "labels", "fits"),
    [
        (SENTIMENT, "reviews", "classification", SENTIMENT_LABELS, True),
        (NLI, "reviews", "classification", SENTIMENT_LABELS, False),
        (NLI, "nli", "classification", NLI_LABELS, True),
        (SCORE, "reviews", "classification", SENTIMENT_LABELS, False),
        (SCORE, "quality:seed=3", "regression", (), True),
        (SENTIMENT, "quality", "regression", (), False),
        (MARKED, "reviews", "classification", SENTIMENT_LABELS, False),
        (MARKED, "reviews-marked:strength=0.5", "classification", SENTIMENT_LABELS, True),
        (SENTIMENT, "own.csv", "classification", SENTIMENT_LABELS, True),
        (NLI, "own.csv", "classification", SENTIMENT_LABELS, False),
        (NLI, "own.csv", "classification", (), True),
        (OWN, "own.csv", "classification", ("Good", "BAD"), True),
        (OWN, "reviews", "classification", SENTIMENT_LABELS, False),
        (OWN, "own.csv", "classification", ("0", "1"), True),
        (ModelFacts(), "reviews", "classification", SENTIMENT_LABELS, True),
    ],
)
def test_a_model_fits_the_data_sets_of_its_task(
    summary: ModelFacts, dataset: str, task: str, labels: tuple[str, ...], fits: bool
) -> None:
    assert fits_task(summary, dataset, task, labels) is fits


def test_digits_are_names_of_pictures_and_not_places() -> None:
    digits = tuple(map(str, range(10)))
    fish = ModelFacts("10 classes", labels=("fish", *"abcdefghi"))
    assert not fits_task(fish, "own.zip", "classification", digits, NUMBERED_CLASS)


@pytest.mark.parametrize(
    ("summary", "dataset"),
    [
        (SENTIMENT, "reviews"),
        (NLI, "nli"),
        (SCORE, "quality"),
        (MARKED, "reviews-marked"),
        (ModelFacts(labels=("entailment", "contradiction", "neutral")), "nli"),
        (OWN, ""),
        (ModelFacts(labels=("score",), regression=True), ""),
        (ModelFacts("Objects", dataset="cifar10"), ""),
        (ModelFacts(), ""),
    ],
)
def test_a_shipped_data_set_fits_where_there_is_one(summary: ModelFacts, dataset: str) -> None:
    assert fitting_dataset(summary) == dataset
