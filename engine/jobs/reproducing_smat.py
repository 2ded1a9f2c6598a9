"""The job kind `reproduce_smat`: the students that SMaT's claims need, one by one, and at the end the verdicts.

What it leaves in the cache is what `engine.reproduction.smat.run.judged` then reads without teaching.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from cache import canonical, key_for
from engine.errors import ExegesisError, UsageError, not_allowed, shown
from engine.jobs.kinds import Spec, Unit, job_kind, kind_of

if TYPE_CHECKING:
    from engine.reproduction.smat.asked import Asked

KIND = "reproduce_smat"


def _title(spec: Spec) -> str:
    return f"Reproduce SMaT at {spec.get('scale', 'embedded')} scale"


def asked_of(spec: Spec) -> Asked:
    """What a specification asks. Errors: a field that is unknown or of another shape."""
    from engine.reproduction.smat.asked import Asked

    known = {field.name for field in fields(Asked)}
    if strange := sorted(spec.keys() - known):
        raise UsageError(f"spec of a {KIND} job: may have {', '.join(sorted(known))}, got {shown(strange)}.")
    claims, places = spec.get("claims", []), spec.get("places", {})
    if not isinstance(claims, list):
        raise not_allowed(f"claims of a {KIND} job", "a list", claims)
    if not isinstance(places, dict):
        raise not_allowed(f"places of a {KIND} job", "an object of folders by name", places)
    given: dict[str, Any] = {**spec, "claims": tuple(claims)}
    return Asked(**given)


def check(spec: Spec) -> None:
    """Refuses an unknown scale or claim. Teachers and data sets are looked for when the job runs."""
    asked_of(spec).check()


@job_kind(KIND, title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """The fields of `engine.reproduction.smat.asked.Asked`. A unit a student; then the verdicts."""
    from engine.reproduction.smat.run import judged

    asked = asked_of(spec)
    asked.check()
    for key in asked.needed:
        wanted = asked.taught(key)
        if not isinstance(wanted, str):
            yield from _students(wanted.as_plain())
    again = key_for({"kind": "reproducing smat", "of": asked.command()})
    yield Unit(again, "verdicts", partial(judged, asked), stores_itself=True)


def _students(plain: dict[str, object]) -> Iterator[Unit]:
    """None where the plan cannot be carried out, which the report says."""
    try:
        yield from kind_of("scaffold").plan(json.loads(canonical(plain)))
    except ExegesisError:
        return
