"""The sections of the benchmark of a GPU. Each yields its rows one by one, within its share of the time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.causal import Subject, read_subject
from benchmarks.gpu_clock import Cells, TimeShare, within
from benchmarks.gpu_models import PRECISIONS, REHEARSED_SIZES, SIZES, pass_flops, published_peak, random_model
from benchmarks.harness import TEXT, peak_memory, reset_peak_memory
from benchmarks.workloads import picture_task
from engine import runtime
from engine.explain import predict_encoded
from engine.models.causal import CausalModel
from engine.models.loading import load_image_model, load_model
from engine.models.text_classifier import TextClassifier
from engine.params import Plain, from_mapping
from engine.registry import all_explainers, explainer
from engine.request import Example, Prompt
from engine.task import Attribution, Task, TaskItem

SHORT_TEXT = "a quiet triumph , warm and well acted"
PROMPT = "warm and acted"
CLASSIFIER, DECODER, PICTURES = "reviews-minilm", "tiny-llama", "scenes-vit"
BOUNDS = {"float32": 2e-4, "bfloat16": 0.25}
"""Of the root mean square of a map's error, relative to that of the map in double precision on the CPU.

The same on a CPU: at most 3.8e-5 and 0.22 (occlusion of a short prompt). float32 rounded to TF32 would be off by
about a hundredth.
"""
FEW: dict[str, dict[str, Plain]] = {
    "smoothgrad": {"n_samples": 3}, "integrated_gradients": {"steps": "fixed", "n_steps": 6},
    "lime": {"n_samples": 40}, "kernel_shap": {"n_samples": 24}, "shapley_sampling": {"n_samples": 2},
    "bee": {"n_trials": 6, "n_steps": 5}, "least_sensitive": {"n_neighbors": 2, "n_samples": 16},
}  # fmt: skip
"""Little work, where the numbers matter and not the time."""
LEARNED = ("smat", "empirical")
"""Methods that random models have no explainer for."""
GOAL = 0.45
"""Of the peak in bfloat16, in bulk."""
MOST_MEMORY = 1.1
MOST_ROUNDS, ROUND_SECONDS = 5, 1.0
MEGABYTE = 1 << 20
Params = Mapping[str, Mapping[str, Plain]]


@dataclass(frozen=True)
class Scale:
    """How much is measured: on a GPU, or in a rehearsal on any machine. `rehearsed`: nothing it says is of a GPU."""

    rehearsed: bool
    sizes: Mapping[str, str]
    side: int
    """Of the square matrices whose product gives the peak that is reached."""
    repeats: int
    """Sentences of a long text."""
    bulk_seconds: float
    bulk_rows: int
    budget: int
    """Bytes of the budget against which memory is measured."""
    room: int
    """Bytes that are left where memory is to run out."""
    samples: int
    """Evaluations of the long work of a session."""
    params: Params = field(default_factory=dict)


FULL_SCALE = Scale(False, SIZES, 8_192, 6, 1.0, 256, 2 << 30, 256 << 20, 4_096)
REHEARSAL = Scale(True, REHEARSED_SIZES, 128, 1, 0.02, 8, 4 << 20, 1 << 20, 96, FEW)


@dataclass
class Device:
    """Its dense bfloat16 TFLOP/s: published, and reached by a product of matrices once that is measured."""

    name: str
    reached: float | None = None

    @property
    def peak(self) -> float | None:
        """The published peak, else what was reached."""
        return published_peak(self.name) or self.reached


def finish() -> None:
    """Wait until a GPU has done what it was given."""
    if runtime.device().type == "cuda":
        torch.cuda.synchronize()


def seconds_of(run: Callable[[], object]) -> float:
    finish()
    started = time.perf_counter()
    run()
    finish()
    return time.perf_counter() - started


def run(method: str, task: Task, params: Params) -> list[Attribution]:
    """A method's maps at its defaults but for `params`, without the cache; members of ensembles too."""
    spec = explainer(method, task.model.kind)
    whole = Task(task.model, task.items, lambda member: run(member, task, params))
    return list(spec.function(whole, from_mapping(spec.params, params.get(method, {}), method)))


def text_task_of(model: TextClassifier, text: str, copies: int = 1) -> Task:
    """Explanations of the predicted class of a text."""
    encoded = model.encode(Prompt(text) if isinstance(model, CausalModel) else Example(text))
    prediction = predict_encoded(model, [encoded])[0]
    return Task(model, [TaskItem(encoded, prediction, prediction.index, seed) for seed in range(copies)])


def peak(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """TFLOP/s of a product of matrices, which tells whether the card reaches what its maker says."""
    for precision, part in share.split(dict.fromkeys(PRECISIONS, 1.0)):

        def product(precision: str = precision, part: TimeShare = part) -> Cells:
            left = torch.randn(scale.side, scale.side, dtype=getattr(torch, precision), device=runtime.device())
            reached, rounds = 0.0, 0
            while rounds < 3 or (rounds < 50 and part.left() > 0 and not scale.rehearsed):
                reached = max(reached, 2 * scale.side**3 / seconds_of(lambda: left @ left) / 1e12)
                rounds += 1
            return {"TFLOP/s": reached}

        cells = within(part, product)
        if precision == "bfloat16":
            device.reached = cells.get("TFLOP/s")
            cells["published"] = published_peak(device.name)
        yield {"precision": precision, **cells}


def parity_tasks(name: str) -> Callable[[str, torch.device], Task]:
    """The same explanation at any precision and on any device, of the same class."""
    cpu = torch.device("cpu")
    if name == PICTURES:
        return lambda precision, device: _of_class(picture_task(load_image_model(name, precision, device)))
    if name == DECODER:
        exact = load_model(name, "float64", cpu)
        assert isinstance(exact, CausalModel)
        generated = read_subject(exact, PROMPT, 1).generated

        def prompt_task(precision: str, device: torch.device) -> Task:
            model = load_model(name, precision, device)
            assert isinstance(model, CausalModel)
            return Subject(model, PROMPT, generated).task

        return prompt_task
    return lambda precision, device: _of_class(text_task_of(load_model(name, precision, device), SHORT_TEXT))


def _of_class(task: Task) -> Task:
    [item] = task.items
    return Task(task.model, [TaskItem(item.encoded, item.prediction, 0, item.seed)])


def map_error(scores: np.ndarray, exact: np.ndarray) -> float:
    """The root mean square of the error relative to that of the exact map; 0 where both maps are zero."""
    if scores.shape != exact.shape or not np.isfinite(scores).all():
        return float("inf")
    error, size = (float(np.sqrt(np.mean(values**2))) for values in (scores - exact, exact))
    return error / size if size else (0.0 if not error else float("inf"))


def parity(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """Each method on texts, prompts and pictures, beside double precision on the CPU."""
    kinds = {PICTURES: "image"}
    for name, own in share.split({CLASSIFIER: 1.0, DECODER: 1.0, PICTURES: 1.0}):
        task_at = parity_tasks(name)
        for method in all_explainers(kinds.get(name, "text")):
            exact: list[np.ndarray] = []

            def on_cpu(method: str = method, exact: list[np.ndarray] = exact, task_at: Any = task_at) -> Cells:
                exact.append(run(method, task_at("float64", torch.device("cpu")), FEW)[0].scores)
                return {}

            told = within(own, on_cpu)
            for precision in PRECISIONS:

                def on_device(
                    method: str = method, precision: str = precision, exact: list[np.ndarray] = exact,
                    task_at: Any = task_at,
                ) -> Cells:  # fmt: skip
                    scores = run(method, task_at(precision, runtime.device()), FEW)[0].scores
                    error = map_error(scores, exact[0])
                    return {"error": error, "bound": BOUNDS[precision], "kept": error <= BOUNDS[precision]}

                cells = told or within(own, on_device)
                yield {"model": name, "method": method, "precision": precision, **cells}


@contextmanager
def model_at(size: str, precision: str, text: str, share: TimeShare) -> Iterator[tuple[Task | None, Cells]]:
    """A random model that explains the text; None, and why, where it is not to be had. It is gone afterwards."""
    tasks: list[Task] = []

    def load() -> Cells:
        tasks.append(text_task_of(random_model(size, precision), text))
        return {}

    cells = within(share, load)
    try:
        yield (tasks[0] if tasks else None), cells
    finally:
        tasks.clear()
        runtime.free()


def speed(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """Milliseconds an example of each method at its defaults."""
    pairs = {(size, precision): 1.0 for size in scale.sizes for precision in PRECISIONS}
    for (size, precision), own in share.split(pairs):
        with model_at(size, precision, TEXT, own) as (task, told):
            for method in all_explainers():
                part = own.quarter()
                row = {"model": scale.sizes[size], "precision": precision, "method": method}
                yield {**row, **(told or within(part, lambda: _example_time(method, task, part, scale)))}  # noqa: B023


def _example_time(method: str, task: Task | None, share: TimeShare, scale: Scale) -> Cells:
    assert task is not None
    if method in LEARNED:
        return {"skipped": "needs an explainer that was trained for the model"}
    first, *rest = times = list[float]([seconds_of(lambda: _run_anew(method, task, scale.params))])
    while len(rest) < MOST_ROUNDS and sum(rest) < ROUND_SECONDS and share.left() > max(times):
        rest.append(seconds_of(lambda: _run_anew(method, task, scale.params)))
    return {"ms": 1e3 * float(np.median(rest or [first])), "rounds": len(rest), "tokens": len(task.examples[0])}


def _run_anew(method: str, task: Task, params: Params) -> None:
    """Nothing that an earlier run remembered is used."""
    task.model.memo.clear()
    run(method, task, params)


def removal_work(task: Task, rows: int) -> Callable[[], object]:
    """Passes over so many texts with half of their tokens removed."""
    keep = np.random.default_rng(0).random((rows, len(task.examples[0].features))) < 0.5
    return lambda: task.masked_values([keep], "mask")


def gradient_work(task: Task, rows: int) -> Callable[[], object]:
    """Passes forward and back from points between the embeddings and zero."""

    def points(part: np.ndarray, batch: Any) -> torch.Tensor:
        embedded = task.model.embed(batch)
        places = torch.linspace(0, 1, rows, device=embedded.device, dtype=embedded.dtype)
        return embedded * places[torch.from_numpy(part).to(embedded.device), None, None]

    return lambda: task.gradients(np.zeros(rows, dtype=np.int64), points, lambda *_: None)


WORKS: dict[str, Callable[[Task, int], Callable[[], object]]] = {
    "forward": removal_work, "forward and back": gradient_work,
}  # fmt: skip


def bulk(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """The share of the peak in bfloat16 that our passes reach on many rows."""
    text = " ".join([TEXT] * scale.repeats)
    for size, own in share.split(dict.fromkeys(scale.sizes, 1.0)):
        with model_at(size, "bfloat16", text, own) as (task, told):
            for what, part in own.split(dict.fromkeys(WORKS, 1.0)):
                row = {"model": scale.sizes[size], "precision": "bfloat16", "work": what}
                yield {**row, **(told or within(part, lambda: _bulk_share(task, what, part, scale, device)))}  # noqa: B023


def _bulk_share(task: Task | None, what: str, share: TimeShare, scale: Scale, device: Device) -> Cells:
    assert task is not None
    rows = scale.bulk_rows
    passes = list[tuple[int, int]]()

    def note(_block: Any, inputs: tuple[Any, ...], given: dict[str, Any]) -> None:
        passes.append((inputs[0] if inputs else given["hidden_states"]).shape[:2])

    hook = task.model.blocks[0].register_forward_pre_hook(note, with_kwargs=True)
    try:  # warms up, too
        WORKS[what](task, rows)()
    finally:
        hook.remove()
    each = sum(pass_flops(task.model, *shape, back=what != "forward") for shape in passes) / rows
    tokens = sum(count * length for count, length in passes) / rows
    seconds = seconds_of(WORKS[what](task, rows))
    while seconds < scale.bulk_seconds and share.left() > 3 * seconds:
        rows *= 2
        seconds = seconds_of(WORKS[what](task, rows))
    reached, top = each * rows / seconds / 1e12, device.peak
    cells = {"rows": rows, "tokens/s": tokens * rows / seconds, "TFLOP/s": reached}
    if top is None:
        return {**cells, "skipped": "no peak is known"}
    return {**cells, "share of peak": reached / top, "goal": GOAL, "met": reached / top >= GOAL}


def memory(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """Growth of the peak of memory, to the budget of a pass, in work of more than one pass."""
    text = " ".join([TEXT] * scale.repeats)
    pairs = {(size, precision): 1.0 for size in scale.sizes for precision in PRECISIONS}
    for (size, precision), own in share.split(pairs):
        with model_at(size, precision, text, own) as (task, told):
            for what, part in own.split(dict.fromkeys(WORKS, 1.0)):
                row = {"model": scale.sizes[size], "precision": precision, "work": what}
                yield {**row, **(told or within(part, lambda: _growth(task, what, scale)))}  # noqa: B023


def _growth(task: Task | None, what: str, scale: Scale) -> Cells:
    assert task is not None
    budget = min(scale.budget, runtime.memory_budget())
    with mock.patch.dict(os.environ, EXEGESIS_MEMORY_BYTES=str(budget)):
        at_once = runtime.rows_at_once(task.model, len(task.examples[0]), gradients=what != "forward")
        WORKS[what](task, 2)()
        runtime.free()
        before = reset_peak_memory(task.model)
        WORKS[what](task, at_once + at_once // 4 + 1)()
        finish()
        growth = peak_memory(task.model) - before
    cells = {"rows a pass": at_once, "MB": growth / MEGABYTE, "budget MB": budget / MEGABYTE, "ratio": growth / budget}
    if scale.rehearsed:  # the growth of a whole process says little about tiny models
        return cells
    return {**cells, "at most": MOST_MEMORY, "kept": growth <= MOST_MEMORY * budget}


@contextmanager
def little_room(scale: Scale, task: Task) -> Iterator[None]:
    """Memory runs out inside, though the planner believes that there is plenty.

    On a GPU torch's allocator gets no more than `scale.room` bytes. In a rehearsal passes of more than eight rows
    raise what it would raise.
    """

    def refuse(_module: Any, _args: Any, given: dict[str, Any]) -> None:
        if any(isinstance(value, torch.Tensor) and len(value) > 8 for value in given.values()):
            raise torch.OutOfMemoryError("CUDA out of memory. (pretended)")

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, EXEGESIS_MEMORY_BYTES=str(1 << 40)))
        if scale.rehearsed:
            stack.callback(task.model.module.register_forward_pre_hook(refuse, with_kwargs=True).remove)
        else:
            runtime.free()
            total = torch.cuda.get_device_properties(runtime.device()).total_memory
            stack.callback(torch.cuda.set_per_process_memory_fraction, 1.0)
            torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + scale.room) / total)
        yield


def recovery(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """Memory that runs out halves the passes, changes no number, and leaves the device as it was."""
    size = next(iter(scale.sizes))
    text = " ".join([TEXT] * scale.repeats)
    for precision, own in share.split(dict.fromkeys(PRECISIONS, 1.0)):
        with model_at(size, precision, text, own) as (task, told):
            row = {"model": scale.sizes[size], "precision": precision}
            yield {**row, **(told or within(own, lambda: _recovered(task, scale, precision)))}  # noqa: B023


def _recovered(task: Task | None, scale: Scale, precision: str) -> Cells:
    assert task is not None
    work = removal_work(task, min(scale.samples, 2_048))
    expected = np.concatenate(work())  # type: ignore[call-overload]
    with runtime.noting() as notes, little_room(scale, task):
        got = np.concatenate(work())  # type: ignore[call-overload]
    halved = sum("Memory ran out" in note for note in notes)
    with runtime.noting() as later:
        again = np.concatenate(work())  # type: ignore[call-overload]
    error = max(map_error(got, expected), map_error(again, expected))
    kept = bool(halved) and not later and error <= BOUNDS[precision]
    return {"halved": halved, "notes afterwards": len(later), "error": error, "bound": BOUNDS[precision], "kept": kept}


LONG, SHORT = "kernel_shap", "gradient_x_input"


def sessions(scale: Scale, share: TimeShare, device: Device) -> Iterator[Cells]:
    """A session asks again and again while a job of another computes: how long it waits, and that no number changes."""
    size = next(iter(scale.sizes))
    with model_at(size, "float32", " ".join([TEXT] * scale.repeats), share) as (task, told):
        row = {"model": scale.sizes[size], "precision": "float32"}
        yield {**row, **(told or within(share, lambda: _shared(task, scale)))}


def _shared(task: Task | None, scale: Scale) -> Cells:
    assert task is not None
    params: Params = {LONG: {"n_samples": scale.samples}}
    outcome: dict[str, np.ndarray] = {}
    errors: list[BaseException] = []

    def ask(method: str, name: str, lends: bool = False) -> float:
        started = time.perf_counter()
        with runtime.turn(lends=lends):
            outcome[name] = run(method, task, params)[0].scores
            finish()
        return time.perf_counter() - started

    def job() -> None:
        try:
            with runtime.in_background():
                seconds.append(ask(LONG, "job beside", lends=True))
        except BaseException as error:
            errors.append(error)

    seconds: list[float] = []
    for _warm in range(2):
        alone, job_alone = ask(SHORT, "alone"), ask(LONG, "job alone")
    thread = threading.Thread(target=copy_context().run, args=(job,))  # which stops when the share is used up
    thread.start()
    try:
        beside = [ask(SHORT, "beside")]
        while thread.is_alive():
            beside.append(ask(SHORT, "beside"))
    finally:
        thread.join()
    if errors:
        raise errors[0]
    error = max(map_error(outcome["beside"], outcome["alone"]), map_error(outcome["job beside"], outcome["job alone"]))
    return {
        "alone ms": 1e3 * alone, "beside a job ms": 1e3 * float(np.median(beside)), "longest ms": 1e3 * max(beside),
        "answers": len(beside), "job s": job_alone, "job beside s": seconds[0], "error": error,
        "bound": BOUNDS["float32"], "kept": error <= BOUNDS["float32"],
    }  # fmt: skip
