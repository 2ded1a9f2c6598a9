"""How long a run takes, told before it is begun: by what the run of the shipped report took."""

from __future__ import annotations

from engine.reproduction.asked import Asked, experiments
from engine.reproduction.claims import TOPICS

SECONDS = {
    "t5-mini": 0.6, "t5-small": 0.9, "t5": 1.6, "t5-deep": 4.5, "bert": 1.2, "roberta": 1.5, "gpt2": 1.7,
}  # fmt: skip
"""Of one processor core, for an example of either data set: all methods, and what is measured by removal."""
TIME = (
    "On one processor core like those that the shipped report was made on, all of it takes about {}. What is in the "
    "cache already is not computed again."
)
NO_TIME = "How long that takes cannot be told before such models were run once."


def seconds_of(asked: Asked) -> float | None:
    """Of all that the chosen claims need on the models that are here; None where a model's time is not known."""
    names = {player.name for experiment in experiments(asked) for player in experiment.players if player.there}
    bases = [name.rpartition("-")[0] for name in names]
    if asked.places or asked.topic != TOPICS[0] or not bases or not SECONDS.keys() >= set(bases):
        return None
    return asked.count * sum(SECONDS[base] for base in bases)


def time_told(asked: Asked) -> str:
    """In one sentence or two."""
    seconds = seconds_of(asked)
    return NO_TIME if seconds is None else TIME.format(_span(seconds))


def _span(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return "a minute" if minutes == 1 else f"{minutes} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"
