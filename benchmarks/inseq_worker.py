"""inseq in an environment of its own: a line of JSON in, a line of JSON out. Started by `benchmarks.peers`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import inseq
import torch

Job = dict[str, Any]


class Worker:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.models: dict[str, Any] = {}

    def explain(self, job: Job) -> Job:
        """Seconds of the processor, and scores of the prompt's tokens for each token that follows it."""
        method, prompt = job["method"], job["prompt"]
        if method not in self.models:
            self.models[method] = inseq.load_model(self.folder, method, device="cpu")
        started = time.process_time()
        made = self.models[method].attribute(prompt, prompt + job["follows"], show_progress=False, **job["options"])
        seconds = time.process_time() - started
        [attribution] = made.sequence_attributions
        scores = attribution.target_attributions.double()
        scores = scores.sum(-1) if scores.dim() == 3 else scores
        return {"seconds": seconds, "scores": scores.nan_to_num().tolist(), "steps": scores.shape[1]}


def main() -> None:
    torch.set_num_threads(1)
    worker, answers = Worker(sys.argv[1]), sys.stdout
    # What libraries print must not stand among the answers.
    sys.stdout = sys.stderr
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(getattr(worker, job["do"])(job)), file=answers, flush=True)


if __name__ == "__main__":
    main()
