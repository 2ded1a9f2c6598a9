"""What is kept of a randomization: rows as files, curves and verdicts as JSON, how to cite and to repeat it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from components.citing import cited_html
from components.evaluate.keep import TYPES
from components.keeping import REPEATS, cite_box, file_button
from components.randomization.session import key
from components.randomization.words import CITED
from engine.home import product_version
from engine.randomization.plan import MODES, RandomizationPlan
from engine.registry import Explainer

if TYPE_CHECKING:
    from components.randomization.known import Held
    from components.randomization.state import RandomizationState
    from engine.randomization.result import RandomizationResult

ROWS_HELP = "A row a model, stage, seed, example, method and measure: what `exegesis randomize --out` writes."
CURVES_HELP = "Every mean with its interval, and the verdicts: what `exegesis randomize --json` prints."


def keep_area(state: RandomizationState, held: Held, methods: Mapping[str, Explainer]) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    from engine.experiments.run import FORMATS
    from engine.randomization.result import RandomizationResult

    made = RandomizationResult(held.plan, held.found)
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(state.kind, "keep")):
        for ending in FORMATS:
            name, build = f"exegesis-randomization.{ending}", _rows(made, FORMATS[ending])
            file_button(f"Rows, {ending.upper()}", name, TYPES[ending], build, ROWS_HELP, _key(state, ending))
        file_button(
            "Curves, JSON", "exegesis-randomization-curves.json", TYPES["json"], lambda: curves_json(made),
            CURVES_HELP, _key(state, "curves"),
        )  # fmt: skip
    cited = cited_html(cite(held.plan), references(held.plan, methods))
    cite_box(cited, [(f"{REPEATS}:", command(held.plan))], _key(state, "cite"))


def curves_json(found: RandomizationResult) -> str:
    """What the command prints."""
    from engine.randomization.curves import to_json

    return json.dumps(to_json(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def command(plan: RandomizationPlan) -> str:
    """The command that gives the same; what is not said is what it takes by itself."""
    given = ["exegesis", "randomize", "--models", ",".join(plan.models), "--dataset", plan.dataset]
    given += ["--methods", ",".join(plan.methods)]
    for option, value, own in (
        ("examples", plan.examples, RandomizationPlan.examples), ("seed", plan.seed, 0),
        ("seeds", plan.seeds, RandomizationPlan.seeds),
        ("mode", ",".join(plan.modes), ",".join(MODES)), ("split", plan.split, None), ("dtype", plan.dtype, "float32"),
    ):  # fmt: skip
        given += [] if value == own else [f"--{option}", str(value)]
    given += [f"--{part}" for part in ("head", "embeddings") if getattr(plan, part)]
    for method, own_params in plan.params.items():
        given += [part for name, value in own_params.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*given, "--out", "rows.csv"])


def cite(plan: RandomizationPlan) -> str:
    """One sentence: what made these numbers, of which models and data."""
    return (
        f"Exegesis {product_version()}. Randomization of {', '.join(plan.models)} on {plan.dataset}, "
        f"{len(plan.company)} methods, seeds {plan.all_seeds[0]} to {plan.all_seeds[-1]}, {plan.dtype}."
    )


def references(plan: RandomizationPlan, methods: Mapping[str, Explainer]) -> list[str]:
    """The check itself, then a line for each method."""
    known = [methods[id] for id in plan.company]
    return [CITED, *(f"{one.title} ({one.id}, version {one.version}): {one.citation.rstrip('.')}." for one in known)]


def _rows(found: RandomizationResult, write: Callable[[RandomizationResult], bytes]) -> Callable[[], bytes]:
    return lambda: write(found)


def _key(state: RandomizationState, name: str) -> str:
    return key(state.kind, f"keep.{name}")
