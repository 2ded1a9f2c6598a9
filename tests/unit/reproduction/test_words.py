"""What claims and numbers are called, what was seen of many numbers, and how long a run takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.models import catalog
from engine.reproduction.asked import Asked
from engine.reproduction.outcome import ModelFound, Number, Outcome
from engine.reproduction.scales import EMBEDDED, FULL
from engine.reproduction.timing import NO_TIME, SECONDS, seconds_of, time_told
from engine.reproduction.verdicts import Verdict
from engine.reproduction.words import name_told, right_told, seen_told
from tests.unit.reproduction.standing_in import report_of


def number(value: float, verdict: Verdict) -> Number:
    return Number("lime", value, value, value, value, value, 9, verdict)


def test_names_are_told_by_the_titles_of_methods_measures_and_models() -> None:
    assert name_told("nli, comprehensiveness, kernel_shap", EMBEDDED) == "nli, Comprehensiveness, Kernel SHAP"
    assert name_told("lime, size-2", EMBEDDED) == "LIME, t5-small"
    assert name_told("lime, size-2", FULL) == "LIME, t5-efficient-mini"
    assert name_told("", EMBEDDED) == ""


def test_of_many_numbers_is_told_where_they_lie() -> None:
    some = (number(0.2, "holds"), number(-0.4, "does not hold"), number(0.1, "holds"))
    told = "of 3 numbers 2 inside their bounds, 1 outside; they go from −0.4 to 0.2"
    assert seen_told(Outcome("a", "does not hold", tuple((one,) for one in some))) == told
    assert seen_told(Outcome("a", "holds", ((some[0],),))) == ""


def test_how_often_models_are_right_is_told_by_data_set() -> None:
    found = report_of(Asked(), "bert-marked")
    assert right_told(found) == ""
    rights = (("a", "nli", 0.31), ("b", "nli", 0.406), ("c", "reviews", 1.0), ("d", "reviews", None))
    models = tuple(ModelFound(name, data, "", share, 100) for name, data, share in rights)
    told = "On nli the models are right on 31 to 41 % of the examples; on reviews the models are right on 100 % of the "
    assert right_told(replace(found, models=models)) == f"{told}examples."


def test_time_is_that_of_the_models_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ("families-attention-gpt2-last",)
    assert seconds_of(Asked(examples=30, claims=one)) == pytest.approx(30 * SECONDS["gpt2"])
    assert "takes about" in time_told(Asked(examples=30, claims=one))
    assert seconds_of(Asked(claims=one, places={"gpt2-marked": "elsewhere"})) is None
    assert SECONDS.keys() == {base.rpartition("/")[2] for base in EMBEDDED.bases.values()}
    monkeypatch.setattr(catalog, "revision", lambda place: place)
    assert time_told(Asked("full", claims=one)) == NO_TIME
