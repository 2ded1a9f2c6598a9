"""Puts a finished report in the place of the shipped one: `python -m engine.reproduction.ship REPORT.json [...]`."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

from engine.errors import UsageError
from engine.home import project_root
from engine.reproduction.asked import Asked
from engine.reproduction.claims import TOPICS
from engine.reproduction.outcome import Reproduction, from_plain
from engine.reproduction.shipped import Shipped, file_of
from engine.reproduction.smat.shipped import is_smat
from engine.reproduction.smat.shipped import ship as ship_smat
from engine.reproduction.writing import markdown

REPORT = project_root() / "docs" / "reproduction.md"


def document_of(topic: str) -> Path:
    """The same of a topic for readers of the project."""
    return REPORT if topic == TOPICS[0] else REPORT.with_name(f"{REPORT.stem}-{topic}.md")


def answered(found: Reproduction) -> Asked:
    """What the report answers. Errors: something else than what is declared; models that were not all there."""
    every = [Asked(topic=topic) for topic in TOPICS]
    same = [one for one in every if (found.command, found.digest) == (one.command(), one.declared.digest)]
    if not same:
        wanted = " or ".join(f"`{one.command()}`" for one in every)
        raise UsageError(f"REPORT: must be what {wanted} writes with the claims as they are declared now.")
    if missing := [one.name for one in found.models if one.why]:
        raise UsageError(f"REPORT: was made without {', '.join(missing)}. Run the command again with them.")
    return same[0]


def ship(report: Path, date: str, revision: str, file: Path | None = None, text: Path | None = None) -> None:
    """Writes what the page opens with, and the same in Markdown for readers of the project; where the topic's stand."""
    found = from_plain(json.loads(report.read_text(encoding="utf-8")))
    asked, made = answered(found), Shipped(found, date, revision)
    (file or file_of(asked.topic)).write_text(made.as_json(), encoding="utf-8")
    (text or document_of(asked.topic)).write_text(markdown(found, asked.declared, made.told), encoding="utf-8")


def main() -> None:
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    revision = subprocess.run(asked, cwd=project_root(), capture_output=True, text=True, check=True).stdout.strip()
    for report in map(Path, sys.argv[1:]):
        plain, date = json.loads(report.read_text(encoding="utf-8")), datetime.date.today().isoformat()
        ship_smat(plain, date, revision) if is_smat(plain) else ship(report, date, revision)


if __name__ == "__main__":
    main()
