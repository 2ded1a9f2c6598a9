from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import jobs, removal, runtime
from engine.cli.root import app
from engine.errors import UsageError
from engine.explain import explain
from engine.jobs import kind_of
from engine.jobs.work import AT_ONCE
from engine.request import Example, Request
from engine.store import result_store
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
        (
            {"params": {"occlusion": {"windw": 2}}},
            "parameter of occlusion: unknown name 'windw'. Did you mean 'window'?",
        ),
        ({"params": {"occlusion": {"window": -1}}}, "occlusion.window: must be"),
        ({"params": {"lime": {}}}, "params of an explain job: method: unknown name 'lime'."),
        ({"methods": ["gradiant"]}, "Did you mean 'gradient'?"),
        ({"model": "no-such-model"}, "model: unknown name 'no-such-model'."),
        ({"model": "./nowhere"}, "model: no folder './nowhere'."),
        ({"methods": [3]}, "methods of an explain job: must be a list of method names, got 3"),
        ({"examples": [{"text": "a film"}, {"text": 3}]}, "got {'text': 3}"),
        ({"examples": [{"text": "a"}, {"text": "a" * 1_000_001}]}, "example 2 of an explain job: text: must have"),
        ({"target": 1.5}, "target of an explain job: must be a class index or a label, got 1.5"),
        ({"seed": -1}, "seed of an explain job: must be a whole number of at least 0, got -1"),
        ({"dtype": "float"}, "dtype of an explain job: unknown name 'float'."),
    ],
)
@pytest.mark.parametrize("enter", [jobs.submit, jobs.create])
def test_a_wrong_spec_is_refused_before_a_job_is_entered(
    model: str, change: dict[str, Any], told: str, enter: Callable[[str, dict[str, Any]], jobs.Job]
) -> None:
    with pytest.raises(UsageError) as refused:
        enter("explain", spec(model) | change)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert jobs.list_jobs() == []


def test_the_command_line_refuses_a_wrong_spec_with_status_2(model: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec(model) | {"methods": ["gradiant"]}))
    done = CliRunner().invoke(app, ["jobs", "run", str(file)], catch_exceptions=False)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: method: unknown name 'gradiant'. Did you mean 'gradient'?")
    assert jobs.list_jobs() == []


def test_a_model_that_is_gone_fails_the_job_in_one_sentence(model: str, tmp_path: Path) -> None:
    copy = shutil.copytree(model, tmp_path / "copy")
    job = jobs.create("explain", spec(str(copy)))
    shutil.rmtree(copy)
    job = jobs.run_now(job)
    assert (job.state, job.computed) == ("failed", 0)
    assert str(copy) in job.error
    assert "\n" not in job.error


def test_cancelling_stops_in_the_middle_of_a_batch_and_keeps_all_before_it(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = [{"text": f"a warm film {n}"} for n in range(AT_ONCE + 2)]
    asked = {"model": model, "methods": ["random", "occlusion"], "examples": examples}
    calls, passes, then = 0, 0, [0]

    def in_chunks(compute: Callable[[slice], Any], rows: int, size: int) -> list[Any]:
        nonlocal calls
        calls += 1

        def counted(chunk: slice) -> Any:
            nonlocal passes
            passes += 1
            if (calls, passes) == (2, then[0] + 3):
                assert rows > 3  # so that this is the middle of the second batch
                jobs.cancel(job.id)
            return compute(chunk)

        if calls == 2:
            then[0] = passes
        return runtime.in_chunks(counted, rows, size)

    monkeypatch.setenv("EXEGESIS_MEMORY_BYTES", "1")  # every row is a pass of its own
    monkeypatch.setattr(removal, "in_chunks", in_chunks)
    job = jobs.create("explain", asked)
    ended = jobs.run_now(job)
    assert (ended.state, calls, passes) == ("cancelled", 2, then[0] + 3)
    assert (ended.total, ended.done, ended.computed) == (2 * len(examples), len(examples) + AT_ONCE, ended.done)
    units = list(kind_of("explain").plan(ended.spec))
    assert [result_store().contains(unit.key) for unit in units] == [n < ended.done for n in range(ended.total)]
    again = jobs.run_now(ended)
    assert (again.state, again.done, again.computed) == ("done", again.total, 2)
