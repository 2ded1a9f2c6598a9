"""The overview of a reproduction: a row a claim, in the order declared, that leads to the rest of it."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from components.reproduction.claim_view import (
    NO_NUMBER,
    OPPOSED_NOTE,
    SECTIONS,
    count_verdicts,
    decisive_number_text,
    failure_margin,
    headline,
    note_html,
    overview_html,
    section_label,
    totals,
    trainings_caption,
    widest_failures,
)
from components.reproduction.state import LocalReport, TopicStatus
from engine.reproduction.claims import Claim, declaration, thesis_claims
from engine.reproduction.documents import Examination
from engine.reproduction.papers import EMBEDDED, REAL
from engine.reproduction.report import VERDICTS, ClaimNumber, ClaimOutcome, Reproduction
from engine.reproduction.shipped import ShippedReport
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.wording import number_with_interval, quantity_name
from tests.unit.reproduction.stand_ins import report_of

CLAIMS = declaration().claims
OUTCOMES = {one.id: one for one in report_of(ThesisQuery(), "bert-marked").outcomes}


def test_each_claim_has_a_row_with_its_verdict_and_a_link() -> None:
    html = overview_html(CLAIMS, OUTCOMES, {}, EMBEDDED)
    rows = re.findall(r'scope="row".*?href="#claim-([^"]+)">(.*?)</a>.*?</span> (.*?)</td>', html)
    assert [(id, unescape(title), verdict) for id, title, verdict in rows] == [
        (claim.id, claim.title, OUTCOMES[claim.id].verdict) for claim in CLAIMS
    ]


def test_other_trainings_are_summed_up_and_marked_where_they_disagree() -> None:
    ids = [one.id for one in OUTCOMES.values() if one.verdict == "holds"][:3]
    examination = Examination(
        trainings={ids[0]: ("holds", "holds"), ids[1]: ("does not hold", "holds"), ids[2]: ("undecided", "holds")},
        overall={ids[0]: "holds", ids[1]: "undecided", ids[2]: "undecided"},
    )
    examinations = dict.fromkeys(OUTCOMES, examination)
    assert trainings_caption(OUTCOMES, examinations) == (
        "3 claims were also judged on other trainings of the models: 1 has the same verdict with all, and 1 holds "
        "with one training and fails with another. Over trainings and examples together, 1 is decided."
    )
    assert trainings_caption({}, examinations) == ""
    assert trainings_caption(OUTCOMES, dict.fromkeys(OUTCOMES)) == ""
    html = overview_html(CLAIMS, OUTCOMES, examinations, EMBEDDED)
    noted = re.findall(r'href="#claim-([^"]+)">[^/]*</a></th><td[^>]*><span[^>]*>.</span> [^<]*<br>', html)
    assert noted == [ids[1]]
    assert html.count(OPPOSED_NOTE) == 1


def test_code_in_a_note_is_code_and_markup_is_text() -> None:
    html = note_html("It holds (`exegesis evaluate --model <b>`) on `a` and ` alone.")
    assert "(<code>exegesis evaluate --model &lt;b&gt;</code>) on <code>a</code> and ` alone." in html


def test_a_number_and_its_interval_have_the_same_decimals() -> None:
    number = OUTCOMES["marked-found"].numbers[0]
    for values, text in (
        ((1.0, 0.964, 1.0), "1.000 (0.964 to 1.000)"),
        ((-0.96, -0.994, -0.88), "−0.960 (−0.994 to −0.880)"),
        ((3.0, 2.0, 4.0), "3 (2 to 4)"),
        ((-0.0001, -0.25, 0.2), "0.00 (−0.25 to 0.20)"),
    ):
        assert number_with_interval(replace(number, value=values[0], low=values[1], high=values[2])) == text


def test_the_number_that_decides_stands_beside_what_was_asked() -> None:
    outcome = OUTCOMES["marked-found"]
    assert (
        decisive_number_text(CLAIMS[0], outcome, EMBEDDED)
        == "Integrated gradients: 0.95 (0.93 to 0.97), required: at least 0.9"
    )
    assert decisive_number_text(CLAIMS[0], outcome, EMBEDDED, with_quantity=True) == (
        "Integrated gradients, mean of overlap with the marks: 0.95 (0.93 to 0.97), required: at least 0.9"
    )
    assert decisive_number_text(CLAIMS[0], None, EMBEDDED) == NO_NUMBER
    not_run = next(claim for claim in CLAIMS if OUTCOMES[claim.id].verdict == "not run")
    assert decisive_number_text(not_run, OUTCOMES[not_run.id], EMBEDDED) == NO_NUMBER


def test_a_difference_is_named_with_its_sides() -> None:
    """“Below chance: −0.96” would read as a confirmation."""
    claims = {one.id: one for one in thesis_claims()}
    below = quantity_name(claims["families-gradient-below"], "gpt2", EMBEDDED)
    assert below == "paired difference of overlap with the marks (chance minus Gradient L2 norm)"
    rank = quantity_name(claims["families-rollout-t5"], "", EMBEDDED)
    assert rank == "paired difference of mean rank, normalized (chance minus Attention rollout)", "the lower the better"
    blocks = quantity_name(claims["families-random-average"], "bert", EMBEDDED)
    assert blocks == "paired difference (rho with the last block random minus rho with all blocks random)"
    for claim in thesis_claims():
        assert all(quantity_name(claim, one.name, EMBEDDED) for one in claim.contrasts)


def test_sections_tell_how_their_claims_fared() -> None:
    counts = count_verdicts(CLAIMS, OUTCOMES)
    assert sum(sum(own.values()) for own in counts.values()) == len(CLAIMS)
    assert counts["4.1.5"] == {"holds": 1, "not run": 1, "not run: the model has not learned the task": 1}
    numbers = "1 holds, 1 not run (the model has not learned the task), 1 not run"
    assert section_label("4.1.5", counts["4.1.5"], EMBEDDED) == f"**4.1.5 Ensembles, T5 in four sizes**: {numbers}"
    assert section_label("4.1.5", counts["4.1.5"], REAL) == f"**4.1.5 Ensembles**: {numbers}"
    assert section_label("4.1.3", {"holds": 1}, REAL) == "**4.1.3 Film reviews with human highlights**: 1 holds"
    before = count_verdicts(CLAIMS, {})
    assert set().union(*before.values()) == {"not run"}


def test_the_headline_counts_the_findings_alone() -> None:
    none = dict.fromkeys(VERDICTS, 0)
    assert headline(none | {"holds": 26, "does not hold": 29, "undecided": 16, "at a ceiling": 9}) == (
        "26 of 71 claims hold, 29 do not, and 16 are undecided."
    )
    assert headline(none | {"holds": 1, "does not hold": 1, "undecided": 1}) == (
        "1 of 3 claims holds, 1 does not, and 1 is undecided."
    )
    assert headline(none | {"not run": 3}) == "No claim has a result yet."


def failing(claim: Claim, value: float) -> ClaimOutcome:
    number = ClaimNumber("", value, value, value, value, value, 100, "does not hold")
    return ClaimOutcome(claim.id, "does not hold", ((number,),))


def test_failures_are_ordered_by_the_distance_from_the_bound_that_they_violate() -> None:
    first, second, third, fourth = CLAIMS[:4]
    least, most, within = (
        replace(first, rule="at least", bounds=(0.9, None)),
        replace(second, rule="at most", bounds=(None, 0.1)),
        replace(third, rule="within", bounds=(-0.2, 0.2)),
    )
    claims = (least, most, within, replace(fourth, rule="at least", bounds=(0.5, None)))
    outcomes = {one.id: failing(one, value) for one, value in zip(claims, (0.5, 0.9, -0.8, 0.6), strict=True)}
    margins = [round(failure_margin(one, outcomes[one.id]), 9) for one in claims]
    assert margins == [0.4, 0.8, 0.6, 0.0], "0.9 - 0.5, 0.9 - 0.1, -0.2 - -0.8; the last is inside"
    assert widest_failures(claims, outcomes, 3) == [most, within, least]
    outcomes[most.id] = replace(outcomes[most.id], verdict="undecided")
    assert widest_failures(claims, outcomes, 2) == [within, least], "only what does not hold"


def test_totals_count_what_was_not_run_too() -> None:
    counts = count_verdicts(thesis_claims(), OUTCOMES)
    assert set(counts) == {name for name in SECTIONS if name.startswith("4.")}
    every = totals(counts)
    assert sum(every.values()) == len(thesis_claims())
    fewer = totals(count_verdicts(CLAIMS, OUTCOMES))
    assert every == {**fewer, "not run": fewer["not run"] + len(thesis_claims()) - len(CLAIMS)}


def test_what_was_found_here_goes_before_what_comes_with_the_project() -> None:
    here, other = report_of(ThesisQuery(), "bert-marked"), report_of(ThesisQuery(seed=1), "bert-marked")
    ours = ShippedReport(other, "2026-01-31", "abc123")

    def shown(local: Reproduction | None, shipped: ShippedReport | None) -> tuple[Reproduction | None, str]:
        status = TopicStatus(LocalReport(local), shipped, None, None)
        return status.report, status.provenance

    assert shown(here, ours) == (here, "")
    assert shown(None, ours) == (other, ours.provenance)
    assert shown(None, None) == (None, "")
