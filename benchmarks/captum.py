"""Our methods beside those of Captum of the same name, in time and error."""

from __future__ import annotations

import copy
import datetime
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from captum.attr import (
    GradientShap,
    InputXGradient,
    LayerGradCam,
    NoiseTunnel,
    Occlusion,
    Saliency,
)
from torch import Tensor, nn

from benchmarks.harness import Measurement, benchmark, describe_machine, ratio_to, time_in_turn
from benchmarks.peers import (
    BATCH,
    Evaluate,
    captum_gradient,
    captum_ig,
    captum_kernel_shap,
    captum_lime,
    probability_of_masks,
)
from benchmarks.shapley import as_game
from benchmarks.whole_evaluation import whole_word_texts
from benchmarks.workloads import picture_task, run_method, text_task
from engine import runtime
from engine.explainers.shapley import all_coalitions, exact
from engine.home import project_root
from engine.models.loading import load_image_model, load_model
from engine.removal_operators import BASELINES
from engine.task import Task, TaskItem

TEXT_MODEL, PICTURE_MODEL = "reviews-minilm", "scenes-vit"
FEATURES = 12
STEPS, NOISY, SAMPLES, POINTS = 50, 32, 512, 5
NOISE = 0.15
"""Standard deviation of SmoothGrad's noise, as a share of the range of the embedding values."""
MANY_STEPS, MANY_NOISY, MANY_SAMPLES = 257, 1_024, 8_192
TIME_DIFFERENCE, ERROR_DIFFERENCE = 1.1, 1.6
"""Ratios below these are no difference: the machine's own noise, and chance over so few seeds, are as large.

Of 25 seeds of SmoothGrad on each of three texts, errors of the same distribution differed by up to 1.5 times.
"""
ROUNDING = 1e-4
"""Errors below this are rounding of single precision, and no difference either."""
FILE = project_root() / "docs" / "captum.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
COMMAND = "python -m benchmarks captum --write"

Scores = np.ndarray
"""A number a feature."""
Run = Callable[[], Scores]


@dataclass(frozen=True, eq=False)
class Subject:
    """One input with the class to explain.

    `values`: m of all coalitions of a text's tokens, so that many samples need no further pass; None: the model runs.
    """

    task: Task
    values: np.ndarray | None = None

    @property
    def evaluate(self) -> Evaluate:
        """m of rows of 0/1 features."""
        if self.values is None:
            return probability_of_masks(self.task)
        table = as_game(self.values)
        return lambda masks: table(masks > 0)


def feature_points(task: Task) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Embeddings of the features `[1 feature d_model]`, and the logit as a function of them."""
    embeds, features = task.model.embed(task.batch()).detach(), torch.from_numpy(task.examples[0].features)

    def logit(points: Tensor) -> Tensor:
        rows = embeds.repeat(len(points), 1, 1)
        rows[:, features] = points
        return task.model.module(inputs_embeds=rows).logits[:, task.targets[0]]

    return embeds[:, features], logit


def baseline_points(task: Task, name: str) -> Tensor:
    """The baseline embeddings of the features `[1 feature d_model]`."""
    points, _ = feature_points(task)
    return task.model.removal_embedding(task.batch(), name).expand_as(points).detach().clone()


def as_scores(values: Tensor) -> Scores:
    """The first row in double precision."""
    scores: Scores = values[0].detach().double().cpu().numpy()
    return scores


def run_saliency(subject: Subject) -> Run:
    run, features = captum_gradient(subject.task), subject.task.examples[0].features
    return lambda: as_scores(run().norm(dim=-1))[features]


def run_input_x_gradient(subject: Subject) -> Run:
    points, logit = feature_points(subject.task)
    method = InputXGradient(logit)
    return lambda: as_scores(method.attribute(points.clone().requires_grad_()).sum(-1))


def run_integrated_gradients(subject: Subject, steps: int = STEPS, baseline: str = "mask") -> Run:
    run, features = captum_ig(subject.task, steps, baseline=baseline), subject.task.examples[0].features
    return lambda: as_scores(run().sum(-1))[features]


def run_smoothgrad(subject: Subject, samples: int = NOISY) -> Run:
    points, logit = feature_points(subject.task)
    embeds = subject.task.model.embed(subject.task.batch()).detach()
    noise = NOISE * float(embeds.max() - embeds.min())
    method = NoiseTunnel(Saliency(logit))
    named = {"nt_samples": samples, "nt_samples_batch_size": min(samples, BATCH), "stdevs": noise, "abs": False}
    return lambda: as_scores(method.attribute(points.clone().requires_grad_(), **named).norm(dim=-1))


def run_gradient_shap(subject: Subject) -> Run:
    points, logit = feature_points(subject.task)
    method, starts = GradientShap(logit), torch.cat([baseline_points(subject.task, name) for name in BASELINES])
    return lambda: as_scores(method.attribute(points, starts, n_samples=POINTS).sum(-1))


def run_occlusion(subject: Subject) -> Run:
    evaluate, ones = subject.evaluate, torch.ones(1, FEATURES)
    method = Occlusion(lambda masks: torch.from_numpy(evaluate(masks.numpy())))
    return lambda: as_scores(method.attribute(ones, (1,), baselines=0, perturbations_per_eval=BATCH))


def run_lime(subject: Subject, samples: int = SAMPLES) -> Run:
    run = captum_lime(subject.task, samples, subject.evaluate)
    return lambda: as_scores(run())


def run_kernel_shap(subject: Subject) -> Run:
    run = captum_kernel_shap(subject.task, SAMPLES, subject.evaluate)
    return lambda: as_scores(run())


class ByChannel(nn.Module):
    """A LayerNorm whose output passes a layer with channels first, as Captum's Grad-CAM reads them; but for [CLS]."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm, self.channels = norm, nn.Identity()

    def forward(self, hidden: Tensor) -> Tensor:
        read = self.norm(hidden)
        return torch.cat([read[:, :1], self.channels(read[:, 1:].transpose(1, 2)).transpose(1, 2)], 1)


def run_grad_cam(subject: Subject) -> Run:
    """On a copy of the model: Captum takes a tensor's second dimension for channels, which a transformer has last."""
    task = subject.task
    module: Any = copy.deepcopy(task.model.module)
    parent, _, name = _last_norm_path(task).rpartition(".")
    layer = ByChannel(module.get_submodule(_last_norm_path(task)))
    setattr(module.get_submodule(parent), name, layer)
    pictures = task.batch().pictures.requires_grad_()
    method = LayerGradCam(lambda pixels: module(pixel_values=pixels).logits, layer.channels)
    return lambda: as_scores(
        method.attribute(pictures, target=task.targets[0], relu_attributions=True, attr_dim_summation=True)[:, 0]
    )


def _last_norm_path(task: Task) -> str:
    """The name of the LayerNorm before the last block's attention."""
    norm = task.model.blocks[-1].get_submodule(task.model.adapter.first_norm)
    return next(name for name, module in task.model.module.named_modules() if module is norm)


def exact_grad_cam(subject: Subject) -> Scores:
    """By its definition: activations times their mean gradient over patches, where positive."""
    task, read = subject.task, list[Tensor]()
    norm = task.model.blocks[-1].get_submodule(task.model.adapter.first_norm)
    with norm.register_forward_hook(lambda _module, _inputs, output: read.append(output)):
        logits = task.model.module(pixel_values=task.batch().pictures.requires_grad_()).logits
    (slope,) = torch.autograd.grad(logits[0, task.targets[0]], read[0])
    return as_scores((read[0] * slope[:, 1:].mean(1, keepdim=True)).sum(-1)[:, 1:].relu())


def exact_occlusion(subject: Subject) -> Scores:
    without = np.concatenate([np.ones((1, FEATURES), bool), ~np.eye(FEATURES, dtype=bool)])
    m = subject.task.masked_values([without], "mask")[0]
    return m[0] - m[1:]


def exact_shapley(subject: Subject) -> Scores:
    assert subject.values is not None
    phi: Scores = exact(FEATURES, as_game(subject.values))
    return phi


def exact_expected_gradients(subject: Subject) -> Scores:
    """GradientShap's expectation: integrated gradients, mean over its baselines."""
    return np.mean([run_integrated_gradients(subject, MANY_STEPS, name)() for name in BASELINES], axis=0)


def our_scores(task: Task, method: str, params: Mapping[str, Any]) -> Run:
    run, features = run_method(task, method, **params), task.examples[0].features
    return lambda: run()[0].scores[features]


@dataclass(frozen=True)
class Comparison:
    """One of our methods beside Captum's. `exact`: the reference; `limit`: that of Captum's where it is another."""

    method: str
    captum: str
    work: str
    reference: str
    run_captum: Callable[[Subject], Run]
    exact: Callable[[Subject], Scores]
    params: Mapping[str, Any] = field(default_factory=dict)
    limit: Callable[[Subject], Scores] | None = None
    random: bool = False
    kind: str = "text"


COMPARISONS = (
    Comparison(
        "gradient_l2", "Saliency", "1 gradient", "double precision", run_saliency,
        lambda subject: run_saliency(subject)(),
    ),
    Comparison(
        "gradient_x_input", "InputXGradient", "1 gradient", "double precision", run_input_x_gradient,
        lambda subject: run_input_x_gradient(subject)(),
    ),
    Comparison(
        "integrated_gradients", "IntegratedGradients", f"{STEPS} gradients", f"{MANY_STEPS} nodes, double precision",
        run_integrated_gradients, lambda subject: run_integrated_gradients(subject, MANY_STEPS)(),
        {"steps": "fixed", "n_steps": STEPS},
    ),
    Comparison(
        "smoothgrad", "NoiseTunnel", f"{NOISY} gradients", f"{MANY_NOISY:,} noisy copies", run_smoothgrad,
        lambda subject: run_smoothgrad(subject, MANY_NOISY)(), {"n_samples": NOISY, "noise": NOISE}, random=True,
    ),
    Comparison(
        "gradient_shap", "GradientShap", f"{POINTS} gradients", f"{MANY_STEPS} nodes from each baseline",
        run_gradient_shap, exact_expected_gradients, {"n_samples": POINTS}, random=True,
    ),
    Comparison(
        "occlusion", "Occlusion", f"{FEATURES + 1} evaluations", "each removal, double precision", run_occlusion,
        exact_occlusion,
    ),
    Comparison(
        "lime", "Lime", f"{SAMPLES} samples", f"its own limit, {MANY_SAMPLES:,} samples", run_lime,
        lambda subject: our_scores(subject.task, "lime", {"n_samples": MANY_SAMPLES})(), {"n_samples": SAMPLES},
        lambda subject: run_lime(subject, MANY_SAMPLES)(), random=True,
    ),
    Comparison(
        "kernel_shap", "KernelShap", f"{SAMPLES} evaluations", "all 4,096 coalitions", run_kernel_shap,
        exact_shapley, {"n_samples": SAMPLES}, random=True,
    ),
    Comparison(
        "grad_cam", "LayerGradCam", "1 gradient", "double precision", run_grad_cam, exact_grad_cam, kind="image"
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Mean relative errors, median milliseconds, and the median ratio of Captum's time to ours."""

    error: float
    captum_error: float
    ms: float
    captum_ms: float
    ratio: float


def measure(comparison: Comparison, subjects: Sequence[tuple[Subject, Subject]], seeds: int, rounds: int) -> Figures:
    """`subjects`: inputs in single precision, each with the same in double precision."""
    errors, captum_errors = [], []
    for subject, precise in subjects:
        truth = comparison.exact(precise)
        limit = truth if comparison.limit is None else comparison.limit(precise)
        for seed in range(seeds if comparison.random else 1):
            task = Task(subject.task.model, [_seeded(subject.task.items[0], seed)])
            errors.append(_error(our_scores(task, comparison.method, comparison.params)(), truth))
            torch.manual_seed(seed)
            np.random.seed(seed)
            captum_errors.append(_error(comparison.run_captum(subject)(), limit))
    timed = Subject(subjects[0][0].task)  # without the table: the model runs
    work = {
        "captum": comparison.run_captum(timed),
        "ours": our_scores(timed.task, comparison.method, comparison.params),
    }
    times = time_in_turn(work, rounds, clock=time.process_time)
    medians = {name: 1e3 * float(np.median(seconds)) for name, seconds in times.items()}
    return Figures(
        float(np.mean(errors)), float(np.mean(captum_errors)), medians["ours"], medians["captum"],
        ratio_to(times, "captum", "ours")["ratio"],
    )  # fmt: skip


def _seeded(item: TaskItem, seed: int) -> TaskItem:
    return TaskItem(item.encoded, item.prediction, item.target, seed)


def _error(scores: Scores, truth: Scores) -> float:
    return float(np.linalg.norm(scores - truth) / np.linalg.norm(truth))


def load_subjects(texts: int) -> dict[str, list[tuple[Subject, Subject]]]:
    """By kind, each input in single and in double precision."""
    device = runtime.device()
    single, double = (load_model(TEXT_MODEL, dtype, device) for dtype in ("float32", "float64"))
    pictures = (picture_task(load_image_model(PICTURE_MODEL, dtype, device)) for dtype in ("float32", "float64"))
    one, precise = map(Subject, pictures)
    pairs = [_tabulate(text_task(single, text), text_task(double, text)) for text in whole_word_texts(single, texts)]
    return {"text": pairs, "image": [(one, precise)]}


def _tabulate(task: Task, precise: Task) -> tuple[Subject, Subject]:
    values = task.masked_values([all_coalitions(FEATURES)], "mask")[0]
    return Subject(task, values), Subject(precise, values)


HEADER = (
    "ours",
    "Captum's",
    "work",
    "reference",
    "error",
    "Captum's error",
    "ms",
    "Captum's ms",
    "Captum's time to ours",
)


def table_row(comparison: Comparison, figures: Figures) -> tuple[str, ...]:
    """A line of the table."""
    return (
        f"`{comparison.method}`",
        f"`{comparison.captum}`",
        comparison.work,
        comparison.reference,
        f"{figures.error:.2g}",
        f"{figures.captum_error:.2g}",
        f"{figures.ms:,.1f}",
        f"{figures.captum_ms:,.1f}",
        f"{figures.ratio:.2f}",
    )


def describe_differences(figures: Mapping[str, Figures]) -> list[str]:
    """Sentences that say at which methods either side is faster or more exact, beyond noise and chance."""
    faster = {name: one.ratio for name, one in figures.items()}
    closer = {
        name: one.captum_error / one.error
        for name, one in figures.items()
        if max(one.error, one.captum_error) > ROUNDING
    }
    return [
        _describe_sides("more exact", closer, ERROR_DIFFERENCE),
        _describe_sides("faster", faster, TIME_DIFFERENCE),
    ]


def _describe_sides(better: str, ratios: Mapping[str, float], limit: float) -> str:
    ours = {name: ratio for name, ratio in ratios.items() if ratio > limit}
    captums = {name: 1 / ratio for name, ratio in ratios.items() if ratio < 1 / limit}
    return f"Ours is {better} at {_list_times(ours)}; Captum's at {_list_times(captums)}."


def _list_times(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"`{name}` ({ratio:.1f} times)" for name, ratio in ratios.items()) or "none"


def render(figures: Mapping[str, Figures], setting: str) -> str:
    """The generated part of the page. `setting`: date, machine and amounts of the run."""
    rows = [table_row(one, figures[one.method]) for one in COMPARISONS]
    lines = [f"| {' | '.join(cells)} |" for cells in (HEADER, ("---",) * len(HEADER), *rows)]
    return "\n".join([f"`{COMMAND}`, {setting}.", "", *lines, "", *describe_differences(figures)])


def write_page(text: str) -> None:
    """Put the generated part between the page's markers."""
    before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    FILE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


@benchmark(texts=3, seeds=5, rounds=7, write={"action": "store_true", "help": "put the table into docs/captum.md"})
def captum(texts: int, seeds: int, rounds: int, write: bool) -> Measurement:
    """Our methods beside Captum's of the same name.

    Both explain one input at a time, a text of 12 tokens or a picture, on the same float32 model with the same
    settings; Captum's in its largest sensible batch. Times are taken in turn, on one thread of the processor, whose
    time is counted. The error is ||a - reference|| / ||reference||, its mean over inputs, and over seeds where the
    method draws at random. References are exact (all 4,096 coalitions, removal one by one) or slow, in double
    precision; of LIME, whose weights and linear models differ, the limit of each estimator for many samples.
    """
    warnings.simplefilter("ignore")  # Captum warns of its own solvers and of gradients that it switches on
    torch.set_num_threads(1)
    os.environ["EXEGESIS_DEVICE"] = "cpu"
    subjects = load_subjects(texts)
    figures = {one.method: measure(one, subjects[one.kind], seeds, rounds) for one in COMPARISONS}
    rows = [dict(zip(HEADER, table_row(one, figures[one.method]), strict=True)) for one in COMPARISONS]
    if write:
        machine = describe_machine()
        setting = (
            f"{datetime.date.today()}: {machine['device']}, one thread, torch {machine['torch']}, Captum "
            f"{version('captum')}; {texts} texts and a picture, {seeds} seeds, {rounds} rounds"
        )
        write_page(render(figures, setting))
    return Measurement({"Ours beside Captum's": rows})
