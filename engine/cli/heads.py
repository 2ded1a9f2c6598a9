"""`exegesis heads`: what every attention head looks at in one text or picture, and whether it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options
from engine.cli.inputs import InputOptions as Input
from engine.cli.inputs import check_dtype, check_model, read_heads, read_input
from engine.cli.options import (
    DEFAULT_MODEL,
    Column,
    Dataset,
    Dtype,
    Head,
    Image,
    Index,
    Model,
    Seed,
    Split,
    Target,
    Text,
    TextPair,
)
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.heads.readings import HeadTable, HeadTableQuery
    from engine.request import Request

EXAMPLE = "Example: --against integrated_gradients."


def heads(
    model: Model = DEFAULT_MODEL,
    text: Text = None,
    text_pair: TextPair = None,
    image: Image = None,
    dataset: Dataset = None,
    index: Index = None,
    split: Split = None,
    column: Column = None,
    target: Target = None,
    head: Head = None,
    score: Annotated[str, typer.Option(metavar="A,B", help="Scores between commas. [default: all]")] = "",
    against: Annotated[str, typer.Option(metavar="METHOD", help="Compare maps with this attribution.")] = "",
    query: Annotated[str | None, typer.Option(metavar="N", help="Compare what position N attends to.")] = None,
    top: Annotated[str | None, typer.Option(metavar="N", help="Only the N heads largest by the first score.")] = None,
    seed: Seed = "0",
    dtype: Dtype = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object, a row a head.")] = False,
) -> None:
    """See what each attention head looks at and if it matters."""
    from engine.cli import drawing_heads, output
    from engine.cli.guard import note
    from engine.cli.plain_heads import heads_as_plain
    from engine.metrics.ablation import PROBE
    from engine.request import Request
    from engine.store import result_store

    check_dtype(dtype)
    most = None if top is None else options.read_whole("--top", top, 1)
    number = options.read_whole("--seed", seed)
    with output.stdout_reserved():
        source = read_input(Input("heads", model, text, text_pair, image, dataset, index, split, column))
        check_model(model, source.example.kind)
        asked = _asked(score, against, query, source.example.kind)
        found = _made(Request(model, PROBE, source.example, {}, target, number, dtype, read_heads(head)), asked)
    if trouble := result_store().status:
        note(trouble)
    if as_json:
        output.print_json(heads_as_plain(found, most))
    else:
        drawing_heads.draw(source.lines, found, most)


def _asked(score: str, against: str, query: str | None, kind: str) -> HeadTableQuery:
    """The scores asked for; a method to compare with adds the agreement."""
    from engine.heads.readings import DEFAULT_SCORES, HeadTableQuery
    from engine.heads.scores import AGREEMENT
    from engine.registry import explainer

    names = options.read_names("--score", score) if score else list(DEFAULT_SCORES)
    if against:
        explainer(against, kind)
        names += [] if AGREEMENT in names else [AGREEMENT]
    elif AGREEMENT in names:
        raise UsageError(f"--against: is missing; the score '{AGREEMENT}' needs it. {EXAMPLE}")
    elif query is not None:
        raise UsageError(f"--query: belongs to --against, which is missing. {EXAMPLE}")
    return HeadTableQuery(tuple(names), against, None if query is None else options.read_whole("--query", query))


def _made(request: Request, asked: HeadTableQuery) -> HeadTable:
    from engine.cli.output import progress_bar
    from engine.heads.readings import head_table

    with progress_bar("reading heads") as report:
        return head_table(request, asked, report)
