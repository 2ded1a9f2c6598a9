"""What reading all heads takes, and switching each off: `python -m benchmarks.heads_work [--rounds 9] [--json]`.

Reading: one pass forward and one back, counted, and its time against one bare pass forward and back of the plain
transformers module. Switching off: as many rows as there are heads and one more, against as many bare rows in batches
of the same size. Nothing of either is in the cache when the clock runs; the prediction is, as on the page.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks import picture_work, vit_base
from benchmarks.limits import Limit, judge, load
from benchmarks.model_work import TEXT, bare_forward, bare_gradient, task_on
from benchmarks.timing import in_turn, ratio, show
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

LONG = 10
"""How often the text is repeated for the long one."""
MOST_READING, MOST_SWITCHING = 2.5, 1.15
"""A reading holds matrices that the bare pass never makes, scores every head and writes all of it to the disk."""


@contextlib.contextmanager
def counted(model: AnyClassifier) -> Iterator[dict[str, int]]:
    """Rows that went forward and passes that went back inside."""
    found = {"rows forward": 0, "passes back": 0}

    def note(_: object, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        found["rows forward"] += len(next(iter((*given, *named.values()))))

    hook = model.blocks[0].register_forward_pre_hook(note, with_kwargs=True)
    with mock.patch.object(torch.autograd, "grad", wraps=torch.autograd.grad) as back:
        yield found
    hook.remove()
    found["passes back"] = back.call_count


def forgotten(request: Request) -> None:
    """All but the prediction, which a page has made before it asks for heads."""
    result_store().clear()
    explain(plain_probe(request))


def measure(name: str, run: Callable[[Request], Any], request: Request, task: Task, bare: Callable[[], Any],
            rounds: int) -> list[dict[str, Any]]:  # fmt: skip
    forgotten(request)
    with counted(task.model) as passes:
        run(request)
    times = in_turn({"bare": bare, "exegesis": lambda: run(request)}, rounds, before=lambda: forgotten(request))
    return [
        {
            "what": name, "positions": len(task.examples[0]), "by": by,
            **(passes if by == "exegesis" else dict.fromkeys(passes, "")), "ms": float(np.median(times[by])) * 1e3,
            **ratio(times, by, "bare"),
        }
        for by in times
    ]  # fmt: skip


def texts(name: str, rounds: int) -> list[dict[str, Any]]:
    model, rows = load_model(name, "float32", runtime.device()), []
    for said, text in {"text": TEXT, "long text": " ".join([TEXT] * LONG)}.items():
        task, request = task_on(model, text), Request(name, "random", Example(text))
        heads, at_once = int(np.prod(layers_and_heads(model))) + 1, runtime.rows_at_once(model, len(task.examples[0]))
        rows += measure(f"reading, {said}", read_heads, request, task, bare_gradient(task, 1, 1), rounds)
        rows += measure(
            f"switching off, {said}", switch_off_each, request, task, bare_forward(task, heads, at_once), rounds
        )
    return rows


def picture(folder: Path, rounds: int) -> list[dict[str, Any]]:
    task = vit_base.task_on(vit_base.random_vit_base(folder))
    request = Request(str(folder), "random", Picture(load_images("photos")[0].pixels))
    return measure("reading, picture", read_heads, request, task, picture_work.bare_gradient(task, 1), rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="reviews-minilm")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as home:
        os.environ["EXEGESIS_HOME"] = home
        rows = texts(given.model, given.rounds) + picture(Path(home) / "vit", given.rounds)
    show(f"All heads against bare passes, load {before} to {load()}", rows, given.json)
    return judge([limit for row in rows if row["by"] == "exegesis" for limit in limits(row)])


def limits(row: dict[str, Any]) -> list[Limit]:
    reading = row["what"].startswith("reading")
    time = Limit(f"{row['what']}, to bare", row["ratio"], MOST_READING if reading else MOST_SWITCHING, "times")
    passes = [Limit(f"{row['what']}, {name}", row[name], 1, "") for name in ("rows forward", "passes back")]
    return [*passes, time] if reading else [time]


if __name__ == "__main__":
    sys.exit(main())
