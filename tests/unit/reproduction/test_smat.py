"""What is declared of SMaT: whole, told in words, bound to a digest; and the report that is written of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.reproduction.claims import declaration
from engine.reproduction.documents import FailureReason, claims_csv, markdown, read_reasons, tables_csv
from engine.reproduction.papers import EMBEDDED, TASKS
from engine.reproduction.report import report_from_plain
from engine.reproduction.smat import SmatQuery, named_sizes
from engine.reproduction.wording import statistic_text, sum_text
from engine.scaffold.plan import NORMALIZATIONS, SETTINGS
from tests.unit.reproduction.student_reports import report_of

pytestmark = pytest.mark.usefixtures("home")

EVERY = {task: {"small": 1, "middle": 2, "large": 3} for task in TASKS}


def test_every_claim_can_be_tried() -> None:
    claims = declaration("smat").select((), EVERY)
    assert len({one.id for one in claims}) == len(claims) == 48
    known = {*SETTINGS, "best_layer", "best_head", "active_heads", "inactive_heads"}
    for one in claims:
        assert bool(one.entries) != bool(one.people), one.id
        assert statistic_text(one)
        for contrast in one.contrasts:
            assert sum_text(contrast, EMBEDDED, EVERY)
            assert {term.setting for term in contrast.terms} <= known
            assert {term.normalization for term in contrast.terms} <= set(NORMALIZATIONS)
    assert {one.section.partition(",")[0] for one in claims} == {"5.1", "5.2", "5.3", "6"}


def test_numbers_are_named_by_what_a_claim_goes_through() -> None:
    [one] = declaration("smat").select(("text-smat-static",), EVERY)
    assert len(one.entries) == 15
    assert one.contrasts[0].name == "1 examples, gradient L2 norm"
    first = "simulability(SMaT; texts, 1 examples) − simulability(gradient L2 norm; texts, 1 examples)"
    assert sum_text(one.contrasts[0], EMBEDDED, EVERY) == first
    [either] = declaration("smat").select(("heads-layers",), EVERY)
    assert [len(entry) for entry in either.entries] == [2], "in either direction, and never with itself"


def test_sizes_have_names_by_their_order() -> None:
    assert named_sizes((40, 10, 20)) == {"small": 10, "middle": 20, "large": 40}
    assert named_sizes((9,)) == {"middle": 9}
    assert named_sizes((1, 2, 3, 4)) == {"small": 1, "middle": 3, "large": 4}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (SmatQuery(scale="huge"), "scale: unknown name 'huge'"),
        (SmatQuery(claims=("nothing",)), "claims: unknown name 'nothing'"),
        (SmatQuery(examples=1), "examples: must be a whole number of at least 2"),
        (SmatQuery(seed=-1), "seed: must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(query: SmatQuery, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        query.check()


def test_the_full_scale_says_how_its_teachers_are_made() -> None:
    query = SmatQuery("full")
    assert all(isinstance(why, str) and "Train it with: exegesis train" in why for why in query.tasks.values())
    assert len(query.selected_claims) == 48


def test_a_report_is_written_and_read_again() -> None:
    query = SmatQuery()
    report = report_of(query)
    assert report_from_plain(json.loads(json.dumps(report.as_plain()))) == report
    by_id = {one.id: one.verdict for one in report.outcomes}
    assert by_id["text-smat-baseline"] == "holds"
    assert by_id["text-gradients-more"] == "does not hold", "each setting is above the one before it"
    assert by_id["text-auc-smat"] == "not run"
    reasons = {"text-gradients-more": FailureReason("The scale.", "Because.")}
    text = markdown(report, query, reasons=reasons)
    assert text.splitlines()[0].endswith(f"claims {query.declaration.digest}")
    assert "Why it fails here: The scale. Because." in text
    assert "Why it fails here: not examined." in text
    assert "## Simulability (tables 1, 3, 5 and 7)" in text
    assert "above no explanations" in text
    rows = list(csv.DictReader(io.StringIO(tables_csv(report))))
    assert {row["table"] for row in rows} == {"simulability", "active_share", "depth"}
    claims = list(csv.DictReader(io.StringIO(claims_csv(report, query.selected_claims))))
    assert {row["claim"] for row in claims} == set(by_id)


def test_reasons_are_bound_to_what_was_declared(tmp_path: Path) -> None:
    file, declared = tmp_path / "examined.json", declaration("smat")
    assert read_reasons(file, declared, "d") == {}
    plain = {"digest": "d", "claims": {"heads-few": {"reason": "Scale.", "how": "So."}}}
    file.write_text(json.dumps(plain), encoding="utf-8")
    assert read_reasons(file, declared, "d") == {"heads-few": FailureReason("Scale.", "So.")}
    assert read_reasons(file, declared, "other") == {}
    file.write_text(json.dumps({**plain, "claims": {"none": {"reason": "", "how": ""}}}), encoding="utf-8")
    with pytest.raises(UsageError, match="none is not a claim of"):
        read_reasons(file, declared, "d")
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="must be an object of digest and claims"):
        read_reasons(file, declared, "d")
