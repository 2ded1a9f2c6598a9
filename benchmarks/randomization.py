"""A cascade against the bare model work: `python -m benchmarks.randomization [--model t5-deep-marked] [--json]`.

Five methods on 50 texts at every block of a cascade, twelve by default, without the cache's help. Bare: the same rows
by the plain classifier on the same randomized weights, made beforehand: for each stage and chunk of texts one pass
forward, one forward and back for both gradients, one an evaluation of integrated gradients, and a captured pass for
both attention methods. Memory: the most that the process held above what it held with the model loaded.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.limits import Limit, judge, load
from benchmarks.timing import show
from engine import runtime
from engine.models.encoding import Encoded
from engine.models.load import load_model
from engine.models.text import TextClassifier
from engine.randomization.copying import copied, replaced
from engine.randomization.fresh import fresh_weights
from engine.randomization.parts import weights_of
from engine.randomization.plan import THESIS, USUAL, Plan
from engine.randomization.run import carry_out, sample_of
from engine.randomization.work import Work
from engine.request import Example

LIMIT = 1.3
STEPS = int(str(USUAL["integrated_gradients"]["n_steps"]))


def passes(model: TextClassifier, chunk: Sequence[Encoded]) -> None:
    """What the five methods need of the model, and nothing else."""
    batch = model.collate(chunk)
    with torch.inference_mode():
        model.logits(batch)
    _there_and_back(model, chunk)
    size = runtime.rows_at_once(model, int(batch.lengths.max()), gradients=True)
    rows = [one for one in chunk for _ in range(STEPS)]
    for start in range(0, len(rows), size):
        _there_and_back(model, rows[start : start + size])
    with torch.inference_mode():
        for one in chunk:
            model.captured(model.collate([one]))


def _there_and_back(model: TextClassifier, rows: Sequence[Encoded]) -> None:
    batch = model.collate(rows)
    embeds = model.embed(batch).detach().requires_grad_()
    torch.autograd.grad(model.logits(batch, embeds)[:, 0].sum(), embeds)


def bare(name: str, work: Work) -> float:
    """Seconds of the passes at the model as it is and at each stage."""
    loaded, seconds = load_model(name, "float32", runtime.device()), 0.0
    names = weights_of(loaded)
    model = dataclasses.replace(loaded, module=copied(loaded.module), memo={})
    chunks = [[_encoded(loaded, work, index) for index in chunk] for chunk in work.chunks]
    for parts, seed in work.settings():
        weights = {
            key: value for part in parts for key, value in fresh_weights(loaded, part, names[part], seed).items()
        }
        with replaced(model.module, weights):
            started = time.perf_counter()
            for chunk in chunks:
                passes(model, chunk)
            seconds += time.perf_counter() - started
    return seconds


def _encoded(model: TextClassifier, work: Work, index: int) -> Encoded:
    given = work.sample.source.read(index).input
    assert isinstance(given, Example)
    return model.encode(given)


def held() -> int:
    """Bytes that the process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(plan: Plan) -> list[dict[str, Any]]:
    """Once each: a round takes minutes, and both do the same work one after the other."""
    [name] = plan.models
    work = Work(plan, name, sample_of(plan))
    plain = bare(name, work)
    before, started = held(), time.perf_counter()
    carry_out(plan)
    ours = time.perf_counter() - started
    maps = len(work.settings()) * len(work.sample.indices) * len(plan.methods)
    size = sum(value.nbytes for value in load_model(name).module.parameters())
    return [
        {"by": by, "s": seconds, "maps": maps, "maps a second": maps / seconds, "ratio": seconds / plain,
         "more memory, MB": extra / 1e6, "the model, MB": size / 1e6}
        for by, seconds, extra in (("bare", plain, 0), ("exegesis", ours, held() - before))
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="t5-deep-marked")
    parser.add_argument("--dataset", default="reviews")
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    plan = Plan((given.model,), given.dataset, THESIS, given.examples, modes=("cascading",), seeds=1)
    before = load()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as home:
        os.environ["EXEGESIS_HOME"] = home
        rows = measure(plan)
    show(f"Cascading randomization, load {before} to {load()}", rows, given.json)
    return judge([Limit("cascading randomization, to bare", rows[-1]["ratio"], LIMIT, "times")])


if __name__ == "__main__":
    sys.exit(main())
