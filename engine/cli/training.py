"""`exegesis train` and `exegesis pretrain`: fine-tune and pretrain models, with one option per config field."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from engine.cli.options import ConfigOptions, set_parameters
from engine.cli.output import print_json, progress_bar, stdout_reserved, stoppable
from engine.cli.root import STOPPED, fail
from engine.data.image_datasets import is_images
from engine.errors import Cancelled
from engine.lazy import LazyModule
from engine.models.catalog import embedded_image_models
from engine.models.checkpoint_files import PROCESSOR
from engine.params import from_mapping
from engine.progress import CancelToken, Report
from engine.training.config import NEW_VIT, SHAPES, ImageTrainConfig, LoopConfig, PretrainConfig, TrainConfig

if TYPE_CHECKING:
    from engine.training import finetuning, image_training, pretraining
    from engine.training.recipe import TrainResult
else:  # they load torch, which the help and wrong options do not need
    finetuning = LazyModule("engine.training.finetuning")
    image_training = LazyModule("engine.training.image_training")
    pretraining = LazyModule("engine.training.pretraining")

Run = Callable[[Report, CancelToken], "TrainResult"]
FineTuning = TrainConfig | ImageTrainConfig
TEXT_FIELDS, IMAGE_FIELDS, PRETRAIN_FIELDS = (
    {field.name: field for field in dataclasses.fields(kind)}
    for kind in (TrainConfig, ImageTrainConfig, PretrainConfig)
)
TRAIN_FIELDS = TEXT_FIELDS | {name: field for name, field in IMAGE_FIELDS.items() if name not in TEXT_FIELDS}


def train(as_json: bool = False, **typed: Any) -> None:
    """Fine-tune a base on texts, or train a vision transformer on images. Run it again to resume."""
    config = _config(typed)
    use = "--text '...'" if isinstance(config, TrainConfig) else f"--dataset {config.dataset} --index 0"
    command = f"exegesis explain --model {config.out} --method all {use}"

    def run(report: Report, cancel: CancelToken) -> TrainResult:
        if isinstance(config, ImageTrainConfig):
            return image_training.train_images(config, report, cancel)
        return finetuning.train(config, report, cancel)

    _run_training(run, config, as_json, command)


def pretrain(as_json: bool = False, **typed: Any) -> None:
    """Pretrain a new text model and its tokenizer on plain text. Run it again to resume."""
    config = from_mapping(PretrainConfig, PRETRAIN_OPTIONS.chosen(typed), "pretrain", flags=True)
    if SHAPES[config.base].family == "llama":
        command = f"exegesis explain --model {config.out} --method all --dataset agreement --index 0"
    else:
        command = f"exegesis train --base {config.out} --method lora --dataset reviews-marked --out my-model"
    _run_training(lambda report, cancel: pretraining.pretrain(config, report, cancel), config, as_json, command)


def _config(typed: dict[str, Any]) -> FineTuning:
    """Create the config, which checks the options. It is for pictures if the base or the data set is."""
    chosen = TRAIN_OPTIONS.chosen(typed)
    kind = ImageTrainConfig if _on_pictures(chosen) else TrainConfig
    config: FineTuning = from_mapping(kind, chosen, "train", flags=True)
    return config


def _on_pictures(chosen: dict[str, object]) -> bool:
    base = str(chosen.get("base", TrainConfig.base))
    if base in (NEW_VIT, *embedded_image_models()) or (Path(base) / PROCESSOR).is_file():
        return True
    return is_images(str(chosen.get("dataset", TrainConfig.dataset)))


def _run_training(run: Run, config: LoopConfig, as_json: bool, command: str) -> None:
    """Run a training that can be stopped and resumed, and print the scores. `command`: an example of using it."""
    with stdout_reserved(), stoppable() as cancel, progress_bar("loading", lines=True) as report:
        try:
            result = run(report, cancel)
        except Cancelled:
            raise typer.Exit(fail(_stop_message(config), STOPPED)) from None
    if as_json:
        print_json(_to_json(result))
        return
    for split, score in result.scores.items():
        print(f"{split}: {score.metric} {score.value:.4f} on {score.count:,} examples")
    print(f"Stored in {result.out}. Use it: {command}")


def _stop_message(config: LoopConfig) -> str:
    if not (Path(config.out) / "checkpoint").is_dir():
        return f"{config.program}: stopped before the first step; nothing was stored."
    return f"{config.program}: stopped; its state is stored in {config.out}. Resume with: {config.command()}"


def _to_json(result: TrainResult) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "best_epoch": result.best_epoch,
        "seconds": result.seconds,
        "scores": {name: dataclasses.asdict(score) for name, score in result.scores.items()},
        "history": [dataclasses.asdict(record) for record in result.history],
    }


def _train_help(name: str) -> str:
    if name not in TEXT_FIELDS:
        return f"images: {IMAGE_FIELDS[name].metadata['help']}"
    help = str(TEXT_FIELDS[name].metadata["help"])
    on_pictures = str(IMAGE_FIELDS[name].metadata["help"]) if name in IMAGE_FIELDS else help
    return help if on_pictures == help else f"{help}; images: {on_pictures}"


def _train_default(name: str) -> str:
    defaults = [str(fields[name].default).lower() for fields in (TEXT_FIELDS, IMAGE_FIELDS) if name in fields]
    return defaults[0] if len(set(defaults)) == 1 else f"{defaults[0]}; images: {defaults[1]}"


TRAIN_OPTIONS = ConfigOptions(TRAIN_FIELDS, _train_help, _train_default, "Print the scores as JSON.")
PRETRAIN_OPTIONS = ConfigOptions(
    PRETRAIN_FIELDS,
    lambda name: str(PRETRAIN_FIELDS[name].metadata["help"]),
    lambda name: str(PRETRAIN_FIELDS[name].default).lower(),
    "Print the losses as JSON.",
)
set_parameters(train, TRAIN_OPTIONS.parameters)
set_parameters(pretrain, PRETRAIN_OPTIONS.parameters)
