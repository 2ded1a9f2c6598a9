"""Removal of features, shared by LIME, SHAP, occlusion, the baseline of IG and the faithfulness metrics.

Texts: `mask` replaces a token by the mask token (models without one: pad, else end of text), `pad` by the pad token,
`zero` and `mean` by the zero or the mean word embedding. `delete` takes the token out: the model reads the sequence
without it, and later tokens move up. `hide` keeps the position, with the zero embedding, and hides it from attention; a
causal model whose last token is hidden still reads the head there. Patches: `mean` replaces a patch by one of the mean
color, `zero` by the zero embedding, `blur` by the blurred patch. `drop` hides the position, which is equivalent to
taking the patch out: heads read special tokens or the mean of the remaining patches, and these keep their position
embeddings. Models whose windows need every patch (Swin) refuse it.

Special tokens are always kept. All operators but `delete` keep the positions. Features may be removed in groups, such
as the patches of a superpixel (`FeatureGroups`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.input_kinds import check_removal
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.models.past import SharedPrefix
from engine.passes import ChangedRows, in_passes
from engine.removal_operators import DELETE, HIDING


def removed(
    model: AnyClassifier, batch: Any, keep: Bool[torch.Tensor, "batch seq"], operator: str
) -> tuple[Any, Float[torch.Tensor, "batch left d_model"]]:
    """Return the batch and its embeddings without the positions outside `keep`; `delete` leaves fewer positions."""
    if operator == DELETE:
        return _deleted(model, batch, keep)
    embeds = model.embed(batch)
    # A hidden position also gets the zero embedding: a causal model reads its last position, hidden or not.
    blank = model.removal_embedding(batch, "zero" if operator in HIDING else operator)
    embeds = torch.where(keep[..., None], embeds, blank)
    if operator not in HIDING:
        return batch, embeds
    visible = batch.visible & keep
    return dataclasses.replace(batch, visible=visible, whole=batch.whole and bool(keep.all())), embeds


def _deleted(
    model: AnyClassifier, batch: Any, keep: Bool[torch.Tensor, "batch seq"]
) -> tuple[Any, Float[torch.Tensor, "batch left d_model"]]:
    """Return the sequences without the removed tokens, padded on the right.

    If nothing is left, since there are no special tokens, the sequence is the replacement of a masked token: GPT-2's
    end of text, with which its texts begin.
    """
    left = batch.visible & keep
    lengths = left.sum(1)
    at_least_one = lengths.clamp(min=1)
    order = (~left).int().argsort(dim=1, stable=True)[:, : int(at_least_one.max())]
    visible = torch.arange(order.shape[1], device=order.device) < at_least_one[:, None]
    moved = dataclasses.replace(batch.gather(order), visible=visible, lengths=at_least_one, whole=False)
    nothing = (lengths == 0)[:, None, None]
    return moved, torch.where(nothing, model.removal_embedding(batch, "mask"), model.embed(moved))


def token_masks(
    encoded: EncodedInput, kept: Bool[np.ndarray, "row feature"], width: int
) -> Bool[np.ndarray, "row seq"]:
    """Convert masks over features to masks over positions; special tokens and padding are always kept."""
    keep = np.ones((len(kept), width), dtype=bool)
    keep[:, encoded.features] = kept
    return keep


def coalition_values(
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    targets: Sequence[int],
    index: Int[np.ndarray, "row"],
    keep: Bool[np.ndarray, "row seq"],
    operator: str,
) -> Float[np.ndarray, "row"]:
    """Return m of each row: the probability of its target (regression: the score) without features outside `keep`.

    Rows of several examples share passes; `index` is the example of each row.
    """
    return coalition_quantities(model, examples, targets, index, keep, operator)[:, 0]


def coalition_quantities(
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    targets: Sequence[int],
    index: Int[np.ndarray, "row"],
    keep: Bool[np.ndarray, "row seq"],
    operator: str,
) -> Float[np.ndarray, "row 2"]:
    """Return m, as in `coalition_values`, and f, the logit of the target, from the same passes.

    Both are the score of a regression.
    """
    classes = np.asarray(targets)[index]

    def read(logits: torch.Tensor, rows: Int[np.ndarray, "_"]) -> torch.Tensor:
        of_row = torch.from_numpy(classes[rows]).to(model.device)
        targeted = logits.gather(1, of_row[:, None])[:, 0]
        return torch.stack([target_values(model, logits, of_row), targeted], dim=1)

    return _evaluate(model, examples, index, keep, operator, read)


def coalition_probabilities(
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    index: Int[np.ndarray, "row"],
    keep: Bool[np.ndarray, "row seq"],
    operator: str,
) -> Float[np.ndarray, "row label"]:
    """Return the probability of each class (regression: the score) of each row without features outside `keep`.

    Rows of several examples share passes; `index` is the example of each row.
    """

    def read(logits: torch.Tensor, _: Int[np.ndarray, "_"]) -> torch.Tensor:
        return logits if model.regression else torch.softmax(logits, dim=-1)

    return _evaluate(model, examples, index, keep, operator, read)


def _evaluate(
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    index: Int[np.ndarray, "row"],
    keep: Bool[np.ndarray, "row seq"],
    operator: str,
    read: Callable[[torch.Tensor, Int[np.ndarray, "_"]], torch.Tensor],
) -> Float[np.ndarray, "row value"]:
    """Return the values that `read` computes from the logits (in double precision) and the row indices of each pass."""
    check_removal(operator, model.kind)

    def compute(rows: Int[np.ndarray, "_"], past: SharedPrefix | None) -> np.ndarray:
        batch = model.collate([examples[i] for i in index[rows]])
        kept = torch.from_numpy(keep[rows, : batch.visible.shape[1]]).to(model.device)
        if past is not None:
            kept = kept.gather(1, past.following(batch.lengths).clamp(max=kept.shape[1] - 1))
            batch = batch.after(past)
        with torch.inference_mode():
            return as_float64(read(model.logits(*removed(model, batch, kept, operator)).double(), rows))

    def begin(rows: Int[np.ndarray, "_"], count: int) -> tuple[Any, torch.Tensor]:
        batch = model.collate([examples[i] for i in index[rows]]).first(count)
        kept = torch.from_numpy(keep[rows, :count]).to(model.device)
        with torch.inference_mode():
            return removed(model, batch, kept, operator)

    return in_passes(model, examples, _changed_rows(examples, index, keep, operator), compute, begin)


def _changed_rows(
    examples: Sequence[EncodedInput], index: Int[np.ndarray, "row"], keep: Bool[np.ndarray, "row seq"], operator: str
) -> ChangedRows:
    whole = np.array([len(example) for example in examples])[index]
    inside = np.arange(keep.shape[1]) < whole[:, None]
    gone = inside & ~keep
    lengths = (inside & keep).sum(1).clip(min=1) if operator == DELETE else whole
    first = np.where(gone.any(1), gone.argmax(1), whole)
    # No common prefixes: `delete` moves later positions, and hidden positions must not be attended to by later ones.
    kept = None if operator == DELETE or operator in HIDING else keep
    return ChangedRows(index, np.minimum(first, lengths - 1), lengths, kept)


def target_values(
    model: AnyClassifier, logits: Float[torch.Tensor, "batch label"], targets: Int[torch.Tensor, "batch"]
) -> Float[torch.Tensor, "batch"]:
    """Return m: the probability of each row's target in double precision; for a regression head the score itself."""
    wide = logits.double()
    shares = wide if model.regression else torch.softmax(wide, dim=-1)
    return shares.gather(1, targets[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """The group of each feature of one input, numbered from 0 without gaps."""

    of_feature: Int[np.ndarray, "feature"]

    @property
    def count(self) -> int:
        return int(self.of_feature.max()) + 1

    @cached_property
    def sizes(self) -> Int[np.ndarray, "group"]:
        """Features in each group, at least one."""
        return np.bincount(self.of_feature)

    def features(self, kept: Bool[np.ndarray, "row group"]) -> Bool[np.ndarray, "row feature"]:
        """Expand masks over groups to masks over features."""
        return kept[:, self.of_feature]

    def shared_out(self, scores: Float[np.ndarray, "group"]) -> Float[np.ndarray, "feature"]:
        """Share the score of each group equally among its features; the sum over the input stays the same."""
        return (scores / self.sizes)[self.of_feature]


def singletons(n: int) -> FeatureGroups:
    """Return n groups of one feature each."""
    return FeatureGroups(np.arange(n))
