"""What reading all heads takes, and switching each off: `python -m benchmarks.heads_work [--rounds 9] [--json]`.

Reading: one pass forward and one back, counted, and its time against one bare pass forward and back of the plain
transformers module. Switching off: as many rows as there are heads and one more, against as many bare rows in batches
of the same size. Nothing of either is in the cache when the clock runs; the prediction is, as on the page.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.harness import (
    Limit,
    benchmark_parser,
    judge,
    load_average,
    ratio_to,
    scratch_folder,
    show,
    time_in_turn,
)
from benchmarks.workloads import (
    LONG_TEXT,
    TEXT,
    bare_picture_gradient,
    bare_text_forward,
    bare_text_gradient,
    picture_task,
    random_vit_base,
    text_task,
)
from engine import runtime
from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.heads.readings import plain_probe, read_heads, switch_off_each
from engine.heads.scaling import layers_and_heads
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.request import Example, Picture, Request
from engine.store import result_store
from engine.task import Task

MOST_READING, MOST_SWITCHING = 2.5, 1.15
"""A reading holds matrices that the bare pass never makes, scores every head and writes all of it to the disk."""


@contextlib.contextmanager
def count_passes(model: AnyClassifier) -> Iterator[dict[str, int]]:
    """Rows that went forward and passes that went back inside."""
    found = {"rows forward": 0, "passes back": 0}

    def note(_: object, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        found["rows forward"] += len(next(iter((*given, *named.values()))))

    hook = model.blocks[0].register_forward_pre_hook(note, with_kwargs=True)
    with mock.patch.object(torch.autograd, "grad", wraps=torch.autograd.grad) as back:
        yield found
    hook.remove()
    found["passes back"] = back.call_count


def clear_cache(request: Request) -> None:
    """Clear the cache but for the prediction, which a page has made before it asks for heads."""
    result_store().clear()
    explain(plain_probe(request))


def measure(name: str, run: Callable[[Request], Any], request: Request, task: Task, bare: Callable[[], Any],
            rounds: int) -> list[dict[str, Any]]:  # fmt: skip
    clear_cache(request)
    with count_passes(task.model) as passes:
        run(request)
    times = time_in_turn({"bare": bare, "exegesis": lambda: run(request)}, rounds, before=lambda: clear_cache(request))
    return [
        {
            "what": name, "positions": len(task.examples[0]), "by": by,
            **(passes if by == "exegesis" else dict.fromkeys(passes, "")), "ms": float(np.median(times[by])) * 1e3,
            **ratio_to(times, by, "bare"),
        }
        for by in times
    ]  # fmt: skip


def texts(name: str, rounds: int) -> list[dict[str, Any]]:
    model, rows = load_model(name, "float32", runtime.device()), []
    for said, text in {"text": TEXT, "long text": LONG_TEXT}.items():
        task, request = text_task(model, text), Request(name, "random", Example(text))
        heads, at_once = int(np.prod(layers_and_heads(model))) + 1, runtime.rows_at_once(model, len(task.examples[0]))
        rows += measure(f"reading, {said}", read_heads, request, task, bare_text_gradient(task, 1, 1), rounds)
        rows += measure(
            f"switching off, {said}", switch_off_each, request, task, bare_text_forward(task, heads, at_once), rounds
        )
    return rows


def picture(folder: Path, rounds: int) -> list[dict[str, Any]]:
    task = picture_task(random_vit_base(folder))
    request = Request(str(folder), "random", Picture(load_images("photos")[0].pixels))
    return measure("reading, picture", read_heads, request, task, bare_picture_gradient(task, 1), rounds)


def main() -> int:
    options = benchmark_parser(__doc__, model="reviews-minilm", rounds=9).parse_args()
    before = load_average()
    with scratch_folder() as home:
        os.environ["EXEGESIS_HOME"] = str(home)
        rows = texts(options.model, options.rounds) + picture(home / "vit", options.rounds)
    show(f"All heads against bare passes, load {before} to {load_average()}", rows, options.json)
    return judge([limit for row in rows if row["by"] == "exegesis" for limit in limits(row)])


def limits(row: dict[str, Any]) -> list[Limit]:
    reading = row["what"].startswith("reading")
    time = Limit(f"{row['what']}, to bare", row["ratio"], MOST_READING if reading else MOST_SWITCHING, "times")
    passes = [Limit(f"{row['what']}, {name}", row[name], 1, "") for name in ("rows forward", "passes back")]
    return [*passes, time] if reading else [time]


if __name__ == "__main__":
    sys.exit(main())
