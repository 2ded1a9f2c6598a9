"""doctor and cache: what is broken and what to do; what is kept, checked, dropped, and where nothing can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import health
from engine.cli.root import app
from engine.models import catalog
from engine.store import result_store
from tests.unit.cli.conftest import Run


def test_cache_stats_check_prune_and_clear(run: Run, bert: str, own_home: Path) -> None:
    for text in ("one", "two", "three"):
        assert run("explain", "--model", bert, "--method", "random", "--text", text).code == 0
    stats = run("cache", "stats", "--json").json
    count = stats["entries"]
    assert count >= 3
    assert (stats["status"], stats["folder"]) == ("", str(own_home / "cache"))
    assert f"entries  {count}" in run("cache", "stats").out
    assert run("cache", "check", "--json").json == {"checked": count, "dropped": 0, "replaced": False, "trouble": ""}
    assert run("cache", "check").out == f"{count} entries read, 0 damaged ones deleted.\n"
    assert run("cache", "prune", "--max-bytes", f"{stats['bytes'] - 1}", "--json").json["dropped"] == 1
    said = run("cache", "clear").complaint(2)
    assert (
        said == f"cache clear: would delete {count - 1} results and cannot ask for confirmation. Add --yes to confirm."
    )
    assert run("cache", "clear", "--yes").out == f"{count - 1} results deleted.\n"
    assert run("cache", "stats", "--json").json["entries"] == 0


@pytest.mark.parametrize(("answer", "cleared"), [("n\n", False), ("", False), ("y\n", True)])
def test_clear_asks(run: Run, own_home: Path, monkeypatch: Any, answer: str, cleared: bool) -> None:
    from typer.testing import CliRunner

    result_store().put("key", {"a": 1}, {})
    monkeypatch.setattr("engine.cli.library.is_interactive", lambda: True)
    done = CliRunner().invoke(app, ["cache", "clear"], input=answer)
    assert done.exit_code == (0 if cleared else 130)
    assert result_store().stats().entries == (0 if cleared else 1)
    assert "Delete 1 results in" in done.stderr


@pytest.mark.parametrize("size", ["lots", "-1", "1.5GB", "MB"])
def test_a_size_that_is_none(run: Run, size: str) -> None:
    said = run("cache", "prune", "--max-bytes", size).complaint(2)
    assert said == f"--max-bytes: must be a number of bytes such as 500MB, got {size!r}."


def test_a_cache_that_cannot_be_kept_is_said(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    done = run("cache", "check")
    assert done.code == 1
    assert "cannot be used" in done.out


def test_an_explanation_that_is_not_kept_is_said(
    run: Run, bert: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    done = run("explain", "--model", bert, "--method", "random", "--text", "a film", "--json")
    assert (done.code, len(done.json)) == (0, 1)
    assert done.err.startswith("note: The cache ")
    assert "results are computed each time" in done.err


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
    assert lines["hub"].startswith("note   hub        not contacted")
    assert run("doctor", "--json").json["usable"] is False


def test_doctor_ends_well_when_nothing_is_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [health.Finding("python", "ok", "3.11"), health.Finding("hub", "note", "not reachable")]
    monkeypatch.setattr("engine.cli.library.examine", lambda: iter(findings))
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
        f"not the tested versions: torch 1.0 (tested: {health._tested()['torch']})",
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
