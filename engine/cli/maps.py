"""`exegesis maps`: import maps of other tools, to evaluate and compare them as methods."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from engine.cli import options, output
from engine.cli.root import Commands
from engine.errors import UsageError
from engine.lazy import LazyModule
from engine.maps.files import MOST_BYTES, MapFile, read_maps

if TYPE_CHECKING:
    from engine.maps import imported
    from engine.maps.imported import ImportedMaps
else:  # it loads a model's configuration, which the help does not need
    imported = LazyModule("engine.maps.imported")

app = typer.Typer(
    cls=Commands, rich_markup_mode=None, help="Import maps of other tools, to evaluate and compare them as methods."
)


@app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON or .npz file of maps.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the set; its method is maps:NAME.")] = "",
    model: Annotated[str, typer.Option(metavar="M", help="The model that was explained, if the file names none.")] = "",
    as_json: options.JsonOption = False,
) -> None:
    """Check a file of maps against its model and store it."""
    content = read_file(file)
    maps = read_maps(content, Path(file).name)
    with output.progress_bar("checking") as report, output.stdout_reserved():
        stored = imported.import_maps(maps, name or Path(file).stem, model, report)
    if as_json:
        output.print_json(to_json(stored))
        return
    _print_table([stored])
    print(output.visible(f"Use it: {command_for(maps, stored)}"))


def command_for(file: MapFile, stored: ImportedMaps) -> str:
    """Return a command that uses a set: `evaluate` if the set has maps of a data set, else `explain`."""
    data = next((entry.dataset for entry in file.maps if entry.dataset), None)
    if data is None:
        return f"exegesis explain --model {stored.model} --method {stored.id} --text '...'"
    return f"exegesis evaluate --models {stored.model} --methods {stored.id} --dataset {data}"


def read_file(file: str) -> bytes:
    """Read a file up to one byte more than allowed, so that too large files are detected. Errors: it is unreadable."""
    try:
        with open(file, "rb") as opened:
            return opened.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"file: {output.visible(file)} cannot be read ({reason}). Check the path.") from None


@app.command("list")
def list_imported(as_json: options.JsonOption = False) -> None:
    """List the imported sets, and those that cannot be read."""
    sets, damaged = imported.all_imported(), imported.damaged_sets()
    if as_json:
        problems = [{"name": name, "problem": reason} for name, reason in damaged.items()]
        output.print_json([to_json(one) for one in sets] + problems)
        return
    if sets:
        _print_table(sets)
    for name, reason in damaged.items():
        command = shlex.join(["exegesis", "maps", "remove", *(["--"] if name.startswith("-") else []), name])
        print(output.visible(f"{reason} Or remove them: {command}"))
    if not sets and not damaged:
        print("There are no imported maps. Import some with: exegesis maps import FILE --name NAME")


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the set.")]) -> None:
    """Delete an imported set."""
    imported.remove(name)
    print(f"{name} is removed.")


def to_json(stored: ImportedMaps) -> dict[str, Any]:
    """Convert the metadata of a set to JSON values."""
    return {
        "name": stored.name, "method": stored.id, "kind": stored.kind, "model": stored.model,
        "revision": stored.revision, "tool": stored.tool, "tool_method": stored.method, "signed": stored.signed,
        "date": stored.date, "maps": stored.maps, "inputs": stored.inputs, "digest": stored.digest,
    }  # fmt: skip


def _print_table(sets: list[ImportedMaps]) -> None:
    rows = output.table(
        ["method", "model", "tool", "tool's method", "maps", "inputs", "date"], right=["maps", "inputs"]
    )
    for one in sets:
        cells = (one.id, one.model, one.tool, one.method, f"{one.maps:,}", f"{one.inputs:,}", one.date)
        rows.add_row(*(Text(output.visible(cell)) for cell in cells))
    output.console().print(rows)
