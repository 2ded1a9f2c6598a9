"""`exegesis compare`: models and methods side by side on one example, or the examples on which they disagree most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.cli.inputs import InputOptions, read_input
from engine.cli.options import Dataset, Image, Index, Seed, Split, Target, Text, TextPair
from engine.errors import ExegesisError, UsageError

if TYPE_CHECKING:
    from engine.comparison.agreeing import How
    from engine.comparison.pairs import Pair
    from engine.request import Request
    from engine.result import Explanation


def compare(
    column: Annotated[
        list[str] | None, typer.Option(metavar="METHOD@MODEL", help="A pair; METHOD,name=value@MODEL sets parameters.")
    ] = None,
    text: Text = None,
    text_pair: TextPair = None,
    image: Image = None,
    dataset: Dataset = None,
    index: Index = None,
    examples: Annotated[
        str | None, typer.Option(metavar="N", help="Search so many examples of --dataset for disagreement.")
    ] = None,
    split: Split = None,
    target: Target = None,
    unit: Annotated[str, typer.Option(metavar="U", help="What is compared in texts: word or token.")] = "word",
    measure: Annotated[str, typer.Option(metavar="M", help="spearman or top_k.")] = "spearman",
    order: Annotated[str, typer.Option(metavar="O", help="Rank scores with their sign, or by size.")] = "sign",
    percent: Annotated[str, typer.Option(metavar="P", help="Of the parts that count as the top.")] = "15",
    seed: Seed = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare models and methods: where their maps agree, and where they do not."""
    from engine.comparison.agreeing import How
    from engine.comparison.pairs import check_pairs
    from engine.errors import unknown
    from engine.word_units import UNITS

    if unit not in UNITS:
        raise unknown("--unit", unit, UNITS)
    number = options.read_whole("--seed", seed)
    how = How(measure, order, options.read_whole("--percent", percent, 1))
    if examples is not None:
        number_of = options.read_whole("--examples", examples, 1)
        _search(column or [], dataset, number_of, split, target, unit, how, number, as_json)
        return
    pairs = _pairs(column or [])
    check_pairs(pairs)
    asked = InputOptions("compare", pairs[0].model, text, text_pair, image, dataset, index, split, None)
    _one(pairs, asked, target, unit, how, number, as_json)


def _pairs(codes: list[str]) -> tuple[Pair, ...]:
    """Pairs for pictures where the first model reads those."""
    from engine.comparison.pairs import SHAPE, read_pair
    from engine.input_kinds import kind_of_model

    if not codes:
        raise UsageError(f"--column: is missing. Give at least two of {SHAPE}.")
    model = codes[0].partition("@")[2].strip()
    kind = kind_of_model(model) if model else "text"
    return tuple(read_pair(code, kind) for code in codes)


def _one(
    pairs: tuple[Pair, ...], asked: InputOptions, target: str | None, unit: str, how: How, seed: int, as_json: bool
) -> None:
    from engine.cli import drawing_comparison, output
    from engine.comparison.plain import as_plain
    from engine.comparison.search import sheet_of

    with output.stdout_reserved():
        source = read_input(asked)
        requests = {pair.code: pair.request(source.example, target, seed) for pair in pairs}
        made, failed = _made(requests)
    if len(made) < 2:
        raise ExegesisError(f"compare: fewer than two columns have a map. {' '.join(failed.values())}")
    sheet = sheet_of(list(made.values()), source.example, unit)
    plain = as_plain(list(made), list(made.values()), sheet, how, failed)
    output.print_json(plain) if as_json else drawing_comparison.draw(source.lines, plain, how.measure)


def _made(requests: dict[str, Request]) -> tuple[dict[str, Explanation], dict[str, str]]:
    """The maps that there are, and why others are not."""
    from engine.cli.output import progress_bar
    from engine.errors import Cancelled
    from engine.explain import explain

    made: dict[str, Explanation] = {}
    failed: dict[str, str] = {}
    with progress_bar("explaining") as report:
        for done, (code, request) in enumerate(requests.items()):
            report(done, len(requests), code)
            try:
                made[code] = explain(request)
            except Cancelled:
                raise
            except ExegesisError as error:
                failed[code] = str(error)
    return made, failed


def _search(
    codes: list[str], dataset: str | None, examples: int, split: str | None, target: str | None, unit: str, how: How,
    seed: int, as_json: bool,
) -> None:  # fmt: skip
    from engine.cli import drawing_comparison, output
    from engine.cli.output import progress_bar
    from engine.comparison.plain import search_as_plain
    from engine.comparison.search import Left, Search, disputed
    from engine.input_kinds import kind_of_model

    if dataset is None:
        raise UsageError("--examples: belongs to --dataset, which is missing. Example: --dataset reviews.")
    pairs = _pairs(codes)
    kind = kind_of_model(pairs[0].model)
    search = Search(dataset, pairs, kind, split, examples, seed, target)
    left: list[Left] = []
    with output.stdout_reserved(), progress_bar("comparing") as report:
        found = disputed(search, how, unit, report=report, tell=left.append)
    if left and not found:
        raise ExegesisError(f"compare: no example has two maps. Example {left[0].index}: {left[0].why}")
    plain: dict[str, Any] = search_as_plain(search, found, left)
    output.print_json(plain) if as_json else drawing_comparison.draw_search(plain)
