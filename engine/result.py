"""Explanations: frozen and validated, consisting of NumPy arrays and plain metadata.

`pack` and `unpack` convert them to and from cache entries; `explanation_to_json` returns the output of
`exegesis explain --json`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from cache.codec import Arrays, Meta
from engine.format import visible_token
from engine.params import Plain
from engine.request import Input, Prompt


@dataclass(frozen=True)
class Token:
    """One token of the input. `start` and `end` are character offsets into its own text.

    segment: 0 the first text, 1 the second, -1 a special token (drawn gray, never removed, never ranked).
    """

    text: str
    start: int
    end: int
    segment: int
    special: bool


LARGEST_REST = 0.5
"""The largest share of a logit outside the map at which no remark says that most of the relevance lies elsewhere."""


@dataclass(frozen=True)
class Check:
    """The method's own check: the deviation from an identity that it guarantees.

    `value`: the deviation, 0 for a perfect result. `limit`: the largest value that passes. `also`: a second check that
    has to pass too.
    """

    name: str
    value: float
    limit: float
    also: Check | None = None

    @property
    def ok(self) -> bool:
        """Whether all parts of the check pass."""
        return all(part.value <= part.limit for part in self.parts)

    @property
    def parts(self) -> tuple[Check, ...]:
        """This check and that in `also`, each as a separate check."""
        return (self,) if self.also is None else (replace(self, also=None), *self.also.parts)


OTHERS = "other tokens"
"""The label of a language model's last class: all tokens that have no class of their own."""


def predicted_class(values: Any, labels: Sequence[str]) -> Any:
    """Return the index of the largest value along the last axis of an array or tensor.

    `OTHERS` is never predicted, since it stands for many tokens.
    """
    return (values[..., :-1] if labels[-1] == OTHERS else values).argmax(-1)


@dataclass(frozen=True)
class Prediction:
    """Class probabilities and logits; for a regression head one score and no classes."""

    labels: tuple[str, ...]
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    regression: bool = False

    @property
    def index(self) -> int:
        """The predicted class: that of the largest logit (`predicted_class`)."""
        return int(predicted_class(np.array(self.logits), self.labels))

    @property
    def label(self) -> str:
        return self.labels[self.index]

    @property
    def confidence(self) -> float:
        """The probability of the predicted class."""
        return self.probabilities[self.index]

    @property
    def of_two_tokens(self) -> bool:
        """Whether the only classes are a target token and its contrast, whose logit is 0 by definition."""
        return not self.regression and len(self.labels) == 2 and self.logits[1] == 0 and self.labels[1] != OTHERS

    @property
    def class_word(self) -> str:
        """The word for a class: "token" for a language model, else "class"."""
        return "token" if self.of_two_tokens or self.labels[-1] == OTHERS else "class"


def predicted_name(prediction: Prediction) -> str:
    """Return the predicted class as pages show it; of two tokens also the other one: "·are rather than ·is"."""
    name = visible_token(prediction.label)
    if not prediction.of_two_tokens:
        return name
    return f"{name} rather than {visible_token(prediction.labels[1 - prediction.index])}"


def explained_class(example: Input, prediction: Prediction) -> int:
    """Return the class that is explained by default: the prompt's target if it has one, else the predicted class."""
    if isinstance(example, Prompt) and example.contrast is not None:
        return 0
    target = example.target if isinstance(example, Prompt) else None
    if target is None:
        return prediction.index
    return prediction.labels.index(target if target in prediction.labels else f" {target}")


@dataclass(frozen=True)
class Provenance:
    """Everything needed to reproduce the scores."""

    model: str
    revision: str
    method: str
    version: int
    params: Mapping[str, Plain]
    target: int
    target_label: str
    seed: int
    dtype: str
    device: str
    heads: tuple[tuple[int, int, float], ...] = ()
    """Scaled heads as (layer, head, scale), counted from 0; empty by default."""


def _share_held(parts: Mapping[str, float], regression: bool) -> str:
    """Say how much of the logit the map holds. `parts`: relevance by where it ended, as in the extras of `attn_lrp`."""
    tokens, logit = parts["tokens"], parts["logit"]
    whole = "score" if regression else "logit"
    said = f"The map holds {tokens:.3g} of the {whole} of {logit:.3g}"
    if abs(tokens - logit) <= LARGEST_REST * abs(logit):
        return f"{said} ({tokens / logit:.0%})."
    rest = max(("biases", "positions", "softmax"), key=lambda part: abs(parts[part]))
    name = {"softmax": "the softmax of attention"}.get(rest, rest)
    return f"{said}: most of the relevance lies elsewhere, {parts[rest]:.3g} in {name}."


@dataclass(frozen=True)
class Explanation:
    """One attribution: a score per token, with prediction, check, cost and provenance."""

    tokens: tuple[Token, ...]
    scores: Float[np.ndarray, "seq"]
    prediction: Prediction
    provenance: Provenance
    evaluations: int
    seconds: float
    check: Check | None = None
    notes: tuple[str, ...] = ()
    truncated: int = 0
    """Number of tokens that did not fit into the model."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    cached: bool = False
    grid: tuple[int, int] | None = None
    """Rows and columns of the patches of a picture; None for a text."""

    def __post_init__(self) -> None:
        if self.scores.shape != (len(self.tokens),):
            raise ValueError(f"scores: one per token, {len(self.tokens)} expected, got shape {self.scores.shape}")
        if not np.isfinite(self.scores).all():
            raise ValueError(f"scores of {self.provenance.method}: must be finite numbers, got NaN or infinity")
        for part in () if self.check is None else self.check.parts:
            if not math.isfinite(part.value):
                raise ValueError(f"check {part.name}: must be finite, got {part.value}")
        self.scores.setflags(write=False)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and the share of the logit that the map holds if the method redistributes all of it.

        The check of such a method is an accounting identity, which holds no matter how much the tokens receive.
        """
        parts = self.extras.get("relevance")
        return self.notes if parts is None else (*self.notes, _share_held(parts, self.prediction.regression))

    @property
    def kind(self) -> str:
        """The kind of the input, by its id in `engine.input_kinds`."""
        return "text" if self.grid is None else "image"

    @property
    def features(self) -> np.ndarray:
        """Indices of the tokens that can be removed and ranked: all but the special ones."""
        return np.flatnonzero([not t.special for t in self.tokens])

    @property
    def on_grid(self) -> Float[np.ndarray, "row column"]:
        """The scores of the patches, arranged as in the picture. Errors: a text has no grid."""
        if self.grid is None:
            raise ValueError(f"on_grid of {self.provenance.method}: a text has no grid of patches")
        return self.scores[self.features].reshape(self.grid)


def pack(explanation: Explanation) -> tuple[Meta, Arrays]:
    """Split an explanation into JSON metadata and arrays."""
    meta = {
        "tokens": [dataclasses.astuple(t) for t in explanation.tokens],
        "prediction": dataclasses.asdict(explanation.prediction),
        "provenance": _plain_provenance(explanation.provenance),
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "check": None if explanation.check is None else check_to_json(explanation.check),
        "notes": list(explanation.notes),
        "truncated": explanation.truncated,
        "extras": dict(explanation.extras),
        "grid": explanation.grid,
    }
    return meta, {"scores": explanation.scores}


def unpack(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Explanation:
    """Rebuild an explanation from what `pack` returned; it is marked as cached."""
    return Explanation(
        tokens=tuple(Token(*t) for t in meta["tokens"]),
        scores=np.array(arrays["scores"]),
        prediction=unpack_prediction(meta["prediction"]),
        provenance=_provenance(meta["provenance"]),
        evaluations=meta["evaluations"],
        seconds=meta["seconds"],
        check=None if meta["check"] is None else _check(meta["check"]),
        notes=tuple(meta["notes"]),
        truncated=meta["truncated"],
        extras=meta["extras"],
        cached=True,
        grid=tuple(meta["grid"]) if meta.get("grid") else None,
    )


def _check(meta: Mapping[str, Any]) -> Check:
    return Check(**{**meta, "also": _check(meta["also"])}) if "also" in meta else Check(**meta)


def _plain_provenance(provenance: Provenance) -> Meta:
    """Convert to plain values, without `heads` if none is scaled, as in entries that are older than head scaling."""
    plain = dataclasses.asdict(provenance)
    return plain if provenance.heads else {name: value for name, value in plain.items() if name != "heads"}


def _provenance(meta: Mapping[str, Any]) -> Provenance:
    heads = tuple((layer, head, scale) for layer, head, scale in meta.get("heads", ()))
    return Provenance(**{**meta, "heads": heads})


def unpack_prediction(meta: Mapping[str, Any]) -> Prediction:
    """Rebuild a prediction from its `dataclasses.asdict`."""
    return Prediction(tuple(meta["labels"]), tuple(meta["logits"]), tuple(meta["probabilities"]), meta["regression"])


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON: `features` of a text, `grid` and `scores` of a picture."""
    origin, check, prediction = explanation.provenance, explanation.check, explanation.prediction
    return {
        "model": origin.model,
        "revision": origin.revision,
        "method": origin.method,
        "version": origin.version,
        "params": dict(origin.params),
        "prediction": prediction_to_json(explanation),
        "target": origin.target_label,
        **({"contrast": prediction.labels[1 - origin.target]} if prediction.of_two_tokens else {}),
        **({"features": _features(explanation)} if explanation.grid is None else _patches(explanation)),
        "check": None if check is None else {**check_to_json(check), "ok": check.ok},
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "cached": explanation.cached,
        "seed": origin.seed,
        "dtype": origin.dtype,
        "device": origin.device,
        **({"extras": dict(explanation.extras)} if explanation.extras else {}),
        **({"heads": [list(head) for head in origin.heads]} if origin.heads else {}),
        "truncated": explanation.truncated,
        "notes": list(explanation.remarks),
    }


def check_to_json(check: Check) -> dict[str, Any]:
    """Return a check as JSON; `also` is present only if the check has a second one."""
    own: dict[str, Any] = {"name": check.name, "value": check.value, "limit": check.limit}
    return own if check.also is None else {**own, "also": check_to_json(check.also)}


def _features(explanation: Explanation) -> list[dict[str, Any]]:
    """Return one object per token; offsets count characters of its own text."""
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return [
        {
            "text": token.text,
            "start": token.start,
            "end": token.end,
            "score": score,
            "special": token.special,
            "segment": None if token.special else token.segment,
        }
        for token, score in scored
    ]


def _patches(explanation: Explanation) -> dict[str, Any]:
    """Return the grid, the scores of its patches row by row, and those of the special tokens, which are not patches."""
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return {
        "grid": list(explanation.grid or ()),
        "scores": explanation.on_grid.ravel().tolist(),
        "special": [{"text": token.text, "score": score} for token, score in scored if token.special],
    }


def prediction_to_json(explanation: Explanation) -> dict[str, Any]:
    """Return the prediction as JSON. A regression head has a score in place of label and probabilities."""
    prediction = explanation.prediction
    if prediction.regression:
        return {"label": None, "probabilities": None, "score": prediction.logits[0]}
    return {
        "label": prediction.label,
        "probabilities": dict(zip(prediction.labels, prediction.probabilities, strict=True)),
        "score": None,
    }
