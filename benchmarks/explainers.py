"""Explainers, readings of heads, and scores of maps against the bare model work that they need.

Bare: the plain transformers module on as many rows, in batches as large, without anything of this project around it.
"""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.harness import (
    TEXT,
    Limit,
    Measurement,
    Table,
    benchmark,
    empty_home,
    peak_memory,
    ratio_to,
    reset_peak_memory,
    scratch_folder,
    time_in_turn,
    time_rows,
)
from benchmarks.peers import captum_ig, captum_kernel_shap, lime_text, shap_kernel
from benchmarks.workloads import (
    LONG_TEXT,
    bare_picture_forward,
    bare_picture_gradient,
    bare_text_forward,
    bare_text_gradient,
    picture_task,
    random_vit_base,
    run_method,
    text_task,
)
from engine import runtime
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.explainers.perturbation import draw_samples
from engine.heads.readings import plain_probe, read_heads, switch_off_each
from engine.heads.scaling import layers_and_heads
from engine.metrics.catalog import PERCENTS
from engine.metrics.faithfulness import RowCounts, SharedRows, masks_without_top
from engine.metrics.ranking import count_of_percent
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.request import Example, Picture, Request
from engine.store import result_store
from engine.task import Task

TEXTS = {"text": TEXT, "long text": LONG_TEXT}
Work = Callable[[], Any]


def load_text_model(name: str) -> TextClassifier:
    return load_model(name, "float32", runtime.device())


SAMPLES, STEPS = 512, 50


@benchmark(model="reviews-minilm", rounds=9)
def model_work(model: str, rounds: int) -> Measurement:
    """Explainers against the bare model work that they need.

    Bare: the plain transformers module on the same rows, as one batch of ids and as chunks of the size that the runtime
    uses; the faster of the two is the yardstick. Captum, shap and lime run beside on the same number of evaluations.
    """
    loaded = load_text_model(model)
    task = text_task(loaded)
    length, item = len(task.examples[0]), task.items[0]
    forward = runtime.rows_at_once(loaded, length)
    back = runtime.rows_at_once(loaded, length, gradients=True)
    unique = len(np.unique(draw_samples(len(item.encoded.features), SAMPLES, item.generator()), axis=0))

    def rows(method: str, most: float, bare: dict[str, Work], run: Work, peers: dict[str, Work]) -> Table:
        times = time_in_turn({**bare, "exegesis": run, **peers}, rounds)
        fastest = min(bare, key=lambda name: float(np.median(times[name])))
        return [
            {**row, "at most": most if row["by"] == "exegesis" else ""}
            for row in time_rows(times, fastest, method=method)
        ]

    table = [
        *rows(
            "integrated_gradients",
            1.10,
            {"one batch": bare_text_gradient(task, STEPS, STEPS), "chunks": bare_text_gradient(task, STEPS, back)},
            run_method(task, "integrated_gradients", steps="fixed", n_steps=STEPS),
            {"captum": captum_ig(task, STEPS)},
        ),
        *rows(
            "kernel_shap",
            1.15,
            {
                "one batch": bare_text_forward(task, SAMPLES, SAMPLES),
                "chunks": bare_text_forward(task, SAMPLES, forward),
            },
            run_method(task, "kernel_shap", n_samples=SAMPLES),
            {"captum": captum_kernel_shap(task, SAMPLES), "shap": shap_kernel(task, SAMPLES)},
        ),
        *rows(
            "lime",
            1.15,
            {"one batch": bare_text_forward(task, unique, unique), "chunks": bare_text_forward(task, unique, forward)},
            run_method(task, "lime", n_samples=SAMPLES),
            {"lime": lime_text(task, SAMPLES)},
        ),
    ]
    return Measurement({"Explainers against the bare model work": table})


RELEVANCE_METHODS = ("attention_x_gradient", "attn_lrp")
MOST_RELEVANCE = 1.3


@benchmark(model="reviews-minilm", rounds=15)
def relevance_work(model: str, rounds: int) -> Measurement:
    """Relevance methods against one bare pass forward and back.

    Bare: the plain transformers module, with its own attention, from embeddings (a picture: pixels) to the logit and
    back. A text of 22 tokens, one of about 200, and a picture on ViT-Base/16. Both methods get their maps from one such
    pass.
    """

    def rows(name: str, task: Task, bare: Work) -> Table:
        times = time_in_turn(
            {"bare": bare, **{method: run_method(task, method) for method in RELEVANCE_METHODS}}, rounds
        )
        return time_rows(times, input=name, positions=len(task.examples[0]))

    loaded, table = load_text_model(model), []
    for name, text in TEXTS.items():
        task = text_task(loaded, text)
        table += rows(name, task, bare_text_gradient(task, 1, 1))
    with scratch_folder() as folder:
        task = picture_task(random_vit_base(folder))
        table += rows("picture", task, bare_picture_gradient(task, 1))
    limits = [
        Limit(f"{row['by']}, {row['input']}, to bare", row["ratio"], MOST_RELEVANCE)
        for row in table
        if row["by"] in RELEVANCE_METHODS
    ]
    return Measurement({"Relevance methods against one bare pass forward and back": table}, limits)


PICTURE_STEPS = 12
PICTURE_SAMPLES, SEGMENTS = 56, 40
MOST_PICTURE = 1.10


@benchmark(rounds=5)
def picture_work(rounds: int) -> Measurement:
    """Explainers of pictures against the bare passes that they need, on ViT-Base/16.

    Bare: a plain loop over the transformers module, as many rows in batches as large as the explainer's. What the
    explainer does besides (replacing patches, drawing coalitions, solving for scores) must stay within a tenth of that.
    `kernel_shap` removes superpixels, so that few evaluations do; its superpixels are found within its time.
    """
    segments = {"n_samples": PICTURE_SAMPLES, "segments": "slic", "n_segments": SEGMENTS}
    table = []
    with scratch_folder() as folder:
        task = picture_task(random_vit_base(folder))
        for method, passes, bare, params in (
            (
                "integrated_gradients",
                PICTURE_STEPS,
                bare_picture_gradient,
                {"steps": "fixed", "n_steps": PICTURE_STEPS},
            ),
            ("kernel_shap", PICTURE_SAMPLES, bare_picture_forward, segments),
        ):
            work = {"bare": bare(task, passes), "exegesis": run_method(task, method, **params)}
            table += time_rows(time_in_turn(work, rounds), method=method, passes=passes)
    limits = [
        Limit(f"{row['method']}, to bare", row["ratio"], MOST_PICTURE) for row in table if row["by"] == "exegesis"
    ]
    return Measurement({"Explainers of pictures against the bare passes": table}, limits)


MASKS = 500
MARGIN = 1.10
SHARE_KEPT = 0.5


@benchmark(masks=MASKS, operators="mean,drop")
def picture_memory(masks: int, operators: str) -> Measurement:
    """Peak memory of 500 masks of a picture on ViT-Base/16.

    In a process of its own: the model is loaded and warmed, then the kernel's own mark of the largest resident memory
    is set back, and the masks are evaluated as `kernel_shap` does. The growth must stay within the runtime's budget for
    a pass, give or take a tenth. On a GPU the peak is that of torch's allocator.
    """
    with scratch_folder() as folder, runtime.turn():
        task = picture_task(random_vit_base(folder))
        features = len(task.examples[0].features)
        task.masked_values([np.ones((1, features), dtype=bool)], "mean")
        budget = runtime.memory_budget() / 1e6
        growth = {}
        for operator in operators.split(","):
            keep = np.random.default_rng(0).random((masks, features)) < SHARE_KEPT
            before = reset_peak_memory(task.model)
            task.masked_values([keep], operator)
            growth[operator] = (peak_memory(task.model) - before) / 1e6
    table = [
        {"operator": operator, "masks": masks, "MB": size, "budget MB": budget} for operator, size in growth.items()
    ]
    limits = [Limit(f"growth with {operator}", size, budget * MARGIN, "MB") for operator, size in growth.items()]
    return Measurement({"Peak memory of masks of a picture": table}, limits)


@benchmark(model="reviews-minilm", rows=128, rounds=9)
def kept_memory(model: str, rows: int, rounds: int) -> Measurement:
    """Bare passes before and after the C library keeps freed memory, as it does in a turn.

    Medians of the processor's time and of the page faults of a pass. A model a process: what was set cannot be set
    back, and the C library raises its limits by itself once a larger model has run.
    """
    with mock.patch.object(runtime, "keep_memory"):
        run = bare_text_forward(text_task(load_text_model(model)), rows, rows)
        usual, faults = _pass_cost(run, rounds)
    runtime.keep_memory()
    kept, left = _pass_cost(run, rounds)
    row = {"ms": 1e3 * usual, "ms, kept": 1e3 * kept, "ratio": kept / usual, "faults": faults, "faults, kept": left}
    return Measurement({f"A pass of {rows} rows of {model}": [row]})


def _pass_cost(run: Work, rounds: int) -> tuple[float, float]:
    """Medians of the seconds of the processor and of the page faults of a pass."""
    run()
    costs = []
    for _ in range(rounds):
        seconds, faults = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        run()
        costs.append((time.process_time() - seconds, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults))
    seconds, faults = np.median(costs, axis=0)
    return float(seconds), float(faults)


MOST_READING, MOST_SWITCHING = 2.5, 1.15
"""A reading holds matrices that the bare pass never makes, scores every head and writes all of it to the disk."""


@benchmark(model="reviews-minilm", rounds=9)
def heads_work(model: str, rounds: int) -> Measurement:
    """What reading all heads takes, and switching each off.

    Reading: one pass forward and one back, counted, and its time against one bare pass forward and back of the plain
    transformers module. Switching off: as many rows as there are heads and one more, against as many bare rows in
    batches of the same size. Nothing of either is in the cache when the clock runs; the prediction is, as on the page.
    """
    with empty_home() as home:
        table = [*_text_heads(model, rounds), *_picture_heads(home / "vit", rounds)]
    limits = []
    for row in table:
        if row["by"] == "exegesis":
            reading = row["what"].startswith("reading")
            passes = ("rows forward", "passes back") if reading else ()
            limits += [Limit(f"{row['what']}, {name}", row[name], 1, "") for name in passes]
            limits.append(Limit(f"{row['what']}, to bare", row["ratio"], MOST_READING if reading else MOST_SWITCHING))
    return Measurement({"All heads against bare passes": table}, limits)


def _text_heads(name: str, rounds: int) -> Table:
    model, table = load_text_model(name), []
    for what, text in TEXTS.items():
        task, request = text_task(model, text), Request(name, "random", Example(text))
        rows, at_once = int(np.prod(layers_and_heads(model))) + 1, runtime.rows_at_once(model, len(task.examples[0]))
        table += _measure_heads(f"reading, {what}", read_heads, request, task, bare_text_gradient(task, 1, 1), rounds)
        bare = bare_text_forward(task, rows, at_once)
        table += _measure_heads(f"switching off, {what}", switch_off_each, request, task, bare, rounds)
    return table


def _picture_heads(folder: Path, rounds: int) -> Table:
    task = picture_task(random_vit_base(folder))
    request = Request(str(folder), "random", Picture(load_images("photos")[0].pixels))
    return _measure_heads("reading, picture", read_heads, request, task, bare_picture_gradient(task, 1), rounds)


def _measure_heads(
    what: str, run: Callable[[Request], Any], request: Request, task: Task, bare: Work, rounds: int
) -> Table:
    def clear_cache() -> None:
        """Clear the cache but for the prediction, which a page has made before it asks for heads."""
        result_store().clear()
        explain(plain_probe(request))

    clear_cache()
    with count_passes(task.model) as passes:
        run(request)
    times = time_in_turn({"bare": bare, "exegesis": lambda: run(request)}, rounds, before=clear_cache)
    return [
        {**row, **(passes if row["by"] == "exegesis" else dict.fromkeys(passes, ""))}
        for row in time_rows(times, what=what, positions=len(task.examples[0]))
    ]


@contextlib.contextmanager
def count_passes(model: AnyClassifier) -> Iterator[dict[str, int]]:
    """Count the rows that go forward and the passes that go back inside."""
    counts = {"rows forward": 0, "passes back": 0}

    def note(_: object, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        counts["rows forward"] += len(next(iter((*inputs, *named.values()))))

    hook = model.blocks[0].register_forward_pre_hook(note, with_kwargs=True)
    try:
        with mock.patch.object(torch.autograd, "grad", wraps=torch.autograd.grad) as back:
            yield counts
    finally:
        hook.remove()
    counts["passes back"] = back.call_count


SCORED_TEXTS = 24
MAPS = 8
MOST_SCORING = 1.2

TextMasks = list[tuple[EncodedText, list[np.ndarray]]]
"""Each text with the features that each map keeps, a row a step, of both ways."""


@benchmark(rounds=5)
def evaluation_work(rounds: int) -> Measurement:
    """Scoring many maps against the bare model work.

    Comprehensiveness and sufficiency at ten steps of several maps on texts of different lengths. Bare: every different
    row once, as ids, by the plain transformers module in passes of like length. Beside it what loops do: the rows of
    one map on one text at a time, none shared.
    """
    model = load_model("reviews-minilm", device=runtime.device())
    with runtime.turn():
        masks, counts = draw_masks(model), RowCounts()
        score_shared(model, masks, counts)
        work: dict[str, Callable[[], object]] = {
            "bare": score_bare(model, masks),
            "exegesis": lambda: score_shared(model, masks),
            "one map at a time": lambda: score_one_by_one(model, masks),
        }
        times = time_in_turn(work, rounds)
    table = [
        {
            "by": by,
            "ms": 1e3 * float(np.median(seconds)),
            "rows": counts.requested if by == "one map at a time" else counts.evaluated,
            "examples a second": SCORED_TEXTS * MAPS / float(np.median(seconds)),
            **ratio_to(times, by, "bare"),
            "at most": MOST_SCORING if by == "exegesis" else "",
        }
        for by, seconds in times.items()
    ]
    return Measurement({"Scoring maps": table})


def draw_masks(model: TextClassifier) -> TextMasks:
    """Orders by chance stand for maps: what is shared by maps that agree comes on top."""
    draw = np.random.default_rng(0)
    encoded = [model.encode(example.example) for example in load("reviews").examples[:SCORED_TEXTS]]
    return [(text, [_removal_steps(draw.permutation(len(text.features))) for _ in range(MAPS)]) for text in encoded]


def _removal_steps(order: np.ndarray) -> np.ndarray:
    fewer = masks_without_top(order, [count_of_percent(percent, len(order)) for percent in PERCENTS])
    return np.concatenate([fewer, ~fewer])


def score_shared(model: TextClassifier, masks: TextMasks, counts: RowCounts | None = None) -> None:
    """Run the rows of all maps as an evaluation does."""
    rows = SharedRows(counts)
    for encoded, maps in masks:
        for keep in maps:
            rows.add(encoded, 0, keep)
    rows.values(model, "mask")


def score_bare(model: TextClassifier, masks: TextMasks) -> Work:
    """The same rows, prepared beforehand."""
    rows = [_ids(model, encoded, keep) for encoded, maps in masks for keep in np.unique(np.concatenate(maps), axis=0)]
    rows.sort(key=len, reverse=True)
    passes = []
    while rows:
        size = runtime.rows_at_once(model, len(rows[0]))
        passes.append(_pad(model, rows[:size]))
        rows = rows[size:]
    return lambda: _run_passes(model, passes)


def score_one_by_one(model: TextClassifier, masks: TextMasks) -> None:
    """A map on a text at a time, its rows in one pass."""
    for encoded, maps in masks:
        for keep in maps:
            _run_passes(model, [_pad(model, [_ids(model, encoded, row) for row in keep])])


def _run_passes(model: TextClassifier, passes: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    with torch.inference_mode():
        for ids, mask in passes:
            model.module(input_ids=ids, attention_mask=mask).logits.cpu()


def _ids(model: TextClassifier, encoded: EncodedText, keep: np.ndarray) -> np.ndarray:
    ids = encoded.ids.copy()
    ids[encoded.features[~keep]] = model.mask_id
    return ids


def _pad(model: TextClassifier, rows: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = np.full((len(rows), max(map(len, rows))), model.pad_id)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    visible = np.arange(ids.shape[1]) < np.array([len(row) for row in rows])[:, None]
    return torch.from_numpy(ids).to(model.device), torch.from_numpy(visible).to(model.device, torch.int64)
