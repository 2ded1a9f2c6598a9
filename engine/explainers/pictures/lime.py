"""LIME on pictures: a weighted ridge regression on randomly removed superpixels or patches."""

from __future__ import annotations

from dataclasses import dataclass

from engine.explainers.lime import LimeParams, local_models
from engine.explainers.pictures.parts import N_SEGMENTS_HELP, SEGMENTS_HELP, picture_parts
from engine.operators import PATCH_OPERATORS
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task
from engine.vision.segments import SEGMENTS


@dataclass(frozen=True)
class PictureLimeParams(LimeParams):
    removal: str = option("mean", "How patches are removed", choices=PATCH_OPERATORS)
    n_samples: int = option(2048, "Perturbed pictures, the whole picture included", low=2, high=20_000)
    segments: str = option("patch", SEGMENTS_HELP, choices=SEGMENTS)
    n_segments: int = option(24, N_SEGMENTS_HELP, low=2, high=1000)


@register(
    "lime",
    title="LIME",
    family="perturbation",
    params=PictureLimeParams,
    inputs=("image",),
    axes=Axes("chosen operator, many parts at a time", "probability of the class", "local linear model"),
    cheap=False,
    citation="Ribeiro, Singh and Guestrin (2016), 'Why should I trust you?', eq. 1 and 2, section 3.6",
    caution="Another seed removes other parts: compare two seeds before you trust small differences.",
)
def lime(task: Task, params: PictureLimeParams) -> list[Attribution]:
    """Coefficients of the local linear model of m, in probability, signed; a superpixel's is shared by its patches.

    As on text: the number of removed parts is uniform on 1..n, then which. Equal pictures are evaluated once. Of
    64 patches 2,048 draws still leave something to chance (maps of two seeds correlate by 0.7 to 0.9 on scenes-vit), of
    24 superpixels 1,024 leave little (0.9 to 1), but a superpixel cannot tell which of its patches matters.
    """
    return local_models(task, picture_parts(task, params.segments, params.n_segments), params)
