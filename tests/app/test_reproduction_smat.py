"""SMaT on the Reproduction page as a script: what was declared, verdicts, numbers, links to the students."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from components.reproduction.page import NOT_RUN_YET, RUN_LABELS
from engine import jobs
from engine.reproduction import shipped
from engine.reproduction.report import ClaimNumber, ClaimOutcome
from engine.reproduction.smat import SmatQuery
from tests.alerts import errors, readable_html
from tests.app.test_reproduction_page import badges, button, counts_of, opened
from tests.unit.reproduction.student_reports import report_of, store_report

pytestmark = pytest.mark.usefixtures("own_home", "no_report")


@pytest.fixture
def no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the report that comes with the project."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)


def test_before_any_run_all_claims_stand_as_they_were_declared() -> None:
    page = opened(paper="smat")
    claims = SmatQuery().selected_claims
    assert badges(page) == ["not run"] * len(claims)
    text = readable_html(page)
    assert all(claim.says in text for claim in claims)
    assert any("Learning to Scaffold" in one.value for one in page.markdown)
    assert any(one.value == NOT_RUN_YET["smat"] for one in page.markdown)
    assert button(page, RUN_LABELS["smat"])
    assert [one.value for one in page.code] == [
        SmatQuery().declaration.digest,
        SmatQuery().command(),
        "exegesis reproduce smat --scale full",
    ]


def test_a_run_is_a_job_that_is_followed_and_stopped() -> None:
    waiting = jobs.create("reproduce_smat", SmatQuery().as_plain())
    page = opened(paper="smat")
    assert not button(page, RUN_LABELS["smat"])
    next(one for one in page.button if one.label == "Cancel").click().run()
    assert jobs.get(waiting.id).state == "cancelled"
    assert button(opened(paper="smat"), "Go on")


def test_a_report_shows_verdicts_reasons_and_the_way_to_the_students() -> None:
    made = store_report(SmatQuery())
    page = opened(paper="smat", claim="normalisation-sparsemax")
    verdicts = [one.verdict for one in made.outcomes]
    assert badges(page) == [*counts_of(verdicts), *verdicts]
    text = readable_html(page)
    assert "Why it fails here: not examined." in text
    assert "A program cannot tell what people find." in text
    assert "The first is simulability(SMaT; scores, " in text
    links = {link.proto.label: link.proto.query_string for link in page.get("page_link")}
    assert set(links) == {f"Students: scores, {name}" for name in ("sparsemax", "softmax", "entmax15", "none")}
    assert "recipe.normalisation=softmax" in links["Students: scores, softmax"]
    assert "smat" in page.query_params["paper"]


def test_claims_are_chosen_by_verdict() -> None:
    made = store_report(SmatQuery())
    counts = counts_of([one.verdict for one in made.outcomes])
    shown = badges(opened(paper="smat", show="holds"))[len(counts) :]
    assert shown == ["holds"] * made.counts["holds"] != []


def test_it_opens_with_the_report_that_comes_with_the_project() -> None:
    ours = shipped.ShippedReport(report_of(SmatQuery()), "2026-01-31", "abc123")
    shipped.report_file("smat").write_text(ours.as_json(), encoding="utf-8")
    text = readable_html(opened(paper="smat"))
    assert f"This report comes with the project. {ours.provenance}" in text


def test_claims_that_fail_only_because_a_gain_is_too_small_are_counted() -> None:
    report = report_of(SmatQuery())
    id = "text-l2"
    small = ClaimNumber("250 examples", 0.01, -0.02, 0.03, -0.02, 0.03, 15, "does not hold", smallest_gain=0.04)
    outcomes = tuple(ClaimOutcome(id, "does not hold", ((small,),)) if one.id == id else one for one in report.outcomes)
    report = replace(report, outcomes=outcomes)
    failed = report.counts["does not hold"]
    shipped.report_file("smat").write_text(
        shipped.ShippedReport(report, "2026-01-31", "abc").as_json(), encoding="utf-8"
    )
    page = opened(paper="smat", claim=id)
    sentence = f"1 of the {failed} that do not hold fails only because its gain is too small to be found"
    assert any(one.value.startswith(sentence) for one in page.caption)
    assert "(gains below 0.04 do not count)" in readable_html(page)
    assert not any("250 examples: 0.01" in one.label for one in page.expander), "it does not fail by a wide margin"


def test_an_unknown_paper_is_said() -> None:
    assert any("paper: unknown name 'other'" in one for one in errors(opened(paper="other")))
