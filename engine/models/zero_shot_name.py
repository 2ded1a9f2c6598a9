"""Names of zero-shot classifiers: an NLI model, the labels of a user, and the hypothesis. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote_plus

from engine.errors import UsageError, excerpt

MARK = "?label="
"""Begins what follows the NLI model in a name."""
HYPOTHESIS = "This example is {}."
"""The default template."""
MOST_LABELS, LONGEST_LABEL, LONGEST_HYPOTHESIS = 50, 200, 500


@dataclass(frozen=True)
class ZeroShotName:
    """The parts of a zero-shot classifier's name. `hypothesis`: with `{}` in the label's place."""

    model: str
    chosen: tuple[str, ...]
    hypothesis: str = HYPOTHESIS

    def __post_init__(self) -> None:
        if not self.chosen or len(self.chosen) > MOST_LABELS:
            raise UsageError(
                f"labels: must be 1 to {MOST_LABELS} labels, got {len(self.chosen)}. Example: travel, cooking."
            )
        for label in self.chosen:
            if not label.strip() or len(label) > LONGEST_LABEL:
                raise UsageError(
                    f"labels: a label must have 1 to {LONGEST_LABEL} characters, got {excerpt(label)}. Shorten it."
                )
        if len(set(self.chosen)) < len(self.chosen):
            raise UsageError("labels: must differ from each other. Remove the label that is there twice.")
        if self.hypothesis.count("{}") != 1 or len(self.hypothesis) > LONGEST_HYPOTHESIS:
            raise UsageError(
                f"hypothesis: must have {{}} once, in the label's place, and at most {LONGEST_HYPOTHESIS} characters, "
                f"got {excerpt(self.hypothesis)}. Example: {HYPOTHESIS}"
            )

    def __str__(self) -> str:
        fields = [("label", label) for label in self.chosen]
        fields += [] if self.hypothesis == HYPOTHESIS else [("hypothesis", self.hypothesis)]
        return f"{self.model}?" + "&".join(f"{name}={quote_plus(text, safe='{}')}" for name, text in fields)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.chosen if len(self.chosen) > 1 else (*self.chosen, f"not {self.chosen[0]}")

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """What is asked of the text, a sentence a label."""
        return tuple(self.hypothesis.replace("{}", label) for label in self.chosen)


def read_zero_shot(model: str) -> ZeroShotName | None:
    """The parts of a model's name; None if it is no zero-shot classifier's. Errors: an unknown field, a bad label."""
    name, mark, rest = model.partition(MARK)
    if not mark:
        return None
    fields = parse_qsl(MARK[1:] + rest, keep_blank_values=True)
    other = [field for field, _ in fields if field not in ("label", "hypothesis")]
    templates = [text for field, text in fields if field == "hypothesis"]
    if other or len(templates) > 1:
        wrong = other[0] if other else "two hypotheses"
        raise UsageError(
            f"model: after ? a name may hold label, several times, and hypothesis, once; got {excerpt(wrong)}. "
            "Example: nli-minilm?label=travel&label=cooking"
        )
    return ZeroShotName(name, tuple(text for field, text in fields if field == "label"), *templates)


def is_entailment(label: str) -> bool:
    """Whether a label of an NLI model says that the second text follows from the first."""
    return label.casefold().startswith("entail")


def read_labels(text: str) -> tuple[str, ...]:
    """Labels separated by commas."""
    return tuple(label.strip() for label in text.split(",") if label.strip())
