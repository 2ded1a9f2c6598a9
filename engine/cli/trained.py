"""Running a training from the command line: progress, an orderly stop, and what is said at its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from engine.cli.guard import STOPPED, fail
from engine.cli.stopping import stoppable
from engine.errors import Cancelled
from engine.progress import CancelToken, Report
from engine.training.config import LoopConfig

if TYPE_CHECKING:
    from engine.training.recipe import TrainResult

Run = Callable[[Report, CancelToken], "TrainResult"]


def run_and_say(run: Run, config: LoopConfig, as_json: bool, use: str) -> None:
    """`use`: the command by which the result is put to use."""
    from engine.cli.output import only_ours, print_json
    from engine.cli.progress import shown

    with only_ours(), stoppable() as cancel, shown("loading", lines=True) as report:
        try:
            result = run(report, cancel)
        except Cancelled:
            raise typer.Exit(fail(_how_to_go_on(config), STOPPED)) from None
    if as_json:
        print_json(_plain(result))
    else:
        _say(result, use)


def _how_to_go_on(config: LoopConfig) -> str:
    if not (Path(config.out) / "checkpoint").is_dir():
        return f"{config.program}: stopped before the first step; nothing was stored."
    return f"{config.program}: stopped; its state is kept in {config.out}. Go on with: {config.command()}"


def _plain(result: TrainResult) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "best_epoch": result.best_epoch,
        "seconds": result.seconds,
        "scores": {name: dataclasses.asdict(score) for name, score in result.scores.items()},
        "history": [dataclasses.asdict(record) for record in result.history],
    }


def _say(result: TrainResult, use: str) -> None:
    for split, score in result.scores.items():
        print(f"{split}: {score.metric} {score.value:.4f} on {score.count:,} examples")
    print(f"Stored in {result.out}. Use it: {use}")
