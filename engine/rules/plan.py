"""The plan of a test of rules: the declaration of the experiment `rules`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option
from engine.removal_operators import PATCH_OPERATORS
from engine.rules.language import FORMS

MOST_RULES = 4
DELETE, MASK, REPLACE = WORD_REMOVALS = ("delete", "mask", "replace")
REMOVAL_ABOUT = (
    "How words or patches are removed. Delete: the text without the words. Mask: the model's mask token stands in "
    "their place. Replace: a masked language model draws a word for each. Mean, zero, blur, drop: as on Evaluate."
)
TEXT_RULES = ("negation -> contradiction", '"a" -> contradiction')
"""A claim about models of inference, and a control: the same claim about a word without meaning."""
PICTURE_RULES = ("object -> any",)
METHODS = ("gradient_x_input", "attn_lrp")
PICTURE_METHODS = ("gradient_x_input", "attention_rollout")


def removals_of(kind: str) -> tuple[str, ...]:
    """The operators that can remove words or patches of this kind of input, the default first."""
    return WORD_REMOVALS if kind == "text" else PATCH_OPERATORS


@dataclass(frozen=True)
class RulesPlan(ExperimentPlan):
    """The plan of a test of rules. `rules`: see `engine.rules.language`.

    `methods`: attribution methods whose scores yield the best single-word rule. `removal`: how words or patches are
    removed; None for the default of the kind of input.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    rules: tuple[str, ...] = option(
        (), f"Up to {MOST_RULES} rules between commas, such as '{FORMS[0]}'.", flag="rule", link="rule",
        metavar="R,R", place="lead", allowed=f"1 to {MOST_RULES} different rules",
    )  # fmt: skip
    methods: tuple[str, ...] = options.methods(METHODS, f"Or 'all'. [default: {','.join(METHODS)}]")
    examples: int = options.examples(160)
    seed: int = options.seed("Draws the examples, their halves, and random words and patches.")
    removal: str | None = option(
        None, "How words (delete, mask, replace) or patches (mean, zero, blur, drop) are removed.", by_kind=removals_of,
        metavar="R", label="Removed by", about=REMOVAL_ABOUT,
    )  # fmt: skip
    split: str | None = options.split()
    dtype: str = options.dtype()
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def removal_operator(self) -> str:
        """The operator that removes words or patches."""
        return self.removal or removals_of(self.kind)[0]


RULES = register(
    Experiment(
        id="rules",
        plan=RulesPlan,
        module="engine.rules.experiment",
        title="Test rules on {models} and {dataset}",
        noun="rules",
        participle="tested rules",
        summary="Test claims about a model, written as rules such as '\"not\" -> negative'. Run it again to resume.",
        doing="testing",
        json_help="Print the scores of the rules as JSON.",
        opens_with={
            "text": RulesPlan(("nli-minilm",), "nli", TEXT_RULES),
            "image": RulesPlan(("scenes-vit",), "scenes", PICTURE_RULES, PICTURE_METHODS, examples=60),
        },
    )
)
