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
from engine.progress import CancelToken, Report
from engine.training.config import TrainConfig
from engine.training.images.config import NEW, ImageTrainConfig

if TYPE_CHECKING:
    from engine.training.trainer import TrainResult

Config = TrainConfig | ImageTrainConfig
TEXT, IMAGE = ({f.name: f for f in dataclasses.fields(kind)} for kind in (TrainConfig, ImageTrainConfig))
FIELDS = TEXT | {name: field for name, field in IMAGE.items() if name not in TEXT}
SWITCHES = tuple(name for name, field in FIELDS.items() if isinstance(field.default, bool))


def train(as_json: bool = False, **given: Any) -> None:
    """Fine-tune a base on texts, or train a vision transformer on pictures; the same command goes on after a stop."""
    from engine.cli.output import only_ours, print_json
    from engine.cli.progress import shown

    config = _config(given)
    with only_ours(), stoppable() as cancel, shown("loading", lines=True) as report:
        try:
            result = _run(config, report, cancel)
        except Cancelled:
            raise typer.Exit(fail(_how_to_go_on(config), STOPPED)) from None
    if as_json:
        print_json(_plain(result))
    else:
        _say(result, config)


def _run(config: Config, report: Report, cancel: CancelToken) -> TrainResult:
    if isinstance(config, ImageTrainConfig):
        from engine.training.images.trainer import train_images

        return train_images(config, report, cancel)
    from engine.training.trainer import train as train_texts

    assert isinstance(config, TrainConfig)
    return train_texts(config, report, cancel)


def _config(given: dict[str, Any]) -> Config:
    """The options as a config, which knows their bounds: of pictures where base or data set says so."""
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
    kind = ImageTrainConfig if _on_pictures(chosen) else TrainConfig
    config: Config = from_mapping(kind, chosen, "train")
    return config


def _on_pictures(chosen: dict[str, object]) -> bool:
    from engine.data.images.datasets import is_images
    from engine.models.catalog import PROCESSOR, embedded_image_models

    base = str(chosen.get("base", TrainConfig.base))
    if base in (NEW, *embedded_image_models()) or (Path(base) / PROCESSOR).is_file():
        return True
    return is_images(str(chosen.get("dataset", TrainConfig.dataset)))


def _how_to_go_on(config: Config) -> str:
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


def _say(result: TrainResult, config: Config) -> None:
    for split, score in result.scores.items():
        print(f"{split}: {score.metric} {score.value:.4f} on {score.count:,} examples")
    what = "--text '...'" if isinstance(config, TrainConfig) else f"--dataset {config.dataset} --index 0"
    print(f"Stored in {result.out}. Use it: exegesis explain --model {result.out} --method all {what}")


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _help(name: str) -> str:
    if name not in TEXT:
        return f"pictures: {IMAGE[name].metadata['help']}"
    told = str(TEXT[name].metadata["help"])
    other = str(IMAGE[name].metadata["help"]) if name in IMAGE else told
    return told if other == told else f"{told}; pictures: {other}"


def _default(name: str) -> str:
    defaults = [str(kind[name].default).lower() for kind in (TEXT, IMAGE) if name in kind]
    return defaults[0] if len(set(defaults)) == 1 else f"{defaults[0]}; pictures: {defaults[1]}"


def _signature() -> inspect.Signature:
    """One option a field of the configs: they are the only place that lists them."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = []
    for name, field in FIELDS.items():
        choices = field.metadata["choices"]
        told = f"{_help(name)} [default: {_default(name)}]"
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
