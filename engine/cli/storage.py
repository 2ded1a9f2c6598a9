"""`exegesis cache`: what the disk cache holds, whether it is sound, and making it smaller."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import values
from engine.cli.guard import FAILED, Commands
from engine.errors import UsageError

if TYPE_CHECKING:
    from cache import Store

app = typer.Typer(cls=Commands, rich_markup_mode=None, help="Show, check and shrink the disk cache.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def stats(as_json: Json = False) -> None:
    """How many results are kept and how much room they take."""
    from engine.cli.output import facts, print_json
    from engine.format import size_text

    found = _store().stats()
    if as_json:
        print_json({key: value for key, value in found.as_plain().items() if key not in ("hits", "misses")})
        return
    sizes = {
        "results": size_text(found.bytes),
        "bound": size_text(found.max_bytes),
        "file": size_text(found.file_bytes),
    }
    print(facts({"folder": found.folder, "entries": found.entries, **sizes, "trouble": found.status}))


@app.command()
def check(as_json: Json = False) -> None:
    """Read every entry; drop the damaged ones, which will be computed anew."""
    report = _store().check()
    plain = {
        "checked": report.checked,
        "dropped": report.dropped,
        "replaced": report.replaced,
        "trouble": report.status,
    }
    said = f"{report.checked:,} entries read, {report.dropped:,} damaged ones dropped. {report.status}".strip()
    _say(plain, said, as_json)
    # A replaced file says so in its status, but it is whole again.
    if report.status and not report.replaced:
        raise typer.Exit(FAILED)


@app.command()
def prune(
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="As 500MB. [default: the cache's bound]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Drop the least recently used results until the rest fits, and give the room back."""
    limit = None if max_bytes is None else values.size("--max-bytes", max_bytes)
    store = _store()
    dropped = store.prune(limit)
    _finish(store, dropped, as_json)


@app.command()
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Drop every result. Finished parts of interrupted work are lost too."""
    store = _store()
    if not yes:
        _confirm(store)
    _finish(store, store.clear(), as_json)


def _store() -> Store:
    from engine.store import result_store

    return result_store()


def _confirm(store: Store) -> None:
    count = store.stats().entries
    if not can_ask():
        raise UsageError(f"cache clear: would drop {count:,} results and cannot ask here. Give --yes to do it.")
    typer.confirm(f"Drop {count:,} results in {store.folder}?", abort=True, err=True)


def can_ask() -> bool:
    """Whether somebody sits there to answer."""
    return sys.stdin.isatty()


def _finish(store: Store, dropped: int, as_json: bool) -> None:
    _say({"dropped": dropped, "trouble": store.status}, f"{dropped:,} results dropped. {store.status}".strip(), as_json)
    if store.status:
        raise typer.Exit(FAILED)


def _say(plain: dict[str, Any], said: str, as_json: bool) -> None:
    from engine.cli.output import print_json

    print_json(plain) if as_json else print(said)
