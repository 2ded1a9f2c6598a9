"""Puts a finished report in the place of the shipped one: `python -m engine.reproduction.ship REPORT.json`."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

from engine.errors import UsageError
from engine.home import project_root
from engine.reproduction.asked import Asked
from engine.reproduction.claims import declared
from engine.reproduction.outcome import Reproduction, from_plain
from engine.reproduction.shipped import FILE, Shipped
from engine.reproduction.writing import markdown

REPORT = project_root() / "docs" / "reproduction.md"


def checked(found: Reproduction) -> Reproduction:
    """Errors: a report of something else than what is declared, or of models that were not all there."""
    asked = Asked()
    if (found.command, found.digest) != (asked.command(), asked.declared.digest):
        raise UsageError(f"REPORT: must be what `{asked.command()}` writes with the claims as they are declared now.")
    if missing := [one.name for one in found.models if one.why]:
        raise UsageError(f"REPORT: was made without {', '.join(missing)}. Run the command again with them.")
    return found


def ship(report: Path, date: str, revision: str, file: Path = FILE, text: Path = REPORT) -> None:
    """Writes what the page opens with, and the same in Markdown for readers of the project."""
    found = checked(from_plain(json.loads(report.read_text(encoding="utf-8"))))
    made = Shipped(found, date, revision)
    file.write_text(made.as_json(), encoding="utf-8")
    text.write_text(markdown(found, declared(), made.told), encoding="utf-8")


def main() -> None:
    [report] = sys.argv[1:]
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    revision = subprocess.run(asked, cwd=project_root(), capture_output=True, text=True, check=True).stdout.strip()
    ship(Path(report), datetime.date.today().isoformat(), revision)


if __name__ == "__main__":
    main()
