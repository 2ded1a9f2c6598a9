"""`exegesis doctor`: can this installation be used, and what is to be done where it cannot."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.guard import FAILED

if TYPE_CHECKING:
    from engine.health import Finding


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check device, versions, embedded weights, cache, home folder and network."""
    from engine.cli.output import only_ours, print_json
    from engine.health import examine

    found: list[Finding] = []
    out = sys.stdout
    with only_ours():
        for finding in examine():
            found.append(finding)
            if not as_json:
                print(_line(finding), file=out, flush=True)
    usable = all(finding.status != "broken" for finding in found)
    if as_json:
        print_json({"usable": usable, "checks": [finding.as_plain() for finding in found]})
    if not usable:
        raise typer.Exit(FAILED)


def _line(finding: Finding) -> str:
    told = f"{finding.detail.rstrip('.')}. {finding.advice}" if finding.advice else finding.detail
    return f"{finding.status:<7}{finding.name:<10} {told}"
