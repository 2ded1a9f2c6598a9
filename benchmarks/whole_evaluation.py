"""Explaining and scoring by us, by ferret-xai and by a loop over Captum."""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.utils import logging

from benchmarks.counting import Rows, counting
from benchmarks.harness import Measurement, Table, benchmark, empty_home, ratio_to, scratch_folder
from benchmarks.peers import PERCENTS, NotThereError, PeerProcess, explain_and_score, ferret_peer
from benchmarks.shapley import FEATURES, as_game, estimate_shapley
from benchmarks.workloads import text_task
from engine import runtime
from engine.data.datasets import load
from engine.evaluation.experiment import evaluate
from engine.evaluation.result import Evaluation
from engine.explain import explain_many
from engine.explainers.shapley import all_coalitions, exact, least_budget
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.request import Example, Request

AGAINST_BARE, AGAINST_FERRET = 1.2, 1.5
EQUAL_ERROR_SPEED = 3.0
"""Times ferret's speed at equal error."""
SEEDS = 3
BUDGETS = (32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512)
FEWER_STEPS = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50)
SAME_GAME = 1e-4
STEPS = 50
METRICS = ("comprehensiveness", "sufficiency")
AMOUNTS = {"gradient": "", "integrated_gradients": "n_steps", "lime": "n_samples", "kernel_shap": "n_samples"}
"""The parameter that sets the amount of work of each of our methods."""
FERRET_METHODS = {"gradient": ("gradient", ""), "integrated_gradients": ("integrated_gradients", "n_steps"),
           "lime": ("lime", "num_samples"), "kernel_shap": ("shap", "")}  # fmt: skip
"""Name and parameter of each in ferret; its SHAP ends by itself."""

Settings = Mapping[str, int]
"""Steps or samples by method."""


@benchmark(texts=6, rounds=2)
def whole_evaluation(texts: int, rounds: int) -> Measurement:
    """Explaining and scoring by us, by ferret-xai and by a loop over Captum.

    The same texts of `reviews`, the same model (reviews-minilm, saved as a plain folder), four methods,
    comprehensiveness and sufficiency at ten steps. Equal settings: 50 steps of integrated gradients; as many samples of
    LIME as ferret takes by itself (the mean of its squares of lengths), on all sides; as many evaluations for Shapley
    values as its partition took in the mean. `exegesis` explains and scores a random order besides, as it always does,
    from an empty cache.

    Bare: as many rows of as many tokens as `exegesis` ran, forward or forward and back, by the plain transformers
    module in passes of like length. Seconds are of the processor, one thread on all sides.

    Then how soon we are as exact as ferret-xai. On texts of 12 tokens, all of them whole words, so that ferret's SHAP
    plays the very game that ours does (which is checked). Its error: ||φ - exact|| / ||exact||, from all 4,096
    coalitions, in the mean over texts. That of integrated gradients: the completeness gap, in the mean. Ours takes the
    least budget that is no worse.
    """
    warnings.simplefilter("ignore")  # Captum warns of its own solvers
    torch.set_num_threads(1)
    os.environ["EXEGESIS_DEVICE"] = "cpu"  # where ferret runs
    with plain_folder() as folder, optional_ferret(folder) as other:
        contest = Contest(folder, reviews(texts))
        settings = equal_settings(contest, other)
        amounts = ", ".join(f"{method} {amount}" for method, amount in settings.items() if AMOUNTS[method])
        tables = {f"Equal settings ({amounts})": measure(contest, other, settings, rounds)}
        if other is not None:
            short = Contest(folder, whole_word_texts(contest.model, texts))
            tables["Equal error"] = measure_equal_error(short, other, rounds)
    return Measurement(tables)


@dataclass(frozen=True)
class Contest:
    """The input of all sides: the model as a folder, and texts."""

    folder: Path
    texts: list[str]

    @cached_property
    def model(self) -> TextClassifier:
        return load_model(str(self.folder), device=torch.device("cpu"))

    @cached_property
    def targets(self) -> list[int]:
        return [text_task(self.model, text).targets[0] for text in self.texts]

    @cached_property
    def file(self) -> Path:
        """The texts as a data set."""
        path = self.folder.parent / f"texts-{len(self.texts)}-{len(self.texts[0])}.jsonl"
        path.write_text("".join(json.dumps({"text": text, "label": "positive"}) + "\n" for text in self.texts))
        return path

    def run_ours(self, settings: Settings) -> Evaluation:
        """From an empty cache."""
        self.model.memo.clear()
        params = {method: method_params(method, amount) for method, amount in settings.items()}
        with empty_home():
            return evaluate(
                [str(self.folder)], str(self.file), list(settings), METRICS,
                len(self.texts), shares=PERCENTS, params=params, second_removal="none",
            )  # fmt: skip

    def build_bare(self, rows: Rows) -> Callable[[], None]:
        forward, back = (_passes(self.model, lengths, bool(turn)) for turn, lengths in enumerate(rows.by_way))

        def run() -> None:
            for ids in forward:
                with torch.inference_mode():
                    self.model.module(input_ids=ids).logits.cpu()
            for ids in back:
                point = self.model.embedding(ids).detach().requires_grad_()
                torch.autograd.grad(self.model.module(inputs_embeds=point).logits[:, 0].sum(), point)

        return run

    def run_ferret(self, other: PeerProcess, settings: Settings) -> dict[str, Any]:
        named = {FERRET_METHODS[method]: amount for method, amount in settings.items()}
        asked = {name: {option: amount} if option else {} for (name, option), amount in named.items()}
        return other.ask("work", texts=self.texts, targets=self.targets, settings=asked)


def method_params(method: str, amount: int) -> dict[str, Any]:
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
def plain_folder() -> Iterator[Path]:
    """The embedded model with its adapter merged, as anyone would save it."""
    logging.disable_progress_bar()
    with scratch_folder() as folder:
        place, model = folder / "reviews-minilm", load_model("reviews-minilm", device=torch.device("cpu"))
        module: Any = model.module
        module.save_pretrained(place)
        model.tokenizer.save_pretrained(place)
        yield place


def processor_seconds(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    run()
    return time.process_time() - started


def equal_settings(contest: Contest, other: PeerProcess | None) -> Settings:
    """Those that are equal on all sides."""
    squares = [len(contest.model.encode(Example(text))) ** 2 for text in contest.texts]
    lime = round(float(np.mean(squares)))
    return {"gradient": 1, "integrated_gradients": STEPS, "lime": lime, "kernel_shap": _partition(contest, other, lime)}


def _partition(contest: Contest, other: PeerProcess | None, default: int) -> int:
    """How many rows ferret's SHAP runs for a text; this is its warming up too."""
    if other is None:
        return default
    found = other.ask("rows", texts=contest.texts, targets=contest.targets, name="shap")
    return round(found["rows"] / len(contest.texts))


def measure(contest: Contest, other: PeerProcess | None, settings: Settings, rounds: int) -> Table:
    """A row for each side; all are timed in turn."""
    counts = dict[str, int]()
    with counting(contest.model.module) as rows:
        contest.run_ours(settings)
    bare = contest.build_bare(rows)
    counts["bare"] = counts["exegesis"] = rows.count

    def captum() -> None:
        with counting(contest.model.module) as seen:
            explain_and_score(contest.model, contest.texts, settings)
        counts["captum loop"] = seen.count

    def ferret(peer: PeerProcess) -> float:
        found = contest.run_ferret(peer, settings)
        counts["ferret-xai"] = found["rows"]
        return float(found["seconds"])

    sides: dict[str, Callable[[], float]] = {
        "bare": lambda: processor_seconds(bare),
        "exegesis": lambda: processor_seconds(lambda: contest.run_ours(settings)),
        "captum loop": lambda: processor_seconds(captum),
    }
    if other is not None:
        sides["ferret-xai"] = lambda: ferret(other)
    times = {name: np.array([]) for name in sides}
    for turn in range(rounds):
        for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
            times[name] = np.append(times[name], sides[name]())
    return [_row(contest, name, times, counts[name]) for name in times]


def _row(contest: Contest, name: str, times: dict[str, np.ndarray], rows: int) -> dict[str, Any]:
    to_ferret = ratio_to(times, "ferret-xai", name)["ratio"] if "ferret-xai" in times else float("nan")
    return {
        "by": name,
        "seconds": float(np.median(times[name])),
        "rows": rows,
        "examples a second": len(contest.texts) / float(np.median(times[name])),
        **ratio_to(times, name, "bare"),
        "at most": AGAINST_BARE if name == "exegesis" else "",
        "times ferret's speed": to_ferret,
        "at least": AGAINST_FERRET if name == "exegesis" else "",
    }


@contextlib.contextmanager
def optional_ferret(folder: Path) -> Iterator[PeerProcess | None]:
    with contextlib.ExitStack() as stack:
        try:
            other = stack.enter_context(ferret_peer(folder))
        except NotThereError as error:
            print(f"ferret-xai is left out: {error}.")
            yield None
            return
        yield other


def reviews(count: int) -> list[str]:
    """From all over the data set, so that lengths vary."""
    texts = [example.text for example in load("reviews").examples]
    return texts[:: len(texts) // count][:count]


def whole_word_texts(model: TextClassifier, count: int) -> list[str]:
    """Beginnings of reviews."""
    found = (_beginning(model, example.text) for example in load("reviews").examples)
    return list(dict.fromkeys(text for text in found if text))[:count]


def _beginning(model: TextClassifier, text: str) -> str:
    text = " ".join(text.split()[:FEATURES])
    encoded = model.encode(Example(text))
    whole = len(encoded.features) == FEATURES == len(text.split())
    return text if whole and text.replace(" ", "").isalpha() else ""


def measure_equal_error(contest: Contest, other: PeerProcess, rounds: int) -> Table:
    """Methods apart, then both with the plain gradient, explained and scored."""
    budget, shapley = shapley_budget(contest, other)
    steps, gaps = path_steps(contest, other)
    both = {"gradient": 1, "integrated_gradients": steps, "kernel_shap": budget}
    theirs = {"gradient": 1, "integrated_gradients": STEPS, "kernel_shap": 0}
    rows = [
        _method_row(contest, other, rounds, "kernel_shap", budget, 0, shapley),
        _method_row(contest, other, rounds, "integrated_gradients", steps, STEPS, gaps),
    ]
    seconds = _time_both(
        rounds,
        lambda: processor_seconds(lambda: contest.run_ours(both)),
        lambda: contest.run_ferret(other, theirs)["seconds"],
    )
    return [*rows, _error_row("gradient and both, scored too", ("", "", f"{steps} and {budget}"), seconds)]


def shapley_budget(contest: Contest, other: PeerProcess) -> tuple[int, tuple[float, float]]:
    """Evaluations at which our error is no larger than ferret's, and both errors."""
    games = [
        text_task(contest.model, text).masked_values([all_coalitions(FEATURES)], "mask")[0] for text in contest.texts
    ]
    _check_same(contest, other, games)
    truth = [exact(FEATURES, as_game(values)) for values in games]
    found = contest.run_ferret(other, {"kernel_shap": 0})["scores"]["shap"]
    theirs = float(np.mean([_error(np.array(phi[1:-1]), true) for phi, true in zip(found, truth, strict=True)]))
    error = float("nan")
    for budget in (max(BUDGETS[0], least_budget(FEATURES)), *BUDGETS[1:]):
        estimates = [
            _error(estimate_shapley(FEATURES, as_game(v), budget, s), t)
            for v, t in zip(games, truth, strict=True)
            for s in range(SEEDS)
        ]
        if (error := float(np.mean(estimates))) <= theirs:
            break
    return budget, (theirs, error)


def _error(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def _check_same(contest: Contest, other: PeerProcess, games: Sequence[np.ndarray]) -> None:
    """Errors: ferret removes tokens in another way than we do, so that no error could be compared."""
    kept = np.random.default_rng(0).random((8, FEATURES)) < 0.5
    places = kept.astype(np.int64) @ (1 << np.arange(FEATURES))
    whole = np.pad(kept, ((0, 0), (1, 1)), constant_values=True).tolist()
    for text, target, values in zip(contest.texts, contest.targets, games, strict=True):
        found = other.ask("game", text=text, target=target, kept=whole)["values"]
        if not np.allclose(found, values[places], atol=SAME_GAME):
            raise SystemExit(f"error: ferret's SHAP plays another game than ours on {text!r}.")


def path_steps(contest: Contest, other: PeerProcess) -> tuple[int, tuple[float, float]]:
    """Steps at which our completeness gap is no larger than ferret's, and both gaps."""
    theirs = float(np.mean(other.ask("gaps", texts=contest.texts, targets=contest.targets, steps=STEPS)["gaps"]))
    gap = float("nan")
    for steps in FEWER_STEPS:
        gap = float(np.mean([made.check.value for made in _explain_texts(contest, "integrated_gradients", steps)]))
        if gap <= theirs:
            break
    return steps, (theirs, gap)


def _explain_texts(contest: Contest, method: str, amount: int) -> list[Any]:
    params = method_params(method, amount)
    contest.model.memo.clear()
    with empty_home():
        return explain_many([Request(str(contest.folder), method, Example(text), params) for text in contest.texts])


def _method_row(
    contest: Contest,
    other: PeerProcess,
    rounds: int,
    method: str,
    amount: int,
    theirs: int,
    errors: tuple[float, float],
) -> dict[str, Any]:
    def ferret() -> float:
        return float(sum(contest.run_ferret(other, {method: theirs})["spent"].values()))

    seconds = _time_both(rounds, lambda: processor_seconds(lambda: _explain_texts(contest, method, amount)), ferret)
    return _error_row(method, (f"{errors[0]:.3g}", f"{errors[1]:.3g}", str(amount)), seconds)


def _time_both(rounds: int, one: Callable[[], float], other: Callable[[], float]) -> np.ndarray:
    """`[round side]`, the side that begins changing each round."""
    both = np.zeros((rounds, 2))
    for turn in range(rounds):
        for side in ((0, 1), (1, 0))[turn % 2]:
            both[turn, side] = (one, other)[side]()
    return both


def _error_row(what: str, told: tuple[str, str, str], seconds: np.ndarray) -> dict[str, Any]:
    times = float(np.median(seconds[:, 1] / seconds[:, 0]))
    return {
        "method": what,
        "ferret's error": told[0],
        "ours": told[1],
        "steps or evaluations": told[2],
        "seconds": float(np.median(seconds[:, 0])),
        "ferret's": float(np.median(seconds[:, 1])),
        "times its speed": times,
        "at least": EQUAL_ERROR_SPEED,
    }
