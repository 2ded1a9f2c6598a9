"""The plan of a behavior experiment: the declaration of the experiment `behavior`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.format import plural
from engine.params import Plain, option

TASKS = LOCAL, FEATURE, RECOURSE = "local", "feature", "recourse"
TASK_TITLES = {LOCAL: "Local behavior", FEATURE: "Spurious feature", RECOURSE: "Recourse"}
TASK_QUESTIONS = {
    LOCAL: "Does the probability of the predicted class fall when this {part} is changed?",
    FEATURE: "Does the prediction rely on this feature?",
    RECOURSE: "Which {parts} have to be removed to change the predicted class?",
}
INPUTS = {"text": "text", "image": "picture"}
PARTS = {"text": "word", "image": "patch"}
"""The part of an input that questions are about, by kind of input."""
EDITS = REPLACE, DELETE = "replace", "delete"
METHODS = (
    "gradient_x_input", "integrated_gradients", "kernel_shap", "attn_lrp", "attention_rollout", "occlusion",
)  # fmt: skip
"""Complete methods (integrated gradients, SHAP, LRP) and other fast ones."""
PICTURE_METHODS = tuple(method for method in METHODS if method != "kernel_shap")
"""The methods without Kernel SHAP, which needs thousands of evaluations for a picture."""
QUERY = "query-"
"""Prefix in the names of direct queries, followed by the budget."""


@dataclass(frozen=True)
class BehaviorPlan(ExperimentPlan):
    """The plan of a behavior experiment.

    `edit`, `draws` and `margin` apply to local behavior, `feature` to a spurious feature, `size` to recourse.
    `methods`: attributions whose answers are compared with direct queries. No random order is added, because the chance
    level is computed exactly.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(METHODS, "Or 'all'. [default: six methods]")
    task: str = option(
        LOCAL, "local: the effect of a word or patch; feature: a spurious feature; recourse: a removal that changes "
        "the class.",
        choices=TASKS, titles=TASK_TITLES, metavar="T", place="lead", first=True,
    )  # fmt: skip
    examples: int = options.examples(16)
    seed: int = options.seed("Selects the examples, and draws the replacements.")
    edit: str = option(
        REPLACE, "Local behavior: replace a word or patch, or delete it.", choices=EDITS,
        metavar="E", label="Change",
        about="Local behavior: a word is replaced by draws from a masked language model, a patch by those of other "
        "pictures at the same place; or it is deleted, of pictures put in the mean color.",
    )  # fmt: skip
    draws: int = option(
        16, "Local behavior: most replacements per word or patch that a direct answer may use.", low=1, high=64,
        most=64, metavar="N", label="Replacements each", about="Local behavior: the largest budget of a direct answer.",
    )  # fmt: skip
    margin: int = option(
        1, "Local behavior: smallest change that counts, in percentage points.", low=0, high=50, most=50, metavar="P",
        label="Smallest change, points",
        about="Local behavior: smaller changes of the probability, in percentage points, do not count.",
    )  # fmt: skip
    feature: str = option(
        "positive,negative", "Spurious feature of texts: its words between commas; of pictures, the marked object.",
        metavar="A,B", label="Words of the feature",
        about="Spurious feature: words between commas. Each is removed, and replaced by the others. Of pictures, the "
        "feature is the object that the data set marks.",
    )  # fmt: skip
    size: int = option(
        2, "Recourse: most words or patches removed.", low=1, high=3, most=3, metavar="K", label="Most removed",
        about="Recourse: the largest removal that may change the class.",
    )  # fmt: skip
    split: str | None = options.split()
    dtype: str = options.dtype()
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        return self.methods

    @property
    def feature_words(self) -> tuple[str, ...]:
        """The words of the feature in lower case."""
        return tuple(dict.fromkeys(re.findall(r"[^\s,]+", self.feature.lower())))

    @property
    def budgets(self) -> tuple[int, ...]:
        """Budgets of direct answers: replacements per part, changes of the feature, or the width of the beam."""
        if self.task == LOCAL:
            most = self.draws if self.edit == REPLACE else 1
        elif self.task == FEATURE:
            most = PICTURE_CHANGES if self.kind == "image" else max(1, len(self.feature_words))
        else:
            most = BEAM
        return tuple(dict.fromkeys([*(2**power for power in range(7) if 2**power < most), most]))

    def answers_by_definition(self, budget: int) -> bool:
        """Whether a direct answer with this budget makes all evaluations that define the truth."""
        if self.task == FEATURE:
            return budget >= self.budgets[-1]
        return self.edit == DELETE if self.task == LOCAL else self.size == 1

    @property
    def ways(self) -> tuple[str, ...]:
        """All ways of answering: the methods, then direct queries by budget."""
        return (*self.methods, *(f"{QUERY}{budget}" for budget in self.budgets))


def question_text(plan: BehaviorPlan) -> str:
    """The question of the plan's task."""
    part = PARTS[plan.kind]
    return TASK_QUESTIONS[plan.task].format(part=part, parts=plural(part))


PICTURE_CHANGES = 4
"""Number of changes of the marked object: a removal, and exchanges with the same place of three other pictures."""
BEAM = 4
"""Largest beam width of a direct query."""
OPENS_WITH = BehaviorPlan(("reviews-minilm",), "reviews")
OPENS_WITH_PICTURES = BehaviorPlan(("digits-vit",), "digits", PICTURE_METHODS, examples=8)
INCLUDED = (
    OPENS_WITH,
    BehaviorPlan(("reviews-minilm",), "reviews", task=RECOURSE),
    BehaviorPlan(("bert-marked", "bert-reviews"), "reviews-marked", task=FEATURE),
    OPENS_WITH_PICTURES,
    replace(OPENS_WITH_PICTURES, task=RECOURSE, examples=24),
    BehaviorPlan(("scenes-marked-vit", "scenes-vit"), "scenes-marked", PICTURE_METHODS, task=FEATURE),
)
"""Plans with precomputed results, one for each task and kind of input."""


BEHAVIOR = register(
    Experiment(
        id="behavior",
        plan=BehaviorPlan,
        module="engine.behavior.experiment",
        title="Ask {models} on {dataset}: {task}",
        noun="behavior",
        participle="asked",
        summary="Ask models about their behavior, and compare with what attributions answer. Run it again to resume.",
        doing="asking",
        json_help="Print the accuracy of each way as JSON.",
        opens_with={"text": OPENS_WITH, "image": OPENS_WITH_PICTURES},
    )
)
