"""The job that randomizes: what it leaves in the cache, how it is stopped and resumed, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.randomization.chunks as work
from engine import jobs
from engine.errors import ExegesisError, UsageError
from engine.experiments.run import finished
from engine.randomization.experiment import randomize
from engine.randomization.model_copy import ModelCopy
from engine.randomization.plan import RANDOMIZE
from engine.store import result_store
from tests.tiny import save_checkpoint
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("home")

UNITS = 4 * 3 + 1
"""The model as it is and three blocks; the predictions, a method and the random order; at the end the whole."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("t5", tmp_path_factory.mktemp("t5")))


@pytest.fixture
def spec(model: str, tmp_path: Path) -> dict[str, Any]:
    more = {"methods": ["gradient_l2"], "modes": ["cascading"], "seeds": 1}
    return {"models": [model], "dataset": reviews(tmp_path), **more}


def test_what_a_job_leaves_opens_without_a_model(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert finished(RANDOMIZE.plan_of(spec)) is None
    job = jobs.run_now(jobs.create("randomize", spec))
    assert (job.state, job.error, job.total, job.computed) == ("done", "", UNITS, UNITS)
    assert job.title == f"Randomize {spec['models'][0]} on {spec['dataset']}"
    monkeypatch.setattr(work, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    found = finished(RANDOMIZE.plan_of(spec))
    assert found is not None
    assert len(list(found.rows)) == 3 * 6 * (2 + 2 * 3)
    again = jobs.run_now(jobs.create("randomize", spec))
    assert (again.done, again.computed) == (UNITS, 0)


def test_another_method_or_mode_costs_only_itself(spec: dict[str, Any]) -> None:
    jobs.run_now(jobs.create("randomize", spec))
    more = jobs.run_now(jobs.create("randomize", spec | {"methods": ["gradient_l2", "gradient_x_input"]}))
    assert (more.total, more.computed) == (UNITS + 4, 4 + 1)
    both = jobs.run_now(jobs.create("randomize", spec | {"modes": ["cascading", "independent"]}))
    assert (both.total, both.computed) == (UNITS + 2 * 3, 2 * 3 + 1), "the last block alone is the first of both"


def test_a_killed_job_goes_on_where_it_was(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = ModelCopy.randomized, list[tuple[str, ...]]()

    def dying(self: ModelCopy, parts: tuple[str, ...], seed: int) -> Any:
        if len(parts) == 2:
            raise KeyboardInterrupt
        made.append(parts)
        return real(self, parts, seed)

    monkeypatch.setattr(ModelCopy, "randomized", dying)
    with pytest.raises(KeyboardInterrupt):
        jobs.run_now(jobs.create("randomize", spec))
    [stopped] = jobs.list_jobs()
    assert (stopped.state, len(made)) == ("interrupted", 6)
    monkeypatch.setattr(ModelCopy, "randomized", real)
    ended = jobs.run_now(stopped)
    assert (ended.state, ended.total, ended.computed) == ("done", UNITS, UNITS - 6)
    [whole] = randomize(spec["models"], spec["dataset"], spec["methods"], modes=("cascading",), seeds=1).models
    result_store().clear()
    [anew] = randomize(spec["models"], spec["dataset"], spec["methods"], modes=("cascading",), seeds=1).models
    assert whole.likeness == pytest.approx(anew.likeness, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "cascading"}, "spec of a randomize job: must have models and dataset, and may have"),
        ({"modes": "cascading"}, "modes of a randomize job: must be a list, got 'cascading'"),
        ({"dataset": 5}, "dataset of a randomize job: must be a data set's name"),
        ({"methods": ["random"]}, "methods: random does not depend on the model"),
        ({"models": ["no-such"]}, "unknown name 'no-such'"),
    ],
)
def test_a_job_that_cannot_be_done_is_not_entered(spec: dict[str, Any], given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs.create("randomize", spec | given)
    assert told in str(caught.value)
    assert jobs.list_jobs() == []


def test_an_example_that_fails_fails_its_unit_and_is_tried_again(spec: dict[str, Any]) -> None:
    asked = spec | {"methods": ["attention_head"], "params": {"attention_head": {"layer": 99}}}
    job = jobs.run_now(jobs.create("randomize", asked))
    assert (job.state, job.failed) == ("failed", 4)
    assert "from 0 to 2 for this model, got 99" in job.error
    found = finished(RANDOMIZE.plan_of(asked))
    assert found is not None
    assert not found.models[0].complete
    with pytest.raises(ExegesisError):
        jobs.run_now(jobs.get(99))
