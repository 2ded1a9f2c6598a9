"""Embedding maps: the representations of a data set's examples that a model's head reads, in two dimensions.

PCA is always available. UMAP is available if `umap-learn` is installed, and is imported only when it is computed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from cache import key_for
from engine import runtime
from engine.data.examples import Dataset, ImageDataset
from engine.errors import ExegesisError, UsageError, unknown
from engine.explain import require_finite
from engine.input_kinds import load_classifier
from engine.inside.sites import Tap, rewriting
from engine.lazy import torch, umap
from engine.models import catalog
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import check_cancelled, tell
from engine.request import DTYPES, Picture
from engine.store import result_store

VERSION = 1
"""Must be increased when the values change."""
PCA, UMAP = "pca", "umap"
PROJECTION_TITLES = {PCA: "PCA", UMAP: "UMAP"}
LEAST_EXAMPLES = 3
MOST_EXAMPLES = 5000
"""Largest number of examples on a map. From larger data sets, evenly spaced examples are taken."""
NEIGHBORS = 15
"""Number of nearest neighbors of UMAP, its own default. Smaller data sets have PCA only."""
SEED = 0
EXAMPLES_AT_ONCE = 64
"""Number of examples that are read before other requests may use the device."""


@dataclass(frozen=True)
class Representations:
    """Inputs of a model's head, one vector per example.

    `places`: indices of the examples in the data set; those that could not be read are left out.
    """

    places: Int[np.ndarray, "point"]
    vectors: Float[np.ndarray, "point d"]


@dataclass(frozen=True)
class EmbeddingMap:
    """The examples of a data set as points in two dimensions.

    `places`: indices of the examples in the data set. `explained`: share of the variance on each axis of PCA, 0 to 1;
    empty for UMAP, whose axes have no meaning. `dimensions`: number of dimensions of the representations. `unread`:
    number of examples that could not be read.
    """

    projection: str
    places: Int[np.ndarray, "point"]
    coordinates: Float[np.ndarray, "point 2"]
    explained: tuple[float, ...]
    dimensions: int
    unread: int


def projections(examples: int) -> list[str]:
    """Return the projections that are available for a number of examples. Imports none of them."""
    has_umap = importlib.util.find_spec("umap") is not None and examples > NEIGHBORS
    return [PCA, UMAP] if has_umap else [PCA]


def map_key(model: str, data: Dataset | ImageDataset, projection: str) -> str:
    """Return the cache key of a map. Reads the model's files but does not load it."""
    return _key(model, data, f"embedding map: {projection}")


def embedding_map(model: str, data: Dataset | ImageDataset, projection: str = PCA) -> EmbeddingMap:
    """Compute the map of a data set from the representations of a model. Cached.

    Errors: an unknown projection, UMAP is not installed, fewer than `LEAST_EXAMPLES` examples, equal
    representations, values that are not finite.
    """
    if projection not in PROJECTION_TITLES:
        raise unknown("projection", projection, PROJECTION_TITLES)
    _require_enough(len(data))
    key = map_key(model, data, projection)
    entry = result_store().get(key)
    if entry is None:
        own = representations(model, data)
        _require_enough(len(own.places))
        coordinates, shares = principal_components(own.vectors) if projection == PCA else (_umap(own.vectors), ())
        unread = len(sampled_places(len(data))) - len(own.places)
        meta = {"explained": list(shares), "dimensions": own.vectors.shape[1], "unread": unread}
        entry = meta, {"places": own.places, "coordinates": coordinates}
        result_store().put(key, *entry)
    meta, arrays = entry
    explained = tuple(float(share) for share in meta["explained"])
    return EmbeddingMap(
        projection, arrays["places"], arrays["coordinates"], explained, int(meta["dimensions"]), int(meta["unread"])
    )


def representations(model: str, data: Dataset | ImageDataset) -> Representations:
    """Compute what the model's head reads for each example of a data set, for at most `MOST_EXAMPLES`. Cached.

    A vector is the input of the last module of the head: pooled as in the model's family, and transformed by the
    earlier modules of the head. For a zero-shot model, it is the unit vector of the picture. Errors: those of a
    prediction.
    """
    key = _key(model, data, "representations")
    if (entry := result_store().get(key)) is not None:
        return Representations(entry[1]["places"], entry[1]["vectors"])
    kind = "text" if isinstance(data, Dataset) else "image"
    places, parts = sampled_places(len(data)), list[Float[np.ndarray, "point d"]]()
    read: list[int] = []
    for start in range(0, len(places), EXAMPLES_AT_ONCE):
        check_cancelled()
        with runtime.turn(lends=True):
            classifier = load_classifier(kind, model, DTYPES[0], runtime.device())
            encoded = dict(_encoded(classifier, data, places[start : start + EXAMPLES_AT_ONCE]))
            if encoded:
                parts.append(head_inputs(classifier, list(encoded.values())))
        read += encoded
        tell(min(start + EXAMPLES_AT_ONCE, len(places)), len(places), "examples")
    _require_enough(len(read))
    own = Representations(np.array(read, dtype=np.int64), np.concatenate(parts))
    require_finite(classifier, "representations", own.vectors)
    result_store().put(key, {}, {"places": own.places, "vectors": own.vectors})
    return own


def head_inputs(model: AnyClassifier, encoded: Sequence[EncodedInput]) -> Float[np.ndarray, "point d"]:
    """Return the input of the last module of the model's head for each example, in single precision.

    If there are several heads (one for each special token), their inputs are concatenated. The caller must hold the
    device.
    """
    taps = [_head_tap(head) for head in _heads(model)]
    order = sorted(range(len(encoded)), key=lambda at: len(encoded[at]))  # by length, to reduce padding
    longest = len(encoded[order[-1]])

    def compute(rows: slice) -> Float[np.ndarray, "point d"]:
        read: dict[int, torch.Tensor] = {}

        def record(index: int, values: torch.Tensor) -> torch.Tensor:
            read[index] = values if values.dim() == 2 else values[:, 0]  # RoBERTa's head selects its position itself
            return values

        with torch.inference_mode(), rewriting(taps, record):
            model.logits(model.collate([encoded[at] for at in order[rows]]))
        return torch.cat([read[index] for index in sorted(read)], dim=1).float().cpu().numpy()

    chunks = runtime.in_chunks(compute, len(encoded), runtime.rows_at_once(model, longest))
    return np.concatenate(list(chunks))[np.argsort(order)]


def principal_components(
    vectors: Float[np.ndarray, "point d"],
) -> tuple[Float[np.ndarray, "point 2"], tuple[float, float]]:
    """Return the coordinates on the first two principal components, and each one's share of the variance, 0 to 1.

    The largest weight of a component is positive, which fixes its sign. Errors: no variance, or a single dimension.
    """
    centered = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, singular, axes = np.linalg.svd(centered, full_matrices=False)
    if len(axes) < 2 or singular[0] <= np.finfo(np.float32).eps * np.abs(vectors).max(initial=0.0) * len(vectors):
        raise ExegesisError("The representations of all examples are equal, so there is nothing to map.")
    axes = axes[:2]
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
    shares = singular[:2] ** 2 / (singular**2).sum()
    return centered @ (axes * signs[:, None]).T, (float(shares[0]), float(shares[1]))


def sampled_places(count: int) -> list[int]:
    """Return the indices of the examples on a map: all, or `MOST_EXAMPLES` evenly spaced ones."""
    if count <= MOST_EXAMPLES:
        return list(range(count))
    return [place * count // MOST_EXAMPLES for place in range(MOST_EXAMPLES)]


def _umap(vectors: Float[np.ndarray, "point d"]) -> Float[np.ndarray, "point 2"]:
    """Project with UMAP (McInnes, Healy and Melville, 2018). One thread, as the seed fixes the result only then."""
    if len(vectors) <= NEIGHBORS:
        raise UsageError(f"projection: UMAP needs at least {NEIGHBORS + 1} examples, got {len(vectors)}. Choose pca.")
    try:
        reducer = umap.UMAP(n_components=2, n_neighbors=NEIGHBORS, random_state=SEED, n_jobs=1)
    except (ImportError, AttributeError) as error:
        raise ExegesisError(
            f"projection: umap cannot be imported ({type(error).__name__}). Install umap-learn, or choose pca."
        ) from error
    return np.asarray(reducer.fit_transform(vectors), dtype=np.float64)


def _heads(model: AnyClassifier) -> list[torch.nn.Module]:
    adapter = model.adapter
    names = adapter.heads if model.kind == "image" else adapter.head[-1:]
    return [model.module.get_submodule(name) for name in names]


def _head_tap(head: torch.nn.Module) -> Tap:
    """Return the tap on the input of a head. A zero-shot head multiplies a unit vector with those of its labels."""
    unit = getattr(head, "unit", None)
    return Tap(head, before=True) if unit is None else Tap(unit)


def _encoded(
    model: AnyClassifier, data: Dataset | ImageDataset, places: Sequence[int]
) -> Iterator[tuple[int, EncodedInput]]:
    """Yield (index, encoded example) of the examples that can be read."""
    for place in places:
        try:
            own = data[place].example if isinstance(data, Dataset) else Picture(data[place].pixels)
            yield place, model.encode(own)
        except ExegesisError:
            continue


def _key(model: str, data: Dataset | ImageDataset, kind: str) -> str:
    content = {"data": data.id, "data revision": data.revision, "split": data.split, "count": len(data)}
    own = {"revision": catalog.revision(model), "dtype": DTYPES[0], "device": runtime.device_type()}
    return key_for({"kind": kind, "version": VERSION, **own, **content})


def _require_enough(count: int) -> None:
    if count < LEAST_EXAMPLES:
        raise UsageError(f"data: a map needs at least {LEAST_EXAMPLES} readable examples, got {count}. Choose another.")
