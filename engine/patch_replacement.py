"""Replacement of patches of a picture by those at the same position in other pictures of a data set.

Such replacements are plausible: unlike a gray or blurred patch, they look like the data that the model was trained on.
The embedding of a patch depends only on its pixels and is replaced before positions are added, which is equivalent to
replacing the pixels of the preprocessed picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.data.sources import ExampleSource
from engine.errors import ExegesisError, UsageError
from engine.experiments.sample import draw_indices
from engine.explain import require_finite
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.progress import check_cancelled
from engine.removal import token_masks
from engine.request import Picture
from engine.runtime import in_chunks, rows_at_once

DONORS = 256
"""Default number of pictures whose patches are used as replacements."""


@dataclass(frozen=True, eq=False)
class PatchDonors:
    """The pictures that patches are taken from. `embeddings`: those of the patches, before positions are added."""

    digests: tuple[str, ...]
    embeddings: Float[torch.Tensor, "donor patch d_model"]

    def other_than(self, picture: Picture) -> Int[np.ndarray, "donor"]:
        """Return the donors other than the picture itself. Errors: there are none."""
        others = np.flatnonzero([digest != picture.digest for digest in self.digests])
        if not len(others):
            raise UsageError("dataset: must have another picture to take patches from, got this one. Use a larger one.")
        return others


def load_donors(model: AnyClassifier, source: ExampleSource, count: int = DONORS, seed: int = 0) -> PatchDonors:
    """Load up to `count` different pictures of a data set. The caller must hold the device. Errors: it has none."""
    pictures: dict[str, Picture] = {}
    for index in draw_indices(source.count, count, seed):
        check_cancelled()
        try:
            one = source.read(index).input
        except ExegesisError:  # a picture that cannot be read gives no patches
            continue
        if isinstance(one, Picture):
            pictures[one.digest] = one
    if not pictures:
        raise UsageError(f"dataset: {source.name} has no pictures that can be read. Name a data set of pictures.")
    encoded = [model.encode(one) for one in pictures.values()]

    def embed(rows: slice) -> torch.Tensor:
        with torch.inference_mode():
            return model.embed(model.collate(encoded[rows]))[:, encoded[0].features]

    chunks = in_chunks(embed, len(encoded), rows_at_once(model, len(encoded[0])))
    return PatchDonors(tuple(pictures), torch.cat(chunks))


def replaced_probabilities(
    model: AnyClassifier, encoded: EncodedInput, donors: PatchDonors, replaced: Bool[np.ndarray, "row patch"],
    chosen: Int[np.ndarray, "row"],
) -> Float[np.ndarray, "row label"]:  # fmt: skip
    """Return the probability of each class (regression: the score) with patches of each row replaced.

    `replaced`: mask of the patches that are taken from the row's donor, `chosen`. The caller must hold the device.
    """
    keep = token_masks(encoded, ~replaced, len(encoded))
    first = int(encoded.features[0])

    def compute(rows: slice) -> np.ndarray:
        batch = model.collate([encoded] * len(keep[rows]))
        own = torch.from_numpy(keep[rows]).to(model.device)[..., None]
        with torch.inference_mode():
            others = donors.embeddings[torch.from_numpy(chosen[rows]).to(model.device)]
            padded = torch.nn.functional.pad(others, (0, 0, first, 0))
            logits = model.logits(batch, torch.where(own, model.embed(batch), padded)).double()
            require_finite(model, "logits", as_float64(logits))
            return as_float64(logits if model.regression else torch.softmax(logits, dim=-1))

    return np.concatenate(in_chunks(compute, len(keep), rows_at_once(model, len(encoded))))


def single_replacements(
    patches: int, draws: Int[np.ndarray, "patch draw"]
) -> tuple[Bool[np.ndarray, "row patch"], Int[np.ndarray, "row"]]:
    """Return one row for each patch and draw: the mask of the replaced patch, and its donor."""
    return np.repeat(np.eye(patches, dtype=bool), draws.shape[1], axis=0), draws.ravel()


def drawn_donors(
    others: Sequence[int] | Int[np.ndarray, "donor"], patches: int, draws: int, generator: np.random.Generator
) -> Int[np.ndarray, "patch draw"]:
    """Draw donors independently for each patch, with replacement."""
    return np.asarray(others)[generator.integers(len(others), size=(patches, draws))]
