"""Shapley values of a picture's patches or superpixels: estimated within a budget, or exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import UsageError
from engine.explainers import shapley
from engine.explainers.pictures.parts import N_SEGMENTS_HELP, SEGMENTS_HELP, picture_parts, plural
from engine.explainers.shap import KernelShapParams, estimates, exact_values
from engine.operators import PATCH_OPERATORS
from engine.params import option
from engine.parts import Parts
from engine.registry import Axes, register
from engine.task import Attribution, Task
from engine.vision.segments import SEGMENTS

_SUMMARY = "Shapley value"
_CAUTION = (
    "Most coalitions are pictures full of holes that the model never saw: the scores depend on how patches are removed."
)


@dataclass(frozen=True)
class PictureKernelShapParams(KernelShapParams):
    removal: str = option("mean", "How patches are removed", choices=PATCH_OPERATORS)
    n_samples: int = option(2048, "Model evaluations; all coalitions when they are fewer", low=4, high=100_000)
    segments: str = option("patch", SEGMENTS_HELP, choices=SEGMENTS)
    n_segments: int = option(24, N_SEGMENTS_HELP, low=2, high=1000)


@dataclass(frozen=True)
class PictureExactShapleyParams:
    removal: str = option("mean", "How patches are removed", choices=PATCH_OPERATORS)
    segments: str = option("slic", SEGMENTS_HELP, choices=SEGMENTS)
    n_segments: int = option(9, N_SEGMENTS_HELP, low=2, high=shapley.EXACT_LIMIT)


@register(
    "kernel_shap",
    title="Kernel SHAP",
    family="perturbation",
    params=PictureKernelShapParams,
    inputs=("image",),
    axes=Axes("chosen operator, coalitions of parts", "probability of the class", _SUMMARY),
    cheap=False,
    version=2,
    citation="Lundberg and Lee (2017), A unified approach, theorem 2; odd surrogate as in Fumagalli et al. (2026)",
    caution=_CAUTION,
)
def kernel_shap(task: Task, params: PictureKernelShapParams) -> list[Attribution]:
    """Estimated Shapley values of m, in probability, signed; they sum to m(x) - m(all removed) exactly.

    The value of a superpixel is shared equally by its patches.
    """
    return estimates(
        task, picture_parts(task, params.segments, params.n_segments), params, f"picture's {plural(params.segments)}"
    )


@register(
    "exact_shapley",
    title="Exact Shapley values",
    family="perturbation",
    params=PictureExactShapleyParams,
    inputs=("image",),
    axes=Axes("chosen operator, all coalitions of parts", "probability of the class", _SUMMARY),
    cheap=False,
    citation="Shapley (1953), A value for n-person games, eq. 13",
    caution=_CAUTION,
)
def exact_shapley(task: Task, params: PictureExactShapleyParams) -> list[Attribution]:
    """Shapley values of m from all 2^n coalitions of n <= 14 superpixels or patches, in probability, signed."""
    parts = picture_parts(task, params.segments, params.n_segments)
    _check_count(parts, params)
    return exact_values(task, parts, params.removal)


def _check_count(parts: Sequence[Parts], params: PictureExactShapleyParams) -> None:
    most = max(part.count for part in parts)
    if most <= shapley.EXACT_LIMIT:
        return
    told = (
        f"exact_shapley.segments: must give at most {shapley.EXACT_LIMIT} {plural(params.segments)} (2^n evaluations)"
    )
    if params.segments == "patch":
        raise UsageError(f"{told}, got {most}. Set segments to slic and n_segments to 9, or use kernel_shap.")
    raise UsageError(f"{told}, got {most} for n_segments = {params.n_segments}. Lower n_segments, or use kernel_shap.")
