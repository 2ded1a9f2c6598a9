"""`exegesis explain`: explanations of one text or picture by one or more methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import values
from engine.cli.inputs import Asked, given
from engine.errors import ExegesisError, UsageError, not_allowed, unknown

if TYPE_CHECKING:
    from engine.heads.scales import HeadScales
    from engine.registry import Explainer
    from engine.request import Request
    from engine.result import Explanation

DEFAULT_MODEL = "reviews-minilm"
ALL = "all"


def explain(
    model: Annotated[str, typer.Option(metavar="M", help="Embedded model, folder or hub id.")] = DEFAULT_MODEL,
    method: Annotated[str, typer.Option(metavar="A,B", help="Methods between commas, or 'all'.")] = "",
    text: Annotated[str | None, typer.Option(metavar="T", help="The text; '-' reads stdin.")] = None,
    text_pair: Annotated[str | None, typer.Option(metavar="T", help="The second text of a pair.")] = None,
    image: Annotated[str | None, typer.Option(metavar="F", help="A picture: PNG, JPEG, WebP or GIF.")] = None,
    dataset: Annotated[str | None, typer.Option(metavar="D", help="Take the text or picture from a data set.")] = None,
    index: Annotated[str | None, typer.Option(metavar="I", help="Which example of it, from 0.")] = None,
    split: Annotated[str | None, typer.Option(metavar="S", help="Which part of the data set.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="Columns, as text=review.")] = None,
    target: Annotated[str | None, typer.Option(metavar="L", help="Class to explain. [default: the predicted]")] = None,
    param: Annotated[list[str] | None, typer.Option(metavar="[METHOD.]K=V", help="A parameter of a method.")] = None,
    head: Annotated[list[str] | None, typer.Option(metavar="LAYER.HEAD=S", help="Scale a head; 0 is off.")] = None,
    seed: Annotated[str, typer.Option(metavar="N", help="Seed of what is random.")] = "0",
    dtype: Annotated[str, typer.Option(metavar="D", help="Precision: float32, bfloat16, ...")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, one object a method.")] = False,
) -> None:
    """Explain a prediction: one score a token or a patch, by one or more methods."""
    from engine.cli import drawing, output
    from engine.cli.guard import note
    from engine.cli.plain import as_plain
    from engine.request import DTYPES, Request
    from engine.store import result_store

    if dtype not in DTYPES:
        raise unknown("--dtype", dtype, DTYPES)
    number = values.whole("--seed", seed)
    with output.only_ours():
        source = given(Asked(model, text, text_pair, image, dataset, index, split, column))
        _check_model(model, source.example.kind)
        methods, every = _methods(method, source.example.kind)
        params = _params(values.pairs("--param", param or [], "n_steps=50"), methods)
        heads = _heads(values.pairs("--head", head or [], "3.7=0"))
        asked = [Request(model, m.id, source.example, params[m.id], target, number, dtype, heads) for m in methods]
        found = _all_that_can(asked) if every else _explained(asked)
    if trouble := result_store().status:
        note(trouble)
    if as_json:
        output.print_json([as_plain(explanation) for explanation in found])
    else:
        drawing.draw(source.told, found)


def _check_model(model: str, kind: str) -> None:
    """Whether there is such a model, and it reads inputs of that kind, is known before what runs it is loaded."""
    from engine.models import catalog
    from engine.vision.view import view_of

    source = catalog.locate(model)
    if kind == "image":
        view_of(model)
    else:
        catalog.check_text_model(source.id, catalog.config(source))


def _methods(given: str, kind: str) -> tuple[list[Explainer], bool]:
    """The methods asked for, and whether that was all of them."""
    from engine.registry import all_explainers, explainer

    known = all_explainers(kind)
    if not given.strip():
        raise UsageError(f"--method: is missing. Give one or more between commas, or {ALL}. Known: {', '.join(known)}.")
    asked = values.names("--method", given)
    if asked == [ALL]:
        return list(known.values()), True
    return [explainer(name, kind) for name in asked], False


def _params(given: dict[str, str], methods: Sequence[Explainer]) -> dict[str, dict[str, str]]:
    """Each method's parameters: `name` goes to every method that has it, `method.name` to that one."""
    own = {method.id: [f.name for f in dataclasses.fields(method.params)] for method in methods}
    chosen: dict[str, dict[str, str]] = {name: {} for name in own}
    # The addressed ones come last, so that they win over the general ones.
    for key, value in sorted(given.items(), key=lambda item: "." in item[0]):
        method, dot, parameter = key.rpartition(".")
        if dot and method not in own:
            raise unknown("--param: method", method, own)
        takers = [method] if dot else [name for name in own if parameter in own[name]]
        known = own[method] if dot else {p for parameters in own.values() for p in parameters}
        if parameter not in known:
            raise unknown(f"--param: parameter of {method or ', '.join(own)}", parameter, known)
        for name in takers:
            chosen[name][parameter] = value
    return chosen


def _heads(given: dict[str, str]) -> HeadScales:
    """Scales by layer and head, counted from 0 as in the parameters of methods."""
    from engine.heads.scales import HeadScales

    scales = {}
    for name, value in given.items():
        layer, _, head = name.partition(".")
        try:
            scales[int(layer), int(head)] = float(value)
        except ValueError:
            allowed = "a layer and a head from 0 and a scale from 0 (off) to 2"
            raise not_allowed("--head", allowed, f"{name}={value}", "Example: --head 3.7=0.") from None
    return HeadScales.of(scales)


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
