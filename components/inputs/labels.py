"""Labels of models and data sets in pickers: the name, then task, main score and size, and whether the two fit.

A browser answers with a label, and with one of an earlier run when it has not received the newer one: `model_name`
reads both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from engine.data.examples import Dataset, ImageDataset
from engine.data.labels import NUMBERED_CLASS, UNNAMED_CLASS
from engine.data.tasks import TASKS, example_count, registered_dataset, task_of_dataset
from engine.models.summary import fits_task, short_count, summarize_model

SEPARATOR = " · "
OTHER_TASK = "other task: "
"""Before the task of a model that does not fit the chosen data set."""


def model_label(model: str, fits: bool = True, data: str = "") -> str:
    """The label of a model: "reviews-minilm · sentiment, 89.2%, 22.7M". A name alone if nothing is known.

    The score is that on the data set `data` where the card has one, else the main score.
    """
    summary = summarize_model(model)
    size = short_count(summary.parameters) if summary.parameters else ""
    score = summary.data_scores.get(data, summary.score)
    facts = ", ".join(filter(None, [_lower_first(summary.task), score, size]))
    return f"{model}{SEPARATOR}{'' if fits else OTHER_TASK}{facts}" if facts else model


def model_name(label: str) -> str:
    """The name in a label of either kind; any other text unchanged."""
    name, separator, _ = label.partition(SEPARATOR)
    if not separator:
        return label
    scored_on = ("", *summarize_model(name).data_scores)
    known = (model_label(name, fits, data) for data in scored_on for fits in (True, False))
    return name if label in known else label


def dataset_label(dataset: str) -> str:
    """The label of a data set: "reviews · sentiment, 320 examples". A name alone for a file, a folder or a hub id."""
    number = example_count(dataset)
    size = "" if number is None else f"{number:,} examples"
    facts = ", ".join(filter(None, [_lower_first(task_of_dataset(dataset)), size]))
    return f"{dataset}{SEPARATOR}{facts}" if facts else dataset


def find_misfits(models: Iterable[str], name: str, data: Dataset | ImageDataset) -> list[str]:
    """Those of the models that were made for another task than the data set of that name."""
    if isinstance(data, Dataset):
        task, unnamed = str(data.task), UNNAMED_CLASS
    else:
        task, unnamed = "classification", NUMBERED_CLASS
    return [one for one in models if not fits_task(summarize_model(one), name, task, data.label_names, unnamed)]


def describe_misfit(model: str, name: str, data: Dataset | ImageDataset) -> str:
    """Why a model does not fit a data set: their tasks, or else their classes."""
    summary, task = summarize_model(model), _lower_first(task_of_dataset(name))
    if summary.dataset and task:
        return f"{model} was trained for {_lower_first(summary.task)}, not for {task}."
    predicted = "a score" if summary.regression else ", ".join(summary.labels)
    labels = f"the labels {', '.join(data.label_names)}" if data.label_names else "scores"
    return f"{model} predicts {predicted}, but {name} has {labels}."


def fitting_model(models: Iterable[str], name: str) -> str:
    """Of models that fit the data set: the one named after it, else trained on it, else the largest; empty if none."""
    own = registered_dataset(name)

    def rank(model: str) -> tuple[bool, bool, int]:
        summary = summarize_model(model)
        return bool(own) and model.startswith(f"{own}-"), bool(own) and summary.dataset == own, summary.parameters or 0

    return max(models, key=rank, default="")


def sort_by_task(models: Iterable[str], misfits: Collection[str] = ()) -> list[str]:
    """Models by task in their order, those that do not fit the chosen data set last."""
    order = {task: place for place, task in enumerate(TASKS)}
    return sorted(models, key=lambda model: (model in misfits, order.get(summarize_model(model).task, len(order))))


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
