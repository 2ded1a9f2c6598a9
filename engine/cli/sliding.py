"""`exegesis slide`: predict an image with a square of patches removed, at every position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import options, output
from engine.cli.inputs import InputOptions, check_model, read_input
from engine.cli.root import note
from engine.errors import UsageError
from engine.lazy import LazyModule
from engine.request import Picture
from engine.store import result_store

if TYPE_CHECKING:
    from engine import sliding
else:  # it loads torch, which the help does not need
    sliding = LazyModule("engine.sliding")

DEFAULT_MODEL = "scenes-vit"


def slide(
    model: options.ModelOption = DEFAULT_MODEL,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    target: options.TargetOption = None,
    window: Annotated[str, typer.Option(metavar="W", help="Side of the window in patches.")] = "2",
    stride: Annotated[str, typer.Option(metavar="N", help="Patches between two positions, at most W.")] = "1",
    removal: Annotated[
        str, typer.Option(metavar="O", help="How patches are removed: mean, zero, blur, drop.")
    ] = "mean",
    top: Annotated[str, typer.Option(metavar="N", help="Show only the N positions with the largest fall.")] = "10",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with the probabilities at all positions.")
    ] = False,
) -> None:
    """Slide a window over an image: the prediction with the window removed, at every position."""
    check_model(model, "image")
    size, step = options.read_whole("--window", window, 1), options.read_whole("--stride", stride, 1)
    count = options.read_whole("--top", top, 1)
    source = read_input(InputOptions("slide", model, None, None, image, dataset, index, split, None))
    if not isinstance(source.example, Picture):
        raise UsageError("slide: needs an image. Add --image FILE, or --dataset scenes --index 0.")
    with output.stdout_reserved():
        result = sliding.slide_window(model, source.example, size, step, removal)
    if status := result_store().status:
        note(status)
    whole = result.prediction()
    chosen = sliding.class_index(result.labels, target, whole.index)
    if as_json:
        output.print_json(
            {**result.as_json(), "target": result.labels[chosen], "heat_map": result.heat_map(chosen).tolist()}
        )
        return
    falls = result.falls(chosen)
    rows = output.table(["row", "column", "fall", "prediction"], right=["row", "column", "fall"])
    for at in falls.argsort(kind="stable")[::-1][:count].tolist():
        row, column = result.positions[at]
        rows.add_row(
            f"{row + 1}", f"{column + 1}", f"{falls[at]:.4f}", output.visible(result.prediction(at).label)
        )  # fmt: skip
    out = output.console()
    share = whole.probabilities[chosen]
    out.print(f"{output.visible(source.lines[0])}: {output.visible(result.labels[chosen])} {share:.1%}", markup=False)
    out.print(rows)
    print(
        f"Fall of the probability without a window of {size} x {size} patches, whose first patch is in that row and "
        f"column, from 1. {len(falls)} positions."
    )
