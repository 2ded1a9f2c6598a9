"""The Randomization page: its texts, its cost, and its results from the answer to the export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import show_note
from components.experiment.page import ExperimentPage, export_area, references
from components.experiment.runs import PlanStatus, is_timed_here, seconds_of, skip_reasons_html
from components.experiment.state import ExperimentState, Methods
from components.export import citation_html
from components.navigation import RANDOMIZATION
from components.numbers import count, rough_duration
from components.randomization.panels import curves_area
from components.randomization.stage_maps import stage_maps_area
from components.randomization.view import (
    SESSION,
    DrawnModel,
    chart_options,
    cite,
    compared_checks,
    describe_plan,
    drawn_models,
    examples_note,
    methods_drawn,
    offered_checks,
)
from components.styles import use_sheet
from components.widgets.patch_map.html import use_picture_styles
from engine.models.sizes import block_count
from engine.randomization.curves import FEW
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import FLAT_BEFORE, stages_of

ABOUT = "The model's weights are randomized block by block. An explanation that depends on the model should change."
CAUTION = (
    "The check can show that a method fails, but not that it is faithful: a map that changes is not necessarily right "
    "(Adebayo et al., 2018, Sanity checks for saliency maps)."
)
APPLIES = (
    "Methods that use only the model's predictions, such as LIME and SHAP, change whenever the predictions do. The "
    "thesis (section 4.1.4) leaves them out."
)
ZERO = (
    "Gradient sums over the embedding dimensions. The sum is zero on models with layer norm, so such a map has no "
    "ranking. Use Gradient L2 norm instead."
)
FAILED = "Some maps failed on {} and are not included. The reasons are listed at the end of this page."
CITED = (
    "Sanity checks: J. Adebayo, J. Gilmer, M. Muelly, I. Goodfellow, M. Hardt and B. Kim (2018), Sanity checks for "
    "saliency maps, NeurIPS."
)
TIMED = "Takes about {}, estimated from an earlier run on this device."
FOUND = "Cached maps are not computed again."
ROWS_HELP = "One row per model, stage, seed, example, method and measure: the output of `exegesis randomize --out`."
CURVES_HELP = "Every mean with its interval, and the verdicts: the output of `exegesis randomize --json`."


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods, options: DeltaGenerator | None) -> None:
    """Draw the answer, the charts, the maps of one example, and the export."""
    results, titles = status.results, {id: method.title for id, method in methods.items()}
    offered = offered_checks(results.plan, status.runs)
    others, missing = compared_checks(state.view.beside, offered, status.runs)
    models = drawn_models([results, *others])
    use_picture_styles()
    use_sheet("randomization")
    for sentence in missing:
        show_note(sentence)
    names, plans = [one.name for one in models], {mark: describe_plan(plan) for mark, plan in offered.items()}
    method = chart_options(state, names, methods_drawn(models), titles, plans, options)
    curves_area(state, models, method, titles)
    flat = any(FLAT_BEFORE in one.found.reasons for one in models)
    with st.expander("What the check can show", key="randomization.limits"):
        st.markdown(" ".join([CAUTION, APPLIES, *([ZERO] if flat else [])]))
    stage_maps_area(state, status, models, methods, options)
    if lines := left_out(models, titles):
        with st.expander(f"Left out: {count(len(lines), 'reason')}", key="randomization.left_out"):
            st.html(skip_reasons_html(lines))
    cited = citation_html(cite(results.plan), references(results.plan, methods, [CITED]))
    curves = "Curves, JSON", "exegesis-randomization-curves.json", CURVES_HELP
    export_area(SESSION, state.kind, results.result, cited, ROWS_HELP, curves)


def left_out(models: Sequence[DrawnModel], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The reasons for missing values: each with the number of examples or maps on a model, and the methods."""
    lines = []
    for name, found in ((one.name, one.found) for one in models):
        for why, number in Counter(found.failed.values()).items():
            lines.append((why, f"{count(number, 'example')} on {name}", "all methods"))
        for code, why in enumerate(found.reasons):
            hit = found.why == code
            of = ", ".join(titles.get(id, id) for at, id in enumerate(found.methods) if hit[:, :, at].any())
            lines.append((why, f"{count(int(hit.sum()), 'map')} on {name}", of))
    return lines


def cost_words(plan: RandomizationPlan, status: PlanStatus) -> str:
    """The size of the plan, and the time by the newest finished job on the same models on this device."""
    models, size = explained_models(plan), len(status.results.sample.indices)
    maps, words = models * size * len(plan.methods_with_baselines), [FOUND]
    same = ((job, of) for job, of in status.runs if set(of.models) == set(plan.models) and of.dtype == plan.dtype)
    if timed := next(((job, of) for job, of in same if is_timed_here(job)), None):
        job, of = timed
        share = job.computed / job.total
        pace = explained_models(of) * of.examples * len(of.methods_with_baselines) * share / seconds_of(job)
        words = [TIMED.format(rough_duration(maps / pace)), FOUND]
    sizes = (size, "example"), (len(plan.methods_with_baselines), "method"), (len(plan.models), "model")
    numbers = ", ".join(count(number, noun) for number, noun in sizes)
    random = count(models - len(plan.models), "randomized model")
    needed = [examples_note(size)] if size < FEW else []
    return " ".join([f"{numbers}: {count(maps, 'map')} of {random} and the original.", *needed, *words])


def explained_models(plan: RandomizationPlan) -> int:
    """The number of models to explain: the originals, and each distinct stage at each seed."""
    own = (len({stage.parts for stage in stages_of(plan, block_count(model))}) for model in plan.models)
    return sum(1 + stages * plan.seeds for stages in own)


PAGE = ExperimentPage(
    SESSION, ABOUT, results_area, cost_words, FAILED, RANDOMIZATION, summary=describe_plan,
    advice=lambda plan: examples_note(plan.examples),
)  # fmt: skip
