"""For each registered explainer: its closed form on a linear model, or why there is none, and its slow oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.params import Plain
from tests.oracles import captum, empirical, lrp_models, relevance, text, tuned
from tests.oracles.text import World

NO_ATTENTION = "the linear model has no attention to read"


@dataclass(frozen=True)
class Line:
    """The linear model on one text: score = b + sum_i w . x_i; `x` and `removed` are word embeddings."""

    w: np.ndarray
    x: np.ndarray
    removed: np.ndarray
    special: np.ndarray

    @property
    def change(self) -> np.ndarray:
        """w . (x_i - removed), zero for special tokens: what every removal-based method must find."""
        return np.where(self.special, 0.0, (self.x - self.removed) @ self.w)


@dataclass(frozen=True)
class Entry:
    """`params` are those at which the closed form is exact, `slow_params` those that the slow oracle has."""

    linear: Callable[[Line], np.ndarray] | str
    slow: Callable[[World], np.ndarray]
    params: Mapping[str, Plain] = field(default_factory=dict)
    slow_params: Mapping[str, Plain] = field(default_factory=dict)


def _everywhere(value: Callable[[Line], float]) -> Callable[[Line], np.ndarray]:
    return lambda line: np.full(len(line.x), value(line))


def _change(line: Line) -> np.ndarray:
    return line.change


ORACLES: dict[str, Entry] = {
    "gradient": Entry(_everywhere(lambda line: line.w.sum()), text.gradient),
    "gradient_l2": Entry(_everywhere(lambda line: float(np.linalg.norm(line.w))), text.gradient_l2),
    "gradient_x_input": Entry(lambda line: line.x @ line.w, text.gradient_x_input),
    "integrated_gradients": Entry(_change, text.integrated_gradients, slow_params={"steps": "fixed", "n_steps": 200}),
    "smoothgrad": Entry(_everywhere(lambda line: float(np.linalg.norm(line.w))), text.smoothgrad),
    "occlusion": Entry(_change, text.occlusion),
    # The ridge pulls towards zero, so that only without it the linear model comes back.
    "lime": Entry(_change, text.lime, params={"ridge": 0}),
    "kernel_shap": Entry(_change, text.shapley),
    "exact_shapley": Entry(_change, text.shapley),
    "attention_mean": Entry(NO_ATTENTION, text.attention_mean),
    "attention_last_layer": Entry(NO_ATTENTION, text.attention_last_layer),
    "attention_head": Entry(NO_ATTENTION, text.attention_head),
    "attention_logits": Entry(NO_ATTENTION, text.attention_logits),
    "attention_logits_last": Entry(NO_ATTENTION, text.attention_logits_last),
    "smat": Entry(NO_ATTENTION, text.smat),
    "attention_rollout": Entry(NO_ATTENTION, text.attention_rollout),
    "attention_x_gradient": Entry(NO_ATTENTION, relevance.attention_x_gradient),
    "attn_lrp": Entry("the linear model has no layers to hand relevance through", lrp_models.attn_lrp),
    "ensemble_all": Entry(f"two of its members read attention, and {NO_ATTENTION}", text.ensemble_all),
    "ensemble_top3": Entry(lambda line: line.change / np.abs(line.change).sum(), text.ensemble_top3),
    "deep_lift": Entry(_change, captum.deep_lift),
    "deep_lift_shap": Entry("its baselines are several; that of each is deep_lift's", captum.deep_lift_shap),
    "gradient_shap": Entry("its baselines are drawn at random", captum.gradient_shap),
    "guided_backprop": Entry(_everywhere(lambda line: float(np.linalg.norm(line.w))), captum.guided_backprop),
    "deconvolution": Entry(_everywhere(lambda line: float(np.linalg.norm(line.w))), captum.deconvolution),
    "feature_ablation": Entry(_change, captum.feature_ablation),
    "shapley_sampling": Entry(_change, captum.shapley_sampling),
    "bee": Entry("its baseline depends on a metric; from each it is integrated_gradients'", tuned.bee),
    "least_complex": Entry(lambda line: line.change / np.abs(line.change).sum(), tuned.least_complex),
    "least_sensitive": Entry("it is kernel_shap's of points around the text", tuned.least_sensitive),
    "empirical": Entry("its weights are trained; a test trains them on the linear model", empirical.empirical),
    "random": Entry("it does not look at the model", text.random),
}
