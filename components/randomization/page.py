"""The Randomization page: its words, its work, and its results from the curves down to the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st

from components.errors import show_note
from components.experiment.page import ExperimentPage, export_area, references
from components.experiment.runs import CachedResults, PlanStatus, is_timed_here, seconds_of, skip_reasons_html
from components.experiment.state import ExperimentState, Methods
from components.export import citation_html
from components.navigation import RANDOMIZATION
from components.numbers import count, duration
from components.randomization.checks import (
    DrawnModel,
    cite,
    compared_checks,
    drawn_models,
    methods_drawn,
    offered_checks,
    words_of,
)
from components.randomization.stage_maps import stage_maps_area
from components.randomization.view import SESSION, view_controls
from components.styles import use_sheet
from components.widgets.patch_map.html import use_picture_styles
from engine.randomization.plan import RandomizationPlan

ABOUT = "The model is randomized block by block. A map of what the model has learned should change."
CAUTION = (
    "A map that changes is not thereby right: the check can show that a method fails, never that it is faithful "
    "(Adebayo et al., 2018, Sanity checks for saliency maps)."
)
APPLIES = (
    "LIME, SHAP and other methods that only look at the model's answers change whenever these do, so the thesis "
    "(section 4.1.4) leaves them out."
)
ZERO = (
    "The plain gradient is summed over an embedding, which layer normalization makes zero on some architectures: such "
    "a map has no order. Its size, gradient_l2, has one."
)
FAILED = "Some maps failed on {} and are left out of the numbers. Below, the reasons are listed."
CITED = (
    "Sanity checks: J. Adebayo, J. Gilmer, M. Muelly, I. Goodfellow, M. Hardt and B. Kim (2018), Sanity checks for "
    "saliency maps, NeurIPS."
)
TIMED = "That takes about {}, by what such work took before on this device."
FOUND = "What is in the cache already is not computed again."
ROWS_HELP = "A row a model, stage, seed, example, method and measure: what `exegesis randomize --out` writes."
CURVES_HELP = "Every mean with its interval, and the verdicts: what `exegesis randomize --json` prints."


def results_area(state: ExperimentState, status: PlanStatus, methods: Methods) -> None:
    """The curves and verdicts of each model, one example's maps, what was left out, and the files."""
    # Here and not above: they draw charts.
    from components.randomization.panels import curves_area

    results, titles = status.results, {id: method.title for id, method in methods.items()}
    there = offered_checks(results.plan, status.runs)
    others, missing = compared_checks(state.view.beside, there, status.runs)
    models = drawn_models([results, *others])
    use_picture_styles()
    use_sheet("randomization")
    st.caption(how(results))
    names, company = [one.name for one in models], methods_drawn(models)
    method = view_controls(state, names, company, titles, {mark: words_of(plan) for mark, plan in there.items()})
    for sentence in missing:
        show_note(sentence)
    curves_area(state, models, method, titles)
    flat = any(why.startswith("its map of the model as it is") for one in models for why in one.found.reasons)
    st.caption(" ".join([CAUTION, APPLIES, *([ZERO] if flat else [])]))
    stage_maps_area(state, status, models, methods)
    if lines := left_out(models, titles):
        with st.expander(f"Left out somewhere: {count(len(lines), 'reason')}", key="randomization.left_out"):
            st.html(skip_reasons_html(lines))
    cited = citation_html(cite(results.plan), references(results.plan, methods, [CITED]))
    curves = "Curves, JSON", "exegesis-randomization-curves.json", CURVES_HELP
    export_area(SESSION, state.kind, results.result, cited, ROWS_HELP, curves)


def how(results: CachedResults) -> str:
    """How it was done, in one sentence of numbers and our own words."""
    plan, size = results.plan, max(len(one.examples) for one in results.found)
    return (
        f"{count(size, 'example')}, each part randomized {count(plan.seeds, 'time')}; means over examples with 95% "
        "intervals, without width where all examples agree; correlations over the tokens or patches of each."
    )


def left_out(models: Sequence[DrawnModel], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples or maps of each model, by its name, and by which methods."""
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
    """What is asked for, and how long it takes by the newest job on the same models that ended well on this device."""
    models, size = explained_models(plan), len(status.results.sample.indices)
    maps, words = models * size * len(plan.methods_with_baselines), [FOUND]
    same = ((job, of) for job, of in status.runs if set(of.models) == set(plan.models) and of.dtype == plan.dtype)
    if timed := next(((job, of) for job, of in same if is_timed_here(job)), None):
        job, of = timed
        share = job.computed / job.total
        pace = explained_models(of) * of.examples * len(of.methods_with_baselines) * share / seconds_of(job)
        words = [TIMED.format(duration(maps / pace)), FOUND]
    sizes = (size, "example"), (len(plan.methods_with_baselines), "method"), (len(plan.models), "model")
    asked = ", ".join(count(number, noun) for number, noun in sizes)
    random = f"{count(maps, 'map')} of {count(models - len(plan.models), 'random model')} and the trained."
    return " ".join([f"{asked}: {random}", *words])


def explained_models(plan: RandomizationPlan) -> int:
    """How many models are explained: each as it is, and at each stage with each seed; what modes share counts once."""
    from engine.models.sizes import block_count
    from engine.randomization.stages import stages_of

    own = (len({stage.parts for stage in stages_of(plan, block_count(model))}) for model in plan.models)
    return sum(1 + stages * plan.seeds for stages in own)


PAGE = ExperimentPage(SESSION, ABOUT, results_area, cost_words, FAILED, RANDOMIZATION)
