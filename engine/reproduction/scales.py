"""The models and data sets on which claims are tried: small ones that come with the project, or the thesis's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import unknown

MARKED_SST = "sst2-marked"
"""SST-2 with labels by chance and the word of the label at the end: section 3.1."""
SIZES = "T5 sizes"
FAMILIES = "architectures"
"""The two comparisons, as experiments are named by them."""


@dataclass(frozen=True)
class TaskData:
    """The data set of a task of the thesis. `key`: the end of the names of models that are fine-tuned on it."""

    key: str
    dataset: str


@dataclass(frozen=True)
class Scale:
    """`tasks`: the data set of each task. `bases`: the model that plays each part. `trains`: whether models are still
    to be fine-tuned."""

    id: str
    tasks: Mapping[str, TaskData]
    bases: Mapping[str, str]
    trains: bool

    def model(self, part: str, task: str) -> str:
        """The name of the model that plays the part on that task."""
        return f"{self.bases[part].rpartition('/')[2]}-{self.tasks[task].key}"

    @property
    def data(self) -> tuple[TaskData, ...]:
        return tuple(dict.fromkeys(self.tasks.values()))


_NLI = TaskData("nli", "nli")
EMBEDDED = Scale(
    "embedded",
    {"marked": TaskData("marked", "reviews-marked"), "mnli": _NLI, "esnli": _NLI},
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
"""Tables 3.1 and section 3.6: four T5 of one kind (Tay et al., 2021), and four architectures of about one size."""
SCALES = {scale.id: scale for scale in (EMBEDDED, FULL)}


def scale_of(id: str) -> Scale:
    """The scale with that name. Errors list the known ones."""
    if id not in SCALES:
        raise unknown("scale", id, SCALES)
    return SCALES[id]


def family_of(part: str) -> str:
    """The comparison that a part belongs to."""
    return SIZES if part.startswith("size-") else FAMILIES


@dataclass(frozen=True)
class Locations:
    """Folders of models and data sets. `given`: by the names of models, bases and data sets. `folder`: of what is made
    for the run."""

    scale: Scale
    given: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path("reproduction")

    def model(self, name: str) -> str:
        return self.given.get(name) or (str(self.folder / "models" / name) if self.scale.trains else name)

    def base(self, name: str) -> str:
        return self.given.get(name, name)

    def dataset(self, name: str) -> str:
        if name == MARKED_SST and name not in self.given:
            return str(self.folder / "data" / name)
        return self.given.get(name, name)
