"""Picture sets of the hub, on a local folder laid out the same way and on a faked hub."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pyarrow
import pytest
from pyarrow import parquet

from engine.data.image_datasets import is_images, load_images
from engine.errors import ExegesisError, UsageError
from tests.unit.images.conftest import plain, saved

CLASSES = ["cat", "dog"]


def write(path: Path, rows: list[dict[str, object]], classes: dict[str, list[str]], group: int = 2) -> None:
    """A parquet file as `datasets` writes it: pictures as records of bytes and path, classes in the schema."""
    features = {name: {"names": names, "_type": "ClassLabel"} for name, names in classes.items()}
    table = pyarrow.Table.from_pylist(rows)
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, row_group_size=group)


def row(level: int, **labels: int) -> dict[str, object]:
    return {"img": {"bytes": saved(plain((level, level, level))), "path": "x.png"}, **labels}


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Two training shards of two row groups each, and a test split without labels."""
    root = tmp_path / "toy"
    levels = [[row(10 * (5 * shard + i), label=i % 2) for i in range(4)] for shard in range(2)]
    for shard, rows in enumerate(levels):
        write(root / f"data/train-0000{shard}-of-00002.parquet", rows, {"label": CLASSES})
    write(root / "data/test-00000-of-00001.parquet", [row(7, label=-1)], {"label": CLASSES})
    return root


@pytest.fixture
def fetched(layout: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that holds `layout` as toy/set; lists the files that were downloaded."""
    names = sorted(path.relative_to(layout).as_posix() for path in layout.rglob("*.parquet"))
    listed = SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=name) for name in names])
    seen: list[str] = []

    def download(repo_id: str, filename: str, repo_type: str, revision: str) -> str:
        seen.append(filename)
        return str(layout / filename)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, repo_id, revision=None: listed)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return seen


def test_pictures_and_classes_of_all_shards(layout: Path) -> None:
    data = load_images(layout, split="train")
    assert (len(data), data.label_names, data.labels) == (8, ("cat", "dog"), (0, 1) * 4)
    assert [int(example.pixels[0, 0, 0]) for example in data] == [0, 10, 20, 30, 50, 60, 70, 80]
    assert [int(data[i].pixels[0, 0, 0]) for i in (7, 0, 4, 3)] == [80, 0, 50, 30]
    assert load_images(layout, split="test").labels == (None,)


def test_the_hub_gives_the_same_and_a_limit_fetches_no_more_than_it_needs(layout: Path, fetched: list[str]) -> None:
    assert is_images("hub:toy/set")
    fetched.clear()
    data = load_images("hub:toy/set", split="train", limit=3)
    assert [int(example.pixels[0, 0, 0]) for example in data] == [0, 10, 20]
    assert set(fetched) == {"data/train-00000-of-00002.parquet"}
    assert (data.id, data.split) == ("hub:toy/set", "train")
    assert load_images("hub:toy/set", split="train").labels == load_images(layout, split="train").labels


def test_columns_are_found_or_chosen(tmp_path: Path) -> None:
    rows = [row(5, fine_label=i, coarse_label=0) for i in range(2)]
    write(tmp_path / "train.parquet", rows, {"fine_label": ["ant", "bee"], "coarse_label": ["insect"]})
    assert load_images(tmp_path).label_names == ("ant", "bee")
    assert load_images(tmp_path, columns={"label": "coarse_label"}).label_names == ("insect",)
    with pytest.raises(UsageError, match=r"columns: unknown name 'kind'\. .*Known: coarse_label, fine_label, img"):
        load_images(tmp_path, columns={"label": "kind"})
    with pytest.raises(UsageError, match=r"columns: 'fine_label' holds no pictures\. Of pictures: img"):
        load_images(tmp_path, columns={"image": "fine_label"})
    with pytest.raises(UsageError, match=r"columns: unknown name 'text'"):
        load_images(tmp_path, columns={"text": "img"})


def test_texts_are_no_pictures_and_scores_no_classes(tmp_path: Path) -> None:
    write(tmp_path / "texts" / "train.parquet", [{"text": "a", "label": 0}], {})
    write(tmp_path / "scores" / "train.parquet", [{**row(1), "label": 0.5}], {})
    assert not is_images(tmp_path / "texts")
    assert is_images(tmp_path / "scores")
    with pytest.raises(ExegesisError, match="has no column of pictures among text, label"):
        load_images(tmp_path / "texts")
    with pytest.raises(ExegesisError, match="its column 'label' holds scores"):
        load_images(tmp_path / "scores")


def test_a_row_without_a_picture_or_with_a_broken_one_is_told_when_it_is_read(tmp_path: Path) -> None:
    rows = [row(1, label=0), {"img": {"bytes": None, "path": "gone.png"}, "label": 1},
            {"img": {"bytes": b"\x89PNG broken", "path": "x.png"}, "label": 1}]  # fmt: skip
    write(tmp_path / "train.parquet", rows, {"label": CLASSES})
    data = load_images(tmp_path)
    assert data[0].label == 0
    with pytest.raises(ExegesisError, match="train row 1: has no picture in it, got"):
        data[1]
    with pytest.raises(ExegesisError, match="train row 2: is damaged or cut off"):
        data[2]
