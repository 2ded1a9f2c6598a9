"""Simulability as chart and table, and learning curves: which numbers are drawn, and what is said of bad students."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from components.palette import CHART_COLORS
from components.scaffold.charts import (
    LEAST_SPAN,
    NO_VALUE,
    NOT_YET,
    NOTHING,
    CurveLine,
    against,
    answer_html,
    answer_sentences,
    base_data,
    cells_data,
    curves_chart,
    curves_data,
    exceptions_of,
    interval_words,
    lines_of,
    passes_table,
    seeds_data,
    simulability_chart,
    simulability_table,
    span,
    table_html,
)
from components.scaffold.page import FIGURE, about_html, figure_svg
from components.scaffold.runs import cost_words, failure_rows, seconds_of
from engine.jobs import UnitFailure
from engine.scaffold.plan import HELD_OUT, NONE, SMAT, StudentRun
from engine.scaffold.result import SimulabilityCell, TrainingPass
from tests.unit.components.scaffolded import PASSES, PLAN, found

DIVERGED = StudentRun(SMAT, 50, 0)


def cell(setting: str, size: int = 50) -> SimulabilityCell:
    there = found().cell(setting, size)
    assert there is not None
    return there


def test_a_cell_is_the_median_with_its_quartiles() -> None:
    assert interval_words(cell(SMAT)) == "0.810 [0.805:0.815]"


def test_only_quartiles_that_do_not_overlap_are_called_better_or_worse() -> None:
    told = {setting: against(found(), cell(setting)) for setting in PLAN.settings}
    assert told == {NONE: None, "gradient_l2": "worse", "attention_logits": "", SMAT: "better"}
    without = replace(PLAN, settings=("gradient_l2", SMAT))
    assert against(found(without), cell(SMAT)) is None


def test_the_answer_names_what_is_better_and_worse_than_no_explainer_with_quartiles() -> None:
    size, sentences = answer_sentences(found())
    assert size == 1000
    assert sentences == [
        "Better than without explanations: SMaT, learned 0.910 [0.905:0.915].",
        "No clear difference (quartiles overlap): Attention logits, all layers 0.815 [0.810:0.820].",
        "Worse than without explanations: Gradient L2 norm 0.710 [0.705:0.715].",
        "Without explanations: 0.810 [0.805:0.815].",
    ]
    assert "<b>Students with 1,000 examples:</b> Better than" in answer_html(found())


def test_students_without_explanations_that_get_more_examples_are_a_baseline_too() -> None:
    stricter = found(replace(PLAN, settings=(NONE, HELD_OUT, SMAT)))
    _, sentences = answer_sentences(stricter)
    assert sentences == [
        "Better than without explanations: SMaT, learned 0.910 [0.905:0.915].",
        "Without explanations: 0.810 [0.805:0.815]; with 200 more examples 0.830 [0.825:0.835].",
    ]
    drawn = json.dumps(simulability_chart(stricter, "light").to_dict())
    assert "No explainer, more examples" in drawn
    assert '"cross"' in drawn


def test_without_a_baseline_the_answer_says_so() -> None:
    _, (sentence,) = answer_sentences(found(replace(PLAN, settings=("gradient_l2", SMAT))))
    assert sentence.startswith("The highest median is that of SMaT, learned 0.910 [0.905:0.915]. Select the setting")


def test_a_small_difference_does_not_fill_the_axis() -> None:
    assert span([0.527, 0.533]) == pytest.approx([0.48, 0.58])
    assert span([0.2, 0.9]) == [0.2, 0.9]
    low, high = span([0.5])
    assert high - low == pytest.approx(LEAST_SPAN)


def test_the_chart_draws_every_cell_and_seed_beside_the_band_of_no_explainer() -> None:
    cells, seeds, base = cells_data(found()), seeds_data(found()), base_data(found())
    assert len(cells) == 3 * 2
    assert len(seeds) == 3 * 2 * 3
    assert list(base["size"]) == ["50", "1,000"]
    assert base["value"].tolist() == pytest.approx([0.71, 0.81])
    spec = simulability_chart(found(), "light").to_dict()
    assert len(spec["layer"]) == 2 + 3
    assert spec["layer"][2]["encoding"]["x"]["sort"] == ["50", "1,000"]


def test_a_chart_of_nothing_says_so() -> None:
    nothing = found(changed={one: {"simulability": None} for one in PLAN.students})
    assert NOTHING in str(simulability_chart(nothing, "dark").to_dict())
    only = simulability_chart(found(replace(PLAN, settings=(NONE,))), "light").to_dict()
    assert len(only["layer"]) == 2


def test_the_numbers_are_those_of_the_chart() -> None:
    table = simulability_table(found())
    assert len(table) == 4 * 2
    assert dict(table.iloc[3])["Against no explainer"] == "better: quartiles apart"
    assert dict(table.iloc[0])["Against no explainer"] == "none to compare with"


def test_the_table_marks_and_leaves_no_cell_without_words() -> None:
    part = found()
    half = replace(part, students=tuple(one for one in part.students if one.run.train_size == 50 or one.run.seed))
    gone = found(changed={StudentRun("gradient_l2", 50, seed): {"simulability": None} for seed in PLAN.seeds})
    html = table_html(half)
    assert html.count(">better<") == html.count(">worse<") == 2
    assert "2 of 3 seeds" in html
    assert table_html(gone).count(NO_VALUE) == 1
    alone = replace(part, students=part.students_of(SMAT, 50))
    assert table_html(alone).count(NOT_YET) == 4 * 2 - 1
    assert all("nan" not in one and "None" not in one for one in (html, table_html(gone), table_html(alone)))


def test_names_in_the_table_are_escaped() -> None:
    plan = replace(PLAN, teacher="<b>")
    assert "<b>" not in table_html(found(plan)).replace('<b class="xg-mark', "")


def test_students_that_did_not_learn_are_told_in_words() -> None:
    changed = {
        DIVERGED: {"stopped": "diverged: the loss became nan in step 3"},
        StudentRun(NONE, 1000, 9): {"best_epoch": -1},
        StudentRun(NONE, 1000, 11): {"best_epoch": -1, "simulability": None},
    }
    told = exceptions_of(found(changed=changed))
    assert len(told) == 3
    assert told[0].startswith("SMaT, learned, 50 examples: 1 of 3 students diverged (the loss became nan in step 3)")
    assert told[1].startswith("No explainer, 1,000 examples: 2 of 3 students did not improve")
    assert told[2].startswith("No explainer, 1,000 examples: 1 of 3 students without a simulability")
    assert exceptions_of(found()) == []
    assert "seed 0 could not be trained: no memory" in exceptions_of(found(failed={DIVERGED: "no memory"}))[0]


def test_curves_have_a_line_a_seed_and_a_student_under_way_is_dashed() -> None:
    there = found()
    part = replace(there, students=tuple(one for one in there.students if one.run.seed != 11))
    begun = {StudentRun(SMAT, 50, 11): (TrainingPass(0, 0.9, 0.4, None), TrainingPass(1, 0.8, 0.3, 0.55))}
    lines = lines_of(part, SMAT, 50, "validation", begun)
    assert [(line.seed, line.in_training) for line in lines] == [(0, False), (9, False), (11, True)]
    table = curves_data(lines, "validation")
    assert len(table) == 2 * PASSES + 1
    assert table[table["kept"] == "yes"]["pass"].tolist() == [3, 3]
    assert table[table["state"] == "in training"]["pass"].tolist() == [2]
    assert lines_of(part, NONE, 50, "outer", begun) == []
    assert len(passes_table(lines)) == 2 * PASSES + 2
    spec = curves_chart(lines, "outer", "accuracy", "dark").to_dict()
    assert spec["layer"][0]["encoding"]["y"]["title"] == "Explainer's outer loss (nats)"
    assert spec["layer"][0]["encoding"]["color"]["field"] == "seed"
    assert "No pass has a value" in str(curves_chart([], "loss", "pearson", "light").to_dict())


def test_more_curves_than_colors_share_one() -> None:
    passes = (TrainingPass(0, 0.9, 0.4, 0.5), TrainingPass(1, 0.8, 0.3, 0.55))
    lines = [CurveLine(seed, passes, 1, False) for seed in range(9)]
    encoding = curves_chart(lines, "validation", "accuracy", "light").to_dict()["layer"][0]["encoding"]
    assert encoding["color"] == {"value": CHART_COLORS["light"][0]}
    assert encoding["detail"]["field"] == "seed", "they are still lines of their own"
    eight = curves_chart(lines[:8], "validation", "accuracy", "light").to_dict()["layer"][0]["encoding"]
    assert eight["color"]["scale"]["domain"] == [str(seed) for seed in range(8)]


def test_the_cost_is_told_by_what_finished_students_took() -> None:
    there = found()
    part = replace(there, students=there.students_of(SMAT, 50))
    missing = tuple(one for one in PLAN.students if (one.setting, one.train_size) != (SMAT, 50))
    assert seconds_of(part, missing) == pytest.approx(0.1 * sum(one.train_size for one in missing))
    assert seconds_of(replace(there, students=()), missing) is None
    told = cost_words(part, missing)
    assert "24 students: 4 settings, 2 train sizes, 3 seeds; 21 left to train." in told
    assert "about 21 min" in told


def test_failures_for_the_same_reason_are_told_once() -> None:
    failures = tuple(UnitFailure(f"unit {at}", f"student {at}", "no memory") for at in range(2))
    assert failure_rows(failures) == [("no memory", "2 students", "student 0; student 1")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figure_of_the_two_loops_has_words_for_those_who_do_not_see_it(theme: str) -> None:
    assert f'alt="{FIGURE.replace(chr(39), "&#x27;")}"' in about_html(theme)  # type: ignore[arg-type]
    assert figure_svg("light") != figure_svg("dark")
    for words in ("Teacher", "Explainer", "Student", "Inner loop:", "Outer loop:"):
        assert f">{words}<" in figure_svg(theme)  # type: ignore[arg-type]
