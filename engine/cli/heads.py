"""`exegesis heads`: what every attention head looks at in one text or picture, and whether it matters.

For people: heads as rows, scores as columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from engine.cli import options, output
from engine.cli.explain import header_lines
from engine.cli.guard import note
from engine.cli.inputs import InputOptions, check_dtype, check_model, read_heads, read_input
from engine.errors import UsageError
from engine.heads.scores import AGREEMENT
from engine.heads.table import CAUTION, DEFAULT_SCORES, HeadTable, HeadTableQuery, head_table, head_table_to_json
from engine.metrics.ablation import PROBE
from engine.registry import explainer
from engine.request import Request
from engine.store import result_store

EXAMPLE = "Example: --against integrated_gradients."
EMPHASIZED = 3
"""Heads of each column that stand out."""
NO_VALUE, FLIPS = "-", "flips"


def heads(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    column: options.ColumnOption = None,
    target: options.TargetOption = None,
    head: options.HeadOption = None,
    score: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated scores. [default: all]")] = "",
    against: Annotated[str, typer.Option(metavar="METHOD", help="Compare heads with this attribution method.")] = "",
    query: Annotated[str | None, typer.Option(metavar="N", help="Compare only what position N attends to.")] = None,
    top: Annotated[
        str | None, typer.Option(metavar="N", help="Show only the N heads with the highest first score.")
    ] = None,
    seed: options.SeedOption = "0",
    dtype: options.DtypeOption = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with a row per head.")] = False,
) -> None:
    """Show what each attention head attends to and whether it matters."""
    check_dtype(dtype)
    limit = None if top is None else options.read_whole("--top", top, 1)
    number = options.read_whole("--seed", seed)
    with output.stdout_reserved():
        source = read_input(InputOptions("heads", model, text, text_pair, image, dataset, index, split, column))
        check_model(model, source.example.kind)
        table_query = read_query(score, against, query, source.example.kind)
        request = Request(model, PROBE, source.example, {}, target, number, dtype, read_heads(head))
        with output.progress_bar("reading heads") as report:
            table = head_table(request, table_query, report)
    if status := result_store().status:
        note(status)
    if as_json:
        output.print_json(head_table_to_json(table, limit))
    else:
        draw(source.lines, table, limit)


def read_query(score: str, against: str, query: str | None, kind: str) -> HeadTableQuery:
    """The scores of the options; a method to compare with adds the agreement."""
    names = options.read_names("--score", score) if score else list(DEFAULT_SCORES)
    if against:
        explainer(against, kind)
        names += [] if AGREEMENT in names else [AGREEMENT]
    elif AGREEMENT in names:
        raise UsageError(f"--against: is missing; the score '{AGREEMENT}' requires it. {EXAMPLE}")
    elif query is not None:
        raise UsageError(f"--query: requires --against. {EXAMPLE}")
    return HeadTableQuery(tuple(names), against, None if query is None else options.read_whole("--query", query))


def draw(source: Sequence[str], table: HeadTable, limit: int | None = None) -> None:
    """Print lines that describe the input, the prediction, a row a head, and the meaning of the scores."""
    out = output.console()
    for line in header_lines(source, table.reading.explanation):
        out.print(line)
    out.print()
    out.print(_build_table(table, limit))
    for line in _describe_scores(table):
        out.print(line)


def _build_table(table: HeadTable, limit: int | None) -> Table:
    names = list(table.columns)
    rows = output.table(["head", *names, *([FLIPS] if table.flipped is not None else [])], right=names)
    largest = {name: _largest_heads(column) for name, column in table.columns.items()}
    for layer, head in table.heads if limit is None else table.ranked[:limit]:
        cells = [
            Text(
                NO_VALUE if math.isnan(column[layer, head]) else f"{column[layer, head]:.4f}",
                style="bold" if (layer, head) in largest[name] else "",
            )
            for name, column in table.columns.items()
        ]
        flips = [] if table.flipped is None else [FLIPS if table.flipped[layer, head] else ""]
        rows.add_row(f"{layer}.{head}", *cells, *flips)
    return rows


def _largest_heads(column: np.ndarray) -> set[tuple[int, int]]:
    """The heads that stand out: the largest by absolute value, but for 0."""
    sizes = np.nan_to_num(np.abs(column))
    order = np.argsort(-sizes, axis=None, kind="stable")[:EMPHASIZED]
    return {(int(at) // column.shape[1], int(at) % column.shape[1]) for at in order if sizes.flat[at]}


def _describe_scores(table: HeadTable) -> Iterator[Text]:
    for name in table.columns:
        score = table.score(name)
        yield Text(f"{name}: {score.title}, {score.unit}. {score.about}", style="dim")
    for line in (*table.reading.explanation.notes, CAUTION):
        yield Text(f"note: {output.visible(line)}")
