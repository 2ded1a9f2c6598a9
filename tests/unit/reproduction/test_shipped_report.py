"""The report that comes with the project: of the claims as they are declared, of the models as they are, and whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.models import catalog
from engine.reproduction.asked import Asked
from engine.reproduction.claims import FILES, TOPICS, Claim, declared
from engine.reproduction.outcome import ModelFound, Outcome
from engine.reproduction.ship import document_of, ship
from engine.reproduction.shipped import Shipped, changed, file_of, shipped, shipped_for
from engine.reproduction.verdicts import CEILING, CONSTRUCTION, TWIN, UNLEARNED, chances, judged, margin, most
from engine.reproduction.writing import markdown
from tests.unit.reproduction.standing_in import report_of

LARGEST_FILE = 400_000
SHIPPED = {topic: found for topic in TOPICS if (found := shipped(file_of(topic))) is not None}
TOPICS_SHIPPED = pytest.mark.parametrize(("topic", "found"), SHIPPED.items(), ids=SHIPPED)


def test_the_first_topic_has_one() -> None:
    assert TOPICS[0] in SHIPPED


@TOPICS_SHIPPED
def test_it_answers_the_claims_as_they_are_declared_now(topic: str, found: Shipped) -> None:
    known = declared(FILES[topic])
    assert found.report.digest == known.digest, "run the command of the report again, and engine.reproduction.ship"
    assert [one.id for one in found.report.outcomes] == [claim.id for claim in known.claims]
    assert found.report.examples == known.examples["embedded"]
    assert shipped_for(Asked(topic=topic)) == found
    assert shipped_for(Asked(topic=topic, seed=1)) is None
    assert file_of(topic).stat().st_size < LARGEST_FILE


@TOPICS_SHIPPED
def test_it_was_made_with_the_models_that_come_with_the_project(topic: str, found: Shipped) -> None:
    now = {one.name: catalog.revision(one.name) for one in found.report.models}
    assert changed(found.report, now) == ()
    assert changed(found.report, {**now, "t5-marked": "0"}) == ("t5-marked",)


@TOPICS_SHIPPED
def test_each_verdict_follows_from_the_numbers_that_stand_beside_it(topic: str, found: Shipped) -> None:
    for claim, outcome in zip(declared(FILES[topic]).claims, found.report.outcomes, strict=True):
        if outcome.numbers:
            verdict = verdict_again(claim, outcome)
            ceiling = all(one.at_best for one in outcome.numbers)
            constructed = verdict == "holds" and claim.by_construction
            expected = CONSTRUCTION if constructed else CEILING if ceiling else verdict
            assert outcome.verdict == expected, claim.id
        else:
            assert outcome.verdict in (UNLEARNED, TWIN), claim.id
            assert outcome.why
        assert bool(outcome.settled_by or outcome.on_bound) == (outcome.verdict == "undecided"), claim.id


def verdict_again(claim: Claim, outcome: Outcome) -> str:
    """From values, ends and declared bounds alone."""
    entries, choices = outcome.entries, max(map(len, outcome.entries))
    wide = claim.least is not None or choices > 1
    chance = chances(len(entries), choices, claim.least or len(entries))
    margins = [
        [
            margin(one.value, (one.wide_low, one.wide_high) if wide else (one.low, one.high),
                   (one.wide_low, one.wide_high), claim.bounds, one.n, claim.strict, chance)
            for one in entry
        ]
        for entry in entries
    ]  # fmt: skip
    return judged([most(own) for own in margins], claim.least).verdict


@TOPICS_SHIPPED
def test_most_claims_are_told_and_the_document_is_the_report(topic: str, found: Shipped) -> None:
    counts = found.report.counts
    assert counts["not run"] == 0
    assert 3 * counts["undecided"] <= len(found.report.outcomes) or topic != TOPICS[0]
    assert document_of(topic).read_text(encoding="utf-8") == markdown(found.report, declared(FILES[topic]), found.told)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_finished_report_is_shipped_and_read_again(topic: str, tmp_path: Path) -> None:
    found = report_of(Asked(topic=topic), "bert-marked")
    source, file, text = (tmp_path / name for name in ("found.json", "shipped.json", "report.md"))
    source.write_text(json.dumps(found.as_plain()), encoding="utf-8")
    ship(source, "2026-01-31", "abc123", file, text)
    assert shipped(file) == Shipped(found, "2026-01-31", "abc123")
    told = f"Made on 2026-01-31, with revision abc123 of the project, by: {Asked(topic=topic).command()}"
    assert told in text.read_text(encoding="utf-8").splitlines()
    assert shipped(tmp_path / "nowhere.json") is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [(Asked(examples=3), "REPORT: must be what `exegesis reproduce thesis "), (Asked(), "was made without gpt2-nli")],
)
def test_what_does_not_answer_what_is_declared_is_not_shipped(asked: Asked, said: str, tmp_path: Path) -> None:
    plain = report_of(asked, "bert-marked").as_plain()
    plain["models"] = [vars(ModelFound("gpt2-nli", "nli", "model: unknown name", None, 0))]
    (tmp_path / "found.json").write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        ship(tmp_path / "found.json", "2026-01-31", "abc123", tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "a").exists()
