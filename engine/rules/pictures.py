"""Rules over pictures: the class probability without the region that the rule names, or with that region alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from engine import runtime
from engine.data.examples import ImageExample
from engine.data.sources import SourceExample
from engine.errors import UsageError
from engine.experiments.sample import Sample, UnreadableExample, bisect_failures, training_half
from engine.explain import explain_many
from engine.format import count_text
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.progress import check_cancelled
from engine.removal import coalition_probabilities, token_masks
from engine.request import Request
from engine.result import Explanation
from engine.rules.language import ANY, ObjectRegion, PatchRegion, Rule
from engine.rules.plan import RulesPlan
from engine.rules.result import RuleExample, RuleResult
from engine.rules.texts import DRAW
from engine.vision.picture import read_view
from engine.vision.regions import Patches, other_regions, region_of, touched_patches

PICTURES_AT_ONCE = 16


@dataclass(frozen=True)
class RegionPicture:
    """A picture with the region of the rule and other regions of the same size."""

    source: SourceExample
    region: Patches
    others: tuple[Patches, ...]


def check_region(rule: Rule, model: str) -> None:
    """Refuse a patch outside the model's grid."""
    rows, columns = read_view(model).grid
    own = rule.condition
    if isinstance(own, PatchRegion) and (own.row > rows or own.column > columns):
        raise UsageError(
            f"rules: patch must be within {rows} rows and {columns} columns of {model}, got {own.row} {own.column}."
        )


def unreadable(sample: Sample) -> dict[int, str]:
    """The reasons why pictures are left out, by index."""
    each = (one for group in sample.groups() for one in group)
    return {one.index: one.why for one in each if isinstance(one, UnreadableExample)}


def measure_picture_rule(plan: RulesPlan, rule: Rule, target: int | None, sample: Sample) -> RuleResult:
    """Predict each picture without the region, with it alone, and with other regions of its size.

    Also predict it without the top patches of an attribution method: the method whose top patches lower the probability
    most in the training half.
    """
    pictures, missing, labels = list[RegionPicture](), 0, read_view(plan.models[0]).labels
    for group in sample.groups():
        for one in group:
            if isinstance(one, SourceExample):
                picture = _region_picture(plan, rule, one)
                pictures += [] if picture is None else [picture]
                missing += picture is None
    half = training_half([one.source.index for one in pictures], plan.seed)
    examples: list[RuleExample] = []
    falls: dict[str, dict[int, float]] = {method: {} for method in plan.methods}
    for start in range(0, len(pictures), PICTURES_AT_ONCE):
        check_cancelled()
        some = pictures[start : start + PICTURES_AT_ONCE]
        examples += _measure(plan, target, some, half)
        for method in plan.methods:
            falls[method] |= _without_top(plan, method, target, some)
    method = _best_method(falls, examples)
    if method:
        examples = [replace(one, attribution=falls[method].get(one.example)) if one.holds else one for one in examples]
    return RuleResult(
        rule.text, ANY if target is None else labels[target], True, tuple(examples), method,
        notes=tuple(_notes(missing, examples, method)),
    )  # fmt: skip


def _region_picture(plan: RulesPlan, rule: Rule, one: SourceExample) -> RegionPicture | None:
    """The picture with its regions; None if it has no mask of the object, or the region covers no patch or all."""
    view = read_view(plan.models[0])
    if isinstance(rule.condition, ObjectRegion):
        if not isinstance(one.example, ImageExample) or one.example.mask is None:
            return None
        region = touched_patches(view.transform_mask(one.example.mask), view.patch)
    else:
        assert isinstance(rule.condition, PatchRegion)
        region = np.zeros(view.grid, dtype=bool)
        region[rule.condition.row - 1, rule.condition.column - 1] = True
    if not region.any() or region.all():
        return None
    return RegionPicture(one, region, other_regions(region, np.random.default_rng([DRAW, plan.seed, one.index])))


def _measure(
    plan: RulesPlan, target: int | None, group: Sequence[RegionPicture], half: frozenset[int]
) -> Iterator[RuleExample]:
    masks = [[np.ones_like(one.region), ~one.region, one.region, *(~other for other in one.others), *one.others]
             for one in group]  # fmt: skip
    shares = masked_probabilities(plan, group, masks)
    for one, own in zip(group, shares, strict=True):
        predicted = int(own[0].argmax())
        own_class = predicted if target is None else target
        count = len(one.others)
        random, alone = own[3 : 3 + count], own[3 + count :]
        yield RuleExample(
            example=one.source.index,
            holds=target is None or predicted == target,
            held_out=one.source.index not in half,
            words="",
            predicted=predicted,
            as_claimed=predicted == own_class,
            probability=float(own[0, own_class]),
            removed=float(own[1, own_class]),
            removed_changed=bool(own[1].argmax() != predicted),
            random=float(random[:, own_class].mean()) if count else None,
            random_changed=float((random.argmax(1) != predicted).mean()) if count else None,
            inserted=float(own[2, own_class]) if predicted == own_class else None,
            neutral=float(alone[:, own_class].mean()) if count and predicted == own_class else None,
        )


def masked_probabilities(
    plan: RulesPlan, group: Sequence[RegionPicture], kept: Sequence[Sequence[Patches]]
) -> list[Float[np.ndarray, "mask label"]]:
    """Probabilities of all classes for each picture and mask, with only the patches in the mask kept.

    Masks share passes through the model.
    """
    with runtime.turn(lends=True):
        model = _model(plan)
        encoded = [model.encode(one.source.input) for one in group]
        keep = [
            token_masks(coded, np.array([mask.ravel() for mask in own]), len(coded))
            for coded, own in zip(encoded, kept, strict=True)
        ]
        index = np.repeat(np.arange(len(group)), [len(own) for own in kept])
        shares = coalition_probabilities(model, encoded, index, np.concatenate(keep), plan.removal_operator)
    return np.split(shares, np.cumsum([len(own) for own in kept])[:-1])


def _model(plan: RulesPlan) -> AnyClassifier:
    return load_classifier("image", plan.models[0], plan.dtype, runtime.device())


def _without_top(plan: RulesPlan, method: str, target: int | None, group: Sequence[RegionPicture]) -> dict[int, float]:
    """The probability of each picture without its top patches, as many as the region has."""
    requests = [
        Request(plan.models[0], method, one.source.input, plan.params_of(method), target, plan.seed, plan.dtype)
        for one in group
    ]
    outcomes = bisect_failures(explain_many, requests)
    explained = [(one, made) for one, made in zip(group, outcomes, strict=True) if isinstance(made, Explanation)]
    if not explained:
        return {}
    masks = [[~_top(made, one.region)] for one, made in explained]
    shares = masked_probabilities(plan, [one for one, _ in explained], masks)
    return {
        one.source.index: float(own[0, made.provenance.target])
        for (one, made), own in zip(explained, shares, strict=True)
    }


def _top(made: Explanation, region: Patches) -> Patches:
    """The patches with the highest scores, as many as the region has; ties go to the first."""
    scores = made.scores[made.features]
    return region_of(region.shape, np.argsort(-scores, kind="stable")[: int(region.sum())])


def _best_method(falls: dict[str, dict[int, float]], examples: Sequence[RuleExample]) -> str:
    """The method whose top patches lower the mean probability most when removed, over the training half; else empty."""
    means = {}
    for method, values in falls.items():
        own = [values[one.example] for one in examples if one.holds and not one.held_out and one.example in values]
        if own:
            means[method] = float(np.mean(own))
    return min(means, key=lambda method: means[method]) if means else ""


def _notes(missing: int, examples: Sequence[RuleExample], method: str) -> Iterator[str]:
    if missing:
        yield f"{count_text(missing, 'picture')} without a mask of the object, or one that covers nothing or all."
    short = sum(one.holds and one.random is None for one in examples)
    if short:
        yield f"{count_text(short, 'picture')} whose region leaves no room for another of its size."
    if not method and examples:
        yield "No attribution method could explain the pictures."
