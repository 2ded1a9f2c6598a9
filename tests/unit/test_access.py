"""What a visitor may name: checked before any file is looked at, for every kind of job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import access, jobs
from engine.access import DATASETS, MODELS
from engine.data.datasets import load
from engine.data.image_datasets import is_images, load_images
from engine.data.sources import list_datasets
from engine.errors import UsageError
from engine.experiments import base as experiments
from engine.explain import key_of
from engine.input_kinds import list_models
from engine.jobs.kinds import MODULES
from engine.models import catalog
from engine.request import Example, Request
from tests.tiny import save_checkpoint

TEXTS = [{"text": "good"}]
SPECS: dict[str, list[dict[str, Any]]] = {
    "explain": [
        {"model": "{path}", "methods": ["random"], "examples": TEXTS},
        {"model": "shapes-vit", "methods": ["random"], "examples": [{"dataset": "{path}", "index": 0}]},
    ],
    "predict": [{"model": "{path}", "data": "reviews"}, {"model": "reviews-minilm", "data": "{path}"}],
    "compare": [
        {"dataset": "{path}", "pairs": ["random@reviews-minilm", "lime@reviews-minilm"]},
        {"dataset": "reviews", "pairs": ["random@reviews-minilm", "random,seed=1@{path}"]},
    ],
    "scaffold": [
        {"teacher": "{path}", "dataset": "reviews"},
        {"teacher": "reviews-minilm", "dataset": "{path}"},
        {"teacher": "reviews-minilm", "dataset": "reviews", "base": "{path}"},
    ],
    **{
        kind: [
            {"models": ["reviews-minilm", "{path}"], "dataset": "reviews", "methods": ["random"]},
            {"models": ["reviews-minilm"], "dataset": "{path}", "methods": ["random"]},
        ]
        for kind in ("evaluate", "behavior", "randomize", "attack", "corpus")
    },
    "concepts": [
        {"models": ["{path}"], "dataset": "reviews", "concepts": ["reviews"]},
        {"models": ["reviews-minilm"], "dataset": "{path}", "concepts": ["reviews"]},
        {"models": ["reviews-minilm"], "dataset": "reviews", "concepts": ["{path}"]},
    ],
    "reproduce": [{"places": {"imdb": "{path}"}}],
    "rules": [
        {"models": [model], "dataset": dataset, "rules": ["negation -> negative"]}
        for model, dataset in (("{path}", "reviews"), ("reviews-minilm", "{path}"))
    ],
    "reproduce_smat": [{"places": {"imdb": "{path}"}}],
    "empirical": [
        {"model": model, "method": "kernel_shap", "dataset": dataset, "out": "mine"}
        for model, dataset in (("{path}", "reviews"), ("reviews-minilm", "{path}"))
    ],
}


@pytest.fixture(autouse=True)
def restricted() -> Iterator[None]:
    access.restrict(lambda: True)
    yield
    access.restrict(lambda: False)


def named(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {name: named(one, path) for name, one in value.items()}
    if isinstance(value, list):
        return [named(one, path) for one in value]
    return value.replace("{path}", path) if isinstance(value, str) else value


def test_every_kind_of_job_is_tested() -> None:
    assert SPECS.keys() == {*MODULES, *experiments.MODULES}


@pytest.mark.parametrize(("kind", "spec"), [(kind, spec) for kind, specs in SPECS.items() for spec in specs])
def test_a_job_may_not_name_a_path(kind: str, spec: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not offered on this server|only the organizer may name folders"):
        jobs.submit(kind, named(spec, str(tmp_path)))


@pytest.mark.parametrize("name", ["{folder}", "{folder}/none", "owner/name", "..", "~", "hub:owner/name"])
def test_no_way_to_open_something_takes_a_path(name: str, tmp_path: Path) -> None:
    path = name.format(folder=tmp_path)
    for ways in (catalog.locate, catalog.locate_base, catalog.revision, load, load_images, is_images):
        with pytest.raises(UsageError, match="is not offered on this server"):
            ways(path)


@pytest.mark.parametrize(("method", "name"), [("empirical", "of"), ("smat", "explainer")])
def test_no_explainer_is_named_by_its_file(method: str, name: str, tmp_path: Path) -> None:
    file = str(tmp_path / "none")
    request = Request("reviews-minilm", method, Example("good"), {name: file})
    with pytest.raises(UsageError, match="only the organizer may name files"):
        key_of(request)
    spec = {"models": ["reviews-minilm"], "dataset": "reviews", "methods": [method], "params": {method: {name: file}}}
    with pytest.raises(UsageError, match="only the organizer may name files"):
        jobs.submit("evaluate", spec)


def test_what_comes_with_the_project_is_open() -> None:
    assert catalog.locate("reviews-minilm").kind == "embedded"
    assert catalog.locate_base("minilm").is_dir()
    assert catalog.locate_base(catalog.embedded_bases()[0]).is_dir()
    assert len(load("reviews-generated:seed=7", limit=3)) == 3
    assert len(load_images("scenes:count=3")) == 3


def test_what_is_offered_is_open_and_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table, model = tmp_path / "a table.csv", tmp_path / "model"
    table.write_text("text,label\ngood,1\n", encoding="utf-8")
    save_checkpoint("bert", model)
    monkeypatch.setenv(DATASETS, f"'{table}' scenes:count=3")
    monkeypatch.setenv(MODELS, f"{model} owner/name")
    assert catalog.locate(str(model)).folder == model
    assert len(load(str(table))) == 1
    assert str(model) in list_models("text")
    assert str(model) not in list_models("image")
    assert str(table) in list_datasets("text")
    assert "scenes:count=3" in list_datasets("image")
    access.check_dataset(f"{table}:slice=some,rows=0-1")
    with pytest.raises(UsageError, match="is not offered"):
        catalog.locate(f"{model}/../model")


def test_an_offered_relative_path_can_be_computed_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text,label\ngood,1\n", encoding="utf-8")
    monkeypatch.setenv(DATASETS, "a.csv")
    for name in ("a.csv", str(tmp_path.resolve() / "a.csv")):
        access.check_spec({"model": "reviews-minilm", "dataset": name})
    with pytest.raises(UsageError, match="is not offered"):
        access.check_spec({"model": "reviews-minilm", "dataset": str(tmp_path / "b.csv")})


def test_an_offered_data_set_that_cannot_be_reached_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATASETS, "hub:owner/name")
    assert "hub:owner/name" in list_datasets("text")


def test_a_visitor_resumes_no_job_that_the_visitor_may_not_begin(home: Path) -> None:
    table = home / "a.csv"
    table.write_text("text,label\ngood,1\n", encoding="utf-8")
    access.restrict(access.nobody)
    job = jobs.create("predict", {"model": "reviews-minilm", "data": str(table)})
    jobs.cancel(job.id)
    access.restrict(lambda: True)
    with pytest.raises(UsageError, match="is not offered"):
        jobs.resume(job.id)
    assert jobs.get(job.id).state == "cancelled"


def test_an_open_quotation_mark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODELS, "'one two")
    with pytest.raises(UsageError, match=r"EXEGESIS_MODELS: must be names .* \(No closing quotation\)"):
        access.offered(MODELS)
