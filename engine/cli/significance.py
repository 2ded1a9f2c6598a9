"""`exegesis significance`: test which words or patches matter more to a model than replacements would.

`--simulate` measures the false discovery rate of the test on texts and pictures with a known ground truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options, output
from engine.cli.inputs import InputOptions, read_input
from engine.cli.root import note
from engine.errors import UsageError
from engine.lazy import LazyModule
from engine.progress import cancellable, reporting
from engine.request import Example, Picture
from engine.significance.false_discovery import check_choices
from engine.store import result_store

if TYPE_CHECKING:
    from engine.significance import pictures as patches
    from engine.significance import simulation
    from engine.significance import texts as tests
    from engine.significance.pictures import PictureSignificance
else:  # they load numpy and torch, which the help does not need
    tests, simulation = LazyModule("engine.significance.texts"), LazyModule("engine.significance.simulation")
    patches = LazyModule("engine.significance.pictures")

MOST_SHOWN = 10
"""Minimum number of printed patches; all significant patches are printed."""
SIMULATED = ("setting", "control", "rate", "texts", "false discovery rate", "standard error", "power")


def significance(
    model: options.ModelOption = options.DEFAULT_MODEL,
    text: options.TextOption = None,
    text_pair: options.TextPairOption = None,
    image: options.ImageOption = None,
    dataset: options.DatasetOption = None,
    index: options.IndexOption = None,
    split: options.SplitOption = None,
    prompt: options.PromptOption = None,
    target: options.TargetOption = None,
    contrast: options.ContrastOption = None,
    chat: options.ChatOption = False,
    rate: Annotated[str, typer.Option(metavar="R", help="False discovery rate, between 0 and 1.")] = "0.1",
    alternative: Annotated[
        str, typer.Option(metavar="greater|two-sided", help="Test for the class, or for and against it.")
    ] = "greater",
    control: Annotated[
        str, typer.Option(metavar="bh|by", help="Benjamini-Hochberg, or Benjamini-Yekutieli for any dependence.")
    ] = "bh",
    draws: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Replacements of each word or patch. [default: enough for a rate of 0.05; of patches 255]"
        ),
    ] = None,
    masked_model: Annotated[
        str,
        typer.Option(metavar="M", help="Masked language model that draws the replacements: base, folder or hub ID."),
    ] = "bases/bert-generated",
    words_from: Annotated[
        str | None, typer.Option(metavar="D", help="Draw the replacements from the words of this data set instead.")
    ] = None,
    patches_from: Annotated[
        str | None,
        typer.Option(metavar="D", help="Data set whose patches are the replacements. [default: that of the image]"),
    ] = None,
    seed: options.SeedOption = "0",
    other_classes: Annotated[
        bool,
        typer.Option(
            "--other-classes",
            help="Replace patches by those of pictures predicted as another class: finds more, exceeds the rate.",
        ),
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Measure the false discovery rate where it is known what matters.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Test which words or patches matter more than what could stand in their place, at a false discovery rate."""
    number = options.read_whole("--seed", seed)
    if simulate:
        if text is not None or prompt is not None:
            raise UsageError(
                f"--simulate: makes its own texts, got {'--prompt' if text is None else '--text'} too. "
                "Remove one of them."
            )
        _simulate(number, as_json)
        return
    if text is None and image is None and dataset is None and prompt is None:
        raise UsageError("significance: needs an input. Add --text '...', --prompt '...', --image FILE or --simulate.")
    level = options.read_number("--rate", rate)
    check_choices(level, alternative, control)
    given = InputOptions(
        "significance", model, text, text_pair, image, dataset, index, split, None, prompt, target, contrast, chat
    )
    source = read_input(given)
    if isinstance(source.example, Picture):
        data = patches_from or dataset
        if data is None:
            raise UsageError("--patches-from: is needed beside --image. Name a data set of pictures, such as scenes.")
        count = patches.USUAL_DRAWS if draws is None else options.read_whole("--draws", draws, 1, patches.MOST_DRAWS)
        pictures = patches.PictureSignificanceQuery(
            model, source.example, data, split, source.target, count, number, other_classes
        )
        with (
            output.stdout_reserved(), output.stoppable() as cancel, output.progress_bar("predicting") as report,
            cancellable(cancel), reporting(report),
        ):  # fmt: skip
            tested = patches.picture_significance(pictures)
        _report_patches(tested, count, level, alternative, control, as_json)
        return
    assert isinstance(source.example, Example)
    with output.stdout_reserved(), output.stoppable() as cancel, output.progress_bar("predicting") as report:
        query = tests.SignificanceQuery(
            model, source.example, source.target,
            None if draws is None else options.read_whole("--draws", draws, 1, tests.MOST_DRAWS),
            masked_model, words_from, number,
        )  # fmt: skip
        with cancellable(cancel), reporting(report):
            found = tests.text_significance(query)
    if status := result_store().status:
        note(status)
    plain = found.as_json(level, alternative, control)  # type: ignore[arg-type]
    if as_json:
        output.print_json(plain)
    else:
        _print(plain)
        if found.unread:
            note(found.unread_note)
        if shortage := found.shortage(level, control):  # type: ignore[arg-type]
            note(f"{shortage} Raise --draws or --rate.")


def _print(plain: dict[str, Any]) -> None:
    number = ["change", "p", "adjusted p"]
    rows = output.table(["word", *number, "significant", "replaced by"], right=number)
    for word in plain["words"]:
        rows.add_row(
            output.visible(word["text"]), f"{word['change']:+.4f}", f"{word['p_value']:.4f}",
            f"{word['adjusted_p_value']:.4f}", "yes" if word["significant"] else "no",
            output.visible(", ".join(word["replacements"]) or output.NOTHING),
        )  # fmt: skip
    out = output.console()
    out.print(rows)
    significant = sum(word["significant"] for word in plain["words"])
    print(
        f"{significant} of {len(plain['words'])} words are significant at a false discovery rate of {plain['rate']:g} "
        f"({plain['draws']:,} draws each from {output.visible(plain['replacements'])}, {plain['alternative']}, "
        f"{plain['control']}; {output.visible(plain['target'])}: {plain['value']:.4f})."
    )


def _report_patches(
    found: PictureSignificance, draws: int, level: float, alternative: str, control: str, as_json: bool
) -> None:  # fmt: skip
    if status := result_store().status:
        note(status)
    plain = found.as_json(level, alternative, control)  # type: ignore[arg-type]
    if as_json:
        output.print_json(plain)
        return
    number = ["row", "column", "change", "p", "adjusted p"]
    rows = output.table([*number, "significant"], right=number)
    significant = [one for one in plain["patches"] if one["significant"]]
    ordered = sorted(plain["patches"], key=lambda one: (one["p_value"], -one["change"]))
    for one in ordered[: max(MOST_SHOWN, len(significant))]:
        rows.add_row(
            f"{one['row']}", f"{one['column']}", f"{one['change']:+.4f}", f"{one['p_value']:.4f}",
            f"{one['adjusted_p_value']:.4f}", "yes" if one["significant"] else "no",
        )  # fmt: skip
    output.console().print(rows)
    print(
        f"{len(significant)} of {len(plain['patches'])} patches are significant at a false discovery rate of "
        f"{plain['rate']:g} ({plain['draws']:,} other pictures of {output.visible(plain['replacements'])}, "
        f"{plain['alternative']}, {plain['control']}; {output.visible(plain['target'])}: {plain['value']:.4f}). "
        "Rows and columns count from 1."
    )
    if shortage := found.shortage(level, control):  # type: ignore[arg-type]
        note(f"{shortage} {found.remedy(draws)}")


def _simulate(seed: int, as_json: bool) -> None:
    with output.stoppable() as cancel, output.progress_bar("simulating") as report, cancellable(cancel):
        rates = simulation.simulate(seed=seed, report=report)
        rates += simulation.simulate_pictures(seed=seed, report=report)
    if as_json:
        output.print_json([vars(one) for one in rates])
        return
    rows = output.table(SIMULATED, right=SIMULATED[2:])
    for one in rates:
        rows.add_row(
            one.setting, one.control, f"{one.rate:g}", f"{one.texts:,}", f"{one.false_discovery_rate:.4f}",
            f"{one.standard_error:.4f}", output.NOTHING if one.power is None else f"{one.power:.3f}",
        )  # fmt: skip
    output.console().print(rows)
