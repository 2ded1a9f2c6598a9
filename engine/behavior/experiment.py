"""Run the experiment `behavior`: sample, work units and the result on a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np

from cache import key_for
from engine import runtime
from engine.behavior.impossibility import demonstrate
from engine.behavior.plan import FEATURE, LOCAL, METHODS, REPLACE, BehaviorPlan
from engine.behavior.queries import BehaviorCases, ExampleBehavior, measure
from engine.behavior.result import COLUMNS, BehaviorResult, ModelBehavior, answers_of, rows
from engine.behavior.subjects import NoQuestion, Subject, picture_subject, text_subject
from engine.data.examples import ImageExample
from engine.data.sources import SourceExample
from engine.errors import Cancelled, ExegesisError, UsageError, not_allowed, one_line
from engine.experiments.base import Units
from engine.experiments.run import carry_out, pack_fields, unpack_fields
from engine.experiments.sample import Sample, UnreadableExample, bisect_failures, draw_sample
from engine.explain import explain_many, method_key
from engine.jobs.kinds import UnitStep, WorkUnit
from engine.models import catalog
from engine.models.loading import load_image_model, load_model
from engine.patch_replacement import PatchDonors, load_donors
from engine.progress import CancelToken, Report, check_cancelled, silent
from engine.registry import estimate_rows, explainer
from engine.removal_operators import keyed_params
from engine.request import Example, Picture, Request
from engine.result import Explanation
from engine.store import result_store
from engine.substitution import MASKED_MODEL, MaskedModel, load_masked_model, masked_revision
from engine.vision.picture import read_view
from engine.vision.regions import Patches, touched_patches

__all__ = [
    "COLUMNS", "VERSIONS", "ModelResult", "Result", "assemble", "behavior", "check", "rows", "sample", "to_json",
    "units",
]  # fmt: skip

VERSIONS = [2]
"""Increased whenever the results change."""
EXAMPLES_AT_ONCE = 4
"""Number of examples whose explanations share passes."""
Outcome = ExampleBehavior | ExegesisError
ModelResult = ModelBehavior
Result = BehaviorResult


def behavior(
    models: Sequence[str],
    dataset: str,
    methods: Sequence[str] = METHODS,
    report: Report = silent,
    cancel: CancelToken | None = None,
    **more: object,
) -> BehaviorResult:
    """Query models about their behavior on a sample of texts or pictures, and compare with the answers of attributions.

    `more`: other fields of the plan. The answers for each example are cached, so a stopped run can be continued.
    Examples without a question are left out with a reason; if a method fails on an example, only its answers are.
    Errors: an invalid plan, a data set that cannot be read.
    """
    plan = BehaviorPlan(tuple(models), dataset, tuple(methods), **more)  # type: ignore[arg-type]
    result: BehaviorResult = carry_out(plan, report, cancel)
    return result


def check(plan: BehaviorPlan) -> None:
    """Refuse a feature of texts that has no words."""
    if plan.kind == Example.kind and plan.task == FEATURE and not plan.feature_words:
        raise not_allowed("feature", "words between commas", plan.feature, "Example: positive,negative.")


def sample(plan: BehaviorPlan) -> Sample:
    """Draw the sample of examples, the same as an evaluation with this seed. Errors: a data set that cannot be read."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: BehaviorPlan, sample: Sample) -> Units:
    """One work unit per example: its explanations and the direct queries."""
    work = _ModelQuestions(plan, sample)
    examples = {key: index for index, key in work.keys.items()}
    cost = sum(estimate_rows(explainer(method, plan.kind), plan.params_of(method)) for method in plan.methods)

    def run_batch(units: Sequence[WorkUnit]) -> None:
        work.require([examples[unit.key] for unit in units])

    return Units(
        WorkUnit(
            key, f"example {index}, {work.model}", partial(work.require, [index]), stores_itself=True,
            batch=run_batch, step=UnitStep("", place, len(examples), cost), group=[index],
        )
        for place, (key, index) in enumerate(examples.items(), 1)
    )  # fmt: skip


def assemble(plan: BehaviorPlan, sample: Sample, report: Report) -> ModelBehavior:
    """Collect all cases of one model, computed if not cached, a few examples at a time."""
    work = _ModelQuestions(plan, sample)
    indices, outcomes = list(work.keys), dict[int, Outcome]()
    for start in range(0, len(indices), EXAMPLES_AT_ONCE):
        check_cancelled()
        report(start, len(indices), f"examples, {work.model}")
        outcomes |= work.outcomes(indices[start : start + EXAMPLES_AT_ONCE])
    report(len(indices), len(indices), "")
    return work.join(outcomes)


def to_json(result: BehaviorResult) -> dict[str, Any]:
    """Plain values for `exegesis behavior --json`: the plan, the accuracies on each model, the constructed models."""
    answers = [
        {
            **asdict(answer), "dataset": found.dataset, "task": found.task, "examples": len(found.examples),
            "failed": {str(index): why for index, why in found.failed.items()},
            "failed_methods": {
                method: {str(index): why for index, why in own.items()} for method, own in found.failures.items()
            },
        }
        for found in result.models
        for answer in answers_of(found, result.plan)
    ]  # fmt: skip
    return {"plan": result.plan.as_plain(), "answers": answers, "constructed": demonstrate().as_json()}


class _ModelQuestions:
    """The questions of a plan about one model.

    `keys`: cache keys of the readable examples. `failed`: reasons why the others are left out. `unstable`: an error for
    each example on which a method failed but may succeed on a retry.
    """

    def __init__(self, plan: BehaviorPlan, sample: Sample) -> None:
        [self.model] = plan.models
        self.plan, self.sample = plan, sample
        self.failed: dict[int, str] = {}
        self.unstable: dict[int, ExegesisError] = {}
        self.examples: dict[int, SourceExample] = {}
        for one in (one for group in sample.groups() for one in group):
            if isinstance(one, UnreadableExample):
                self.failed[one.index] = one.why
            else:
                self.examples[one.index] = one
        shared = self._shared_key()
        self.keys = {
            index: key_for({**shared, "index": index, "example": one.input.as_plain(), **self._region_key(one)})
            for index, one in self.examples.items()
        }

    def _shared_key(self) -> dict[str, object]:
        plan, left_out = self.plan, ("models", "dataset", "split", "examples", "methods", "params")
        source = self.sample.source
        return {
            "kind": "questions about an example",
            "version": VERSIONS,
            "plan": {name: value for name, value in plan.as_plain().items() if name not in left_out},
            "model": [self.model, catalog.revision(self.model)],
            "masked": masked_revision(MASKED_MODEL) if self._replaces_words else "",
            "device": runtime.device_type(),
            "methods": [
                [method, method_key(explainer(method, plan.kind), plan.params_of(method), self.model),
                 keyed_params(plan.params_of(method))]
                for method in plan.methods
            ],
            **({"donors": [source.name, source.revision, source.count]} if self._replaces_patches else {}),
        }  # fmt: skip

    def _region_key(self, one: SourceExample) -> dict[str, object]:
        region = self._region(one)
        return {} if region is None else {"region": np.flatnonzero(region).tolist()}

    @property
    def _replaces_words(self) -> bool:
        return self.plan.kind == Example.kind and self.plan.task == LOCAL and self.plan.edit == REPLACE

    @property
    def _replaces_patches(self) -> bool:
        if self.plan.kind == Example.kind:
            return False
        return self.plan.task == FEATURE or (self.plan.task == LOCAL and self.plan.edit == REPLACE)

    def _region(self, one: SourceExample) -> Patches | None:
        """The patches of the marked object, or None. Only the task `feature` needs them."""
        if self.plan.task != FEATURE or not isinstance(one.example, ImageExample) or one.example.mask is None:
            return None
        view = read_view(self.model)
        return touched_patches(view.transform_mask(one.example.mask), view.patch)

    def require(self, indices: Sequence[int]) -> None:
        """Make sure that the answers for these examples are cached. Errors: the first one that a retry may resolve."""
        for one in self.outcomes(indices).values():
            if isinstance(one, ExegesisError) and not isinstance(one, NoQuestion):
                raise one
        for error in (self.unstable[index] for index in indices if index in self.unstable):
            raise error

    def outcomes(self, indices: Sequence[int]) -> dict[int, Outcome]:
        """The answers for each example, computed if not cached, or the error."""
        done = {index: one for index in indices if (one := self._cached(index)) is not None}
        missing = [index for index in indices if index not in done]
        for index, explanations in zip(missing, self._explanations(missing), strict=True):
            check_cancelled()
            done[index] = self._ask(index, explanations)
        return done

    def _cached(self, index: int) -> Outcome | None:
        entry = result_store().get(self.keys[index])
        if entry is None:
            return None
        if why := entry[0].get("why"):
            return NoQuestion(str(why))
        found: ExampleBehavior = unpack_fields(ExampleBehavior, *entry)
        return found

    def _explanations(self, indices: list[int]) -> list[Mapping[str, Explanation | ExegesisError]]:
        """For each example, the explanation of its predicted class by each method, or the error."""
        plan = self.plan
        pairs = [(index, method) for index in indices for method in plan.methods]
        requests = [
            Request(
                self.model, method, self.examples[index].input, plan.params_of(method), seed=plan.seed, dtype=plan.dtype
            )
            for index, method in pairs
        ]
        by_pair = dict(zip(pairs, bisect_failures(explain_many, requests), strict=True))
        return [{method: by_pair[index, method] for method in plan.methods} for index in indices]

    def _ask(self, index: int, explanations: Mapping[str, Explanation | ExegesisError]) -> Outcome:
        """Query the model, and cache the answers or the reason why there is no question."""
        signed = {
            method: explainer(method, self.plan.kind).is_signed(one.provenance.params)
            for method, one in explanations.items()
            if isinstance(one, Explanation)
        }
        try:
            with runtime.turn(lends=True):
                answered = measure(self._subject(self.examples[index]), explanations, signed, self.plan, index)
        except NoQuestion as error:
            result_store().put(self.keys[index], {"why": one_line(error)}, {})
            return error
        except Cancelled:
            raise
        except ExegesisError as error:
            return error
        errors = [one for one in explanations.values() if isinstance(one, ExegesisError)]
        if unstable := [one for one in errors if not isinstance(one, UsageError)]:
            self.unstable[index] = unstable[0]
        else:
            result_store().put(self.keys[index], *pack_fields(answered))
        return answered

    def _subject(self, one: SourceExample) -> Subject:
        """The subject of the questions about an example. The caller must hold the device."""
        dtype, device = self.plan.dtype, runtime.device()
        if isinstance(one.input, Picture):
            model = load_image_model(self.model, dtype, device)
            return picture_subject(
                model, one.input, self._donors if self._replaces_patches else None, self._region(one)
            )
        assert isinstance(one.input, Example)
        return text_subject(load_model(self.model, dtype, device), one.input, self._masked)

    @cached_property
    def _donors(self) -> PatchDonors:
        return load_donors(load_image_model(self.model, self.plan.dtype, runtime.device()), self.sample.source)

    @property
    def _masked(self) -> MaskedModel | None:
        return load_masked_model() if self._replaces_words else None

    def join(self, outcomes: Mapping[int, Outcome]) -> ModelBehavior:
        """Combine the answers of all examples that have a question."""
        each = {index: one for index, one in outcomes.items() if not isinstance(one, ExegesisError)}
        errors = {index: one for index, one in outcomes.items() if isinstance(one, ExegesisError)}
        own, ways = list(each.values()), len(self.plan.ways)
        failures: dict[str, dict[int, str]] = {}
        for index, one in each.items():
            for method, why in one.failures.items():
                failures.setdefault(method, {})[index] = why
        return ModelBehavior(
            model=self.model,
            dataset=self.sample.source.name,
            task=self.plan.task,
            ways=self.plan.ways,
            examples=tuple(each),
            targets=tuple(one.target for one in own),
            probabilities=np.array([one.probability for one in own], dtype=np.float64),
            evaluations=np.array([one.evaluations for one in own], dtype=np.int64).reshape(-1, ways),
            owner=np.repeat(np.arange(len(own)), [len(one.words) for one in own]),
            failed=self.failed | {index: one_line(error) for index, error in errors.items()},
            complete=not self.unstable and all(isinstance(error, NoQuestion) for error in errors.values()),
            failures=failures,
            **_joined(own, ways),
        )


def _joined(own: Sequence[BehaviorCases], ways: int) -> dict[str, Any]:
    """The concatenated fields of the cases of all examples."""
    empty: dict[str, np.ndarray] = {
        **{name: np.empty(0) for name in ("truth", "truth_error", "chance")},
        **{name: np.empty((0, ways)) for name in ("values", "errors")},
        "falls": np.empty(0, dtype=np.int64),
        "counted": np.empty(0, dtype=bool),
        "yes": np.empty((0, ways), dtype=bool),
    }
    arrays = {name: np.concatenate([first, *(getattr(one, name) for one in own)]) for name, first in empty.items()}
    lists = {name: tuple(case for one in own for case in getattr(one, name)) for name in ("words", "edits")}
    return arrays | lists
