"""The worker's side of `benchmarks.peers`. Needs torch alone: peers' own environments import it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch

Job = dict[str, Any]


def answer_jobs(make_worker: Callable[[str], Any]) -> None:
    """Answer each line of JSON with a line of JSON, on one thread.

    `make_worker`: makes the worker, given the folder of the model, which is the argument of the process. A job names
    the worker's method that does it.
    """
    torch.set_num_threads(1)
    worker, answers = make_worker(sys.argv[1]), sys.stdout
    # What libraries print must not stand among the answers.
    sys.stdout = sys.stderr
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(getattr(worker, job["do"])(job)), file=answers, flush=True)
