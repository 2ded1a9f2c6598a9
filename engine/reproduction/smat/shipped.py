"""SMaT's report at the embedded scale that comes with the project: read without a model, before anything was run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.home import project_root
from engine.reproduction.shipped import Shipped
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.examined import examined
from engine.reproduction.smat.report import SmatReport, from_plain
from engine.reproduction.smat.writing import markdown

FILE = Path(__file__).parents[1] / "embedded_smat.json"
DOCUMENT = project_root() / "docs" / "reproduction-smat.md"
COMMAND = "exegesis reproduce smat "
"""How the command of every report of SMaT begins."""


@dataclass(frozen=True)
class ShippedSmat(Shipped):
    """`report`: of SMaT."""

    report: SmatReport


def shipped_smat() -> ShippedSmat | None:
    """What the file holds; None where there is none."""
    if not FILE.exists():
        return None
    plain = json.loads(FILE.read_text(encoding="utf-8"))
    return ShippedSmat(from_plain(plain["report"]), plain["date"], plain["revision"], plain.get("revised", ""))


def shipped_for(asked: Asked) -> ShippedSmat | None:
    """The one that answers what is asked; None where it answers something else, or other claims."""
    found = shipped_smat()
    same = found is not None and (found.report.command, found.report.digest) == (asked.command(), asked.declared.digest)
    return found if same and not asked.places else None


def is_smat(plain: Mapping[str, object]) -> bool:
    """Whether a report is one of SMaT."""
    return str(plain.get("command", "")).startswith(COMMAND)


def ship(plain: Mapping[str, object], date: str, revision: str, file: Path = FILE, text: Path = DOCUMENT) -> None:
    """Writes what the page opens with, and the same in Markdown, with why claims fail as far as it was found out.

    Errors: a report of something else than what is declared, or without a teacher or a student that it needs.
    """
    found, asked = from_plain(plain), Asked()
    if (found.command, found.digest) != (asked.command(), asked.declared.digest):
        raise UsageError(f"REPORT: must be what `{asked.command()}` writes with the claims as they are declared now.")
    missing = [
        f"{one.name} ({one.why or f'{one.skipped} students'})" for one in found.experiments if one.why or one.skipped
    ]
    if missing:
        raise UsageError(f"REPORT: was made without {', '.join(missing)}. Run the command again with them.")
    made = ShippedSmat(found, date, revision)
    file.write_text(made.as_json(), encoding="utf-8")
    document = markdown(found, asked.declared, asked.chosen, examined(found.digest), made.told)
    text.write_text(document, encoding="utf-8")
