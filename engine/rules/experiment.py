"""Run the experiment `rules`: test each rule on the examples of a data set, and compare it with attribution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.experiments.base import ExperimentResult, Units
from engine.experiments.run import part_results
from engine.experiments.sample import Sample, draw_sample
from engine.explain import method_key
from engine.jobs.kinds import WorkUnit
from engine.models import catalog
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.progress import Report, check_cancelled
from engine.registry import explainer
from engine.removal_operators import keyed_params
from engine.rules import pictures, texts
from engine.rules.language import Rule, parse_rule, target_of
from engine.rules.plan import MOST_RULES, REPLACE, RulesPlan, removals_of
from engine.rules.result import ModelRules, RuleEstimate, RuleExample, RuleResult, compare_rules, holm, score_rule
from engine.store import result_store
from engine.substitution import masked_revision

VERSIONS = [3, PREDICTION_VERSION]
COLUMNS = {
    "model": str, "dataset": str, "example": int, "method": str, "metric": str, "value": float, "rule": str,
}  # fmt: skip
METRICS = ("holds", "as_claimed", "probability", "removed", "random", "inserted", "neutral", "attribution")
"""Fields of `RuleExample` that become rows of the table."""
ModelResult = ModelRules
Result = ExperimentResult


def check(plan: RulesPlan) -> None:
    """Refuse rules that are malformed, are for another kind of input, or name a class that a model lacks."""
    if not 1 <= len(plan.rules) <= MOST_RULES:
        raise not_allowed("rules", f"1 to {MOST_RULES} different rules", list(plan.rules))
    for model in plan.models:
        labels = class_labels(model)
        if len(labels) < 2:
            raise UsageError(f"models: {model} predicts a score, and a rule names a class. Choose a classifier.")
        for text in plan.rules:
            rule = parse_rule(text)
            if rule.of_pictures != (plan.kind == "image"):
                form = '"not" -> negative' if plan.kind == "text" else "object -> any"
                inputs = {"text": "texts", "image": "pictures"}[plan.kind]
                raise UsageError(f"rules: {model} reads {inputs}, got the rule {text!r}. Write a rule such as {form}.")
            target_of(rule, labels)
            if rule.of_pictures:
                pictures.check_region(rule, model)
    if plan.removal_operator not in removals_of(plan.kind):
        raise unknown("removal", plan.removal_operator, removals_of(plan.kind))


def class_labels(model: str) -> tuple[str, ...]:
    """The classes of a model, without loading it. Errors: its config.json lists none; it is a language model."""
    if catalog.is_causal(model):
        raise UsageError(
            f"models: {model} is a language model, whose classes are those of each prompt. Rules need a classifier."
        )
    try:
        return catalog.model_labels(model)
    except (TypeError, ValueError, LookupError) as error:
        raise ExegesisError(
            f"models: config.json of {model} lists no classes ({error}). Save the model again."
        ) from None


def sample(plan: RulesPlan) -> Sample:
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: RulesPlan, sample: Sample) -> Units:
    """One work unit per rule and, for texts, one per method and class."""
    work = _Work(plan, sample)
    return Units(
        WorkUnit(key, label, compute, stores_itself=True, group=[label]) for label, key, compute in work.steps()
    )


def assemble(plan: RulesPlan, sample: Sample, report: Report) -> ModelRules:
    """Collect the rules of a model, computed if not cached, each with the best attribution rule."""
    work = _Work(plan, sample)
    steps = list(work.steps())
    for done, (label, _, compute) in enumerate(steps):
        check_cancelled()
        report(done, len(steps), label)
        compute()
    report(len(steps), len(steps), "")
    return work.result()


class _Work:
    """The steps of a plan on one model. Each step caches its result."""

    def __init__(self, plan: RulesPlan, sample: Sample) -> None:
        self.plan, self.sample = plan, sample
        [self.model] = plan.models
        self.labels = class_labels(self.model)
        self.rules = [parse_rule(text) for text in plan.rules]
        self.targets = [target_of(rule, self.labels) for rule in self.rules]
        self._read: tuple[list[texts.ReadExample], dict[int, str]] | None = None

    def steps(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield each step's name, cache key and function."""
        for rule, target in zip(self.rules, self.targets, strict=True):
            yield f"rule {rule.text}, {self.model}", self._rule_key(rule), partial(self._rule, rule, target)
        if self.plan.kind == "text":
            for target in dict.fromkeys(target for target in self.targets if target is not None):
                for method in self.plan.methods:
                    name = f"{method} for {self.labels[target]}, {self.model}"
                    yield name, self._words_key(method, target), partial(self._words, method, target)

    def result(self) -> ModelRules:
        """Combine the cached results of all steps."""
        rules = []
        for rule, target in zip(self.rules, self.targets, strict=True):
            one = self._rule(rule, target)
            if target is not None and self.plan.kind == "text":
                words = {method: self._words(method, target) for method in self.plan.methods}
                one = texts.with_attribution(one, words, self.read[0])
            rules.append(one)
        places = tuple(own.example for own in rules[0].examples)
        return ModelRules(self.model, self.plan.dataset, places, self.labels, tuple(rules), self._failed())

    @property
    def read(self) -> tuple[list[texts.ReadExample], dict[int, str]]:
        """The texts with their predictions, and the reasons why others are left out."""
        if self._read is None:
            self._read = texts.read_predicted(self.plan, self.sample)
        return self._read

    def _failed(self) -> dict[int, str]:
        return self.read[1] if self.plan.kind == "text" else pictures.unreadable(self.sample)

    def _rule(self, rule: Rule, target: int | None) -> RuleResult:
        key = self._rule_key(rule)
        if (entry := result_store().get(key)) is not None:
            return _unpacked(entry[0])
        if target is not None and self.plan.kind == "text":
            result = texts.measure_text_rule(self.plan, rule, target, self.read[0])
        else:
            result = pictures.measure_picture_rule(self.plan, rule, target, self.sample)
        result_store().put(key, *_packed(result))
        return result

    def _words(self, method: str, target: int) -> list[tuple[str, float]]:
        key = self._words_key(method, target)
        if (entry := result_store().get(key)) is not None:
            return [(word, score) for word, score in entry[0]["words"]]
        words = texts.attribution_words(self.plan, method, target, self.read[0])
        result_store().put(key, {"words": [list(one) for one in words]}, {})
        return words

    def _rule_key(self, rule: Rule) -> str:
        operator = self.plan.removal_operator
        return self._key(
            kind="rule", rule=rule.text, removal=operator, masked=masked_revision() if operator == REPLACE else None,
            methods=[self._method_key(method) for method in self.plan.methods] if rule.of_pictures else None,
        )  # fmt: skip

    def _words_key(self, method: str, target: int) -> str:
        return self._key(kind="rule words", method=self._method_key(method), target=target)

    def _method_key(self, method: str) -> list[object]:
        given = self.plan.params_of(method)
        return [method, method_key(explainer(method, self.plan.kind), given, self.model), keyed_params(given)]

    def _key(self, **own: object) -> str:
        source = self.sample.source
        return key_for(
            {
                **own,
                "version": VERSIONS,
                "model": [self.model, catalog.revision(self.model)],
                "dtype": self.plan.dtype,
                "device": runtime.device_type(),
                "data": [source.name, source.revision, source.count],
                "examples": list(self.sample.indices),
                "seed": self.plan.seed,
            }
        )


def _packed(one: RuleResult) -> tuple[Meta, Arrays]:
    return dataclasses.asdict(one), {}


def _unpacked(meta: Mapping[str, Any]) -> RuleResult:
    examples = tuple(RuleExample(**one) for one in meta["examples"])
    return RuleResult(**{**meta, "examples": examples, "notes": tuple(meta["notes"])})


def rows(found: ModelRules) -> Iterator[dict[str, Any]]:
    """Yield a row for each value of each example. For `attribution`, `method` is the attribution method."""
    for one in found.rules:
        shared = {"model": found.model, "dataset": found.dataset}
        for own in one.examples:
            values = {name: getattr(own, name) for name in METRICS}
            if not one.of_pictures:
                values["attribution"] = own.attribution_holds if one.method else None
            for metric, value in values.items():
                if value is not None:
                    method = one.method if metric == "attribution" else ""
                    yield {**shared, "example": own.example, "method": method, "metric": metric,
                           "value": float(value), "rule": one.rule}  # fmt: skip


def to_json(result: ExperimentResult) -> dict[str, Any]:
    """Plain values for `exegesis rules --json`: the plan, and for each model its rules' scores and differences."""
    models = [_model_json(one, result.plan.seed) for one in part_results(result)]
    return {"plan": result.plan.as_plain(), "models": models}


def _model_json(one: ModelRules, seed: int) -> dict[str, Any]:
    scores = [score_rule(rule, seed) for rule in one.rules]
    adjusted = holm([own.p for own in scores])
    rules = [
        {"rule": rule.rule, "class": rule.label, "attribution_method": rule.method, "attribution_word": rule.word,
         "neutral_word": rule.neutral_word, **_plain(own), "p_holm": p, "notes": list(rule.notes)}
        for rule, own, p in zip(one.rules, scores, adjusted, strict=True)
    ]  # fmt: skip
    differences = [
        {"best": one.rules[gap.best].rule, "other": one.rules[gap.other].rule, **_plain(gap.difference)}
        for gap in compare_rules(one.rules, seed)
    ]
    failed = [{"example": place, "why": why} for place, why in one.failed.items()]
    return {"model": one.model, "dataset": one.dataset, "examples": len(one.examples), "rules": rules,
            "differences": differences, "left_out": failed}  # fmt: skip


def _plain(scores: Any) -> dict[str, Any]:
    values: Sequence[tuple[str, Any]] = list(vars(scores).items())
    return {
        name: _plain(value) if isinstance(value, RuleEstimate) else list(value) if isinstance(value, tuple) else value
        for name, value in values
    }
