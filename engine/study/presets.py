"""Designs to begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.errors import unknown
from engine.registry import explainer
from engine.study.design import QUESTION, Design, MethodChoice


@dataclass(frozen=True)
class Preset:
    """A design that a study can start from, of a model, a data set and a kind of input.

    `note`: where it departs from its source, of a model and a kind of input.
    """

    title: str
    note: Callable[[str, str], str]
    design: Callable[[str, str, str], Design]


def preset(name: str) -> Preset:
    """The preset of that name. Errors list the known ones."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


SMAT_METHODS = ("gradient_x_input", "integrated_gradients", "attention_mean", "smat")
"""Those of SMaT's table 4, the worst first."""
STANDS_IN = "attention_logits"
"""For the learned explainer, on a model that has none."""
_NOTE = (
    "A random placebo and two repeated items are added. Gradients are not squeezed by a softmax as SMaT's were, and "
    "the order is drawn anew for every item."
)
SMAT_STEPS = 50


def smat_methods(model: str, kind: str) -> tuple[str, ...]:
    """The four, where the model has a learned explainer; else what it would begin to learn from stands in for it."""
    return SMAT_METHODS if _learned(model, kind) else (*SMAT_METHODS[:-1], STANDS_IN)


def _learned(model: str, kind: str) -> bool:
    return not explainer(SMAT_METHODS[-1], kind).why_not(model)


def _smat_note(model: str, kind: str) -> str:
    if _learned(model, kind):
        return f"The learned explainer of {model} is the fourth. {_NOTE}"
    return (
        "Attention logits of all layers stand in for SMaT's learned attention, for the model has no learned explainer: "
        f"it is the same formula with the equal weights from which SMaT begins to learn. {_NOTE}"
    )


def _smat(model: str, dataset: str, kind: str) -> Design:
    """The four methods that three volunteers ranked (Fernandes et al., 2022, section 5.2 and appendices A and B)."""
    params: dict[str, dict[str, str | int]] = {"integrated_gradients": {"steps": "fixed", "n_steps": SMAT_STEPS}}
    methods = tuple(MethodChoice(id, params.get(id, {})) for id in smat_methods(model, kind))
    title = "Which explanations do people find plausible?"
    return Design(title, QUESTION, model=model, dataset=dataset, kind=kind, methods=methods)


PRESETS: Mapping[str, Preset] = {
    "smat": Preset(
        "SMaT's four methods",
        _smat_note,
        _smat,
    )
}
