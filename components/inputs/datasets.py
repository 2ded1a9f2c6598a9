"""Data sets and models as pages offer them: the open data set, labels in pickers, and whether the two fit.

A data set is opened once, and again when its files change; pictures are read one at a time. A label consists of the
name, the task, the main score and the size. The browser sends labels back, possibly outdated ones of an earlier run:
`model_name` reads both.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.errors import describe_error
from engine import access
from engine.data.datasets import load
from engine.data.examples import Dataset, ImageDataset
from engine.data.image_datasets import load_images
from engine.data.labels import NUMBERED_CLASS, UNNAMED_CLASS
from engine.data.slices import whole_name
from engine.data.tasks import TASKS, example_count, source_name, task_of_dataset
from engine.errors import ExegesisError, UsageError
from engine.home import home
from engine.models.summary import fits_task, short_count, summarize_model
from engine.request import Picture
from engine.store import load_picture

SEPARATOR = " · "
OTHER_TASK = "other task: "
"""Prefix of the task of a model that does not fit the chosen data set."""

DEFAULT_TEXTS, DEFAULT_PICTURES = "reviews", "scenes"
"""The default data sets, for links that name none."""
DEFAULT_PROMPTS = "agreement"
"""The data set that is offered for a language model."""
UPLOADED_NAME = "your picture"
MOST_FOLDERS = 1000
"""Maximum number of folders of a data set that are watched for changes."""
FileStamp = tuple[int, ...]


@dataclass(frozen=True)
class OpenTexts:
    """An open data set of texts.

    `wanted`: the requested name, if that could not be opened; `error` says why.
    """

    name: str
    data: Dataset
    error: str = ""
    wanted: str = ""
    split: ClassVar[str] = ""

    @property
    def requested(self) -> str:
        """The name for controls and links. An unavailable name stays there until another data set is chosen."""
        return self.wanted or self.name


@dataclass(frozen=True)
class OpenPictures:
    """An open picture set. `split`: empty for the default split.

    `wanted`: the requested name and split. `error`: why these could not be opened, else empty.
    """

    name: str
    split: str
    data: ImageDataset
    wanted: tuple[str, str]
    error: str = ""

    @property
    def requested(self) -> tuple[str, str]:
        """The name and split for controls and links. Unavailable ones stay there until another data set is chosen."""
        return self.wanted if self.error else (self.name, self.split)


@dataclass(frozen=True)
class ChosenPicture:
    """One picture with its label and mask. `error`: why there is no picture. `mask`: in the size of the picture."""

    picture: Picture | None
    label: int | None = None
    name: str = ""
    error: str = ""
    mask: Bool[np.ndarray, "height width"] | None = field(default=None, compare=False, repr=False)


def open_texts(name: str) -> OpenTexts:
    """Open the data set of a name, file, folder or hub ID; if that fails, `DEFAULT_TEXTS` with an error."""
    try:
        return OpenTexts(name, _read_texts(name, file_stamp(name)))
    except Exception as error:
        default = _read_texts(DEFAULT_TEXTS, ())
        return OpenTexts(DEFAULT_TEXTS, default, f"{describe_error(error)} {DEFAULT_TEXTS} is shown.", name)


def open_pictures(name: str, split: str = "") -> OpenPictures:
    """Open the picture set of a name, zip, folder, `.npz` file or hub ID.

    If that fails, opens the default split of that set, or else `DEFAULT_PICTURES`, with an error.
    """
    wanted = name, split
    try:
        return _open_pictures(name, split, wanted)
    except Exception as error:
        reason = describe_error(error)
    try:
        instead = _open_pictures(name if split else DEFAULT_PICTURES, "", wanted)
    except Exception:
        instead = _open_pictures(DEFAULT_PICTURES, "", wanted)
    replacement = f"Its split {instead.data.split}" if instead.name == name else instead.name
    return replace(instead, error=f"{reason} {replacement} is shown.")


@dataclass(frozen=True)
class ModelLabels:
    """Labels of models for a data set. `misfits`: models made for another task, each with the reason."""

    data: str
    misfits: Mapping[str, str]

    def __call__(self, model: str) -> str:
        return model_label(model, model not in self.misfits, self.data)


def label_models(models: Iterable[str], kind: str, data: str) -> ModelLabels:
    """Return the labels of models for the data set named `data`.

    If the data set cannot be opened, no model is a misfit; the control of the data set shows the error.
    """
    opened = open_texts(data) if kind == "text" else open_pictures(data)
    if opened.error:
        return ModelLabels(data, {})
    misfits = find_misfits(dict.fromkeys(models), opened.name, opened.data)
    return ModelLabels(data, {model: describe_misfit(model, opened.name, opened.data) for model in misfits})


def read_picture(opened: OpenPictures, index: int) -> ChosenPicture:
    """Return the picture at an index; it is read once for all sessions."""
    data = opened.data
    try:
        return _read_picture(data.id, data.revision, data.split, len(data), index, data)
    except Exception as error:
        return ChosenPicture(None, data.labels[index], error=describe_error(error))


def read_uploaded_picture(digest: str) -> ChosenPicture | None:
    """Return an uploaded picture by its hash; None if this machine does not have it."""
    try:
        return _read_uploaded(digest, str(home()))
    except ExegesisError:
        return None


def file_stamp(name: str) -> FileStamp:
    """Return a stamp that changes with the file, or when files are added to or removed from the folder or one below it.

    Empty for a name that is not a path.
    """
    access.check_dataset(name)
    try:
        path = Path(whole_name(name))
        entries = [path.stat(), *(entry.stat() for entry in _folders(path))]
    except (OSError, ValueError, UsageError):
        return ()
    return tuple(time for entry in entries for time in (entry.st_mtime_ns, entry.st_size))


@st.cache_resource(max_entries=4, show_spinner="Reading the data set …")
def _read_texts(name: str, stamp: FileStamp) -> Dataset:
    return load(name)


def _open_pictures(name: str, split: str, wanted: tuple[str, str]) -> OpenPictures:
    data = _load_pictures(name, split, file_stamp(name))
    usual = next(iter(data.splits), data.split)
    return OpenPictures(name, "" if data.split == usual else data.split, data, wanted)


@st.cache_resource(max_entries=4, show_spinner="Opening the pictures …")
def _load_pictures(name: str, split: str, stamp: FileStamp) -> ImageDataset:
    return load_images(name, split or None)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_picture(id: str, revision: str, split: str, count: int, index: int, _data: ImageDataset) -> ChosenPicture:
    example = _data[index]
    return ChosenPicture(Picture(example.pixels), example.label, example.name, mask=example.mask)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read_uploaded(digest: str, home: str) -> ChosenPicture:
    pixels = load_picture(digest)
    if pixels is None:
        raise ExegesisError(f"picture: no picture is stored under {digest}.")
    return ChosenPicture(Picture(pixels), name=UPLOADED_NAME)


def _folders(path: Path) -> list[os.DirEntry[str]]:
    """Return the folders of splits and their class folders."""
    if not path.is_dir():
        return []
    above = _subfolders(path)
    return [*above, *(entry for folder in above for entry in _subfolders(Path(folder)))][:MOST_FOLDERS]


def _subfolders(path: Path) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
        return sorted(islice(folders, MOST_FOLDERS), key=lambda entry: entry.name)


UNMEASURED = "?"
"""Placeholder for a data set that no model was measured on."""


def model_label(model: str, fits: bool = True, data: str = "") -> str:
    """Return the label of a model, such as "reviews-minilm · sentiment, 89.2%, 22.7M".

    It is the name alone if nothing is known. The score is that on the data set `data`, left out if it was not measured
    there. Without `data`, it is the main score.
    """
    summary = summarize_model(model)
    size = short_count(summary.parameters) if summary.parameters else ""
    score = summary.data_scores.get(source_name(data), "") if data else summary.score
    task, _, _vocabulary = summary.task.partition(", ")
    facts = ", ".join(filter(None, [_lower_first(task), score, size]))
    return f"{model}{SEPARATOR}{'' if fits else OTHER_TASK}{facts}" if facts else model


def model_name(label: str) -> str:
    """Return the model's name from a label, whether it marks a misfit or not; any other string is unchanged."""
    name, separator, _ = label.partition(SEPARATOR)
    if not separator:
        return label
    scored_on = ("", UNMEASURED, *summarize_model(name).data_scores)
    known = (model_label(name, fits, data) for data in scored_on for fits in (True, False))
    return name if label in known else label


def complete_dataset(key: str, known: Collection[str]) -> None:
    """Complete a partly typed name of a data set in a control, in a callback.

    The only known name that starts with it, or else the only one that contains it, replaces it. Any other string stays:
    a file, a folder, a hub ID, or an unknown name, which is later rejected with a list of the known ones.
    """
    typed = str(st.session_state.get(key) or "").strip()
    if typed and typed not in known:
        for matches in (
            [name for name in known if name.startswith(typed.lower())],
            [name for name in known if typed.lower() in name],
        ):
            if len(matches) == 1:
                st.session_state[key] = matches[0]
                return


def dataset_label(dataset: str) -> str:
    """Return the label of a data set, such as "reviews · sentiment, 320 examples".

    The name alone for a file, a folder or a hub ID.
    """
    number = example_count(dataset)
    size = "" if number is None else f"{number:,} examples"
    facts = ", ".join(filter(None, [_lower_first(task_of_dataset(dataset)), size]))
    return f"{dataset}{SEPARATOR}{facts}" if facts else dataset


def find_misfits(models: Iterable[str], name: str, data: Dataset | ImageDataset) -> list[str]:
    """Return the models that were made for another task than the data set."""
    if isinstance(data, Dataset):
        task, unnamed = str(data.task), UNNAMED_CLASS
    else:
        task, unnamed = "classification", NUMBERED_CLASS
    return [one for one in models if not fits_task(summarize_model(one), name, task, data.label_names, unnamed)]


def describe_misfit(model: str, name: str, data: Dataset | ImageDataset) -> str:
    """Return why a model does not fit a data set: because of their tasks, or else their classes."""
    summary, task = summarize_model(model), _lower_first(task_of_dataset(name))
    if summary.dataset and task:
        return f"{model} was trained for {_lower_first(summary.task)}, not for {task}."
    predicted = "a score" if summary.regression else ", ".join(summary.labels)
    labels = f"the labels {', '.join(data.label_names)}" if data.label_names else "scores"
    return f"{model} predicts {predicted}, but {name} has {labels}."


def sort_by_task(models: Iterable[str], misfits: Collection[str] = ()) -> list[str]:
    """Sort models by task; those that do not fit the chosen data set are last."""
    order = {task: place for place, task in enumerate(TASKS)}
    return sorted(models, key=lambda model: (model in misfits, order.get(summarize_model(model).task, len(order))))


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
