"""Models of the Python interface: names, folders, and loaded transformers models as snapshots in the home folder.

A loaded model is written once to a folder named after the hash of its weights, and explained from there. So it has the
numbers and the cache keys of a saved checkpoint, a dashboard opens it too, and nothing is ever changed on the model
itself: neither its mode, gradients, hooks and attention nor its device.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, excerpt, not_allowed
from engine.home import home
from engine.lazy import LazyModule, torch, transformers
from engine.models import adapters, catalog
from engine.request import DTYPES

if TYPE_CHECKING:
    from engine.models import loading
else:
    loading = LazyModule("engine.models.loading")

FOLDER = "snapshots"
MOST_SNAPSHOTS = 8
"""Snapshots in the home folder; beyond that the one that was used least recently is removed."""
DIGEST_CHARACTERS = 16
OWN_CLASSES = ("transformers.", "torch.", "engine.models.")
"""Packages of the classes that a snapshot is loaded as."""
ALLOWED = "a name, a folder or a loaded transformers model"


def wrap(model: Any, tokenizer: Any = None, *, processor: Any = None) -> str:
    """Store a loaded transformers model as a folder in the home folder, and return that folder.

    Every function takes it as its model, as the pages and commands do. The same weights give the same folder, so only
    the first call writes. The model itself stays as it is.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A classifier, causal language model or vision transformer of a supported family, in any mode, on any device.
    tokenizer : transformers.PreTrainedTokenizerFast, optional
        The tokenizer of a text model.
    processor : transformers.BaseImageProcessor, optional
        The image processor of an image model. It can also be given as `tokenizer`.

    Errors: another family, no tokenizer or processor, an unmerged adapter, quantized weights.
    """
    companion = processor if tokenizer is None else tokenizer
    _check_model(model, companion)
    place = home() / FOLDER
    try:
        return str(_store(model, companion, place))
    except OSError as error:
        raise ExegesisError(
            f"model: its snapshot cannot be written to {place} ({error.strerror or error}). Free space there, or set "
            "EXEGESIS_HOME to another folder."
        ) from error


def _store(model: Any, companion: Any, place: Path) -> Path:
    """The folder of the snapshot, written if it is not there."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".snapshot-", dir=place) as work, _unchanged_config(model):
        draft = Path(work) / "model"
        _write_settings(model, companion, draft)
        name = type(model).__name__
        folder = place / f"{name}-{_digest(model, draft)[:DIGEST_CHARACTERS]}"
        if not folder.is_dir():
            with loading.silence_libraries():
                model.save_pretrained(str(draft))
            with contextlib.suppress(OSError):  # written by another process meanwhile
                os.replace(draft, folder)
    os.utime(folder)
    _prune(place)
    return folder


def model_name(model: Any, tokenizer: Any = None, processor: Any = None) -> str:
    """The name of a model: of a name or a folder itself, of a loaded model or a pipeline that of its snapshot."""
    if isinstance(model, str | os.PathLike):
        if tokenizer is not None or processor is not None:
            raise UsageError(f"tokenizer: {os.fspath(model)} brings its own. Leave tokenizer and processor out.")
        if Path(model).parent == home() / FOLDER:
            with contextlib.suppress(OSError):  # a folder that is not there is told by who loads it
                os.utime(model)
        return os.fspath(model)
    if isinstance(inner := getattr(model, "model", None), transformers.PreTrainedModel) and not _is_model(model):
        own = [getattr(model, name, None) for name in ("tokenizer", "image_processor")]  # a pipeline
        return wrap(inner, tokenizer or own[0], processor=processor or own[1])
    return wrap(model, tokenizer, processor=processor)


def default_dtype(model: Any) -> str:
    """The precision of a loaded model, where it is one of `DTYPES`; else float32."""
    inner = model if _is_model(model) else getattr(model, "model", None)
    dtype = str(getattr(inner, "dtype", "")).removeprefix("torch.")
    return dtype if dtype in DTYPES else DTYPES[0]


def _is_model(model: Any) -> bool:
    return not isinstance(model, str | os.PathLike) and isinstance(model, transformers.PreTrainedModel)


def _check_model(model: Any, companion: Any) -> None:
    """Refuse what cannot be stored as it is, before anything is written."""
    if hasattr(model, "merge_and_unload"):
        raise UsageError("model: is a PEFT model with an unmerged adapter. Pass model.merge_and_unload().")
    if not _is_model(model):
        raise not_allowed("model", ALLOWED, model)
    if getattr(model, "_hf_peft_config_loaded", False):
        raise UsageError("model: has adapters that are not part of its weights. Merge them, or pass a saved folder.")
    if getattr(model, "hf_quantizer", None) is not None:
        raise UsageError(
            "model: is quantized, so its gradients are undefined. Load it in float32, bfloat16 or float16."
        )
    kind, config = type(model).__name__, model.config.to_dict()
    foreign = [part for part in model.modules() if not _is_restored(part)]
    if foreign:
        raise UsageError(
            f"model: the class {excerpt(type(foreign[0]).__name__)} or its forward is not transformers' own, and a "
            "snapshot of the weights would leave that out. Pass a model of a transformers class."
        )
    if hooks := [hook for part in model.modules() for hook in _hooks(part) if not _is_of_transformers(hook)]:
        raise UsageError(
            f"model: has {len(hooks)} forward hooks, which a snapshot of its weights leaves out. Remove them, and "
            "register them again afterwards."
        )
    stated = {**config, "architectures": [kind]}
    reads_pictures = config.get("model_type") in catalog.IMAGE_TYPES
    if reads_pictures:
        adapters.image_adapter_for(config["model_type"], [kind], kind)
    elif adapters.causal_adapter(stated) is None:
        adapters.adapter_for(str(config.get("model_type", "")), kind)
    if not hasattr(companion, "save_pretrained"):
        name, maker = ("processor", "AutoImageProcessor") if reads_pictures else ("tokenizer", "AutoTokenizer")
        got = "is missing" if companion is None else f"cannot be saved, got {excerpt(companion)}"
        raise UsageError(f"{name}: {got}; a {kind} needs it. Pass {name}={maker}.from_pretrained(...).")


def _is_restored(part: Any) -> bool:
    """Whether a snapshot brings the module back as it is: its class and its forward are a library's."""
    return type(part).__module__.startswith(OWN_CLASSES) and "forward" not in vars(part)


def _hooks(part: Any) -> list[Any]:
    return [*part._forward_hooks.values(), *part._forward_pre_hooks.values()]


def _is_of_transformers(hook: Any) -> bool:
    """Whether transformers registered it itself, as it does to collect hidden states: it changes nothing."""
    return str(getattr(hook, "__module__", "")).startswith("transformers.")


def _write_settings(model: Any, companion: Any, folder: Path) -> None:
    """Write all but the weights."""
    companion.save_pretrained(str(folder))
    model.config.architectures, model.config.dtype = [type(model).__name__], str(model.dtype).removeprefix("torch.")
    model.config.save_pretrained(str(folder))
    # In Transformers 5 a processor may be stored under a name that our reader of checkpoints does not look for.
    stored = folder / "processor_config.json"
    if stored.is_file() and not (folder / catalog.PROCESSOR).is_file():
        stated = json.loads(stored.read_text(encoding="utf-8"))
        own = stated.get("image_processor", stated)
        (folder / catalog.PROCESSOR).write_text(json.dumps(own), encoding="utf-8")


@contextlib.contextmanager
def _unchanged_config(model: Any) -> Iterator[None]:
    """Restore the fields of the model's config that saving sets."""
    fields = vars(model.config)
    before = dict(fields)
    try:
        yield
    finally:
        fields.clear()
        fields.update(before)


def _digest(model: Any, settings: Path) -> str:
    """SHA-256 of the weights as they are stored, and of the files of settings. `_name_or_path` has no effect."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        values = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\n".encode())
        digest.update(values.view(torch.uint8).numpy())
    for file in sorted(settings.iterdir()):
        content = file.read_bytes()
        if file.suffix == ".json":
            stated = json.loads(content)
            content = json.dumps({n: v for n, v in stated.items() if n != "_name_or_path"}, sort_keys=True).encode()
        digest.update(f"{file.name}:{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _prune(place: Path) -> None:
    """Remove the snapshots that were used least recently, beyond `MOST_SNAPSHOTS`."""
    folders = [folder for folder in place.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    for folder in sorted(folders, key=lambda one: one.stat().st_mtime)[:-MOST_SNAPSHOTS]:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
