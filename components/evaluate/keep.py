"""The Evaluate page's last part: rows, scores and leaderboard as files, and the command that gives the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.board import Board, board_html
from components.evaluate.leaderboard import LEGEND, board_sheet, shown
from components.evaluate.session import key
from components.evaluate.words import how
from components.experiment.export import TYPES
from components.export import REPEATS, citation_box, citation_html, file_button, standalone_page
from engine.evaluation.plan import EXAMPLES
from engine.home import product_version
from engine.metrics.catalog import METRICS
from engine.metrics.faithfulness import SHARES
from engine.registry import Explainer

if TYPE_CHECKING:
    from components.evaluate.known import Held
    from components.evaluate.state import EvaluateState
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation

NAMED = {"parquet": "Parquet"}
ROWS_HELP = "A row a model, example, method and metric, with its value: what `exegesis evaluate --out` writes."
SCORES_HELP = "Every mean with its interval, n and what was left out: what `exegesis evaluate --json` prints."
BOARD_HELP = "The leaderboard as one page, without a script."


def keep_area(state: EvaluateState, held: Held, found: Sequence[Board], methods: Mapping[str, Explainer]) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    from engine.evaluation.export import FORMATS

    made = held.found
    if made is None:
        return
    st.subheader("Keep", anchor=False)
    with st.container(horizontal=True, gap="small", key=key(state.kind, "keep")):
        for ending in FORMATS:
            name = f"exegesis-evaluation.{ending}"
            build = _rows(made, FORMATS[ending])
            file_button(
                f"Rows, {NAMED.get(ending, ending.upper())}", name, TYPES[ending], build, ROWS_HELP, _key(state, ending)
            )
        file_button(
            "Scores, JSON", "exegesis-scores.json", TYPES["json"], lambda: scores_json(made), SCORES_HELP,
            _key(state, "scores"),
        )  # fmt: skip
        file_button(
            "Leaderboard, HTML", "exegesis-leaderboard.html", "text/html",
            lambda: board_page(shown(found, state.look), made, held.size, methods), BOARD_HELP, _key(state, "board"),
        )  # fmt: skip
    cited = citation_html(cite(made.plan), references(made, methods))
    citation_box(cited, [(f"{REPEATS}:", command(made.plan, state.metrics))], _key(state, "cite"))


def scores_json(found: Evaluation) -> str:
    """What the command prints."""
    from engine.cli.plain_evaluation import as_plain

    return json.dumps(as_plain(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def board_page(found: Sequence[Board], made: Evaluation, size: int, methods: Mapping[str, Explainer]) -> str:
    """The leaderboards as a page of their own."""
    titles = {id: method.title for id, method in methods.items()}
    tables = f'<div class="xg-boards">{"".join(board_html(one, titles, found[0].metrics[0]) for one in found)}</div>'
    told = f"<p>{how(made.plan, size)}</p><p>{LEGEND}</p>"
    return standalone_page(
        "Leaderboard", [tables, told, citation_html(cite(made.plan), references(made, methods))], board_sheet()
    )


def command(plan: Plan, metrics: Sequence[str]) -> str:
    """The command that gives the same; what is not said is what it takes by itself. `metrics`: those asked for."""
    given = ["exegesis", "evaluate", "--models", ",".join(plan.models), "--dataset", plan.dataset]
    given += ["--methods", ",".join(plan.methods)]
    given += ["--metrics", ",".join(metrics)] if metrics else []
    shares = ",".join(map(str, plan.shares))
    usual = ",".join(map(str, SHARES))
    for option, value, own in (
        ("examples", plan.examples, EXAMPLES), ("seed", plan.seed, 0), ("split", plan.split, None),
        ("unit", plan.unit, None), ("removal", plan.removal, None), ("shares", shares, usual),
        ("dtype", plan.dtype, "float32"),
    ):  # fmt: skip
        given += [] if value == own else [f"--{option}", str(value)]
    for method, own_params in plan.params.items():
        given += [part for name, value in own_params.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*given, "--out", "rows.csv"])


def cite(plan: Plan) -> str:
    """One sentence: what made these numbers, of which models and data."""
    return (
        f"Exegesis {product_version()}. Evaluation of {len(plan.company)} methods on {plan.dataset} with "
        f"{', '.join(plan.models)}, seed {plan.seed}, {plan.dtype}."
    )


def references(found: Evaluation, methods: Mapping[str, Explainer]) -> list[str]:
    """A line for each method and for each metric with a source."""
    of_methods = [methods[id] for id in found.plan.company]
    told = [f"{one.title} ({one.id}, version {one.version}): {one.citation.rstrip('.')}." for one in of_methods]
    cited = (METRICS[id] for id in found.plan.metrics)
    return [*told, *(f"{one.title} ({one.id}): {one.citation.rstrip('.')}." for one in cited if one.citation)]


def _rows(found: Evaluation, write: Callable[[Evaluation], bytes]) -> Callable[[], bytes]:
    return lambda: write(found)


def _key(state: EvaluateState, name: str) -> str:
    return key(state.kind, f"keep.{name}")
