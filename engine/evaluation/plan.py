"""The plan of an evaluation: the declaration of the experiment `evaluate`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace

from engine.errors import not_allowed
from engine.experiments import options
from engine.experiments.base import Experiment, register
from engine.experiments.options import RANDOM, ExperimentPlan
from engine.input_kinds import input_kind
from engine.metrics.catalog import FALL_OF_LOGIT, METRICS, PERCENTS, SAMPLES, SHARES, K, Needs
from engine.params import Plain, option
from engine.registry import ENSEMBLE_MEMBERS, ENSEMBLES, SEVEN, TUNED_METHODS, explainer

TEXT_METHODS = tuple("gradient_l2" if one == "gradient" else one for one in SEVEN)
"""Preselected for texts, for which the sum of the gradient over dimensions is 0 on models with layer norm."""
QUICK_METHODS = ("gradient_x_input", "integrated_gradients", "attention_rollout", "attn_lrp", RANDOM)
"""Fast methods, not restricted to the seven of the thesis."""
WHOLE, READ = "whole", "read"
"""Values of `marks`, for texts too long for the model: all marks count or none; or those in the part that it reads."""
NO_OPERATOR = "none"
"""Value of `second_removal` that switches the second operator off."""


def units_of(kind: str) -> tuple[str, ...]:
    """The units that can be ranked for a kind of input, the default first."""
    return input_kind(kind).units


def removals_of(kind: str) -> tuple[str, ...]:
    """The operators that can remove units of a kind of input, the default first."""
    return input_kind(kind).removals


def second_removals_of(kind: str) -> tuple[str, ...]:
    """The choices of a second operator for a kind of input, the default first and "none" last."""
    return tuple(dict.fromkeys((input_kind(kind).second_removal, *removals_of(kind), NO_OPERATOR)))


def marks_of(kind: str) -> tuple[str, ...]:
    """The choices of `marks` for a kind of input, the default first. Only inputs of varying length can be too long."""
    return (WHOLE, READ) if input_kind(kind).varies_in_length else (WHOLE,)


def parse_shares(text: str) -> tuple[int, ...]:
    """Parse comma-separated percentages. Errors: percentages that are not whole, distinct and from 1 to 100."""
    parts = [part.strip() for part in text.split(",")]
    shares = [int(part) for part in parts if re.fullmatch(r"0*[0-9]{1,3}", part)]
    if len(shares) < len(parts) or not all(0 < one <= 100 for one in shares) or len(set(shares)) < len(shares):
        allowed = "different whole percentages from 1 to 100 between commas"
        raise not_allowed("shares", allowed, text, f"Example: {','.join(map(str, SHARES))}.")
    return tuple(shares)


@dataclass(frozen=True)
class EvaluationPlan(ExperimentPlan):
    """The plan of an evaluation.

    `metrics`: if empty, all that the data set allows, except sensitivity, which costs most, and drops in the logit;
    these must be named. `unit`, `removal`: None for the default of the kind of input. `second_removal`: the operator by
    which the same maps are judged a second time; "none" switches it off, and None selects the default, see
    `second_operator`. `marks`: None for whole. `shares`: the percentages over which comprehensiveness and sufficiency
    are averaged. `k`: for `recall_at_k`. `samples`: number of changed inputs for sensitivity. `params`: non-default
    parameters of the methods.
    """

    models: tuple[str, ...] = options.models()
    dataset: str = options.dataset()
    methods: tuple[str, ...] = options.methods(MISSING, "Comma-separated methods, or 'all'.")
    metrics: tuple[str, ...] = option(
        (), "[default: all that apply, except sensitivity and drops in the logit]", choices=tuple(METRICS),
        metavar="A,B", link="metric", exact=True, first=True, titles={one.id: one.title for one in METRICS.values()},
        placeholder="All that apply to the data set",
        about="None selected: all that the data set allows, except sensitivity, which explains each example many "
        "times, and drops in the logit.",
    )  # fmt: skip
    examples: int = options.examples(500)
    seed: int = options.seed("Seed of the examples, of ties, and of methods that sample.")
    split: str | None = options.split()
    unit: str | None = option(
        None, "Unit to rank: token, word or patch.", by_kind=units_of, metavar="U",
        about="What is ranked, removed and compared with marks.",
    )  # fmt: skip
    removal: str | None = option(
        None, "How units are removed.", by_kind=removals_of, metavar="O",
        label="Removed by", about="How the metrics remove units.",
    )  # fmt: skip
    second_removal: str | None = option(
        None, "Second operator, to see whether the ranking depends on it, or none.", by_kind=second_removals_of,
        metavar="O", label="Also removed by",
        about="Judges the same maps by a second operator, to see whether the ranking depends on it. LIME, SHAP and "
        "occlusion use the first one themselves, which may favor them.",
    )  # fmt: skip
    marks: str | None = option(
        None, "Of texts too long for the model: whole, or read to count the marks in the part that it reads.",
        by_kind=marks_of, metavar="M", label="Marks of long texts",
        about="Whole: a text whose marks the model does not read to the end is left out. Read: the marks in the part "
        "that it reads count, and the result says so.",
    )  # fmt: skip
    dtype: str = options.dtype()
    shares: tuple[int, ...] = option(
        SHARES, "Percentages removed, averaged over.", metavar="A,B", parse=parse_shares,
        label="Shares removed, in percent", about="Comprehensiveness and sufficiency are means over these.",
    )  # fmt: skip
    k: int = option(K, "Of recall_at_k.", low=1, metavar="K", page=False)
    samples: int = option(SAMPLES, "Changed inputs for sensitivity.", low=1, metavar="N", page=False)
    params: Mapping[str, Mapping[str, Plain]] = options.params()

    @property
    def methods_with_baselines(self) -> tuple[str, ...]:
        """The methods with the baselines of every evaluation: the members of ensembles, and a random order."""
        members = (member for method in self.methods for member in ENSEMBLE_MEMBERS.get(method, ()))
        return tuple(dict.fromkeys((*self.methods, *members, RANDOM)))

    @property
    def tuned(self) -> dict[str, str]:
        """The metric on which each tuned method is tuned, by method."""
        own = [id for id in self.methods_with_baselines if id in TUNED_METHODS]
        return {id: explainer(id, self.kind).tuned_metric(self.params.get(id, {})) for id in own}

    @property
    def units(self) -> str:
        """The unit that is ranked and removed: "token", "word" or "patch"."""
        return self.unit or units_of(self.kind)[0]

    @property
    def operator(self) -> str:
        """The operator by which units are removed."""
        return self.removal or removals_of(self.kind)[0]

    @property
    def second_operator(self) -> str | None:
        """The operator of the second scores; None if it is switched off, or no metric removes units.

        By default it is the second operator of the kind of input, or the first one if that second one is `operator`.
        """
        if self.second_removal == NO_OPERATOR or (self.metrics and not self.needs("removal")):
            return None
        usual = (input_kind(self.kind).second_removal, *removals_of(self.kind)) if self.second_removal is None else ()
        return self.second_removal or next(one for one in usual if one != self.operator)

    @property
    def second_plan(self) -> EvaluationPlan | None:
        """The plan of the second scores: the metrics that remove units, with the second operator. None if it is off."""
        second, metrics = self.second_operator, tuple(self.needs("removal"))
        return None if second is None else replace(self, removal=second, second_removal=NO_OPERATOR, metrics=metrics)

    @property
    def percents(self) -> tuple[int, ...]:
        """The percentages needed for the means and, if requested, for the full curves."""
        curves = not self.metrics or any(METRICS[id].by_percent for id in self.metrics)
        return tuple(sorted({0, 100, *self.shares, *(PERCENTS if curves else ())}))

    @property
    def logits(self) -> bool:
        """Whether a metric measures drops in the class logit."""
        return any(METRICS[id].unit == FALL_OF_LOGIT for id in self.metrics)

    def needs(self, what: Needs) -> list[str]:
        """The chosen metrics with this requirement."""
        return [id for id in self.metrics if METRICS[id].needs == what]


EVALUATE = register(
    Experiment(
        id="evaluate",
        plan=EvaluationPlan,
        module="engine.evaluation.experiment",
        title="Evaluate {methods} on {dataset} with {models}",
        noun="evaluation",
        participle="evaluated",
        summary="Score methods on many examples. Run it again to resume.",
        doing="evaluating",
        json_help="Print the scores as JSON.",
        opens_with={
            "text": EvaluationPlan(("reviews-minilm",), "reviews", (*TEXT_METHODS, *ENSEMBLES, RANDOM), examples=40),
            "image": EvaluationPlan(("scenes-marked-vit",), "scenes-marked", QUICK_METHODS, examples=20),
        },
        method_sets={
            "Seven methods of the thesis": (*SEVEN, RANDOM),
            "With ensembles": (*SEVEN, *ENSEMBLES, RANDOM),
            "Fast methods": QUICK_METHODS,
        },
    )
)
