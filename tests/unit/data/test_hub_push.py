"""Data sets and results pushed to a stand-in for the hub, a folder, and read back from it."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

from engine.data.datasets import load
from engine.data.examples import ImageExample
from engine.data.hub_push import dataset_table, push_dataset, push_table
from engine.data.image_datasets import is_images, load_images
from engine.data.slices import slice_name
from engine.errors import ExegesisError
from engine.table_io import to_parquet
from tests.unit.cli.conftest import Run, run  # noqa: F401  (a fixture)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub whose repositories are folders."""
    root = tmp_path / "hub"

    def create(self: object, repo_id: str, *, repo_type: str, private: bool, exist_ok: bool) -> str:
        assert (repo_type, exist_ok) == ("dataset", True)
        (root / repo_id).mkdir(parents=True, exist_ok=True)
        (root / repo_id / "private").write_text(str(private))
        return f"https://hub.example/datasets/{repo_id}"

    def upload(self: object, *, repo_id: str, folder_path: Path, repo_type: str, commit_message: str) -> None:
        shutil.copytree(folder_path, root / repo_id, dirs_exist_ok=True)

    def info(self: object, repo_id: str, revision: str | None = None) -> SimpleNamespace:
        files = [path.relative_to(root / repo_id).as_posix() for path in (root / repo_id).rglob("*") if path.is_file()]
        return SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=name) for name in sorted(files)])

    def download(repo_id: str, filename: str, repo_type: str, revision: str) -> str:
        return str(root / repo_id / filename)

    for name, stand_in in {"create_repo": create, "upload_folder": upload, "dataset_info": info}.items():
        monkeypatch.setattr(huggingface_hub.HfApi, name, stand_in)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return root


@pytest.mark.parametrize(
    "name", ["reviews", "nli", "quality:count=20", "reviews:slice=hard,rows=3+7-9", "agreement:count=9"]
)
def test_a_data_set_is_read_back_as_it_was(hub: Path, name: str) -> None:
    data = load(name)
    assert push_dataset(data, "me/set") == "https://hub.example/datasets/me/set"
    again = load("hub:me/set", split="train" if data.split == "all" else data.split)
    assert (again.task, again.label_names) == (data.task, data.label_names)
    fields = ("text", "text_pair", "label", "rationale", "rationale_pair", "answer", "foil")
    for field in fields:
        assert [getattr(one, field) for one in again.examples] == [getattr(one, field) for one in data.examples]
    card = (hub / "me/set/README.md").read_text()
    assert card.startswith(f'---\npretty_name: "{data.title}"\n')
    assert f"revision {data.revision}" in card
    assert (hub / "me/set/private").read_text() == "True"


def test_a_slice_of_a_pushed_set_notices_a_new_commit(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load("reviews:rows=0-9")
    push_dataset(data, "me/set")
    name = slice_name("hub:me/set", [2, 5], "hard", load("hub:me/set").revision)
    assert [one.text for one in load(name).examples] == [data[2].text, data[5].text]
    assert not is_images(name)
    files = huggingface_hub.HfApi.dataset_info
    monkeypatch.setattr(
        huggingface_hub.HfApi, "dataset_info",
        lambda self, *a, **k: SimpleNamespace(sha="decaf", siblings=files(self, *a, **k).siblings),
    )  # fmt: skip
    with pytest.raises(ExegesisError, match=r"digest: hub:me/set has changed since the slice was named"):
        load(name)


def test_only_what_the_examples_have_becomes_a_column(hub: Path) -> None:
    assert dataset_table(load("reviews")).column_names == ["text", "label", "rationale"]


@pytest.mark.parametrize("name", ["scenes:count=101", "digits:rows=0-2", "photos"])
def test_pictures_are_read_back_as_they_were(hub: Path, name: str) -> None:
    data = load_images(name, limit=None if name != "photos" else 2)
    push_dataset(data, "me/set")
    assert is_images("hub:me/set")
    for again in (load_images("hub:me/set"), load_images(hub / "me/set")):
        assert (again.label_names, again.labels) == (data.label_names, data.labels)
        for one, other in zip(again, data, strict=True):
            assert np.array_equal(one.pixels, other.pixels)
            assert (one.mask is None) == (other.mask is None)
            assert one.mask is None or np.array_equal(one.mask, other.mask)


def test_the_masks_of_some_pictures_are_pushed_too(hub: Path) -> None:
    data = load_images("scenes:count=4")
    sizes = [(40, 30), (30, 40), (8, 8), (5, 9)]

    def read(index: int) -> ImageExample:
        height, width = sizes[index]
        mask = np.arange(height * width).reshape(height, width) % (index + 1) == 0 if index % 2 else None
        return ImageExample(np.full((height, width, 3), index, np.uint8), data.labels[index], mask)

    push_dataset(dataclasses.replace(data, read=read), "me/set")
    for one, other in zip(load_images("hub:me/set"), map(read, range(4)), strict=True):
        assert one.pixels.shape == other.pixels.shape
        assert (one.mask is None) == (other.mask is None)
        assert one.mask is None or np.array_equal(one.mask, other.mask)


def test_pictures_have_the_form_of_the_feature_image(hub: Path) -> None:
    """As `datasets.Image` stores them: a record of bytes and a path, named in the metadata of the file."""
    push_dataset(load_images("scenes:count=3"), "me/set")
    [file] = (hub / "me/set/data").iterdir()
    table = parquet.read_table(file)
    assert file.name == "validation-00000-of-00001.parquet"
    assert {field.name: str(field.type) for field in table.schema} == {
        "image": "struct<bytes: binary, path: string>", "label": "int64",
        "object_mask": "struct<bytes: binary, path: string>",
    }  # fmt: skip
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert {name: feature["_type"] for name, feature in features.items()} == {
        "image": "Image", "label": "ClassLabel", "object_mask": "Image",
    }  # fmt: skip
    with Image.open(io.BytesIO(table["image"][0].as_py()["bytes"])) as image:
        assert image.format == "PNG"


def test_results_are_pushed_as_they_are(hub: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    rows: list[dict[str, Any]] = [{"method": "lime", "value": 0.5}, {"method": "random", "value": None}]
    file.write_bytes(to_parquet(rows, {"method": str, "value": float}))
    push_table(file, "me/results", private=False)
    assert parquet.read_table(hub / "me/results/data/train-00000-of-00001.parquet").to_pylist() == rows
    assert "2 rows with the columns `method`, `value`" in (hub / "me/results/README.md").read_text()
    assert (hub / "me/results/private").read_text() == "False"


def test_the_command_pushes(hub: Path, run: Run) -> None:  # noqa: F811
    done = run("datasets", "reviews:rows=0-3", "--push", "me/few", "--json")
    assert done.json == {"repository": "me/few", "address": "https://hub.example/datasets/me/few", "public": False}
    assert len(load("hub:me/few")) == 4
    run("datasets", "digits:rows=0-1", "--push", "me/pictures")
    assert load_images("hub:me/pictures").labels == load_images("digits").labels[:2]
    assert run("datasets", "--push", "me/few").complaint(2).startswith("DATASET: is missing.")
    assert run("datasets", "reviews", "--public").complaint(2).startswith("--public: is for what is pushed.")
    said = run("datasets", "reviews", "--push", "few").complaint(2)
    assert said == "repository: must be owner/name on the hub, got 'few'."


def test_a_hub_that_refuses_is_said(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, repo_id: str, **_: object) -> str:
        error = RuntimeError("401 Client Error")
        error.response = SimpleNamespace(status_code=401)  # type: ignore[attr-defined]
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", refuse)
    with pytest.raises(ExegesisError, match=r"hub:me/set: you may not write there\. Log in with: hf auth login\."):
        push_dataset(load("reviews"), "me/set")
    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", lambda *_, **__: json.loads("{"))
    with pytest.raises(ExegesisError, match=r"hub:me/set: was not pushed \(.*Check the network"):
        push_dataset(load("reviews"), "me/set")
