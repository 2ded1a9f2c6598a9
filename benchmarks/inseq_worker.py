"""inseq in an environment of its own: a line of JSON in, a line of JSON out. Started by `benchmarks.peers`."""

from __future__ import annotations

import time
from typing import Any

import inseq

from benchmarks.peer_worker import Job, answer_jobs


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


if __name__ == "__main__":
    answer_jobs(Worker)
