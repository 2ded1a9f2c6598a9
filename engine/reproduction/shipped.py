"""The reports of the embedded scale that come with the project: read without a model, wherever nothing was run yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.reproduction.asked import Asked
from engine.reproduction.claims import TOPICS
from engine.reproduction.outcome import Reproduction, from_plain

FILE = Path(__file__).with_name("embedded.json")
"""Of the first topic; those of the others are named after them."""


@dataclass(frozen=True)
class Shipped:
    """`date`: of the run, year first. `revision`: of the project that it ran with, as its version control names it.

    `revised`: how verdicts were labelled anew without a run, when, and why; else empty.
    """

    report: Reproduction
    date: str
    revision: str
    revised: str = ""

    @property
    def told(self) -> str:
        """How it was made."""
        made = f"Made on {self.date}, with revision {self.revision} of the project, by: {self.report.command}"
        return f"{made}. {self.revised}" if self.revised else made

    def as_json(self) -> str:
        """What the file holds."""
        plain = {
            "date": self.date,
            "revision": self.revision,
            "revised": self.revised,
            "report": self.report.as_plain(),
        }
        return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def file_of(topic: str) -> Path:
    """Where the report of a topic stands."""
    return FILE if topic == TOPICS[0] else FILE.with_name(f"{FILE.stem}_{topic}.json")


def shipped(file: Path = FILE) -> Shipped | None:
    """What the file holds; None where there is none."""
    if not file.exists():
        return None
    plain = json.loads(file.read_text(encoding="utf-8"))
    return Shipped(from_plain(plain["report"]), plain["date"], plain["revision"], plain.get("revised", ""))


def shipped_for(asked: Asked) -> Shipped | None:
    """The one that answers what is asked; None where it answers something else, or other claims."""
    found = shipped(file_of(asked.topic))
    same = found is not None and (found.report.command, found.report.digest) == (asked.command(), asked.declared.digest)
    return found if same and not asked.places else None


def changed(found: Reproduction, now: Mapping[str, str]) -> tuple[str, ...]:
    """Models that are not what they were when the report was made. `now`: revisions by name, empty where one is not
    here."""
    models = dict.fromkeys(one.name for one in found.models if one.revision != now.get(one.name, ""))
    return tuple(models)
