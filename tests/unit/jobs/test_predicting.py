"""The job that predicts a whole data set and compares methods on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import jobs
from engine.data.datasets import load
from engine.errors import ExegesisError, UsageError
from engine.explain import explain
from engine.metrics.agreement import cached_disagreements
from engine.predictions import cached_predictions, predictions
from engine.request import Request
from tests.tiny import CORPUS, save_checkpoint

METHODS = ["gradient_l2", "attention_rollout"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A file of five texts."""
    return written(tmp_path / "texts.jsonl", CORPUS)


def written(file: Path, texts: list[str]) -> str:
    file.write_text("".join(json.dumps({"text": text, "label": 0}) + "\n" for text in texts), encoding="utf-8")
    return str(file)


def test_a_whole_data_set_is_predicted_and_found_by_the_pages(model: str, data: str) -> None:
    job = jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    assert (job.state, job.total, job.computed, job.error) == ("done", 5, 5, "")
    assert job.title == f"Predict {data} with {model}"
    examples = [labelled.example for labelled in load(data).examples]
    found = cached_predictions(model, examples)
    assert found == predictions(model, examples)
    assert cached_disagreements(model, examples, METHODS) == [None] * 5
    again = jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    assert (again.done, again.computed) == (5, 0)


def test_with_methods_it_explains_each_example_and_compares(model: str, data: str) -> None:
    job = jobs.run_now(jobs.create("predict", {"model": model, "data": data, "methods": METHODS}))
    assert (job.state, job.total, job.computed) == ("done", 10, 10)
    examples = [labelled.example for labelled in load(data).examples]
    assert None not in cached_predictions(model, examples)
    assert None not in cached_disagreements(model, examples, METHODS)
    assert all(explain(Request(model, method, example)).cached for method in METHODS for example in examples)


def test_short_texts_come_first_under_their_place_in_the_data_set(model: str, tmp_path: Path) -> None:
    data = written(tmp_path / "texts.jsonl", ["a long long film", "a film", "a long film"])
    units = list(jobs.kind_of("predict").plan({"model": model, "data": data, "methods": METHODS}))
    assert [unit.label for unit in units[:3]] == [f"prediction, example {n}" for n in (1, 2, 0)]
    assert [unit.label for unit in units[3:]] == [f"comparison, example {n}" for n in (1, 2, 0)]
    assert len({unit.batch for unit in units}) == 2


def test_an_example_that_fails_does_not_stop_the_others(model: str, tmp_path: Path) -> None:
    data = written(tmp_path / "one_bad.jsonl", [*CORPUS, "a" * 1_000_001])
    job = jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    assert (job.state, job.failed, job.computed) == ("failed", 1, 5)
    assert "prediction, example 5: text: must have at most 1,000,000 characters" in job.error


def test_a_tokenizer_that_panics_fails_its_examples_and_the_queue_goes_on(tmp_path: Path, model: str) -> None:
    """Its regular expression gives up with a panic of Rust, which Python sees as a `BaseException`."""
    panicking = save_checkpoint("bert", tmp_path / "panicking")
    plain = json.loads((panicking / "tokenizer.json").read_text(encoding="utf-8"))
    plain["normalizer"] = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "a"}
    (panicking / "tokenizer.json").write_text(json.dumps(plain), encoding="utf-8")
    data = written(tmp_path / "texts.jsonl", ["a film", "a" * 60 + "b"])
    failing = jobs.submit("predict", {"model": str(panicking), "data": data})
    going = jobs.submit("predict", {"model": model, "data": data})
    job = jobs.wait(failing.id, 60.0)
    assert (job.state, job.failed, job.computed) == ("failed", 1, 1)
    assert f"tokenizer of '{panicking}'"[:40] in job.error
    assert "Use another one." in job.error
    assert jobs.wait(going.id, 60.0).state == "done"


def test_of_a_file_that_grew_only_what_is_new_is_computed(model: str, data: str) -> None:
    jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    written(Path(data), [*CORPUS, "one more"])
    again = jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    assert (again.total, again.computed) == (6, 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"colour": "red"}, "must have model and data, and may have methods and dtype"),
        ({"model": 3}, "model of a predict job: must be a name"),
        ({"data": ["a"]}, "data of a predict job: must be a data set's name"),
        ({"data": "reviws"}, "Did you mean 'reviews'?"),
        ({"data": "nowhere.csv"}, "nowhere.csv"),
        ({"methods": "gradient"}, "methods of a predict job: must be a list of method names"),
        ({"methods": []}, "methods: must be at least two different methods"),
        ({"methods": ["gradiant", "occlusion"]}, "Did you mean 'gradient'?"),
        ({"model": "no-such-model"}, "model: unknown name 'no-such-model'."),
        ({"dtype": "half"}, "dtype of a predict job: unknown name 'half'."),
    ],
)
def test_a_wrong_spec_is_refused_before_a_job_is_entered(
    model: str, data: str, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(ExegesisError) as refused:
        jobs.submit("predict", {"model": model, "data": data} | change)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert jobs.list_jobs() == []


def test_a_missing_part_of_a_spec_is_named() -> None:
    with pytest.raises(UsageError, match="must have model and data"):
        jobs.create("predict", {"model": "reviews-minilm"})
