"""The options that commands on one prediction share: which model, which input, which class, which heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import not_allowed, unknown

if TYPE_CHECKING:
    from engine.heads.scales import HeadScales

DEFAULT_MODEL = "reviews-minilm"

Model = Annotated[str, typer.Option(metavar="M", help="Embedded model, folder or hub id.")]
Text = Annotated[str | None, typer.Option(metavar="T", help="The text; '-' reads stdin.")]
TextPair = Annotated[str | None, typer.Option(metavar="T", help="The second text of a pair.")]
Image = Annotated[str | None, typer.Option(metavar="F", help="A picture: PNG, JPEG, WebP or GIF.")]
Dataset = Annotated[str | None, typer.Option(metavar="D", help="Take the text or picture from a data set.")]
Index = Annotated[str | None, typer.Option(metavar="I", help="Which example of it, from 0.")]
Split = Annotated[str | None, typer.Option(metavar="S", help="Which part of the data set.")]
Column = Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="Columns, as text=review.")]
Target = Annotated[str | None, typer.Option(metavar="L", help="Class to explain. [default: the predicted]")]
Head = Annotated[list[str] | None, typer.Option(metavar="LAYER.HEAD=S", help="Scale a head; 0 is off.")]
Param = Annotated[list[str] | None, typer.Option(metavar="[METHOD.]K=V", help="A parameter of a method.")]
Seed = Annotated[str, typer.Option(metavar="N", help="Seed of what is random.")]
Dtype = Annotated[str, typer.Option(metavar="D", help="Precision: float32, bfloat16, ...")]


def check_dtype(dtype: str) -> None:
    """Refuses a precision that no model runs in."""
    from engine.request import DTYPES

    if dtype not in DTYPES:
        raise unknown("--dtype", dtype, DTYPES)


def check_model(model: str, kind: str) -> None:
    """Whether there is such a model, and it reads inputs of that kind, is known before what runs it is loaded."""
    from engine.models import catalog
    from engine.vision.view import read_view

    source = catalog.locate(model)
    if kind == "image":
        read_view(model)
    else:
        catalog.check_text_model(source.id, catalog.config(source))


def head_scales(given: list[str] | None) -> HeadScales:
    """Scales by layer and head, counted from 0 as in the parameters of methods."""
    from engine.cli import values
    from engine.heads.scales import HeadScales

    scales = {}
    for name, value in values.pairs("--head", given or [], "3.7=0").items():
        layer, _, head = name.partition(".")
        try:
            scales[int(layer), int(head)] = float(value)
        except ValueError:
            allowed = "a layer and a head from 0 and a scale from 0 (off) to 2"
            raise not_allowed("--head", allowed, f"{name}={value}", "Example: --head 3.7=0.") from None
    return HeadScales.of(scales)
