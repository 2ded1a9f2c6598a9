"""The list of commands. Nothing heavy is imported until a command needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli import (
    attack,
    compare,
    doctor,
    evaluate,
    explain,
    heads,
    jobs,
    listing,
    pretraining,
    randomize,
    reproduce,
    scaffold,
    serve,
    storage,
    study,
    training,
)
from engine.cli.guard import Commands

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def print_version(wanted: bool) -> bool:
    if wanted:
        from engine.home import product_version

        print(product_version())
        raise typer.Exit
    return wanted


@app.callback()
def exegesis(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """See, compare and judge explanations of transformer classifiers."""


app.command("app")(serve.serve)
app.command("explain")(explain.explain)
app.command("heads")(heads.heads)
app.command("compare")(compare.compare)
app.command("evaluate")(evaluate.evaluate)
app.command("randomize")(randomize.randomize)
app.command("attack")(attack.attack)
app.command("scaffold")(scaffold.scaffold)
app.command("reproduce")(reproduce.reproduce)
app.command("pretrain")(pretraining.pretrain)
app.command("train")(training.train)
app.command("models")(listing.models)
app.command("datasets")(listing.datasets)
app.add_typer(jobs.app, name="jobs")
app.add_typer(storage.app, name="cache")
app.add_typer(study.app, name="study")
app.command("doctor")(doctor.doctor)
