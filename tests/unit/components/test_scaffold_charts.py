"""Simulability as chart and table, and learning curves: which numbers are drawn, and what is said of bad students."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.scaffold.about import FIGURE, about_html, figure_svg
from components.scaffold.charts import (
    NOTHING,
    against,
    base_data,
    cells_data,
    interval_words,
    numbers_table,
    seeds_data,
    simulability_chart,
)
from components.scaffold.curves import curves_chart, curves_data, lines_of
from components.scaffold.curves import numbers_table as passes_table
from components.scaffold.table import NO_VALUE, NOT_YET, table_html, told_of
from components.scaffold.work import cost_words, reasons, seconds_of
from engine.jobs import Failure
from engine.scaffold.plan import NONE, SMAT, Pupil
from engine.scaffold.result import Cell, Pass
from tests.unit.components.scaffolded import PASSES, PLAN, found

DIVERGED = Pupil(SMAT, 50, 0)


def cell(setting: str, size: int = 50) -> Cell:
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
    nothing = found(changed={one: {"simulability": None} for one in PLAN.pupils})
    assert NOTHING in str(simulability_chart(nothing, "dark").to_dict())
    only = simulability_chart(found(replace(PLAN, settings=(NONE,))), "light").to_dict()
    assert len(only["layer"]) == 2


def test_the_numbers_are_those_of_the_chart() -> None:
    table = numbers_table(found())
    assert len(table) == 4 * 2
    assert dict(table.iloc[3])["Against no explainer"] == "better: quartiles apart"
    assert dict(table.iloc[0])["Against no explainer"] == "none to compare with"


def test_the_table_marks_and_leaves_no_cell_without_words() -> None:
    part = found()
    half = replace(part, outcomes=tuple(one for one in part.outcomes if one.pupil.train_size == 50 or one.pupil.seed))
    gone = found(changed={Pupil("gradient_l2", 50, seed): {"simulability": None} for seed in PLAN.seeds})
    html = table_html(half)
    assert html.count(">better<") == html.count(">worse<") == 2
    assert "2 of 3 seeds" in html
    assert table_html(gone).count(NO_VALUE) == 1
    alone = replace(part, outcomes=part.of(SMAT, 50))
    assert table_html(alone).count(NOT_YET) == 4 * 2 - 1
    assert all("nan" not in one and "None" not in one for one in (html, table_html(gone), table_html(alone)))


def test_names_in_the_table_are_escaped() -> None:
    plan = replace(PLAN, teacher="<b>")
    assert "<b>" not in table_html(found(plan)).replace('<b class="xg-mark', "")


def test_students_that_did_not_learn_are_told_in_words() -> None:
    changed = {
        DIVERGED: {"stopped": "diverged: the loss became nan in step 3"},
        Pupil(NONE, 1000, 9): {"best_epoch": -1},
        Pupil(NONE, 1000, 11): {"best_epoch": -1, "simulability": None},
    }
    told = told_of(found(changed=changed))
    assert len(told) == 3
    assert told[0].startswith("SMaT, learned, 50 examples: 1 of 3 students diverged (the loss became nan in step 3)")
    assert told[1].startswith("No explainer, 1,000 examples: 2 of 3 students never better")
    assert told[2].startswith("No explainer, 1,000 examples: 1 of 3 students without a simulability")
    assert told_of(found()) == []
    assert "seed 0 could not be taught: no memory" in told_of(found(failed={DIVERGED: "no memory"}))[0]


def test_curves_have_a_line_a_seed_and_a_student_under_way_is_dashed() -> None:
    there = found()
    part = replace(there, outcomes=tuple(one for one in there.outcomes if one.pupil.seed != 11))
    begun = {Pupil(SMAT, 50, 11): (Pass(0, 0.9, 0.4, None), Pass(1, 0.8, 0.3, 0.55))}
    lines = lines_of(part, SMAT, 50, "validation", begun)
    assert [(line.seed, line.live) for line in lines] == [(0, False), (9, False), (11, True)]
    table = curves_data(lines, "validation")
    assert len(table) == 2 * PASSES + 1
    assert table[table["kept"] == "yes"]["pass"].tolist() == [3, 3]
    assert table[table["state"] == "being taught"]["pass"].tolist() == [2]
    assert lines_of(part, NONE, 50, "outer", begun) == []
    assert len(passes_table(lines)) == 2 * PASSES + 2
    spec = curves_chart(lines, "outer", "accuracy", "dark").to_dict()
    assert spec["layer"][0]["encoding"]["y"]["title"] == "Explainer's outer loss (nats)"
    assert "No pass has a value" in str(curves_chart([], "loss", "pearson", "light").to_dict())


def test_the_cost_is_told_by_what_finished_students_took() -> None:
    there = found()
    part = replace(there, outcomes=there.of(SMAT, 50))
    missing = tuple(one for one in PLAN.pupils if (one.setting, one.train_size) != (SMAT, 50))
    assert seconds_of(part, missing) == pytest.approx(0.1 * sum(one.train_size for one in missing))
    assert seconds_of(replace(there, outcomes=()), missing) is None
    told = cost_words(part, missing)
    assert "24 students: 4 settings, 2 train sizes, 3 seeds; 21 to teach." in told
    assert "about 20 min 45 s" in told


def test_failures_for_the_same_reason_are_told_once() -> None:
    failures = tuple(Failure(f"unit {at}", f"student {at}", "no memory") for at in range(2))
    assert reasons(failures) == [("no memory", "2 students", "student 0; student 1")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figure_of_the_two_loops_has_words_for_those_who_do_not_see_it(theme: str) -> None:
    assert f'alt="{FIGURE.replace(chr(39), "&#x27;")}"' in about_html(theme)  # type: ignore[arg-type]
    assert figure_svg("light") != figure_svg("dark")
    for words in ("Teacher", "Explainer", "Student", "Inner loop:", "Outer loop:"):
        assert f">{words}<" in figure_svg(theme)  # type: ignore[arg-type]
