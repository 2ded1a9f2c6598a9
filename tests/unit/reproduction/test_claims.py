"""What is declared: complete, readable, and as it was before anything was run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.registry import explainer
from engine.reproduction.claims import FILE, Claim, Term, declared
from engine.reproduction.measures import MEASURES
from engine.reproduction.scales import SCALES
from engine.reproduction.sources import METHODS

DIGEST = "4c239388c0b469cf2abaab3641304833288b85b54ddca72b5d505c603ce75507"
"""Of the claims as they were last revised: what that changed is tested in `test_labels`. It changes with any of them.
"""
SECTIONS = {"4.1.1", "4.1.2", "4.1.3", "4.1.5", "4.2.1", "4.2.2", "4.2.3", "4.2.5"}
CLAIMS = {claim.id: claim for claim in declared().claims}


def test_nothing_was_moved_since_it_was_declared(tmp_path: Path) -> None:
    assert declared().digest == DIGEST
    moved = json.loads(FILE.read_text(encoding="utf-8"))
    moved["claims"][0]["threshold"] = 0.89
    (tmp_path / "moved.json").write_text(json.dumps(moved), encoding="utf-8")
    assert declared(tmp_path / "moved.json").digest != DIGEST
    moved["claims"][0]["threshold"] = 0.9
    (tmp_path / "laid-out.json").write_text(json.dumps(moved, indent=7, sort_keys=True), encoding="utf-8")
    assert declared(tmp_path / "laid-out.json").digest == DIGEST, "its content counts, not how it is laid out"


def test_each_section_has_claims_of_its_own() -> None:
    assert {section for claim in CLAIMS.values() for section in claim.section.split(", ")} == SECTIONS
    assert len(CLAIMS) == len(declared().claims)
    titles = [(claim.section, claim.title) for claim in declared().claims]
    assert len(set(titles)) == len(titles)
    assert all(len(title) < 60 for _, title in titles)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_names_what_there_is(claim: Claim) -> None:
    assert all(claim.asked)
    assert claim.bounds != (None, None)
    for term in (term for contrast in claim.contrasts for term in contrast.terms):
        assert MEASURES[term.metric].source == "evaluation"
        assert term.metric in declared().tasks[term.task]
        assert all(explainer(method, "text") for method in term.methods)
        assert set(term.methods) <= {*METHODS, "random"}
        for scale in SCALES.values():
            assert set(term.models) <= scale.bases.keys()
            assert term.task in scale.tasks


def test_what_a_claim_goes_through_is_written_out() -> None:
    found = CLAIMS["marked-gradients-behind"]
    assert len(found.asked) == 2 * 3
    assert all(len(choices) == 1 for choices in found.asked)
    sizes = tuple(f"size-{number}" for number in range(1, 5))
    [first, *_] = found.contrasts
    assert first.name == "gradient_l2, integrated_gradients"
    assert first.terms == (
        Term(1, "marked", "mean_rank_pct", ("gradient_l2",), sizes),
        Term(-1, "marked", "mean_rank_pct", ("integrated_gradients",), sizes),
    )
    assert (found.rule, found.bounds, found.strict) == ("at least", (0.1, None), False)


def test_nothing_is_compared_with_itself() -> None:
    [choices] = CLAIMS["families-nli-bert-roberta"].asked
    assert [one.name for one in choices] == ["bert, roberta", "roberta, bert"]


def test_claims_are_chosen_by_their_names() -> None:
    ids = ("nli-harder", "marked-best")
    assert [claim.id for claim in declared().chosen(ids)] == ["marked-best", "nli-harder"], "in the thesis's order"
    assert declared().chosen(()) == declared().claims
    with pytest.raises(UsageError, match=r"claims: unknown name 'marked-bst'\. Did you mean 'marked-best'"):
        declared().chosen(("marked-bst",))
