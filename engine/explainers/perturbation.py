"""Methods that remove features and measure the probability m: occlusion, LIME and Shapley values.

In texts, single tokens are removed; in pictures, patches, or superpixels that consist of whole patches. The parameters
define how: `removal` names the operator, `groups` returns the features that are removed together.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import UsageError
from engine.explainers import shapley
from engine.models.classifier import EncodedInput
from engine.params import option
from engine.registry import Axes, register
from engine.removal import FeatureGroups, singletons
from engine.removal_operators import OPERATORS, PATCH_OPERATORS
from engine.result import Check
from engine.task import Attribution, Task, TaskItem
from engine.vision.picture import SEGMENTS, EncodedPicture, segment_picture

GAP_LIMIT = 1e-6
_PROBABILITY = "probability of the class"
_SEGMENTS_HELP = "What is removed at a time: single patches, or superpixels (slic) of whole patches"
_N_SEGMENTS_HELP = "Approximate number of superpixels; only for slic"
_LUNDBERG = "Lundberg and Lee (2017), A unified approach, theorem 2; odd surrogate as in Fumagalli et al. (2026)"
_BROKEN = (
    "Most coalitions are broken sentences unlike the training data, so the scores depend on how words are removed."
)
_HOLES = (
    "Most coalitions are pictures full of holes, unlike the training data, so the scores depend on how patches are "
    "removed."
)


@dataclass(frozen=True)
class RemovalParams:
    """Removal of the features of a text one by one."""

    removal: str = option("mask", "How features are removed", choices=OPERATORS)

    def groups(self, example: EncodedInput) -> FeatureGroups:
        """Return the groups of features that are removed together."""
        return singletons(len(example.features))

    @property
    def noun(self) -> str:
        """The name of the groups in errors."""
        return "text's tokens"

    def check_exact(self, groups: Sequence[FeatureGroups]) -> None:
        """Refuse groups whose coalitions are too many to evaluate all of them; for texts, the solver does."""


@dataclass(frozen=True)
class PatchRemovalParams(RemovalParams):
    """Removal of the patches of a picture."""

    removal: str = option("mean", "How patches are removed", choices=PATCH_OPERATORS)


@dataclass(frozen=True)
class SegmentParams(PatchRemovalParams):
    """Removal of the patches of a picture, one by one or by superpixel."""

    segments: str = option("patch", _SEGMENTS_HELP, choices=SEGMENTS)
    n_segments: int = option(24, _N_SEGMENTS_HELP, low=2, high=1000)

    def groups(self, example: EncodedInput) -> FeatureGroups:
        assert isinstance(example, EncodedPicture)
        return segment_picture(example, self.segments, self.n_segments)

    @property
    def noun(self) -> str:
        return f"picture's {self._plural}"

    @property
    def _plural(self) -> str:
        return "patches" if self.segments == "patch" else "superpixels"

    def check_exact(self, groups: Sequence[FeatureGroups]) -> None:
        most, limit = max(group.count for group in groups), shapley.EXACT_LIMIT
        if most <= limit:
            return
        message = f"exact_shapley.segments: must give at most {limit} {self._plural} (2^n evaluations), got {most}"
        if self.segments == "patch":
            raise UsageError(f"{message}. Set segments to slic and n_segments to 9, or use kernel_shap.")
        raise UsageError(f"{message} for n_segments = {self.n_segments}. Lower n_segments, or use kernel_shap.")


@dataclass(frozen=True)
class OcclusionParams(RemovalParams):
    window: int = option(1, "Neighboring tokens removed together", low=1, high=64)


@dataclass(frozen=True)
class PatchOcclusionParams(PatchRemovalParams, OcclusionParams):
    window: int = option(1, "Side, in patches, of the square that is removed at a time", low=1, high=64)


@register(
    "occlusion",
    title="Occlusion",
    family="perturbation",
    params=OcclusionParams,
    axes=Axes("chosen operator, one window at a time", _PROBABILITY, "removal effect"),
    cheap=False,
    citation="Zeiler and Fergus (2014), section 4.2; Li, Monroe and Jurafsky (2016), Erasure",
    caution="Redundant words can each seem unimportant: removing one leaves the other.",
    variants={
        "image": {
            "params": PatchOcclusionParams,
            "axes": Axes("chosen operator, one square of patches at a time", _PROBABILITY, "removal effect"),
            "citation": "Zeiler and Fergus (2014), Visualizing and understanding convolutional networks, section 4.2",
            "caution": "Redundant patches can each seem unimportant: removing one leaves the others.",
        }
    },
)
def occlusion(task: Task, params: OcclusionParams) -> list[Attribution]:
    """`m(x) - m(x without i)`, in probability, signed; with a window, the mean over the windows that hold i."""
    covers = [windows(e.grid or (len(e.features),), params.window) for e in task.examples]
    masks = [np.vstack([np.ones((1, cover.shape[1]), dtype=bool), ~cover]) for cover in covers]
    attributions = []
    for item, cover, value in zip(task.items, covers, task.masked_values(masks, params.removal), strict=True):
        scores = cover.T @ (value[0] - value[1:]) / cover.sum(0)
        attributions.append(Attribution(at_features(item, scores), len(value)))
    return attributions


def windows(shape: tuple[int, ...], width: int) -> Bool[np.ndarray, "window feature"]:
    """Return every window of `width` neighboring features along each axis; a shorter axis is a single window.

    The features of a text lie along one axis, the patches of a picture row by row in a grid.
    """

    def along_axis(n: int) -> Bool[np.ndarray, "window feature"]:
        starts = np.arange(n - min(width, n) + 1)[:, None]
        place = np.arange(n)[None, :]
        return (place >= starts) & (place < starts + width)

    return functools.reduce(np.kron, map(along_axis, shape))


@dataclass(frozen=True)
class LimeParams(RemovalParams):
    n_samples: int = option(512, "Number of perturbed texts, including the original", low=2, high=20_000)
    kernel_width: float = option(25.0, "Width of the similarity kernel", low=0.1, high=1000)
    ridge: float = option(1.0, "Penalty of the ridge regression", low=0, high=1000)


@dataclass(frozen=True)
class PatchLimeParams(SegmentParams, LimeParams):
    n_samples: int = option(2048, "Number of perturbed pictures, including the original", low=2, high=20_000)


@register(
    "lime",
    title="LIME",
    family="perturbation",
    params=LimeParams,
    axes=Axes("chosen operator, many words at a time", _PROBABILITY, "local linear model"),
    cheap=False,
    citation="Ribeiro, Singh and Guestrin (2016), 'Why should I trust you?', eq. 1 and 2",
    caution="Another seed gives other samples: compare two seeds before trusting small differences.",
    variants={
        "image": {
            "params": PatchLimeParams,
            "axes": Axes("chosen operator, many parts at a time", _PROBABILITY, "local linear model"),
            "citation": "Ribeiro, Singh and Guestrin (2016), 'Why should I trust you?', eq. 1 and 2, section 3.6",
            "caution": "Another seed gives other samples: compare two seeds before trusting small differences.",
        }
    },
)
def lime(task: Task, params: LimeParams) -> list[Attribution]:
    """Coefficients of the local linear model of m, in probability, signed; a superpixel's is shared by its patches.

    As the lime package on text, by position: the number of removed groups is uniform on 1..n, then which. Equal
    inputs are evaluated once. Of 64 patches 2,048 draws still leave something to chance (maps of two seeds correlate by
    0.7 to 0.9 on scenes-vit), of 24 superpixels 1,024 leave little (0.9 to 1), but a superpixel cannot tell which of
    its patches matters.
    """
    groups = [params.groups(example) for example in task.examples]
    draws = [
        draw_samples(g.count, params.n_samples, item.generator()) for g, item in zip(groups, task.items, strict=True)
    ]
    unique = [np.unique(draw, axis=0, return_inverse=True) for draw in draws]
    masks = [group.features(rows) for group, (rows, _) in zip(groups, unique, strict=True)]
    attributions = []
    for i, value in enumerate(task.masked_values(masks, params.removal)):
        weights = proximity(draws[i], params.kernel_width)
        slopes = weighted_ridge(draws[i], value[unique[i][1].ravel()], weights, params.ridge)
        attributions.append(Attribution(at_features(task.items[i], groups[i].shared_out(slopes)), len(value)))
    return attributions


def draw_samples(n: int, count: int, generator: np.random.Generator) -> Bool[np.ndarray, "sample feature"]:
    """Draw masks: the whole input, then `count - 1` times the input with 1 to n of its n groups removed."""
    removed = generator.integers(1, n + 1, size=count - 1)
    ranks = generator.random((count - 1, n)).argsort(axis=1).argsort(axis=1)
    return np.vstack([np.ones((1, n), dtype=bool), ranks >= removed[:, None]])


def proximity(keep: Bool[np.ndarray, "sample feature"], width: float) -> Float[np.ndarray, "sample"]:
    """Return `sqrt(exp(-d²/w²))` with the cosine distance `d = 100 (1 - sqrt(kept/n))` to the whole input."""
    distance = 100 * (1 - np.sqrt(keep.mean(axis=1)))
    return np.sqrt(np.exp(-(distance**2) / width**2))


def weighted_ridge(
    keep: Bool[np.ndarray, "sample feature"],
    values: Float[np.ndarray, "sample"],
    weights: Float[np.ndarray, "sample"],
    penalty: float,
) -> Float[np.ndarray, "feature"]:
    """Return the coefficients of `min sum w (y - b - Xa)² + penalty |a|²`; the intercept b is not penalized."""
    total = weights.sum()
    x = keep - weights @ keep / total
    y = values - weights @ values / total
    gram = x.T @ (weights[:, None] * x) + penalty * np.eye(x.shape[1])
    return np.linalg.lstsq(gram, x.T @ (weights * y), rcond=None)[0]


@dataclass(frozen=True)
class KernelShapParams(RemovalParams):
    n_samples: int = option(
        512, "Maximum number of model evaluations; fewer if there are fewer coalitions", low=4, high=100_000
    )


@dataclass(frozen=True)
class PatchKernelShapParams(SegmentParams, KernelShapParams):
    n_samples: int = option(
        2048, "Maximum number of model evaluations; fewer if there are fewer coalitions", low=4, high=100_000
    )


@register(
    "kernel_shap",
    title="Kernel SHAP",
    family="perturbation",
    params=KernelShapParams,
    axes=Axes("chosen operator, coalitions of words", _PROBABILITY, "Shapley value"),
    cheap=False,
    version=3,
    citation=_LUNDBERG,
    caution=_BROKEN,
    variants={
        "image": {
            "params": PatchKernelShapParams,
            "axes": Axes("chosen operator, coalitions of parts", _PROBABILITY, "Shapley value"),
            "caution": _HOLES,
        }
    },
)
def kernel_shap(task: Task, params: KernelShapParams) -> list[Attribution]:
    """Estimated Shapley values of m, in probability, signed; they sum to m(x) - m(all removed) exactly.

    The value of a superpixel is shared equally by its patches. The estimator is `engine.explainers.shapley`.
    """
    groups = [params.groups(example) for example in task.examples]
    plans = [
        shapley.plan(
            group.count,
            max(params.n_samples, shapley.least_budget(group.count)),
            int(item.generator().integers(2**31)),
        )
        for item, group in zip(task.items, groups, strict=True)
    ]
    masks = [group.features(plan.keep) for group, plan in zip(groups, plans, strict=True)]
    attributions = []
    for i, value in enumerate(task.masked_values(masks, params.removal)):
        estimate = shapley.solve(plans[i], value, probabilities=not task.model.regression)
        least, notes = shapley.least_budget(groups[i].count), estimate.notes
        if params.n_samples < least:
            notes += (f"{least} evaluations were used, the minimum for this {params.noun}.",)
        change = value[0] - value[len(plans[i].pairs)]
        phi = groups[i].shared_out(estimate.phi)
        attributions.append(additive(task.items[i], phi, change, estimate.evaluations, notes))
    return attributions


@dataclass(frozen=True)
class PatchExactShapleyParams(SegmentParams):
    segments: str = option("slic", _SEGMENTS_HELP, choices=SEGMENTS)
    n_segments: int = option(9, _N_SEGMENTS_HELP, low=2, high=shapley.EXACT_LIMIT)


@register(
    "exact_shapley",
    title="Exact Shapley values",
    family="perturbation",
    params=RemovalParams,
    axes=Axes("chosen operator, all coalitions of words", _PROBABILITY, "Shapley value"),
    cheap=False,
    citation="Shapley (1953), A value for n-person games, eq. 13",
    caution=_BROKEN,
    variants={
        "image": {
            "params": PatchExactShapleyParams,
            "axes": Axes("chosen operator, all coalitions of parts", _PROBABILITY, "Shapley value"),
            "caution": _HOLES,
        }
    },
)
def exact_shapley(task: Task, params: RemovalParams) -> list[Attribution]:
    """Shapley values of m from all 2^n coalitions of n <= 14 words, superpixels or patches, in probability, signed."""
    groups = [params.groups(example) for example in task.examples]
    params.check_exact(groups)
    return [_exact_values(task, item, group, params.removal) for item, group in zip(task.items, groups, strict=True)]


def _exact_values(task: Task, item: TaskItem, group: FeatureGroups, removal: str) -> Attribution:
    values = np.zeros(0)

    def evaluate(keep: np.ndarray) -> np.ndarray:
        nonlocal values
        values = Task(task.model, [item]).masked_values([group.features(keep)], removal)[0]
        return values

    phi = group.shared_out(shapley.exact(group.count, evaluate))
    return additive(item, phi, values[-1] - values[0], len(values), ())


def additive(
    item: TaskItem, phi: Float[np.ndarray, "feature"], change: float, evaluations: int, notes: tuple[str, ...]
) -> Attribution:
    """Return Shapley values with a check that they sum to the change of m."""
    scores = at_features(item, phi)
    gap = abs(float(scores.sum()) - float(change))
    return Attribution(scores, evaluations, Check("additivity gap", gap, GAP_LIMIT), notes)


def at_features(item: TaskItem, scores: Float[np.ndarray, "feature"]) -> Float[np.ndarray, "seq"]:
    """Place the scores of the features at their positions; special tokens get 0."""
    spread = np.zeros(len(item.encoded))
    spread[item.encoded.features] = scores
    return spread
