"""Captum, shap and lime asked the same question, with their usual settings and their largest sensible batches.

And a loop as one writes it with Captum: a text at a time, a method at a time, then ten steps of removal of each map.

ferret-xai 0.4.2 needs older libraries than ours, and inseq many that we do without. Each runs in an environment of its
own (`benchmarks.ferret_worker`, `benchmarks.inseq_worker`), which is made at the first run, in the cache folder; it
takes some minutes and 3 GB.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from captum.attr import IntegratedGradients, KernelShap, Lime, Saliency
from torch import Tensor

from benchmarks.workloads import text_task
from engine.home import home, project_root
from engine.lazy import LazyModule
from engine.metrics.faithfulness import masks_without_top
from engine.metrics.ranking import count_of_percent
from engine.models.text_classifier import TextClassifier
from engine.task import Task

shap: Any = LazyModule("shap")
lime_text_module: Any = LazyModule("lime.lime_text")
"""Both take seconds to import, and most comparisons do without them."""

BATCH = 64
Evaluate = Callable[[np.ndarray], np.ndarray]
"""m of rows of 0/1 features."""


def logit_of_embeddings(task: Task) -> Callable[[Tensor], Tensor]:
    """f as a function of word embeddings `[row seq d_model]`."""
    target = task.targets[0]

    def forward(embeds: Tensor) -> Tensor:
        return task.model.module(inputs_embeds=embeds).logits[:, target]

    return forward


def probability_of_masks(task: Task) -> Callable[[np.ndarray], np.ndarray]:
    """m as a function of 0/1 features, a removed one being [MASK], by the plain module."""
    encoded, model = task.examples[0], cast(TextClassifier, task.model)
    ids = torch.from_numpy(encoded.ids).to(model.device)
    features = torch.from_numpy(encoded.features).to(model.device)

    def evaluate(keep: np.ndarray) -> np.ndarray:
        kept = torch.as_tensor(np.asarray(keep), device=model.device).bool()
        rows = ids.repeat(len(kept), 1)
        rows[:, features] = torch.where(kept, rows[:, features], model.mask_id)
        with torch.inference_mode():
            parts = [model.module(input_ids=part).logits for part in rows.split(BATCH)]
        return torch.softmax(torch.cat(parts).double(), -1)[:, task.targets[0]].cpu().numpy()

    return evaluate


def path_ends(task: Task, baseline: str = "mask") -> tuple[Tensor, Tensor]:
    """The embeddings of the input and of its baseline, `[1 seq d_model]` each."""
    batch = task.batch()
    x = task.model.embed(batch).detach()
    start = x.clone()
    start[:, task.examples[0].features] = task.model.removal_embedding(batch, baseline)
    return x, start


def captum_ig(task: Task, steps: int, rule: str = "gausslegendre", baseline: str = "mask") -> Callable[[], Tensor]:
    method, (x, start) = IntegratedGradients(logit_of_embeddings(task)), path_ends(task, baseline)
    return lambda: method.attribute(x, start, n_steps=steps, method=rule, internal_batch_size=BATCH)


def captum_gradient(task: Task) -> Callable[[], Tensor]:
    method, (x, _) = Saliency(logit_of_embeddings(task)), path_ends(task)
    return lambda: method.attribute(x.clone().requires_grad_(), abs=False)


def captum_lime(task: Task, samples: int, evaluate: Evaluate | None = None) -> Callable[[], Tensor]:
    """With its own kernel and its own linear model. `evaluate`: m of 0/1 features, in place of the model's."""
    return _sampling(Lime, task, samples, evaluate)


def captum_kernel_shap(task: Task, samples: int, evaluate: Evaluate | None = None) -> Callable[[], Tensor]:
    """`evaluate`: m of 0/1 features, in place of the model's."""
    return _sampling(KernelShap, task, samples, evaluate)


def _sampling(method: type, task: Task, samples: int, evaluate: Evaluate | None) -> Callable[[], Tensor]:
    evaluate, n = evaluate or probability_of_masks(task), len(task.examples[0].features)
    explainer = method(lambda z: torch.from_numpy(evaluate(z.numpy())))
    ends = {"inputs": torch.ones(1, n), "baselines": torch.zeros(1, n)}
    return lambda: explainer.attribute(**ends, n_samples=samples, perturbations_per_eval=BATCH)


def shap_kernel(task: Task, samples: int) -> Callable[[], Any]:
    n = len(task.examples[0].features)
    method = shap.KernelExplainer(probability_of_masks(task), np.zeros((1, n)))
    return lambda: method.shap_values(np.ones((1, n)), nsamples=samples, silent=True)


def lime_text(task: Task, samples: int) -> Callable[[], Any]:
    """lime's own text explainer, its words being the tokens by position."""
    evaluate, n = probability_of_masks(task), len(task.examples[0].features)
    names = " ".join(f"t{i:03d}" for i in range(n))

    def classify(texts: list[str]) -> np.ndarray:
        keep = np.array([[f"t{i:03d}" in text for i in range(n)] for text in texts])
        value = evaluate(keep)
        return np.stack([1 - value, value], axis=1)

    method = lime_text_module.LimeTextExplainer(random_state=0, bow=True)
    return lambda: method.explain_instance(names, classify, labels=(1,), num_features=n, num_samples=samples)


PERCENTS = tuple(range(10, 101, 10))
"""Percent of the tokens."""


def explain_and_score(
    model: TextClassifier, texts: list[str], settings: Mapping[str, int]
) -> list[tuple[float, float]]:
    """Comprehensiveness and sufficiency of each map. `settings`: steps or samples by method."""
    scores = []
    for text in texts:
        task = text_task(model, text)
        for method, amount in settings.items():
            scores.append(score_map(task, CAPTUM_METHODS[method](task, amount)))
    return scores


def score_map(task: Task, scores: np.ndarray) -> tuple[float, float]:
    """Both from one pass over the ten steps each way, and the text itself."""
    fewer = masks_without_top(np.argsort(-scores), [count_of_percent(percent, len(scores)) for percent in PERCENTS])
    whole = np.ones((1, len(scores)), dtype=bool)
    m = probability_of_masks(task)(np.concatenate([whole, fewer, ~fewer]))
    return float((m[0] - m[1:11]).mean()), float((m[0] - m[11:]).mean())


def _sum_embeddings(run: Callable[[], Any], task: Task) -> np.ndarray:
    scores: np.ndarray = run().sum(-1)[0].detach().cpu().numpy()
    return scores[task.examples[0].features]


CAPTUM_METHODS: Mapping[str, Callable[[Task, int], np.ndarray]] = {
    "gradient": lambda task, _: _sum_embeddings(captum_gradient(task), task),
    "integrated_gradients": lambda task, steps: _sum_embeddings(captum_ig(task, steps), task),
    "lime": lambda task, samples: captum_lime(task, samples)().numpy()[0],
    "kernel_shap": lambda task, samples: captum_kernel_shap(task, samples)().numpy()[0],
}


FERRET = ("transformers<4.58", "pyarrow<20", "ferret-xai==0.4.2")
"""pyarrow: the newest that its numpy, below 2, can be used with."""
INSEQ = "inseq==0.7.1"
MINUTES = 20

Job = dict[str, Any]


class NotThereError(Exception):
    """A tool cannot be installed or run, and why."""


class PeerProcess:
    """The worker's process: jobs go in, answers come out, one at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, do: str, **given: object) -> Job:
        """The answer to one job. Errors: the worker has ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Job:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise NotThereError(f"its process ended with exit status {self.process.wait()}")
        answer: Job = json.loads(line)
        return answer


def ferret_peer(model: Path) -> contextlib.AbstractContextManager[PeerProcess]:
    """ferret-xai with the model of that folder, on one thread. Errors: `NotThereError`."""
    return _peer("ferret", model, find_python())


def inseq_peer(model: Path) -> contextlib.AbstractContextManager[PeerProcess]:
    """inseq with the model of that folder, on one thread. Errors: `NotThereError`."""
    return _peer("inseq", model, _environment("inseq", (f"transformers=={version('transformers')}", INSEQ)))


@contextlib.contextmanager
def _peer(name: str, model: Path, python: Path) -> Iterator[PeerProcess]:
    command = [str(python), "-m", f"benchmarks.{name}_worker", str(model)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TRANSFORMERS_OFFLINE": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=project_root(), env=alone, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            started = PeerProcess(process)
            started.answer()
            yield started
        finally:
            process.kill()


def find_python() -> Path:
    """Return the Python of ferret's environment, which is made at first."""
    return _environment("ferret", FERRET)


def _environment(name: str, packages: tuple[str, ...]) -> Path:
    """The Python of a tool's environment, which is made at first. `EXEGESIS_FERRET`, `EXEGESIS_INSEQ` name another."""
    folder = Path(os.environ.get(f"EXEGESIS_{name.upper()}") or home() / "benchmarks" / name)
    interpreter = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"Making an environment for {packages[-1]} in {folder}; it takes some minutes.", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(folder)])
        torch = f"torch=={version('torch').partition('+')[0]}"
        _run([str(interpreter), "-m", "pip", "install", "--quiet", "--no-input", torch, *packages])
        (folder / "ready").touch()
    return interpreter


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * MINUTES)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThereError(f"its environment cannot be made ({type(error).__name__})") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[-200:]
        raise NotThereError(f"its environment cannot be made ({reason})")
