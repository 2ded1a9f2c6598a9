"""`exegesis train`: fine-tuning, with every option of `TrainConfig`."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.guard import STOPPED, fail
from engine.cli.stopping import stoppable
from engine.errors import Cancelled, UsageError
from engine.params import from_mapping
from engine.training.config import TrainConfig

if TYPE_CHECKING:
    from engine.training.trainer import TrainResult

SWITCHES = tuple(f.name for f in dataclasses.fields(TrainConfig) if isinstance(f.default, bool))


def train(as_json: bool = False, **given: Any) -> None:
    """Fine-tune a base on a data set; the same command goes on after a stop or a kill."""
    from engine.cli.output import only_ours, print_json
    from engine.cli.progress import shown

    config = _config(given)
    with only_ours(), stoppable() as cancel, shown("loading", lines=True) as report:
        from engine.training.trainer import train as run

        try:
            result = run(config, report, cancel)
        except Cancelled:
            raise typer.Exit(fail(_how_to_go_on(config), STOPPED)) from None
    if as_json:
        print_json(_plain(result))
    else:
        _say(result)


def _config(given: dict[str, Any]) -> TrainConfig:
    """The options as a config, which knows their bounds."""
    chosen: dict[str, object] = {}
    for name, value in given.items():
        if value is None or value is False:
            continue
        switch = name.removeprefix("no_")
        if name.startswith("no_") and switch in SWITCHES:
            if given.get(switch) is not None:
                raise UsageError(f"--{_flag(name)}: got --{_flag(switch)} too. Leave one of them out.")
            chosen[switch] = False
        else:
            chosen[name] = value
    config: TrainConfig = from_mapping(TrainConfig, chosen, "train")
    return config


def _how_to_go_on(config: TrainConfig) -> str:
    if not (Path(config.out) / "checkpoint").is_dir():
        return "train: stopped before the first step; nothing was stored."
    return f"train: stopped; its state is kept in {config.out}. Go on with: {config.command()}"


def _plain(result: TrainResult) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "best_epoch": result.best_epoch,
        "seconds": result.seconds,
        "scores": {name: dataclasses.asdict(score) for name, score in result.scores.items()},
        "history": [dataclasses.asdict(record) for record in result.history],
    }


def _say(result: TrainResult) -> None:
    for split, score in result.scores.items():
        print(f"{split}: {score.metric} {score.value:.4f} on {score.count:,} examples")
    print(f"Stored in {result.out}. Use it: exegesis explain --model {result.out} --method all --text '...'")


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _signature() -> inspect.Signature:
    """One option a field of `TrainConfig`: the config is the only place that lists them."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = []
    for field in dataclasses.fields(TrainConfig):
        choices = field.metadata["choices"]
        told = f"{field.metadata['help']} [default: {str(field.default).lower()}]"
        shape = "|".join(choices) or type(field.default).__name__.upper()
        option = typer.Option(f"--{_flag(field.name)}", help=told, metavar=shape)
        options.append(inspect.Parameter(field.name, keyword, default=None, annotation=Annotated[str | None, option]))
    for name in SWITCHES:
        option = typer.Option(f"--no-{_flag(name)}", help=f"The same as --{_flag(name)} false.")
        options.append(inspect.Parameter(f"no_{name}", keyword, default=False, annotation=Annotated[bool, option]))
    as_json = typer.Option("--json", help="Print the scores as JSON.")
    options.append(inspect.Parameter("as_json", keyword, default=False, annotation=Annotated[bool, as_json]))
    return inspect.Signature(options)


train.__signature__ = _signature()  # type: ignore[attr-defined]
train.__annotations__ = {name: p.annotation for name, p in _signature().parameters.items()}
