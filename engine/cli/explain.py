"""`exegesis explain` and `exegesis heads`: explanations and attention heads for one text or image.

Both print tables, with tokens or patches as rows and methods as columns, or heads as rows and scores as columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engine.cli import options, output
from engine.cli.inputs import (
    InputOptions,
    check_dtype,
    check_model,
    label_input,
    name_labels,
    read_heads,
    read_input,
    read_methods,
    read_params,
)
from engine.cli.root import note
from engine.errors import ExegesisError, UsageError, unknown
from engine.explain import explain as explain_one
from engine.explain import explain_many
from engine.heads.readings import CAUTION, DEFAULT_SCORES, HeadTable, HeadTableQuery, head_table, head_table_to_json
from engine.heads.scores import AGREEMENT
from engine.metrics.ablation import PROBE
from engine.models.summary import chance_note
from engine.next_token import spacing_notes
from engine.progress import Report
from engine.registry import explainer
from engine.request import Prompt, Request
from engine.result import Check, Explanation, explanation_to_json
from engine.store import result_store

SIDES = ("picture", "prompt")
"""What is explained for a model that matches pictures with texts."""
TOP_SCORES = 3
"""Number of bold scores per column."""
MAX_TOKEN_WIDTH = 24
MAX_CLASSES = 10
COLUMN_GAP = 3
EXAMPLE = "Example: --against integrated_gradients."
EMPHASIZED = 3
"""Number of bold heads per column."""
NO_VALUE, FLIPS = "-", "flips"


def explain(
    model: options.ModelOption = options.DEFAULT_MODEL,
    method: Annotated[str, typer.Option(metavar="A,B", help="Comma-separated methods, or 'all'. [required]")] = "",
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    prompt: options.PromptOption = None,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    column: options.ColumnOption = None,
    target: options.TargetOption = None,
    contrast: options.ContrastOption = None,
    chat: options.ChatOption = False,
    labels: options.LabelsOption = None,
    template: options.TemplateOption = None,
    side: options.SideOption = SIDES[0],
    param: options.ParamOption = None,
    head: options.HeadOption = None,
    seed: options.SeedOption = "0",
    dtype: options.DtypeOption = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list with one object per method.")] = False,
) -> None:
    """Explain a prediction: one score per token or patch, by one or more methods."""
    check_dtype(dtype)
    number = options.read_whole("--seed", seed)
    if side not in SIDES:
        raise unknown("--side", side, SIDES)
    model = name_labels(model, labels, template)
    with output.stdout_reserved():
        own = InputOptions(
            "explain", model, text, text_pair, image, dataset, index, split, column, prompt, target, contrast, chat
        )
        source = read_input(own)
        check_model(model, source.example.kind)
        if side == SIDES[1]:
            probe = explain_one(Request(model, PROBE, source.example, seed=number, dtype=dtype))
            source = label_input(model, source, probe.prediction)
        methods, are_all = read_methods("--method", method, source.example.kind)
        params = read_params(param, methods)
        heads = read_heads(head)
        requests = [
            Request(model, m.id, source.example, params[m.id], source.target, number, dtype, heads) for m in methods
        ]
        with output.progress_bar("explaining") as report:
            explanations = _explain_supported(requests, report) if are_all else explain_many(requests, report)
        prompt_read = source.example if isinstance(source.example, Prompt) else None
        first = explanations[0].prediction
        spacing = () if prompt_read is None else spacing_notes(model, prompt_read, first, heads)
    chance = chance_note(model, dataset) if dataset is not None else ""
    for line in (*spacing, *filter(None, [chance, result_store().status])):
        note(line)
    if as_json:
        output.print_json([explanation_to_json(explanation) for explanation in explanations])
    else:
        print_explanations(source.lines, explanations)


def _explain_supported(requests: list[Request], report: Report) -> list[Explanation]:
    """Explain by every method that supports the input. Notes report the others and the reasons."""
    explanations, refused = [], []
    for done, request in enumerate(requests):
        report(done, len(requests), request.method)
        try:
            explanations.append(explain_one(request))
        except ExegesisError as error:
            refused.append((request.method, error))
    if not explanations:
        raise refused[0][1]
    for method, reason in refused:
        note(f"{method} is left out: {reason}")
    return explanations


def print_explanations(lines: Sequence[str], explanations: Sequence[Explanation]) -> None:
    """Print `lines` (which describe the input), the prediction, tables that fit the console's width, and all notes."""
    out = output.console()
    for line in header_lines(lines, explanations[0]):
        out.print(line)
    for group in _groups_by_width(explanations, out):
        out.print()
        out.print(_score_table(group))
    for line in _notes(explanations):
        out.print(line)


def header_lines(lines: Sequence[str], first: Explanation) -> Iterator[Text]:
    """Yield the model with its device, the input, and the prediction."""
    origin = first.provenance
    model = f"{origin.model}, revision {origin.revision}, {origin.dtype} on {origin.device}"
    yield Text(output.visible(model), style="dim")
    yield from (Text(output.visible(line)) for line in lines)
    yield Text(output.visible(_prediction_line(first)), style="bold")


def _prediction_line(first: Explanation) -> str:
    prediction, origin = first.prediction, first.provenance
    if prediction.regression:
        return f"score {prediction.logits[0]:.4f}"
    ranked = sorted(zip(prediction.labels, prediction.probabilities, strict=True), key=lambda pair: -pair[1])
    shares = ", ".join(f"{_quoted(label)} {share:.4f}" for label, share in ranked[:MAX_CLASSES])
    if len(ranked) > MAX_CLASSES:
        shares += f" and {len(ranked) - MAX_CLASSES:,} more"
    other = f" rather than {_quoted(prediction.labels[1 - prediction.index])}" if prediction.of_two_tokens else ""
    return f"predicted {_quoted(prediction.label)}{other} ({shares}); explained: {_quoted(origin.target_label)}"


def _quoted(label: str) -> str:
    """Quote a label that starts or ends with white space, to make it visible."""
    return label if label == label.strip() else f"'{label}'"


def _groups_by_width(explanations: Sequence[Explanation], out: Console) -> Iterator[Sequence[Explanation]]:
    room = out.width - MAX_TOKEN_WIDTH
    start = used = 0
    for end, explanation in enumerate(explanations):
        width = max(len(explanation.provenance.method), 12) + COLUMN_GAP
        if used and used + width > room:
            yield explanations[start:end]
            start, used = end, 0
        used += width
    yield explanations[start:]


def _score_table(group: Sequence[Explanation]) -> Table:
    names = [e.provenance.method for e in group]
    rows = output.table(["token" if group[0].grid is None else "patch", *names], right=names)
    columns = [list(_score_cells(e)) for e in group]
    last = len(group[0].tokens) - 1
    for position, token in enumerate(group[0].tokens):
        name = Text(output.visible(token.text)[:MAX_TOKEN_WIDTH], style="dim" if token.special else "")
        rows.add_row(name, *(column[position] for column in columns), end_section=position == last)
    checks = [() if e.check is None else e.check.parts for e in group]
    rows.add_row("check", *(_check_cell(parts[0]) if parts else "none" for parts in checks))
    if any(len(parts) > 1 for parts in checks):
        rows.add_row("second check", *(_check_cell(parts[1]) if len(parts) > 1 else "" for parts in checks))
    rows.add_row("evaluations", *(f"{e.evaluations:,}" for e in group))
    rows.add_row("seconds", *(f"{e.seconds:.3f}{' (cached)' if e.cached else ''}" for e in group))
    return rows


def _score_cells(explanation: Explanation) -> Iterator[Text]:
    """Yield a cell per token. The largest absolute scores are bold, special tokens are dim."""
    scores, features = explanation.scores, explanation.features
    order = features[np.argsort(-np.abs(scores[features]), kind="stable")]
    top = {i for i in order[:TOP_SCORES].tolist() if scores[i]}
    largest = float(np.abs(scores).max(initial=0.0))
    fixed = largest == 0 or 1e-2 <= largest < 1e4
    for position, (token, score) in enumerate(zip(explanation.tokens, scores, strict=True)):
        style = "dim" if token.special else "bold" if position in top else ""
        yield Text(f"{score:.4f}" if fixed else f"{score:.3e}", style=style)


def _check_cell(check: Check) -> str:
    return f"{check.value:.1e} {'ok' if check.ok else 'too large'}"


def _notes(explanations: Sequence[Explanation]) -> Iterator[Text]:
    """Yield each note once, prefixed by its methods unless it applies to all of them."""
    owners: dict[str, list[str]] = {}
    for explanation in explanations:
        name = explanation.provenance.method
        for remark in explanation.remarks:
            owners.setdefault(remark, []).append(name)
        for part in () if explanation.check is None else explanation.check.parts:
            if not part.ok:
                failure = f"{part.name} is {part.value:.2e}, above its limit {part.limit:.0e}."
                owners.setdefault(failure, []).append(name)
    for remark, names in owners.items():
        prefix = "" if len(names) == len(explanations) else f"{', '.join(names)}: "
        yield Text(f"note: {prefix}{output.visible(remark)}")


def heads(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    prompt: options.PromptOption = None,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    column: options.ColumnOption = None,
    target: options.TargetOption = None,
    contrast: options.ContrastOption = None,
    chat: options.ChatOption = False,
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
        own = InputOptions(
            "heads", model, text, text_pair, image, dataset, index, split, column, prompt, target, contrast, chat
        )
        source = read_input(own)
        check_model(model, source.example.kind)
        table_query = read_query(score, against, query, source.example.kind)
        request = Request(model, PROBE, source.example, {}, source.target, number, dtype, read_heads(head))
        with output.progress_bar("reading heads") as report:
            table = head_table(request, table_query, report)
    if status := result_store().status:
        note(status)
    if as_json:
        output.print_json(head_table_to_json(table, limit))
    else:
        print_heads(source.lines, table, limit)


def read_query(score: str, against: str, query: str | None, kind: str) -> HeadTableQuery:
    """Read the options about scores. With a method to compare with, the agreement is added."""
    names = options.read_names("--score", score) if score else list(DEFAULT_SCORES)
    if against:
        explainer(against, kind)
        names += [] if AGREEMENT in names else [AGREEMENT]
    elif AGREEMENT in names:
        raise UsageError(f"--against: is missing; the score '{AGREEMENT}' requires it. {EXAMPLE}")
    elif query is not None:
        raise UsageError(f"--query: requires --against. {EXAMPLE}")
    return HeadTableQuery(tuple(names), against, None if query is None else options.read_whole("--query", query))


def print_heads(source: Sequence[str], table: HeadTable, limit: int | None = None) -> None:
    """Print `source` (which describes the input), the prediction, a row per head, and the meaning of the scores."""
    out = output.console()
    for line in header_lines(source, table.reading.explanation):
        out.print(line)
    out.print()
    out.print(_heads_table(table, limit))
    for line in _describe_scores(table):
        out.print(line)


def _heads_table(table: HeadTable, limit: int | None) -> Table:
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
    """Return the heads with the largest absolute values, without zeros."""
    sizes = np.nan_to_num(np.abs(column))
    order = np.argsort(-sizes, axis=None, kind="stable")[:EMPHASIZED]
    return {(int(at) // column.shape[1], int(at) % column.shape[1]) for at in order if sizes.flat[at]}


def _describe_scores(table: HeadTable) -> Iterator[Text]:
    for name in table.columns:
        score = table.score(name)
        yield Text(f"{name}: {score.title}, {score.unit}. {score.about}", style="dim")
    for line in (*table.reading.explanation.notes, CAUTION):
        yield Text(f"note: {output.visible(line)}")
