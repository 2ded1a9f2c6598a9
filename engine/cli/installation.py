"""`exegesis doctor` and `exegesis cache`: whether this installation can be used, and its disk cache."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cache import Store
from engine.cli.guard import FAILED, Commands
from engine.cli.options import JsonOption, YesOption, read_size
from engine.cli.output import format_facts, is_interactive, print_json, stdout_reserved
from engine.errors import UsageError
from engine.format import size_text
from engine.health import Finding, examine
from engine.store import result_store

cache_commands = typer.Typer(cls=Commands, rich_markup_mode=None, help="Show, check and shrink the result cache.")


def doctor(as_json: JsonOption = False) -> None:
    """Check device, versions, embedded weights, cache, home folder and network."""
    findings: list[Finding] = []
    out = sys.stdout
    with stdout_reserved():
        for finding in examine():
            findings.append(finding)
            if not as_json:
                print(_finding_line(finding), file=out, flush=True)
    usable = all(finding.status != "broken" for finding in findings)
    if as_json:
        print_json({"usable": usable, "checks": [finding.as_plain() for finding in findings]})
    if not usable:
        raise typer.Exit(FAILED)


def _finding_line(finding: Finding) -> str:
    text = f"{finding.detail.rstrip('.')}. {finding.advice}" if finding.advice else finding.detail
    return f"{finding.status:<7}{finding.name:<10} {text}"


@cache_commands.command()
def stats(as_json: JsonOption = False) -> None:
    """Show the number of results and their size."""
    counts = result_store().stats()
    if as_json:
        print_json({key: value for key, value in counts.as_plain().items() if key not in ("hits", "misses")})
        return
    sizes = {
        "size": size_text(counts.bytes),
        "limit": size_text(counts.max_bytes),
        "file": size_text(counts.file_bytes),
    }
    print(format_facts({"folder": counts.folder, "entries": counts.entries, **sizes, "problem": counts.status}))


@cache_commands.command()
def check(as_json: JsonOption = False) -> None:
    """Read every entry and delete damaged ones. They are computed again when needed."""
    report = result_store().check()
    plain = {
        "checked": report.checked,
        "dropped": report.dropped,
        "replaced": report.replaced,
        "trouble": report.status,
    }
    sentence = f"{report.checked:,} entries read, {report.dropped:,} damaged ones deleted. {report.status}".strip()
    _print(plain, sentence, as_json)
    # A replaced file says so in its status, but it is whole again.
    if report.status and not report.replaced:
        raise typer.Exit(FAILED)


@cache_commands.command()
def prune(
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Size such as 500MB. [default: the limit of the cache]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the least recently used results until the rest fits, and free the disk space."""
    limit = None if max_bytes is None else read_size("--max-bytes", max_bytes)
    store = result_store()
    dropped = store.prune(limit)
    _finish(store, dropped, as_json)


@cache_commands.command()
def clear(yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Delete all results, including finished parts of interrupted jobs."""
    store = result_store()
    if not yes:
        count = store.stats().entries
        if not is_interactive():
            raise UsageError(
                f"cache clear: would delete {count:,} results and cannot ask for confirmation. Add --yes to confirm."
            )
        typer.confirm(f"Delete {count:,} results in {store.folder}?", abort=True, err=True)
    _finish(store, store.clear(), as_json)


def _finish(store: Store, dropped: int, as_json: bool) -> None:
    plain = {"dropped": dropped, "trouble": store.status}
    _print(plain, f"{dropped:,} results deleted. {store.status}".strip(), as_json)
    if store.status:
        raise typer.Exit(FAILED)


def _print(plain: dict[str, Any], sentence: str, as_json: bool) -> None:
    print_json(plain) if as_json else print(sentence)
