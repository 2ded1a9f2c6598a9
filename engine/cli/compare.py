"""`exegesis compare`: compare models and methods on one example, or find the examples on which they disagree most."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from engine.cli.inputs import InputOptions, read_input
from engine.cli.options import (
    ChatOption,
    ContrastOption,
    DatasetOption,
    ImageOption,
    IndexOption,
    PromptOption,
    SeedOption,
    SplitOption,
    TargetOption,
    TextOption,
    TextPairOption,
    read_text,
    read_whole,
)
from engine.cli.output import console, print_json, progress_bar, stdout_reserved, table, visible
from engine.comparison.agreement import AgreementOptions
from engine.comparison.alignment import align_maps
from engine.comparison.experiment import SkippedMap, comparison_to_json, find_disagreements, search_to_json
from engine.comparison.plan import FEWEST, SHAPE, ComparisonPlan, ModelMethodPair, check_pairs, read_pair
from engine.comparison.texts import other_request, two_text_maps, two_texts_to_json
from engine.errors import Cancelled, ExegesisError, UsageError, unknown
from engine.explain import explain
from engine.input_kinds import kind_of_model
from engine.progress import Report
from engine.request import Example, Input, Request
from engine.result import Explanation
from engine.word_units import UNITS

LONGEST = 60
"""Maximum characters of a text in a cell."""


def compare(
    column: Annotated[
        list[str] | None, typer.Option(metavar="METHOD@MODEL", help="A pair; METHOD,name=value@MODEL sets parameters.")
    ] = None,
    text: TextOption = None,
    text_pair: TextPairOption = None,
    prompt: PromptOption = None,
    other: Annotated[
        str | None,
        typer.Option(metavar="T", help="Another text or prompt: each column's maps of both, aligned by shared units."),
    ] = None,
    image: ImageOption = None,
    dataset: DatasetOption = None,
    index: IndexOption = None,
    examples: Annotated[
        str | None, typer.Option(metavar="N", help="Search N examples of --dataset for disagreement.")
    ] = None,
    split: SplitOption = None,
    target: TargetOption = None,
    contrast: ContrastOption = None,
    chat: ChatOption = False,
    unit: Annotated[
        str, typer.Option(metavar="U", help="Unit to compare in texts: word, token, sentence or turn.")
    ] = "word",
    measure: Annotated[str, typer.Option(metavar="M", help="Measure of agreement: spearman or top_k.")] = "spearman",
    order: Annotated[
        str, typer.Option(metavar="O", help="Rank scores with their sign, or by size: sign or size.")
    ] = "sign",
    percent: Annotated[str, typer.Option(metavar="P", help="Percentage of units that top_k compares.")] = "15",
    seed: SeedOption = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare models and methods: where their maps agree and where they differ."""
    if unit not in UNITS:
        raise unknown("--unit", unit, UNITS)
    number = read_whole("--seed", seed)
    options = AgreementOptions(measure, order, read_whole("--percent", percent, 1))
    if examples is not None:
        if other is not None:
            raise UsageError("--other: compares two texts. Remove it, or --examples.")
        size = read_whole("--examples", examples, 1)
        _search(column or [], dataset, size, split, target, unit, options, number, as_json)
        return
    pairs = _pairs(column or [])
    check_pairs(pairs, 1 if other is not None else FEWEST)
    input_options = InputOptions(
        "compare", pairs[0].model, text, text_pair, image, dataset, index, split, None, prompt, target, contrast, chat
    )
    _compare_one(pairs, input_options, other, unit, options, number, as_json)


def _pairs(codes: list[str]) -> tuple[ModelMethodPair, ...]:
    """Parse pairs of method and model, which are for pictures if the first model reads pictures."""
    if not codes:
        raise UsageError(f"--column: is missing. Give at least two of {SHAPE}.")
    model = codes[0].partition("@")[2].strip()
    kind = kind_of_model(model) if model else "text"
    return tuple(read_pair(code, kind) for code in codes)


def _compare_one(
    pairs: tuple[ModelMethodPair, ...], input_options: InputOptions, other: str | None, unit: str,
    options: AgreementOptions, seed: int, as_json: bool,
) -> None:  # fmt: skip
    with stdout_reserved(), progress_bar("explaining") as report:
        source = read_input(input_options)
        requests = {pair.code: pair.request(source.example, source.target, seed) for pair in pairs}
        second = None if other is None else _read_other(other, source.example)
        explanations, failed = explain_columns(requests, report)
        others = {} if second is None else _explain_other(second, requests, explanations, failed, report)
    if other is not None and not others:
        raise ExegesisError(f"compare: no column could be explained in both texts. {' '.join(failed.values())}")
    if other is None and len(explanations) < 2:
        raise ExegesisError(f"compare: fewer than two columns could be explained. {' '.join(failed.values())}")
    maps = list(explanations.values())
    plain = comparison_to_json(
        list(explanations), maps, align_maps(maps, source.example, unit), options, failed
    )  # fmt: skip
    if second is not None and isinstance(source.example, Example):
        texts = source.example, second
        plain["other"] = [
            two_texts_to_json(code, made, two_text_maps(explanations[code], made, texts, unit))
            for code, made in others.items()
        ]
    print_json(plain) if as_json else _draw(comparison_sections(source.lines, plain, options.measure))


def _read_other(typed: str, first: Input) -> Example:
    """Read the other text. Everything else is as in the first input."""
    if not isinstance(first, Example):
        raise UsageError("--other: compares two texts or prompts. Remove it for an image.")
    other = dataclasses.replace(first, text=read_text("--other", typed))
    if not other.text.strip():
        raise UsageError("--other: must be a text, got an empty one.")
    if other == first:
        raise UsageError("--other: must differ from the first text.")
    return other


def _explain_other(
    other: Example, requests: Mapping[str, Request], explanations: Mapping[str, Explanation], failed: dict[str, str],
    report: Report,
) -> dict[str, Explanation]:  # fmt: skip
    """Explain the other text. Returns maps by column; errors are added to `failed`."""
    second = {code: other_request(requests[code], other, one.provenance) for code, one in explanations.items()}
    others, errors = explain_columns(second, report)
    failed.update({code: f"the other text: {error}" for code, error in errors.items()})
    return others


def explain_columns(requests: Mapping[str, Request], report: Report) -> tuple[dict[str, Explanation], dict[str, str]]:
    """Compute explanations. Returns explanations by column, and error messages of failed columns."""
    explanations: dict[str, Explanation] = {}
    failed: dict[str, str] = {}
    for done, (code, request) in enumerate(requests.items()):
        report(done, len(requests), code)
        try:
            explanations[code] = explain(request)
        except Cancelled:
            raise
        except ExegesisError as error:
            failed[code] = str(error)
    return explanations, failed


def _search(
    codes: list[str], dataset: str | None, examples: int, split: str | None, target: str | None, unit: str,
    options: AgreementOptions, seed: int, as_json: bool,
) -> None:  # fmt: skip
    if dataset is None:
        raise UsageError("--examples: requires --dataset. Example: --dataset reviews.")
    pairs = _pairs(codes)
    kind = kind_of_model(pairs[0].model)
    plan = ComparisonPlan(dataset, pairs, kind, split, examples, seed, target)
    skipped: list[SkippedMap] = []
    with stdout_reserved(), progress_bar("comparing") as report:
        compared = find_disagreements(plan, options, unit, report=report, on_skip=skipped.append)
    if skipped and not compared:
        raise ExegesisError(f"compare: no example has two maps. Example {skipped[0].index}: {skipped[0].why}")
    plain = search_to_json(plan, compared, skipped)
    print_json(plain) if as_json else _draw(search_sections(plain))


def comparison_sections(source: Sequence[str], plain: Mapping[str, Any], measure: str) -> Iterator[RenderableType]:
    """Yield the input, a letter per column, the scores of the common parts, and the agreement of every pair."""
    letters = ascii_uppercase[: len(plain["columns"])]
    yield from (Text(visible(line)) for line in source)
    for letter, column in zip(letters, plain["columns"], strict=True):
        predicted = f"predicts {_predicted(column)}, explains {column['target']}"
        yield Text(visible(f"{letter}  {column['column']}: {predicted}"))
    parts = table(["part", *letters], right=letters)
    for part in plain["parts"]:
        parts.add_row(Text(visible(part["text"])[:LONGEST]), *map(_number, part["scores"]))
    agreement = plain["agreement"]
    matrix = table([measure, *letters], right=letters)
    for letter, row in zip(letters, agreement[measure], strict=True):
        matrix.add_row(letter, *map(_number, row))
    yield ""
    yield parts
    if len(letters) > 1:
        yield ""
        yield matrix
        yield f"disagreement {_number(plain['disagreement'][measure])}, n {agreement['n']}, top {agreement['k']}"
    for one in plain.get("other", []):
        yield from _other_sections(one)
    for one in plain["failed"]:
        yield Text(visible(f"note: {one['column']} is left out: {one['error']}"))


def _other_sections(one: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield a column's scores of both texts on aligned units. `=` marks units that both texts share."""
    yield ""
    rho = "" if one["spearman"] is None else f", spearman {_number(one['spearman'])}"
    shared = f"{one['shared']} shared units{rho}"
    yield Text(
        visible(f"{one['column']} in the other text: predicts {_predicted(one)}, explains {one['target']}; {shared}")
    )
    rows = table(["first", "score", "", "other", "score"], right=["score"])
    for unit in one["units"]:
        (text, other), (score, after) = unit["texts"], unit["scores"]
        names = [Text(visible(name or "")[:LONGEST]) for name in (text, other)]
        numbers = ["" if value is None else _number(value) for value in (score, after)]
        rows.add_row(names[0], numbers[0], "=" if unit["shared"] else "", names[1], numbers[1])
    yield rows


def search_sections(plain: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield a table of the examples, most disagreement first, and notes about omitted ones."""
    rows = table(["index", "disagreement", "predicted", "example"], right=["index", "disagreement"])
    for one in plain["found"]:
        predicted = ", ".join(dict.fromkeys(label for label in one["predicted"] if label is not None))
        name = visible(one["example"])[:LONGEST]
        rows.add_row(f"{one['index']}", _number(one["disagreement"]), Text(visible(predicted)), Text(name))
    yield rows
    for one in plain["left_out"]:
        where = f"example {one['index']}" + (f", {one['column']}" if one["column"] else "")
        yield Text(visible(f"note: {where} is left out: {one['why']}"))


def _draw(sections: Iterable[RenderableType]) -> None:
    out = console()
    for section in sections:
        out.print(section)


def _predicted(column: Mapping[str, Any]) -> str:
    prediction = column["prediction"]
    return f"{prediction['score']:.4f}" if prediction["label"] is None else str(prediction["label"])


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
