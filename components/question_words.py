"""How the questions to maps are worded: of a text's tokens, of a picture's patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

QUESTIONS = ("curves", "agreement")
MEASURES = ("spearman", "top_k")
TIED = "Equal scores at the edge of the top count by their chance to be in it."


@dataclass(frozen=True)
class QuestionWords:
    """`kind`: what is looked at; `unit`: what is pinned in it. `removals`: what a removed unit is, by operator.

    `ways`: the curves of the page, as `engine.metrics.faithfulness` names them; `curves`: their common name.
    """

    kind: str
    unit: str
    shortened: str
    removals: Mapping[str, str]
    ways: Sequence[str]
    curves: str
    hint: str
    nothing: str

    @property
    def measures(self) -> Mapping[str, str]:
        """The names of the measures of agreement."""
        return {"spearman": "Rank correlation", "top_k": f"Shared top {plural(self.unit)}"}

    @property
    def caution(self) -> str:
        """What stands below the prediction without the pinned units."""
        return (
            "The first table is what happens, the second what each method says. Scores have their own units, so "
            f"compare signs and shares, not sizes; several {plural(self.unit)} together need not count as much as one "
            f"by one. A {self.kind} with removed {plural(self.unit)} is unlike what the model was trained on: where "
            "the operators disagree, trust none of them much."
        )


def plural(unit: str) -> str:
    """tokens, words, patches."""
    return f"{unit}es" if unit.endswith("ch") else f"{unit}s"


TEXT_WORDS = QuestionWords(
    kind="text",
    unit="token",
    shortened="a shortened text",
    removals={
        "mask": "the mask token in its place",
        "pad": "the padding token in its place",
        "delete": "taken out of the text",
        "hide": "hidden from attention, its place kept",
        "zero": "a zero embedding in its place",
        "mean": "the mean embedding in its place",
    },
    ways=("deletion",),
    curves="Removal curves",
    hint="Click a token in any map to see the prediction without it.",
    nothing="Special tokens are never removed. Pin a token of the text to see the prediction without it.",
)
PICTURE_WORDS = QuestionWords(
    kind="picture",
    unit="patch",
    shortened="a picture with holes",
    removals={
        "mean": "the mean colour in its place",
        "zero": "a zero embedding in its place",
        "blur": "blurred",
        "drop": "hidden from attention",
    },
    ways=("deletion", "insertion"),
    curves="Deletion and insertion curves",
    hint="Click or paint patches in any map to see the prediction without them.",
    nothing="What is pinned is no patch of this picture. Pin a patch to see the prediction without it.",
)
