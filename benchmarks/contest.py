"""What all sides of `benchmarks.whole_evaluation` are given, and what each of them makes of it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from benchmarks.captum_loop import PERCENTS
from benchmarks.counting import Rows
from benchmarks.ferret_peer import Peer
from benchmarks.model_work import task_on
from engine import runtime
from engine.evaluation.evaluate import evaluate
from engine.evaluation.result import Evaluation
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.store import result_store

STEPS = 50
METRICS = ("comprehensiveness", "sufficiency")
AMOUNTS = {"gradient": "", "integrated_gradients": "n_steps", "lime": "n_samples", "kernel_shap": "n_samples"}
"""By which parameter each of our methods is told how much to do."""
FERRETS = {"gradient": ("gradient", ""), "integrated_gradients": ("integrated_gradients", "n_steps"),
           "lime": ("lime", "num_samples"), "kernel_shap": ("shap", "")}  # fmt: skip
"""The same of ferret; its SHAP ends by itself."""

Settings = Mapping[str, int]
"""Steps or samples by method."""


@dataclass(frozen=True)
class Contest:
    """What all sides are given: the model as a folder, and texts."""

    folder: Path
    texts: list[str]

    @cached_property
    def model(self) -> TextClassifier:
        return load_model(str(self.folder), device=torch.device("cpu"))

    @cached_property
    def targets(self) -> list[int]:
        return [task_on(self.model, text).targets[0] for text in self.texts]

    @cached_property
    def file(self) -> Path:
        """The texts as a data set."""
        path = self.folder.parent / f"texts-{len(self.texts)}-{len(self.texts[0])}.jsonl"
        path.write_text("".join(json.dumps({"text": text, "label": "positive"}) + "\n" for text in self.texts))
        return path

    def ours(self, settings: Settings) -> Evaluation:
        """From an empty cache."""
        self.model.memo.clear()
        params = {method: params_of(method, amount) for method, amount in settings.items()}
        with empty_home():
            return evaluate(
                [str(self.folder)], str(self.file), list(settings), METRICS,
                len(self.texts), shares=PERCENTS, params=params,
            )  # fmt: skip

    def bare(self, rows: Rows) -> Callable[[], None]:
        forward, back = (_passes(self.model, lengths, bool(turn)) for turn, lengths in enumerate(rows.by_way))

        def run() -> None:
            for ids in forward:
                with torch.inference_mode():
                    self.model.module(input_ids=ids).logits.cpu()
            for ids in back:
                point = self.model.embedding(ids).detach().requires_grad_()
                torch.autograd.grad(self.model.module(inputs_embeds=point).logits[:, 0].sum(), point)

        return run

    def ferrets(self, other: Peer, settings: Settings) -> dict[str, Any]:
        named = {FERRETS[method]: amount for method, amount in settings.items()}
        asked = {name: {option: amount} if option else {} for (name, option), amount in named.items()}
        return other.ask("work", texts=self.texts, targets=self.targets, settings=asked)


def params_of(method: str, amount: int) -> dict[str, Any]:
    if method == "integrated_gradients":
        # The path and the rule of ferret and Captum.
        return {"baseline": "pad", "steps": "fixed", "n_steps": amount, "quadrature": "gauss_legendre"}
    return {AMOUNTS[method]: amount} if AMOUNTS[method] else {}


def _passes(model: TextClassifier, lengths: list[int], gradients: bool) -> list[torch.Tensor]:
    """Any tokens: what they are does not matter to the time. As many rows a pass as the runtime takes."""
    left, made = sorted(lengths, reverse=True), []
    while left:
        size = runtime.rows_at_once(model, left[0], gradients=gradients)
        made.append(torch.full((len(left[:size]), left[0]), model.mask_id))
        left = left[size:]
    return made


@contextlib.contextmanager
def empty_home() -> Iterator[None]:
    before = os.environ.get("EXEGESIS_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EXEGESIS_HOME"] = folder
        try:
            with result_store() as store:
                yield
                store.close()
        finally:
            os.environ.pop("EXEGESIS_HOME")
            os.environ.update({} if before is None else {"EXEGESIS_HOME": before})


@contextlib.contextmanager
def plain_folder() -> Iterator[Path]:
    """The embedded model with its adapter merged, as anyone would save it."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        place, model = Path(folder) / "reviews-minilm", load_model("reviews-minilm", device=torch.device("cpu"))
        module: Any = model.module
        module.save_pretrained(place)
        model.tokenizer.save_pretrained(place)
        yield place


def spent(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    run()
    return time.process_time() - started
