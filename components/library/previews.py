"""The empirical explainers: their errors and costs next to those of the exact method, and a form that trains one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import describe_error, error_html, show_note
from components.export import file_button
from components.inputs.datasets import dataset_label, model_label
from components.numbers import hundredths
from components.tables import draw_table
from engine import jobs
from engine.data.sources import list_datasets
from engine.errors import ExegesisError, UsageError
from engine.input_kinds import list_models
from engine.lazy import LazyModule
from engine.models import catalog
from engine.registry import KINDS, all_explainers
from engine.table_io import to_csv

if TYPE_CHECKING:
    import pandas

    from engine.empirical import explainer as trained_explainers
    from engine.empirical.explainer import EmpiricalExplainer
else:  # the second imports safetensors, which other sections do not need
    pandas = LazyModule("pandas")
    trained_explainers = LazyModule("engine.empirical.explainer")

OPEN, MODEL, METHOD, DATA, SIZE = (f"library.previews.{name}" for name in ("open", "model", "method", "data", "size"))
START_SIZE, MOST_EXAMPLES = 300, 100_000
START_DATA, START_METHOD = "reviews-generated", "kernel_shap"
EMPTY = "No empirical explainer yet. Open **Train one** above, or run `exegesis empirical train`."
INTRODUCTION = (
    "An empirical explainer predicts the map of a costly method from one pass of the model. Text and Images show its "
    "preview until the exact map is there (Schwarzenberg et al., 2021)."
)
LEGEND = (
    "Error: squared error relative to the squared scores, on held-out examples; 0 is exact, 1 is a map of zeros. "
    "Lowest cost: the error of the exact method at its smallest budget. Pays after: maps after which the passes saved "
    "exceed those of training."
)


def draw_previews() -> None:
    """Draw what each empirical explainer saves, and the form that trains one."""
    st.caption(INTRODUCTION)
    _draw_form()
    trained = trained_explainers.all_trained()
    if not trained:
        st.info(EMPTY)
        return
    st.html(f'<div class="xg"><p class="xg-summary">{escape(summarize(trained))}</p></div>')
    draw_table(pandas.DataFrame([table_row(one) for one in trained]), "previews")
    st.caption(LEGEND)
    for problem in filter(None, map(problem_of, trained)):
        show_note(problem)
    with st.popover("Export"):
        file_button(
            "CSV", "empirical.csv", "text/csv", partial(errors_csv, trained), "A row for each error.", "previews.csv"
        )
        file_button(
            "JSON", "empirical.json", "application/json", partial(cards_json, trained), "All cards.", "previews.json"
        )
        st.code("exegesis empirical list --json", language="bash")


def summarize(trained: Sequence[EmpiricalExplainer]) -> str:
    """Describe in a sentence what the empirical explainer with the smallest error saves."""
    card = min((one.card for one in trained), key=lambda card: card.expected())
    return (
        f"{card.exact.title} of {card.model}: 1 pass in place of {card.passes:,.0f}, with an expected error of "
        f"{hundredths(card.expected())}."
    )


def table_row(trained: EmpiricalExplainer) -> dict[str, object]:
    """Return the table row of an empirical explainer."""
    card, own = trained.card, trained.card.errors[trained.card.OWN]
    lowest = card.errors.get(trained_explainers.LOWEST_COST)
    return {
        "Name": trained.name,
        "Model": card.model,
        "Method": card.exact.title,
        "Error": round(own.relative, 2),
        "Correlation": None if own.pearson is None else round(own.pearson, 2),
        "Lowest cost": None if lowest is None else round(lowest.relative, 2),
        "Seconds": round(card.own_seconds, 3),
        "Exact passes": round(card.passes),
        "Exact seconds": round(card.seconds, 2),
        "Saved passes a map": round(card.passes) - trained_explainers.OWN_PASSES,
        "Pays after (maps)": card.break_even,
    }


def problem_of(trained: EmpiricalExplainer) -> str:
    """Return why an empirical explainer can no longer be used, or an empty string."""
    try:
        why_not = trained.why_not(trained.card.model, catalog.revision(trained.card.model))
    except ExegesisError as error:
        return f"{trained.name}: its model cannot be read. {error}"
    return f"{why_not} Train it again." if why_not else ""


def errors_csv(trained: Sequence[EmpiricalExplainer]) -> str:
    """Return CSV with a row for each empirical explainer and each of the errors on its held-out examples."""
    return to_csv(
        {
            "name": one.name, "model": one.card.model, "method": one.card.method, "train_size": one.card.train_size,
            "passes": one.card.passes, "training_passes": one.card.training_passes, "measured": name, **vars(errors),
        }
        for one in trained
        for name, errors in one.card.errors.items()
    )  # fmt: skip


def cards_json(trained: Sequence[EmpiricalExplainer]) -> str:
    """Return all cards with their names as JSON."""
    return json.dumps([{"name": one.name, **one.card.as_plain()} for one in trained], indent=1)


def _draw_form() -> None:
    section = st.expander("Train one", icon=":material/add:", key=OPEN, on_change="rerun")
    if not section.open:
        return
    titles = {id: one.title for kind in KINDS for id, one in all_explainers(kind).items() if not one.cheap}
    models, datasets = ([name for kind in KINDS for name in of(kind)] for of in (list_models, list_datasets))
    with section, st.form("library.previews.form", border=False):
        left, right = st.columns(2, gap="medium")
        with left:
            _draw_choice("Model", MODEL, models, models[0], model_label)
            _draw_choice("Method", METHOD, list(titles), START_METHOD, lambda id: titles.get(id, id))
        with right:
            _draw_choice("Data set", DATA, datasets, START_DATA, dataset_label)
            st.session_state.setdefault(SIZE, START_SIZE)
            st.number_input(
                "Examples to train on", 8, MOST_EXAMPLES, key=SIZE, persist_state="session",
                help="Each is explained once by the exact method; 100 further ones measure the error.",
            )  # fmt: skip
        if st.form_submit_button("Start job", type="primary"):
            _submit()


def _draw_choice(label: str, key: str, names: list[str], start: str, title: Any) -> None:
    st.session_state.setdefault(key, start)
    options = list(dict.fromkeys([*names, st.session_state[key] or start]))
    st.selectbox(label, options, key=key, format_func=title, accept_new_options=key != METHOD, persist_state="session")


def _submit() -> None:
    model, method, data, size = (st.session_state[name] for name in (MODEL, METHOD, DATA, SIZE))
    try:
        if not (model and data):
            raise UsageError("model and data set: pick one of each.")
        spec = {"model": model, "method": method, "dataset": data, "train_size": int(size)}
        job = jobs.submit("empirical", {**spec, "out": trained_explainers.free_name(model, method)})
    except Exception as error:
        st.html(error_html(describe_error(error)))
        return
    st.toast(f"Job {job.id} was added: see Jobs.")
