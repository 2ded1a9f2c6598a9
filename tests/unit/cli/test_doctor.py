"""doctor: what is broken, what to do, and what is no more than information."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import health
from engine.models import catalog
from tests.unit.cli.conftest import Run


def test_doctor_says_what_is_broken_and_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(catalog, "EMBEDDED", tmp_path / "none")
    done = run("doctor")
    assert (done.code, done.err) == (1, "")
    lines = {line.split()[1]: line for line in done.out.splitlines()}
    assert lines["python"].startswith("ok ")
    assert lines["models"].startswith("broken")
    assert lines["home"].startswith("broken")
    assert "set EXEGESIS_HOME" in lines["home"]
    assert lines["hub"].startswith("note   hub        not asked")
    assert run("doctor", "--json").json["usable"] is False


def test_doctor_ends_well_when_nothing_is_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [health.Finding("python", "ok", "3.11"), health.Finding("hub", "note", "not reachable")]
    monkeypatch.setattr(health, "examine", lambda: iter(findings))
    found = run("doctor", "--json")
    assert found.code == 0
    assert found.json == {"usable": True, "checks": [finding.as_plain() for finding in findings]}


def test_doctor_names_versions_other_than_the_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "1.0"}
    monkeypatch.setattr(
        health, "_installed", lambda name: versions.get(name, health._tested().get(health._normal(name)))
    )
    found = health._libraries()
    assert (found.status, found.detail) == (
        "note",
        f"other than tested: torch 1.0 (tested: {health._tested()['torch']})",
    )
    monkeypatch.setattr(health, "_installed", lambda name: None if name == "torch" else "1")
    assert health._libraries().detail == "missing: torch"


def test_a_look_that_fails_is_a_finding() -> None:
    def _odd() -> health.Finding:
        raise RuntimeError("why")

    assert health._safely(_odd).as_plain() == {
        "name": "odd", "status": "broken", "detail": "RuntimeError: why",
        "advice": "Report this with your Python version.",
    }  # fmt: skip


def test_an_unreachable_hub_is_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    found = health._hub()
    assert found.status == "note"
    assert "http://127.0.0.1:9 is not reachable" in found.detail
