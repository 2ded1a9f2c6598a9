"""What the project says about itself is true: commands, versions, license, size."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project import ROOT, sources

LARGEST_TRACKED = 60 * 2**20


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Package -> pinned version, from the constraints file."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, flags=re.MULTILINE))


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_commands_in_the_documents_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, flags=re.MULTILINE))
    assert named
    assert named <= targets()


def test_the_readme_names_the_two_commands_and_each_target_is_phony() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make app" in text
    assert {"make test ", "make test-all"} <= set(re.findall(r"make test(?: |-all)", text))
    [phony] = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(phony.split()) == targets()


def test_the_changelog_starts_with_the_version_of_the_package(pyproject: dict[str, Any]) -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [first, *_] = re.findall(r"^## (\S+)", text, flags=re.MULTILINE)
    assert first == pyproject["project"]["version"]


def test_citation_and_security_policy_name_the_version_of_the_package(pyproject: dict[str, Any]) -> None:
    version = pyproject["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["cff-version"], citation["version"], citation["license"]) == ("1.2.0", version, "Apache-2.0")
    assert {"title", "message", "authors", "date-released"} <= citation.keys()
    assert f"| {version.rpartition('.')[0]}.x | yes |" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_dependency_is_pinned_to_a_tested_version(pyproject: dict[str, Any], pins: dict[str, str]) -> None:
    project = pyproject["project"]
    for text in [
        *project["dependencies"],
        *project["optional-dependencies"]["dev"],
        *project["optional-dependencies"]["docs"],
    ]:
        requirement = Requirement(text)
        pinned = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pinned), f"{text}, pinned {pinned}"


def test_constraints_name_plain_versions_only(pins: dict[str, str]) -> None:
    assert pins["torch"] == "2.13.0"
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())


def test_the_licence_is_apache(pyproject: dict[str, Any]) -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert pyproject["project"]["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip(reason="not a git checkout, so nothing is tracked")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def test_the_repository_stays_small_and_holds_no_pickle() -> None:
    files = tracked()
    assert sum(file.stat().st_size for file in files) < LARGEST_TRACKED
    assert not [file.name for file in files if file.suffix in {".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib"}]


def test_no_work_is_left_as_a_note() -> None:
    mark = re.compile(r"\b(TO" r"DO|FIX" r"ME|NotImplemented" r"Error)\b")
    found = [str(file) for file in sources() if mark.search(file.read_text(encoding="utf-8"))]
    assert not found
