"""How long `engine.explain` takes for a cached request: `python -m benchmarks.explain_hit [--rounds 1000] [--json]`.

In a cache of its own. Beside it the look for changed model files, which comes before the cache may be trusted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import benchmark_parser, scratch_folder, show


def times(name: str, run: Callable[[], object], rounds: int) -> dict[str, Any]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        taken.append((time.perf_counter() - started) * 1e3)
    median, tail = np.percentile(taken, [50, 99])
    return {"what": name, "ms, median": float(median), "ms, p99": float(tail)}


def measure(model: str, rounds: int) -> list[dict[str, Any]]:
    from benchmarks.workloads import TEXT
    from engine.explain import explain
    from engine.models.catalog import revision
    from engine.request import Example, Request

    request = Request(model, "gradient_x_input", Example(TEXT))
    explain(request)
    assert explain(request).cached, "the second answer must come from the cache"
    return [
        times("cached explain", lambda: explain(request), rounds),
        times("of which: have the files changed?", lambda: revision(model), rounds),
    ]


def main() -> None:
    options = benchmark_parser(__doc__, model="reviews-minilm", rounds=1000).parse_args()
    with scratch_folder() as home:
        os.environ["EXEGESIS_HOME"] = str(home)
        show("A cached explanation", measure(options.model, options.rounds), options.json)


if __name__ == "__main__":
    main()
