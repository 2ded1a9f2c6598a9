"""Every method is told by the three axes; filters and presets are read from the registry."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from components.method_picker import (
    ANY,
    TRAITS,
    describe_params,
    kind,
    kinds_by_trait,
    matches,
    method_traits,
    presets,
    traits_html,
    unavailable_methods,
)
from components.text.state import START
from engine.registry import all_explainers, explainer

METHODS = all_explainers()
TOLD = {id: method_traits(method, {}) for id, method in METHODS.items()}
MOST_KINDS = 14
"""What a filter can list before it is no help."""


def test_the_kind_is_what_stands_before_the_details() -> None:
    assert kind("none: a small change") == "none"
    assert kind("attention, whatever the class") == "attention"
    assert kind("path integral") == "path integral"


@pytest.mark.parametrize("id", METHODS)
def test_every_method_has_a_short_kind_by_each_trait(id: str) -> None:
    assert list(TOLD[id]) == list(TRAITS)
    assert all(0 < len(word) <= 25 for word in TOLD[id].values())


def test_few_kinds_are_offered_and_each_finds_its_methods() -> None:
    offered = kinds_by_trait(TOLD.values())
    for trait, words in offered.items():
        assert 2 <= len(words) <= MOST_KINDS
        found = [[id for id in METHODS if matches(TOLD[id], {trait: word})] for word in words]
        assert all(found)
        assert sorted(itertools.chain(*found)) == sorted(METHODS)


def test_filters_hold_together() -> None:
    wanted = {"removal": "chosen operator", "summary": "Shapley value", "scores": ANY}
    assert [id for id in METHODS if matches(TOLD[id], wanted)] == [
        "kernel_shap",
        "exact_shapley",
        "least_sensitive",
        "shapley_sampling",
    ]
    assert not any(matches(told, {"behaviour": "attention", "scores": "signed"}) for told in TOLD.values())


def test_a_parameter_may_change_whether_scores_are_signed() -> None:
    method = explainer("smoothgrad")
    assert [method_traits(method, {"reduction": way})["scores"] for way in ("l2", "sum")] == ["unsigned", "signed"]


def test_a_parameter_may_change_what_is_explained() -> None:
    method = explainer("gradient_l2")
    told = [method_traits(method, {"quantity": what})["behaviour"] for what in ("logit", "probability")]
    assert told == ["logit of the class", "probability of the class"]
    assert "<dt>Explains</dt><dd>probability of the class</dd>" in traits_html(method, {"quantity": "probability"})


def test_presets_hold_what_their_name_says_in_the_order_of_the_registry() -> None:
    made = presets(METHODS, START)
    assert made["Default"] == START
    assert made["All"] == tuple(METHODS)
    assert made["Quick"] == tuple(id for id in METHODS if METHODS[id].cheap)
    assert {"integrated_gradients", "random"} <= set(made["Path methods"])
    assert {"occlusion", "lime", "kernel_shap", "random"} <= set(made["Removal-based"])
    assert {"attention_mean", "attention_rollout", "random"} <= set(made["Attention"])
    assert all("random" in ids for ids in made.values())


def test_only_what_a_model_lacks_is_told_with_the_reason() -> None:
    assert unavailable_methods(METHODS.values(), []) == {}
    reasons = unavailable_methods(METHODS.values(), ["no-such-model"])
    assert set(reasons) == {"smat", "empirical"}
    assert all("no-such-model" in reason for reason in reasons.values())


def test_a_preset_without_a_method_of_its_own_is_left_out() -> None:
    few = {id: METHODS[id] for id in ("gradient", "random")}
    made = presets(few, START)
    assert made["Quick"] == ("gradient", "random")
    assert "Attention" not in made
    assert made["Default"] == ("random",)


def test_the_row_tells_all_and_escapes() -> None:
    method = replace(explainer("occlusion"), caution="a <b> & c", citation="<i>")
    html = traits_html(method, {})
    assert "<dt>Removed by</dt><dd>chosen operator, one window at a time</dd>" in html
    assert "<dt>Explains</dt><dd>probability of the class</dd>" in html
    assert "<dt>Summarized as</dt><dd>removal effect</dd>" in html
    assert "<dt>Scores</dt><dd>signed</dd>" in html
    assert "<dt>Cost</dt><dd>many evaluations</dd>" in html
    assert "a &lt;b&gt; &amp; c <cite>&lt;i&gt;</cite>" in html


def test_changed_parameters_read_as_in_a_link() -> None:
    assert describe_params({"n_steps": "20", "baseline": "zero"}) == "n_steps 20, baseline zero"
    assert describe_params({}) == ""
