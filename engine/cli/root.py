"""The list of commands. Each is imported when it is called: its module may import at its top what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from engine.cli.guard import Commands
from engine.home import product_version

COMMANDS: Mapping[str, tuple[str, str]] = {
    "app": ("server.serve", "Open the dashboard in a browser."),
    "explain": (
        "explain.explain",
        "Explain a prediction: one score per token or patch, by one or more methods.",
    ),
    "heads": ("explain.heads", "Show what each attention head attends to and whether it matters."),
    "compare": (
        "compare.compare",
        "Compare models and methods: where their maps agree and where they differ.",
    ),
    "evaluate": (
        "evaluate.evaluate",
        "Score methods on many examples. Run it again to resume.",
    ),
    "randomize": (
        "randomize.randomize",
        "Randomize a model block by block and test whether explanations change. Run it again to resume.",
    ),
    "attack": (
        "attack.attack",
        "Attack explanations of many examples. Run it again to resume.",
    ),
    "scaffold": (
        "scaffold.scaffold",
        "Train students to predict a model, with and without its explanations. Run it again to resume.",
    ),
    "reproduce": (
        "reproduce.reproduce",
        "Test the claims of the thesis or of SMaT and write a report. Run it again to resume.",
    ),
    "pretrain": (
        "training.pretrain",
        "Pretrain a new text model and its tokenizer on plain text. Run it again to resume.",
    ),
    "train": (
        "training.train",
        "Fine-tune a base on texts, or train a vision transformer on images. Run it again to resume.",
    ),
    "models": ("library.models", "List the embedded models, or load and check one."),
    "datasets": ("library.datasets", "List the data sets, or describe one."),
    "doctor": ("library.doctor", "Check device, versions, embedded weights, cache, home folder and network."),
    "jobs": ("jobs.app", "List, run, resume and cancel jobs."),
    "cache": ("library.cache_commands", "Show, check and shrink the result cache."),
    "study": ("study.app", "Run blind studies in which people rank explanations."),
}
"""By name the place below this package, and the summary: the help of the command itself, which a test compares."""


class LazyCommand(TyperCommand):
    """A command, or a group of them, of which only the summary is there until it is called."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self.place = place

    @cached_property
    def command(self) -> Any:
        """The command itself, imported."""
        module, _, name = self.place.partition(".")
        target = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        if isinstance(target, typer.Typer):
            return typer.main.get_group(target)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(self.name)(target)
        return typer.main.get_command(single)

    @property
    def commands(self) -> Mapping[str, Any]:
        """The commands of a group."""
        commands: Mapping[str, Any] = getattr(self.command, "commands", {})
        return commands

    def make_context(self, *args: Any, **options: Any) -> Any:
        return self.command.make_context(*args, **options)


class LazyCommands(Commands):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:
        commands = {name: LazyCommand(name, *command) for name, command in COMMANDS.items()}
        super().__init__(**{**options, "commands": commands})


app = typer.Typer(
    cls=LazyCommands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def print_version(wanted: bool) -> bool:
    if wanted:
        print(product_version())
        raise typer.Exit
    return wanted


@app.callback()
def exegesis(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """See, compare and test explanations of transformer classifiers."""
