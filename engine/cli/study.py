"""`exegesis study`: create, run and evaluate studies; rate simulated and imported votes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.options import (
    JsonOption,
    SeedOption,
    YesOption,
    read_id,
    read_json_file,
    read_names,
    read_number,
    read_numbers,
    read_pairs,
    read_whole,
)
from engine.cli.output import (
    console,
    format_facts,
    format_time,
    format_value,
    is_interactive,
    print_json,
    progress_bar,
    stdout_reserved,
    stoppable,
    table,
    visible,
    write_file,
)
from engine.cli.root import STOPPED, Commands, fail
from engine.errors import Cancelled, ExegesisError, UsageError, not_allowed, unknown
from engine.format import count_text, join_names
from engine.lazy import LazyModule
from engine.study.design import GUESSING, MODES, RANK, Design, field_label, find_preset, label_fields
from engine.table_io import to_csv, to_json

if TYPE_CHECKING:
    from engine.study import counted_votes, guesses, ratings, simulation, studies, study_file, summary
    from engine.study import results as study_results
else:  # numpy, scipy, the database and the engine are slow to import, and the help does not need them
    counted_votes, guesses = LazyModule("engine.study.counted_votes"), LazyModule("engine.study.guesses")
    ratings, simulation = LazyModule("engine.study.ratings"), LazyModule("engine.study.simulation")
    studies = LazyModule("engine.study.studies")
    study_file, summary = LazyModule("engine.study.study_file"), LazyModule("engine.study.summary")
    study_results = LazyModule("engine.study.results")

STUDY = "study"
FORMATS = ("csv", "json")
FIELD_OPTIONS = {
    "title": "--title", "model": "--model", "dataset": "--dataset", "kind": "--kind", "methods": "--method",
}  # fmt: skip
"""Options for fields that `--set` does not set."""
PARTS = ("items", "exclusion")
"""Parts of a design that consist of fields."""

MAX_VOTES = 5_000
STRENGTH = "Comma-separated, one per method: strength; of guesses: share of right ones. [default: 0; guesses: 0.5]"


class StudyCommands(Commands):
    """Command group whose errors name design fields by their option (in `create`) or by their label on the form."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ExegesisError as error:
            name = _option_of_field if ctx.invoked_subcommand == "create" else field_label
            error.args = (label_fields(str(error), name),)
            raise


def _option_of_field(path: str) -> str:
    """Return the option of `exegesis study create` that sets a field of the design."""
    return FIELD_OPTIONS.get(path.partition(".")[0], f"--set {path}")


app = typer.Typer(cls=StudyCommands, rich_markup_mode=None, help="Run blind studies in which people rank explanations.")
Number = Annotated[str, typer.Argument(metavar="ID", help="ID of the study.")]
Placebo = Annotated[str, typer.Option(metavar="M", help="The method that serves as the placebo.")]


@app.command()
def create(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="Design as JSON; '-' reads stdin.")] = None,
    preset: Annotated[str, typer.Option(metavar="P", help="Start from a preset: smat.")] = "",
    title: Annotated[str | None, typer.Option(metavar="T", help="Title of the study.")] = None,
    model: Annotated[str | None, typer.Option(metavar="M", help="Embedded model, folder or Hub ID.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="Data set of the items.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="text|image", help="Type of items.")] = None,
    method: Annotated[str, typer.Option(metavar="A,B", help="2 to 6 comma-separated methods.")] = "",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set another field of the design, such as items.count=10."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a draft. 'exegesis study show ID --json' prints a design to start from."""
    options = {"title": title, "model": model, "dataset": dataset, "kind": kind}
    draft = studies.create(_read_design(file, preset, options, method, setting or []))
    _report(draft, f"Study {draft.id} is a draft. Open it with: exegesis study open {draft.id}", as_json)


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """List all studies, the newest first."""
    records, counts = studies.list_studies(), studies.count_answers()
    if as_json:
        return print_json([_to_json(study, counts.get(study.id, studies.NO_ANSWERS)) for study in records])
    rows = table(["id", "state", "answers", "people", "opened", "title"], right=["id", "answers", "people"])
    for study in records:
        count = counts.get(study.id, studies.NO_ANSWERS)
        numbers = (f"{count.answers:,}", f"{count.annotators:,}")
        rows.add_row(str(study.id), study.state, *numbers, format_time(study.opened), visible(study.design.title))
    console().print(rows) if records else print("There are no studies. Create one with: exegesis study create")
    return None


@app.command()
def show(number: Number, as_json: JsonOption = False) -> None:
    """Show the design, the state and the log of a study."""
    study = studies.find(read_id(number))
    count, log = studies.count_answers().get(study.id, studies.NO_ANSWERS), studies.study_log(study.id)
    if as_json:
        events = [{"kind": kind, "at": at, "details": details} for kind, at, details in log]
        return print_json({**_to_json(study, count), "design": study.design.to_json(), "log": events})
    design = study.design
    fields = {name: getattr(design, name) for name in ("title", "question", "mode", "model", "dataset", "kind")}
    methods = counted_votes.method_names(design)
    counts = {"methods": methods, "answers": count.answers, "people": count.annotators}
    print(format_facts({"id": study.id, "state": study.state, "join": _join_link(study), **fields, **counts}))
    for kind, at, details in log:
        more = ", ".join(
            f"{name} {format_value(value)}" for name, value in details.items() if not isinstance(value, dict)
        )
        print(f"{format_time(at)}  {kind}{f': {more}' if more else ''}")
    return None


@app.command("open")
def open_study(number: Number, as_json: JsonOption = False) -> None:
    """Compute and store all explanations, then open the study. If interrupted, it stays a draft."""
    study = studies.find(read_id(number)).id
    with stdout_reserved(), stoppable() as cancel, progress_bar("explaining") as report:
        try:
            opened = studies.open_study(study, report, cancel)
        except Cancelled:
            message = f"study {study}: stopped, still a draft. Continue with: exegesis study open {study}"
            raise typer.Exit(fail(message, STOPPED)) from None
    _report(opened, f"Study {study} is open. Join link: the address of the server, then {_join_link(opened)}", as_json)


@app.command()
def close(number: Number, as_json: JsonOption = False) -> None:
    """Close a study: it accepts no more votes. Confirmed votes are not affected."""
    study = studies.close(read_id(number))
    _report(study, f"Study {study.id} is closed. Show its results with: exegesis study results {study.id}", as_json)


@app.command()
def archive(number: Number, as_json: JsonOption = False) -> None:
    """Archive a closed study. Its votes and results are not affected."""
    study = studies.archive(read_id(number))
    _report(study, f"Study {study.id} is archived.", as_json)


@app.command()
def duplicate(number: Number, as_json: JsonOption = False) -> None:
    """Create a draft with the same design and a new join link."""
    copy = studies.duplicate(read_id(number))
    _report(copy, f"Study {copy.id} is a draft with the same design.", as_json)


@app.command()
def delete(number: Number, yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Delete a study and all of its votes. Only a study file exported with --votes can restore it."""
    study = studies.find(read_id(number))
    answers = studies.count_answers().get(study.id, studies.NO_ANSWERS).answers
    if not yes and not is_interactive():
        raise UsageError(
            f"study delete: would delete study {study.id} with {count_text(answers, 'answer')} and cannot ask for "
            "confirmation. Add --yes to confirm."
        )
    if not yes:
        question = f"Delete study {study.id} ({study.design.title}) with {count_text(answers, 'answer')}?"
        typer.confirm(question, abort=True, err=True)
    studies.delete(study.id)
    _report(study, f"Study {study.id} is deleted, with {count_text(answers, 'answer')}.", as_json)


@app.command()
def results(number: Number, as_json: JsonOption = False) -> None:
    """Show the results so far: ratings, agreement and excluded votes."""
    with stdout_reserved(), progress_bar("rating") as report:
        current = study_results.results(read_id(number), report)
    if as_json:
        print_json(study_results.results_to_json(current))
    else:
        _print_results(current)


@app.command()
def export(
    number: Number,
    what: Annotated[
        str, typer.Option(metavar="W", help="What to export: study, items, votes, orders or ratings.")
    ] = STUDY,
    format: Annotated[str, typer.Option(metavar="csv|json", help="Format of a table.")] = "csv",
    votes: Annotated[bool, typer.Option("--votes", help="Include the answers in the study file.")] = False,
    out: Annotated[str, typer.Option(metavar="FILE", help="Output file; '-' is stdout.")] = "-",
    json_format: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    """Export a study file, which 'import' reads, or one table. Neither contains names or codes of people."""
    study = read_id(number)
    if format not in FORMATS:
        raise unknown("--format", format, FORMATS)
    if votes and what != STUDY:
        raise UsageError("--votes: applies to the study file only. Remove it, or use --what study.")
    if what == STUDY:
        data = study_file.export_study(study, votes)
    elif what not in study_results.EXPORT_TABLES:
        raise unknown("--what", what, (STUDY, *study_results.EXPORT_TABLES))
    else:
        rows = study_results.export_rows(study, what)
        data = (to_json(rows) if json_format or format == "json" else to_csv(rows)).encode()
    if out == "-":
        sys.stdout.buffer.write(data)
        return
    write_file("--out", Path(out), data)
    print(f"Written: {out}")


@app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Study file; '-' reads stdin.")],
    as_json: JsonOption = False,
) -> None:
    """Import a study file. With votes it becomes a closed study, without votes a draft."""
    study = study_file.import_study(_read_study_file(file))
    if as_json:
        return print_json({"id": study.id, "state": study.state, "title": study.design.title})
    next_step = "results" if study.state == "closed" else "open"
    print(f"Study {study.id} is {study.state}. Continue with: exegesis study {next_step} {study.id}")
    return None


@app.command()
def simulate(
    methods: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated names of methods.")] = "",
    mode: Annotated[str, typer.Option(metavar="M", help=f"Task of the participants: {join_names(MODES)}.")] = RANK,
    strength: Annotated[str, typer.Option(metavar="X,Y", help=STRENGTH)] = "",
    alone: Annotated[
        str, typer.Option(metavar="P", help="Of guesses: share of right ones without an explanation.")
    ] = "0.5",
    annotators: Annotated[str, typer.Option(metavar="N", help="Number of annotators.")] = "20",
    items: Annotated[str, typer.Option(metavar="M", help="Number of items per annotator.")] = "20",
    taste: Annotated[str, typer.Option(metavar="S", help="Standard deviation of strengths across annotators.")] = "0.5",
    ties: Annotated[str, typer.Option(metavar="T", help="Differences below this are ties.")] = "0.25",
    studies: Annotated[str, typer.Option(metavar="K", help="Simulate K studies and report error rates.")] = "0",
    placebo: Placebo = "",
    seed: SeedOption = "0",
    as_json: JsonOption = False,
) -> None:
    """Simulate annotators with known preferences or skills, and show the results of their votes."""
    if mode not in MODES:
        raise unknown("--mode", mode, MODES)
    strengths = _read_strengths(methods, strength, 0.5 if mode in GUESSING else 0.0)
    people, each = read_whole("--annotators", annotators, low=1), read_whole("--items", items, low=1)
    if people * each > MAX_VOTES:
        raise not_allowed("--annotators times --items", f"at most {MAX_VOTES:,}", people * each)
    spread, number = _read_distance("--taste", taste), read_whole("--seed", seed)
    count = read_whole("--studies", studies)
    if mode in GUESSING:
        baseline = read_numbers("--alone", alone)
        if len(baseline) != 1 or not 0 < baseline[0] < 1:
            raise not_allowed("--alone", "one number between 0 and 1", alone)
        if not all(0 < share < 1 for share in strengths.values()):
            raise not_allowed("--strength", f"numbers between 0 and 1 for --mode {mode}", strength)
        accuracy = {counted_votes.WITHOUT: baseline[0], **strengths}
        guessing = simulation.GuessSimulation(accuracy, people, each, spread, seed=number)
        return _simulate_guesses(guessing, count, placebo, as_json, mode)
    ranking = simulation.RankingSimulation(strengths, people, each, spread, _read_distance("--ties", ties), number)
    if count:
        return _simulate_differences(ranking, count, as_json)
    return _print_rankings(simulation.simulate_rankings(ranking), placebo, number, as_json)


@app.command()
def rate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV file with one row per vote.")],
    methods: Annotated[
        str, typer.Option(metavar="A,B", help="Comma-separated methods, in the order of the rank strings.")
    ] = "",
    placebo: Placebo = "",
    seed: SeedOption = "0",
    as_json: JsonOption = False,
) -> None:
    """Rate rankings from a CSV file: a column 'ranks' with strings such as 1,1,3,4, or one column per method.

    Only the first ranking of an item by a person is rated; repeated ones measure self-consistency.
    """
    names = read_names("--methods", methods) if methods else []
    _print_rankings(counted_votes.read_rankings(Path(file), names), placebo, read_whole("--seed", seed), as_json)


def _read_design(
    file: str | None, preset: str, options: Mapping[str, str | None], methods: str, settings: list[str]
) -> Design:
    """Read a design from a file or a preset, then options, then settings. Later sources override earlier ones.

    `studies.create` checks the whole design. Errors name the option or the part of the design.
    """
    if file is not None and preset:
        raise UsageError("--preset: cannot be combined with FILE. Remove one of them.")
    design: dict[str, Any] = {}
    if file is not None:
        design = _read_design_file(file)
    elif preset:
        defaults = (("model", ""), ("dataset", ""), ("kind", "text"))
        design = find_preset(preset).design(*(options[name] or default for name, default in defaults)).to_json()
    design |= {name: value for name, value in options.items() if value is not None}
    if methods:
        design["methods"] = [{"id": name} for name in read_names("--method", methods)]
    for name, value in read_pairs("--set", settings, "items.count=10").items():
        part, dot, field = name.rpartition(".")
        if dot and part not in PARTS:
            raise not_allowed(
                "--set", "a field of the design, such as seed, items.count or exclusion.least_votes", name
            )
        holder = design.setdefault(part, {}) if dot else design
        if not isinstance(holder, dict):
            raise not_allowed(f"design.{part}", "a JSON object", holder)
        is_list = name == "items.indices"
        holder[field] = [read_whole(f"--set {name}", each) for each in value.split(",")] if is_list else value
    return Design.from_json(design)


def _read_design_file(file: str) -> dict[str, Any]:
    """Read the design from a JSON file that holds a design or the output of `exegesis study show --json`."""
    content = read_json_file(file)
    design = content.get("design", content) if isinstance(content, dict) else content
    if not isinstance(design, dict):
        raise not_allowed("FILE", "a JSON object with a design", design)
    return design


def _read_study_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        raise not_allowed("FILE", "a study file", file, "Check the path.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExegesisError(f"FILE: {file} cannot be read ({error.strerror}). Check its permissions.") from None


def _report(study: studies.StudyRecord, message: str, as_json: bool) -> None:
    print_json(_to_json(study)) if as_json else print(message)


def _to_json(study: studies.StudyRecord, count: studies.AnswerCounts | None = None) -> dict[str, Any]:
    counts = {} if count is None else {"answers": count.answers, "annotators": count.annotators}
    return {
        "id": study.id,
        "state": study.state,
        "title": study.design.title,
        "join": _join_link(study),
        **counts,
        "created": study.created,
        "opened": study.opened,
        "closed": study.closed,
    }


def _join_link(study: studies.StudyRecord) -> str:
    """Return the path of the join link, without the server's address, which the command does not know."""
    return f"/annotate?study={study.token}"


def _print_rankings(votes: list[counted_votes.Ranking], placebo: str, seed: int, as_json: bool) -> None:
    result = summary.summarize_rankings(votes, placebo or None, seed)
    if as_json:
        print_json(study_results.rankings_to_json(result))
    else:
        _print_summary(result)


def _print_results(current: study_results.Results) -> None:
    print(
        visible(
            f"{current.study.design.title}: {current.study.state}, {count_text(current.answers, 'answer')} by "
            f"{count_text(current.annotators, 'annotator')}, {current.cannot_tell:,} “cannot tell”, "
            f"{current.answers - len(current.votes):,} excluded."
        )
    )
    if current.summary is not None:
        _print_summary(current.summary)
    elif current.forward is not None:
        _print_guesses(current.forward)
    else:
        print("No votes to rate yet.")
    for exclusion in current.excluded:
        where = "" if exclusion.item is None else f" on item {exclusion.item}"
        print(f"excluded: {exclusion.annotator}{where}. {exclusion.reason}")


def _print_summary(result: summary.RankingSummary) -> None:
    columns = ["skill", "interval", "rank", "SMaT skill"]
    rows = table(["method", *columns], right=columns)
    smat = {rating.method: rating for rating in result.smat}
    for rating in sorted(result.ratings, key=lambda rating: (rating.rank, -rating.skill)):
        place = str(rating.rank) if rating.rank == rating.last else f"{rating.rank}-{rating.last}"
        low, high = rating.interval
        cells = (f"{rating.skill:.2f}", f"{low:.2f} to {high:.2f}", place, f"{smat[rating.method].skill:.2f}")
        rows.add_row(visible(rating.method), *cells)
    console().print(rows)
    votes, annotators = count_text(result.votes, "vote"), count_text(result.annotators, "annotator")
    print(f"{votes} by {annotators} on {count_text(result.items, 'item')}.")
    for part in ("ratings", "placebo", "worths", "concordance", "alpha", "consistency", "needed"):
        print(visible(result.meanings[part]))


def _print_guesses(result: guesses.GuessSummary) -> None:
    """Print a row per condition, and sentences about the results."""
    columns = ["right", "interval", "confidence", "answers"]
    rows = table(["explanation", *columns, "gain over no explanation"], right=columns)
    for condition in result.conditions:
        share, gain = condition.share, condition.gain
        right = (f"{share.accuracy:.0%}", _percentages(share.interval)) if share else ("", "")
        more = f"{gain.accuracy:+.0%} ({_percentages(gain.interval)})" if gain else ""
        sure = "" if condition.sure is None else f"{condition.sure:.1f}"
        rows.add_row(visible(condition.name), *right, sure, f"{condition.answers:,}", more)
    console().print(rows)
    for part in ("helpful", "plausible", "leak", "placebo"):
        print(visible(result.meanings[part]))


def _percentages(interval: ratings.Interval) -> str:
    return f"{interval[0]:.0%} to {interval[1]:.0%}"


def _simulate_differences(ranking: simulation.RankingSimulation, studies: int, as_json: bool) -> None:
    """Print the share of simulated studies that find a difference between methods."""
    with progress_bar("simulating studies") as report:
        share = simulation.false_difference_rate(ranking, studies, report=report)
    if as_json:
        print_json({"studies": studies, "share_with_any_difference": share, **asdict(ranking)})
    else:
        print(f"{share:.1%} of {studies:,} simulated studies find a difference between methods.")
        if len(set(ranking.strength.values())) == 1:
            print(f"All methods are equally strong, so at most {ratings.ERROR_RATE:.0%} should.")


def _simulate_guesses(
    guessing: simulation.GuessSimulation, studies: int, placebo: str, as_json: bool, mode: str
) -> None:
    """Print the results of one simulated study, or the coverage of the intervals over several studies."""
    if not studies:
        answers = simulation.simulate_guesses(guessing)
        result = guesses.summarize_guesses(answers, tuple(guessing.accuracy)[1:], placebo or None, mode)
        print_json(study_results.guesses_to_json(result)) if as_json else _print_guesses(result)
        return
    with progress_bar("simulating studies") as report:
        coverage = simulation.measure_coverage(guessing, studies, report)
    if as_json:
        print_json({"studies": studies, **asdict(coverage), **asdict(guessing)})
    else:
        print(f"{coverage.alone:.1%} of the 95% intervals contain the true accuracy.")
        whole = f"{coverage.together:.1%} of {studies:,} simulated studies"
        print(f"In {whole}, all 95% intervals of differences contain the true value.")


def _read_strengths(methods: str, strength: str, default: float) -> dict[str, float]:
    names = read_names("--methods", methods)
    if not 2 <= len(names) <= counted_votes.MAX_METHODS:
        raise not_allowed("--methods", f"2 to {counted_votes.MAX_METHODS} comma-separated names", methods)
    strengths = read_numbers("--strength", strength) if strength else [default] * len(names)
    if len(strengths) != len(names):
        raise UsageError(f"--strength: must be one number for each of {', '.join(names)}, got {len(strengths)}.")
    return dict(zip(names, strengths, strict=True))


def _read_distance(option: str, value: str) -> float:
    number = read_number(option, value)
    if number < 0:
        raise not_allowed(option, "a number of at least 0", value)
    return number
