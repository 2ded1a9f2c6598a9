"""`exegesis counterfactuals`: the fewest changes of words that flip a prediction."""

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
from engine.request import Example
from engine.store import result_store
from engine.table_io import to_json, to_parquet

if TYPE_CHECKING:
    from engine import counterfactual_search
    from engine import counterfactuals as search
    from engine.counterfactuals import Counterfactual, CounterfactualResult
else:  # it loads torch, which the help does without
    search = LazyModule("engine.counterfactuals")
    counterfactual_search = LazyModule("engine.counterfactual_search")

ADVICE = "Raise --most-changes, --candidates, --words or --beam, or give another --masked-model."
FORMATS: Mapping[str, Callable[[CounterfactualResult], str | bytes]] = {
    ".csv": lambda result: result.as_csv(),
    ".json": lambda result: to_json(result.rows()),
    ".parquet": lambda result: to_parquet(result.rows(), search.COLUMNS),
}


def counterfactuals(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    column: options.ColumnOption = None,
    target: Annotated[str | None, typer.Option(metavar="L", help="Class to reach. [default: any other]")] = None,
    threshold: Annotated[str | None, typer.Option(metavar="S", help="Score to cross, for a model of scores.")] = None,
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
    """Find the fewest changes of words that flip a prediction."""
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
    score = None if threshold is None else options.read_numbers("--threshold", threshold)[0]
    file = rows_file(out)
    with output.stdout_reserved():
        source = read_input(
            InputOptions("counterfactuals", model, text, text_pair, None, dataset, index, split, column)
        )
        if not isinstance(source.example, Example):
            raise UsageError("--dataset: must have texts for counterfactuals, got pictures. Give a data set of texts.")
        check_model(model, "text")
        limits = counterfactual_search.SearchOptions(sources=tuple(options.read_names("--sources", sources)), **chosen)
        with output.progress_bar("searching") as report, reporting(report):
            result = search.counterfactuals(model, source.example, target, score, limits)
    if status := result_store().status:
        note(status)
    if file is not None:
        data = FORMATS[file.suffix.lower()](result)
        output.write_file("--out", file, data if isinstance(data, bytes) else data.encode())
    if as_json:
        output.print_json(result.as_json())
    else:
        print_counterfactuals(result)


def print_counterfactuals(result: CounterfactualResult) -> None:
    """Print the prediction, a row for each counterfactual, and what was searched."""
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


def _class(prediction: Any) -> str:
    return f"{prediction.label} {prediction.probabilities[prediction.index]:.4f}"


def _changes(one: Counterfactual) -> str:
    named = (f"{change.word.text} -> {change.replacement or '(deleted)'}" for change in one.changes)
    return output.visible(", ".join(named))
