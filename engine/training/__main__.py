"""`python -m engine.training --base minilm --dataset sst2 --out DIR ...`: fine-tuning without the full command."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys

from engine.errors import ExegesisError
from engine.params import from_mapping
from engine.training.config import TrainConfig


def main(argv: list[str] | None = None) -> int:
    from engine.training.trainer import train

    try:
        result = train(parse(argv), _Lines())
    except ExegesisError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for split, score in result.scores.items():
        print(f"{split}: {score.metric} {score.value:.4f} on {score.count} examples")
    return 0


def parse(argv: list[str] | None) -> TrainConfig:
    """The config from `--name value` pairs; names and bounds are those of `TrainConfig`."""
    parser = argparse.ArgumentParser(prog="python -m engine.training")
    for field in dataclasses.fields(TrainConfig):
        parser.add_argument(f"--{field.name.replace('_', '-')}", help=field.metadata["help"])
    given = {name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None}
    return from_mapping(TrainConfig, given, "train")


class _Lines:
    """Prints progress: every hundredth step, and whatever closes an epoch."""

    def __call__(self, done: int, total: int, label: str) -> None:
        if ":" in label or done % 100 == 0:
            print(f"{done}/{total} {label}", flush=True)


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS"):
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    sys.exit(main())
