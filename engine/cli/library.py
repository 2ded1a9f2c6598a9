"""`exegesis models`, `datasets`, `doctor` and `cache`: list and check the contents of this installation."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cache import Store
from engine.cli.options import ColumnOption, JsonOption, YesOption, read_pairs, read_size
from engine.cli.output import (
    console,
    format_facts,
    format_value,
    is_interactive,
    print_json,
    progress_bar,
    stdout_reserved,
    table,
)
from engine.cli.root import FAILED, Commands
from engine.data.datasets import dataset_card, dataset_names, load
from engine.data.examples import Dataset, ImageDataset
from engine.data.hub_push import check_repo, push_dataset, push_table
from engine.data.image_datasets import image_card, image_names, is_images, load_images
from engine.errors import UsageError
from engine.format import size_text
from engine.health import Finding, examine
from engine.lazy import LazyModule
from engine.models import catalog
from engine.models.fetched import FETCHED, fetch_model, fetched_models, is_fetched, is_intact
from engine.store import result_store

if TYPE_CHECKING:
    from engine.models import inspection
else:  # it loads torch, which the lists do not need
    inspection = LazyModule("engine.models.inspection")


GET = "get"
"""Given in place of a model, fetches the model whose name follows."""
PRINTED = {"licence": "license", "unlabelled": "unlabeled"}
"""American spelling, for printing, of keys in cards and in `--json`."""


def models(
    name: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="Embedded model, folder or hub ID; or get, to fetch one.")
    ] = None,
    fetch: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help=f"After get: {', '.join(FETCHED)}, or a hub ID.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the embedded models, load and check one, or fetch a language model."""
    if name is None:
        return _list_models(as_json)
    if name == GET:
        return _fetch_model(fetch)
    if fetch is not None:
        raise UsageError(f"models: takes one model, got {name} and {fetch}. To fetch one: exegesis models get {fetch}.")
    with stdout_reserved():
        catalog.locate(name)  # fails for a missing model before the libraries are loaded
        description = inspection.inspect_model(name)
    if as_json:
        return print_json(description)
    checks, measured = description.pop("checks"), _accuracy(description)
    facts = {key: value for key, value in description.items() if key not in ("metric", "scores")}
    print(_describe({**facts, "measured": measured}))
    for check in checks:
        print(f"{'ok' if check['ok'] else 'broken'}  {check['name']}: {check['detail']}")
    if not all(check["ok"] for check in checks):
        raise typer.Exit(1)
    return None


def _fetch_model(name: str | None) -> None:
    if name is None:
        raise UsageError(f"models get: needs the name of a model. Known: {', '.join(FETCHED)}. Or give a hub ID.")
    if catalog.HUB_ID.fullmatch(name):
        return _fetch_from_hub(name)
    known = is_intact(name)
    with progress_bar("fetching") as report:
        folder = fetch_model(name, report)
    print(f"{name} {'is stored already' if known else 'is stored'} in {folder}. Example:")
    print(f'exegesis explain --model {name} --method occlusion,random --prompt "The capital of France is"')
    return None


def _fetch_from_hub(name: str) -> None:
    """Download a model from the hub unless the local cache has it. Every command can then use it by its ID."""
    with stdout_reserved():
        source = catalog.locate(name)
    if source.kind != "hub":
        raise UsageError(f"models get: {name} is a folder here. Give it as the model: exegesis models {name}.")
    print(f"{name} is stored in {source.folder}. Check it: exegesis models {name}")


def _describe(facts: dict[str, Any]) -> str:
    return format_facts({PRINTED.get(key, key): value for key, value in facts.items()})


def _list_models(as_json: bool) -> None:
    keys = ("title", "kind", "labels", "metric", "scores", "bytes", "licence", "command")
    names = [*catalog.embedded_models(), *catalog.embedded_image_models()]
    rows: list[dict[str, Any]] = [{"name": n, **{key: catalog.card(n).get(key) for key in keys}} for n in names]
    if as_json:
        return print_json(rows)
    board = table(["model", "kind", "labels", "measured", "size", "license"], right=["size"])
    for row in rows:
        cells = (
            row["kind"] or "",
            row["labels"] or _vocabulary(row["name"]),
            _accuracy(row),
            size_text(row["bytes"]),
            row["licence"] or "",
        )
        board.add_row(row["name"], *map(format_value, cells))
    if rows:
        console().print(board)
    here = "embedded or fetched" if fetched_models() else "embedded"
    print(f"{len(rows)} {here}. Folders and hub IDs of supported families work too: exegesis models FOLDER.")
    for name in FETCHED:
        if not is_fetched(name):
            print(f"Not fetched yet: {name}, a language model. Fetch it: exegesis models get {name}")
    return None


def _vocabulary(model: str) -> list[str]:
    size = catalog.vocabulary_size(model)
    return [] if size is None else [f"language model, {size:,} tokens"]


def _accuracy(card: dict[str, Any]) -> str:
    """Format the measured scores by split."""
    scores = [f"{split} {score['value']:.3f}" for split, score in catalog.fair_scores(card).items()]
    return f"{card.get('metric') or 'score'}: {', '.join(scores)}" if scores else ""


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[DATASET]", help="Name, file, folder, zip file of images or hub:owner/name."),
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="S", help="Split of the data set.")] = None,
    column: ColumnOption = None,
    push: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME", help="Push it to the hub, or a Parquet file of results, with a card."),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see what is pushed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the data sets, or describe one."""
    if public and push is None:
        raise UsageError("--public: is for what is pushed. Add --push OWNER/NAME.")
    if name is None:
        if push is not None:
            raise UsageError("DATASET: is missing. Name the data set to push.")
        return _list_datasets(as_json)
    columns = read_pairs("--column", column or [], "text=review") or None
    if push is not None:
        return _push(name, split, columns, push, public, as_json)
    with stdout_reserved():
        if is_images(name):
            description = _describe_pictures(load_images(name, split=split, columns=columns))
        else:
            description = _describe_texts(load(name, split=split, columns=columns))
    if as_json:
        return print_json(description)
    card = description.pop("card")
    labels = [f"{label}: {count:,}" for label, count in description["labels"].items()]
    print(_describe({**description, "labels": labels, **card}))
    return None


def _push(
    name: str, split: str | None, columns: Mapping[str, str] | None, repo: str, public: bool, as_json: bool
) -> None:
    check_repo(repo)
    with stdout_reserved():
        if name.endswith(".parquet") and not is_images(name):
            address = push_table(Path(name), repo, not public)
        else:
            read = load_images if is_images(name) else load
            address = push_dataset(read(name, split=split, columns=columns), repo, not public)
    if as_json:
        return print_json({"repository": repo, "address": address, "public": public})
    print(f"Pushed to {address}. Read it as hub:{repo}.")
    return None


def _list_datasets(as_json: bool) -> None:
    cards = {name: asdict(dataset_card(name)) for name in dataset_names()}
    cards |= {name: asdict(image_card(name)) for name in image_names()}
    if as_json:
        return print_json([{"name": name, **card} for name, card in cards.items()])
    board = table(["data set", "title", "size", "license"])
    for name, card in cards.items():
        board.add_row(name, card["title"], *(card[key].partition(". ")[0].rstrip(".") for key in ("size", "licence")))
    console().print(board)
    return None


def _describe_pictures(data: ImageDataset) -> dict[str, Any]:
    counts = Counter(data.labels)
    first = data[0]
    return {
        "name": data.id,
        "split": data.split,
        "task": "classification of pictures",
        "examples": len(data),
        "labels": {label: counts[i] for i, label in enumerate(data.label_names)},
        "unlabelled": counts[None],
        "first_picture": f"{first.pixels.shape[1]} x {first.pixels.shape[0]} pixels",
        "revision": data.revision,
        "notes": list(data.notes),
        "card": asdict(data.card),
    }


def _describe_texts(data: Dataset) -> dict[str, Any]:
    counts = Counter(example.label for example in data.examples)
    names = data.label_names
    labels = {label: counts[i] for i, label in enumerate(names)} if data.task == "classification" else {}
    return {
        "name": data.id,
        "split": data.split,
        "task": data.task,
        "pairs": data.pairs,
        "examples": len(data),
        "labels": labels,
        "unlabelled": counts[None],
        "with_rationale": sum(bool(e.rationale or e.rationale_pair) for e in data.examples),
        "revision": data.revision,
        "notes": list(data.notes),
        "card": asdict(data.card),
    }


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
    # After a damaged file was replaced, the status reports it, but the cache works again.
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
