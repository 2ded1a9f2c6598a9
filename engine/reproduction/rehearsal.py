"""A rehearsal of the full scale: random models of the published sizes, short generated texts, two examples.

It runs all that the full scale runs, so that a machine shows what it can do before days of it are spent. Each part is
timed, and what it takes at the full scale follows from the numbers of training steps, examples and attack steps.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import torch
import transformers

from engine import runtime
from engine.data.build_reviews import to_jsonl
from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.errors import UsageError
from engine.experiments.run import carry_out
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.models.loading import CLASSIFIERS, silence_libraries
from engine.progress import Report, check_cancelled, silent
from engine.reproduction.thesis import PlannedFineTuning, ThesisExperiment, ThesisQuery

FEWEST_EXAMPLES = 2
TEXTS = {"train": 96, "dev": 24}
"""Texts of each part of a data set."""
TIMES = "rehearsal.json"
"""Name of the file of measured times, in the folder of the rehearsal."""
SHAPES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "google/t5-efficient-tiny": ("t5", {"d_model": 256, "d_ff": 1024, "num_layers": 4, "num_heads": 4}),
    "google/t5-efficient-mini": ("t5", {"d_model": 384, "d_ff": 1536, "num_layers": 4, "num_heads": 8}),
    "google/t5-efficient-small": ("t5", {"d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8}),
    "google/t5-efficient-base": ("t5", {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "google-bert/bert-base-uncased": ("bert", {}),
    "FacebookAI/roberta-base": (
        "roberta",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "google-t5/t5-base": ("t5", {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "openai-community/gpt2": ("gpt2", {}),
}
"""By the hub's name: the family, and where its published configuration differs from Transformers' defaults."""
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
"""Of the tokenizer that stands in, that of the embedded base of the family."""
PUBLISHED_TEXTS = {"sst2-marked": 67_349, "multinli": 392_702, "esnli": 549_367}
"""Training texts of the data sets of the full scale."""
GENERATED = {"sst2": "reviews-generated", "multinli": "nli-generated:sentences=1", "esnli": "nli-generated:sentences=1"}
"""The generated data sets whose texts stand in for those."""


@dataclass(frozen=True)
class RehearsedPart:
    """A part of a rehearsal. `seconds`: how long it took. `times`: how many times as much of it the full scale has.

    `memory`: the most bytes in use, of the GPU where there is one, else of the process until then.
    """

    name: str
    seconds: float
    times: float
    memory: int

    @property
    def hours(self) -> float:
        """What the part takes at the full scale on this machine."""
        return self.seconds * self.times / 3600


def rehearsal_of(query: ThesisQuery) -> ThesisQuery:
    """The query on random models and short texts, in a folder of its own. Errors: another scale than the full one."""
    if query.scale != "full":
        raise UsageError(f"--rehearse: applies to --scale full only, got {query.scale}. Add --scale full.")
    folder = Path(query.folder) / "rehearsal"
    places = {name: str(folder / "stand-ins" / name) for name in (*SHAPES, *GENERATED)}
    examples = FEWEST_EXAMPLES if query.examples is None else query.examples
    return replace(query, places=places, folder=str(folder), examples=examples, rehearsal=True)


def rehearse(query: ThesisQuery, report: Report = silent) -> tuple[RehearsedPart, ...]:
    """Do and measure each part of the rehearsal of a query. What is done is not done again.

    A part that was stopped is measured from where it goes on. Errors: those of the trainings and experiments.
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
    """The experiments, each on one model."""
    return (replace(one, roles=(role,)) for one in query.experiments() for role in one.roles)


class _Times:
    """Seconds and memory of the parts that are done, in a file, so that a stopped rehearsal goes on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: dict[str, list[float]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def measure(self, name: str, work: Callable[[], float | None]) -> tuple[float, int]:
        """Seconds and bytes that `work` takes, or took where it is done. `work` may return the seconds that count."""
        check_cancelled()
        if name not in self.known:
            if torch.cuda.is_available():
                torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            seconds = work()
            self.known[name] = [seconds or time.perf_counter() - start, peak_memory()]
            self.file.write_text(json.dumps(self.known, indent=1), encoding="utf-8")
        seconds, memory = self.known[name]
        return seconds, int(memory)


def peak_memory() -> int:
    """The most bytes in use: of the GPU since the last reset, else of this process since it started."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    kilobytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobytes


def _train(one: PlannedFineTuning, times: _Times) -> RehearsedPart:
    """A fine-tuning, measured by the time of its steps alone."""
    name = f"fine-tuning {one.name}"

    def work() -> float:
        one.run()
        return float(catalog.card(one.out)["seconds"])

    seconds, memory = times.measure(name, work)
    batch = one.config.batch_size
    steps = ceil(catalog.card(one.out)["sizes"]["train"] / batch) * one.epochs
    published = ceil(PUBLISHED_TEXTS[one.data] / batch) * type(one.config).epochs
    return RehearsedPart(name, seconds, published / steps, memory)


def _experiment(experiment: ThesisExperiment, full: ThesisExperiment, times: _Times) -> RehearsedPart:
    """An experiment on one model, measured without the time of loading it."""
    [role] = experiment.roles
    plan = experiment.plan

    def work() -> None:
        carry_out(plan)

    with runtime.turn():
        load_classifier("text", role.place, "float32", runtime.device())
    name = f"{experiment.kind.job} {role.name}"
    seconds, memory = times.measure(f"{name}, {experiment.request.examples} examples", work)
    steps = [one.request.settings["attack"]["steps"] for one in (full, experiment) if one.source == "attack"] or [1, 1]
    return RehearsedPart(
        name, seconds, full.request.examples / experiment.request.examples * steps[0] / steps[1], memory
    )


def write_stand_ins(query: ThesisQuery) -> None:
    """Write the random bases and generated data sets of a rehearsal, those that are not there yet."""
    for base, (family, _) in SHAPES.items():
        write_base(Path(query.places[base]), base, family)
    for name, generated in GENERATED.items():
        folder = Path(query.places[name])
        folder.mkdir(parents=True, exist_ok=True)
        examples = load(generated, "train").examples
        start = 0
        for split, count in TEXTS.items():
            own = examples[start : start + count]
            start += count
            ending, text = (".tsv", _to_tsv(own)) if name == "sst2" else (".jsonl", to_jsonl(map(_record, own)))
            (folder / f"{split}{ending}").write_text(text, encoding="utf-8")


def _to_tsv(examples: Any) -> str:
    rows = (f"{' '.join(one.text.split())}\t{one.label}\n" for one in examples)
    return f"sentence\tlabel\n{''.join(rows)}"


def _record(one: LabeledExample) -> dict[str, Any]:
    names = ("entailment", "neutral", "contradiction")
    spans = {"rationale": list(map(list, one.rationale)), "rationale_pair": list(map(list, one.rationale_pair))}
    return {"text": one.text, "text_pair": one.text_pair, "label": names[int(one.label or 0)], **spans}


def write_base(folder: Path, base: str, family: str) -> None:
    """A base of that name with random weights and the embedded tokenizer of its family; nothing where it is there."""
    if (folder / "config.json").is_file():
        return
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(catalog.locate_base(f"bases/{family}"))
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    with silence_libraries():
        module = random_module(base, {name: getattr(tokenizer, name) for name in SPECIAL_IDS})
        module.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
    os.replace(partial, folder)


def random_module(base: str, ids: Mapping[str, object] | None = None) -> Any:
    """A classifier with random weights and the published configuration of a base, but for the `ids` of a tokenizer."""
    family, differences = SHAPES[base]
    config = transformers.AutoConfig.for_model(family, **differences, **(ids or {}))
    if family in CLASSIFIERS:
        return CLASSIFIERS[family](config)
    return transformers.AutoModelForSequenceClassification.from_config(config)
