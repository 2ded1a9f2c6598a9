"""Explainers run straight on a model, without cache or turns: what the tests of explainers share."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from engine.explain import predict_encoded
from engine.home import home
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.params import Plain, from_mapping
from engine.registry import all_explainers, explainer
from engine.request import Example, Input
from engine.task import Attribution, Task, TaskItem
from tests.learned import file_for, file_of
from tests.tiny import save_checkpoint

SMAT = "smat"
METHODS = tuple(all_explainers())


@functools.cache
def checkpoint(family: str, labels: int = 2) -> Path:
    """The folder of a tiny random checkpoint, written once a run."""
    place = home() / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    return save_checkpoint(family, Path(tempfile.mkdtemp(prefix=f"{family}-{labels}-", dir=place)), labels)


@functools.cache
def classifier(family: str, labels: int = 2, dtype: str = "float64") -> TextClassifier:
    """That checkpoint, loaded by the engine."""
    return load_model(str(checkpoint(family, labels)), dtype)


def task_for(model: AnyClassifier, examples: Sequence[Input | str], target: int | None = None, seed: int = 0) -> Task:
    """A task that explains `target`, or each example's predicted class."""
    given = [Example(e) if isinstance(e, str) else e for e in examples]
    encoded = [model.encode(e) for e in given]
    items = [
        TaskItem(e, prediction, model.target_index(target, prediction, e), seed)
        for e, prediction in zip(encoded, predict_encoded(model, encoded), strict=True)
    ]
    return Task(model, items, lambda method: run(method, Task(model, items)))


def run(method: str, task: Task, **params: Plain) -> list[Attribution]:
    """The method's attributions, parameters checked as the engine checks them; a made-up explainer for `smat`."""
    known = explainer(method, task.model.kind)
    if method == SMAT and "explainer" not in params:
        params["explainer"] = file_of(task.model)
    return known.function(task, from_mapping(known.params, params, method))


def forget(model: AnyClassifier) -> None:
    """Remembered passes of a model are dropped, so that a method has to run it."""
    model.memo.clear()


def fingerprint(model: AnyClassifier) -> list[tuple[str, bytes]]:
    """Every weight and buffer, bit by bit, and the attention that the model runs."""
    state = [(k, v.contiguous().view(torch.uint8).numpy().tobytes()) for k, v in model.module.state_dict().items()]
    own = getattr(model.module.config, "_attn_implementation", "")
    return [*state, ("attention", str(own).encode()), ("training", str(model.module.training).encode())]


def logit_of(model: TextClassifier, text: str, target: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """f as a function of a batch of word embeddings, and the embeddings of the text."""
    encoded = model.encode(Example(text))

    def f(embeds: Tensor) -> Tensor:
        return model.logits(model.collate([encoded] * len(embeds)), embeds)[:, target]

    return f, model.embed(model.collate([encoded]))


CHEAP: dict[str, dict[str, Plain]] = {
    "smoothgrad": {"n_samples": 3},
    "integrated_gradients": {"steps": "fixed", "n_steps": 6},
    "lime": {"n_samples": 40},
    "kernel_shap": {"n_samples": 24},
    "shapley_sampling": {"n_samples": 2},
    "bee": {"n_trials": 6, "n_steps": 5},
    "least_sensitive": {"n_neighbors": 2, "n_samples": 16},
}
"""Parameters that cost little, for tests in which the numbers themselves do not matter."""


def cheap_params(method: str, model: str) -> dict[str, Plain]:
    """Such parameters for a request; a made-up explainer for `smat`."""
    return {"explainer": file_for(model)} if method == SMAT else CHEAP.get(method, {})


def run_cheaply(method: str, task: Task) -> list[Attribution]:
    """The method with little work, members of ensembles too."""
    cheap = dataclasses.replace(task, explain_with=lambda member: run_cheaply(member, task))
    return run(method, cheap, **CHEAP.get(method, {}))
