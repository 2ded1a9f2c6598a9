"""Learned explainers, stored as two files: NAME.safetensors with the coefficients and NAME.json with the card.

To ship one with the project, train the students of a plan and save the median explainer in the shipped folder:
`save(median_explainer(scaffold(plan), train_size), SHIPPED, "reviews-minilm")`. It is then used as method `smat` on the
teacher in its card, as long as the teacher has the same revision.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.numpy import load as deserialize
from safetensors.numpy import save as serialize

from engine import access
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.home import home, product_version
from engine.models import catalog
from engine.scaffold.plan import NONE, NORMALIZATIONS, SMAT, UNEXPLAINED, command_line, head_shape
from engine.scaffold.result import ScaffoldResult, head_weights

SHIPPED = Path(__file__).parent / "shipped"
WEIGHTS, CARD = ".safetensors", ".json"
PHI = "phi"
"""The name of the only tensor."""
LICENCE = "Apache-2.0"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
MOST_BYTES = 1_000_000
"""Larger files are refused."""


FORMAT = 1
"""Version of the card's format; raised whenever the meaning of a field changes."""
FEW_SEEDS = 3
"""Seeds below which quartiles are unreliable."""
METRICS = ("accuracy", "pearson")


@dataclass(frozen=True)
class SimulabilitySummary:
    """Simulability of the students in one setting: median, quartiles and number of students (`seeds`)."""

    low: float
    median: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.median:.3f}, quartiles {self.low:.3f} to {self.high:.3f}"


@dataclass(frozen=True)
class ExplainerCard:
    """Card of a learned explainer.

    `revision`, `family`: the teacher's revision and model_type. `shape`: the teacher's layers and heads per layer.
    `seed`: seed of the student that it was trained with. `metric`: metric of simulability, "accuracy" (0 to 1) or
    "pearson" (-1 to 1). `simulability`: by setting: `smat`, and if measured, `none` and the best static explainer.
    """

    teacher: str
    revision: str
    family: str
    shape: tuple[int, int]
    normalisation: str
    dataset: str
    train_size: int
    seed: int
    made_by: str
    metric: str
    simulability: Mapping[str, SimulabilitySummary]
    date: str
    version: str
    licence: str

    @property
    def worth(self) -> str:
        """How well it teaches, as the predicate of a sentence starting with "It". Better: quartiles do not overlap."""
        learned = self.simulability[SMAT]
        others = {name: summary for name, summary in self.simulability.items() if name != SMAT}
        if not others:
            return f"was compared with no other setting (simulability {learned})"
        if min(summary.seeds for summary in self.simulability.values()) < FEW_SEEDS:
            titles = " and ".join(map(setting_title, others))
            return f"was trained with too few seeds to tell whether it teaches better than {titles}"
        return "; ".join(_against(learned, name, summary) for name, summary in others.items())

    def as_plain(self) -> dict[str, Any]:
        """Return the content of the card's file."""
        return {"format": FORMAT, **asdict(self), "shape": list(self.shape), "worth": f"It {self.worth}."}


def card_from_json(plain: object, source: str) -> ExplainerCard:
    """Return the card from parsed JSON. Errors name `source` and the field that is missing or wrong."""
    if not isinstance(plain, dict):
        raise _wrong(source, "it", "a JSON object", plain)
    if plain.get("format") != FORMAT:
        raise _wrong(source, "format", str(FORMAT), plain.get("format"))
    known = {"format", "worth", *_FIELDS}
    if missing := sorted(known - {"worth"} - plain.keys()):
        raise ExegesisError(f"explainer {source}: {', '.join(missing)} is missing. {_NEXT}")
    if strange := sorted(map(str, plain.keys() - known)):
        raise ExegesisError(f"explainer {source}: unknown fields {', '.join(strange)}. {_NEXT}")
    return ExplainerCard(**{name: read(plain[name], name, source) for name, read in _FIELDS.items()})


def setting_title(setting: str) -> str:
    """Return the name of a setting in a sentence."""
    return "no explainer" if setting == NONE else setting


def _against(learned: SimulabilitySummary, name: str, other: SimulabilitySummary) -> str:
    words = "neither clearly better nor clearly worse than"
    if learned.low > other.high:
        words = "better than"
    elif learned.high < other.low:
        words = "worse than"
    return f"taught {words} {setting_title(name)} (simulability {learned}, against {other})"


_NEXT = "Train the explainer again, or restore its files."


def _wrong(source: str, field: str, allowed: str, got: object) -> ExegesisError:
    return ExegesisError(f"explainer {source}: {field} must be {allowed}, got {excerpt(got)}. {_NEXT}")


def _read_text(value: object, field: str, source: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(source, field, "a text", value)
    return value


def _one_of(*choices: str) -> Callable[[object, str, str], str]:
    def read(value: object, field: str, source: str) -> str:
        if value not in choices:
            raise _wrong(source, field, f"one of {', '.join(choices)}", value)
        return str(value)

    return read


def _whole(low: int) -> Callable[[object, str, str], int]:
    def read(value: object, field: str, source: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise _wrong(source, field, f"a whole number of at least {low}", value)
        return value

    return read


def _read_shape(value: object, field: str, source: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise _wrong(source, field, "[layers, heads in each]", value)
    layers, heads = (_whole(1)(one, field, source) for one in value)
    return layers, heads


def _read_simulability(value: object, field: str, source: str) -> dict[str, SimulabilitySummary]:
    if not isinstance(value, dict) or SMAT not in value:
        raise _wrong(source, field, f"an object by setting that includes {SMAT}", value)
    return {str(setting): _read_summary(summary, f"{field}.{setting}", source) for setting, summary in value.items()}


def _read_summary(value: object, field: str, source: str) -> SimulabilitySummary:
    names = ("low", "median", "high")
    if not isinstance(value, dict) or value.keys() != {*names, "seeds"}:
        raise _wrong(source, field, "an object of low, median, high and seeds", value)
    numbers = [value[name] for name in names]
    plain = all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers)
    if not plain or not -1 <= numbers[0] <= numbers[1] <= numbers[2] <= 1:
        raise _wrong(source, field, "low, median and high in that order, from -1 to 1", numbers)
    low, median, high = map(float, numbers)
    return SimulabilitySummary(low, median, high, _whole(1)(value["seeds"], f"{field}.seeds", source))


_FIELDS: dict[str, Callable[[object, str, str], Any]] = {
    "teacher": _read_text,
    "revision": _read_text,
    "family": _read_text,
    "shape": _read_shape,
    "normalisation": _one_of(*NORMALIZATIONS),
    "dataset": _read_text,
    "train_size": _whole(1),
    "seed": _whole(0),
    "made_by": _read_text,
    "metric": _one_of(*METRICS),
    "simulability": _read_simulability,
    "date": _read_text,
    "version": _read_text,
    "licence": _read_text,
}


@dataclass(frozen=True, eq=False)
class LearnedExplainer:
    """A learned explainer with its card.

    `phi`: the coefficients of all heads, first layer first. `digest`: a hash of both files, empty before saving.
    """

    name: str
    card: ExplainerCard
    phi: Float[np.ndarray, "head"]
    digest: str = ""

    @property
    def weights(self) -> Float[np.ndarray, "layer head"]:
        """`λ = normalize(φ)`."""
        return head_weights(self.phi, self.card.normalisation).reshape(self.card.shape)


def explainers_folder() -> Path:
    """Return the folder of explainers trained on this machine. It may not exist yet."""
    return home() / "explainers"


def save(explainer: LearnedExplainer, folder: Path, name: str = "") -> LearnedExplainer:
    """Write both files, replacing existing ones of the same name. Returns the explainer as read back."""
    name = name or explainer.name
    if not NAME.fullmatch(name):
        raise not_allowed("name of an explainer", "letters, digits, dots, - and _, at most 100", name)
    card_from_json(json.loads(json.dumps(explainer.card.as_plain())), name)
    check_coefficients(explainer.phi, explainer.card, name)
    folder.mkdir(parents=True, exist_ok=True)
    card = json.dumps(explainer.card.as_plain(), indent=1, ensure_ascii=False) + "\n"
    replace_file(folder / f"{name}{WEIGHTS}", serialize({PHI: np.ascontiguousarray(explainer.phi)}))
    replace_file(folder / f"{name}{CARD}", card.encode())
    return load(folder / name)


def load(path: str | Path) -> LearnedExplainer:
    """Load NAME, NAME.safetensors or NAME.json. No code in the files is run.

    Errors: a file that is missing or damaged, a card with a wrong field, or coefficients that are not one finite number
    per head.
    """
    file = Path(path).expanduser()
    stem = file.with_suffix("") if file.suffix in (WEIGHTS, CARD) else file
    weights, json_card = (read_bytes(stem.parent / f"{stem.name}{suffix}") for suffix in (WEIGHTS, CARD))
    card = card_from_json(_read_json(json_card, stem.name), stem.name)
    phi = _read_phi(weights, stem.name)
    check_coefficients(phi, card, stem.name)
    digest = hashlib.sha256(hashlib.sha256(weights).digest() + hashlib.sha256(json_card).digest()).hexdigest()[:16]
    return LearnedExplainer(stem.name, card, phi, digest)


def check_coefficients(phi: np.ndarray, card: ExplainerCard, name: str) -> None:
    """Raise an error if the coefficients are not one finite number per head, in float32 or float64."""
    layers, heads = card.shape
    if phi.shape != (layers * heads,) or phi.dtype not in (np.float32, np.float64):
        raise ExegesisError(
            f"explainer {name}: its coefficients must be {layers * heads} numbers in float32 or float64, one for each "
            f"of the {heads} heads of {layers} layers, got shape {phi.shape} in {phi.dtype}. Train it again."
        )
    if not np.isfinite(phi).all():
        raise ExegesisError(f"explainer {name}: its coefficients are not finite numbers. Train it again.")


def median_explainer(result: ScaffoldResult, train_size: int) -> LearnedExplainer:
    """Return the explainer of the median student at a train size (SMaT, section 5). Errors: there is none."""
    plan = result.plan
    median = result.median_student(train_size)
    if median is None or median.phi is None:
        raise UsageError(
            f"explainer: no finished student of {plan.teacher} has learned one from {train_size:,} examples. "
            f"Train students with the setting {SMAT} at that train size first."
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
    name = f"{file_name(plan.teacher)}-{file_name(plan.dataset)}-{train_size}"
    return LearnedExplainer(name, card, np.array(median.phi))


def save_to_home(explainer: LearnedExplainer, name: str = "") -> LearnedExplainer:
    """Save an explainer in the home folder, where every page finds it.

    Without a name, its own name is used, with a number if it is taken.
    """
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
    raise UsageError(
        f"name of an explainer: all numbered names of {explainer.name} are taken in {folder}. Choose a name."
    )


def _summaries(result: ScaffoldResult, train_size: int) -> dict[str, SimulabilitySummary]:
    """Return the simulability of `smat`, of `none`, and of the static explainer with the highest median."""
    cells = {setting: result.cell(setting, train_size) for setting in result.plan.settings}
    measured = {setting: cell for setting, cell in cells.items() if cell is not None}
    static = [setting for setting in measured if setting not in (*UNEXPLAINED, SMAT)]
    best = max(static, key=lambda setting: measured[setting].median, default=NONE)
    summaries = {}
    for setting in (SMAT, NONE, best):
        if (cell := measured.get(setting)) is not None:
            summaries[setting] = SimulabilitySummary(cell.low, cell.median, cell.high, len(cell.values))
    return summaries


def _is_same(card: Path, explainer: LearnedExplainer) -> bool:
    """Whether the files hold the same explainer, apart from its date."""
    try:
        other = load(card)
    except ExegesisError:
        return False
    return np.array_equal(other.phi, explainer.phi) and other.card == replace(explainer.card, date=other.card.date)


def file_name(name: str) -> str:
    """Return the last part of a model or data set name, with only characters that file names allow."""
    last = re.split(r"[/\\]", name.partition(":")[0].rstrip("/\\"))[-1]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:40] or "model"


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file atomically: a reader sees either the old or the new content."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(file)


def read_bytes(file: Path, kind: str = "a learned") -> bytes:
    """Read a file of an explainer. Errors: it is missing or too large. `kind`: names the explainer in errors."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"explainer: {file} cannot be read ({error.strerror}). Give the name or the file of {kind} explainer."
        ) from None
    if len(content) > MOST_BYTES:
        raise ExegesisError(
            f"explainer {file.stem}: {file.name} is too large for {kind} explainer. Choose another file."
        )
    return content


def _read_json(content: bytes, name: str) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExegesisError(f"explainer {name}: its card is not valid JSON ({error}). Restore its files.") from None


def _read_phi(content: bytes, name: str) -> np.ndarray:
    try:
        tensors: Mapping[str, np.ndarray] = deserialize(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} is damaged ({error}). Restore its files.") from None
    if set(tensors) != {PHI}:
        names = ", ".join(sorted(tensors)) or "nothing"
        raise ExegesisError(f"explainer {name}: its {WEIGHTS} must contain {PHI} only, got {names}. Train it again.")
    return tensors[PHI]


REFERENCE = re.compile(r"(?P<name>.+)@(?P<digest>[0-9a-f]{16})")
"""Pattern of NAME@DIGEST: a name and the digest of its content."""


def explainers_for(model: str) -> list[LearnedExplainer]:
    """Return the explainers for the current revision of a model: shipped ones, then those trained here, newest first.

    Unreadable files are left out; requesting one by name raises an error with the reason.
    """
    revision = catalog.revision(model)
    return [explainer for explainer in _all() if explainer.card.revision == revision]


def find_explainer(name_or_path: str, model: str) -> LearnedExplainer:
    """Return the explainer with this name or file; for an empty string, the first explainer for the model.

    NAME@DIGEST also checks that the content is unchanged. Errors: there is no such explainer, its content has changed,
    or it was trained for a model of another shape.
    """
    explainer = explainer_named(name_or_path) if name_or_path else _first_for(model)
    check_shape(explainer, head_shape(catalog.config(catalog.locate(model))), model)
    return explainer


def explainer_named(name_or_path: str) -> LearnedExplainer:
    """Return the explainer with this name or file, whatever its model is. Errors list the known names."""
    reference = REFERENCE.fullmatch(name_or_path)
    name = reference["name"] if reference else name_or_path
    explainer = _look_up(name)
    if reference and explainer.digest != reference["digest"]:
        raise UsageError(
            f"smat.explainer: {name} has changed (now {explainer.digest}, requested {reference['digest']}). Request "
            f"{name} without a digest."
        )
    return explainer


def explainer_reference(explainer: LearnedExplainer, name_or_path: str) -> str:
    """Return the reference of the explainer in a request, which fixes its content: NAME@DIGEST or FILE@DIGEST."""
    reference = REFERENCE.fullmatch(name_or_path)
    return f"{reference['name'] if reference else name_or_path or explainer.name}@{explainer.digest}"


def check_shape(explainer: LearnedExplainer, shape: tuple[int, int], model: str) -> None:
    """Raise an error if a model has other numbers of layers and heads than the explainer's teacher."""
    card = explainer.card
    if card.shape != shape:
        raise UsageError(
            f"smat.explainer: {explainer.name} was trained for {card.shape[0]} layers of {card.shape[1]} heads "
            f"({card.teacher}), but {model} has {shape[0]} layers of {shape[1]} heads. Choose one that was trained for "
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
        access.check_explainer("smat.explainer", name)
        return load(name)
    for folder in (SHIPPED, explainers_folder()):
        if (folder / f"{name}{CARD}").is_file():
            return load(folder / name)
    error = unknown("smat.explainer", name, (file.name.removesuffix(CARD) for file in _cards()))
    raise UsageError(f"{error} Or give a file such as FOLDER/NAME{CARD}.")


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
    """Load a file once, because every cache lookup needs it. `stamps`: change with the files."""
    return load(card)
