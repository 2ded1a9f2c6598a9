"""Results of the Python interface: frozen, with conversion to tables, plain values and files, and display in notebooks.

They hold the engine's own results, so that all values are those of the page and the command.
"""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cache.codec import plain
from components.map_rows import patch_rows, token_rows
from components.method_row import method_row, method_row_html
from components.prediction_bars import prediction_html
from components.widgets.patch_map import patch_card, patch_card_html, picture_card_html
from engine.cli.compare import comparison_sections, search_sections
from engine.cli.output import check_place, visible, write_file
from engine.comparison.plan import ComparisonPlan, plan_of
from engine.errors import ExegesisError, UsageError, not_allowed, one_line, unknown
from engine.experiments.base import ExperimentResult, experiment, experiment_of
from engine.experiments.options import options_of
from engine.experiments.run import join_results, pack_fields, part_results, parts_of, rows_of, unpack_fields
from engine.format import size_text
from engine.input_kinds import check_unit
from engine.lazy import LazyModule, pandas
from engine.registry import Explainer, explainer
from engine.request import Example, HeadScales, Input, Picture, Request, read_example
from engine.result import Explanation, Prediction, explanation_to_json, pack, unpack
from engine.table_io import to_csv, to_parquet, unescape_cell
from engine.vision.picture import read_view
from exegesis.display import cards_html, output_html, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

HEADER = "exegesis"
"""The array of an archive that holds all other values as JSON."""
LARGEST_ARCHIVE = 2**30
"""Maximum size of all arrays of an archive, unpacked, in bytes."""
MOST_PARTS = 1_000_000
"""Maximum number of parts of an archive: models, or explanations."""
SUFFIXES = (".csv", ".json", ".parquet", ".npz")
SHOWN_SCORES = 3
"""Number of tokens in the text of a result."""


class TabularResult(ABC):
    """Base class of results, with `rows`, `to_pandas`, `to_dict`, `to_html` and `save`."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the page's CSV file, with plain values."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values, as the command prints it with --json."""

    @abstractmethod
    def column_types(self) -> Mapping[str, type]:
        """Return the type of each column of the rows."""

    @abstractmethod
    def to_html(self) -> str:
        """Return the result as one HTML element with its own style, which fetches nothing."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame. Missing numbers are NaN."""
        types = self.column_types()
        frame = pandas.DataFrame(self.rows(), columns=list(types))
        numbers = [name for name, kind in types.items() if kind in (int, float)]
        return frame.astype({name: float for name in numbers if types[name] is float or frame[name].isna().any()})

    def save(self, path: str | Path) -> Path:
        """Write the result to a file in the format of its extension, and return the path.

        `.csv`, `.parquet`: the rows. `.json`: the values of `to_dict`. `.npz`: the complete result, which
        `exegesis.load` reads back.

        Errors: an unknown extension, a folder that does not exist.
        """
        file = Path(path).expanduser()
        suffix = file.suffix.lower()
        if suffix not in SUFFIXES:
            raise not_allowed("path", f"a file whose name ends with one of {', '.join(SUFFIXES)}", str(path))
        check_place("path", file)
        write_file("path", file, self._encode(suffix))
        return file

    def _encode(self, suffix: str) -> bytes:
        if suffix == ".csv":
            return (to_csv(self.rows()) or ",".join(self.column_types()) + "\n").encode()
        if suffix == ".parquet":
            return to_parquet(self.rows(), self.column_types())
        if suffix == ".json":
            return (json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
        return self._archive()

    @abstractmethod
    def _archive(self) -> bytes:
        """Return the complete result as an archive, for `load`."""

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.to_html()}


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(TabularResult, Sequence[Explanation]):
    """Maps of one input by several methods: a sequence of the engine's explanations, also indexed by method id.

    input: the input as the model reads it. target: the class as it was named, None for the predicted one.
    """

    input: Input
    explanations: tuple[Explanation, ...]
    target: int | str | None = None

    @overload
    def __getitem__(self, key: int | str) -> Explanation: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Explanation]: ...
    def __getitem__(self, key: int | str | slice) -> Explanation | Sequence[Explanation]:
        if not isinstance(key, str):
            return self.explanations[key]
        by_method = {one.provenance.method: one for one in self.explanations}
        if key not in by_method:
            raise unknown("method", key, by_method)
        return by_method[key]

    def __len__(self) -> int:
        return len(self.explanations)

    @property
    def model(self) -> str:
        """The model's name, or its folder."""
        return self[0].provenance.model

    @property
    def prediction(self) -> Prediction:
        """Classes with their probabilities."""
        return self[0].prediction

    @property
    def methods(self) -> tuple[str, ...]:
        """Ids of the methods."""
        return tuple(one.provenance.method for one in self.explanations)

    @cached_property
    def cautions(self) -> dict[str, tuple[str, ...]]:
        """Reservations about the map of each method: the method's caution, then the notes on this map."""
        return {
            one.provenance.method: (self._explainer(one).caution, *one.remarks)
            for one in self.explanations
        }  # fmt: skip

    @property
    def requests(self) -> tuple[Request, ...]:
        """The engine's request for each map, with which the page and the command find it in the cache."""
        return tuple(
            Request(
                own.model, own.method, self.input, own.params, self.target, own.seed, own.dtype, HeadScales(own.heads)
            )
            for own in (one.provenance for one in self.explanations)
        )

    def rows(self) -> list[dict[str, Any]]:
        if isinstance(self.input, Picture):
            return [row for one in self.explanations for row in patch_rows(self._explainer(one), one)]
        return [{**row, "special": row["special"] == "true"} for row in token_rows(self.explanations)]

    def column_types(self) -> Mapping[str, type]:
        if isinstance(self.input, Picture):
            return {"method": str, "row": int, "column": int, "score": float, "rank": int}
        own = {"token": str, "start": int, "end": int, "segment": int, "special": bool}
        return own | dict.fromkeys(self.methods, float)

    def to_dict(self) -> dict[str, Any]:
        """Return `input`, and `explanations` as in `exegesis explain --json` and the page's JSON file."""
        own = {"input": self.input.as_plain(), "explanations": list(map(explanation_to_json, self.explanations))}
        values: dict[str, Any] = plain(own)
        return values

    def to_html(self, unit: str = "token") -> str:
        """Return the prediction and the maps as on the page. `unit`: for a text, token, word, sentence or turn."""
        check_unit(unit if self.input.kind == "text" else "patch", self.input.kind)
        first = self[0]
        bars = prediction_html(first.prediction, first.provenance.target)
        return maps_html(self.input, self.explanations, unit, above=[bars])

    def _explainer(self, one: Explanation) -> Explainer:
        return explainer(one.provenance.method, self.input.kind)

    def __repr__(self) -> str:
        first = self[0]
        origin, prediction = first.provenance, first.prediction
        answer = f"score {prediction.logits[0]:.4f}" if prediction.regression else (
            f"{prediction.label!r}{_rather_than(prediction)}, explained: {origin.target_label!r}"
        )  # fmt: skip
        lines = [f"Explanations of {origin.model}, revision {origin.revision}: {answer}"]
        width = max(map(len, self.methods))
        lines += [f"  {one.provenance.method:<{width}}  {_largest(one)}{_check(one)}" for one in self.explanations]
        return "\n".join(map(visible, lines))

    def _archive(self) -> bytes:
        packed = [pack(one) for one in self.explanations]
        pixels = {"pixels": self.input.pixels} if isinstance(self.input, Picture) else {}
        meta = {"input": self.input.as_plain(), "target": self.target, "explanations": [meta for meta, _ in packed]}
        return write_archive("explanations", meta, [*(arrays for _, arrays in packed), pixels])


def _rather_than(prediction: Prediction) -> str:
    """Return the probability of the predicted class; for a contrast also the other token."""
    if not prediction.of_two_tokens:
        return f" {prediction.confidence:.4f}"
    return f" rather than {prediction.labels[1 - prediction.index]!r} {prediction.confidence:.4f} of the two"


def _largest(one: Explanation) -> str:
    """Return the features with the largest scores as text."""
    order = one.features[np.argsort(-np.abs(one.scores[one.features]), kind="stable")][:SHOWN_SCORES]
    return ", ".join(f"{one.tokens[at].text!r} {one.scores[at]:+.4g}" for at in order.tolist())


def _check(one: Explanation) -> str:
    if one.check is None:
        return ""
    return "".join(f"; {part.name} {part.value:.1e} {'ok' if part.ok else 'too large'}" for part in one.check.parts)


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentRun(TabularResult):
    """The result of an experiment on many examples. result: the engine's own result, with its plan and all values."""

    result: ExperimentResult | Any

    @property
    def plan(self) -> Any:
        """The plan, with open fields filled in from the data set."""
        return self.result.plan

    @property
    def id(self) -> str:
        """The id of the experiment, such as "evaluate"."""
        return experiment_of(self.plan).id

    def rows(self) -> list[dict[str, Any]]:
        """Return one observation per row, as the command's `--out` writes them."""
        return list(rows_of(self.result))

    def column_types(self) -> Mapping[str, type]:
        return experiment_of(self.plan).steps.COLUMNS

    def to_dict(self) -> dict[str, Any]:
        """Return the output of the command with `--json`."""
        values: dict[str, Any] = plain(experiment_of(self.plan).steps.to_json(self.result))
        return values

    def to_html(self) -> str:
        """Return the tables of the command, with their notes."""
        return output_html([table_html(self._sections())])

    def __str__(self) -> str:
        return table_text(self._sections())

    def __repr__(self) -> str:
        plan = self.plan
        return visible(
            f"ExperimentRun {self.id}: {', '.join(plan.models)} on {plan.dataset}, {plan.examples} examples, seed "
            f"{plan.seed}, methods {', '.join(plan.methods)}; {len(self.rows()):,} rows"
        )

    def _sections(self) -> Iterator[Any]:
        yield from LazyModule(f"engine.cli.{self.id}").sections(self.result)

    def _archive(self) -> bytes:
        own = experiment_of(self.plan)
        packer = getattr(own.steps, "pack", pack_fields)
        packed = [packer(one) for one in part_results(self.result)]
        query = self.result.requested_plan.as_plain() if isinstance(self.result, ExperimentResult) else None
        meta = {"id": own.id, "plan": plain_plan(self.plan), "query": query, "parts": [meta for meta, _ in packed]}
        return write_archive("experiment", meta, [arrays for _, arrays in packed])


@dataclass(frozen=True, eq=False, repr=False)
class MapComparison(TabularResult):
    """Models and methods side by side on one input, or the examples on which they disagree most.

    plain: the output of `exegesis compare --json`. plan: pairs of model and method, and the data set of a search.
    measure: measure of agreement. input: the compared input, None for a search. maps: maps of that input, one per
    column.
    """

    plain: Mapping[str, Any]
    plan: ComparisonPlan
    measure: str
    input: Input | None = None
    maps: tuple[Explanation, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per pair of columns with their agreement; for a search, one row per example."""
        if self.input is None:
            return [{**one, "predicted": ", ".join(map(str, one["predicted"]))} for one in self.plain["found"]]
        codes = [column["column"] for column in self.plain["columns"]]
        matrix = self.plain["agreement"][self.measure]
        return [
            {"column": one, "other": other, self.measure: matrix[at][to]}
            for at, one in enumerate(codes)
            for to, other in enumerate(codes)
            if at < to
        ]

    def column_types(self) -> Mapping[str, type]:
        if self.input is None:
            return {"index": int, "example": str, "disagreement": float, "predicted": str}
        return {"column": str, "other": str, self.measure: float}

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = plain(self.plain)
        return values

    def to_html(self) -> str:
        """Return the maps of one input, and the tables of the command."""
        tables = table_html(self._sections())
        return output_html([tables]) if self.input is None else maps_html(self.input, self.maps, "word", below=[tables])

    def __str__(self) -> str:
        return table_text(self._sections())

    __repr__ = __str__

    def _sections(self) -> Iterator[Any]:
        if self.input is None:
            return search_sections(self.plain)
        return comparison_sections((), self.plain, self.measure)

    def _archive(self) -> bytes:
        packed = [pack(one) for one in self.maps]
        pixels = {"pixels": self.input.pixels} if isinstance(self.input, Picture) else {}
        own = None if self.input is None else self.input.as_plain()
        meta: dict[str, Any] = {
            "plain": self.plain,
            "plan": self.plan.as_plain(),
            "measure": self.measure,
            "input": own,
        }
        meta["maps"] = [meta for meta, _ in packed]
        return write_archive("comparison", meta, [*(arrays for _, arrays in packed), pixels])


def maps_html(
    content: Input, explanations: Sequence[Explanation], unit: str, above: Sequence[str] = (), below: Sequence[str] = ()
) -> str:
    """Return the maps as on the pages: the text in colors, or cards over the picture.

    With several models, titles name the model. `above`, `below`: additional HTML.
    """
    several = len({one.provenance.model for one in explanations}) > 1
    methods = [explainer(one.provenance.method, content.kind) for one in explanations]
    names = [f" · {one.provenance.model}" if several else "" for one in explanations]
    titled = [replace(method, title=method.title + name) for method, name in zip(methods, names, strict=True)]
    pairs = list(zip(titled, explanations, strict=True))
    if isinstance(content, Picture):
        cards = [patch_card_html(patch_card(method, one)) for method, one in pairs]
        maps = [cards_html([picture_card_html("Picture"), *cards])]
        return output_html([*above, *maps, *below], _picture_of(explanations[0].provenance.model, content))
    assert isinstance(content, Example)
    rows = [method_row_html(method_row(method, one, content, unit)) for method, one in pairs]
    return output_html([*above, *rows, *below])


def _picture_of(model: str, picture: Picture) -> np.ndarray:
    """Return the picture as the model reads it; unchanged if a results file comes from a machine with other models."""
    try:
        return read_view(model).transform(picture.pixels)
    except ExegesisError:
        return picture.pixels


def load(path: str | Path) -> TabularResult | pd.DataFrame | Any:
    """Read a file that `save` wrote. Code in a file is never run.

    Returns the result of an `.npz`, the table of a `.csv` or `.parquet`, or the values of a `.json`.

    Errors: an unknown extension, a missing file, a file that is damaged or that `save` did not write.
    """
    file = Path(path).expanduser()
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise not_allowed("path", f"a file whose name ends with one of {', '.join(SUFFIXES)}", str(path))
    if not file.is_file():
        raise UsageError(f"path: no file {file}. Give one that save wrote.")
    if suffix == ".npz":
        kind, meta, arrays = read_archive(file)
        try:
            result = _READERS[kind](meta, arrays)
            for face in (result.rows, result.to_dict, result.to_html, result.__repr__):
                with contextlib.suppress(ExegesisError):  # such as a method that is not installed here
                    face()  # otherwise an edited file would fail when it is shown
        except DAMAGE as error:
            raise ExegesisError(
                f"path: {file.name} is damaged or of another version ({one_line(error)}). Save it again."
            ) from error
        return result
    try:
        if suffix == ".json":
            return json.loads(file.read_text(encoding="utf-8"))
        if suffix == ".parquet":
            return pandas.read_parquet(file)
        frame = pandas.read_csv(file, keep_default_na=False, na_values=[""])
        return frame.map(lambda cell: unescape_cell(cell) if isinstance(cell, str) else cell)
    except DAMAGE as error:
        raise ExegesisError(f"path: {file.name} cannot be read ({one_line(error)}). Save it again.") from error


def _read_explanations(meta: Mapping[str, Any], arrays: Sequence[Mapping[str, np.ndarray]]) -> Explanations:
    own = zip(meta["explanations"], arrays, strict=False)
    pixels = arrays[-1].get("pixels")
    content = read_example(meta["input"]) if pixels is None else Picture(pixels)
    return Explanations(content, tuple(unpack(one, values) for one, values in own), meta["target"])


def _read_experiment(meta: Mapping[str, Any], arrays: Sequence[Mapping[str, np.ndarray]]) -> ExperimentRun:
    own = experiment(meta["id"])
    plan = own.plan_of(meta["plan"])
    parts = parts_of(plan)
    unpacker = getattr(own.steps, "unpack", None)
    results = tuple(
        unpack_fields(own.steps.ModelResult, one, values) if unpacker is None else unpacker(part, one, values)
        for part, one, values in zip(parts, meta["parts"], arrays, strict=True)
    )
    query = None if meta["query"] is None else own.plan_of(meta["query"])
    return ExperimentRun(join_results(plan, results, query))


def _read_comparison(meta: Mapping[str, Any], arrays: Sequence[Mapping[str, np.ndarray]]) -> MapComparison:
    maps = tuple(unpack(one, values) for one, values in zip(meta["maps"], arrays, strict=False))
    pixels, own = arrays[-1].get("pixels"), meta["input"]
    content = Picture(pixels) if pixels is not None else None if own is None else read_example(own)
    return MapComparison(meta["plain"], plan_of(meta["plan"]), meta["measure"], content, maps)


_READERS: Mapping[str, Callable[[Any, Any], TabularResult]] = {
    "explanations": _read_explanations,
    "experiment": _read_experiment,
    "comparison": _read_comparison,
}


DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, MemoryError, RuntimeError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Errors that reading a damaged file raises: MemoryError if its header claims more data than exist, RuntimeError if it
is encrypted or deeply nested."""


def write_archive(kind: str, meta: Mapping[str, Any], arrays: Sequence[Mapping[str, np.ndarray]]) -> bytes:
    """Return an archive of `kind`. The array `name` of part n is stored as `n.name`, to be read with NumPy."""
    text = json.dumps(plain({"kind": kind, "parts": len(arrays), "meta": meta}), allow_nan=False)
    named: dict[str, Any] = {
        f"{part}.{name}": values for part, own in enumerate(arrays) for name, values in own.items()
    }
    file = io.BytesIO()
    named[HEADER] = np.frombuffer(text.encode(), np.uint8)
    np.savez_compressed(file, **named)
    return file.getvalue()


def read_archive(file: Path) -> tuple[str, dict[str, Any], list[dict[str, np.ndarray]]]:
    """Return kind, metadata and arrays of an archive. Errors: it is damaged, too large, or not written by `save`."""
    try:
        with zipfile.ZipFile(file) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGEST_ARCHIVE:
            raise ExegesisError(
                f"path: {file.name} must unpack to at most {size_text(LARGEST_ARCHIVE)}, got {size_text(size)}."
            )
        with np.load(file, allow_pickle=False) as opened:
            arrays = {name: opened[name] for name in opened.files}
        stated = json.loads(arrays.pop(HEADER).tobytes().decode())
        if not 0 <= stated["parts"] <= MOST_PARTS:
            raise ValueError(f"{stated['parts']} parts")
        parts: list[dict[str, np.ndarray]] = [{} for _ in range(stated["parts"])]
        for name, values in arrays.items():
            part, _, own = name.partition(".")
            parts[int(part)][own] = values
        return stated["kind"], stated["meta"], parts
    except DAMAGE as error:
        raise ExegesisError(
            f"path: {file.name} is no result that save wrote ({one_line(error)}). Save it again."
        ) from error


def plain_plan(plan: Any) -> dict[str, Any]:
    """Return a plan as in a job's specification: with lists in place of tuples."""
    kind: type = type(plan)
    lists = {name for name, one in options_of(kind).items() if one.is_list}
    return {name: list(value) if name in lists else value for name, value in plan.as_plain().items()}
