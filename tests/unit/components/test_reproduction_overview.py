"""The overview of a reproduction: a row a claim, in the order declared, that leads to the rest of it."""

from __future__ import annotations

import re
from html import unescape

from components.reproduction.known import Known
from components.reproduction.overview import NOTHING, counts_of, number_shown, overview_html, sections_html, totals
from components.reproduction.words import SECTIONS
from engine.reproduction.asked import Asked
from engine.reproduction.claims import declared, every_claim
from engine.reproduction.outcome import Reproduction
from engine.reproduction.scales import EMBEDDED
from engine.reproduction.shipped import Shipped
from tests.unit.reproduction.standing_in import report_of

CLAIMS = declared().claims
OUTCOMES = {one.id: one for one in report_of(Asked(), "bert-marked").outcomes}


def test_each_claim_has_a_row_with_its_verdict_and_a_link() -> None:
    html = overview_html(CLAIMS, OUTCOMES, EMBEDDED)
    rows = re.findall(r'scope="row".*?href="#claim-([^"]+)">(.*?)</a>.*?</span> (.*?)</td>', html)
    assert [(id, unescape(title), verdict) for id, title, verdict in rows] == [
        (claim.id, claim.title, OUTCOMES[claim.id].verdict) for claim in CLAIMS
    ]
    assert html.count('scope="rowgroup"') == len({claim.section.partition(",")[0] for claim in CLAIMS})


def test_the_number_that_decides_stands_beside_what_was_asked() -> None:
    found = OUTCOMES["marked-found"]
    assert number_shown(CLAIMS[0], found, EMBEDDED) == "Integrated gradients: 0.95 (0.93 to 0.97), asked: at least 0.9"
    assert number_shown(CLAIMS[0], None, EMBEDDED) == NOTHING
    not_run = next(claim for claim in CLAIMS if OUTCOMES[claim.id].verdict == "not run")
    assert number_shown(not_run, OUTCOMES[not_run.id], EMBEDDED) == NOTHING


def test_sections_tell_how_their_claims_fared() -> None:
    counts = counts_of(CLAIMS, OUTCOMES)
    assert sum(sum(own.values()) for own in counts.values()) == len(CLAIMS)
    assert counts["4.1.5"] == {"holds": 1, "not run": 1, "not run: the model has not learned the task": 1}
    told = "1 holds, 1 not run (the model has not learned the task), 1 not run"
    assert f"Ensembles, T5 in four sizes</a>: {told}</li>" in sections_html(counts)
    before = counts_of(CLAIMS, {})
    assert set().union(*before.values()) == {"not run"}


def test_totals_count_what_was_not_run_too() -> None:
    counts = counts_of(every_claim(), OUTCOMES)
    assert set(counts) == set(SECTIONS)
    found = totals(counts)
    assert sum(found.values()) == len(every_claim())
    fewer = totals(counts_of(CLAIMS, OUTCOMES))
    assert found == {**fewer, "not run": fewer["not run"] + len(every_claim()) - len(CLAIMS)}


def test_what_was_found_here_goes_before_what_comes_with_the_project() -> None:
    here, other = report_of(Asked(), "bert-marked"), report_of(Asked(seed=1), "bert-marked")
    ours = Shipped(other, "2026-01-31", "abc123")

    def known(found: Reproduction | None, shipped: Shipped | None) -> Known:
        return Known(found, shipped, None, None, (), (), "")

    assert (known(here, ours).shown, known(here, ours).made) == (here, "")
    assert (known(None, ours).shown, known(None, ours).made) == (other, ours.told)
    assert (known(None, None).shown, known(None, None).made) == (None, "")
