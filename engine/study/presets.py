"""Designs to begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import unknown
from engine.study.design import QUESTION, Design, MethodChoice


@dataclass(frozen=True)
class Preset:
    """A design that a study can start from. `note` says where it departs from its source."""

    title: str
    note: str
    design: Callable[[str, str, str], Design]


def preset(name: str) -> Preset:
    """The preset of that name. Errors list the known ones."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


SMAT_METHODS = ("gradient_x_input", "integrated_gradients", "attention_mean", "attention_logits")
"""Those of SMaT's table 4, the worst first; the last stands in for its learned explainer."""
SMAT_STEPS = 50


def _smat(model: str, dataset: str, kind: str) -> Design:
    """The four methods that three volunteers ranked (Fernandes et al., 2022, section 5.2 and appendices A and B)."""
    params: dict[str, dict[str, str | int]] = {"integrated_gradients": {"steps": "fixed", "n_steps": SMAT_STEPS}}
    methods = tuple(MethodChoice(id, params.get(id, {})) for id in SMAT_METHODS)
    title = "Which explanations do people find plausible?"
    return Design(title, QUESTION, model=model, dataset=dataset, kind=kind, methods=methods)


PRESETS: Mapping[str, Preset] = {
    "smat": Preset(
        "SMaT's four methods",
        "Attention logits of all layers stand in for SMaT's learned attention: it is the same formula with the equal "
        "weights from which SMaT begins to learn. A random placebo and two repeated items are added. Gradients are "
        "not squeezed by a softmax as SMaT's were, and the order is drawn anew for every item.",
        _smat,
    )
}
