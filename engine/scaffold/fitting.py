"""Which learned explainers there are for a model, and the one that a name stands for."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from engine.errors import ExegesisError, UsageError, unknown
from engine.models import catalog
from engine.scaffold.artefact import CARD, SHIPPED, WEIGHTS, Learned, explainers_folder, load
from engine.scaffold.plan import shape_of

SETTLED = re.compile(r"(?P<name>.+)@(?P<digest>[0-9a-f]{16})")
"""A name, and the digest of what it stood for."""


def explainers_for(model: str) -> list[Learned]:
    """Those that were learned for the model as it is now: the shipped ones first, then those trained here, the newest
    first. Files that cannot be read are left out: who names one is told why."""
    revision = catalog.revision(model)
    return [learned for learned in _all() if learned.card.revision == revision]


def find(name_or_path: str, model: str) -> Learned:
    """The explainer of that name or file; empty: the first of those for the model.

    NAME@DIGEST is the same as long as its content is. Errors: none is known, it changed, or it was learned for a model
    of another shape.
    """
    learned = named(name_or_path) if name_or_path else _own(model)
    shape = shape_of(catalog.config(catalog.locate(model)))
    check_shape(learned, shape, model)
    return learned


def named(name_or_path: str) -> Learned:
    """The explainer of that name or file, for whatever model. Errors list the known names."""
    settled = SETTLED.fullmatch(name_or_path)
    name = settled["name"] if settled else name_or_path
    learned = _looked_up(name)
    if settled and learned.digest != settled["digest"]:
        raise UsageError(
            f"smat.explainer: {name} is no longer what it was (now {learned.digest}, asked for {settled['digest']}). "
            f"Ask for {name} alone."
        )
    return learned


def reference(learned: Learned, name_or_path: str) -> str:
    """What stands for the explainer and its content in a request: NAME@DIGEST, or FILE@DIGEST."""
    settled = SETTLED.fullmatch(name_or_path)
    return f"{settled['name'] if settled else name_or_path or learned.name}@{learned.digest}"


def check_shape(learned: Learned, shape: tuple[int, int], model: str) -> None:
    """Refuses a model whose layers and heads are not those of the explainer's teacher."""
    if learned.card.shape != shape:
        raise UsageError(
            f"smat.explainer: {learned.name} was learned for {_size(learned.card.shape)} ({learned.card.teacher}), "
            f"and {model} has {_size(shape)}. Choose one that was learned for this model, or train one."
        )


def _size(shape: tuple[int, int]) -> str:
    return f"{shape[0]} layers of {shape[1]} heads"


def _own(model: str) -> Learned:
    for learned in explainers_for(model):
        return learned
    raise UsageError(
        f"smat: there is no learned explainer for {model}. Train one with "
        f"`exegesis scaffold --teacher {model} --dataset DATA --settings none,smat --explainer NAME` "
        "or on the Scaffold page."
    )


def _looked_up(name: str) -> Learned:
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


def _all() -> list[Learned]:
    read = [learned for file in _cards() if (learned := _readable(file)) is not None]
    shipped = {file.name.removesuffix(CARD) for file in SHIPPED.glob(f"*{CARD}")}
    mine = [learned for learned in read if learned.name not in shipped]
    mine.sort(key=lambda learned: learned.card.date, reverse=True)
    return [learned for learned in read if learned.name in shipped] + mine


def _readable(card: Path) -> Learned | None:
    try:
        stamps = tuple(_stamp(card.with_name(card.name.removesuffix(CARD) + suffix)) for suffix in (CARD, WEIGHTS))
        return _remembered(str(card), stamps)
    except (OSError, ExegesisError):
        return None


def _stamp(file: Path) -> tuple[int, ...]:
    stat = file.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@functools.lru_cache(maxsize=256)
def _remembered(card: str, stamps: tuple[tuple[int, ...], ...]) -> Learned:
    """Read once: this stands before every answer from the cache. `stamps`: tell when another file is there."""
    return load(card)
