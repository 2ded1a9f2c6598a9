"""Papers and topics whose claims are tested, as data: scales with their models and data sets, measures, and names.

A topic holds its file names and the sentences of its reports. The embedded scale uses small models that ship with the
project, the full scale the thesis's own models, and the data scale real data in `EXEGESIS_DATA`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from engine.errors import unknown
from engine.metrics.catalog import FALL, FALL_OF_LOGIT, METRICS, Better

MARKED_SST = "sst2-marked"
"""SST-2 with random labels, each text followed by the word of its label (thesis, section 3.1)."""
SIZES = "T5 sizes"
FAMILIES = "architectures"
"""Names of the two comparisons of models in the names of experiments."""
ALONE = "minilm"
"""The part of a model that is not compared with others; also the name of that model."""


@dataclass(frozen=True)
class Topic:
    """A set of claims that is declared, run and reported separately.

    `paper`: its name in the command. `about`: the terms of its claims. `quantity`: what explanations explain. `level`:
    how numbers become a verdict. `declared`: what was declared before the run. `note`: remarks that no number shows.
    `shared_data`: the claims that rest on the same examples if one data set stands in for two. `models`, `experiments`:
    headings of the last two sections of a report. `columns`: columns of the table of models. `reasons`: the file with
    the examination of the claims, empty if there is none. `scales`: the scales at which it is run, the shipped one
    first.
    """

    id: str
    paper: str
    heading: str
    about: str
    quantity: str
    level: str
    declared: str
    models: str
    columns: tuple[str, ...]
    experiments: str
    note: str = ""
    shared_data: str = ""
    reasons: str = ""
    scales: tuple[str, ...] = ("embedded", "full")

    @property
    def stem(self) -> str:
        """Start of the names of report files."""
        return f"{self.paper}-{self.id}" if self.id == "sanity" else self.paper

    @property
    def suffix(self) -> str:
        """End of the names of files that each topic has; empty for the first topic."""
        return "" if self.id == "faithfulness" else self.id

    @property
    def declaration(self) -> str:
        """Name of the file with its claims."""
        return self._file_name(self.paper)

    @property
    def report(self) -> str:
        """Name of the file with its shipped report."""
        return self._file_name(self.scales[0])

    def _file_name(self, start: str) -> str:
        words = dict.fromkeys((start, *self.suffix.split("-")))
        return f"{'_'.join(filter(None, words))}.json"


EXAMPLE_LEVEL = (
    "Intervals are 95% intervals over examples, paired where the examples are the same. A claim holds if the intervals "
    "of all its numbers lie within their bounds (Berger, 1982). It does not hold if at least one interval lies "
    "outside, even after widening for the number of comparisons in the claim (Bonferroni). Where some of several "
    "numbers suffice, their widened intervals must lie within the bounds. The probability that either verdict is "
    "wrong is therefore at most 5% per claim, however many numbers the claim has. All other claims are undecided; the "
    "report estimates the number of examples that would decide them, with power 0.8 for each open "
    "number and the observed value taken as the true one."
)
SEED_LEVEL = (
    "Means over seeds are compared, paired by seed: students of one seed see the same examples in the same order. "
    "Intervals are 95% intervals over seeds (Student's t); those of plausibility are over examples. A claim holds if "
    "the intervals of all its numbers lie within their bounds (Berger, 1982). It does not hold if at least one "
    "interval lies outside, even after widening for the number of comparisons in the claim (Bonferroni). A claim that "
    "one setting has higher simulability than another also fails if it does not hold by that rule and a widened "
    "interval lies below the smallest gain that counts: 1.1 standard deviations within a setting here, which a t test "
    "of two groups of five students, the paper's number, detects one time in three (Simonsohn, 2015). This rule was "
    "added after the verdicts with 15 seeds were known. All other "
    "claims are undecided; the report estimates the number of seeds or examples that would decide them, with power "
    "0.8 for each open number and the observed value taken as the true one. The probability that either verdict is "
    "wrong is at most 5% per claim, where it is wrong that a gain is too small if in truth it counts; a gain above 0 "
    "that does not count may get either verdict. That is so in simulations, too, in which students vary as they do "
    "here, or have skewed or "
    "two-peaked values (tests/unit/reproduction/test_error_control.py). The tables keep the paper's medians and "
    "quartiles; no verdict rests on them."
)
NON_FINDING_RULES = (
    "Only these three verdicts are findings. A claim is not run if one of its models has not learned the task, that "
    "is, if the model is no better than chance on the examples (one-sided exact binomial test against 1/classes; for "
    "scores, a correlation against 0; level 0.05). It is true by construction if its numbers would hold with random "
    "weights too. It is at a ceiling if every overlap, AUC or agreement that it compares is within 0.01 of 1 (for "
    "ranks: if the relevant words are the top ones that often), so nothing could differ. It is counted with another "
    "claim if both rest on the same numbers, because one data set stands in for two."
)
"""Text that follows the level of every topic."""
FAITHFULNESS = Topic(
    id="faithfulness",
    paper="thesis",
    heading="the thesis",
    about="The top three methods are integrated gradients, LIME and Kernel SHAP, as in the thesis. Both gradients are "
    "the L2 norm of the gradient and gradient x input. Chance is a random order. The added word determines the label.",
    quantity="Gradients and integrated gradients explain the logit of the predicted class, LIME and Kernel SHAP its "
    "probability, and attention neither. Comprehensiveness and sufficiency are drops in the probability.",
    level=EXAMPLE_LEVEL,
    declared="The claims, their statistics, bounds and number of examples",
    models="Models",
    columns=("model", "revision", "data set", "accuracy on the examples", "n"),
    experiments="Evaluations",
    note="A map with equal scores everywhere has no order. Claims about a method that gives only such maps on a model "
    "are not run.",
    shared_data="4.1.2 and 4.1.3, and of 4.2.2 and 4.2.3,",
    reasons="thesis_examined.json",
)
SANITY = Topic(
    id="sanity",
    paper="thesis",
    heading="the thesis",
    about="Rho is Spearman's rank correlation between a map and that of the trained model. The cascade randomizes "
    "blocks from the last to the first. The unconstrained objective of an attack keeps only the predicted class; the "
    "constrained one also keeps its probability.",
    quantity="Gradients and integrated gradients explain the logit of the predicted class. Attention explains neither "
    "the logit nor the probability.",
    level=EXAMPLE_LEVEL,
    declared=FAITHFULNESS.declared,
    models=FAITHFULNESS.models,
    columns=FAITHFULNESS.columns,
    experiments="Experiments",
    shared_data="both",
    reasons="thesis_sanity_examined.json",
)
DATA = replace(FAITHFULNESS, id="data", shared_data="", reasons="thesis_data_examined.json", scales=("data",))
SMAT = Topic(
    id="smat",
    paper="smat",
    heading="SMaT",
    about="Simulability is the share of examples on which student and teacher agree, from 0 to 1; for scores, their "
    "correlation, from −1 to 1. Texts, pictures and scores replace the paper's IMDB, CIFAR-100 and MLQE. Sizes are "
    "numbers of training examples.",
    quantity="Gradient explanations explain the teacher's logit of its predicted class (for a regression model, its "
    "score), not the probability. Attention explanations explain neither.",
    level=SEED_LEVEL,
    declared="The claims, their statistics and bounds",
    models="Teachers",
    columns=("teacher", "revision", "data set", "accuracy or correlation on the test examples", "n"),
    experiments="Students",
    reasons="smat_examined.json",
)
SMAT_DATA = replace(
    SMAT,
    id="smat-data",
    about="Simulability is the share of pictures on which student and teacher agree, from 0 to 1; for scores, their "
    "correlation, from −1 to 1. CIFAR-10 replaces the paper's CIFAR-100. Scores are those of MLQE-PE, as in the paper, "
    "but each language pair has a small teacher of its own. A pair's first texts are originals, its second texts their "
    "translations into English.",
    columns=(
        "teacher",
        "revision",
        "data set",
        "accuracy on the test examples of students, or correlation with human scores on the dev rows",
        "n",
    ),
    reasons="smat_data_examined.json",
    scales=("data",),
)
TOPICS = {topic.id: topic for topic in (FAITHFULNESS, SANITY, DATA, SMAT, SMAT_DATA)}
PAPERS = {paper: tuple(topic for topic in TOPICS.values() if topic.paper == paper) for paper in ("thesis", "smat")}
"""The topics of each paper."""
THESIS_TOPICS = tuple(topic.id for topic in PAPERS["thesis"])


def topics_at(paper: str, scale: str) -> tuple[str, ...]:
    """Return the ids of a paper's topics that are run at a scale."""
    return tuple(topic.id for topic in PAPERS[paper] if scale in topic.scales)


@dataclass(frozen=True)
class TaskData:
    """The data set of a task of the thesis.

    `key`: suffix in the names of models fine-tuned on it. `model`: an embedded model already trained on it, so that
    none is fine-tuned. `training`: options of `exegesis train` that differ from the thesis's recipe.
    """

    key: str
    dataset: str
    model: str = ""
    training: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Scale:
    """A size of a reproduction, with its models and data sets.

    `tasks`: the data set of each task. `bases`: the model that plays each part. `trains`: whether the run fine-tunes
    these models.
    """

    id: str
    tasks: Mapping[str, TaskData]
    bases: Mapping[str, str]
    trains: bool

    def model(self, part: str, task: str) -> str:
        """Return the name of the model that plays a part on a task."""
        return self.tasks[task].model or f"{self.bases[part].rpartition('/')[2]}-{self.tasks[task].key}"

    @property
    def data(self) -> tuple[TaskData, ...]:
        return tuple(dict.fromkeys(self.tasks.values()))


_NLI = TaskData("nli", "nli-generated:sentences=1")
EMBEDDED = Scale(
    "embedded",
    {
        "marked": TaskData("marked", "reviews-marked"),
        "context": TaskData("context", "reviews-marked:context=true"),
        "mnli": _NLI,
        "esnli": _NLI,
    },
    {
        "size-1": "t5-mini", "size-2": "t5-small", "size-3": "t5", "size-4": "t5-deep",
        "bert": "bert", "roberta": "roberta", "t5": "t5", "gpt2": "gpt2",
    },
    trains=False,
)  # fmt: skip
FULL = Scale(
    "full",
    {
        "marked": TaskData(MARKED_SST, MARKED_SST),
        "context": TaskData(MARKED_SST, MARKED_SST),
        "mnli": TaskData("multinli", "multinli"),
        "esnli": TaskData("esnli", "esnli"),
    },
    {
        "size-1": "google/t5-efficient-tiny",
        "size-2": "google/t5-efficient-mini",
        "size-3": "google/t5-efficient-small",
        "size-4": "google/t5-efficient-base",
        "bert": "google-bert/bert-base-uncased",
        "roberta": "FacebookAI/roberta-base",
        "t5": "google-t5/t5-base",
        "gpt2": "openai-community/gpt2",
    },
    trains=True,
)
"""Models of the thesis (table 3.1 and section 3.6): T5 in four sizes (Tay et al., 2021), and four architectures of
about equal size."""
_BRIEF = (("method", "lora"), ("epochs", 2), ("learning_rate", 5e-4))
REAL = Scale(
    "data",
    {
        "marked": TaskData(MARKED_SST, MARKED_SST, training=(*_BRIEF, ("train_size", 4000))),
        "nli": TaskData("nli", "snli-sick", model="nli-minilm"),
        "movies": TaskData("movies", "movies:words=100", training=(*_BRIEF, ("epochs", 3), ("held_out", 200))),
    },
    {ALONE: "minilm"},
    trains=True,
)
"""One model that performs well on real data. The data must be in `EXEGESIS_DATA`."""
SCALES = {scale.id: scale for scale in (EMBEDDED, FULL, REAL)}


def scale_of(id: str) -> Scale:
    """Return the scale with this id. Errors list the known ones."""
    if id not in SCALES:
        raise unknown("scale", id, SCALES)
    return SCALES[id]


def family_of(part: str) -> str:
    """Return the comparison that a part belongs to; the part itself if it belongs to none."""
    if part == ALONE:
        return part
    return SIZES if part.startswith("size-") else FAMILIES


@dataclass(frozen=True)
class Locations:
    """Locations of models and data sets.

    `given`: locations by the names of models, bases and data sets. `folder`: where models and data made by the run are.
    """

    scale: Scale
    given: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path("reproduction")

    def model(self, name: str) -> str:
        is_trained = self.scale.trains and name not in {data.model for data in self.scale.data}
        return self.given.get(name) or (str(self.folder / "models" / name) if is_trained else name)

    def base(self, name: str) -> str:
        return self.given.get(name, name)

    def dataset(self, name: str) -> str:
        if name == MARKED_SST and name not in self.given:
            return str(self.folder / "data" / name)
        return self.given.get(name, name)


Source = Literal["evaluation", "randomization", "attack", "scaffold"]
ATTACKS = ("unconstrained", "constrained")
"""The objectives of attacks; prefixes of the ids of their measures."""
OVERLAP = "gt_overlap"
"""The metric that is 0 or 1 for each example of a model."""
BEST_RANK = {"mean_rank_pct": OVERLAP}
"""The metric that shows whether a rank is the best possible one, which it is if the marked tokens are the top ones."""


@dataclass(frozen=True)
class Measure:
    """A measure of an experiment. `low`, `high`: range of its values. `fall`: whether it is a drop in a probability."""

    id: str
    title: str
    source: Source
    low: float
    high: float
    better: Better = "neither"
    fall: bool = False


_SIMILARITIES = {
    "cascading_first": "rho with the last block random",
    "cascading_second": "rho with the last two blocks random",
    "cascading_half": "rho with the later half of the blocks random",
    "cascading_end": "rho with all blocks random",
    "cascading_mean": "mean rho of the cascade",
    "cascading_trend": "rank correlation of rho with the number of random blocks",
    "independent_first": "rho with the first block alone random",
    "independent_mean": "mean rho with each block alone random",
}
"""Measures of Spearman's rho between maps of the randomized and the trained model, averaged over seeds per example."""
_CHANGES = {
    "rank_change": ("Rank change", 0.0),
    "top_k_sum_change_normalised": ("Top-k sum change, normalized", -2.0),
    "probability_change": ("Probability change", -1.0),
    "probability_distance": ("Probability distance", 0.0),
}
"""Title and lowest value of each measure of an attack; the highest value is 1, or 2 if the lowest is -2."""


def _evaluation_measures() -> list[Measure]:
    measures = []
    for metric in METRICS.values():
        low, high = (-1.0 if metric.unit == FALL else 0.0), 1.0
        if metric.unit == FALL_OF_LOGIT:
            low, high = -math.inf, math.inf
        measures.append(Measure(metric.id, metric.title, "evaluation", low, high, metric.better, metric.unit == FALL))
    return measures


def _attack_measures() -> list[Measure]:
    return [
        Measure(f"{objective}_{id}", f"{title}, {objective}", "attack", low, max(1.0, -low))
        for objective in ATTACKS
        for id, (title, low) in _CHANGES.items()
    ]


MEASURES = {
    one.id: one
    for one in (
        *_evaluation_measures(),
        *(Measure(id, title, "randomization", -1.0, 1.0) for id, title in _SIMILARITIES.items()),
        *_attack_measures(),
    )
}


def measure(id: str) -> Measure:
    """Return the measure with this id. Errors list the known ones."""
    if id not in MEASURES:
        raise unknown("metric", id, MEASURES)
    return MEASURES[id]


def ceiling_measure(metric: str) -> str:
    """Return the measure whose mean shows whether a score is at its maximum; an empty string if there is none."""
    known = measure(metric)
    return BEST_RANK.get(metric, metric if known.better == "high" and not known.fall else "")


SIMULABILITY, AUC, ACTIVE, DEPTH = "simulability", "auc", "active_share", "depth"
STUDENT_MEASURES = {
    SIMULABILITY: "simulability",
    AUC: "AUC",
    ACTIVE: "share of active heads",
    DEPTH: "mean layer of the weight",
}
"""Titles of the measures in SMaT's claims."""
TAUGHT_PAIRS = {"ru-en": "Russian"}
"""Language pairs of MLQE-PE (into English) that have students at the data scale, with the source language."""
TASKS = {
    "text": "texts",
    "image": "pictures",
    "regression": "scores",
    **{pair: f"scores of {pair}" for pair in TAUGHT_PAIRS},
}
SETTINGS = {
    "none_held_out": "no explanations, held-out examples",
    "gradient_l2": "gradient L2 norm",
    "gradient_x_input": "gradient x input",
    "integrated_gradients": "integrated gradients",
    "attention_logits": "attention, all layers",
    "attention_logits_last": "attention, last layer",
    "smat": "SMaT",
    "best_layer": "best layer, chosen by the labels",
    "best_head": "best head, chosen by the labels",
    "active_heads": "mean of the active heads",
    "inactive_heads": "mean of the inactive heads",
}
NO_EXPLANATIONS = "no explanations"
NORMALIZATIONS = {"sparsemax": "sparsemax", "softmax": "softmax", "entmax15": "entmax-1.5", "none": "no normalization"}
SIDES = {"first": "first texts", "second": "second texts"}
_NAMES = {**TASKS, **SETTINGS, **NORMALIZATIONS, **SIDES}


def choice_name(word: str) -> str:
    """Return the name of a member of a claim's group. `none` means the normalization: no group has the setting."""
    return _NAMES.get(word, word)


def setting_name(id: str) -> str:
    return SETTINGS.get(id, NO_EXPLANATIONS)


def size_name(count: int) -> str:
    return f"{count:,} examples"
