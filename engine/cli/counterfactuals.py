"""`exegesis counterfactuals`: find the fewest word changes, or removed patches, that flip a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, output
from engine.cli.experiments import rows_file
from engine.cli.inputs import InputOptions, check_model, read_input
from engine.cli.root import note
from engine.errors import UsageError
from engine.lazy import LazyModule
from engine.progress import reporting
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Example, Picture
from engine.store import result_store
from engine.table_io import to_json, to_parquet

if TYPE_CHECKING:
    from engine.counterfactuals import patches as patch_search
    from engine.counterfactuals import search as counterfactual_search
    from engine.counterfactuals import texts as search
    from engine.counterfactuals.patches import PatchCounterfactuals
    from engine.counterfactuals.texts import Counterfactual, CounterfactualResult
else:  # they load torch, which the help does not need
    search = LazyModule("engine.counterfactuals.texts")
    patch_search = LazyModule("engine.counterfactuals.patches")
    counterfactual_search = LazyModule("engine.counterfactuals.search")

ADVICE = "Raise --most-changes, --candidates, --words or --beam, or give another --masked-model."
FORMATS: Mapping[str, Callable[[Any, Mapping[str, type]], str | bytes]] = {
    ".csv": lambda result, columns: str(result.as_csv()),
    ".json": lambda result, columns: to_json(result.rows()),
    ".parquet": lambda result, columns: to_parquet(result.rows(), columns),
}


def counterfactuals(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    prompt: options.PromptOption = None,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    column: options.ColumnOption = None,
    target: Annotated[str | None, typer.Option(metavar="L", help="Class to reach. [default: any other]")] = None,
    contrast: options.ContrastOption = None,
    chat: options.ChatOption = False,
    threshold: Annotated[str | None, typer.Option(metavar="S", help="Score to cross, for a model of scores.")] = None,
    removal: Annotated[
        str | None, typer.Option(metavar="R", help="What a removed patch of an image is. [default: mean]")
    ] = None,
    sources: Annotated[str, typer.Option(metavar="A,B", help="Where replacements come from.")] = (
        "masked,nearest,delete"
    ),
    masked_model: Annotated[
        str | None, typer.Option(metavar="M", help="Masked language model. [default: bases/bert-generated]")
    ] = None,
    most_changes: Annotated[str | None, typer.Option(metavar="N", help="Change at most N words. [default: 4]")] = None,
    candidates: Annotated[
        str | None, typer.Option(metavar="N", help="Replacements of a word from each source. [default: 8]")
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Words to try; of more, those that gradient x input ranks highest. [default: 30]"
        ),
    ] = None,
    beam: Annotated[
        str | None, typer.Option(metavar="N", help="Sets of changes that are extended by one more. [default: 8]")
    ] = None,
    branches: Annotated[
        str | None, typer.Option(metavar="N", help="Single changes that extend each set. [default: 48]")
    ] = None,
    results: Annotated[str | None, typer.Option(metavar="N", help="Counterfactuals to find. [default: 5]")] = None,
    out: options.OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with what was searched.")] = False,
) -> None:
    """Find the fewest changes of words, or removed patches, that flip a prediction."""
    numbers = {
        "most_changes": most_changes, "candidates": candidates, "words": words, "beam": beam, "branches": branches,
        "results": results,
    }  # fmt: skip
    chosen: dict[str, Any] = {
        name: options.read_whole(f"--{name.replace('_', '-')}", typed, 1)
        for name, typed in numbers.items()
        if typed is not None
    }
    chosen |= {} if masked_model is None else {"masked_model": masked_model}
    score = None if threshold is None else options.read_number("--threshold", threshold)
    file = rows_file(out)
    with output.stdout_reserved():
        source = read_input(
            InputOptions(
                "counterfactuals", model, text, text_pair, image, dataset, index, split, column, prompt,
                None if contrast is None else target, contrast, chat,
            )
        )  # fmt: skip
        example = source.example
        check_model(model, example.kind)
        unsuited = {"threshold": score, **chosen} if isinstance(example, Picture) else {"removal": removal}
        for name in (name for name, value in unsuited.items() if value is not None):
            kind = "texts" if isinstance(example, Picture) else "images"
            raise UsageError(f"--{name.replace('_', '-')}: serves {kind} only. Remove it.")
        with output.progress_bar("searching") as report, reporting(report):
            result: CounterfactualResult | PatchCounterfactuals
            if isinstance(example, Picture):
                result = patch_search.patch_counterfactuals(model, example, removal or PATCH_OPERATORS[0], target)
            elif isinstance(example, Example):
                names = tuple(options.read_names("--sources", sources))
                limits = counterfactual_search.SearchOptions(sources=names, **chosen)
                own = target if contrast is None else None  # a prompt with a contrast flips between the two
                result = search.counterfactuals(model, example, own, score, limits)
    if status := result_store().status:
        note(status)
    if file is not None:
        columns = patch_search.COLUMNS if isinstance(example, Picture) else search.COLUMNS
        data = FORMATS[file.suffix.lower()](result, columns)
        output.write_file("--out", file, data if isinstance(data, bytes) else data.encode())
    if as_json:
        output.print_json(result.as_json())
    elif isinstance(result, patch_search.PatchCounterfactuals):
        print_patches(result)
    else:
        print_counterfactuals(result)


def print_counterfactuals(result: CounterfactualResult) -> None:
    """Print the prediction, a row per counterfactual, and the extent of the search."""
    out = output.console()
    original = result.original
    now = f"score {original.logits[0]:.4f}" if original.regression else _class(original)
    out.print(f"{output.visible(result.model)} predicts {output.visible(now)}", markup=False)
    listed = result.results or tuple(filter(None, [result.closest]))
    if not result.results:
        out.print("Nothing that was tried flips it." + (" The closest:" if listed else ""))
    rows = output.table(["changes", "new prediction", "text"])
    for one in listed:
        new = f"{one.prediction.logits[0]:.4f}" if original.regression else _class(one.prediction)
        texts = " | ".join(filter(None, (one.example.text, one.example.text_pair)))
        rows.add_row(_changes(one), output.visible(new), output.visible(" ".join(texts.split())))
    if listed:
        out.print(rows)
    for line in result.statements:
        print(output.visible(line))
    if not result.results:
        print(ADVICE)
    print(f"Evaluations: {result.evaluations:,} of the model, {result.masked_evaluations:,} of the masked model.")


def print_patches(result: PatchCounterfactuals) -> None:
    """Print the prediction, a row per set of patches, and the extent of the search."""
    out = output.console()
    out.print(f"{output.visible(result.model)} predicts {output.visible(_class(result.original))}", markup=False)
    listed = result.results or tuple(filter(None, [result.closest]))
    if not result.results:
        out.print("Nothing that was tried flips it." + (" The closest:" if listed else ""))
    rows = output.table(["patches", "new prediction", "row.column, from 1"], right=["patches"])
    for one in listed:
        places = ", ".join(f"{patch // result.grid[1] + 1}.{patch % result.grid[1] + 1}" for patch in one.patches)
        rows.add_row(str(len(one.patches)), output.visible(_class(one.prediction)), places)
    if listed:
        out.print(rows)
    for line in result.statements:
        print(line)
    print(f"A removed patch: {result.removal}. Evaluations: {result.evaluations:,}.")


def _class(prediction: Any) -> str:
    return f"{prediction.label} {prediction.probabilities[prediction.index]:.4f}"


def _changes(one: Counterfactual) -> str:
    named = (f"{change.word.text} -> {change.replacement or '(deleted)'}" for change in one.changes)
    return output.visible(", ".join(named))
