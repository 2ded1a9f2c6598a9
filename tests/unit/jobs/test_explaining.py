from __future__ import annotations

from typing import Any

import pytest

from engine import jobs
from engine.explain import explain
from engine.request import Example, Request
from tests.tiny import save_checkpoint

TEXTS = ["a warm and funny film", "the plot drags"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


def spec(model: str, **more: Any) -> dict[str, Any]:
    examples = [{"text": text} for text in TEXTS]
    return {"model": model, "methods": ["gradient", "occlusion"], "examples": examples, **more}


def test_explanations_of_a_job_are_found_by_the_pages(model: str) -> None:
    job = jobs.run_now(jobs.create("explain", spec(model, params={"occlusion": {"window": 2}}, target=1)))
    assert (job.state, job.total, job.computed, job.error) == ("done", 4, 4, "")
    assert job.title == f"Explain 2 examples of {model} with gradient, occlusion"
    for text in TEXTS:
        assert explain(Request(model, "gradient", Example(text), target=1)).cached
        assert explain(Request(model, "occlusion", Example(text), {"window": 2}, 1)).cached
        assert not explain(Request(model, "occlusion", Example(text), {"window": 1}, 1)).cached
    again = jobs.run_now(jobs.create("explain", spec(model, params={"occlusion": {"window": 2}}, target=1)))
    assert (again.done, again.computed) == (4, 0)


def test_one_bad_example_does_not_stop_the_others(model: str) -> None:
    asked = spec(model) | {"examples": [{"text": TEXTS[0]}, {"text": ""}]}
    job = jobs.run_now(jobs.create("explain", asked))
    assert (job.state, job.done, job.failed, job.computed) == ("failed", 4, 2, 2)
    assert job.error.startswith("2 of 4 units failed. The first: gradient, example 2: ")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"methods": []}, "methods and examples must not be empty"),
        ({"colour": "red"}, "must have model, methods and examples"),
        ({"methods": "gradient"}, "methods of an explain job: must be a list of method names, got 'gradient'"),
        ({"examples": ["a film"]}, "examples of an explain job: must be a list of {"),
        ({"examples": [{"texxt": "a film"}]}, "got {'texxt': 'a film'}"),
        ({"params": {"gradient": 3}}, "params of an explain job: must be {method: {name: value}}, got 3"),
        ({"methods": ["gradiant"]}, "Did you mean 'gradient'?"),
        ({"model": "no-such-model"}, "no-such-model"),
    ],
)
def test_a_spec_that_cannot_be_planned_fails_in_one_sentence(model: str, change: dict[str, Any], told: str) -> None:
    job = jobs.run_now(jobs.create("explain", spec(model) | change))
    assert (job.state, job.computed) == ("failed", 0)
    assert told in job.error
    assert "\n" not in job.error
