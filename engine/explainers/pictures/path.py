"""Integrated gradients on patches."""

from __future__ import annotations

from dataclasses import dataclass

from engine.explainers.path import IGParams, integrated_gradients
from engine.operators import PATCH_BASELINES
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task


@dataclass(frozen=True)
class PictureIGParams(IGParams):
    baseline: str = option("mean", "Where the path starts: what stands for a removed patch", choices=PATCH_BASELINES)


@register(
    "integrated_gradients",
    title="Integrated gradients",
    family="gradients",
    params=PictureIGParams,
    version=2,
    inputs=("image",),
    axes=Axes("baseline picture, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    citation="Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1",
    caution="The scores depend on the baseline: what already has its colour in the picture counts little.",
)
def picture_integrated_gradients(task: Task, params: PictureIGParams) -> list[Attribution]:
    """As for texts, along the patch embeddings, in logits, signed; sums to f(x) - f(x') but for the gap.

    A patch embedding is linear in its pixels, so with the baselines `mean` and `blur` this is the path integral at
    the pixels, summed in the patch. `zero`, the zero embedding, is no picture.
    """
    return integrated_gradients(task, params)
