"""The plan of a randomization: the declaration of the experiment `randomize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option

MODES = ("cascading", "independent")
"""From the last part down, each stage with all before it; or one part at a time, the others as they were trained."""
MODE_TITLES = {MODES[0]: "Cascading", MODES[1]: "Independent"}
MODE_WORDS = {
    MODES[0]: "from the last part to the first, each with all before it",
    MODES[1]: "one part at a time, the others as they were trained",
}
THESIS_METHODS = ("gradient", "gradient_x_input", "integrated_gradients", "attention_mean", "attention_rollout")
USUAL_PARAMS: Mapping[str, Mapping[str, Plain]] = {"integrated_gradients": {"steps": "fixed", "n_steps": 33}}
"""Where a method's own defaults do not suit: steps until the gap is small would not end on random models, where the
logit hardly moves along the path."""


@dataclass(frozen=True)
class RandomizationPlan(ExperimentPlan):
    """`seeds`: how many times a part is randomized, from `seed` on: seed, seed + 1, ... `head`, `embeddings`: whether
    these are randomized too, first and last. `params`: of methods, where not as in `USUAL_PARAMS` or at their defaults.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(THESIS_METHODS, "Or 'all'. [default: five of the thesis]")
    examples: int = options.examples(50)
    seed: int = options.seed("Draws the examples, and is the first seed of the randomizations.")
    modes: tuple[str, ...] = option(
        MODES, "cascading: from the last block down; independent: one at a time.", choices=MODES, titles=MODE_TITLES,
        flag="mode", link="mode", metavar="A,B", place="line",
        about="; ".join(f"{MODE_TITLES[mode]}: {MODE_WORDS[mode]}" for mode in MODES),
    )  # fmt: skip
    seeds: int = option(
        3, "Randomizations of each part.", low=1, most=100, metavar="K", label="Randomizations", place="top",
        fallback="{} are used.",
        about="Each part is made random so many times, by different seeds. An example counts by its mean over them.",
    )  # fmt: skip
    head: bool = option(
        False, "Randomize what follows the last block too, first.", label="The head too, first",
        about="All after the last block: a last LayerNorm, a pooler, the classifier.",
    )  # fmt: skip
    embeddings: bool = option(
        False, "Randomize the embeddings too, last.", label="The embeddings too, last",
        about="All before the first block.",
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
            "text": RandomizationPlan(("reviews-minilm",), "reviews", examples=16),
            "image": RandomizationPlan(("scenes-vit",), "scenes", examples=12),
        },
        method_sets={"The thesis's methods": THESIS_METHODS},
    )
)
