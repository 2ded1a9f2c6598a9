"""What a study tells its participants to do: the organiser's words, or ours where they left those of rankings alone."""

from __future__ import annotations

from engine.study.design import INSTRUCTIONS, PREDICT, QUESTION, Design

GUESS = "What does the model say of this input?"
HOW_TO_GUESS = (
    "You see an input, and sometimes an explanation of what a model said of it. Guess what it said, and tell how sure "
    "you are. The model may be wrong: guess its answer, not the right one. If you cannot tell, say so."
)


def question(design: Design) -> str:
    """What is asked of every item, in Markdown."""
    return GUESS if design.mode == PREDICT and design.question == QUESTION else design.question


def instructions(design: Design) -> str:
    """What to do, in Markdown."""
    return HOW_TO_GUESS if design.mode == PREDICT and design.instructions == INSTRUCTIONS else design.instructions
