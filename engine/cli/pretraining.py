"""`exegesis pretrain`: new text models, with every option of `PretrainConfig`."""

from __future__ import annotations

import dataclasses
from typing import Any

from engine.cli.config_options import ConfigOptions
from engine.cli.trained import run_and_say
from engine.params import from_mapping
from engine.progress import CancelToken, Report
from engine.training.config import PretrainConfig

FIELDS = {field.name: field for field in dataclasses.fields(PretrainConfig)}


def pretrain(as_json: bool = False, **given: Any) -> None:
    """Train a new text model on plain text, with its own tokenizer; the same command goes on after a stop."""
    config = from_mapping(PretrainConfig, OPTIONS.chosen(given), "pretrain")
    run_and_say(lambda report, cancel: _run(config, report, cancel), config, as_json, _used(config))


def _run(config: PretrainConfig, report: Report, cancel: CancelToken) -> Any:
    from engine.training.pretraining import pretrain as run

    return run(config, report, cancel)


def _used(config: PretrainConfig) -> str:
    return f"exegesis train --base {config.out} --method lora --dataset reviews-marked --out my-model"


OPTIONS = ConfigOptions(
    FIELDS,
    lambda name: str(FIELDS[name].metadata["help"]),
    lambda name: str(FIELDS[name].default).lower(),
    "Print the losses as JSON.",
)
pretrain.__signature__ = OPTIONS.signature()  # type: ignore[attr-defined]
pretrain.__annotations__ = OPTIONS.annotations()
