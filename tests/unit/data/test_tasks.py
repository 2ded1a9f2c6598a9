"""The tasks of the registered data sets and the numbers of their examples."""

from __future__ import annotations

import pytest

from engine.data.datasets import dataset_names, load
from engine.data.image_datasets import image_names, load_images
from engine.data.tasks import FACTS, TASK_LABELS, example_count, registered_dataset, shipped_dataset, task_of_dataset


def test_every_registered_data_set_has_a_task_and_only_those() -> None:
    assert set(FACTS) == {*dataset_names(), *image_names()}


@pytest.mark.parametrize("name", [name for name, facts in FACTS.items() if facts.examples is not None])
def test_the_number_of_examples_is_that_of_the_usual_split(name: str) -> None:
    data = load_images(name) if name in image_names() else load(name)
    assert len(data) == example_count(name)
    facts = FACTS[name]
    assert bool(data.label_names) == (facts.task not in ("", "Translation quality (pairs)"))
    if facts.task in TASK_LABELS:
        assert data.label_names == TASK_LABELS[facts.task]


def test_options_leave_the_task_and_decide_the_number() -> None:
    assert registered_dataset("scenes:seed=7,count=50") == "scenes"
    assert task_of_dataset("scenes:seed=7,count=50") == "Objects"
    assert example_count("scenes:seed=7,count=50") is None
    assert (task_of_dataset("own.csv"), example_count("own.csv"), registered_dataset("hub:owner/name")) == (
        "",
        None,
        "",
    )


def test_a_shipped_set_stands_for_a_task() -> None:
    assert list(map(shipped_dataset, ["Sentiment", "Inference (pairs)", "other", ""])) == ["reviews", "nli", "", ""]
