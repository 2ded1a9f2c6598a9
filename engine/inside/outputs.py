"""Outputs that the logit lens and patching read: the classes of a classifier, or all tokens of a causal model."""

from __future__ import annotations

import dataclasses

from jaxtyping import Float

from engine import runtime
from engine.errors import UsageError, excerpt
from engine.input_kinds import load_classifier
from engine.lazy import torch
from engine.models.causal import CausalModel, EncodedPrompt
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.request import Example


def load_text_model(model: str, dtype: str) -> TextClassifier:
    """Return the shared, read-only model. The caller holds the device."""
    loaded = load_classifier(Example.kind, model, dtype, runtime.device())
    assert isinstance(loaded, TextClassifier)
    return loaded


def outputs(model: TextClassifier, batch: TextBatch) -> Float[torch.Tensor, "batch output"]:
    """Return the logits of the classes; for a causal model, those of the next token over the whole vocabulary."""
    return model.next_logits(batch) if isinstance(model, CausalModel) else model.logits(batch)


def output_label(model: TextClassifier, output: int) -> str:
    """Return the name of a class, or the unmodified text of a token."""
    return model.token_text(output) if isinstance(model, CausalModel) else model.labels[output]


def chosen_output(
    model: TextClassifier, encoded: EncodedText, target: int | str | None, logits: Float[torch.Tensor, "1 output"]
) -> int:
    """Return the output that is explained. Default: the target of a prompt, or the predicted output."""
    if isinstance(model, CausalModel) and isinstance(encoded, EncodedPrompt):
        return int(encoded.candidates[encoded.target or 0]) if target is None else model.token_id(str(target))
    return model.target_index(target, model.predictions(logits, [encoded])[0], encoded)


def contrast_output(
    model: TextClassifier, contrast: int | str | None, target: int, logits: Float[torch.Tensor, "1 output"]
) -> int | None:
    """Return the output that the target is compared with; None for a score. Default: the highest other logit."""
    if logits.shape[1] == 1:
        return None
    if contrast is None:
        return int(logits[0].index_fill(0, torch.tensor([target], device=logits.device), -torch.inf).argmax())
    if isinstance(model, CausalModel):
        chosen = model.token_id(str(contrast), "contrast")
    elif contrast in model.labels:
        chosen = model.labels.index(str(contrast))
    else:
        raise UsageError(f"contrast: must be one of {', '.join(model.labels)}, got {excerpt(contrast)}.")
    if chosen == target:
        raise UsageError(f"contrast: must differ from the target, got {excerpt(contrast)} twice. Choose another one.")
    return chosen


def first_token(encoded: EncodedText) -> EncodedText:
    """Return the input cut to its first position, the shortest input that the model reads."""
    return dataclasses.replace(encoded, ids=encoded.ids[:1], types=encoded.types[:1], tokens=encoded.tokens[:1])
