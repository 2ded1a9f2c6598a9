"""`exegesis explain`: explanations of one text by one or more methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import values
from engine.errors import ExegesisError, UsageError, unknown

if TYPE_CHECKING:
    from engine.request import Example, Request
    from engine.result import Explanation

DEFAULT_MODEL = "reviews-minilm"
ALL = "all"


def explain(
    model: Annotated[str, typer.Option(metavar="M", help="Embedded model, folder or hub id.")] = DEFAULT_MODEL,
    method: Annotated[str, typer.Option(metavar="A,B", help="Methods between commas, or 'all'.")] = "",
    text: Annotated[str | None, typer.Option(metavar="T", help="The text; '-' reads stdin.")] = None,
    text_pair: Annotated[str | None, typer.Option(metavar="T", help="The second text of a pair.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="Take the text from a data set or file.")] = None,
    index: Annotated[str | None, typer.Option(metavar="I", help="Which example of it, from 0.")] = None,
    split: Annotated[str | None, typer.Option(metavar="S", help="Which part of the data set.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="Columns, as text=review.")] = None,
    target: Annotated[str | None, typer.Option(metavar="L", help="Class to explain. [default: the predicted]")] = None,
    param: Annotated[list[str] | None, typer.Option(metavar="[METHOD.]K=V", help="A parameter of a method.")] = None,
    seed: Annotated[str, typer.Option(metavar="N", help="Seed of what is random.")] = "0",
    dtype: Annotated[str, typer.Option(metavar="D", help="Precision: float32, bfloat16, ...")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, one object a method.")] = False,
) -> None:
    """Explain a prediction: one score a token, by one or more methods."""
    from engine.cli import drawing, output
    from engine.cli.guard import note
    from engine.models import catalog
    from engine.store import result_store

    example = _example(text, text_pair, dataset, index, split, column or [])
    number = values.whole("--seed", seed)
    with output.only_ours():
        # Whether there is such a model is known at once, before the libraries that run it are loaded.
        catalog.locate(model)
        methods, every = _methods(method)
        given = _params(values.pairs("--param", param or [], "n_steps=50"), methods)
        asked = [_request(model, name, example, given[name], target, number, dtype) for name in methods]
        found = _all_that_can(asked) if every else _explained(asked)
    if trouble := result_store().status:
        note(trouble)
    if as_json:
        output.print_json([as_plain(explanation) for explanation in found])
    else:
        drawing.draw(example, found)


def as_plain(explanation: Explanation) -> dict[str, Any]:
    """One explanation as plain values: the contract of `--json`. Offsets count characters of their own text."""
    origin, check = explanation.provenance, explanation.check
    return {
        "model": origin.model,
        "revision": origin.revision,
        "method": origin.method,
        "version": origin.version,
        "params": dict(origin.params),
        "prediction": _prediction(explanation),
        "target": origin.target_label,
        "features": _features(explanation),
        "check": None if check is None else {**dataclasses.asdict(check), "ok": check.ok},
        "evaluations": explanation.evaluations,
        "seconds": explanation.seconds,
        "cached": explanation.cached,
        "seed": origin.seed,
        "dtype": origin.dtype,
        "device": origin.device,
        "truncated": explanation.truncated,
        "notes": list(explanation.notes),
    }


def _features(explanation: Explanation) -> list[dict[str, Any]]:
    scored = zip(explanation.tokens, explanation.scores.tolist(), strict=True)
    return [
        {
            "text": token.text,
            "start": token.start,
            "end": token.end,
            "score": score,
            "special": token.special,
            "segment": None if token.special else token.segment,
        }
        for token, score in scored
    ]


def _prediction(explanation: Explanation) -> dict[str, Any]:
    """For a regression head there is no class: label and probabilities are null, the score is not."""
    made = explanation.prediction
    if made.regression:
        return {"label": None, "probabilities": None, "score": made.logits[0]}
    return {
        "label": made.label,
        "probabilities": dict(zip(made.labels, made.probabilities, strict=True)),
        "score": None,
    }


def _example(
    text: str | None, pair: str | None, dataset: str | None, index: str | None, split: str | None, columns: list[str]
) -> Example:
    from engine.request import Example

    if (text is None) == (dataset is None):
        got = "neither" if text is None else "both"
        raise UsageError(f"explain: needs --text, or --dataset with --index, got {got}. Example: --text 'Not bad.'")
    if text is None:
        return _from_dataset(str(dataset), pair, index, split, columns)
    for option, value in (("--index", index), ("--split", split), ("--column", columns or None)):
        if value is not None:
            raise UsageError(f"{option}: belongs to --dataset, got --text. Leave one of them out.")
    return Example(values.text("--text", text), None if pair is None else values.text("--text-pair", pair))


def _from_dataset(dataset: str, pair: str | None, index: str | None, split: str | None, columns: list[str]) -> Example:
    from engine.data.datasets import load

    if pair is not None:
        raise UsageError("--text-pair: belongs to --text, got --dataset. Leave one of them out.")
    if index is None:
        raise UsageError("--index: is missing; --dataset needs it. Example: --index 0 for the first example.")
    number = values.whole("--index", index)
    mapping = values.pairs("--column", columns, "text=review")
    return load(dataset, split=split, columns=mapping or None)[number].example


def _methods(given: str) -> tuple[list[str], bool]:
    """The methods asked for, and whether that was all of them."""
    from engine.registry import all_explainers, explainer

    known = list(all_explainers())
    if not given.strip():
        raise UsageError(f"--method: is missing. Give one or more between commas, or {ALL}. Known: {', '.join(known)}.")
    asked = values.names("--method", given)
    if asked == [ALL]:
        return known, True
    return [explainer(name).id for name in asked], False


def _params(given: dict[str, str], methods: Sequence[str]) -> dict[str, dict[str, str]]:
    """Each method's parameters: `name` goes to every method that has it, `method.name` to that one."""
    from engine.registry import explainer

    own = {name: [f.name for f in dataclasses.fields(explainer(name).params)] for name in methods}
    chosen: dict[str, dict[str, str]] = {name: {} for name in methods}
    # The addressed ones come last, so that they win over the general ones.
    for key, value in sorted(given.items(), key=lambda item: "." in item[0]):
        method, dot, parameter = key.rpartition(".")
        if dot and method not in own:
            raise unknown("--param: method", method, own)
        takers = [method] if dot else [name for name in methods if parameter in own[name]]
        known = own[method] if dot else {p for parameters in own.values() for p in parameters}
        if parameter not in known:
            raise unknown(f"--param: parameter of {method or ', '.join(methods)}", parameter, known)
        for name in takers:
            chosen[name][parameter] = value
    return chosen


def _request(
    model: str, method: str, example: Example, params: dict[str, str], target: str | None, seed: int, dtype: str
) -> Request:
    from engine.request import DTYPES, Request

    if dtype not in DTYPES:
        raise unknown("--dtype", dtype, DTYPES)
    return Request(model, method, example, params, target, seed, dtype)


def _explained(asked: list[Request]) -> list[Explanation]:
    from engine.cli.progress import shown
    from engine.explain import explain_many

    with shown("explaining") as report:
        return explain_many(asked, report)


def _all_that_can(asked: list[Request]) -> list[Explanation]:
    """Every method that serves this input; those that do not are named, with their reason."""
    from engine.cli.guard import note
    from engine.cli.progress import shown
    from engine.explain import explain

    found, refused = [], []
    with shown("explaining") as report:
        for done, request in enumerate(asked):
            report(done, len(asked), request.method)
            try:
                found.append(explain(request))
            except ExegesisError as error:
                refused.append((request.method, error))
    if not found:
        raise refused[0][1]
    for method, reason in refused:
        note(f"{method} is left out: {reason}")
    return found
