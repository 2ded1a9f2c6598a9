"""The report that comes with the project: of the claims as they are declared, of the models as they are, and whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.models import catalog
from engine.reproduction import shipped as shipping
from engine.reproduction.claims import Claim, declaration
from engine.reproduction.documents import markdown, report_files
from engine.reproduction.papers import THESIS_TOPICS, TOPICS
from engine.reproduction.report import (
    CEILING,
    CONSTRUCTION,
    DUPLICATE,
    UNLEARNED,
    ClaimOutcome,
    ModelSummary,
    best_margin,
    error_rates,
    judge_margins,
    margin,
)
from engine.reproduction.shipped import (
    ShippedReport,
    changed_models,
    default_query,
    document_file,
    report_file,
    ship,
    shipped_for,
    shipped_report,
)
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import ThesisQuery
from tests.unit.reproduction.stand_ins import report_of
from tests.unit.reproduction.student_reports import report_of as students_report_of

LARGEST_FILE = 400_000
SHIPPED = {topic: own for topic in THESIS_TOPICS if (own := shipped_report(topic)) is not None}
TOPICS_SHIPPED = pytest.mark.parametrize(("topic", "shipped"), SHIPPED.items(), ids=SHIPPED)


def test_the_first_topic_has_one() -> None:
    assert THESIS_TOPICS[0] in SHIPPED


@TOPICS_SHIPPED
def test_it_answers_the_claims_as_they_are_declared_now(topic: str, shipped: ShippedReport) -> None:
    known = declaration(topic)
    assert shipped.report.digest == known.digest, "run the command of the report again, and engine.reproduction.shipped"
    assert [one.id for one in shipped.report.outcomes] == [claim.id for claim in known.claims]
    query = default_query(topic)
    assert shipped.report.examples == known.examples[query.scale]
    assert shipped_for(query) == shipped
    assert shipped_for(replace(query, seed=1)) is None
    assert report_file(topic).stat().st_size < LARGEST_FILE


@TOPICS_SHIPPED
def test_it_was_made_with_the_models_that_come_with_the_project(topic: str, shipped: ShippedReport) -> None:
    trained = {one.name for one in default_query(topic).fine_tunings()}
    assert bool(trained) == (topic == "data")
    now = {
        one.name: one.revision if one.name in trained else catalog.revision(one.name) for one in shipped.report.models
    }
    assert all(now.values())
    assert changed_models(shipped.report, now) == ()
    one = next(iter(now))
    assert changed_models(shipped.report, {**now, one: "0"}) == (one,)


@TOPICS_SHIPPED
def test_each_verdict_follows_from_the_numbers_that_stand_beside_it(topic: str, shipped: ShippedReport) -> None:
    for claim, outcome in zip(declaration(topic).claims, shipped.report.outcomes, strict=True):
        if outcome.numbers:
            verdict = verdict_again(claim, outcome)
            ceiling = all(one.at_best for one in outcome.numbers)
            constructed = verdict == "holds" and claim.by_construction
            expected = CONSTRUCTION if constructed else CEILING if ceiling else verdict
            assert outcome.verdict == expected, claim.id
        else:
            assert outcome.verdict in (UNLEARNED, DUPLICATE), claim.id
            assert outcome.why
        assert bool(outcome.settled_by or outcome.on_bound) == (outcome.verdict == "undecided"), claim.id


def verdict_again(claim: Claim, outcome: ClaimOutcome) -> str:
    """From values, ends and declared bounds alone."""
    entries, choices = outcome.entries, max(map(len, outcome.entries))
    wide = claim.least is not None or choices > 1
    rates = error_rates(len(entries), choices, claim.least or len(entries))
    margins = [
        [
            margin(one.value, (one.wide_low, one.wide_high) if wide else (one.low, one.high),
                   (one.wide_low, one.wide_high), claim.bounds, one.n, claim.strict, rates)
            for one in entry
        ]
        for entry in entries
    ]  # fmt: skip
    return judge_margins([best_margin(own) for own in margins], claim.least).verdict


@TOPICS_SHIPPED
def test_most_claims_are_told_and_the_document_is_the_report(topic: str, shipped: ShippedReport) -> None:
    counts = shipped.report.counts
    assert counts["not run"] == 0
    assert 3 * counts["undecided"] <= len(shipped.report.outcomes) or topic != THESIS_TOPICS[0]
    text = markdown(shipped.report, default_query(topic), shipped.provenance)
    assert document_file(topic).read_text(encoding="utf-8") == text


@pytest.fixture
def nothing_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the test's own in the place of those that come with the project."""
    monkeypatch.setattr(shipping, "FOLDER", tmp_path)
    monkeypatch.setattr(shipping, "DOCUMENTS", tmp_path)


@pytest.mark.usefixtures("nothing_shipped")
@pytest.mark.parametrize("topic", TOPICS)
def test_a_finished_report_is_shipped_and_read_again(topic: str, tmp_path: Path) -> None:
    query = default_query(topic)
    report = report_of(query, "bert-marked") if isinstance(query, ThesisQuery) else students_report_of(query)
    assert shipped_report(topic) is None
    (tmp_path / "finished.json").write_text(json.dumps(report.as_plain()), encoding="utf-8")
    ship(tmp_path / "finished.json", "2026-01-31", "abc123")
    assert shipped_for(query) == shipped_report(topic) == ShippedReport(report, "2026-01-31", "abc123")
    assert shipped_for(replace(query, seed=1)) is None
    provenance = f"Made on 2026-01-31, with revision abc123 of the project, by: {query.command()}"
    assert provenance in document_file(topic).read_text(encoding="utf-8").splitlines()


@pytest.mark.usefixtures("nothing_shipped")
def test_models_that_were_trained_for_it_are_named_without_the_folders_of_this_machine(tmp_path: Path) -> None:
    out = tmp_path / "made here"
    out.mkdir()
    report = report_of(default_query("data"), str(out / "models" / "minilm-movies"))
    (out / "thesis-data.json").write_text(json.dumps(report.as_plain()), encoding="utf-8")
    ship(out / "thesis-data.json", "2026-01-31", "abc123")
    text = report_file("data").read_text(encoding="utf-8")
    assert "reproduction/models/minilm-movies" in text
    assert str(tmp_path) not in text + document_file("data").read_text(encoding="utf-8")


@pytest.mark.usefixtures("nothing_shipped")
@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (report_of(ThesisQuery(examples=3), "bert-marked").as_plain(), "must be what `exegesis reproduce thesis "),
        (report_of(ThesisQuery(), "bert-marked").as_plain(), "was made without gpt2-nli"),
        ({**students_report_of(SmatQuery()).as_plain(), "digest": "other"}, "must be what `exegesis reproduce smat"),
    ],
    ids=["other examples", "no model", "other claims"],
)
def test_what_does_not_answer_what_is_declared_is_not_shipped(
    plain: dict[str, object], message: str, tmp_path: Path
) -> None:
    model = ModelSummary("gpt2-nli", "nli", "model: unknown name", None, 0)
    (tmp_path / "finished.json").write_text(json.dumps({**plain, "models": [vars(model)]}), encoding="utf-8")
    with pytest.raises(UsageError, match=f"REPORT: {message}"):
        ship(tmp_path / "finished.json", "2026-01-31", "abc123")
    assert [file.name for file in tmp_path.iterdir()] == ["finished.json"]


def test_the_report_as_json_is_text_that_people_can_read() -> None:
    report = report_of(ThesisQuery(), "bert-marked")
    first, *others = report.outcomes
    report = replace(report, outcomes=(replace(first, why="“5 − 3”"), *others))
    written = report_files(report, ThesisQuery())[".json"]()
    assert "“5 − 3”" in written
    assert json.loads(written) == json.loads(json.dumps(report.as_plain()))
