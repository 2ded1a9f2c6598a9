"""Empirical explainers, stored as two files: NAME.safetensors with the weights and NAME.json with the card.

An explainer is only used for the model and weights revision, and the method with version and parameters, that it was
trained for. To train the shipped ones: `python -m engine.empirical.ship`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.numpy import load as deserialize
from safetensors.numpy import save as serialize

from engine import access, jobs
from engine.empirical.errors import MapErrors
from engine.empirical.features import VERSION as FEATURES_VERSION
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.explain import versions_of
from engine.home import home
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.params import Plain, as_plain, from_mapping
from engine.registry import KINDS, Explainer, all_explainers, explainer
from engine.scaffold.learned_explainer import CARD, NAME, REFERENCE, WEIGHTS, file_name, read_bytes, replace_file

SHIPPED = Path(__file__).parent / "shipped"
TENSOR = "weights"
"""The name of the only tensor."""
FORMAT = 1
"""Version of the card's format; raised whenever the meaning of a field changes."""
SERVED_DTYPE = "float32"
"""The precision of the model, in training and in use."""


@dataclass(frozen=True)
class EmpiricalCard:
    """Card of an empirical explainer: what it predicts, its training data, its errors, and the costs.

    `versions`: versions of the features, then of the method and its members. `errors`: by name: "predicted class" and
    "other classes" are those of the explainer, the others those of baselines. `passes`, `seconds`: mean costs of an
    exact map. `own_seconds`: time of one prediction. `training_passes`: model evaluations for all exact maps.
    `penalty`: penalty of the ridge regression. `kind`: the model's kind of input.
    """

    model: str
    revision: str
    method: str
    versions: tuple[int, ...]
    params: Mapping[str, Plain]
    dataset: str
    data_revision: str
    train_size: int
    seed: int
    errors: Mapping[str, MapErrors]
    passes: float
    seconds: float
    own_seconds: float
    training_passes: int
    penalty: float
    command: str
    date: str
    version: str
    licence: str
    kind: str = KINDS[0]

    OWN = "predicted class"
    OTHER = "other classes"

    def expected(self, predicted: bool = True) -> float:
        """Return the expected relative squared error of a map for the predicted class, or for another class."""
        name = self.OWN if predicted or self.OTHER not in self.errors else self.OTHER
        return self.errors[name].relative

    @property
    def exact(self) -> Explainer:
        """The method whose maps are predicted. Errors: it no longer exists."""
        return explainer(self.method, self.kind)

    @property
    def predicts(self) -> str:
        """The method and its parameters, as JSON."""
        return json.dumps([self.method, dict(self.params)], sort_keys=True)

    @property
    def break_even(self) -> int:
        """The number of maps from which training has saved passes."""
        return int(np.ceil(self.training_passes / max(self.passes - OWN_PASSES, 1e-9)))

    def as_plain(self) -> dict[str, Any]:
        """Return the content of the card's file."""
        return {"format": FORMAT, **asdict(self), "versions": list(self.versions)}


LOWEST_COST = "exact method at its lowest cost"
"""Name of the errors of the exact method with its smallest budget."""
OWN_PASSES = 1
"""Model evaluations for a predicted map: one forward and backward pass."""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": _is_whole,
    "float": _is_finite,
    "float | None": lambda value: value is None or _is_finite(value),
    "tuple[int, ...]": lambda value: all(map(_is_whole, value)),
}
"""Checks of values, by the type annotation of their field in the card or its errors."""


def check_fields(part: EmpiricalCard | MapErrors) -> None:
    """Raise `ValueError` for a value of the wrong type or a number that is not finite."""
    for field in fields(part):
        if not CHECKS.get(str(field.type), lambda value: True)(value := getattr(part, field.name)):
            raise ValueError(f"{field.name}: must be {field.type}, got {excerpt(value)}")


def card_from_json(plain: object, source: str) -> EmpiricalCard:
    """Return the card from parsed JSON. Errors: it is not a valid card of this format."""
    try:
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError(f"its format must be {FORMAT}")
        values = {name: value for name, value in plain.items() if name != "format"}
        values["versions"] = tuple(values["versions"])
        values["params"] = dict(values["params"])
        values["errors"] = {name: MapErrors(**errors) for name, errors in values["errors"].items()}
        card = EmpiricalCard(**values)
        check_fields(card)
        for errors in card.errors.values():
            check_fields(errors)
        if EmpiricalCard.OWN not in card.errors or not card.passes > 0:
            raise ValueError("its errors or passes are missing")
        if card.kind not in KINDS or card.method not in all_explainers(card.kind):
            raise ValueError(f"method: {excerpt(card.method)} is unknown")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ExegesisError(f"empirical explainer {source}: its card is invalid ({error}). Train it again.") from None
    return card


@dataclass(frozen=True, eq=False)
class EmpiricalExplainer:
    """An empirical explainer with its card.

    `weights`: weights of the features in `engine.empirical.features`. `digest`: a hash of both files, empty before
    saving.
    """

    name: str
    card: EmpiricalCard
    weights: Float[np.ndarray, "feature"]
    digest: str = ""

    @property
    def reference(self) -> str:
        """Its reference in a request, which fixes its content: NAME@DIGEST."""
        return f"{self.name}@{self.digest}"

    def why_not(self, model: str, revision: str) -> str:
        """Return a sentence that says why it does not apply to this revision of a model; empty if it does."""
        card = self.card
        if card.revision != revision:
            own = f"another revision of {model}" if card.model == model else f"{card.model}, not for {model}"
            return f"{self.name} was trained for {own}."
        if (versions := current_versions(card.exact)) != card.versions:
            was, now = (".".join(map(str, own)) for own in (card.versions, versions))
            return f"{self.name} was trained for version {was} of {card.method}, now {now}."
        return ""


def current_versions(method: Explainer) -> tuple[int, ...]:
    """Return the versions that predicted maps depend on: of the features, the method and its members.

    The version of a method from a package is a string and is represented by its checksum.
    """
    versions = versions_of(method)
    return (FEATURES_VERSION, *(zlib.crc32(one.encode()) if isinstance(one, str) else one for one in versions))


def explainers_folder() -> Path:
    """Return the folder of empirical explainers trained on this machine. It may not exist yet."""
    return home() / "empirical"


def check_name(name: str) -> None:
    """Raise an error if a name is not valid as a file name or is taken."""
    if not NAME.fullmatch(name):
        raise not_allowed("out", "a name of letters, digits, dots, - and _, at most 100", name)
    if any((folder / f"{name}{CARD}").exists() for folder in (SHIPPED, explainers_folder())):
        raise UsageError(f"out: {name} is taken. Choose another name, or delete its files in {explainers_folder()}.")


def free_name(model: str, method: str) -> str:
    """Return an unused name: those of model and method, with a number if a file or unfinished job has it."""
    base = f"{file_name(model)}-{method}"
    taken = {one.stem for folder in (SHIPPED, explainers_folder()) for one in folder.glob(f"*{CARD}")}
    unfinished = [job for job in jobs.list_jobs() if job.kind == "empirical" and job.state != "done"]
    taken |= {str(job.spec.get("out")) for job in unfinished}
    return next(name for name in (base, *(f"{base}-{at}" for at in range(2, 10_000))) if name not in taken)


def save(trained: EmpiricalExplainer, folder: Path | None = None) -> EmpiricalExplainer:
    """Write both files, by default to the home folder. Returns the explainer as read back."""
    folder = folder or explainers_folder()
    folder.mkdir(parents=True, exist_ok=True)
    card = json.dumps(trained.card.as_plain(), indent=1, ensure_ascii=False) + "\n"
    replace_file(folder / f"{trained.name}{WEIGHTS}", serialize({TENSOR: np.ascontiguousarray(trained.weights)}))
    replace_file(folder / f"{trained.name}{CARD}", card.encode())
    return load(folder / trained.name)


def load(path: Path) -> EmpiricalExplainer:
    """Load an explainer from a path without suffix. No code in the files is run. Errors: a missing or damaged file."""
    name = path.name
    weights, card = (read_bytes(path.with_name(f"{name}{suffix}"), "an empirical") for suffix in (WEIGHTS, CARD))
    try:
        tensor = deserialize(weights)[TENSOR]
        plain = json.loads(card)
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise ExegesisError(f"empirical explainer {name}: cannot be read ({error}). Train it again.") from None
    if tensor.ndim != 1 or not np.isfinite(tensor).all():
        raise ExegesisError(f"empirical explainer {name}: its weights are not finite numbers. Train it again.")
    digest = hashlib.sha256(hashlib.sha256(weights).digest() + hashlib.sha256(card).digest()).hexdigest()[:16]
    return EmpiricalExplainer(name, card_from_json(plain, name), tensor.astype(np.float64), digest)


def all_trained() -> list[EmpiricalExplainer]:
    """Return all empirical explainers: shipped ones, then those trained here, each sorted by name.

    Damaged ones are left out.
    """
    shipped = _in_folder(SHIPPED)
    taken = {one.name for one in shipped}
    return [*shipped, *(one for one in _in_folder(explainers_folder()) if one.name not in taken)]


def _in_folder(folder: Path) -> list[EmpiricalExplainer]:
    trained = []
    for card in sorted(folder.glob(f"[!.]*{CARD}")):
        try:
            stats = [card.with_suffix(suffix).stat() for suffix in (CARD, WEIGHTS)]
            stamps = tuple((one.st_mtime_ns, one.st_size) for one in stats)
            trained.append(_load_once(str(card.with_suffix("")), stamps))
        except (OSError, ExegesisError):
            continue  # requesting it by name raises the reason
    return trained


@functools.lru_cache(maxsize=256)
def _load_once(path: str, stamps: tuple[tuple[int, int], ...]) -> EmpiricalExplainer:
    """Load a file once, because every cache lookup needs it. `stamps`: change with the files."""
    return load(Path(path))


def trained_for(model: str) -> list[EmpiricalExplainer]:
    """Return the empirical explainers that apply to a model, those of the costliest methods first.

    Among those of the same method and parameters, the one with the smallest expected error is first.
    """
    revision = catalog.revision(model)
    own = [one for one in all_trained() if _serves(one, model, revision)]
    cost: dict[str, float] = {}
    for one in own:
        cost[one.card.predicts] = max(one.card.passes, cost.get(one.card.predicts, 0))
    return sorted(own, key=lambda one: (-cost[one.card.predicts], one.card.predicts, one.card.expected()))


def _serves(trained: EmpiricalExplainer, model: str, revision: str) -> bool:
    try:
        return not trained.why_not(model, revision)
    except ExegesisError:  # for example, its method no longer exists
        return False


def preview_explainer(model: str, method: str, params: Mapping[str, Plain]) -> EmpiricalExplainer | None:
    """Return the empirical explainer that predicts a method's map with these parameters, or None if there is none."""
    own = [one for one in trained_for(model) if one.card.method == method]
    full = as_plain(from_mapping(own[0].card.exact.params, params, method)) if own else {}
    return next((one for one in own if one.card.params == full), None)


def find_explainer(of: str, model: str) -> EmpiricalExplainer:
    """Return the empirical explainer with this name or file, or of this method; empty: of the costliest method.

    NAME@DIGEST also checks that the content is unchanged. Errors: there is none, it has changed, or it was trained for
    another model, another revision of it, or another version of the method.
    """
    own = trained_for(model)
    if chosen := [one for one in own if of in ("", one.name, one.reference, one.card.method)]:
        return chosen[0]
    if not of or of in all_explainers(kind_of_model(model)):
        method = of or "kernel_shap"
        raise UsageError(
            f"empirical: there is no empirical explainer{f' of {of}' if of else ''} for {model}. Train one with "
            f"`exegesis empirical train --model {model} --method {method} --dataset DATA --out NAME`."
        )
    trained = explainer_named(of)
    if why_not := trained.why_not(model, catalog.revision(model)):
        raise UsageError(f"empirical.of: {why_not} Train it again for this model.")
    return trained


def explainer_named(of: str) -> EmpiricalExplainer:
    """Return the empirical explainer with this name or file, for any model. Errors: none exists, or it has changed."""
    reference = REFERENCE.fullmatch(of)
    name = reference["name"] if reference else of
    if "/" in name or "\\" in name:
        access.check_explainer("empirical.of", name)
        trained = load(Path(name.removesuffix(CARD)).expanduser())
        trained = replace(trained, name=name)
    else:
        known = {one.name: one for one in all_trained()}
        if name not in known:
            raise unknown("empirical.of", name, known)
        trained = known[name]
    if reference and trained.digest != reference["digest"]:
        raise UsageError(f"empirical.of: {name} has changed (now {trained.digest}). Request {name} without a digest.")
    return trained


def predict(trained: EmpiricalExplainer, rows: Float[np.ndarray, "position feature"]) -> Float[np.ndarray, "position"]:
    """Return the predicted scores for rows of features. Errors: the explainer has another number of weights."""
    if rows.shape[1] != len(trained.weights):
        raise ExegesisError(
            f"empirical explainer {trained.name}: has {len(trained.weights):,} weights, but the model gives "
            f"{rows.shape[1]:,} features. Train it again for this model."
        )
    return rows @ trained.weights


def describe(trained: EmpiricalExplainer, predicted: bool) -> str:
    """Return a note on what it predicts, its training data and its expected error.

    `predicted`: whether the explained class is the predicted one.
    """
    card = trained.card
    return (
        f"Estimated map of {card.exact.title} by {Path(trained.name).name}, trained on "
        f"{card.train_size:,} maps of {card.dataset}. Expected relative squared error {card.expected(predicted):.2f} "
        "(0: exact, 1: a map of zeros)."
    )
