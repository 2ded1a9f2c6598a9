"""`exegesis layers`: logit lens, activation patching, information flow routes and head importance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, output
from engine.cli.inputs import InputOptions, check_model, read_input
from engine.cli.root import Commands, note
from engine.errors import UsageError, not_allowed
from engine.format import visible_token
from engine.lazy import LazyModule
from engine.progress import cancellable, reporting
from engine.request import Example
from engine.store import result_store

if TYPE_CHECKING:
    from engine.inside import lens as logit_lens
    from engine.inside import patching, routes
    from engine.result import Check
else:  # they load torch, which the help does not need
    logit_lens, patching = LazyModule("engine.inside.lens"), LazyModule("engine.inside.patching")
    routes = LazyModule("engine.inside.routes")

HELP = "See inside a model: logit lens, activation patching, information flow routes, heads that matter."
MOST_EDGES = 30
"""Default number of rows in the table of edges; JSON includes all edges."""
TopOption = Annotated[str, typer.Option(metavar="N", help="Rows of the table.")]

app = typer.Typer(cls=Commands, rich_markup_mode=None, help=HELP)


@app.command("lens")
def show_lens(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    prompt: options.PromptOption = None,
    chat: options.ChatOption = False,
    target: options.TargetOption = None,
    dtype: options.DtypeOption = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every layer at every position.")] = False,
) -> None:
    """Show what the model would predict after each layer (logit lens)."""
    example = _read_example("lens", model, text, text_pair, prompt, chat)
    with _running("reading layers"):
        result = logit_lens.logit_lens(logit_lens.LensQuery(model, example, target, dtype=dtype))
    if as_json:
        return output.print_json(logit_lens.lens_to_json(result))
    value = f"value of {result.target}" if result.regression else f"P({visible_token(result.target)})"
    rows = output.table(["layer", "top", "value", value], right=["layer", "value", value])
    cells = zip(result.reading_top, result.reading_top_value, result.reading, strict=True)
    for depth, (top, top_value, own) in enumerate(cells):
        rows.add_row(_layer(depth - 1), output.visible(visible_token(top)), f"{top_value:.4f}", f"{own:.4f}")
    output.console().print(rows)
    print(result.explanation)
    if result.truncated:
        note(f"{result.truncated:,} tokens of the text were not read. The model reads {len(result.tokens):,}.")
    return _print_check(result.check)


@app.command()
def patch(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    corrupted: Annotated[
        str | None, typer.Option(metavar="T", help="Text of the corrupted run, with as many tokens.")
    ] = None,
    text_pair: options.TextPairOption = None,
    corrupted_pair: Annotated[
        str | None, typer.Option(metavar="T", help="Second text of the corrupted run. [default: the clean one]")
    ] = None,
    prompt: options.PromptOption = None,
    chat: options.ChatOption = False,
    corruption: Annotated[
        str, typer.Option(metavar="text|noise|mean", help="Another text, Gaussian noise, or the mean embedding.")
    ] = "text",
    tokens: Annotated[
        str | None, typer.Option(metavar="I,J", help="Positions that noise or the mean corrupts, from 0.")
    ] = None,
    site: Annotated[
        str, typer.Option(metavar="S", help="What is restored: residual, attention, mlp or heads.")
    ] = "residual",
    metric: Annotated[
        str, typer.Option(metavar="M", help="What is measured: logit_difference, probability or kl.")
    ] = "logit_difference",
    target: options.TargetOption = None,
    contrast: Annotated[
        str | None, typer.Option(metavar="L", help="Class that the target is compared with. [default: the runner-up]")
    ] = None,
    noise: Annotated[str, typer.Option(metavar="X", help="Noise in standard deviations of the embeddings.")] = "3",
    preview: Annotated[bool, typer.Option("--preview", help="Only attribution patching: three passes.")] = False,
    top: TopOption = "20",
    seed: options.SeedOption = "0",
    dtype: options.DtypeOption = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every place.")] = False,
) -> None:
    """Restore parts of a clean run in a corrupted one (activation patching), and preview it by gradients."""
    example = _read_example("patch", model, text, text_pair, prompt, chat)
    count = options.read_whole("--top", top, 1)
    query = patching.PatchQuery(
        model, example, None if corrupted is None else options.read_text("--corrupted", corrupted), corruption,
        _read_positions(tokens), site, metric, target, contrast, options.read_number("--noise", noise),
        options.read_whole("--seed", seed),
        None if corrupted_pair is None else options.read_text("--corrupted-pair", corrupted_pair), dtype=dtype,
    )  # fmt: skip
    with _running("patching"):
        before = patching.patch_preview(query)
        result = None if preview else patching.patch_map(query)
    if as_json:
        plain = patching.preview_to_json(before, site) if result is None else patching.map_to_json(result)
        return output.print_json(plain)
    return _print_patches(before, site, result, count)


@app.command("routes")
def show_routes(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    prompt: options.PromptOption = None,
    chat: options.ChatOption = False,
    threshold: Annotated[str, typer.Option(metavar="X", help="Least importance of an edge, from 0 to 1.")] = "0.04",
    top: TopOption = str(MOST_EDGES),
    dtype: options.DtypeOption = "float32",
    as_json: options.JsonOption = False,
) -> None:
    """Show the tokens and heads that the prediction is written from (information flow routes)."""
    example = _read_example("routes", model, text, text_pair, prompt, chat)
    least, count = options.read_number("--threshold", threshold), options.read_whole("--top", top, 1)
    if not 0 <= least <= 1:
        raise not_allowed("--threshold", "a number from 0 to 1", threshold)
    with _running("following routes"):
        result = routes.information_routes(routes.RoutesQuery(model, example, dtype=dtype))
    if as_json:
        return output.print_json(routes.routes_to_json(result, least))
    pruned = routes.prune_edges(result.flow, least, count)
    rows = output.table(["layer", "from", "to", "importance", "flow"], right=["layer", "importance", "flow"])
    for edge in pruned.edges:
        names = [output.visible(f"{at} {result.tokens[at].text}") for at in (edge.source, edge.target)]
        rows.add_row(str(edge.layer), *names, f"{edge.weight:.4f}", f"{edge.flow:.4f}")
    output.console().print(rows)
    more = f" {pruned.left_out:,} more have at least that importance." if pruned.left_out else ""
    print(f"Importance of at least {least:g}; the largest flow to {output.visible(result.predicted)} first.{more}")
    return _print_check(result.check)


@app.command()
def heads(
    model: options.ModelOption = options.DEFAULT_MODEL,
    dataset: Annotated[str, typer.Option(metavar="D", help="Data set of texts.")] = "reviews",
    split: options.SplitOption = None,
    examples: Annotated[str, typer.Option(metavar="N", help="Examples that the seed selects, at most 1,000.")] = "50",
    top: TopOption = "20",
    seed: options.SeedOption = "0",
    dtype: options.DtypeOption = "float32",
    as_json: options.JsonOption = False,
) -> None:
    """Show the heads that move most of the prediction, over a data set. Run it again to resume."""
    count = options.read_whole("--top", top, 1)
    number, draw = options.read_whole("--examples", examples, 1, 1000), options.read_whole("--seed", seed)
    check_model(model, Example.kind)
    with _running("following routes"):
        result = routes.head_importance(model, dataset, number, draw, split, dtype)
    if as_json:
        return output.print_json(routes.importance_to_json(result))
    rows = output.table(["head", "mean share", "standard error"], right=["mean share", "standard error"])
    for at in (-result.mean).ravel().argsort(kind="stable")[:count].tolist():
        layer, head = divmod(at, result.mean.shape[1])
        rows.add_row(f"{layer}.{head}", f"{result.mean[layer, head]:.4f}", f"{result.error[layer, head]:.4f}")
    output.console().print(rows)
    print(f"Share of the prediction that a head moves, over {result.examples:,} examples of {output.visible(dataset)}.")
    for reason, failures in result.failed.items():
        note(f"left out {failures:,}: {reason}")
    return None


@contextlib.contextmanager
def _running(title: str) -> Iterator[None]:
    with (
        output.stdout_reserved(), output.stoppable() as cancel, output.progress_bar(title) as report,
        cancellable(cancel), reporting(report),
    ):  # fmt: skip
        yield
    if status := result_store().status:
        note(status)


def _read_example(
    command: str, model: str, text: str | None, pair: str | None, prompt: str | None, chat: bool
) -> Example:
    """Read the input. A prompt without the chat template is read as a plain text."""
    if text is None and prompt is None:
        raise UsageError(f"layers {command}: needs a text. Add --text '...'.")
    check_model(model, Example.kind)
    example = read_input(InputOptions(f"layers {command}", model, text, pair, prompt=prompt, chat=chat)).example
    assert isinstance(example, Example)
    return example if chat or prompt is None else Example(example.text)


def _read_positions(typed: str | None) -> tuple[int, ...]:
    if typed is None:
        return ()
    return tuple(sorted({options.read_whole("--tokens", part) for part in typed.split(",")}))


def _layer(number: int) -> str:
    return "embedding" if number < 0 else str(number)


def _print_patches(before: Any, site: str, result: Any, count: int) -> None:
    out = output.console()
    for line in (
        f"clean: {before.predicted[0]} ({before.predicted[1]:.4f}); corrupted: {before.corrupted_predicted[0]} "
        f"({before.corrupted_predicted[1]:.4f})",
        f"corruption: {before.corruption_name}",
        f"metric: {before.metric_name}; clean {before.clean:.4f}, corrupted {before.corrupted:.4f}",
    ):
        out.print(output.visible(line), markup=False)
    numbers = ["layer", "restored share", "attribution"]
    rows = output.table(["layer", "head" if site == "heads" else "position", *numbers[1:]], right=numbers)
    name = "attribution" if result is None else "restored_share"
    ranked = sorted(patching.map_rows(before, site, result), key=lambda row: -abs(row[name]))
    for row in ranked[:count]:
        place = str(row["head"]) if site == "heads" else output.visible(f"{row['position']} {row['token']}")
        exact = output.NOTHING if result is None else f"{row['restored_share']:+.4f}"
        rows.add_row(_layer(row["layer"]), place, exact, f"{row['attribution']:+.4f}")
    out.print(rows)
    if result is not None:
        compared = f"{result.shares.size:,} places ({result.evaluations:,} evaluations)"
        print(f"Correlation of exact shares and attribution: {result.correlation:.4f} over {compared}.")
        _print_check(result.check)


def _print_check(check: Check) -> None:
    print(f"Check: {check.value:.1e} ({check.name}; {'good' if check.ok else 'NOT good'} up to {check.limit:g})")
