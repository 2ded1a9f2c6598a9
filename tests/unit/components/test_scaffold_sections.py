"""What the other sections build of made-up findings: tables, charts, maps and their words."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from components.palette import THEMES
from components.scaffold.learned_explainer import maps_table, pictures_html, texts_html
from components.scaffold.sections import NOT_TRAINED, contrast_words, plan_with, protocols_table, side_chart, verdict
from components.scaffold.sections import normalizations_table as normalisations_table
from components.scaffold.sections import plausibility_table as plausible_table
from engine.data.examples import LabeledExample
from engine.data.sources import load_source
from engine.result import Token
from engine.scaffold.explainer_checks import (
    PUNCTUATION,
    STOP,
    UNIFORM,
    ExplainerComparison,
    HeadContrast,
    PlausibilitySide,
    TrivialProtocols,
)
from engine.scaffold.plan import NONE, SMAT, EvaluationSample
from engine.scaffold.result import ScaffoldResult
from tests.unit.components.taught import PLAN, SIZE, outcome

SIDE = PlausibilitySide(
    "", (3, 1), {"gradient_l2": np.array([0.6, 0.8]), SMAT: np.array([0.9, 0.7])}, np.array([[0.2, 0.9], [0.4, 0.7]]),
    np.array([[0.1, 0.5, 0.95, 0.3], [0.2, 0.4, 0.85, 0.1]]), {"nothing is marked": 1},
)  # fmt: skip


def found(normalization: str) -> ScaffoldResult:
    plan = plan_with(PLAN, normalization)
    return ScaffoldResult(plan, (2, 2), tuple(outcome(pupil, 4) for pupil in plan.students))


def shares(learned: float) -> TrivialProtocols:
    of = EvaluationSample("bert-marked", "reviews", None, (0, 1), load_source("text", "reviews"))
    own = {
        (kind, id): np.array([value, value + 0.02])
        for kind, uniform in ((PUNCTUATION, 0.1), (STOP, 0.3))
        for id, value in ((UNIFORM, uniform), ("attention_logits", uniform + 0.01), (SMAT, uniform + learned))
    }
    return TrivialProtocols(of, (0, 1), own, {})


def test_plausibility_says_which_layer_and_head_labels_chose() -> None:
    table = plausible_table(SIDE)
    assert table["Explainer"].tolist() == ["Gradient L2 norm", "SMaT, learned", "Best layer * (1)", "Best head * (1.0)"]
    assert table["AUC"].tolist() == [0.7, 0.8, 0.8, 0.9]


@pytest.mark.parametrize("theme", THEMES)
def test_the_chart_of_plausibility_has_every_explainer_and_a_line_at_chance(theme: str) -> None:
    spec = json.loads(side_chart(SIDE, theme).to_json())  # type: ignore[arg-type]
    drawn = [row for rows in spec["datasets"].values() for row in rows]
    assert {row["Method"] for row in drawn if "Method" in row} == set(plausible_table(SIDE)["Explainer"])
    assert [row["chance"] for row in drawn if "chance" in row] == [0.5]


def test_one_example_has_no_interval_and_that_is_said() -> None:
    one = replace(
        SIDE, examples=(3,), methods={SMAT: np.array([0.9])}, layers=SIDE.layers[:1], heads=SIDE.heads[:1]
    )  # fmt: skip
    assert plausible_table(one)["Low"].isna().all()
    assert "undefined for one example" in side_chart(one, "light").to_json()


def test_active_heads_in_words() -> None:
    told = contrast_words(HeadContrast(3, 21, 0.62, 0.51, (0.04, 0.2)))
    assert "mean AUC 0.62 of 3 active heads, 0.51 of 21 inactive heads; difference +0.11" in told
    assert told.endswith("+0.04 to +0.20. Active heads are more plausible than inactive ones.")


def test_trivial_protocols_in_words_and_numbers() -> None:
    table = protocols_table(shares(0.02))
    assert table["Mass on"].tolist() == ["punctuation", "stop words"]
    assert table.iloc[0]["SMaT, learned"] == "13.0%"
    assert table.iloc[0]["SMaT above uniform, points"].startswith("+2.0 [")
    assert verdict(shares(0.02)) == (
        "**No trivial protocol found**: the learned explainer does not put significantly more mass (10 percentage "
        "points or more) on punctuation or stop words than a uniform map."
    )
    told = verdict(shares(0.3))
    assert told.startswith("**This may be a trivial protocol**: 41.0% of its mass lies on punctuation")
    assert "(+30.0 points from uniform)" in told


def test_normalisations_side_by_side() -> None:
    each = {"sparsemax": found("sparsemax"), "softmax": replace(found("softmax"), students=())}
    rows = {row[0]: row[1:] for row in normalisations_table(each, SIZE).to_numpy().tolist()}
    assert rows["SMaT, learned"] == ["0.810 [0.805 : 0.815], 3 seeds", NOT_TRAINED]
    assert rows["No explainer"] == ["0.610 [0.605 : 0.615], 3 seeds"] * 2
    assert plan_with(PLAN, "none").recipe == replace(PLAN.recipe, normalisation="none")
    assert NONE in plan_with(PLAN, "none").settings


def beside(grid: tuple[int, int] | None = None) -> ExplainerComparison:
    words = [("[CLS]", 0, 0, -1, True), ("a", 0, 1, 0, False), ("<b>", 2, 5, 0, False)]
    tokens = tuple(Token(*word) for word in words)
    maps = {SMAT: np.array([0.0, 0.25, 0.75]), "gradient_l2": np.array([0.0, 0.5, 0.5])}
    return ExplainerComparison(tokens, grid, maps, "good", 1.0, 0)


def test_maps_of_a_text_share_a_scale_and_show_what_is_marked() -> None:
    html = texts_html(beside(), LabeledExample("a <b>", rationale=((2, 5),)), shared=True)
    assert "&lt;b&gt;" in html
    assert "<b>" not in html.replace("<b class", "")
    titles = [part.partition("</p>")[0] for part in html.split('<p class="xg-title">')[1:]]
    assert titles == ["Rationale", "SMaT, learned", "Gradient L2 norm"]
    assert html.count("0 to 0.75, without sign") == 1
    own = texts_html(beside(), LabeledExample("a <b>"), shared=False)
    assert "Each map has its own scale" in own
    assert "Rationale" not in own
    assert maps_table(beside())["SMaT, learned"].tolist() == [0.0, 0.25, 0.75]


def test_maps_of_a_picture_stand_side_by_side() -> None:
    html = pictures_html(beside((1, 2)), shared=True)
    assert html.count('role="img"') == 2
    assert "SMaT, learned. 1 rows, 2 columns. Largest: row 1, column 2 0.75, row 1, column 1 0.25." in html
    assert html.count("<b>0.75</b>") == 2
    assert pictures_html(beside((1, 2)), shared=False).count("<b>0.75</b>") == 1
