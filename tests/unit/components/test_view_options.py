"""How maps are drawn: gamma, shared scales, underlines, values; and its place in the link."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from components.links import read_record, write_record
from components.method_row import facts, method_row, method_row_html
from components.numbers import brief
from components.palette import STEPS, step_of
from components.widgets.token_map import token_map_html
from components.widgets.view_options import (
    DEFAULT_VIEW,
    LEAST_GAMMA,
    MOST_GAMMA,
    ViewOptions,
    scale_group,
    shared_ends,
)
from engine.registry import all_explainers, explainer
from engine.request import Example
from engine.result import OTHERS, Prediction
from tests.unit.components.making import explanation

EXAMPLE = Example("the cat sat")


def drawn(
    look: ViewOptions, scores: list[float], method: str = "occlusion", ends: dict[str, float] | None = None
) -> str:
    made = explanation(EXAMPLE, scores, method=method)
    return method_row_html(method_row(explainer(method), made, EXAMPLE, "token", (), look, ends))


def steps(html: str) -> list[int]:
    return [int(step) for step in re.findall(r'<b class="[fam](\d+) ', html)]


@pytest.mark.parametrize("gamma", [LEAST_GAMMA, 0.5, 1.0, MOST_GAMMA])
def test_gamma_bends_the_colors_and_keeps_order_and_ends(gamma: float) -> None:
    found = [step_of(share / 100, 1.0, gamma) for share in range(101)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, STEPS)
    assert found[25] == round(STEPS * 0.25**gamma)


def test_a_low_gamma_shows_what_is_weak_and_the_legend_says_so() -> None:
    weak = [1.0, -0.01, 0.04]
    assert steps(drawn(ViewOptions(), weak)) == [STEPS, 1]
    html = drawn(ViewOptions(gamma=0.5), weak)
    assert steps(html) == [STEPS, 2, 4]
    assert "gamma 0.5: half the color at 0.25" in html
    assert "gamma" not in drawn(ViewOptions(), weak)


def test_a_shared_scale_ends_at_the_largest_of_the_maps_and_names_them() -> None:
    group = scale_group(explainer("occlusion"), {})
    assert group == "signed maps of the probability of the class"
    html = drawn(ViewOptions(scale="shared"), [0.5, -0.25, 0.0], ends={group: 1.0})
    assert steps(html) == [STEPS // 2, STEPS // 4]
    assert "\u22121 against, +1 for" in html
    assert f"scale shared by the {group}" in html


def test_a_map_without_company_keeps_its_scale_and_says_so() -> None:
    html = drawn(ViewOptions(scale="shared"), [0.5, -0.25, 0.0], ends={"another group": 9.0})
    assert steps(html) == [STEPS, STEPS // 2]
    assert "own scale: no other map has its unit" in html


def test_only_maps_of_one_unit_share() -> None:
    groups: dict[str | None, set[str]] = {}
    for id, method in all_explainers().items():
        groups.setdefault(scale_group(method, {}), set()).add(id)
    assert groups[None] == {"random", "ensemble_all", "ensemble_top3", "least_complex", "empirical"}
    for members in groups.values():
        assert len({explainer(id).axes.behaviour for id in members - groups[None]}) <= 1
    by_captum = {"deep_lift", "deep_lift_shap", "gradient_shap"}
    assert {"gradient_x_input", "integrated_gradients", "attn_lrp", "bee", *by_captum} in groups.values()
    by_captum = {"feature_ablation", "shapley_sampling"}
    assert {"occlusion", "lime", "kernel_shap", "exact_shapley", "least_sensitive", *by_captum} in groups.values()


@pytest.mark.parametrize("method", ["gradient_x_input", "integrated_gradients"])
def test_a_map_of_the_probability_shares_no_scale_with_one_of_the_logit(method: str) -> None:
    probability = scale_group(explainer(method), {"quantity": "probability"})
    assert probability == scale_group(explainer("occlusion"), {}) == "signed maps of the probability of the class"
    assert scale_group(explainer(method), {"quantity": "logit"}) == scale_group(explainer(method), {})
    made = explanation(EXAMPLE, [0.5, -0.25, 0.0], method=method, params={"quantity": "probability"})
    row = method_row(explainer(method), made, EXAMPLE, "token", ends={str(probability): 2.0})
    assert (row.view.end, row.view.sharing) == (2.0, probability)
    assert ("explains", "probability of the class") in row.facts


@pytest.mark.parametrize(
    ("prediction", "explained", "of_logit", "of_probability"),
    [
        (
            Prediction(("·are", "·is"), (2.0, 0.0), (0.88, 0.12)),
            "token 0: ·are rather than ·is",
            "difference of the two logits",
            "probability of the token among the two",
        ),
        (
            Prediction(("·are", OTHERS), (2.0, 0.5), (0.82, 0.18)),
            "token 0: ·are",
            "logit of the token",
            "probability of the token",
        ),
        (Prediction(("quality",), (0.4,), (1.0,), regression=True), "the score", "score", "score"),
    ],
)
def test_the_facts_name_what_is_explained_of_a_token_and_of_a_score(
    prediction: Prediction, explained: str, of_logit: str, of_probability: str
) -> None:
    made = explanation(EXAMPLE, [0.5, -0.25, 0.0], method="gradient_x_input")
    origin = replace(made.provenance, target=0, target_label=prediction.labels[0])
    for quantity, words in (("logit", of_logit), ("probability", of_probability)):
        provenance = replace(origin, params={"quantity": quantity})
        row = facts(explainer("gradient_x_input"), replace(made, prediction=prediction, provenance=provenance))
        assert {("explained", explained), ("explains", words)} <= set(row)


def test_a_group_of_one_has_no_shared_end() -> None:
    assert shared_ends([("a", 1.0), ("a", 3.0), ("b", 9.0), (None, 5.0), (None, 6.0)]) == {"a": 3.0}


def test_underline_and_values_are_switches_of_the_map() -> None:
    row = method_row(explainer("occlusion"), explanation(EXAMPLE, [0.5, -0.25, 0.0]), EXAMPLE, "token")
    assert "data-b" not in token_map_html(row.view)
    html = drawn(ViewOptions(style="underline", values=True), [0.5, -0.25, 0.0])
    assert '<div class="xg-map xg-under xg-values"' in html
    assert re.findall(r"data-b=([^ >]*)", html) == ["+0.50", "\u22120.25", "0"]


@pytest.mark.parametrize(
    ("value", "largest", "sign", "text"),
    [
        (0.0312, 0.4, True, "+0.03"), (-12.3, 45.0, True, "\u221212"), (0.5, 0.5, False, "0.50"),
        (1e-9, 1.0, True, "0"), (0.0, 0.0, True, "0"), (2e-7, 4e-7, False, "2e\u221207"),
    ],
)  # fmt: skip
def test_values_are_as_short_as_their_scale_allows(value: float, largest: float, sign: bool, text: str) -> None:
    assert brief(value, largest, sign) == text


@pytest.mark.parametrize(
    "look",
    [
        ViewOptions(),
        ViewOptions(gamma=0.3),
        ViewOptions(0.75, "shared", "underline", True),
        ViewOptions(values=True),
        ViewOptions(gamma=2.0),
        ViewOptions(layout="aligned"),
    ],
    ids=str,
)
def test_a_link_holds_the_look(look: ViewOptions) -> None:
    said: list[str] = []
    assert read_record(DEFAULT_VIEW, write_record(look, DEFAULT_VIEW), said) == look
    assert not said
    assert write_record(ViewOptions(), DEFAULT_VIEW) == {}


@pytest.mark.parametrize("gamma", ["0", "2.1", "x", "nan", "inf", "-1", ""])
def test_a_gamma_out_of_range_is_said(gamma: str) -> None:
    said: list[str] = []
    assert read_record(DEFAULT_VIEW, {"gamma": [gamma]}, said) == ViewOptions()
    assert said == [f"gamma: must be a number from 0.3 to 2.0, got {gamma!r}. 1 is used."]


@pytest.mark.parametrize("name", ["scale", "style", "values", "layout"])
def test_an_unknown_look_is_said(name: str) -> None:
    said: list[str] = []
    assert read_record(DEFAULT_VIEW, {name: ["nope"]}, said) == ViewOptions()
    assert said[0].startswith(f"{name}: unknown name 'nope'. Known:")
