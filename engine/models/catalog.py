"""Catalog of models and pre-trained bases: embedded ones, local folders, hub ids, and their files. Loads no model."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from engine import access
from engine.errors import ExegesisError, UsageError, excerpt, unknown
from engine.models import fetched
from engine.models.checkpoint_files import (
    PROCESSOR,
    check_config_sizes,
    check_safetensors,
    file_sha256,
    has_vocabulary,
    read_json,
    revision_files,
)
from engine.models.downloads import download_snapshot, minilm_folder
from engine.models.label_prompts import (
    PAIR_LABELS,
    PICTURE_LABELS,
    LabelPrompts,
    LabelRules,
    base_name,
    split_prompts,
)

CHOSEN_ON = "held-out"
"""Split used to choose the epoch of an embedded model."""
IMAGE_TYPES = ("vit", "deit", "dinov2", "dinov2_with_registers", "clip", "siglip", "swin")
_TOWER = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
CONFIG_DEFAULTS: dict[str, dict[str, int]] = {
    "dinov2": {"patch_size": 14},
    "dinov2_with_registers": {"patch_size": 14},
    "clip": {**_TOWER, "patch_size": 32},
    "siglip": {**_TOWER, "patch_size": 16},
    "swin": {"patch_size": 4},
}
"""Defaults of transformers for values that a config.json may omit, by `model_type`."""
PICTURE_SECTION = "vision_config"
"""The section of a config.json that describes the image encoder of a model that also has a text encoder."""
ZERO_SHOT = ("CLIPModel", "SiglipModel")
"""Architectures that match pictures with texts; their classes are labels chosen by the user."""
CAUSAL_ENDINGS = ("ForCausalLM", "GPT2LMHeadModel")
"""Suffixes of the architecture names of causal language models."""
DEFAULT_MODEL = "reviews-minilm"
"""Text model that is listed first and selected by default."""
EMBEDDED = Path(__file__).parent / "embedded"
BASE_PREFIX = "bases/"
"""Prefix of the names of embedded bases, which are pre-trained only and are referred to by adapters."""
UNNAMED_LABELS = ("LABEL_0", "LABEL_1")
"""Labels of an adapter or a config.json that names none."""
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w.-]+)?")


@dataclass(frozen=True)
class ModelSource:
    """Location of a model. `base`: the folder of the base weights if `folder` contains an adapter.

    `prompts`: the labels in the model's name, if any.
    """

    id: str
    kind: Literal["embedded", "fetched", "folder", "hub"]
    folder: Path
    base: Path | None
    prompts: LabelPrompts | None = None

    @property
    def weights(self) -> tuple[Path, ...]:
        """All files that affect the output: those of the base, then its own, sorted by name."""
        folders = [self.folder] if self.base is None else [self.base, self.folder]
        return tuple(file for folder in folders for file in revision_files(folder))

    @property
    def tokenizer(self) -> Path:
        """Folder of the tokenizer: its own, else the base's."""
        return self.folder if self.base is None or has_vocabulary(self.folder) else self.base


def embedded_models() -> list[str]:
    """List the available text models: embedded classifiers, the default first, then language models."""
    names = [p.parent.name for p in EMBEDDED.glob("*/card.json") if not (p.parent / PROCESSOR).is_file()]
    ordered = sorted(names, key=lambda name: (_is_embedded_causal(EMBEDDED / name), name != DEFAULT_MODEL, name))
    return [*ordered, *fetched.fetched_models()]


def is_causal(model: str) -> bool:
    """Whether a model is a causal language model, by its config.json. Loads no model. Errors: it cannot be located."""
    source = locate(model)
    return source.base is None and is_causal_config(config(source))


@functools.lru_cache(maxsize=256)
def _is_embedded_causal(folder: Path) -> bool:
    """Whether an embedded model is causal. Memoized: every picker sorts by it, and embedded models never change."""
    file = folder / "config.json"
    return file.is_file() and is_causal_config(read_json(folder.name, file))


def is_causal_config(config: Mapping[str, Any]) -> bool:
    """Whether a config.json describes a causal language model."""
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith(CAUSAL_ENDINGS) for name in names)


def _known_names() -> str:
    return ", ".join(embedded_models()) or "none here"


def embedded_image_models() -> list[str]:
    """List the embedded image models."""
    return sorted(p.parent.name for p in EMBEDDED.glob(f"*/{PROCESSOR}"))


def embedded_bases() -> list[str]:
    """List the embedded pre-trained bases, such as `bases/bert`."""
    return sorted(BASE_PREFIX + p.parent.name for p in (EMBEDDED / BASE_PREFIX).glob("*/card.json"))


def is_embedded(model: str) -> bool:
    """Whether a model or a base of this name is embedded, or fetched and stored here."""
    return _is_embedded(model, EMBEDDED) or fetched.is_fetched(model)


@functools.lru_cache(maxsize=256)
def _is_embedded(model: str, embedded: Path) -> bool:
    """As `is_embedded`, without fetched models. Memoized: every picker and cache key needs it, and no process adds a
    model."""
    folder = embedded / model
    named = folder.parent in (embedded, embedded / BASE_PREFIX)
    return named and any((folder / name).is_file() for name in ("card.json", PROCESSOR))


def check_text_model(model: str, config: Mapping[str, Any]) -> None:
    """Raise an error if an image model is used as a text model. `config`: the content of its config.json."""
    if config.get("model_type") in IMAGE_TYPES:
        raise ExegesisError(f"model {model}: reads pictures, not texts. Use a text model, such as {_known_names()}.")


def locate(model: str) -> ModelSource:
    """Locate `model`: an embedded name, a folder, or a hub id `owner/name[@revision]`. Errors list the known names."""
    access.check_model(model)
    name, prompts = split_prompts(model)
    try:
        source = _locate(name)
        if prompts is None:
            return source
        _label_rules(source).check(prompts)
        return replace(source, id=model, prompts=prompts)
    except OSError as error:
        raise UsageError(
            f"model: {excerpt(model)} cannot be read ({error.strerror}). Give an embedded name, a folder or a hub id."
        ) from None


def matches_pictures(config: Mapping[str, Any]) -> bool:
    """Whether a model with this config.json matches pictures with texts, so that its classes are the user's labels."""
    names = config.get("architectures")
    return isinstance(names, list) and any(name in ZERO_SHOT for name in names)


def needs_labels(model: str) -> bool:
    """Whether a model's classes are the user's labels, given in its name or not; False if it cannot be read."""
    try:
        return matches_pictures(config(locate(base_name(model))))
    except ExegesisError:
        return False


def label_rules(model: str) -> LabelRules | None:
    """Return the label rules of a zero-shot model, with or without labels in its name; None for any other model."""
    try:
        return _label_rules(locate(base_name(model)))
    except ExegesisError:
        return None


def is_entailment(label: str) -> bool:
    """Whether a label of an NLI model means that the second text follows from the first."""
    return label.casefold().startswith("entail")


def _label_rules(source: ModelSource) -> LabelRules:
    """Return the label rules of a zero-shot model. Errors: it is not one."""
    stated = {} if source.base is not None else config(source)
    if matches_pictures(stated):
        return PICTURE_LABELS
    with contextlib.suppress(TypeError, ValueError, LookupError):  # an invalid config.json
        if stated.get("model_type") not in IMAGE_TYPES and any(map(is_entailment, _own_labels(source))):
            return PAIR_LABELS
    raise UsageError(
        f"labels: the model {excerpt(source.id)} has classes of its own. Leave labels and template out, or choose a "
        f"model that matches pictures with texts ({' or '.join(ZERO_SHOT)}) or decides pairs of texts (NLI), such as "
        "nli-minilm."
    )


def _locate(model: str) -> ModelSource:
    if fetched.is_fetched(model):
        return _source(model, "fetched", fetched.fetched_folder(model))
    if is_embedded(model):
        return _source(model, "embedded", EMBEDDED / model)
    if not model.strip():
        raise UsageError(
            f"model: must be an embedded name ({_known_names()}), a folder or a hub id, got an empty name."
        )
    path = Path(model).expanduser()
    if path.is_dir():
        return _source(model, "folder", path)
    if model in fetched.FETCHED:
        raise UsageError(f"model: {model} is not stored here yet. Fetch it: exegesis models get {model}.")
    if model.startswith(BASE_PREFIX):
        raise unknown("base", model, embedded_bases())
    if path.suffix.lower() == ".gguf":  # the error must not reveal whether the file exists
        raise UsageError(
            f"model: a GGUF file such as {excerpt(model)} is not read. Give a folder with config.json and safetensors."
        )
    if model.startswith(("/", "./", "../", "~")) or path.exists():
        raise UsageError(f"model: no folder {excerpt(model)}. Give a folder with config.json and safetensors.")
    if HUB_ID.fullmatch(model):
        return _source(model, "hub", _snapshot(model))
    error = unknown("model", model, embedded_models())
    raise UsageError(f"{error} Or give a folder, or a hub id such as owner/name.")


@contextlib.contextmanager
def fixed_revisions() -> Iterator[None]:
    """Read the files of each model at most once in the block, to build the keys of many cached results.

    Other threads read them again.
    """
    known = _revisions.get()
    token = _revisions.set({} if known is None else known)
    try:
        yield
    finally:
        _revisions.reset(token)


def revision(model: str) -> str:
    """Hash everything that affects the model's output; reads the files without loading the model."""
    known = _revisions.get()
    if known is None:
        return _revision(model)
    if model not in known:
        known[model] = _revision(model)
    return known[model]


_revisions: ContextVar[dict[str, str] | None] = ContextVar("exegesis_revisions", default=None)


def _revision(model: str) -> str:
    source = locate(model)
    digest = hashlib.sha256()
    if source.prompts is not None:
        digest.update(repr((source.prompts.labels, source.prompts.template)).encode())
    for file in source.weights:
        digest.update(f"{file.name}:{file_sha256(file)}\n".encode())
    if source.base is not None:  # the labels of an adapter are in its card
        digest.update(repr(_card(source).get("labels")).encode())
    return digest.hexdigest()[:16]


def config(source: ModelSource) -> dict[str, Any]:
    """Read the checkpoint's config.json. Sizes of an image encoder are at the top level, nested or not in the file."""
    stated = read_json(source.id, (source.base or source.folder) / "config.json")
    if stated.get("model_type") not in IMAGE_TYPES:
        return stated
    section = stated.get(PICTURE_SECTION)
    own = section if isinstance(section, dict) else {}
    heads = stated.get("num_heads")
    if isinstance(heads, list) and heads:  # Swin: one number per stage
        own = {"num_hidden_layers": len(heads), "num_attention_heads": heads[-1], **own}
    return CONFIG_DEFAULTS.get(str(stated["model_type"]), {}) | own | stated


def card(model: str) -> dict[str, Any]:
    """Read the card.json of an embedded or trained model; empty if there is none, or if the name has labels."""
    source = locate(model)
    return {} if source.prompts is not None else _card(source)


def model_labels(model: str) -> tuple[str, ...]:
    """Read the labels of a model in the order of its outputs, one for a regression, without loading it.

    Empty for a causal language model, whose labels are those of a prompt, and for a model that matches pictures with
    texts without labels in its name.

    Errors: missing files; TypeError, ValueError or LookupError if config.json is invalid.
    """
    source = locate(model)
    return _own_labels(source) if source.prompts is None else source.prompts.classes


def _own_labels(source: ModelSource) -> tuple[str, ...]:
    """As `model_labels`, ignoring labels in the name."""
    if source.base is not None:
        return tuple(_card(source).get("labels") or UNNAMED_LABELS)
    stated = config(source)
    return () if is_causal_config(stated) or matches_pictures(stated) else config_labels(stated)


def config_labels(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels in a config.json, in the order of the outputs."""
    named = config.get("id2label")
    if named is None:
        return tuple(f"LABEL_{i}" for i in range(int(config.get("num_labels", len(UNNAMED_LABELS)))))
    by_index = {int(i): str(label) for i, label in named.items()}
    return tuple(by_index[i] for i in range(len(by_index)))


def vocabulary_size(model: str) -> int | None:
    """Return the number of tokens that a causal language model predicts, by its config.json; None for a classifier."""
    size = config(locate(model)).get("vocab_size") if is_causal(model) else None
    return size if type(size) is int else None


def fair_scores(card: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return scores by split, without the held-out split, which chose the epoch, unless there is no other."""
    scores: dict[str, dict[str, Any]] = card.get("scores") or {}
    return {split: score for split, score in scores.items() if split != CHOSEN_ON} or scores


def locate_base(base: str, argument: str = "base", language_models: bool = False) -> Path:
    """Locate the folder of a base: `minilm`, `bases/NAME`, a local folder, or a hub id `owner/name[@revision]`.

    `argument`: its name in errors. `language_models`: whether embedded or fetched language models are allowed.
    """
    if base == "minilm":
        return minilm_folder()
    if base in embedded_bases():
        return EMBEDDED / base
    if not base.strip():
        raise UsageError(f"{argument}: must be `minilm`, a folder with a checkpoint or a hub id, got an empty name.")
    access.check_model(base)
    if language_models and base in fetched.FETCHED and not fetched.is_fetched(base):
        raise UsageError(f"{argument}: {base} is not stored here yet. Fetch it: exegesis models get {base}.")
    if language_models and is_embedded(base) and is_causal(base):
        return locate(base).folder
    if is_embedded(base):
        trained = "language model" if is_causal(base) else "model"
        raise UsageError(
            f"{argument}: {base} is a trained {trained}, where a base or a sentence encoder is needed. Give `minilm`, "
            "a folder with a checkpoint or a hub id."
        )
    path = Path(base).expanduser()
    if path.is_dir():
        return path
    if base.startswith(BASE_PREFIX):
        raise unknown(argument, base, ["minilm", *embedded_bases()])
    if base.startswith((".", "/", "~")):
        raise UsageError(f"{argument}: no such folder {base!r}. Give `minilm`, a hub id or a folder with a checkpoint.")
    name, _, pinned = base.partition("@")
    return download_snapshot(name, pinned, argument=argument, instead="give a local folder or `minilm`")


def _card(source: ModelSource) -> dict[str, Any]:
    file = source.folder / "card.json"
    return read_json(source.id, file) if file.is_file() else {}


def _source(model: str, kind: Literal["embedded", "fetched", "folder", "hub"], folder: Path) -> ModelSource:
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        _check_checkpoint(model, folder)
        return ModelSource(model, kind, folder, None)
    # Otherwise peft would load a pickle, which is not part of the revision either.
    check_safetensors(model, folder, "adapter_model.safetensors")
    base = read_json(model, adapter).get("base_model_name_or_path")
    if base == "minilm":
        return ModelSource(model, kind, folder, minilm_folder())
    if not base:
        raise ExegesisError(f"model {model}: its adapter_config.json does not name the base model it changes.")
    inner = _locate(str(base))
    return ModelSource(model, kind, folder, inner.folder)


def _check_checkpoint(model: str, folder: Path) -> None:
    config = folder / "config.json"
    if not config.is_file():
        raise ExegesisError(f"model {model}: no config.json in the folder. Give the folder of a saved checkpoint.")
    stated = read_json(model, config)
    check_config_sizes(f"model {model}", stated)
    if "auto_map" in stated:
        raise ExegesisError(
            f"model {model}: its config asks to run code from the checkpoint (auto_map), which is refused. "
            "Use a checkpoint of a supported family without remote code."
        )
    check_safetensors(model, folder, "*.safetensors")


_snapshots: dict[str, Path] = {}


def _snapshot(model: str) -> Path:
    """Download a model from the hub, which is queried once per process, as every cache key needs the revision."""
    if not (model in _snapshots and _snapshots[model].is_dir()):
        name, _, pinned = model.partition("@")
        instead = f"use an embedded one ({_known_names()}), or download it and give the folder"
        _snapshots[model] = download_snapshot(name, pinned, argument="model", instead=instead)
    return _snapshots[model]


def queries_hub(model: str) -> bool:
    """Whether `locate` would query the hub: a hub id that this process has not located yet."""
    model = base_name(model)
    return bool(HUB_ID.fullmatch(model)) and not (
        is_embedded(model) or model in _snapshots or Path(model).expanduser().is_dir()
    )
