"""The catalog: refusals before anything is loaded, revisions, and the number of queries to the hub."""

from __future__ import annotations

import fnmatch
import json
import shutil
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file

from engine.errors import ExegesisError, UsageError
from engine.models import catalog, downloads
from tests.explaining import checkpoint
from tests.tiny import save_causal

EMBEDDED = catalog.EMBEDDED / "reviews-minilm"


def test_an_adapter_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(EMBEDDED, tmp_path / "adapter")
    weights = folder / "adapter_model.safetensors"
    torch.save(load_file(weights), folder / "adapter_model.bin")
    weights.unlink()
    with pytest.raises(ExegesisError, match="holds only a pickle checkpoint"):
        catalog.locate(str(folder))


def test_an_adapter_without_weights_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(EMBEDDED, tmp_path / "adapter")
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(ExegesisError, match=r"no weights \(adapter_model.safetensors\)"):
        catalog.locate(str(folder))


def test_the_order_of_the_files_does_not_depend_on_where_they_are_installed(tmp_path: Path) -> None:
    files = {"adapter": ["adapter_model.safetensors", "config.json"], "base": ["config.json", "model.safetensors"]}
    orders = []
    for adapter, base in (("a", "b"), ("y", "x")):
        places = {"adapter": tmp_path / adapter, "base": tmp_path / base}
        for name, place in places.items():
            place.mkdir()
            for file in files[name]:
                (place / file).write_bytes(b"0")
        source = catalog.ModelSource("m", "folder", places["adapter"], places["base"])
        orders.append([(file.parent == places["base"], file.name) for file in source.weights])
    assert (
        orders[0]
        == orders[1]
        == [(True, name) for name in files["base"]] + [(False, name) for name in files["adapter"]]
    )


def test_settings_of_a_tokenizer_without_its_vocabulary_leave_that_of_the_base(tmp_path: Path) -> None:
    source = catalog.ModelSource("m", "folder", tmp_path / "adapter", tmp_path / "base")
    source.folder.mkdir()
    (source.folder / "tokenizer_config.json").touch()
    assert source.tokenizer == source.base
    (source.folder / "spiece.model").touch()
    assert source.tokenizer == source.folder


def test_only_files_that_numbers_depend_on_count_by_name(tmp_path: Path) -> None:
    for name in ("vocab.txt", "spiece.model", "config.json", "model.safetensors", "README.md", "optimizer.pt"):
        (tmp_path / name).touch()
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer_config.json").symlink_to(tmp_path / "away.json")
    source = catalog.ModelSource("one", "folder", tmp_path, None)
    assert [file.name for file in source.weights] == ["config.json", "model.safetensors", "spiece.model", "vocab.txt"]


def test_the_shipped_results_are_of_this_revision() -> None:
    """Another order of the files, or another file among them, would make all of them count as old."""
    assert catalog.revision("reviews-minilm") == "41eb4ec1e5fc5bf6"


@pytest.mark.parametrize("name", ["..", ".", "reviews-minilm/../reviews-minilm", "embedded"])
def test_only_a_name_is_embedded(name: str) -> None:
    with pytest.raises((UsageError, ExegesisError)):
        catalog.locate(name)


def test_a_changed_file_is_noticed_by_the_next_call(tmp_path: Path) -> None:
    folder = shutil.copytree(EMBEDDED, tmp_path / "adapter")
    before = catalog.revision(str(folder))
    assert catalog.revision(str(folder)) == before
    with (folder / "adapter_model.safetensors").open("ab") as opened:
        opened.write(b"more")
    assert catalog.revision(str(folder)) != before


def test_a_block_with_fixed_revisions_reads_the_files_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located: list[str] = []
    locate = catalog.locate
    monkeypatch.setattr(catalog, "locate", lambda model: located.append(model) or locate(model))
    before = catalog.revision("reviews-minilm")
    with catalog.fixed_revisions():
        assert [catalog.revision("reviews-minilm") for _ in range(3)] == [before] * 3
        assert catalog.revision("nli-minilm") != before
    assert located == ["reviews-minilm", "reviews-minilm", "nli-minilm"]
    assert catalog.revision("reviews-minilm") == before
    assert len(located) == 4


def test_the_revision_changes_with_the_chat_template(tmp_path: Path) -> None:
    folder = save_causal("llama", tmp_path / "own")
    before, template = catalog.revision(str(folder)), folder / "chat_template.jinja"
    template.write_text(template.read_text() + "!")
    assert catalog.revision(str(folder)) != before
    assert any(fnmatch.fnmatch(template.name, pattern) for pattern in downloads.HUB_FILES)


def test_the_revision_changes_with_the_special_tokens(tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint("bert", 3), tmp_path / "model")
    before = catalog.revision(str(folder))
    (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": "[UNK]"}), encoding="utf-8")
    assert catalog.revision(str(folder)) != before


def test_the_hub_is_queried_once_while_its_files_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str | None]] = []

    def download(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        calls.append((name, revision))
        return str(shutil.copytree(checkpoint("bert", 3), tmp_path / "snapshot", dirs_exist_ok=True))

    monkeypatch.setattr(catalog, "_snapshots", {})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    first = catalog.revision("owner/name@pinned")
    assert catalog.revision("owner/name@pinned") == first
    assert calls == [("owner/name", "pinned")]
    shutil.rmtree(tmp_path / "snapshot")
    assert catalog.revision("owner/name@pinned") == first
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_not_the_current_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkpoint("bert", 3))
    with pytest.raises(UsageError, match=r"model: must be .*reviews-minilm.* got an empty name"):
        catalog.locate(name)
    with pytest.raises(UsageError, match=r"base: must be `minilm`, .* got an empty name"):
        catalog.locate_base(name)


def test_only_weights_json_and_vocabularies_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, object]] = []

    def download(name: str, **how: object) -> str:
        calls.append({"name": name, **how})
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert downloads.download_snapshot("owner/name", argument="model", instead="look again") == tmp_path
    assert downloads.cached_snapshot("owner/name") == tmp_path
    files = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
    assert calls == [
        {"name": "owner/name", "revision": None, "allow_patterns": files},
        {"name": "owner/name", "local_files_only": True, "allow_patterns": files},
    ]


@pytest.mark.parametrize("name", catalog.embedded_models())
def test_the_markdown_card_is_made_of_the_json_card(name: str) -> None:
    from engine.training.recipe import card_markdown

    folder = catalog.EMBEDDED / name
    assert (folder / "card.md").read_text(encoding="utf-8") == card_markdown(catalog.card(name))


@pytest.mark.parametrize("name", ["n" * 5000, "./" + "n" * 5000, "~" + "n" * 5000, "a/" + "n" * 5000, "/" + "n" * 5000])
def test_a_name_that_no_folder_can_have_is_one_short_sentence(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"^model: '.{30,40}….{30,40}' cannot be read \(File name too long\)\. Give an embedded"
    ):
        catalog.locate(name)


@pytest.mark.parametrize("name", ["model.gguf", "./no/such/Q4.GGUF", "owner/model.gguf"])
def test_a_gguf_file_is_told_what_to_give_instead(name: str) -> None:
    with pytest.raises(UsageError, match=r"^model: a GGUF file such as "):
        catalog.locate(name)
