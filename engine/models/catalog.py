"""Which models there are and where: embedded ones, local folders, hub ids. Loads nothing."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine import access
from engine.errors import ExegesisError, UsageError, shown, unknown
from engine.models import hub, minilm

PROCESSOR = "preprocessor_config.json"
"""The file that says how a model reads pictures; text models have none."""
CHOSEN_ON = "held-out"
"""The split on which the epoch of an embedded model was chosen."""
IMAGE_TYPES = ("vit", "deit")
USUAL = "reviews-minilm"
"""The text model that is listed first, which is the one that pages open with."""
EMBEDDED = Path(__file__).parent / "embedded"
OF_BASES = "bases/"
"""How the names of embedded bases begin: they were only pre-trained, and adapters name them."""
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w.-]+)?")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
LARGEST, MOST = 10_000_000, {"layer": 1_000, "label": 100_000}
"""The largest sizes in a config.json: of anything, and by a part of the name."""
IS_SIZE = re.compile(r"^(n|num|d|max)_|_(size|dim|length|layers?|heads?)$|^dim$|channels|positions|embeddings|layers")
KEPT = (
    "*.safetensors",
    "config.json",
    "adapter_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "*.model",
    PROCESSOR,
)
"""The files that a model's numbers depend on."""
IS_KEPT = re.compile("|".join(map(fnmatch.translate, KEPT)))


@dataclass(frozen=True)
class Source:
    """Where a model comes from. `base` is the folder of the weights that an adapter in `folder` changes."""

    id: str
    kind: Literal["embedded", "folder", "hub"]
    folder: Path
    base: Path | None

    @property
    def weights(self) -> tuple[Path, ...]:
        """Every file that the numbers depend on: the base's, then its own, by name, wherever they lie."""
        folders = [self.folder] if self.base is None else [self.base, self.folder]
        return tuple(file for folder in folders for file in _kept(folder))

    @property
    def tokenizer(self) -> Path:
        """The folder of the tokenizer: its own, else the base's."""
        own = any(self.folder.glob("tokenizer*")) or any(self.folder.glob("vocab*"))
        return self.folder if own or self.base is None else self.base


def embedded_models() -> list[str]:
    """The names of the text models that come with the project, the usual one first."""
    names = [p.parent.name for p in EMBEDDED.glob("*/card.json") if not (p.parent / PROCESSOR).is_file()]
    return sorted(names, key=lambda name: (name != USUAL, name))


def embedded_image_models() -> list[str]:
    """The names of the image models that come with the project."""
    return sorted(p.parent.name for p in EMBEDDED.glob(f"*/{PROCESSOR}"))


def listed_models(kind: str) -> list[str]:
    """The models to choose from, "text" or "image": the embedded ones, then those that the operator offers."""
    own = embedded_models() if kind == "text" else embedded_image_models()
    return list(dict.fromkeys([*own, *(name for name in access.offered(access.MODELS) if _kind(name) == kind)]))


def _kind(model: str) -> str:
    """What a model reads; "text" where its files cannot be read, which is told as soon as it is chosen."""
    try:
        return "image" if reads_pictures(model) else "text"
    except ExegesisError:
        return "text"


def embedded_bases() -> list[str]:
    """The names of the pre-trained bases that come with the project, such as `bases/bert`."""
    return sorted(OF_BASES + p.parent.name for p in (EMBEDDED / OF_BASES).glob("*/card.json"))


def is_embedded(model: str) -> bool:
    """Whether a model or a base of that name comes with the project."""
    folder = EMBEDDED / model
    named = folder.parent in (EMBEDDED, EMBEDDED / OF_BASES)
    return named and any((folder / name).is_file() for name in ("card.json", PROCESSOR))


def reads_pictures(model: str) -> bool:
    """Whether a model is one of images: what its config or its files say."""
    return config(locate(model)).get("model_type") in IMAGE_TYPES


def check_text_model(model: str, config: Mapping[str, Any]) -> None:
    """Refuses an image model where texts are read. `config`: what its config.json says."""
    if config.get("model_type") in IMAGE_TYPES:
        known = ", ".join(embedded_models()) or "none here"
        raise ExegesisError(f"model {model}: reads pictures, not texts. Use a text model, such as {known}.")


def locate(model: str) -> Source:
    """Where `model` is: an embedded name, a folder, or a hub id `owner/name[@revision]`. Errors say what is known."""
    access.check_model(model)
    try:
        return _located(model)
    except OSError as error:
        raise UsageError(
            f"model: {shown(model)} cannot be read ({error.strerror}). Give an embedded name, a folder or a hub id."
        ) from None


def _located(model: str) -> Source:
    if is_embedded(model):
        return _source(model, "embedded", EMBEDDED / model)
    if not model.strip():
        known = ", ".join(embedded_models()) or "none here"
        raise UsageError(f"model: must be an embedded name ({known}), a folder or a hub id, got an empty name.")
    path = Path(model).expanduser()
    if path.is_dir():
        return _source(model, "folder", path)
    if model.startswith(OF_BASES):
        raise unknown("base", model, embedded_bases())
    if model.startswith(("/", "./", "../", "~")) or path.exists():
        raise UsageError(f"model: no folder {shown(model)}. Give a folder with config.json and safetensors.")
    if HUB_ID.fullmatch(model):
        return _source(model, "hub", _snapshot(model))
    error = unknown("model", model, embedded_models())
    raise UsageError(f"{error} Or give a folder, or a hub id such as owner/name.")


def revision(model: str) -> str:
    """A hash of everything the model's numbers depend on; reads the files, never loads the model."""
    source = locate(model)
    digest = hashlib.sha256()
    for file in source.weights:
        digest.update(f"{file.name}:{minilm.file_sha256(file)}\n".encode())
    if source.base is not None:  # an adapter's labels stand in its card
        digest.update(repr(_card(source).get("labels")).encode())
    return digest.hexdigest()[:16]


def config(source: Source) -> dict[str, Any]:
    """What the checkpoint's config.json says."""
    return _read_json(source.id, (source.base or source.folder) / "config.json")


def card(model: str) -> dict[str, Any]:
    """The machine-readable card of an embedded or trained model; empty where there is none."""
    return _card(locate(model))


def fair_scores(card: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The measured scores by split; the part of train that a choice was made on, only where there is nothing else."""
    scores: dict[str, dict[str, Any]] = card.get("scores") or {}
    return {split: score for split, score in scores.items() if split != CHOSEN_ON} or scores


def _card(source: Source) -> dict[str, Any]:
    file = source.folder / "card.json"
    return _read_json(source.id, file) if file.is_file() else {}


def _kept(folder: Path) -> list[Path]:
    # One look at the folder: this stands before every answer from the cache.
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if IS_KEPT.match(entry.name) and entry.is_file()]
    return [folder / name for name in sorted(names)]


def _source(model: str, kind: Literal["embedded", "folder", "hub"], folder: Path) -> Source:
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        _check_checkpoint(model, folder)
        return Source(model, kind, folder, None)
    # peft would fall back to a pickle, and those bytes would not be in the revision either.
    _check_weights(model, folder, "adapter_model.safetensors")
    base = _read_json(model, adapter).get("base_model_name_or_path")
    if base == "minilm":
        return Source(model, kind, folder, minilm.folder())
    if not base:
        raise ExegesisError(f"model {model}: its adapter_config.json does not name the base model it changes.")
    inner = _located(str(base))
    return Source(model, kind, folder, inner.folder)


def _check_checkpoint(model: str, folder: Path) -> None:
    config = folder / "config.json"
    if not config.is_file():
        raise ExegesisError(f"model {model}: no config.json in the folder. Give the folder of a saved checkpoint.")
    stated = _read_json(model, config)
    check_config_sizes(f"model {model}", stated)
    if "auto_map" in stated:
        raise ExegesisError(
            f"model {model}: its config asks to run code from the checkpoint (auto_map), which is refused. "
            "Use a checkpoint of a supported family without remote code."
        )
    _check_weights(model, folder, "*.safetensors")


def check_config_sizes(where: str, config: Mapping[str, Any]) -> None:
    """Refuse sizes that no checkpoint of a supported family has, before anything of that size is built."""
    for name, value in config.items():
        if isinstance(value, dict) and name not in ("id2label", "label2id"):
            check_config_sizes(where, value)
        elif isinstance(value, dict) or (type(value) is int and IS_SIZE.search(name)):
            size, name = (len(value), "num_labels") if isinstance(value, dict) else (value, name)
            most = next((most for part, most in MOST.items() if part in name), LARGEST)
            if not 0 <= size <= most:
                bound = f"at most {most:,}" if size > most else "at least 0"
                raise ExegesisError(f"{where}: in its config.json {name} must be {bound}, got {size}.")


def _check_weights(model: str, folder: Path, wanted: str) -> None:
    if any(folder.glob(wanted)):
        return
    if any(any(folder.glob(p)) for p in PICKLES):
        raise ExegesisError(
            f"model {model}: it holds only a pickle checkpoint, which can run code when opened and is refused. "
            "Save it again with save_pretrained(..., safe_serialization=True)."
        )
    raise ExegesisError(f"model {model}: no weights ({wanted}) in the folder. Download or save it again.")


def _read_json(model: str, file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ExegesisError(f"model {model}: {file.name} cannot be read as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ExegesisError(f"model {model}: {file.name} must be a JSON object, got {type(content).__name__}.")
    return content


def _snapshot(model: str) -> Path:
    """The hub's files of a model. The hub is asked once a process: every cache key needs the revision."""
    found = _snapshots.get(model)
    if found is None or not found.is_dir():
        found = _snapshots[model] = _fetched(model)
    return found


def _fetched(model: str) -> Path:
    name, _, pinned = model.partition("@")
    instead = f"use an embedded one ({', '.join(embedded_models()) or 'none here'}), or download it and give the folder"
    return hub.snapshot(name, pinned, argument="model", instead=instead)


_snapshots: dict[str, Path] = {}
