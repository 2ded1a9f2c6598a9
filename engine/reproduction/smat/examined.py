"""Why claims that fail here do: whether the code or the scale is the reason, as it was found out after a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.reproduction.outcome import Outcome
from engine.reproduction.smat.claims import declared
from engine.reproduction.smat.words import NOT_EXAMINED

FILE = Path(__file__).parents[1] / "smat_examined.json"


@dataclass(frozen=True)
class Examined:
    """`reason`: code, scale, or what else it is. `how`: how that is known."""

    reason: str
    how: str


def examined(digest: str, file: Path = FILE) -> Mapping[str, Examined]:
    """By claim; none where what was examined was declared otherwise. `digest`: of what a report answers.

    Errors: a file of another shape, or one that names a claim that is not declared.
    """
    if not file.exists():
        return {}
    plain = json.loads(file.read_text(encoding="utf-8"))
    try:
        bound, claims = plain["digest"], plain["claims"]
        found = {id: Examined(one["reason"], one["how"]) for id, one in claims.items()}
    except (KeyError, TypeError, AttributeError):
        raise UsageError(
            f"{file.name}: must be an object of digest and claims, each with reason and how. Write it again."
        ) from None
    if strange := sorted(found.keys() - set(declared().ids)):
        raise UsageError(f"{file.name}: {', '.join(strange)} is no claim of {declared().source}. Take it out.")
    return found if bound == digest else {}


def examined_told(outcome: Outcome, known: Mapping[str, Examined]) -> str:
    """Why it fails, in one or two sentences; empty for a claim that does not."""
    if outcome.verdict != "does not hold":
        return ""
    one = known.get(outcome.id)
    return f"Why it fails here: {NOT_EXAMINED}." if one is None else f"Why it fails here: {one.reason} {one.how}"
