"""`exegesis reproduce thesis|smat`: test the claims of a thesis or a paper on available models, and write a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.jobs import exit_unless_done, run_with_progress
from engine.cli.options import SeedOption
from engine.cli.output import (
    console,
    print_json,
    progress_bar,
    stdout_reserved,
    stoppable,
    table,
    visible,
    write_file,
)
from engine.cli.root import STOPPED, fail, note
from engine.errors import Cancelled, UsageError, not_allowed, unknown
from engine.jobs import create
from engine.lazy import LazyModule
from engine.progress import cancellable
from engine.reproduction.claims import ReproductionQuery
from engine.reproduction.documents import report_files
from engine.reproduction.papers import PAPERS, THESIS_TOPICS, scale_of
from engine.reproduction.report import Reproduction
from engine.reproduction.run import cached_report
from engine.reproduction.run import reproduce as run_reproduction
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import ThesisQuery, split_topics
from engine.reproduction.wording import decision_text, summary_sentence, time_text

if TYPE_CHECKING:
    from engine.reproduction import rehearsal
else:  # it loads torch, which nothing else here needs
    rehearsal = LazyModule("engine.reproduction.rehearsal")


def reproduce(
    what: Annotated[str, typer.Argument(metavar="thesis|smat", help="Paper to reproduce.")],
    scale: Annotated[
        str,
        typer.Option(
            metavar="embedded|full|data",
            help="Small embedded models, those of the authors, or models for the real data in EXEGESIS_DATA.",
        ),
    ] = "embedded",
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the report and for trained models.")
    ] = "reproduction",
    examples: Annotated[
        str | None, typer.Option(metavar="N", help="Examples per data set. [default: as declared]")
    ] = None,
    seed: SeedOption = "0",
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="faithfulness|sanity", help="Only claims of one topic of the thesis. [default: all of the scale]"
        ),
    ] = None,
    claims: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated claims. [default: all]")] = "",
    places: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON file that maps names of models and data sets to folders.")
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Full scale: run on random models of the same sizes with few examples, and estimate time and memory.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON; two topics are grouped by name.")
    ] = False,
) -> None:
    """Test the claims of the thesis or of SMaT and write a report. Run it again to resume."""
    if what not in PAPERS:
        raise not_allowed("reproduce", " or ".join(PAPERS), what)
    if what == "smat" and topic is not None:
        raise UsageError(f"--topic: applies to the thesis only, got {topic!r}. Remove it.")
    if topic is not None and topic not in THESIS_TOPICS:
        raise unknown("topic", topic, THESIS_TOPICS)
    folder = _folder(out)
    shared: dict[str, Any] = {
        "scale": scale,
        "examples": None if examples is None else options.read_whole("--examples", examples, 2),
        "seed": options.read_whole("--seed", seed),
        "claims": tuple(options.read_names("--claims", claims)) if claims else (),
        "places": {} if places is None else _places(Path(places).expanduser()),
    }
    queries: tuple[ReproductionQuery, ...] = (SmatQuery(**shared, folder=str(folder)),)
    if what == "thesis":
        whole = ThesisQuery(**shared, folder=str(folder))
        queries = split_topics(whole, () if topic is None else (topic,))
    for query in queries:
        query.check()
    if rehearse:
        if scale != "full":
            raise UsageError(f"--rehearse: applies to --scale full only, got {scale}. Add --scale full.")
        _rehearse(queries, folder, as_json)
        return
    reports = {}
    for query in queries:
        reports[query.topic_id] = report = _answer(query)
        _write(report, query, folder)
        if not as_json:
            _print(report, query, folder)
    if as_json:
        plain = {topic: report.as_plain() for topic, report in reports.items()}
        print_json(plain if len(plain) > 1 else next(iter(plain.values())))


def _rehearse(queries: Sequence[ReproductionQuery], folder: Path, as_json: bool) -> None:
    """Print the cost of each part at the full scale. For the thesis, also write reports to the rehearsal folder."""
    parts: dict[str, rehearsal.RehearsedPart] = {}
    with stdout_reserved(), stoppable() as cancel, progress_bar("rehearsal", lines=True) as report:
        try:
            with cancellable(cancel):
                for query in queries:
                    if isinstance(query, ThesisQuery):
                        parts |= {one.name: one for one in rehearsal.rehearse(query, report)}
                        own = rehearsal.rehearsal_of(query)
                        _write(run_reproduction(own), own, Path(own.folder))
                    else:
                        parts |= {one.name: one for one in rehearsal.rehearse_students(folder, report)}
        except Cancelled:
            raise typer.Exit(
                fail("reproduce: stopped; finished parts are stored. Run the same command to resume.", STOPPED)
            ) from None
    if as_json:
        print_json([asdict(one) | {"hours": one.hours} for one in parts.values()])
        return
    rows = table(["part", "here", "times", "full scale", "memory"], right=["here", "times", "full scale", "memory"])
    for one in parts.values():
        rows.add_row(
            visible(one.name), f"{one.seconds:,.1f} s", f"{one.times:,.0f}", f"{one.hours:,.1f} h",
            f"{one.memory / 2**30:.1f} GiB",
        )  # fmt: skip
    console().print(rows)
    hours, most = sum(one.hours for one in parts.values()), max(one.memory for one in parts.values())
    memory = f"{most / 2**30:.1f} GiB of memory"
    print(f"These parts take about {hours:,.0f} hours at the full scale on this machine, and {memory}.")


def _folder(out: str) -> Path:
    folder = Path(out).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: must be a folder, got the file {folder}. Choose another place.")
    return folder


def _places(file: Path) -> dict[str, str]:
    try:
        places = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--places: must be a readable JSON file, got {file} ({type(error).__name__}).") from None
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise not_allowed("--places", "a JSON object that maps names to folders", places)
    return places


def _answer(query: ReproductionQuery) -> Reproduction:
    """Compute the report in a job, so that other processes can see and stop it. The report describes its failures."""
    if isinstance(query, ThesisQuery) and query.seconds() is not None and cached_report(query) is None:
        note(time_text(query))
    ended = run_with_progress(create(query.job, query.as_plain()))
    if ended.state not in ("done", "failed"):
        exit_unless_done(ended)
    if ended.failed and query.job == "reproduce_smat":
        note(f"{ended.failed} parts of {ended.total} failed. See: exegesis jobs show {ended.id}")
    if report := cached_report(query):
        return report
    with stdout_reserved(), stoppable() as cancel:  # no report is cached if the cache is not writable
        try:
            return run_reproduction(query, cancel=cancel)
        except Cancelled:
            raise typer.Exit(
                fail("reproduce: stopped; finished parts are stored. Run the same command to resume.", STOPPED)
            ) from None


def _stem(query: ReproductionQuery) -> str:
    """Return the common stem of a report's file names."""
    return f"{query.about.stem}-{query.scale}"


def _write(report: Reproduction, query: ReproductionQuery, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for ending, text in report_files(report, query).items():
        write_file("--out", folder / f"{_stem(query)}{ending}", text().encode())


def _print(report: Reproduction, query: ReproductionQuery, folder: Path) -> None:
    rows = table(["claim", "section", "verdict", "deciding number"])
    for claim, one in zip(query.selected_claims, report.outcomes, strict=True):
        cells = (claim.id, claim.section, one.verdict, decision_text(claim, one, scale_of(query.scale)))
        rows.add_row(*map(visible, cells))
    console().print(rows)
    print(f"{summary_sentence(report)} Written: {visible(str(folder / f'{_stem(query)}.md'))}")
