"""Declaration of the experiment `corpus` and of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import ExperimentPlan
from engine.params import Plain, option

USUAL_METHODS = ("attn_lrp", "gradient_x_input")
"""Default methods. Each takes one backward pass, so a whole data set takes minutes."""


@dataclass(frozen=True)
class CorpusPlan(ExperimentPlan):
    """The plan of a corpus experiment. `least`: words in fewer examples are not tested."""

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(USUAL_METHODS, "Or 'all'. [default: attn_lrp,gradient_x_input]")
    examples: int = options.examples(500)
    seed: int = options.seed("Selects the examples, and seeds the permutations and intervals.")
    least: int = option(
        5, "Test the words in at least N examples.", low=2, most=1000, metavar="N", label="Fewest examples",
        place="top", fallback="{} is used.", about="Words in fewer examples are not tested.",
    )  # fmt: skip
    split: str | None = options.split()
    dtype: str = options.dtype()
    params: Mapping[str, Mapping[str, Plain]] = options.params()


CORPUS = register(
    Experiment(
        id="corpus",
        plan=CorpusPlan,
        module="engine.corpus.experiment",
        title="Words of {dataset} that matter to {models}",
        noun="corpus",
        participle="tested over a corpus",
        summary="Test which words or patches matter to a model over a whole data set. Run it again to resume.",
        doing="removing words",
        json_help="Print all numbers with adjusted p-values as JSON.",
        opens_with={
            "text": CorpusPlan(("reviews-minilm",), "reviews-generated"),
            "image": CorpusPlan(("digits-vit",), "digits", examples=200),
        },
    )
)
