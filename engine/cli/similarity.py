"""`exegesis similarity`: show which pairs of tokens make two texts similar to a sentence encoder (BiLRP)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options, output
from engine.cli.root import note
from engine.errors import UsageError
from engine.lazy import LazyModule
from engine.store import result_store

if TYPE_CHECKING:
    from engine import similarity as bilrp
else:  # it loads torch, which the help does not need
    bilrp = LazyModule("engine.similarity")

MOST_PAIRS = "10"


def similarity(
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    model: Annotated[
        str, typer.Option(metavar="M", help="minilm, a hub ID, or a folder that sentence-transformers has saved.")
    ] = "minilm",
    top: Annotated[str, typer.Option(metavar="N", help="Show only the N pairs with the most relevance.")] = MOST_PAIRS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the relevance of every pair.")] = False,
) -> None:
    """Show which pairs of tokens make two texts similar (BiLRP)."""
    if text is None or text_pair is None:
        raise UsageError("similarity: needs two texts. Add --text '...' --text-pair '...'.")
    count = options.read_whole("--top", top, 1)
    with output.stdout_reserved():
        found = bilrp.text_similarity(
            options.read_text("--text", text), options.read_text("--text-pair", text_pair), model
        )
    if status := result_store().status:
        note(status)
    if as_json:
        output.print_json(found.as_json())
        return
    rows = output.table(["first text", "second text", "relevance"], right=["relevance"])
    for one, two, value in found.pairs(count):
        rows.add_row(output.visible(found.first[one].text), output.visible(found.second[two].text), f"{value:.4f}")
    out = output.console()
    out.print(f"Similarity {found.value:.4f} by {output.visible(model)}", markup=False)
    out.print(rows)
    pairs = float(found.relevance.sum())
    print(f"Pairs of tokens: {pairs:.4f}. Biases, positions and softmax, alone or with tokens: {found.rest:.4f}.")
    state = "good" if found.check.ok else "NOT good"
    print(f"Check: {found.check.value:.1e} ({found.check.name}; {state} up to {found.check.limit:g})")
    for name, tokens, lost in zip(("first", "second"), (found.first, found.second), found.truncated, strict=True):
        if lost:
            note(f"{name} text: the last {lost} tokens were not read. The encoder reads {len(tokens)}.")
