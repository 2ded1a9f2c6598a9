"""`exegesis reproduce smat`: the SMaT paper's claims, tried on students that are taught here, and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from engine.cli.jobs import carried_out, end
from engine.cli.writing import write
from engine.errors import Cancelled

if TYPE_CHECKING:
    from engine.reproduction.smat.asked import Asked
    from engine.reproduction.smat.report import SmatReport

SMAT = "smat"


def reproduce_smat(asked: Asked, folder: Path, as_json: bool) -> None:
    """Teaches what is missing, judges, and writes the report; stopped, the same command goes on where it was."""
    from engine.cli.output import print_json

    asked.check()
    found = _found(asked)
    _keep(found, asked, folder)
    print_json(found.as_plain()) if as_json else _show(found, asked, folder)


def _found(asked: Asked) -> SmatReport:
    """The work as a job, so that it is seen and stopped elsewhere; then what is finished is judged."""
    from engine.cli.guard import STOPPED, fail, note
    from engine.cli.output import only_ours
    from engine.cli.stopping import stoppable
    from engine.jobs import create
    from engine.reproduction.smat.run import kept, reproduce

    ended = carried_out(create("reproduce_smat", asked.as_plain()))
    if ended.state not in ("done", "failed"):
        end(ended)
    if ended.failed:
        note(f"{ended.failed} parts of {ended.total} failed. See: exegesis jobs show {ended.id}")
    if found := kept(asked):
        return found
    with only_ours(), stoppable() as cancel:  # a cache that cannot be written to keeps no report
        try:
            return reproduce(asked, cancel=cancel)
        except Cancelled:
            raise typer.Exit(fail("reproduce: stopped; finished parts are kept.", STOPPED)) from None


def _file(asked: Asked) -> str:
    """What the report is called, without its ending."""
    return f"{SMAT}-{asked.scale}"


def _keep(found: SmatReport, asked: Asked, folder: Path) -> None:
    from engine.reproduction.smat.examined import examined
    from engine.reproduction.smat.writing import claims_csv, markdown, numbers_csv

    text = markdown(found, asked.declared, asked.chosen, examined(found.digest))
    files = {
        ".md": text,
        ".json": json.dumps(found.as_plain(), indent=1, ensure_ascii=False) + "\n",
        ".csv": claims_csv(found, asked.chosen),
        "-tables.csv": numbers_csv(found),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for ending, content in files.items():
        write("--out", folder / f"{_file(asked)}{ending}", content.encode())


def _show(found: SmatReport, asked: Asked, folder: Path) -> None:
    from engine.cli.output import console, table, visible
    from engine.reproduction.scales import scale_of
    from engine.reproduction.words import decides, sentence

    made = table(["claim", "section", "verdict", "what decides"])
    for claim, one in zip(asked.chosen, found.outcomes, strict=True):
        made.add_row(*map(visible, (claim.id, claim.section, one.verdict, decides(claim, one, scale_of(asked.scale)))))
    console().print(made)
    print(f"{sentence(found)} Written: {visible(str(folder / f'{_file(asked)}.md'))}")
