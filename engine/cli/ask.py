"""`exegesis ask`: translate a question in plain English into commands, and optionally run them."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

import typer

from engine.cli import options, output
from engine.query import OPERATIONS, QueryContext, commands_of, complete, notes_of, parse, sentence_of


def ask(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Such as 'most important words for positive in example 3'.")
    ],
    model: Annotated[str, typer.Option(metavar="M", help="Model of questions that name none.")] = options.DEFAULT_MODEL,
    dataset: Annotated[
        str, typer.Option(metavar="D", help="Data set of questions that name none. [default: one that fits the model]")
    ] = "",
    index: Annotated[
        str, typer.Option(metavar="I", help="Index of the example of questions that name none. [default: 0]")
    ] = "",
    run: Annotated[bool, typer.Option("--run", help="Run the commands.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the operation, its slots and commands as JSON.")
    ] = False,
) -> None:
    """Turn a question into a command: most important words, what-if, comparisons and more."""
    context = QueryContext(model, dataset, options.read_whole("--index", index) if index else None)
    query = complete(parse(question), context)
    commands = commands_of(query)
    title, sentence = OPERATIONS[query.operation].title, sentence_of(query)
    if as_json:
        lines = [command.line for command in commands]
        plain = {"operation": query.operation, "title": title, "sentence": sentence, **query.slots()}
        output.print_json({**plain, "commands": lines, "notes": list(notes_of(query, context))})
    else:
        print(output.visible(f"{title}: {sentence}"))
        for line in (*(command.line for command in commands), *notes_of(query, context)):
            print(output.visible(line))
    for command in commands if run else ():
        sys.stdout.flush()
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli", *command.arguments], input=command.stdin, text=True, check=False
        )
        if done.returncode:
            raise typer.Exit(done.returncode)
