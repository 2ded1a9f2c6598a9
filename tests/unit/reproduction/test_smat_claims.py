"""What is declared of SMaT: whole, told in words, bound to a digest; and the report that is written of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.reproduction.smat import shipped
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.claims import declared, sizes_named
from engine.reproduction.smat.examined import Examined, examined
from engine.reproduction.smat.naming import TASKS
from engine.reproduction.smat.report import from_plain
from engine.reproduction.smat.words import statistic_told, sum_told
from engine.reproduction.smat.writing import claims_csv, markdown, numbers_csv
from engine.scaffold.plan import NORMALISATIONS, SETTINGS
from tests.unit.reproduction.smat_standing_in import report_of

pytestmark = pytest.mark.usefixtures("home")

EVERY = {task: {"small": 1, "middle": 2, "large": 3} for task in TASKS}


def test_every_claim_can_be_tried() -> None:
    claims = declared().chosen(EVERY)
    assert len({one.id for one in claims}) == len(claims) == 45
    known = {*SETTINGS, "best_layer", "best_head", "active_heads", "inactive_heads"}
    for one in claims:
        assert bool(one.asked) != bool(one.people), one.id
        assert statistic_told(one)
        for contrast in one.contrasts:
            assert sum_told(contrast, EVERY)
            assert {term.setting for term in contrast.terms} <= known
            assert {term.normalisation for term in contrast.terms} <= set(NORMALISATIONS)
    assert {one.section.partition(",")[0] for one in claims} == {"5.1", "5.2", "5.3", "6"}


def test_numbers_are_named_by_what_a_claim_goes_through() -> None:
    [one] = declared().chosen(EVERY, ("text-smat-static",))
    assert len(one.asked) == 15
    assert one.contrasts[0].name == "1 examples, gradient L2 norm"
    first = "median simulability(SMaT; texts, 1 examples) − median simulability(gradient L2 norm; texts, 1 examples)"
    assert sum_told(one.contrasts[0], EVERY) == first
    [either] = declared().chosen(EVERY, ("heads-layers",))
    assert [len(entry) for entry in either.asked] == [2], "in either direction, and never with itself"


def test_sizes_have_names_by_their_order() -> None:
    assert sizes_named((40, 10, 20)) == {"small": 10, "middle": 20, "large": 40}
    assert sizes_named((9,)) == {"middle": 9}
    assert sizes_named((1, 2, 3, 4)) == {"small": 1, "middle": 3, "large": 4}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(scale="huge"), "scale: unknown name 'huge'"),
        (Asked(claims=("nothing",)), "claims: unknown name 'nothing'"),
        (Asked(examples=1), "examples: must be a whole number of at least 2"),
        (Asked(seed=-1), "seed: must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Asked, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        asked.check()


def test_the_full_scale_says_how_its_teachers_are_made() -> None:
    asked = Asked("full")
    assert all(isinstance(why, str) and "Make it: exegesis train" in why for why in asked.tasks.values())
    assert len(asked.chosen) == 45


def test_a_report_is_written_and_read_again() -> None:
    asked = Asked()
    made = report_of(asked)
    assert from_plain(json.loads(json.dumps(made.as_plain()))) == made
    by_id = {one.id: one.verdict for one in made.outcomes}
    assert by_id["text-smat-baseline"] == "holds"
    assert by_id["text-gradients-more"] == "does not hold", "each setting is above the one before it"
    assert by_id["text-auc-smat"] == "not run"
    text = markdown(made, asked.declared, asked.chosen, {"text-gradients-more": Examined("The scale.", "Because.")})
    assert text.splitlines()[0].endswith(f"claims {asked.declared.digest}")
    assert "Why it fails here: The scale. Because." in text
    assert "Why it fails here: not examined." in text
    assert "## Simulability (tables 1, 3, 5 and 7)" in text
    assert "above no explanations" in text
    rows = list(csv.DictReader(io.StringIO(numbers_csv(made))))
    assert {row["table"] for row in rows} == {"simulability", "active_share", "depth"}
    told = list(csv.DictReader(io.StringIO(claims_csv(made, asked.chosen))))
    assert {row["claim"] for row in told} == set(by_id)


def test_reasons_are_bound_to_what_was_declared(tmp_path: Path) -> None:
    file = tmp_path / "examined.json"
    assert examined("d", file) == {}
    plain = {"digest": "d", "claims": {"heads-few": {"reason": "Scale.", "how": "So."}}}
    file.write_text(json.dumps(plain), encoding="utf-8")
    assert examined("d", file) == {"heads-few": Examined("Scale.", "So.")}
    assert examined("other", file) == {}
    file.write_text(json.dumps({**plain, "claims": {"none": {"reason": "", "how": ""}}}), encoding="utf-8")
    with pytest.raises(UsageError, match="none is no claim of"):
        examined("d", file)
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="must be an object of digest and claims"):
        examined("d", file)


def test_a_finished_report_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FILE", tmp_path / "shipped.json")
    assert shipped.shipped_smat() is None
    plain = report_of(Asked()).as_plain()
    assert shipped.is_smat(plain)
    shipped.ship(plain, "2026-01-31", "abc123", tmp_path / "shipped.json", tmp_path / "text.md")
    found = shipped.shipped_for(Asked())
    assert found is not None
    assert found.report == report_of(Asked())
    assert shipped.shipped_for(Asked(seed=1)) is None
    assert found.told in (tmp_path / "text.md").read_text(encoding="utf-8").splitlines()
    with pytest.raises(UsageError, match="REPORT: must be what `exegesis reproduce smat"):
        shipped.ship({**plain, "digest": "other"}, "", "", tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "a").exists()
