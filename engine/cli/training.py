"""`exegesis train`: fine-tuning, with every option of `TrainConfig`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.config_options import ConfigOptions
from engine.cli.trained import run_and_say
from engine.params import from_mapping
from engine.progress import CancelToken, Report
from engine.training.config import NEW_VIT, ImageTrainConfig, TrainConfig

if TYPE_CHECKING:
    from engine.training.recipe import TrainResult

Config = TrainConfig | ImageTrainConfig
TEXT, IMAGE = ({f.name: f for f in dataclasses.fields(kind)} for kind in (TrainConfig, ImageTrainConfig))
FIELDS = TEXT | {name: field for name, field in IMAGE.items() if name not in TEXT}


def train(as_json: bool = False, **given: Any) -> None:
    """Fine-tune a base on texts, or train a vision transformer on pictures; the same command goes on after a stop."""
    config = _config(given)
    run_and_say(lambda report, cancel: _run(config, report, cancel), config, as_json, _used(config))


def _run(config: Config, report: Report, cancel: CancelToken) -> TrainResult:
    if isinstance(config, ImageTrainConfig):
        from engine.training.image_training import train_images

        return train_images(config, report, cancel)
    from engine.training.finetuning import train as train_texts

    assert isinstance(config, TrainConfig)
    return train_texts(config, report, cancel)


def _config(given: dict[str, Any]) -> Config:
    """The options as a config, which knows their bounds: of pictures where base or data set says so."""
    chosen = OPTIONS.chosen(given)
    kind = ImageTrainConfig if _on_pictures(chosen) else TrainConfig
    config: Config = from_mapping(kind, chosen, "train")
    return config


def _on_pictures(chosen: dict[str, object]) -> bool:
    from engine.data.image_datasets import is_images
    from engine.models.catalog import PROCESSOR, embedded_image_models

    base = str(chosen.get("base", TrainConfig.base))
    if base in (NEW_VIT, *embedded_image_models()) or (Path(base) / PROCESSOR).is_file():
        return True
    return is_images(str(chosen.get("dataset", TrainConfig.dataset)))


def _used(config: Config) -> str:
    what = "--text '...'" if isinstance(config, TrainConfig) else f"--dataset {config.dataset} --index 0"
    return f"exegesis explain --model {config.out} --method all {what}"


def _help(name: str) -> str:
    if name not in TEXT:
        return f"pictures: {IMAGE[name].metadata['help']}"
    told = str(TEXT[name].metadata["help"])
    other = str(IMAGE[name].metadata["help"]) if name in IMAGE else told
    return told if other == told else f"{told}; pictures: {other}"


def _default(name: str) -> str:
    defaults = [str(kind[name].default).lower() for kind in (TEXT, IMAGE) if name in kind]
    return defaults[0] if len(set(defaults)) == 1 else f"{defaults[0]}; pictures: {defaults[1]}"


OPTIONS = ConfigOptions(FIELDS, _help, _default, "Print the scores as JSON.")
train.__signature__ = OPTIONS.signature()  # type: ignore[attr-defined]
train.__annotations__ = OPTIONS.annotations()
