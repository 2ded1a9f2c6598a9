"""The job that explains several examples by several methods: texts that it holds, and pictures that it names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine import jobs, runtime
from engine.cli.root import app
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.errors import UsageError
from engine.explain import explain
from engine.jobs import kind_of
from engine.jobs.kinds import BATCH_UNITS
from engine.request import Example, Picture, Prompt, Request
from engine.store import result_store
from tests.tiny import save_checkpoint
from tests.unit.data.conftest import class_files, zipped
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")
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


def test_prompts_are_explained_as_their_data_set_has_them() -> None:
    prompts = [labeled.example for labeled in load("agreement", limit=2).examples]
    plain = [prompts[0].as_plain(), {"prompt": prompts[1].text, "target": prompts[1].target, "chat": False}]  # type: ignore[attr-defined]
    job = jobs.run_now(jobs.create("explain", {"model": "tiny-llama", "methods": ["gradient"], "examples": plain}))
    assert (job.state, job.computed, job.error) == ("done", 2, "")
    alone = Prompt(prompts[1].text, target=prompts[1].target)  # type: ignore[attr-defined]
    assert all(explain(Request("tiny-llama", "gradient", one)).cached for one in (prompts[0], alone))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"examples": [{"prompt": "a film", "chat": "maybe"}]}, "got {'chat': 'maybe', 'prompt': 'a film'}"),
        ({"examples": [{"prompt": "a film", "text": "a film"}]}, "got {'prompt': 'a film', 'text': 'a film'}"),
        ({"examples": [{"prompt": "a", "target": ""}]}, "example 1 of an explain job: target: must be a token"),
        ({"methods": []}, "methods and examples must not be empty"),
        ({"color": "red"}, "must have model, methods and examples"),
        ({"heads": [[0, 1, 0.0]]}, "must have model, methods and examples"),
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


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))


def pictures(*indexes: int, dataset: str = "scenes", **more: Any) -> list[dict[str, Any]]:
    return [{"dataset": dataset, "index": index, **more} for index in indexes]


def test_pictures_are_named_by_their_set_and_place(vit: str) -> None:
    examples = [*pictures(4, 0), *pictures(2, dataset="digits", split="train")]
    asked = {"model": vit, "methods": ["grad_cam", "occlusion"], "examples": examples, "target": "dog"}
    job = jobs.run_now(jobs.create("explain", {**asked, "params": {"occlusion": {"removal": "zero"}}}))
    assert (job.state, job.total, job.computed, job.error) == ("done", 6, 6, "")
    for data, place in ((load_images("scenes"), 4), (load_images("scenes"), 0), (load_images("digits", "train"), 2)):
        picture = Picture(data[place].pixels)
        assert explain(Request(vit, "grad_cam", picture, target="dog")).cached
        assert explain(Request(vit, "occlusion", picture, {"removal": "zero"}, "dog")).cached
    again = jobs.run_now(jobs.create("explain", {**asked, "params": {"occlusion": {"removal": "zero"}}}))
    assert (again.done, again.computed) == (6, 0)
    json.dumps(dict(again.spec))


def test_a_picture_that_cannot_be_read_does_not_stop_the_others(vit: str, tmp_path: Path) -> None:
    files = class_files(per_class=2, splits=("test",))
    place = str(zipped(tmp_path / "set.zip", {**files, "set/test/red/1.png": b"no picture"}))
    job = jobs.run_now(
        jobs.create("explain", {"model": vit, "methods": ["random"], "examples": pictures(0, 3, 1, 99, dataset=place)})
    )
    assert (job.state, job.done, job.failed, job.computed) == ("failed", 4, 2, 2)
    told = [failure.error for failure in jobs.failures(job.id)]
    assert "set.zip: set/test/red/1.png is not a picture that can be read." in told[0]
    assert "index: must be 0 to 3" in told[1]


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        (pictures(-1), "examples of an explain job: must be a list of {"),
        ([{"dataset": "scenes"}], "got {'dataset': 'scenes'}"),
        ([{"dataset": "scenes", "index": "3"}], "examples of an explain job: must be a list of {"),
        (pictures(0, dataset="scene"), "example 1 of an explain job: dataset: unknown name 'scene'."),
        (pictures(0, split="x"), "example 1 of an explain job: split: unknown name 'x'."),
        ([*pictures(0), {"text": "a film"}], "must be texts or pictures, got both. Split them into two jobs."),
        ([{"text": "a film"}], "must be pictures, which is what "),
    ],
)
def test_pictures_that_cannot_be_named_are_refused(vit: str, examples: list[Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        jobs.create("explain", {"model": vit, "methods": ["random"], "examples": examples})
    assert told in str(refused.value)
    assert jobs.list_jobs() == []


def test_a_model_of_texts_and_a_method_of_texts_take_no_pictures(model: str, vit: str) -> None:
    with pytest.raises(UsageError, match="examples of an explain job: must be texts, which is what"):
        jobs.create("explain", spec(model) | {"examples": pictures(0)})
    asked = {"model": vit, "methods": ["occlusion"], "examples": pictures(0)}
    with pytest.raises(UsageError, match=r"occlusion\.removal: must be one of mean, zero, blur, drop"):
        jobs.create("explain", {**asked, "params": {"occlusion": {"removal": "mask"}}})


def test_cancelling_stops_in_the_middle_of_a_batch_and_keeps_all_before_it(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = [{"text": f"a warm film {n}"} for n in range(BATCH_UNITS + 2)]
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
    monkeypatch.setattr("engine.passes.in_chunks", in_chunks)
    job = jobs.create("explain", asked)
    ended = jobs.run_now(job)
    assert (ended.state, calls, passes) == ("cancelled", 2, then[0] + 3)
    assert (ended.total, ended.done, ended.computed) == (2 * len(examples), len(examples) + BATCH_UNITS, ended.done)
    units = list(kind_of("explain").plan(ended.spec))
    assert [result_store().contains(unit.key) for unit in units] == [n < ended.done for n in range(ended.total)]
    again = jobs.run_now(ended)
    assert (again.state, again.done, again.computed) == ("done", again.total, 2)
