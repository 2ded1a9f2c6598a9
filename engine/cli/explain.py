"""`exegesis explain`: explanations of one text or picture by one or more methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import values
from engine.cli.inputs import Asked, given
from engine.cli.methods import methods_of, params_of
from engine.cli.options import (
    DEFAULT_MODEL,
    Column,
    Dataset,
    Dtype,
    Head,
    Image,
    Index,
    Model,
    Param,
    Seed,
    Split,
    Target,
    Text,
    TextPair,
    check_dtype,
    check_model,
    head_scales,
)
from engine.errors import ExegesisError

if TYPE_CHECKING:
    from engine.request import Request
    from engine.result import Explanation


def explain(
    model: Model = DEFAULT_MODEL,
    method: Annotated[str, typer.Option(metavar="A,B", help="Methods between commas, or 'all'.")] = "",
    text: Text = None,
    text_pair: TextPair = None,
    image: Image = None,
    dataset: Dataset = None,
    index: Index = None,
    split: Split = None,
    column: Column = None,
    target: Target = None,
    param: Param = None,
    head: Head = None,
    seed: Seed = "0",
    dtype: Dtype = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, one object a method.")] = False,
) -> None:
    """Explain a prediction: one score a token or a patch, by one or more methods."""
    from engine.cli import drawing, output
    from engine.cli.guard import note
    from engine.request import Request
    from engine.serialization import explanation_to_json
    from engine.store import result_store

    check_dtype(dtype)
    number = values.whole("--seed", seed)
    with output.only_ours():
        source = given(Asked("explain", model, text, text_pair, image, dataset, index, split, column))
        check_model(model, source.example.kind)
        methods, every = methods_of("--method", method, source.example.kind)
        params = params_of(param, methods)
        heads = head_scales(head)
        asked = [Request(model, m.id, source.example, params[m.id], target, number, dtype, heads) for m in methods]
        found = _all_that_can(asked) if every else _explained(asked)
    if trouble := result_store().status:
        note(trouble)
    if as_json:
        output.print_json([explanation_to_json(explanation) for explanation in found])
    else:
        drawing.draw(source.told, found)


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
