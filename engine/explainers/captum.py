"""Methods of Captum (Kokhlikyan et al., 2020) on the models of this project, for texts and pictures.

Captum is given a module that maps embeddings and row indices to logits, or a function of removal masks, so its methods
use the same batches, removal operators, memory limits and cancellation as all others. Its rules act on activations that
are PyTorch modules (ReLU, Tanh, Softmax). Transformers compute GELU, LayerNorm and the softmax of attention in other
ways, for which the rules reduce to plain gradients; checks and notes say so. Captum's LRP is left out: it refuses
modules without a rule, and every family here has some (LayerNorm, GELU). `attn_lrp` has rules for them.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.explainers.gradients import BaselineParams, PatchBaselineParams
from engine.explainers.path_integrals import GAP_LIMIT, path_endpoints
from engine.explainers.perturbation import RemovalParams, SegmentParams, additive, at_features
from engine.input_kinds import input_kind
from engine.lazy import captum, torch
from engine.models.classifier import as_float64
from engine.params import NoParams, option
from engine.registry import Axes, register
from engine.result import Check
from engine.runtime import in_chunks, rows_at_once
from engine.task import Attribution, Task, TaskItem

_PLAIN = "Captum's rules cover only a few operations of a transformer; all others pass plain gradients."
_RANDOM = "Another seed gives other samples: compare two seeds before trusting small differences."
_REDUNDANT = "Redundant features can each seem unimportant: removing one leaves the other."


@dataclass(frozen=True)
class GradientShapParams:
    n_samples: int = option(5, "Random points between random baselines and the input, in one pass", low=1, high=100)


@dataclass(frozen=True)
class ShapleySamplingParams(RemovalParams):
    n_samples: int = option(25, "Random orders in which features are added", low=1, high=1000)


@dataclass(frozen=True)
class PatchShapleySamplingParams(SegmentParams, ShapleySamplingParams):
    """Parameters for pictures, whose features are superpixels or patches."""


def _captum(
    id: str, title: str, source: str, axes: tuple[str, str], caution: str,
    params: Sequence[type] = (NoParams, NoParams), signed: bool = True,
) -> Callable[[Any], Any]:  # fmt: skip
    """Register a method of Captum for texts and pictures. `axes`: removal and summary; `params`: one class per kind."""
    perturbing = issubclass(params[0], RemovalParams)
    return register(
        id,
        title=f"{title} (Captum)",
        family="perturbation" if perturbing else "gradients",
        axes=Axes(axes[0], "probability of the class" if perturbing else "logit of the class", axes[1]),
        citation=f"{source}; by Captum (Kokhlikyan et al., 2020)",
        caution=caution,
        params=params[0],
        signed=signed,
        cheap=False,
        variants={"image": {"params": params[1]}},
    )


@_captum(
    "deep_lift", "DeepLift", "Shrikumar, Greenside and Kundaje (2017), DeepLIFT, section 3.5",
    ("baseline embedding", "first-order change, rescaled"), _PLAIN, (BaselineParams, PatchBaselineParams),
)  # fmt: skip
def deep_lift(task: Task, params: BaselineParams) -> list[Attribution]:
    """Contributions by the rescale rule, signed, in logits; they sum to f(x) - f(x') but for the gap."""
    return _deep_lift(task, [params.baseline])


@_captum(
    "deep_lift_shap", "DeepLiftShap", "Lundberg and Lee (2017), A unified approach, section 4.2",
    ("baseline embedding, mean over all", "first-order change, rescaled"), _PLAIN,
)  # fmt: skip
def deep_lift_shap(task: Task, params: object) -> list[Attribution]:
    """DeepLift's contributions, mean over all baselines that removal has; signed, in logits."""
    return _deep_lift(task, input_kind(task.model.kind).baselines)


def _deep_lift(task: Task, names: Sequence[str]) -> list[Attribution]:
    """Compute DeepLift from every baseline and return each item's mean, as Captum's DeepLiftShap does."""
    starts = [path_endpoints(task, name)[0] for name in names]
    pairs = [(item, start[i]) for i, item in enumerate(task.items) for start in starts]

    def compute(rows: slice) -> list[tuple[Any, ...]]:
        part = Task(task.model, [item for item, _ in pairs[rows]])
        end = part.model.embed(part.batch()).detach()
        start = torch.stack([start[: end.shape[1]] for _, start in pairs[rows]])
        module, options = _classifier(part)
        return list(
            zip(
                *captum.attr.DeepLift(module).attribute(end, start, **options, return_convergence_delta=True),
                strict=True,
            )
        )

    size = max(1, rows_at_once(task.model, max(map(len, task.examples)), gradients=True) // 2)
    results, attributions = iter(_in_chunks(compute, len(pairs), size)), []
    for item in task.items:
        scores, deltas = zip(*(next(results) for _ in names), strict=True)
        mean = torch.stack([own[: len(item.encoded)].double() for own in scores]).mean(0)
        attributions.append(_complete(mean, torch.stack(deltas).mean(), 2 * len(names)))
    return attributions


@_captum(
    "gradient_shap", "GradientShap", "Lundberg and Lee (2017); Erion et al. (2021), expected gradients",
    ("baseline embedding, a random one", "path integral, at random points"), _RANDOM, (GradientShapParams,) * 2,
)  # fmt: skip
def gradient_shap(task: Task, params: GradientShapParams) -> list[Attribution]:
    """Mean gradient at random points, all in one pass, times the step from random baselines; signed, in logits."""

    def compute(rows: slice) -> list[Attribution]:
        part = Task(task.model, task.items[rows])
        starts = torch.cat([path_endpoints(part, name)[0] for name in input_kind(task.model.kind).baselines])
        end, (module, options) = part.model.embed(part.batch()).detach(), _classifier(part)
        options |= {"n_samples": params.n_samples, "return_convergence_delta": True}
        with _seeded(part.items[0]):
            scores, deltas = captum.attr.GradientShap(module).attribute(end, starts, **options)
        return [_complete(scores[0], deltas.mean(), params.n_samples)]

    return _in_chunks(compute, len(task.items), 1)


def _complete(scores: torch.Tensor, delta: torch.Tensor, evaluations: int) -> Attribution:
    """Sum over embedding dimensions, and check the gap between the total and the change of the logit."""
    values = as_float64(scores.double().sum(-1))
    gap = abs(float(delta)) / max(abs(float(values.sum()) - float(delta)), 1e-3)
    check = Check("completeness gap", gap, GAP_LIMIT)
    note = f"The completeness gap is {gap:.1%}: the scores do not add up to the change of the logit."
    return Attribution(values, evaluations, check, () if check.ok else (note,))


@_captum(
    "guided_backprop", "Guided backpropagation", "Springenberg et al. (2015), Striving for simplicity, section 3.4",
    ("none", "gradient, its positive part at each active ReLU"), _PLAIN, signed=False,
)  # fmt: skip
def guided_backprop(task: Task, params: object) -> list[Attribution]:
    """Length of the gradient at each embedding, negative parts cut off at every ReLU: unsigned."""
    return _gradient_lengths(task, captum.attr.GuidedBackprop)


@_captum(
    "deconvolution", "Deconvolution", "Zeiler and Fergus (2014), section 2.1",
    ("none", "gradient, its positive part at each ReLU"), _PLAIN, signed=False,
)  # fmt: skip
def deconvolution(task: Task, params: object) -> list[Attribution]:
    """Length of the gradient at each embedding, ReLU applied to the gradient itself: unsigned."""
    return _gradient_lengths(task, captum.attr.Deconvolution)


def _gradient_lengths(task: Task, method: Any) -> list[Attribution]:
    relu = any(isinstance(module, torch.nn.ReLU) for module in task.model.module.modules())
    notes = () if relu else ("This model has no ReLU, so the map is the length of its plain gradient.",)

    def compute(rows: slice) -> list[Attribution]:
        part = Task(task.model, task.items[rows])
        point, (module, options) = part.model.embed(part.batch()).detach().requires_grad_(), _classifier(part)
        lengths = as_float64(method(module).attribute(point, **options).double().norm(dim=-1))
        return [Attribution(row[: len(e)], 1, notes=notes) for row, e in zip(lengths, part.examples, strict=True)]

    longest = max(map(len, task.examples))
    return _in_chunks(compute, len(task.items), rows_at_once(task.model, longest, gradients=True))


@_captum(
    "feature_ablation", "Feature ablation", "Zeiler and Fergus (2014), section 4.2",
    ("chosen operator, one feature at a time", "removal effect"), _REDUNDANT, (RemovalParams, SegmentParams),
)  # fmt: skip
def feature_ablation(task: Task, params: RemovalParams) -> list[Attribution]:
    """`m(x) - m(x without i)`, in probability, signed; a superpixel's is shared by its patches."""
    return [_ablate(task, item, params, captum.attr.FeatureAblation) for item in task.items]


@_captum(
    "shapley_sampling", "Shapley value sampling", "Castro et al. (2009), Polynomial calculation of the Shapley value",
    ("chosen operator, coalitions", "Shapley value"), _RANDOM, (ShapleySamplingParams, PatchShapleySamplingParams),
)  # fmt: skip
def shapley_sampling(task: Task, params: ShapleySamplingParams) -> list[Attribution]:
    """Shapley values of m by random orders, in probability, signed; they sum to m(x) - m(all removed)."""
    return [
        _ablate(task, item, params, captum.attr.ShapleyValueSampling, n_samples=params.n_samples) for item in task.items
    ]


def _ablate(task: Task, item: TaskItem, params: RemovalParams, method: Any, **options: int) -> Attribution:
    groups, alone, values = params.groups(item.encoded), Task(task.model, [item]), list[float]()

    def evaluate(masks: torch.Tensor) -> torch.Tensor:
        rows = alone.masked_values([groups.features(masks.numpy() > 0)], params.removal)[0]
        values.extend(rows.tolist())
        return torch.from_numpy(rows)

    whole, none = torch.ones(1, groups.count), torch.zeros(1, groups.count)
    with _seeded(item):
        scores = method(evaluate).attribute(whole, none, perturbations_per_eval=groups.count, **options)
    shares = groups.shared_out(scores[0].double().numpy())
    if not options:
        return Attribution(at_features(item, shares), len(values))
    return additive(item, shares, float(evaluate(whole) - evaluate(none)), len(values), ())


def _classifier(part: Task) -> tuple[Any, dict[str, Any]]:
    """Return a module for Captum, from embeddings and row indices to logits, and the arguments of its methods."""

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = part.model.module

        def forward(self, points: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
            # Captum's noise promotes points from half to single precision.
            return part.model.logits(part.batch(rows.tolist()), points.to(part.model.dtype))

    targets = torch.tensor(part.targets, device=part.model.device)
    return Logits(), {"target": targets, "additional_forward_args": (torch.arange(len(part.items)),)}


def _in_chunks(compute: Callable[[slice], list[Any]], count: int, size: int) -> list[Any]:
    """Compute all results in chunks, silencing Captum's warnings about the hooks that it sets and removes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return [result for chunk in in_chunks(compute, count, size) for result in chunk]


@contextlib.contextmanager
def _seeded(item: TaskItem) -> Iterator[None]:
    """Seed the global generators, from which Captum draws, by the item in the block; restore them afterwards."""
    seed, state = int(item.generator().integers(2**31)), np.random.get_state()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(state)
