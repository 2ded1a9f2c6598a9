"""Train an empirical explainer: compute or load exact maps, fit a ridge regression, measure errors on held-out maps."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from engine import runtime
from engine.data.sources import ExampleSource, load_source
from engine.empirical.errors import MapErrors, map_errors
from engine.empirical.explainer import (
    LOWEST_COST,
    SERVED_DTYPE,
    EmpiricalCard,
    EmpiricalExplainer,
    check_name,
    current_versions,
    save,
)
from engine.empirical.features import count_shared, token_features
from engine.errors import UsageError, not_allowed
from engine.experiments.sample import DRAW
from engine.explain import explain_many, key_of
from engine.home import product_version
from engine.input_kinds import input_kind, kind_of_model, load_classifier
from engine.jobs.kinds import Spec, UnitStep, WorkUnit, batched_units, job_kind
from engine.models import catalog
from engine.models.label_prompts import base_name
from engine.params import Plain, as_plain, from_mapping, option
from engine.progress import CancelToken, Report, cancellable, silent
from engine.registry import Explainer, estimate_rows, explainer
from engine.request import Request
from engine.result import Explanation
from engine.task import Task, TaskItem
from engine.vision.picture import read_view

BUDGETS = ("n_samples", "n_steps", "n_trials", "n_neighbors")
"""Parameters that bound the cost of a method. The baseline at low cost uses their smallest values."""
PENALTIES = tuple(10.0**power for power in range(-3, 7))
"""Ridge penalties to choose from."""
FOLDS, EMPHASIS = 5, 8.0
TRAIN_SPLIT, WHOLE = "train", "all"
LICENCE = "Apache-2.0"
TIMED = 8
"""Number of inputs on which a prediction is timed."""
MEAN, MEAN_MAP, GRADIENT = "mean score everywhere", "mean map", "gradient x input"
"""Names of the baselines for the errors, besides the exact method at its lowest cost."""


@dataclass(frozen=True)
class EmpiricalPlan:
    """A plan to train an empirical explainer. `out`: its name. `params`: parameters of the method.

    `held_out`: number of examples on which the error is measured. `split`: None for train, or the whole data set if it
    has no splits.
    """

    model: str
    method: str
    dataset: str
    out: str
    train_size: int = option(300, "Number of examples to train on; each is explained once.", low=8, high=100_000)
    held_out: int = option(100, "Number of further examples on which the error is measured.", low=4, high=10_000)
    longest: int = option(
        1000, "Leave out texts of more characters, whose maps cost most; pictures have none.", low=1, high=100_000
    )
    seed: int = option(0, "Selects the examples, and the classes to explain.", low=0, high=2**31 - 1)
    split: str | None = None
    params: Mapping[str, Plain] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The model's kind of input, "text" or "image"."""
        return kind_of_model(self.model)

    @property
    def command(self) -> str:
        """The command that trains the explainer."""
        words = ["exegesis", "empirical", "train", "--model", self.model, "--method", self.method]
        words += ["--dataset", self.dataset, "--train-size", str(self.train_size)]
        words += ["--held-out", str(self.held_out)] * (self.held_out != 100)
        words += ["--longest", str(self.longest)] * (self.longest != 1000)
        words += ["--seed", str(self.seed)] * (self.seed != 0) + ["--split", str(self.split)] * (self.split is not None)
        words += [part for name, value in self.params.items() for part in ("--param", f"{name}={value}")]
        return shlex.join([*words, "--out", self.out])

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)


def plan_from_json(spec: Spec) -> EmpiricalPlan:
    """Return the plan in a job's specification. Errors: a field that is missing, unknown or has the wrong type."""
    plain = dict(spec)
    params = plain.pop("params", {})
    texts = [plain.get(name) for name in ("model", "method", "dataset", "out")]
    if not isinstance(params, Mapping) or not all(isinstance(text, str) for text in texts):
        raise UsageError("spec of an empirical job: must have model, method, dataset and out, and may have params.")
    plan: EmpiricalPlan = from_mapping(EmpiricalPlan, plain, "empirical")
    return replace(plan, params=params)


def check(plan: EmpiricalPlan) -> Explainer:
    """Return the method of a plan. Errors: the plan cannot be run. No model is loaded."""
    check_name(plan.out)
    if plan.kind == "image" and read_view(plan.model).windows:
        raise UsageError(
            f"model: {plan.model} attends within windows and merges patches, so that its states have no row for each "
            "patch. Choose a model whose blocks keep all patches, such as a ViT."
        )
    if plan.kind == "text" and base_name(plan.model) != plan.model:
        raise UsageError(
            f"model: {plan.model} reads a text once per label, so that its states have no row for each token. Choose a "
            "model without labels of your own."
        )
    if catalog.is_causal(plan.model):
        raise UsageError(
            f"model: {plan.model} is a language model, whose classes are those of each prompt. Choose a classifier."
        )
    method = explainer(plan.method, plan.kind)
    if method.cheap or method.family == "baseline":
        raise not_allowed("method", "a costly method, such as kernel_shap, integrated_gradients or lime", plan.method,
                          f"{method.title} takes about one pass: there is nothing to save.")  # fmt: skip
    from_mapping(method.params, plan.params, method.id)
    return method


def source_of(plan: EmpiricalPlan) -> ExampleSource:
    """Load the split that the plan names, else the train split, else the whole data set if it has no splits."""
    if plan.split is not None:
        return load_source(plan.kind, plan.dataset, plan.split, tolerant=True)
    try:
        return load_source(plan.kind, plan.dataset, TRAIN_SPLIT, tolerant=True)
    except UsageError as error:
        try:
            return load_source(plan.kind, plan.dataset, WHOLE, tolerant=True)
        except UsageError:
            raise error from None


def requests_of(plan: EmpiricalPlan, source: ExampleSource) -> tuple[list[Request], list[Request]]:
    """Return the requests for exact maps: (training examples, held-out examples).

    Larger train sizes contain smaller ones, with the same held-out examples. Every second example is explained for a
    random class drawn by seed, the others for the predicted class. Errors: the data set is too small.
    """
    needed = plan.train_size + plan.held_out
    classes = len(catalog.model_labels(plan.model))
    requests: list[Request] = []
    for number, place in enumerate(np.random.default_rng([DRAW, plan.seed]).permutation(source.count).tolist()):
        example = source.read(place).input
        if example.length <= plan.longest:
            drawn = int(np.random.default_rng([DRAW, plan.seed, place]).integers(classes))
            target = drawn if classes > 1 and number % 2 else None
            requests.append(Request(plan.model, plan.method, example, plan.params, target))
        if len(requests) == needed:
            return requests[plan.held_out :], requests[: plan.held_out]
    bound = f" of at most {plan.longest:,} characters" if plan.kind == "text" else ""
    raise UsageError(
        f"train_size: {plan.dataset} has {len(requests):,} examples{bound}, but {needed:,} are needed "
        f"({plan.train_size:,} to train on, {plan.held_out:,} held out). Lower one of them, or choose a larger "
        "data set."
    )


def _title(spec: Spec) -> str:
    return f"Train an empirical explainer of {spec.get('method')} for {spec.get('model')}"


@job_kind("empirical", title=_title, check=lambda spec: check(plan_from_json(spec)))
def units(spec: Spec) -> Iterator[WorkUnit]:
    """Yield one unit per exact map, and one that fits and saves the explainer. `spec`: fields of `EmpiricalPlan`."""
    plan = plan_from_json(spec)
    method = check(plan)
    requests = _by_length([one for part in requests_of(plan, source_of(plan)) for one in part])
    labels = [f"map {number}" for number in range(1, len(requests) + 1)]
    rows = estimate_rows(method, plan.params)
    yield from batched_units(
        [key_of(one) for one in requests], requests, labels, explain_many, f"{method.title} on {plan.model}", rows
    )
    # Nothing is stored under this key, so a resumed job fits again, which takes seconds.
    key = key_for({"kind": "empirical explainer", "plan": plan.as_plain()})
    step = UnitStep("Fitting", 0, 1, rows, "maps")
    yield WorkUnit(key, "fit", partial(train, plan), stores_itself=True, step=step)


def _by_length(requests: Sequence[Request]) -> list[Request]:
    """Sort texts by length, so that batches need little padding; images keep their order."""
    return sorted(requests, key=lambda one: one.example.length)


def train(plan: EmpiricalPlan, report: Report = silent, cancel: CancelToken | None = None) -> EmpiricalExplainer:
    """Train an empirical explainer and save it in the home folder. Cached maps are not computed again.

    Errors: those of the plan, of a data set that cannot be read, and of the method.
    """
    check(plan)
    return save(compute(plan, report, cancel))


def compute(plan: EmpiricalPlan, report: Report = silent, cancel: CancelToken | None = None) -> EmpiricalExplainer:
    """Train an empirical explainer without saving it."""
    source = source_of(plan)
    with cancellable(cancel):
        wanted, held = requests_of(plan, source)
        explain_many(_by_length([*wanted, *held]), report)
        data, tests = MapData.read(wanted), MapData.read(held)
        weights, penalty = fit(data)
        card = _card(plan, source, data, tests, weights, penalty)
    return EmpiricalExplainer(plan.out, card, weights.astype(np.float32))


@dataclass(frozen=True, eq=False)
class MapData:
    """Exact maps with the features of their tokens or patches, without special tokens."""

    requests: Sequence[Request]
    exact: Sequence[Explanation]
    features: Sequence[Float[np.ndarray, "_ feature"]]
    seconds: float
    """Mean seconds to compute the features of a single input."""
    shared: int
    """Number of leading features whose weights all classes share."""

    @classmethod
    def read(cls, requests: Sequence[Request]) -> MapData:
        """Load the cached maps and compute the features of their tokens or patches."""
        exact = explain_many(requests)
        with runtime.turn(lends=True):
            kind = requests[0].example.kind
            model = load_classifier(kind, requests[0].model, SERVED_DTYPE, runtime.device())
            items = [
                TaskItem(model.encode(request.example), one.prediction, one.provenance.target, 0)
                for request, one in zip(requests, exact, strict=True)
            ]
            order = sorted(range(len(items)), key=lambda at: len(items[at].encoded))
            rows = dict(zip(order, token_features(Task(model, [items[at] for at in order])), strict=True))
            started = runtime.clock()
            for item in items[:TIMED]:
                token_features(Task(model, [item]))
            seconds = (runtime.clock() - started) / len(items[:TIMED])
        features = [rows[at][one.features] for at, one in enumerate(exact)]
        return cls(requests, exact, features, seconds, count_shared(model, features[0].shape[1]))

    @property
    def scores(self) -> list[Float[np.ndarray, "_"]]:
        """The exact scores of the tokens or patches."""
        return [one.scores[one.features] for one in self.exact]

    @property
    def predicted(self) -> list[bool]:
        """Whether the explained class is the predicted one, for each map."""
        return [one.provenance.target == one.prediction.index for one in self.exact]


def fit(data: MapData) -> tuple[Float[np.ndarray, "feature"], float]:
    """Fit a ridge regression of the exact scores on the features. Returns (weights, penalty).

    Features are divided by their root mean square. Those that all classes share are multiplied by `EMPHASIS`, because
    they are few if the others belong to single classes.
    The penalty is the one in `PENALTIES` with the smallest squared error over `FOLDS` folds. Folds consist of whole
    inputs, because tokens or patches of one input are similar.
    """
    scale = np.sqrt((np.concatenate(list(data.features)) ** 2).mean(0))
    scale = np.where(scale > 0, scale, 1.0)
    scale[: data.shared] /= EMPHASIS
    inputs = [rows / scale for rows in data.features]
    folds = [slice(fold, None, FOLDS) for fold in range(FOLDS)]
    parts = [(np.concatenate(inputs[fold]), np.concatenate(data.scores[fold])) for fold in folds]
    errors = np.zeros(len(PENALTIES))
    for left_out, (x, y) in enumerate(parts):
        rest = [part for at, part in enumerate(parts) if at != left_out]
        solutions = ridge(np.concatenate([own for own, _ in rest]), np.concatenate([own for _, own in rest]), PENALTIES)
        errors += ((y[:, None] - x @ solutions.T) ** 2).sum(0)
    penalty = PENALTIES[int(errors.argmin())]
    (weights,) = ridge(np.concatenate(inputs), np.concatenate(data.scores), (penalty,))
    return weights / scale, penalty


def ridge(
    x: Float[np.ndarray, "row feature"], y: Float[np.ndarray, "row"], penalties: Sequence[float]
) -> Float[np.ndarray, "penalty feature"]:
    """Solve `min |y - Xw|² + penalty |w|²` for each penalty, by eigendecomposition of the smaller of XᵀX and XXᵀ."""
    if x.shape[1] <= len(x):
        values, vectors = np.linalg.eigh(x.T @ x)
        projected = vectors.T @ (x.T @ y)
        return np.stack([vectors @ (projected / (values.clip(0) + penalty)) for penalty in penalties])
    values, vectors = np.linalg.eigh(x @ x.T)
    projected = vectors.T @ y
    return np.stack([x.T @ (vectors @ (projected / (values.clip(0) + penalty))) for penalty in penalties])


def _card(
    plan: EmpiricalPlan, source: ExampleSource, data: MapData, tests: MapData, weights: np.ndarray, penalty: float
) -> EmpiricalCard:
    errors = held_out_errors(data, tests, weights)
    if EmpiricalCard.OWN not in errors:
        inputs = input_kind(plan.kind).plural
        raise UsageError(f"held_out: all scores by {plan.method} on these {inputs} are zero. Choose another data set.")
    method, exact = explainer(plan.method, plan.kind), [*data.exact, *tests.exact]
    return EmpiricalCard(
        model=plan.model,
        revision=catalog.revision(plan.model),
        method=plan.method,
        versions=current_versions(method),
        params=as_plain(from_mapping(method.params, plan.params, method.id)),
        dataset=plan.dataset,
        data_revision=source.revision,
        train_size=plan.train_size,
        seed=plan.seed,
        errors=errors,
        passes=float(np.mean([one.evaluations for one in exact])),
        seconds=float(np.mean([one.seconds for one in exact])),
        own_seconds=tests.seconds,
        training_passes=sum(one.evaluations for one in exact),
        penalty=penalty,
        command=plan.command,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=product_version(),
        licence=LICENCE,
        kind=plan.kind,
    )


def held_out_errors(data: MapData, tests: MapData, weights: Float[np.ndarray, "feature"]) -> dict[str, MapErrors]:
    """Return the errors on held-out maps: for predicted classes, for other classes, and of baselines on the former.

    Gradient x input has another unit, so it is scaled by the factor that fits the training maps best. The mean map, for
    images only, averages the training maps of predicted classes, which all have the same grid.
    """
    own = [at for at, predicted in enumerate(tests.predicted) if predicted]
    other = [at for at, predicted in enumerate(tests.predicted) if not predicted]
    maps = [rows @ weights for rows in tests.features]
    estimates: dict[str, tuple[list[int], list[np.ndarray]]] = {
        EmpiricalCard.OWN: (own, maps),
        EmpiricalCard.OTHER: (other, maps),
        MEAN: (own, [np.full(len(one), np.concatenate(data.scores).mean()) for one in maps]),
        GRADIENT: (own, _scaled_gradients(data, tests)),
    }
    of_predicted = [scores for scores, predicted in zip(data.scores, data.predicted, strict=True) if predicted]
    if data.exact[0].grid is not None and of_predicted:
        estimates[MEAN_MAP] = own, [np.mean(of_predicted, axis=0)] * len(maps)
    if (cheap := _at_lowest_cost(tests)) is not None:
        estimates[LOWEST_COST] = own, cheap
    found = {
        name: map_errors([tests.scores[at] for at in chosen], [own_maps[at] for at in chosen])
        for name, (chosen, own_maps) in estimates.items()
    }
    return {name: one for name, one in found.items() if one is not None}


def _scaled_gradients(data: MapData, tests: MapData) -> list[np.ndarray]:
    """Return gradient x input (the first feature), scaled by the factor that fits the training maps best."""
    sums, scores = np.concatenate([rows[:, 0] for rows in data.features]), np.concatenate(data.scores)
    factor = float(sums @ scores / max(sums @ sums, 1e-300))
    return [factor * rows[:, 0] for rows in tests.features]


def _at_lowest_cost(tests: MapData) -> list[np.ndarray] | None:
    """Return the maps of the same method at its lowest cost; None if it has no parameter that bounds the cost."""
    request = tests.requests[0]
    metadata = {one.name: one.metadata for one in fields(explainer(request.method, request.example.kind).params)}
    lowest: dict[str, Plain] = {name: metadata[name]["low"] for name in BUDGETS if name in metadata}
    if not lowest:
        return None
    lowest |= {"steps": "fixed"} if "steps" in metadata else {}
    cheap = [replace(one, params={**one.params, **lowest}) for one in tests.requests]
    return [one.scores[one.features] for one in explain_many(cheap)]
