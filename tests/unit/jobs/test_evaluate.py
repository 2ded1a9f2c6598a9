"""The job that evaluates: what it leaves in the cache, how it is stopped and resumed, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.evaluation.experiment as experiment
import engine.evaluation.measurement as explanations
import engine.explain
import engine.metrics.faithfulness as faithfulness
import engine.metrics.sensitivity as sensitivity
from cache import Store
from engine import jobs
from engine.errors import ExegesisError, UsageError
from engine.evaluation.experiment import evaluate
from engine.store import result_store
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written

METHODS = ["gradient_x_input", "gradient_l2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture
def spec(model: str, tmp_path: Path) -> dict[str, Any]:
    return {"models": [model], "dataset": written(tmp_path / "reviews.jsonl", REVIEWS), "methods": METHODS}


def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine.explain, faithfulness, sensitivity):
        monkeypatch.setattr(module, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))


def test_what_a_job_leaves_is_read_by_an_evaluation_without_a_model(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spec | {"metrics": ["comprehensiveness", "plausibility_auc", "sensitivity"], "samples": 2, "unit": "word"}
    job = jobs.run_now(jobs.create("evaluate", asked))
    assert (job.state, job.error) == ("done", "")
    assert (job.total, job.computed) == (18 + 2 * 6 + 18 + 1, 49), (
        "a map, an example's removal by two operators, a change, the whole"
    )
    assert job.title == f"Evaluate gradient_x_input, gradient_l2 on {spec['dataset']} with {spec['models'][0]}"
    without_a_model(monkeypatch)
    more = {"unit": "word", "samples": 2}
    found = evaluate(spec["models"], spec["dataset"], METHODS, asked["metrics"], **more)
    assert (found.requested_rows, found.evaluated_rows) == (0, 0)
    assert {(score.metric, score.n) for score in found.scores} == {
        ("comprehensiveness", 6), ("plausibility_auc", 4), ("sensitivity", 6),
    }  # fmt: skip


def test_a_second_run_finds_all_and_another_method_costs_only_itself(spec: dict[str, Any]) -> None:
    jobs.run_now(jobs.create("evaluate", spec))
    again = jobs.run_now(jobs.create("evaluate", spec))
    assert (again.done, again.computed) == (31, 0)
    more = jobs.run_now(jobs.create("evaluate", spec | {"methods": [*METHODS, "occlusion"]}))
    assert (more.total, more.computed) == (37, 19), (
        "six maps, of six examples the curves of one method by two operators, the whole"
    )


def test_a_stopped_job_goes_on_where_it_was(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = faithfulness.SharedRows.values

    def stopped(self: faithfulness.SharedRows, *given: Any) -> Any:
        raise RuntimeError("the machine went down")

    monkeypatch.setattr(faithfulness.SharedRows, "values", stopped)
    job = jobs.run_now(jobs.create("evaluate", spec))
    assert (job.state, job.computed, job.failed) == ("failed", 18, 13)
    monkeypatch.setattr(faithfulness.SharedRows, "values", real)
    jobs.resume(job.id)
    job = jobs.wait(job.id)
    assert (job.state, job.computed) == ("done", 13)


def test_an_example_that_fails_does_not_stop_the_others(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.explain.explain_many

    def explain_many(requests: Any, *more: Any, **given: Any) -> Any:
        if any(request.example.text == REVIEWS[2]["text"] for request in requests):
            raise ExegesisError("text: too strange.")
        return real(requests, *more, **given)

    for module in (engine.explain, explanations, experiment):
        monkeypatch.setattr(module, "explain_many", explain_many)
    job = jobs.run_now(jobs.create("evaluate", spec))
    assert (job.state, job.failed, job.computed) == ("failed", 5, 26), (
        "three maps and what is removed by them, in two ways"
    )
    assert "text: too strange." in job.error
    for module in (engine.explain, explanations, experiment):
        monkeypatch.setattr(module, "explain_many", real)
    jobs.resume(job.id)
    job = jobs.wait(job.id)
    assert (job.state, job.computed) == ("done", 6)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"methods": []}, "methods: must name at least one, got none"),
        ({"color": "red"}, "spec of an evaluate job: must have models, dataset and methods"),
        ({"methods": "gradient"}, "methods of an evaluate job: must be a list, got 'gradient'"),
        ({"dataset": 3}, "dataset of an evaluate job: must be a data set's name"),
        ({"methods": ["gradiant"]}, "Did you mean 'gradient'?"),
        ({"methods": ["gradient", "gradient"]}, "methods: must be different names"),
        ({"metrics": ["suficiency"]}, "Did you mean 'sufficiency'?"),
        ({"models": ["no-such-model"]}, "model: unknown name 'no-such-model'."),
        ({"models": []}, "models: must name at least one"),
        ({"examples": 0}, "examples: must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed: must be a whole number of at least 0, got -1"),
        ({"removal": "burn"}, "removal: unknown name 'burn'"),
        ({"second_removal": "burn"}, "second_removal: unknown name 'burn'. Known: delete, hide, mask, mean, none, pad"),
        ({"second_removal": "mask"}, "second_removal: must be another operator than the first, or none, got 'mask'"),
        ({"unit": "patch"}, "unit: unknown name 'patch'"),
        ({"dtype": "float"}, "dtype: unknown name 'float'"),
        ({"shares": [0, 5]}, "shares: must be at least one percentage above 0"),
        ({"shares": [150]}, "percents: must be whole numbers that rise from 0 to 100"),
        ({"params": {"lime": {}}}, "params: method: unknown name 'lime'"),
        ({"params": {"gradient_l2": {"steps": 3}}}, "parameter of gradient_l2: unknown name 'steps'"),
    ],
)
def test_a_wrong_spec_is_refused_before_a_job_is_entered(
    spec: dict[str, Any], change: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        jobs.create("evaluate", spec | change)
    assert told in str(refused.value)
    assert jobs.list_jobs() == []
    assert result_store().stats().entries == 0


def test_a_job_that_was_killed_leaves_in_the_end_what_an_undisturbed_one_leaves(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after each of its first entries, and after some of the later ones."""
    written_keys: list[str] = []
    stop_after = 0
    put = Store.put

    def recorded(store: Store, key: str, *given: Any) -> bool:
        done = put(store, key, *given)
        written_keys.append(key)
        if len(written_keys) == stop_after:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Store, "put", recorded)
    whole: set[str] = set()
    for stop_after in (0, 1, 2, 3, 4, 5, 13, 24, 31, 42):
        monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / f"home{stop_after}"))
        written_keys.clear()
        job = jobs.create("evaluate", spec)
        if stop_after:
            with pytest.raises(KeyboardInterrupt):
                jobs.run_now(job)
            stop_after = 0
        assert jobs.run_now(job).state == "done"
        whole = whole or set(written_keys)
        assert set(written_keys) == whole
    assert len(whole) > 42
