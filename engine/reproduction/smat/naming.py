"""What tasks, settings, normalisations and sides are called in a report."""

from __future__ import annotations

TASKS = {"text": "texts", "image": "pictures", "regression": "scores"}
SETTINGS = {
    "gradient_l2": "gradient L2 norm",
    "gradient_x_input": "gradient x input",
    "integrated_gradients": "integrated gradients",
    "attention_logits": "attention, all layers",
    "attention_logits_last": "attention, last layer",
    "smat": "SMaT",
    "best_layer": "best layer, chosen by the labels",
    "best_head": "best head, chosen by the labels",
    "active_heads": "mean of the active heads",
    "inactive_heads": "mean of the inactive heads",
}
UNTAUGHT = "no explanations"
NORMALISATIONS = {"sparsemax": "sparsemax", "softmax": "softmax", "entmax15": "entmax-1.5", "none": "no normalisation"}
SIDES = {"first": "first texts", "second": "second texts"}
MEASURES = {
    "simulability": "median simulability",
    "auc": "mean AUC",
    "active_share": "median share of active heads",
    "depth": "median of the mean layer of the weight",
}
_NAMES = {**TASKS, **SETTINGS, **NORMALISATIONS, **SIDES}


def named(word: str) -> str:
    """What a claim goes through, in words. `none` is the normalisation: no claim goes through the setting."""
    return _NAMES.get(word, word)


def setting_named(id: str) -> str:
    return SETTINGS.get(id, UNTAUGHT)


def size_named(count: int) -> str:
    return f"{count:,} examples"
