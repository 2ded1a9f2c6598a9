"""Conversion of Python objects, as people have them in a notebook, to inputs, methods and data sets."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engine.cli.output import write_file
from engine.data import sources, tables
from engine.data.picture_files import open_picture, read_picture
from engine.errors import UsageError, excerpt, not_allowed, unknown
from engine.home import home
from engine.input_kinds import kind_of_dataset, kind_of_model
from engine.models import catalog
from engine.params import Plain
from engine.registry import explainer
from engine.request import Example, Input, Picture, Prompt
from engine.shipped.gallery import METHODS, PICTURE_METHODS

Methods = str | Iterable[str | Mapping[str, Mapping[str, Plain]]] | Mapping[str, Mapping[str, Plain]]
"""A method's id, ids, or ids with their parameters: `{"kernel_shap": {"n_samples": 512}}`."""
MethodParams = dict[str, dict[str, Plain]]
FOLDER = "datasets"
INPUTS = "a text, a pair of texts, or for an image model a picture: a file, a PIL image or an array"


def example(dataset: str, index: int, split: str | None = None) -> Input:
    """Return an example of a data set, as an input to explain.

    >>> from exegesis import example
    >>> example("reviews", 3).text[:16]
    'Six years, two h'

    Errors: an unknown data set, an index out of range.
    """
    source = sources.load_source(kind_of_dataset(dataset), dataset, split)
    if type(index) is not int or not 0 <= index < source.count:
        raise not_allowed("index", f"a whole number from 0 to {source.count - 1} in {dataset}", index)
    return source.read(index).input


def dataset(
    data: Any,
    labels: Sequence[str | int | float] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> str:
    """Store texts as a JSONL file in the home folder, and return its path, which every function accepts as a data set.

    The same content gives the same file, so results stay cached.

    Parameters
    ----------
    data : list, pandas.DataFrame or datasets.Dataset
        Texts, pairs of texts, or rows with the columns `text`, `text_pair`, `label`, `rationale`, `rationale_pair`.
        Rationales are lists of [start, end] in characters. With the columns `answer` and `foil` rows are prompts.
    labels : sequence, optional
        A label for each text of a list.
    columns : mapping, optional
        Other names of these columns, such as `{"text": "sentence"}`.

    >>> import exegesis
    >>> path = exegesis.dataset(["A joy from start to finish.", "Two hours of boredom."], ["positive", "negative"])
    >>> exegesis.example(path, 1).text
    'Two hours of boredom.'

    Errors: no texts, a row without a text, a different number of labels.
    """
    rows = list(_rows(data, labels, columns or {}))
    if not rows:
        raise UsageError("dataset: has no texts. Give at least one.")
    lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    file = home() / FOLDER / f"{hashlib.sha256(lines.encode()).hexdigest()[:16]}.jsonl"
    if not file.is_file():
        with contextlib.suppress(OSError):  # if it fails, the next line raises the error
            file.parent.mkdir(parents=True, exist_ok=True)
        write_file("dataset", file, lines.encode())
    return str(file)


def dataset_name(data: Any) -> str:
    """Return the name of a data set: a name or path unchanged; for texts or a table, the path of the stored file."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else dataset(data)


def _rows(data: Any, labels: Sequence[Any] | None, columns: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Yield the rows of the file, each a text with its other fields."""
    for role in columns:
        if role not in tables.COLUMN_ROLES:
            raise unknown("columns", role, tables.COLUMN_ROLES)
    if isinstance(data, str) or not hasattr(data, "__iter__"):
        raise not_allowed("dataset", "a name, a path, texts, a data frame or a datasets.Dataset", data)
    if not _is_table(data):
        if columns:
            raise UsageError("columns: texts have none. Leave columns out, or give a table.")
        yield from _listed(list(data), labels)
        return
    if labels is not None:
        raise UsageError("labels: a table has them in its column label. Leave labels out, or name it in columns.")
    names = {role: columns.get(role, role) for role in tables.COLUMN_ROLES}
    present = list(map(str, getattr(data, "column_names", None) or data.columns))
    for role in ("text", *columns):
        if names[role] not in present:
            raise unknown(f"columns: {role}", names[role], present)
    classes = getattr((getattr(data, "features", None) or {}).get(names["label"]), "names", None)
    records = data.to_dict("records") if hasattr(data, "iloc") else data
    for at, record in enumerate(records):
        row = {role: _plain(record[name]) for role, name in names.items() if name in present}
        if not isinstance(row["text"], str):
            raise not_allowed(f"dataset: {names['text']} of row {at}", "a text", row["text"])
        if classes and type(row.get("label")) is int:
            row["label"] = classes[row["label"]] if row["label"] >= 0 else None
        yield {role: value for role, value in row.items() if value is not None}


def _listed(texts: list[Any], labels: Sequence[Any] | None) -> Iterable[dict[str, Any]]:
    if labels is not None and len(labels) != len(texts):
        raise not_allowed("labels", f"{len(texts)}, one for each text", len(labels))
    for at, text in enumerate(texts):
        parts = (text,) if isinstance(text, str) else text
        if (
            not isinstance(parts, tuple | list)
            or len(parts) not in (1, 2)
            or not all(isinstance(p, str) for p in parts)
        ):
            raise not_allowed(f"dataset: example {at}", "a text or a pair of texts", text)
        pair = {"text_pair": parts[1]} if len(parts) == 2 else {}
        yield {"text": parts[0], **pair, **({} if labels is None else {"label": _plain(labels[at])})}


def _is_table(data: Any) -> bool:
    return hasattr(data, "iloc") or hasattr(data, "column_names")


def _plain(value: Any) -> Any:
    """Convert a cell to a JSON value: None if it is missing, Python numbers for NumPy's."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType":
        return None
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read_input(
    model: str, text: Any, target: int | str | None = None, contrast: str | None = None, chat: bool = False
) -> tuple[Input, int | str | None]:
    """Return the input as the model reads it, and the class to explain if the input does not name it itself.

    Errors: a picture for a text model, a contrast for a classifier.
    """
    if kind_of_model(model) == "image":
        _refuse_prompts(model, contrast, chat)
        return _picture(text), target
    if isinstance(text, (Picture, Image.Image, np.ndarray, os.PathLike)):
        raise UsageError(f"text: {model} reads texts, got {excerpt(text)}. Choose a model that reads pictures.")
    own = text if isinstance(text, Example) else _text(text)
    if not catalog.is_causal(model):
        _refuse_prompts(model, contrast, chat)
        return own, target
    if target is not None and not isinstance(target, str):
        raise not_allowed("target", f"a token of {model}, such as ' yes'", target)
    start = own if isinstance(own, Prompt) else Prompt(own.text, own.text_pair)
    prompt = dataclasses.replace(
        start,
        target=start.target if target is None else target,
        contrast=start.contrast if contrast is None else contrast,
        chat=chat or start.chat,
    )
    return prompt, None


def _refuse_prompts(model: str, contrast: str | None, chat: bool) -> None:
    for name, value in (("contrast", contrast), ("chat", chat)):
        if value:
            raise UsageError(f"{name}: {model} is a classifier, which continues no text. Leave {name} out.")


def _text(text: Any) -> Example:
    if isinstance(text, str):
        return Example(text)
    if isinstance(text, tuple | list) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return Example(*text)
    raise not_allowed("text", INPUTS, text)


def _picture(image: Any) -> Picture:
    """Return a picture as an upload on the Images page would read it."""
    if isinstance(image, Picture):
        return image
    if isinstance(image, str | os.PathLike):
        return Picture(read_picture(Path(image).expanduser(), "image"))
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (3, 4)):
            allowed = "an array of uint8, of shape (height, width), (height, width, 3) or (height, width, 4)"
            raise not_allowed("image", allowed, f"{image.dtype} {image.shape}")
        image = Image.fromarray(image)
    if not isinstance(image, Image.Image):
        raise not_allowed("image", "a file, a PIL image or an array of uint8", image)
    file = io.BytesIO()
    image.save(file, "PNG")
    return Picture(open_picture(file.getvalue(), "image"))


def read_methods(methods: Methods | None, kind: str) -> MethodParams:
    """Return the methods with their parameters, in the given order; by default those of the page.

    Errors: an unknown method, with the known ones.
    """
    if methods is None:
        return {id: {} for id in (METHODS if kind == "text" else PICTURE_METHODS)}
    if isinstance(methods, str):
        methods = [methods]
    entries = [methods] if isinstance(methods, Mapping) else list(methods)
    named: MethodParams = {}
    for entry in entries:
        if not isinstance(entry, str | Mapping):
            raise not_allowed("methods", "ids, or ids with their parameters", entry)
        for id, params in ({entry: {}} if isinstance(entry, str) else entry).items():
            if not isinstance(params, Mapping):
                raise not_allowed(f"methods: parameters of {id}", "names with values", params)
            named[explainer(id, kind).id] = dict(params)
    if not named:
        raise UsageError("methods: must name at least one, got none.")
    return named
