"""A learned explainer as two files to carry along: NAME.safetensors, the coefficients, and NAME.json, its card.

To ship one with the project, teach the students of a plan and write the median one where shipped explainers lie:
`save(artefact_of(scaffold(plan), train_size), SHIPPED, "reviews-minilm")`. It is then used as method `smat` on the
teacher that its card names, as long as that has the revision of the card; nothing else has to be told.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError, UsageError, not_allowed
from engine.home import home, product_version
from engine.models import catalog
from engine.scaffold.card import Card, Taught, card_of
from engine.scaffold.command import command
from engine.scaffold.plan import NONE, SMAT
from engine.scaffold.result import Cell, Scaffold
from engine.scaffold.weighing import weights_of

SHIPPED = Path(__file__).parent / "shipped"
WEIGHTS, CARD = ".safetensors", ".json"
PHI = "phi"
"""The name of the only tensor."""
LICENCE = "Apache-2.0"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
MOST_BYTES = 1_000_000
"""A file that is larger holds no coefficients of heads."""


@dataclass(frozen=True, eq=False)
class Learned:
    """`phi`: the coefficients of all heads, the first layer's first. `digest`: of what its files hold."""

    name: str
    card: Card
    phi: Float[np.ndarray, "head"]
    digest: str = ""

    @property
    def weights(self) -> Float[np.ndarray, "layer head"]:
        """`λ = normalize(φ)`. It imports what runs models."""
        return weights_of(self.phi, self.card.normalisation).reshape(self.card.shape)


def explainers_folder() -> Path:
    """Where those lie that were trained here. The folder may not exist yet."""
    return home() / "explainers"


def save(learned: Learned, folder: Path, name: str = "") -> Learned:
    """Writes both files, the card last, in place of files of that name. Returns what is then read from them."""
    from safetensors.numpy import save as packed

    name = name or learned.name
    if not NAME.fullmatch(name):
        raise not_allowed("name of an explainer", "letters, digits, dots, - and _, at most 100", name)
    card_of(json.loads(json.dumps(learned.card.as_plain())), name)
    check_coefficients(learned.phi, learned.card, name)
    folder.mkdir(parents=True, exist_ok=True)
    card = json.dumps(learned.card.as_plain(), indent=1, ensure_ascii=False) + "\n"
    _write(folder / f"{name}{WEIGHTS}", packed({PHI: np.ascontiguousarray(learned.phi)}))
    _write(folder / f"{name}{CARD}", card.encode())
    return load(folder / name)


def load(path: str | Path) -> Learned:
    """From NAME, NAME.safetensors or NAME.json; only numbers and texts are read, nothing is run.

    Errors: a file that is missing or damaged, a card with a wrong field, coefficients that are no finite numbers or
    not one a head.
    """
    given = Path(path).expanduser()
    stem = given.with_suffix("") if given.suffix in (WEIGHTS, CARD) else given
    weights, card = (_bytes(stem.parent / f"{stem.name}{suffix}") for suffix in (WEIGHTS, CARD))
    told = card_of(_json(card, stem.name), stem.name)
    phi = _phi(weights, stem.name)
    check_coefficients(phi, told, stem.name)
    digest = hashlib.sha256(hashlib.sha256(weights).digest() + hashlib.sha256(card).digest()).hexdigest()[:16]
    return Learned(stem.name, told, phi, digest)


def check_coefficients(phi: np.ndarray, card: Card, name: str) -> None:
    """Refuses what is not one finite number a head."""
    layers, heads = card.shape
    if phi.shape != (layers * heads,) or phi.dtype not in (np.float32, np.float64):
        raise ExegesisError(
            f"explainer {name}: its coefficients must be {layers * heads} numbers in float32 or float64, one for each "
            f"of the {heads} heads of {layers} layers, got shape {phi.shape} in {phi.dtype}. Train it again."
        )
    if not np.isfinite(phi).all():
        raise ExegesisError(f"explainer {name}: its coefficients are not finite numbers. Train it again.")


def artefact_of(found: Scaffold, train_size: int) -> Learned:
    """The explainer of the median student at that train size (SMaT, section 5). Errors: there is none."""
    plan = found.plan
    median = found.median_outcome(train_size)
    if median is None or median.phi is None:
        raise UsageError(
            f"explainer: no finished student of {plan.teacher} has learned one from {train_size:,} examples. "
            f"Teach with the setting {SMAT} at that train size first."
        )
    teacher = catalog.locate(plan.teacher)
    card = Card(
        teacher=plan.teacher,
        revision=catalog.revision(plan.teacher),
        family=str(catalog.config(teacher).get("model_type", "unknown")),
        shape=found.shape,
        normalisation=plan.recipe.normalisation,
        dataset=plan.dataset,
        train_size=train_size,
        seed=median.pupil.seed,
        made_by=command(plan),
        metric=found.metric,
        simulability=_simulability(found, train_size),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        version=product_version(),
        licence=LICENCE,
    )
    name = f"{_file_name(plan.teacher)}-{_file_name(plan.dataset)}-{train_size}"
    return Learned(name, card, np.array(median.phi))


def save_to_home(learned: Learned, name: str = "") -> Learned:
    """Keeps it where every page finds it. Without a name it gets its own, numbered where that is taken by another."""
    folder = explainers_folder()
    if name and any((there / f"{name}{CARD}").exists() for there in (folder, SHIPPED)):
        raise UsageError(f"name of an explainer: {name} is taken. Choose another name.")
    if name:
        return save(learned, folder, name)
    for number in range(1, 10_000):
        free = learned.name if number == 1 else f"{learned.name}-{number}"
        there = folder / f"{free}{CARD}"
        if (SHIPPED / there.name).exists():
            continue
        if not there.exists() or _same(there, learned):
            return save(learned, folder, free)
    raise UsageError(f"name of an explainer: {learned.name} is taken too often in {folder}. Name it.")


def _simulability(found: Scaffold, train_size: int) -> dict[str, Taught]:
    """Of the learned explainer, of none, and of the best static one by its median."""
    cells = {setting: found.cell(setting, train_size) for setting in found.plan.settings}
    there = {setting: cell for setting, cell in cells.items() if cell is not None}
    static = {setting: cell for setting, cell in there.items() if setting not in (NONE, SMAT)}
    best = max(static, key=lambda setting: static[setting].median, default=None)
    wanted = [name for name in (SMAT, NONE, best) if name in there]
    return {str(name): _taught(there[str(name)]) for name in wanted}


def _taught(cell: Cell) -> Taught:
    return Taught(cell.low, cell.median, cell.high, len(cell.values))


def _same(card: Path, learned: Learned) -> bool:
    """Whether the files hold the same, made on whatever day."""
    try:
        there = load(card)
    except ExegesisError:
        return False
    return np.array_equal(there.phi, learned.phi) and there.card == replace(learned.card, date=there.card.date)


def _file_name(of: str) -> str:
    """The last part of a model's or data set's name, of letters that any file may have."""
    last = re.split(r"[/\\]", of.partition(":")[0].rstrip("/\\"))[-1]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:40] or "model"


def _write(file: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never half of it."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)


def _bytes(file: Path) -> bytes:
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


def _json(content: bytes, name: str) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExegesisError(
            f"explainer {name}: its card cannot be read as JSON ({error}). Get its files again."
        ) from None


def _phi(content: bytes, name: str) -> np.ndarray:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpacked

    try:
        tensors: Mapping[str, np.ndarray] = unpacked(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} is damaged ({error}). Get its files again.") from None
    if set(tensors) != {PHI}:
        held = ", ".join(sorted(tensors)) or "nothing"
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} must hold {PHI} alone, got {held}. Train it again.")
    return tensors[PHI]
