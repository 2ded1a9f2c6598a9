"""Models of the Python interface: names, folders, and loaded transformers models as snapshots in the home folder.

A loaded model is written once to a folder named after the hash of its weights, and explained from there. It therefore
has the results and cache keys of a saved checkpoint, the dashboard can open it too, and the model itself is never
changed: neither its mode, gradients, hooks and attention nor its device.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import runtime
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, one_line
from engine.format import count_text
from engine.home import home
from engine.input_kinds import kind_of_model, load_classifier
from engine.lazy import LazyModule, torch, transformers
from engine.models import adapters, catalog, checkpoint_files
from engine.models.causal import CausalModel
from engine.models.classifier import AnyClassifier
from engine.models.label_prompts import split_prompts, with_prompts
from engine.request import DTYPES, Example, Picture
from engine.vision.adapters import image_adapter_for
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import PictureBatch

if TYPE_CHECKING:
    from engine.models import loading, picture_text
else:  # they load torch
    loading = LazyModule("engine.models.loading")
    picture_text = LazyModule("engine.models.picture_text")

FOLDER = "snapshots"
MOST_SNAPSHOTS = 8
"""Maximum number of snapshots in the home folder; beyond it, the least recently used one is removed."""
DIGEST_CHARACTERS = 16
OWN_CLASSES = ("transformers.", "torch.", "engine.models.")
"""Packages of the classes that a snapshot can be loaded as."""
PROBES = ("A short sentence.", "Nothing in this one is shorter than it was before, or is it?")
"""Texts on which a loaded model and its snapshot must agree."""
PROBE_LABELS = "a cat, a dog"
"""Labels with which a zero-shot model and its snapshot must agree."""
LOGIT_TOLERANCES = {"float32": 1e-3, "bfloat16": 0.15, "float16": 0.03, "float64": 1e-3}
"""Largest difference of the logits by precision, as a share of the largest one: attention kernels round differently."""
ALLOWED = "a name, a folder or a loaded transformers model"


def wrap(model: Any, tokenizer: Any = None, *, processor: Any = None) -> str:
    """Store a loaded transformers model as a folder in the home folder, and return that folder.

    Every function accepts the folder as a model, as do the pages and commands. The same weights give the same folder,
    so only the first call writes. The model itself is not changed.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A classifier, causal language model or vision transformer of a supported family, in any mode, on any device.
    tokenizer : transformers.PreTrainedTokenizerFast, optional
        The tokenizer of a text model.
    processor : transformers.BaseImageProcessor or transformers.ProcessorMixin, optional
        The image processor of an image model; for CLIP and SigLIP the processor with the tokenizer. It can also be
        given as `tokenizer`.

    Errors: an unsupported family, a missing tokenizer or processor, an unmerged adapter, quantized weights, and a model
    whose logits are not those of its weights and config.
    """
    companions = [one for one in (tokenizer, processor) if one is not None]
    _check_model(model, companions)
    place = home() / FOLDER
    try:
        folder = str(_store(model, companions, place))
    except OSError as error:
        raise ExegesisError(
            f"model: its snapshot cannot be written to {place} ({error.strerror or error}). Free space there, or set "
            "EXEGESIS_HOME to another folder."
        ) from error
    _check_snapshot(model, folder)
    return folder


def _check_snapshot(model: Any, folder: str) -> None:
    """Refuse a model whose logits on two short inputs are not those of its snapshot.

    Changes of attributes other than weights, such as another activation function, are not in the snapshot.
    """
    precision = default_dtype(model)
    name = with_prompts(folder, PROBE_LABELS) if catalog.needs_labels(folder) else folder
    with runtime.turn():
        snapshot = load_classifier(kind_of_model(name), name, precision, runtime.device())
        # Tensors created in inference mode, such as weights of a new precision or buffers, cannot have gradients later.
        with torch.no_grad(), _evaluating(model):
            _compare_logits(model, snapshot, LOGIT_TOLERANCES[precision])


def _compare_logits(model: Any, snapshot: AnyClassifier, tolerance: float) -> None:
    """Refuse logits that differ by more than a share `tolerance` of the largest one."""
    for probe in _probes(snapshot):
        batch = snapshot.collate([snapshot.encode(probe)])
        expected = snapshot.next_logits(batch) if isinstance(snapshot, CausalModel) else snapshot.logits(batch)
        logits = _own_logits(model, snapshot.id, batch).to(expected)
        most = tolerance * float(expected.nan_to_num().abs().max())
        if not torch.allclose(logits, expected, rtol=0.0, atol=most, equal_nan=True):
            raise UsageError(
                "model: on a short input its logits differ from those of the same weights and config by up to "
                f"{float((logits - expected).abs().max()):.2g}. Something else was changed, such as an activation "
                "function, and a snapshot would leave that out. Load the model again, and change only weights."
            )


def _probes(snapshot: AnyClassifier) -> list[Example | Picture]:
    if not isinstance(snapshot, ImageClassifier):
        return [Example(text) for text in PROBES]
    levels = np.indices((*snapshot.size, 3)).sum(0)
    return [Picture((levels * step % 256).astype(np.uint8)) for step in (1, 7)]


def _own_logits(model: Any, snapshot: str, batch: Any) -> torch.Tensor:
    """Return the model's own logits for an unpadded batch of one input; for a language model those of the next token.

    `snapshot`: name of the snapshot, with the labels of a zero-shot model.
    """
    values = batch.pictures.to(model.dtype) if isinstance(batch, PictureBatch) else batch.ids
    folder, prompts = split_prompts(snapshot)
    try:
        if prompts is not None:
            return _own_similarities(model, Path(folder), values.to(model.device), prompts.labels)
        inputs = {"pixel_values" if isinstance(batch, PictureBatch) else "input_ids": values.to(model.device)}
        logits = model(**inputs, return_dict=True).logits
    except Exception as error:  # a changed model may raise anything
        raise UsageError(f"model: fails on a short input ({one_line(error)}). Pass a model that runs.") from error
    return logits if logits.ndim == 2 else logits[:, -1]


def _own_similarities(model: Any, folder: Path, pictures: torch.Tensor, labels: Sequence[str]) -> torch.Tensor:
    """Return the scaled similarities of pictures and labels by a zero-shot model."""
    towers = picture_text.Towers(model, loading.load_tokenizer(folder))
    vectors = model.get_image_features(pixel_values=pictures).pooler_output
    logits = towers.scale * vectors / vectors.norm(dim=-1, keepdim=True) @ towers.text_vectors(labels).T
    return logits if towers.bias is None else logits + towers.bias


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put the model into evaluation mode in the block, and restore the modes of all modules."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _store(model: Any, companions: Sequence[Any], place: Path) -> Path:
    """Return the folder of the snapshot, which is written if it does not exist."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".snapshot-", dir=place) as work, _unchanged_config(model):
        draft = Path(work) / "model"
        _write_settings(model, companions, draft)
        name = type(model).__name__
        folder = place / f"{name}-{_digest(model, draft)[:DIGEST_CHARACTERS]}"
        if not folder.is_dir():
            with loading.silence_libraries():
                model.save_pretrained(str(draft))
            _state_labels(model, draft)
            with contextlib.suppress(OSError):  # written by another process meanwhile
                os.replace(draft, folder)
    os.utime(folder)
    _prune(place)
    return folder


def model_name(model: Any, tokenizer: Any = None, processor: Any = None) -> str:
    """Return the name of a model: a name or folder unchanged; for a loaded model or pipeline, its snapshot."""
    if isinstance(model, str | os.PathLike):
        if tokenizer is not None or processor is not None:
            raise UsageError(f"tokenizer: {os.fspath(model)} brings its own. Leave tokenizer and processor out.")
        if Path(model).parent == home() / FOLDER:
            with contextlib.suppress(OSError):  # a missing folder is reported when it is loaded
                os.utime(model)
        return os.fspath(model)
    if isinstance(inner := getattr(model, "model", None), transformers.PreTrainedModel) and not _is_model(model):
        own = [getattr(model, name, None) for name in ("tokenizer", "image_processor")]  # a pipeline
        return wrap(inner, tokenizer or own[0], processor=processor or own[1])
    return wrap(model, tokenizer, processor=processor)


def default_dtype(model: Any) -> str:
    """Return the precision of a loaded model if it is one of `DTYPES`, else float32."""
    inner = model if _is_model(model) else getattr(model, "model", None)
    dtype = str(getattr(inner, "dtype", "")).removeprefix("torch.")
    return dtype if dtype in DTYPES else DTYPES[0]


def _is_model(model: Any) -> bool:
    return not isinstance(model, str | os.PathLike) and isinstance(model, transformers.PreTrainedModel)


def _check_model(model: Any, companions: Sequence[Any]) -> None:
    """Refuse a model that cannot be stored unchanged, before anything is written."""
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
            f"model: has {count_text(len(hooks), 'forward hook')}, which a snapshot of its weights leaves out. Remove "
            "hooks before, and register them again afterwards."
        )
    stated = {**config, "architectures": [kind]}
    reads_pictures = config.get("model_type") in catalog.IMAGE_TYPES
    if reads_pictures:
        image_adapter_for(config["model_type"], [kind], kind)
    elif adapters.causal_adapter(stated) is None:
        adapters.adapter_of_config(stated, kind)
    _check_companions(kind, companions, reads_pictures, not reads_pictures or catalog.matches_pictures(stated))


def _check_companions(kind: str, companions: Sequence[Any], reads_pictures: bool, reads_texts: bool) -> None:
    """Refuse a model without its tokenizer or processor: an empty one would be read in its place."""
    name = "processor" if reads_pictures else "tokenizer"
    maker = "AutoTokenizer" if not reads_pictures else "AutoProcessor" if reads_texts else "AutoImageProcessor"
    strange = [one for one in companions if not hasattr(one, "save_pretrained")]
    tokenizers = [getattr(one, "tokenizer", one) for one in companions]
    if not companions:
        got = "is missing"
    elif strange:
        got = f"cannot be saved, got {excerpt(strange[0])}"
    elif reads_texts and not any(isinstance(one, transformers.PreTrainedTokenizerBase) for one in tokenizers):
        got = f"{type(companions[0]).__name__} has no tokenizer"
    else:
        return
    raise UsageError(f"{name}: {got}; a {kind} needs it. Pass {name}={maker}.from_pretrained(...).")


def _is_restored(part: Any) -> bool:
    """Whether a snapshot restores the module: its class and its forward method are a library's."""
    return type(part).__module__.startswith(OWN_CLASSES) and "forward" not in vars(part)


def _hooks(part: Any) -> list[Any]:
    return [*part._forward_hooks.values(), *part._forward_pre_hooks.values()]


def _is_of_transformers(hook: Any) -> bool:
    """Whether transformers registered the hook itself, as it does to collect hidden states; it changes nothing."""
    return str(getattr(hook, "__module__", "")).startswith("transformers.")


def _write_settings(model: Any, companions: Sequence[Any], folder: Path) -> None:
    """Write all files but the weights."""
    for one in companions:
        one.save_pretrained(str(folder))
    model.config.architectures, model.config.dtype = [type(model).__name__], str(model.dtype).removeprefix("torch.")
    model.config.save_pretrained(str(folder))
    _state_labels(model, folder)
    # In Transformers 5 a processor may be stored under a name that our reader of checkpoints does not look for.
    stored = folder / "processor_config.json"
    if stored.is_file() and not (folder / checkpoint_files.PROCESSOR).is_file():
        stated = json.loads(stored.read_text(encoding="utf-8"))
        own = stated.get("image_processor", stated)
        (folder / checkpoint_files.PROCESSOR).write_text(json.dumps(own), encoding="utf-8")


def _state_labels(model: Any, folder: Path) -> None:
    """Write the labels if transformers omits them although their number is not the family's default (3 for BART)."""
    file = folder / "config.json"
    stated = json.loads(file.read_text(encoding="utf-8"))
    if "id2label" not in stated and model.config.num_labels != type(model.config)().num_labels:
        stated["id2label"] = model.config.id2label
        file.write_text(json.dumps(stated, indent=2, sort_keys=True) + "\n", encoding="utf-8")


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
    """Return the SHA-256 of the weights as stored and of the settings files, without `_name_or_path`."""
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
