"""The view options of the Randomization page, the controls of its charts, and the models in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache import key_for
from components.controls import PERSIST
from components.experiment.runs import CachedResults, Run, ended_of, results_of
from components.experiment.state import (
    VIEW,
    ExperimentSession,
    ExperimentState,
    Value,
    chosen_of,
    view_pills,
    view_select,
)
from components.links import MOST_PLACE
from components.numbers import count
from engine.errors import ExegesisError
from engine.experiments.options import options_of
from engine.home import product_version
from engine.params import option
from engine.randomization.curves import FEW
from engine.randomization.plan import MODES, RANDOMIZE, RandomizationPlan
from engine.randomization.result import ModelRandomization

MEASURES = {
    "spearman": "Rank correlation",
    "spearman_abs": "Rank correlation of absolute scores",
    "top_k": "Shared top 15%",
    "ssim": "Structural similarity",
}
MEASURES_OF = {"text": tuple(one for one in MEASURES if one != "ssim"), "image": tuple(MEASURES)}
"""Measures by the kind of input."""
SIGNS = {"spearman": "ρ", "spearman_abs": "|ρ|", "top_k": "top shared", "ssim": "SSIM"}
"""Labels of the similarity below a map, by measure."""
ORDERS = {"index": "As in the data set", "most": "Most changed first", "least": "Least changed first"}
SCALES = {"own": "Own scale per map", "shared": "One scale per method"}
MOST_STAGE = 9_999

ORIGINAL = "original"
NO_VERDICT = "Verdicts need the cascading mode. Select it in the settings above."
COMPARE_WITH = "Compare with"
COMPARE_HELP = (
    "Other finished runs on this machine, started here or with `exegesis randomize --job`. To compare data sets, "
    "run the check on each of them."
)
NONE_TO_COMPARE = "No other finished run"
EVERY = "All models"
METHOD_LINES = "One line per method"
LINES_HELP = "One line per model compares how a single method behaves on several models or data sets."
WIDTH, WIDE, LONG = 210, 330, 26
"""Widths of select boxes in pixels, and the number of letters from which a label needs the wide one."""
MARK_LENGTH = 10
"""Letters that identify a run in a link."""
GONE = "The run {} in the link is not finished on this machine. Run it here, then select it again."


@dataclass(frozen=True)
class RandomizationView:
    """The view options of the page.

    Charts: `measure`; `model`: the only model drawn, empty for all; `only`: the methods drawn, empty for all; `beside`:
    marks of other runs to draw; `lines`: the method with a line for each model, empty for a line for each method.

    Maps: `of`: the model, empty for the first; `way`: the mode; `stage`: 0 for all; `example`: index in the data set,
    empty for the first in the order; `order`, `by`: the order, and the method that it depends on; `draw`: the
    randomization, from 1; `scale`: color scale.
    """

    measure: str = option("spearman", choices=tuple(MEASURES), by_kind=MEASURES_OF.get)
    model: str = option("", link="drawn")
    only: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    lines: str = ""
    of: str = ""
    way: str = option(MODES[0], choices=MODES)
    stage: int = option(0, low=0, high=MOST_STAGE)
    example: str = option(
        "", high=MOST_PLACE, allowed="an index of the data set", fallback="The first one is shown."
    )  # fmt: skip
    order: str = option("index", choices=tuple(ORDERS))
    by: str = ""
    draw: int = option(1, low=1, high=MOST_STAGE)
    scale: str = option("own", choices=tuple(SCALES))


SESSION = ExperimentSession(RANDOMIZE, "randomization", RandomizationView)


def measure_control(kind: str) -> None:
    """Draw the choice of the measure."""
    st.segmented_control(
        "Measure", options_of(RandomizationView)["measure"].choices(kind), required=True,
        key=SESSION.key(kind, f"{VIEW}measure"), format_func=MEASURES.__getitem__, persist_state=PERSIST,
        label_visibility="collapsed",
    )  # fmt: skip


def chart_options(
    state: ExperimentState, names: Sequence[str], company: Sequence[str], titles: Mapping[str, str],
    offered: Mapping[str, str], options: DeltaGenerator | None,
) -> str:  # fmt: skip
    """Draw the rare controls of the charts. Return the method with a line for each model, empty for one per method.

    `names`: of the models. `company`: the methods. `offered`: other runs, by their marks. `options`: container of the
    controls, or None while they are not drawn.
    """
    known = {"": METHOD_LINES} | {id: f"One line per model: {titles.get(id, id)}" for id in company}
    lines = chosen_of(state, "lines", known) if len(names) > 1 else ""
    if options is not None:
        with options:
            _draw_chart_options(state, names, company, titles, offered, known)
    return lines


def _draw_chart_options(
    state: ExperimentState, names: Sequence[str], company: Sequence[str], titles: Mapping[str, str],
    offered: Mapping[str, str], known: Mapping[str, str],
) -> None:  # fmt: skip
    if len(names) > 1 and not choose(state, "Lines", "lines", known, help=LINES_HELP):
        choose(state, "Models drawn", "model", {"": EVERY} | {name: name for name in names})
    view_pills(SESSION, state, "Methods drawn", "only", {id: titles.get(id, id) for id in company}, popover=False)
    widget = SESSION.key(state.kind, "view.beside")
    st.session_state[widget] = [mark for mark in state.view.beside if mark in offered]
    st.multiselect(
        COMPARE_WITH, list(offered), key=widget, help=COMPARE_HELP, persist_state=PERSIST,
        format_func=offered.__getitem__, disabled=not offered,
        placeholder="Other finished runs" if offered else NONE_TO_COMPARE,
        on_change=lambda: SESSION.put_view(state.kind, "beside", st.session_state[widget]),
    )  # fmt: skip


def choose(
    state: ExperimentState, label: str, name: str, known: Mapping[Value, str], width: int | None = None,
    help: str | None = None,
) -> Value:  # fmt: skip
    """Draw a select box for a view option, wider for long labels."""
    wide = max(map(len, known.values())) > LONG
    return view_select(SESSION, state, label, name, known, width or (WIDE if wide else WIDTH), help)


@dataclass(frozen=True)
class DrawnModel:
    """A model of a run. `name`: unique among the models that are drawn together."""

    results: CachedResults
    found: ModelRandomization
    name: str


def drawn_models(runs: Sequence[CachedResults]) -> list[DrawnModel]:
    """Return all models of all runs. Names include the data set if there are several, and a number if they recur."""
    several = len({one.plan.dataset for one in runs}) > 1
    models: list[DrawnModel] = []
    names: list[str] = []
    for one in runs:
        for found in one.found:
            name = f"{found.model} on {found.dataset}" if several else found.model
            before = names.count(name)
            models.append(DrawnModel(one, found, f"{name} ({before + 1})" if before else name))
            names.append(name)
    return models


def methods_drawn(models: Sequence[DrawnModel]) -> list[str]:
    """Return the methods of all drawn models."""
    return list(dict.fromkeys(method for one in models for method in one.results.plan.methods_with_baselines))


def offered_checks(plan: RandomizationPlan, runs: Sequence[Run]) -> dict[str, RandomizationPlan]:
    """Return other plans for the same kind of input that are finished here or shipped, by their marks."""
    done = [of for job, of in runs if job.state == "done" and _kind(of) == plan.kind]
    return {mark_of(one): one for one in (*done, RANDOMIZE.opens_with[plan.kind]) if one != plan}


def compared_checks(
    chosen: Sequence[str], offered: Mapping[str, RandomizationPlan], runs: Sequence[Run]
) -> tuple[list[CachedResults], list[str]]:
    """Return the results of the chosen runs, and a sentence for each that is not available."""
    found, missing = list[CachedResults](), list[str]()
    for mark in chosen:
        try:
            one = results_of(offered[mark], ended_of(offered[mark], runs)) if mark in offered else None
        except ExegesisError as error:  # its data set no longer exists
            missing.append(str(error))
            continue
        if one is not None and one.found:
            found.append(one)
        else:
            missing.append(GONE.format(mark))
    return found, missing


def mark_of(plan: RandomizationPlan) -> str:
    """Return the mark of a plan in links."""
    return key_for(plan.as_plain())[:MARK_LENGTH]


def describe_plan(plan: RandomizationPlan) -> str:
    """Describe a plan in one line: models, data set and sizes."""
    sizes = count(plan.examples, "example"), count(plan.seeds, "randomization"), count(len(plan.methods), "method")
    return f"{', '.join(plan.models)} on {plan.dataset}: {', '.join(sizes)}"


def examples_note(examples: int) -> str:
    """Describe how many examples a verdict needs, and whether these are too few."""
    need = f"A verdict on a method needs at least {count(FEW, 'example')} with a rank correlation."
    return need if examples >= FEW else f"{need} {examples:,} {'is' if examples == 1 else 'are'} too few."


def cite(plan: RandomizationPlan) -> str:
    """Return a sentence for citations: version, models, data set, methods and seeds."""
    return (
        f"Exegesis {product_version()}. Randomization of {', '.join(plan.models)} on {plan.dataset}, "
        f"{len(plan.methods_with_baselines)} methods, seeds {plan.all_seeds[0]} to {plan.all_seeds[-1]}, {plan.dtype}."
    )


def _kind(plan: RandomizationPlan) -> str:
    try:
        return plan.kind
    except ExegesisError:  # its model no longer exists
        return ""
