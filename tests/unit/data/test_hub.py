"""Hub data sets: parquet files by split, on a local folder laid out the same way and on a faked hub."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pyarrow
import pytest
from pyarrow import parquet

from engine.data.datasets import load
from engine.data.hub import parse_split, pick_split
from engine.errors import ExegesisError, UsageError


def write_parquet(path: Path, rows: list[dict[str, object]], classes: list[str] | None = None) -> None:
    table = pyarrow.Table.from_pylist(rows)
    if classes:
        features = {"label": {"names": classes, "_type": "ClassLabel"}, "sentence": {"dtype": "string"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path)


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Two training shards, a validation split with class names, a test split without labels."""
    root = tmp_path / "toy"
    first = [{"sentence": "fine", "label": 1, "idx": 0}, {"sentence": "", "label": 0, "idx": 1}]
    write_parquet(root / "data/train-00000-of-00002.parquet", first)
    write_parquet(root / "data/train-00001-of-00002.parquet", [{"sentence": "dull", "label": 0, "idx": 2}])
    valid = [{"sentence": "so so", "label": 0, "idx": 0}, {"sentence": "great", "label": 1, "idx": 1}]
    write_parquet(root / "data/validation-00000-of-00001.parquet", valid, ["negative", "positive"])
    hidden = [{"sentence": "who knows", "label": -1, "idx": 0}]
    write_parquet(root / "data/test-00000-of-00001.parquet", hidden, ["negative", "positive"])
    return root


@pytest.fixture
def hub(layout: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that holds `layout` as toy/set at commit c0ffee; lists the files that were downloaded."""
    fetched: list[str] = []

    def info(self: object, repo_id: str, revision: str | None = None) -> SimpleNamespace:
        assert (repo_id, revision) in {("toy/set", None), ("toy/set", "v1"), ("stanfordnlp/sst2", None)}
        names = sorted(path.relative_to(layout).as_posix() for path in layout.rglob("*.parquet"))
        files = [SimpleNamespace(rfilename=name) for name in ("README.md", *names)]
        return SimpleNamespace(sha="c0ffee", siblings=files)

    def download(repo_id: str, filename: str, repo_type: str, revision: str) -> str:
        assert (repo_type, revision) == ("dataset", "c0ffee")
        fetched.append(filename)
        return str(layout / filename)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return fetched


COLUMNS = {"text": "sentence"}


def test_a_local_folder_in_the_hubs_layout(layout: Path) -> None:
    data = load(layout, split="train", columns=COLUMNS)
    assert [(example.text, example.label) for example in data.examples] == [("fine", 1), ("dull", 0)]
    assert data.notes == ("1 rows without text were left out",)
    assert data[1].extra == {"idx": 2}


def test_class_names_come_from_the_schema_and_minus_one_is_unknown(layout: Path) -> None:
    assert load(layout, split="dev", columns=COLUMNS).label_names == ("negative", "positive")
    assert load(layout, split="test", columns=COLUMNS)[0].label is None


def test_the_hub_gives_the_same_examples_pinned_to_its_commit(layout: Path, hub: list[str]) -> None:
    ours, theirs = load(layout, "train", COLUMNS), load("hub:toy/set", "train", COLUMNS)
    assert ours.examples == theirs.examples
    assert set(hub) == {"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"}
    again = load("hub:toy/set@v1", "train", COLUMNS)
    assert again.revision == theirs.revision
    assert load("hub:toy/set", "dev", COLUMNS).revision != theirs.revision


def test_a_limit_fetches_no_more_than_it_needs(hub: list[str]) -> None:
    data = load("hub:toy/set", "train", COLUMNS, limit=1, label_names=["bad", "good"])
    assert [example.text for example in data.examples] == ["fine"]
    assert set(hub) == {"data/train-00000-of-00002.parquet"}


def test_without_names_a_limit_sees_all_classes_of_the_split(hub: list[str]) -> None:
    assert load("hub:toy/set", "train", COLUMNS, limit=1).label_names == ("0", "1")


def test_sst2_comes_from_the_hub_where_there_is_no_local_folder(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path / "none"))
    data = load("sst2", split="dev")
    assert (data.id, data.split, len(data)) == ("sst2", "dev", 2)
    assert data[1].label == 1
    assert hub


def test_imdb_and_multinli_come_from_the_hub_where_there_is_no_local_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = {"premise": "He left.", "hypothesis": "He went.", "label": 0, "genre": "fiction"}
    write_parquet(tmp_path / "nyu-mll/multi_nli/data/validation_matched-0.parquet", [pair])
    write_parquet(tmp_path / "nyu-mll/multi_nli/data/validation_mismatched-0.parquet", [pair | {"label": 2}])
    write_parquet(tmp_path / "stanfordnlp/imdb/plain_text/test-0.parquet", [{"text": "Fine.", "label": 1}])

    def info(self: object, repo_id: str, revision: str | None = None) -> SimpleNamespace:
        names = (path.relative_to(tmp_path / repo_id).as_posix() for path in (tmp_path / repo_id).rglob("*.parquet"))
        return SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=name) for name in sorted(names)])

    def download(repo_id: str, filename: str, repo_type: str, revision: str) -> str:
        return str(tmp_path / repo_id / filename)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path / "none"))
    matched, other = load("multinli"), load("multinli", split="dev_mismatched")
    assert (matched[0].text, matched[0].text_pair, matched[0].extra) == ("He left.", "He went.", {"genre": "fiction"})
    assert [data.label_names[int(data[0].label or 0)] for data in (matched, other)] == ["entailment", "contradiction"]
    imdb = load("imdb")
    assert (imdb.id, imdb.split, imdb.label_names, imdb[0].label) == ("imdb", "test", ("negative", "positive"), 1)
    assert imdb.card.title == imdb.title == "IMDB reviews"
    with pytest.raises(UsageError, match=r"split: unknown name 'dave'"):
        load("imdb", split="dave")


def test_a_data_set_without_parquet_uses_the_hubs_own_conversion(
    layout: Path, hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def info(self: object, repo_id: str, revision: str | None = None) -> SimpleNamespace:
        name = "data/test-00000-of-00001.parquet" if revision == "refs/convert/parquet" else "data.csv"
        return SimpleNamespace(sha="c0ffee", siblings=[SimpleNamespace(rfilename=name)])

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    assert load("hub:toy/set", columns=COLUMNS).split == "test"


def test_an_unknown_split_lists_the_splits(layout: Path) -> None:
    with pytest.raises(UsageError, match=r"split: unknown name 'dave'.*Known: test, train, validation\."):
        load(layout, split="dave", columns=COLUMNS)


def test_no_network_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class ConnectError(Exception):
        """What a transport library of any name would raise."""

    def down(*args: object, **kwargs: object) -> None:
        raise ConnectError("Name or service not known\nlong traceback")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", down)
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path))
    with pytest.raises(ExegesisError, match=r"^hub:toy/set: the hub cannot be reached \(ConnectError\)\. Check"):
        load("hub:toy/set")
    with pytest.raises(ExegesisError, match=r"sst2: found neither in .* nor on the hub .* set EXEGESIS_DATA") as caught:
        load("sst2")
    assert "\n" not in str(caught.value)
    with pytest.raises(ExegesisError, match=r"imdb: found neither in .* the network.* Put a folder aclImdb"):
        load("imdb")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("data/train-00000-of-00001.parquet", "train"),
        ("plain_text/test-00000-of-00001-abc.parquet", "test"),
        ("mnli/validation/0000.parquet", "validation"),
        ("data/validation_matched-00000-of-00001.parquet", "validation"),
        ("data/validation_mismatched-00000-of-00001.parquet", "validation_mismatched"),
        ("dev.parquet", "validation"),
        ("training_words.parquet", "train"),
        ("everything.parquet", "train"),
    ],
)
def test_the_split_is_read_off_the_path(name: str, split: str) -> None:
    assert parse_split(name) == split


def test_several_configs_ask_for_one() -> None:
    files = ["cola/train-0.parquet", "rte/train-0.parquet", "rte/test-0.parquet"]
    with pytest.raises(UsageError, match=r"has several configs\. Name one: hub:g/lue/cola, hub:g/lue/rte\."):
        pick_split("hub:g/lue", files, "train", "")
    assert pick_split("hub:g/lue", files, "train", "rte") == (
        "train",
        ("rte/train-0.parquet",),
        ("test", "train"),
    )
    with pytest.raises(ExegesisError, match=r"holds no parquet files for the config 'sst2'"):
        pick_split("hub:g/lue", files, "train", "sst2")


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match=r"holds no parquet files"):
        load(tmp_path)
