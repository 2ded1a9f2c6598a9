"""The command that teaches the students of a plan."""

from __future__ import annotations

import shlex

from engine.scaffold.plan import SEEDS, SETTINGS, Plan, Recipe, recipe_values

USUAL_SIZES = (500,)


def command(plan: Plan) -> str:
    """What is not said is what it takes by itself. It names all train sizes: the splits depend on the largest."""
    given = ["exegesis", "scaffold", "--teacher", plan.teacher, "--dataset", plan.dataset]
    for option, value, own in (
        ("settings", plan.settings, SETTINGS), ("train-sizes", plan.train_sizes, USUAL_SIZES),
        ("seeds", plan.seeds, SEEDS),
    ):  # fmt: skip
        given += [] if value == own else [f"--{option}", ",".join(map(str, value))]
    for name, text in (("base", plan.base), ("split", plan.split)):
        given += [f"--{name}", text] if text else []
    usual, chosen = recipe_values(Recipe()), recipe_values(plan.recipe)
    for name, one in chosen.items():
        given += [] if one == usual[name] else [f"--{name.replace('_', '-')}", str(one).lower()]
    return shlex.join(given)
