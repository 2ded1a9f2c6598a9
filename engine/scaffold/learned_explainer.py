"""A learned explainer as two files to carry along: NAME.safetensors, the coefficients, and NAME.json, its card.

To ship one with the project, teach the students of a plan and write the median one into the folder of shipped ones:
`save(median_explainer(scaffold(plan), train_size), SHIPPED, "reviews-minilm")`. It is then used as method `smat` on the
teacher that its card names, as long as that has the revision of the card; nothing else has to be configured.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.numpy import load as deserialize
from safetensors.numpy import save as serialize

from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.home import home, product_version
from engine.models import catalog
from engine.scaffold.card import ExplainerCard, SimulabilitySummary, card_from_json
from engine.scaffold.plan import NONE, SMAT, command_line, head_shape
from engine.scaffold.result import ScaffoldResult, head_weights

SHIPPED = Path(__file__).parent / "shipped"
WEIGHTS, CARD = ".safetensors", ".json"
PHI = "phi"
"""The name of the only tensor."""
LICENCE = "Apache-2.0"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
MOST_BYTES = 1_000_000
"""A file that is larger holds no coefficients of heads."""


@dataclass(frozen=True, eq=False)
class LearnedExplainer:
    """`phi`: the coefficients of all heads, the first layer's first. `digest`: of what its files hold."""

    name: str
    card: ExplainerCard
    phi: Float[np.ndarray, "head"]
    digest: str = ""

    @property
    def weights(self) -> Float[np.ndarray, "layer head"]:
        """`λ = normalize(φ)`."""
        return head_weights(self.phi, self.card.normalisation).reshape(self.card.shape)


def explainers_folder() -> Path:
    """The folder of those that were trained here. It may not exist yet."""
    return home() / "explainers"


def save(explainer: LearnedExplainer, folder: Path, name: str = "") -> LearnedExplainer:
    """Write both files, the card last, in place of files of that name. Returns what is then read from them."""
    name = name or explainer.name
    if not NAME.fullmatch(name):
        raise not_allowed("name of an explainer", "letters, digits, dots, - and _, at most 100", name)
    card_from_json(json.loads(json.dumps(explainer.card.as_plain())), name)
    check_coefficients(explainer.phi, explainer.card, name)
    folder.mkdir(parents=True, exist_ok=True)
    card = json.dumps(explainer.card.as_plain(), indent=1, ensure_ascii=False) + "\n"
    _write(folder / f"{name}{WEIGHTS}", serialize({PHI: np.ascontiguousarray(explainer.phi)}))
    _write(folder / f"{name}{CARD}", card.encode())
    return load(folder / name)


def load(path: str | Path) -> LearnedExplainer:
    """From NAME, NAME.safetensors or NAME.json; only numbers and texts are read, nothing is run.

    Errors: a file that is missing or damaged, a card with a wrong field, coefficients that are no finite numbers or
    not one a head.
    """
    file = Path(path).expanduser()
    stem = file.with_suffix("") if file.suffix in (WEIGHTS, CARD) else file
    weights, json_card = (_read_bytes(stem.parent / f"{stem.name}{suffix}") for suffix in (WEIGHTS, CARD))
    card = card_from_json(_read_json(json_card, stem.name), stem.name)
    phi = _read_phi(weights, stem.name)
    check_coefficients(phi, card, stem.name)
    digest = hashlib.sha256(hashlib.sha256(weights).digest() + hashlib.sha256(json_card).digest()).hexdigest()[:16]
    return LearnedExplainer(stem.name, card, phi, digest)


def check_coefficients(phi: np.ndarray, card: ExplainerCard, name: str) -> None:
    """Refuse what is not one finite number a head."""
    layers, heads = card.shape
    if phi.shape != (layers * heads,) or phi.dtype not in (np.float32, np.float64):
        raise ExegesisError(
            f"explainer {name}: its coefficients must be {layers * heads} numbers in float32 or float64, one for each "
            f"of the {heads} heads of {layers} layers, got shape {phi.shape} in {phi.dtype}. Train it again."
        )
    if not np.isfinite(phi).all():
        raise ExegesisError(f"explainer {name}: its coefficients are not finite numbers. Train it again.")


def median_explainer(result: ScaffoldResult, train_size: int) -> LearnedExplainer:
    """The explainer of the median student at that train size (SMaT, section 5). Errors: there is none."""
    plan = result.plan
    median = result.median_student(train_size)
    if median is None or median.phi is None:
        raise UsageError(
            f"explainer: no finished student of {plan.teacher} has learned one from {train_size:,} examples. "
            f"Teach with the setting {SMAT} at that train size first."
        )
    teacher = catalog.locate(plan.teacher)
    card = ExplainerCard(
        teacher=plan.teacher,
        revision=catalog.revision(plan.teacher),
        family=str(catalog.config(teacher).get("model_type", "unknown")),
        shape=result.shape,
        normalisation=plan.recipe.normalisation,
        dataset=plan.dataset,
        train_size=train_size,
        seed=median.run.seed,
        made_by=command_line(plan),
        metric=result.metric,
        simulability=_summaries(result, train_size),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=product_version(),
        licence=LICENCE,
    )
    name = f"{_file_name(plan.teacher)}-{_file_name(plan.dataset)}-{train_size}"
    return LearnedExplainer(name, card, np.array(median.phi))


def save_to_home(explainer: LearnedExplainer, name: str = "") -> LearnedExplainer:
    """Save it where every page finds it. Without a name it gets its own, numbered where that is taken by another."""
    folder = explainers_folder()
    if name and any((there / f"{name}{CARD}").exists() for there in (folder, SHIPPED)):
        raise UsageError(f"name of an explainer: {name} is taken. Choose another name.")
    if name:
        return save(explainer, folder, name)
    for number in range(1, 10_000):
        free = explainer.name if number == 1 else f"{explainer.name}-{number}"
        card = folder / f"{free}{CARD}"
        if (SHIPPED / card.name).exists():
            continue
        if not card.exists() or _is_same(card, explainer):
            return save(explainer, folder, free)
    raise UsageError(f"name of an explainer: {explainer.name} is taken too often in {folder}. Name it.")


def _summaries(result: ScaffoldResult, train_size: int) -> dict[str, SimulabilitySummary]:
    """Simulability with the learned explainer, with none, and with the best static one by its median."""
    cells = {setting: result.cell(setting, train_size) for setting in result.plan.settings}
    measured = {setting: cell for setting, cell in cells.items() if cell is not None}
    static = [setting for setting in measured if setting not in (NONE, SMAT)]
    best = max(static, key=lambda setting: measured[setting].median, default=NONE)
    summaries = {}
    for setting in (SMAT, NONE, best):
        if (cell := measured.get(setting)) is not None:
            summaries[setting] = SimulabilitySummary(cell.low, cell.median, cell.high, len(cell.values))
    return summaries


def _is_same(card: Path, explainer: LearnedExplainer) -> bool:
    """Whether the files hold the same explainer, whatever its date."""
    try:
        other = load(card)
    except ExegesisError:
        return False
    return np.array_equal(other.phi, explainer.phi) and other.card == replace(explainer.card, date=other.card.date)


def _file_name(name: str) -> str:
    """The last part of a model's or data set's name, of letters that any file may have."""
    last = re.split(r"[/\\]", name.partition(":")[0].rstrip("/\\"))[-1]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:40] or "model"


def _write(file: Path, content: bytes) -> None:
    """Replace a file at once: a reader sees the old one or the new one, never half of it."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)


def _read_bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"explainer: {file} cannot be read ({error.strerror}). Give the name or the file of a learned explainer."
        ) from None
    if len(content) > MOST_BYTES:
        raise ExegesisError(f"explainer {file.stem}: {file.name} is too large for a learned explainer. Give another.")
    return content


def _read_json(content: bytes, name: str) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExegesisError(
            f"explainer {name}: its card cannot be read as JSON ({error}). Get its files again."
        ) from None


def _read_phi(content: bytes, name: str) -> np.ndarray:
    try:
        tensors: Mapping[str, np.ndarray] = deserialize(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} is damaged ({error}). Get its files again.") from None
    if set(tensors) != {PHI}:
        names = ", ".join(sorted(tensors)) or "nothing"
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} must hold {PHI} alone, got {names}. Train it again.")
    return tensors[PHI]


REFERENCE = re.compile(r"(?P<name>.+)@(?P<digest>[0-9a-f]{16})")
"""NAME@DIGEST: a name, and the digest of what it stood for."""


def explainers_for(model: str) -> list[LearnedExplainer]:
    """The explainers for a model as it is now: the shipped ones first, then those trained here, the newest first.

    Files that cannot be read are left out; naming one raises the reason.
    """
    revision = catalog.revision(model)
    return [explainer for explainer in _all() if explainer.card.revision == revision]


def find_explainer(name_or_path: str, model: str) -> LearnedExplainer:
    """The explainer of that name or file; empty: the first of those for the model.

    NAME@DIGEST is the same as long as its content is. Errors: none is known, it changed, or it was learned for a model
    of another shape.
    """
    explainer = explainer_named(name_or_path) if name_or_path else _first_for(model)
    check_shape(explainer, head_shape(catalog.config(catalog.locate(model))), model)
    return explainer


def explainer_named(name_or_path: str) -> LearnedExplainer:
    """The explainer of that name or file, for whatever model. Errors list the known names."""
    reference = REFERENCE.fullmatch(name_or_path)
    name = reference["name"] if reference else name_or_path
    explainer = _look_up(name)
    if reference and explainer.digest != reference["digest"]:
        raise UsageError(
            f"smat.explainer: {name} is no longer what it was (now {explainer.digest}, asked for "
            f"{reference['digest']}). Ask for {name} alone."
        )
    return explainer


def explainer_reference(explainer: LearnedExplainer, name_or_path: str) -> str:
    """The name of the explainer and its content in a request: NAME@DIGEST, or FILE@DIGEST."""
    reference = REFERENCE.fullmatch(name_or_path)
    return f"{reference['name'] if reference else name_or_path or explainer.name}@{explainer.digest}"


def check_shape(explainer: LearnedExplainer, shape: tuple[int, int], model: str) -> None:
    """Refuse a model whose layers and heads are not those of the explainer's teacher."""
    card = explainer.card
    if card.shape != shape:
        raise UsageError(
            f"smat.explainer: {explainer.name} was learned for {card.shape[0]} layers of {card.shape[1]} heads "
            f"({card.teacher}), and {model} has {shape[0]} layers of {shape[1]} heads. Choose one that was learned for "
            "this model, or train one."
        )


def _first_for(model: str) -> LearnedExplainer:
    for explainer in explainers_for(model):
        return explainer
    raise UsageError(
        f"smat: there is no learned explainer for {model}. Train one with "
        f"`exegesis scaffold --teacher {model} --dataset DATA --settings none,smat --explainer NAME` "
        "or on the Scaffold page."
    )


def _look_up(name: str) -> LearnedExplainer:
    if "/" in name or "\\" in name or name.endswith((WEIGHTS, CARD)):
        return load(name)
    for folder in (SHIPPED, explainers_folder()):
        if (folder / f"{name}{CARD}").is_file():
            return load(folder / name)
    error = unknown("smat.explainer", name, (file.name.removesuffix(CARD) for file in _cards()))
    raise UsageError(f"{error} Or give a file, as FOLDER/NAME{CARD}.")


def _cards() -> list[Path]:
    shipped = sorted(SHIPPED.glob(f"*{CARD}"))
    own = sorted(explainers_folder().glob(f"[!.]*{CARD}"))
    taken = {file.name for file in shipped}
    return shipped + [file for file in own if file.name not in taken]


def _all() -> list[LearnedExplainer]:
    explainers = [explainer for file in _cards() if (explainer := _load_readable(file)) is not None]
    shipped = {file.name.removesuffix(CARD) for file in SHIPPED.glob(f"*{CARD}")}
    own = [explainer for explainer in explainers if explainer.name not in shipped]
    own.sort(key=lambda explainer: explainer.card.date, reverse=True)
    return [explainer for explainer in explainers if explainer.name in shipped] + own


def _load_readable(card: Path) -> LearnedExplainer | None:
    try:
        stamps = tuple(_stamp(card.with_name(card.name.removesuffix(CARD) + suffix)) for suffix in (CARD, WEIGHTS))
        return _load_once(str(card), stamps)
    except (OSError, ExegesisError):
        return None


def _stamp(file: Path) -> tuple[int, ...]:
    stat = file.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(maxsize=256)
def _load_once(card: str, stamps: tuple[tuple[int, ...], ...]) -> LearnedExplainer:
    """Load a file once, since every answer from the cache needs it. `stamps`: change with the files."""
    return load(card)
