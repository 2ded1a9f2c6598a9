"""A plugin for Exegesis: an explainer, a metric, a model family and a data set, each added by a function."""

from dataclasses import dataclass, replace

import numpy as np

from engine.data import datasets
from engine.data.examples import Dataset, LabeledExample
from engine.data.registry import DatasetCard
from engine.metrics import catalog
from engine.models.adapters import ADAPTERS, register_family
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution


@dataclass(frozen=True)
class LengthParams:
    power: float = option(1.0, "Exponent of the number of characters", low=0.1, high=4.0)


def word_length(task, params):
    """The number of characters of each token: a baseline that reads no model."""
    return [
        Attribution(
            np.array([0.0 if t.special else len(t.text.strip()) ** params.power for t in item.encoded.tokens]), 0
        )
        for item in task.items
    ]


def add_explainer():
    register(
        "word_length", title="Word length", family="text", inputs=("text",), params=LengthParams, signed=False,
        axes=Axes("none", "none", "number of characters"), citation="The example plugin of Exegesis",
        caution="It knows the text alone: a method that scores no better explains nothing of the model.",
    )(word_length)  # fmt: skip


def gini(scores, marks):
    """Gini coefficient of the absolute scores: 0 if all are equal, near 1 if one unit has everything."""
    size = np.sort(np.abs(scores))
    ranks = 2 * np.arange(1, len(size) + 1) - len(size) - 1
    return float(ranks @ size / (len(size) * size.sum())) if size.sum() else None


def add_metric():
    about = "How unequally the absolute scores are shared among the units."
    metric = catalog.Metric("gini", "Gini", "high", "from 0 to 1", about, "Hurley and Rickard (2009)", "nothing")
    catalog.register(metric)(gini)


def add_family():
    register_family("data2vec-text", replace(
        ADAPTERS["roberta"], family="Data2Vec", backbone="data2vec_text", blocks="data2vec_text.encoder.layer",
        architecture="Data2VecTextForSequenceClassification", embeddings="data2vec_text.embeddings.word_embeddings"
    ))  # fmt: skip


CARD = DatasetCard("Moods", "written for the example plugin", "CC0-1.0", "4 texts", "by hand", "none", "trying", "tiny")
TEXTS = (("What a wonderful day", 1), ("A dreadful evening", 0), ("I love this song", 1), ("The soup was awful", 0))


def moods(request):
    examples = [LabeledExample(text, label=label) for text, label in TEXTS][: request.limit]
    return Dataset("moods", CARD.title, "classification", ("negative", "positive"), examples, CARD, "moods-1")


def add_dataset():
    datasets.register("moods", CARD)(moods)
