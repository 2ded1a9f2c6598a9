"""What a classifier answers: logits as predictions, and the class that a request means."""

from __future__ import annotations

from jaxtyping import Float

from engine.errors import UsageError, unknown
from engine.late import torch
from engine.result import Prediction


def predictions(
    logits: Float[torch.Tensor, "batch label"], labels: tuple[str, ...], regression: bool = False
) -> list[Prediction]:
    """Logits and probabilities as plain numbers, computed in double precision from the model's logits."""
    wide = logits.double().cpu()
    shares = wide if regression else torch.softmax(wide, dim=-1)
    return [
        Prediction(labels, tuple(row.tolist()), tuple(share.tolist()), regression)
        for row, share in zip(wide, shares, strict=True)
    ]


def target_index(target: int | str | None, prediction: Prediction) -> int:
    """The class to explain: an index, a label, or the predicted one. A regression head has only its score."""
    labels = prediction.labels
    if target is None or (prediction.regression and target in (0, "0", labels[0])):
        return prediction.index
    if isinstance(target, str) and target in labels:
        return labels.index(target)
    if str(target) in map(str, range(len(labels))):
        return int(target)
    numbers = f"a number from 0 to {len(labels) - 1}" if len(labels) > 1 else "0"
    raise UsageError(f"{unknown('target', target, labels)} Or {numbers}.")
