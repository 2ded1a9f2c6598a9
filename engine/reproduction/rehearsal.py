"""Rehearsal of the full scale with random models of the published sizes, short generated texts and two examples.

It runs every part of the full scale, to test a machine before days of computing are spent on it. Each part is timed;
its time at the full scale is extrapolated from the numbers of training steps, examples and attack steps.
"""

from __future__ import annotations

import json
import resource
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path

import torch

from engine import runtime
from engine.errors import UsageError
from engine.experiments.run import carry_out
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.params import from_mapping
from engine.progress import Report, check_cancelled, silent, token_here
from engine.reproduction.papers import FULL
from engine.reproduction.stand_ins import SHAPES, write_base, write_data
from engine.reproduction.thesis import PlannedFineTuning, ThesisExperiment, ThesisQuery
from engine.scaffold.plan import SETTINGS, ScaffoldPlan
from engine.scaffold.presets import PRESETS, Preset, preset_plan
from engine.scaffold.training import measure_paces, total_seconds
from engine.training.config import ImageTrainConfig, TrainConfig
from engine.training.finetuning import train
from engine.training.image_training import train_images

FEWEST_EXAMPLES, EPOCHS = 2, TrainConfig.epochs
"""Examples of a rehearsal, and epochs of each training at the full scale (a rehearsal runs one)."""
TIMES = "rehearsal.json"
"""Name of the file with measured times, in the folder of the rehearsal."""
THESIS_DATA = ("sst2", "multinli", "esnli")
"""The published data sets of the thesis."""
PUBLISHED_EXAMPLES = {
    "sst2-marked": 67_349, "multinli": 392_702, "esnli": 549_367,
    "imdb": 25_000, "cifar100": 50_000, "mlqe": 35_000,
}  # fmt: skip
"""Number of training examples at the full scale, by data set; for SMaT's teachers, by preset."""


@dataclass(frozen=True)
class RehearsedPart:
    """A part of a rehearsal. `seconds`: its duration. `times`: factor by which the full scale has more of it.

    `memory`: peak memory in bytes, of the GPU if there is one, else of the process since its start.
    """

    name: str
    seconds: float
    times: float
    memory: int

    @property
    def hours(self) -> float:
        """Estimated hours of the part at the full scale on this machine."""
        return self.seconds * self.times / 3600


def rehearsal_of(query: ThesisQuery) -> ThesisQuery:
    """Return the query with random models and short texts, in its own folder. Errors: the scale is not "full"."""
    if query.scale != "full":
        raise UsageError(f"--rehearse: applies to --scale full only, got {query.scale}. Add --scale full.")
    folder = Path(query.folder) / "rehearsal"
    names = (*FULL.bases.values(), *THESIS_DATA)
    places = {name: str(folder / "stand-ins" / name) for name in names}
    examples = FEWEST_EXAMPLES if query.examples is None else query.examples
    return replace(query, places=places, folder=str(folder), examples=examples, rehearsal=True)


def rehearse(query: ThesisQuery, report: Report = silent) -> tuple[RehearsedPart, ...]:
    """Run and measure each part of the rehearsal of a query. Finished parts are not run again.

    An interrupted part is measured from where it resumes. Errors: those of the trainings and experiments.
    """
    own = rehearsal_of(query)
    write_stand_ins(own)
    trainings, times = own.fine_tunings(), _Times(Path(own.folder) / TIMES)
    total = len(trainings) + sum(len(one.roles) for one in own.experiments())
    parts: list[RehearsedPart] = []
    for one in trainings:
        report(len(parts), total, f"fine-tuning {one.name}")
        parts.append(_train(one, times))
    full = {one.name: one for one in replace(own, examples=None, rehearsal=False).experiments()}
    for experiment in _by_model(own):
        report(len(parts), total, f"{experiment.name}: {experiment.roles[0].name}")
        parts.append(_experiment(experiment, full[experiment.name], times))
    return tuple(parts)


def _by_model(query: ThesisQuery) -> Iterator[ThesisExperiment]:
    """Split the experiments into experiments on one model each."""
    return (replace(one, roles=(role,)) for one in query.experiments() for role in one.roles)


class _Times:
    """Seconds and memory of finished parts, stored in a file so that an interrupted rehearsal can resume."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: dict[str, list[float]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def measure(self, name: str, work: Callable[[], float]) -> tuple[float, int]:
        """Return (seconds, bytes) of a part, from the file or measured now. `work` runs it and returns its seconds."""
        check_cancelled()
        if name not in self.known:
            if torch.cuda.is_available():
                torch.cuda.reset_peak_memory_stats()
            self.known[name] = [work(), peak_memory()]
            self.file.write_text(json.dumps(self.known, indent=1), encoding="utf-8")
        seconds, memory = self.known[name]
        return seconds, int(memory)


def peak_memory() -> int:
    """Return the peak memory in bytes: of the GPU since the last reset, else of this process since its start."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    kilobytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobytes


def _train(one: PlannedFineTuning, times: _Times) -> RehearsedPart:
    return _training(f"fine-tuning {one.name}", one.config, one.run, PUBLISHED_EXAMPLES[one.data], times)


def _training(
    name: str, config: TrainConfig | ImageTrainConfig, run: Callable[[], float], published: int, times: _Times
) -> RehearsedPart:
    """Measure a training of one epoch by the time of its steps only. `published`: examples at the full scale."""
    seconds, memory = times.measure(name, run)
    steps = ceil(catalog.card(config.out)["sizes"]["train"] / config.batch_size)
    return RehearsedPart(name, seconds, EPOCHS * ceil(published / config.batch_size) / steps, memory)


def _experiment(experiment: ThesisExperiment, full: ThesisExperiment, times: _Times) -> RehearsedPart:
    """Measure an experiment on one model, without the time of loading the model."""
    [role] = experiment.roles
    plan = experiment.plan

    def work() -> float:
        with runtime.turn():
            load_classifier("text", role.place, "float32", runtime.device())
        start = time.perf_counter()
        carry_out(plan)
        return time.perf_counter() - start

    name = f"{experiment.kind.job} {role.name}"
    seconds, memory = times.measure(f"{name}, {experiment.request.examples} examples", work)
    steps = [one.request.settings["attack"]["steps"] for one in (full, experiment) if one.source == "attack"] or [1, 1]
    return RehearsedPart(
        name, seconds, full.request.examples / experiment.request.examples * steps[0] / steps[1], memory
    )


def rehearse_students(folder: Path, report: Report = silent) -> tuple[RehearsedPart, ...]:
    """Run and measure each part of SMaT's full scale: for each experiment, its teacher and a student of each setting.

    Students run for one training step, because there is nothing to learn from a random teacher. The estimate for the
    full scale assumes the maximum number of passes. Errors: those of the trainings.
    """
    folder = folder / "rehearsal"
    places = {name: folder / "stand-ins" / name for name in (*SHAPES, *PRESETS)}
    for one in PRESETS.values():
        write_base(places[one.base], one.base)
        write_data(places[one.name], one.name)
    times, total = _Times(folder / TIMES), len(PRESETS) * (1 + len(SETTINGS))
    parts: list[RehearsedPart] = []
    for one in PRESETS.values():
        given = {"base": str(places[one.base]), "dataset": str(places[one.name]), "epochs": 1}
        config = _teacher_config(one, {**given, "out": str(folder / "models" / one.out)})
        report(len(parts), total, f"teacher of {one.name}")
        run = partial(_train_teacher, config)
        parts.append(_training(f"teacher of {one.name}", config, run, PUBLISHED_EXAMPLES[one.name], times))
        plan = replace(preset_plan(one.name, config.out, config.dataset), base=config.base)
        for setting in plan.settings:
            report(len(parts), total, f"student of {one.name}, {setting}")
            parts.append(_student(one, replace(plan, settings=(setting,)), times))
    return tuple(parts)


def _teacher_config(one: Preset, given: Mapping[str, object]) -> TrainConfig | ImageTrainConfig:
    """Return the options of the command that trains a preset's teacher, overridden by `given`."""
    words = shlex.split(one.training)
    named = {
        flag.removeprefix("--").replace("-", "_"): value for flag, value in zip(words[::2], words[1::2], strict=True)
    }
    kind = ImageTrainConfig if one.name == "cifar100" else TrainConfig
    config: TrainConfig | ImageTrainConfig = from_mapping(kind, {**named, **given}, "train", flags=True)
    return config


def _train_teacher(config: TrainConfig | ImageTrainConfig) -> float:
    if isinstance(config, ImageTrainConfig):
        return train_images(config, cancel=token_here()).seconds
    return train(config, cancel=token_here()).seconds


def _student(one: Preset, plan: ScaffoldPlan, times: _Times) -> RehearsedPart:
    """Measure the students of one setting, as seconds per training step including its share of all other work."""
    batch = plan.recipe.batch_size
    steps = plan.recipe.epochs * sum(ceil(plan.examples_of(run) / batch) for run in plan.students)
    name = f"student of {one.name}, {plan.settings[0]}"
    seconds, memory = times.measure(name, lambda: total_seconds(plan, *measure_paces(plan)) / steps)
    return RehearsedPart(name, seconds, float(steps), memory)


def write_stand_ins(query: ThesisQuery) -> None:
    """Write the random bases and generated data sets that a rehearsal needs, if they do not exist yet."""
    scale = query.locations.scale
    for base in dict.fromkeys(scale.bases.values()):
        write_base(Path(query.places[base]), base)
    for name in THESIS_DATA:
        write_data(Path(query.places[name]), name)
