"""ferret-xai in an environment of its own: a line of JSON in, a line of JSON out. Started by `benchmarks.peers`.

Imports nothing of Exegesis but `benchmarks.counting` and `benchmarks.peer_worker`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import shap
import torch
from ferret.evaluators.faithfulness_measures import AOPC_Comprehensiveness_Evaluation, AOPC_Sufficiency_Evaluation
from ferret.explainers.gradient import GradientExplainer, IntegratedGradientExplainer
from ferret.explainers.lime import LIMEExplainer
from ferret.explainers.shap import SHAPExplainer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from benchmarks.counting import counting
from benchmarks.peer_worker import Job, answer_jobs

SCORING = {"removal_args": {"remove_tokens": False}}
"""A removed token is [MASK], as with us; ten steps are ferret's own."""


class Worker:
    def __init__(self, folder: str) -> None:
        self.model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        given = self.model, self.tokenizer
        self.explainers = {
            "gradient": GradientExplainer(*given, multiply_by_inputs=False),
            "integrated_gradients": IntegratedGradientExplainer(*given),
            "lime": LIMEExplainer(*given),
            "shap": SHAPExplainer(*given),
        }
        self.judges = AOPC_Comprehensiveness_Evaluation(*given), AOPC_Sufficiency_Evaluation(*given)

    def work(self, job: Job) -> Job:
        """Explains and scores each text as ferret's users do, one after the other."""
        scores: dict[str, list[list[float]]] = {name: [] for name in job["settings"]}
        judged: dict[str, list[list[float]]] = {name: [] for name in job["settings"]}
        spent = dict.fromkeys(job["settings"], 0.0)
        with counting(self.model) as rows:
            started = time.process_time()
            for text, target in zip(job["texts"], job["targets"], strict=True):
                for name, settings in job["settings"].items():
                    begun = time.process_time()
                    made = self.explainers[name](text, target, call_args=dict(settings))
                    spent[name] += time.process_time() - begun
                    scores[name].append(np.asarray(made.scores, dtype=float).tolist())
                    judged[name].append(self._judged(made, target))
            seconds = time.process_time() - started
        return {"seconds": seconds, "rows": rows.count, "scores": scores, "judged": judged, "spent": spent}

    def rows(self, job: Job) -> Job:
        """How many model rows one of its methods runs by itself."""
        with counting(self.model) as rows:
            for text, target in zip(job["texts"], job["targets"], strict=True):
                self.explainers[job["name"]](text, target)
        return {"rows": rows.count}

    def _judged(self, made: Any, target: int) -> list[float]:
        """Over all tokens, as we do: it drops those below 0, and its switch for that fails with its own numpy."""
        made.scores = made.scores - made.scores.min() + 1
        return [float(judge.compute_evaluation(made, target, **SCORING).score) for judge in self.judges]

    def gaps(self, job: Job) -> Job:
        """Completeness gaps of its integrated gradients, from the logits at both ends of its path."""
        explainer = self.explainers["integrated_gradients"]
        found = []
        for text, target in zip(job["texts"], job["targets"], strict=True):
            total = float(explainer(text, target, call_args={"n_steps": job["steps"]}).scores.sum())
            x = explainer.get_input_embeds(text)
            ends = torch.cat([x, explainer._generate_baselines(x.shape[1])])
            with torch.inference_mode():
                top, bottom = self.model(inputs_embeds=ends).logits[:, target].double().tolist()
            found.append(abs(total - (top - bottom)) / max(abs(top - bottom), 1e-3))
        return {"gaps": found}

    def game(self, job: Job) -> Job:
        """The probabilities that its SHAP sees where these tokens are kept."""
        masker = shap.maskers.Text(self.tokenizer)
        texts = [str(np.asarray(masker(np.array(keep), job["text"])).item()) for keep in job["kept"]]
        with torch.inference_mode():
            logits = self.model(**self.tokenizer(texts, return_tensors="pt", padding=True)).logits
        return {"values": torch.softmax(logits.double(), -1)[:, job["target"]].tolist()}


if __name__ == "__main__":
    answer_jobs(Worker)
