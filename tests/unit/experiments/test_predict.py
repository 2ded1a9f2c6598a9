"""The job that predicts a data set. Texts: the short ones first, with a comparison of methods. Pictures: one a unit,
cached without reading one, and a bad one fails alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from engine import jobs, predictions
from engine.data.datasets import load
from engine.data.examples import ImageDataset, ImageExample
from engine.data.image_datasets import load_images
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain
from engine.jobs.kinds import kind_of
from engine.metrics.agreement import cached_disagreements
from engine.predictions import cached_digests, cached_predictions, cached_set_predictions, picture_digests
from engine.progress import CancelToken, cancellable
from engine.request import Input, Picture, Request
from engine.result import Prediction
from engine.store import result_store
from tests.tiny import CORPUS, save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")
METHODS = ["gradient_l2", "attention_rollout"]
COUNT = 20


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
    examples = [labeled.example for labeled in load(data).examples]
    found = cached_predictions(model, examples)
    assert found == predictions.predictions(model, examples)
    assert cached_disagreements(model, examples, METHODS) == [None] * 5
    again = jobs.run_now(jobs.create("predict", {"model": model, "data": data}))
    assert (again.done, again.computed) == (5, 0)


def test_with_methods_it_explains_each_example_and_compares(model: str, data: str) -> None:
    job = jobs.run_now(jobs.create("predict", {"model": model, "data": data, "methods": METHODS}))
    assert (job.state, job.total, job.computed) == ("done", 10, 10)
    examples = [labeled.example for labeled in load(data).examples]
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
        ({"color": "red"}, "must have model and data, and may have methods and dtype"),
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


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("vit")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty pictures of noise in two classes, of the size that the model reads."""
    chance = np.random.default_rng(0)
    for i in range(COUNT):
        place = tmp_path / "set" / ("cat", "eel")[i % 2] / f"{i // 2}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(place)
    return tmp_path / "set"


def run(spec: dict[str, Any]) -> jobs.Job:
    return jobs.run_now(jobs.create("predict", spec))


def plain_logits(model: str, data: ImageDataset) -> np.ndarray:
    """By transformers alone, on pixels normalized here."""
    module = transformers.AutoModelForImageClassification.from_pretrained(model).eval()
    pixels = np.stack([example.pixels for example in data]) / 255
    values = (pixels - np.array([0.4, 0.5, 0.6])) / np.array([0.2, 0.25, 0.3])
    with torch.no_grad():
        return module(torch.tensor(values.transpose(0, 3, 1, 2), dtype=torch.float32)).logits.numpy()


def unreadable(index: int) -> ImageExample:
    raise AssertionError(f"picture {index} was read")


def test_a_set_is_predicted_as_the_plain_model_does_and_found_without_reading_it(vit: str, folder: Path) -> None:
    job = run({"model": vit, "data": str(folder), "split": "all"})
    assert (job.state, job.total, job.computed, job.error) == ("done", COUNT, COUNT, "")
    assert job.title == f"Predict {folder} (all) with {vit}"
    data = load_images(folder)
    found = cached_set_predictions(vit, replace(data, read=unreadable))
    logits = [prediction.logits for prediction in found if prediction is not None]
    assert np.allclose(logits, plain_logits(vit, data), atol=1e-4)
    assert found == cached_predictions(vit, [Picture(example.pixels) for example in data])
    again = run({"model": vit, "data": str(folder)})
    assert (again.done, again.computed) == (COUNT, 0)


def test_of_a_set_that_grew_only_what_is_new_is_computed(vit: str, folder: Path) -> None:
    run({"model": vit, "data": str(folder)})
    Image.new("RGB", (24, 24), (9, 9, 9)).save(folder / "cat" / "00.png")
    assert cached_set_predictions(vit, load_images(folder)) == [None] * (COUNT + 1)
    again = run({"model": vit, "data": str(folder)})
    assert (again.total, again.computed) == (COUNT + 1, 1)
    assert None not in cached_set_predictions(vit, load_images(folder))


def test_pictures_that_cannot_be_read_fail_alone_and_in_their_own_words(vit: str, folder: Path) -> None:
    (folder / "eel" / "3.png").write_bytes(b"%PDF-1.4")
    job = run({"model": vit, "data": str(folder)})
    assert (job.state, job.failed, job.computed) == ("failed", 1, COUNT - 1)
    assert "eel/3.png is a PDF document" in job.error
    assert "prediction, picture 7" in job.error
    data = load_images(folder)
    assert [place for place, one in enumerate(cached_digests(data)) if one is None] == [7]
    assert [place for place, one in enumerate(cached_set_predictions(vit, data)) if one is None] == [7]
    again = jobs.run_now(job)
    assert (again.state, again.computed, again.failed) == ("failed", 0, 1)


def test_hashes_are_kept_by_parts_and_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "DIGESTS_AT_ONCE", 6)
    data, read = load_images(folder), []

    def counted(index: int) -> ImageExample:
        read.append(index)
        return data.read(index)

    watched = replace(data, read=counted)
    assert cached_digests(watched) == [None] * COUNT
    made = picture_digests(watched)
    assert made == [Picture(example.pixels).digest for example in data]
    assert cached_digests(watched) == picture_digests(watched) == made
    assert read == list(range(COUNT))
    assert cached_digests(replace(watched, revision="another")) == [None] * COUNT
    assert cached_digests(replace(watched, split="train")) == [None] * COUNT
    assert result_store().stats().entries == 4


def test_reading_a_set_can_be_cancelled(folder: Path) -> None:
    token = CancelToken()
    token.cancel()
    with cancellable(token), pytest.raises(Cancelled):
        picture_digests(replace(load_images(folder), read=unreadable))


def test_pictures_are_read_a_few_at_a_time(vit: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    plain = predictions.predictions

    def counted(model: str, examples: Sequence[Input], dtype: str) -> list[Prediction]:
        groups.append(len(examples))
        return plain(model, examples, dtype)

    monkeypatch.setattr(predictions, "predictions", counted)
    run({"model": vit, "data": str(folder)})
    assert groups == [16, 4]


def test_the_plan_of_a_resumed_job_has_the_same_units(vit: str, folder: Path) -> None:
    spec = {"model": vit, "data": str(folder)}
    first, again = ([(unit.key, unit.label) for unit in kind_of("predict").plan(spec)] for _ in range(2))
    assert first == again
    assert len(dict(first)) == COUNT


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"split": 3}, "split of a predict job: must be the name of a split, got 3."),
        ({"data": "digits", "split": "evening"}, "split: unknown name 'evening'. Known: test, train."),
        ({"data": "scenes:color=red"}, "color"),
        ({"data": "scense"}, "dataset: unknown name 'scense'. Did you mean 'scenes'?"),
        ({"data": "reviews"}, "dataset: unknown name 'reviews'."),
        ({"methods": ["gradient", "lime"]}, "methods of a predict job: are compared on texts only."),
    ],
)
def test_a_wrong_spec_of_pictures_is_refused_before_a_job_is_entered(
    vit: str, folder: Path, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(ExegesisError) as refused:
        jobs.submit("predict", {"model": vit, "data": str(folder)} | change)
    assert told in str(refused.value)
    assert jobs.list_jobs() == []


def test_a_model_of_texts_has_no_splits_of_pictures(tmp_path: Path) -> None:
    bert = str(save_checkpoint("bert", tmp_path / "bert"))
    with pytest.raises(ExegesisError, match="split of a predict job: applies to image models only"):
        jobs.submit("predict", {"model": bert, "data": "reviews", "split": "test"})
