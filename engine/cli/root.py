"""The list of commands and their error handling: one line on stderr and an exit status, never a traceback.

Each command is imported when it is called, so its module can import what it needs at the top.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from engine.errors import ExegesisError, unknown
from engine.home import home, product_version

FAILED, WRONG_USE, STOPPED = 1, 2, 130
COMMANDS: Mapping[str, tuple[str, str]] = {
    "app": ("server.serve", "Open the dashboard in a browser."),
    "ask": ("ask.ask", "Turn a question into a command: most important words, what-if, comparisons and more."),
    "explain": (
        "explain.explain",
        "Explain a prediction: one score per token or patch, by one or more methods.",
    ),
    "heads": ("explain.heads", "Show what each attention head attends to and whether it matters."),
    "generate": (
        "generate.generate",
        "Continue a prompt with a language model, and show what each generated token depends on.",
    ),
    "layers": (
        "layers.app",
        "See inside a model: logit lens, activation patching, information flow routes, heads that matter.",
    ),
    "similarity": ("similarity.similarity", "Show which pairs of tokens make two texts similar (BiLRP)."),
    "significance": (
        "significance.significance",
        "Test which words or patches matter more than what could stand in their place, at a false discovery rate.",
    ),
    "counterfactuals": (
        "counterfactuals.counterfactuals",
        "Find the fewest changes of words, or removed patches, that flip a prediction.",
    ),
    "slide": (
        "sliding.slide",
        "Slide a window over an image: the prediction with the window removed, at every position.",
    ),
    "compare": (
        "compare.compare",
        "Compare models and methods: where their maps agree and where they differ.",
    ),
    "corpus": (
        "corpus.corpus",
        "Test which words or patches matter to a model over a whole data set. Run it again to resume.",
    ),
    "evaluate": (
        "evaluate.evaluate",
        "Score methods on many examples. Run it again to resume.",
    ),
    "behavior": (
        "behavior.behavior",
        "Ask models about their behavior, and compare with what attributions answer. Run it again to resume.",
    ),
    "randomize": (
        "randomize.randomize",
        "Randomize a model block by block and test whether explanations change. Run it again to resume.",
    ),
    "suppressor": (
        "suppressor.suppressor",
        "Test which methods credit a feature that carries no information about the class.",
    ),
    "attack": (
        "attack.attack",
        "Attack explanations of many examples. Run it again to resume.",
    ),
    "concepts": (
        "concepts.concepts",
        "Test whether a prediction depends on concepts given by examples (TCAV). Run it again to resume.",
    ),
    "rules": (
        "rules.rules",
        "Test claims about a model, written as rules such as '\"not\" -> negative'. Run it again to resume.",
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
    "empirical": ("empirical.app", "Train and list models that predict the maps of a costly method."),
    "maps": ("maps.app", "Import maps of other tools, to evaluate and compare them as methods."),
    "models": ("library.models", "List the embedded models, load and check one, or fetch a language model."),
    "datasets": ("library.datasets", "List the data sets, or describe one."),
    "doctor": ("library.doctor", "Check device, versions, embedded weights, cache, home folder and network."),
    "jobs": ("jobs.app", "List, run, resume and cancel jobs."),
    "cache": ("library.cache_commands", "Show, check and shrink the result cache."),
    "study": ("study.app", "Run blind studies in which people rank explanations."),
}
"""By name: location in this package, and summary. A test compares the summary with the command's own help."""


class Commands(TyperGroup):
    """Command group that turns errors into one line on stderr and an exit status."""

    def main(self, *args: Any, **options: Any) -> Any:
        # Always the same program name, so that help and errors show commands that can be typed.
        options["prog_name"] = "exegesis"
        run = super().main
        sys.exit(run_guarded(lambda: run(*args, **{**options, "standalone_mode": False})))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            print(ctx.get_help())
            raise typer.Exit
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            if args[0].startswith("-"):
                raise unknown(f"{ctx.command_path}: option", args[0], _options(ctx.command))
            raise unknown(f"{ctx.command_path}: command", args[0], self.commands)
        return super().resolve_command(ctx, args)


def run_guarded(run: Callable[[], object]) -> int:
    """Run a command and return its exit status."""
    try:
        status = run()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except ExegesisError as error:
        return fail(str(error), error.exit_code)
    except typer.TyperException as error:
        return fail(_usage_message(error), WRONG_USE)
    except (KeyboardInterrupt, typer.Abort):
        return STOPPED
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except Exception as error:
        return fail(_unexpected_message(error), FAILED)


def fail(message: str, status: int) -> int:
    """Print an error as one line on stderr and return the status."""
    print("error:", " ".join(message.split()), file=sys.stderr)
    return status


def note(message: str) -> None:
    """Print a note as one line on stderr, since it is not part of the result."""
    print("note:", " ".join(message.split()), file=sys.stderr)


def _usage_message(error: typer.TyperException) -> str:
    """Reword an error of the parser: what is wrong, what is allowed, where to find help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "exegesis"
    parameter = getattr(error, "param", None)
    if hasattr(error, "possibilities"):
        return str(unknown(f"{path}: option", getattr(error, "option_name", ""), _options(context and context.command)))
    if parameter is not None and not error.message:
        return f"{path}: {getattr(parameter, 'metavar', None) or parameter.name} is missing. See: {path} --help."
    if "extra argument" in error.message:
        got = error.message.rpartition("(")[2].rstrip(").")
        return f"{path}: too many arguments, got {got!r}. Put quotation marks around a text with spaces."
    message = error.format_message().rstrip(".")
    return f"{path}: {message[:1].lower()}{message[1:]}. See: {path} --help."


def _options(command: Any) -> list[str]:
    if command is None:
        return ["--help"]
    return [*(name for parameter in command.params for name in parameter.opts if name.startswith("--")), "--help"]


def _unexpected_message(error: Exception) -> str:
    message = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
    try:
        return f"{message}. This is a bug in Exegesis; the traceback is in {_write_traceback(error)}."
    except OSError as second:
        folder = home() / "logs"
        return f"{message}. The traceback could not be written to {folder} ({second.strerror}); set EXEGESIS_HOME."


def _write_traceback(error: Exception) -> Path:
    folder = home() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    file.write_text(f"{sys.argv}\n{text}", encoding="utf-8", errors="backslashreplace")
    return file


class _LazyFileHandler(logging.FileHandler):
    """Log file whose folder is created with the first record. If the home is not writable, logging is skipped."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
            super().emit(record)


def log_to_file() -> None:
    """Write the engine's log to a file in the home folder. On stderr, tracebacks would hide the line with the error."""
    handler = _LazyFileHandler(home() / "logs" / "exegesis.log", encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(name)s %(message)s"))
    logging.getLogger("exegesis").addHandler(handler)
    logging.getLogger().addHandler(logging.NullHandler())


def _forget_stdout() -> None:
    # Python flushes stdout again on exit, which would fail on a closed pipe.
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


class LazyCommand(TyperCommand):
    """A command or group that is imported when it is called. Until then, only its summary is available."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self.place = place

    @cached_property
    def command(self) -> Any:
        """The imported command."""
        module, _, name = self.place.partition(".")
        target = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        if isinstance(target, typer.Typer):
            return typer.main.get_group(target)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(self.name)(target)
        return typer.main.get_command(single)

    @property
    def commands(self) -> Mapping[str, Any]:
        """The commands of the group; empty for a single command."""
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
    """See, compare and test explanations of transformer classifiers and language models."""
