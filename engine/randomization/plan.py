"""The plan of a randomization: the declaration of the experiment `randomize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option

MODES = ("cascading", "independent")
"""Randomize parts cumulatively from the last one down, or one part at a time with the others as trained."""
MODE_TITLES = {MODES[0]: "Cascading", MODES[1]: "Independent"}
MODE_WORDS = {
    MODES[0]: "randomizes blocks from the last to the first, cumulatively",
    MODES[1]: "randomizes one block at a time and keeps the others as trained",
}
THESIS_METHODS = ("gradient", "gradient_x_input", "integrated_gradients", "attention_mean", "attention_rollout")
TEXT_METHODS = ("gradient_l2", *THESIS_METHODS[1:])
"""Preselected for texts, for which the sum of the gradient over dimensions is 0 on models with layer norm."""
USUAL_PARAMS: Mapping[str, Mapping[str, Plain]] = {"integrated_gradients": {"steps": "fixed", "n_steps": 33}}
"""Parameters that replace unsuitable defaults.

On random models the logit hardly changes along the path, so adaptive steps would not converge.
"""


@dataclass(frozen=True)
class RandomizationPlan(ExperimentPlan):
    """The plan of a randomization.

    `seeds`: number of randomizations of each part, with the seeds `seed`, `seed` + 1, ... `head`, `embeddings`: whether
    to randomize these too, first and last. `params`: method parameters that differ from `USUAL_PARAMS` and the
    defaults.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(THESIS_METHODS, "Or 'all'. [default: five of the thesis]")
    examples: int = options.examples(50)
    seed: int = options.seed("Selects the examples, and is the first seed of the randomizations.")
    modes: tuple[str, ...] = option(
        MODES, "cascading: from the last block down; independent: one at a time.", choices=MODES, titles=MODE_TITLES,
        flag="mode", link="mode", metavar="A,B", place="line",
        about="; ".join(f"{MODE_TITLES[mode]} {MODE_WORDS[mode]}" for mode in MODES),
    )  # fmt: skip
    seeds: int = option(
        3, "Randomizations of each part.", low=1, most=100, metavar="K", label="Randomizations", place="top",
        fallback="{} are used.",
        about="How often each block is randomized, with different seeds. Results are means over them.",
    )  # fmt: skip
    head: bool = option(
        False, "Also randomize the head, first.", label="Randomize the head first",
        about="Everything after the last block: a final layer norm, a pooler, the classifier.",
    )  # fmt: skip
    embeddings: bool = option(
        False, "Also randomize the embeddings, last.", label="Randomize the embeddings last",
        about="Everything before the first block.",
    )  # fmt: skip
    split: str | None = options.split()
    dtype: str = options.dtype()
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of the randomizations."""
        return tuple(range(self.seed, self.seed + self.seeds))

    def params_of(self, method: str) -> Mapping[str, Plain]:
        return {**USUAL_PARAMS.get(method, {}), **self.params.get(method, {})}


RANDOMIZE = register(
    Experiment(
        id="randomize",
        plan=RandomizationPlan,
        module="engine.randomization.experiment",
        title="Randomize {models} on {dataset}",
        noun="randomization",
        participle="randomized",
        summary="Randomize a model block by block and test whether explanations change. Run it again to resume.",
        doing="randomizing",
        json_help="Print the curves and verdicts as JSON.",
        opens_with={
            "text": RandomizationPlan(("reviews-minilm",), "reviews", TEXT_METHODS, examples=16),
            "image": RandomizationPlan(("scenes-vit",), "scenes", examples=12),
        },
        method_sets={"Methods of the thesis": THESIS_METHODS},
    )
)
