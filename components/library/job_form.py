"""The form that submits a job: many examples of a data set, explained by several methods."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components.engine_room import explainers
from components.library_html import trouble_html
from components.trouble import sentence
from engine import jobs
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.data.sources import list_datasets
from engine.errors import UsageError, unknown
from engine.models.catalog import is_image_model, list_models
from engine.params import Plain
from engine.registry import KINDS

OPEN, MODEL, DATA, EXAMPLES, METHODS = (f"library.new_{name}" for name in ("job", "model", "data", "count", "methods"))
START = ("gradient_x_input", "random")
MOST_EXAMPLES = 100_000


def job_form() -> None:
    """Closed it costs nothing: the methods are known only to the engine, which takes seconds to import."""
    opened = st.expander("New job", icon=":material/add:", key=OPEN, on_change="rerun")
    if not opened.open:
        return
    with opened:
        with st.spinner("Starting the engine …"):
            titles = {id: method.title for kind in KINDS for id, method in explainers(kind).items()}
        with st.form("library.job", border=False):
            _controls(titles)
            asked = st.form_submit_button("Start the job", type="primary")
        if asked:
            _submit()


def spec_of(model: str, data: str, count: int, methods: list[str]) -> dict[str, Any]:
    """What an explain job needs, from what people choose. Errors name what is missing or unknown."""
    if not methods:
        raise UsageError("methods: pick at least one.")
    if not model:
        raise unknown("model", model, _models())
    examples = _pictures(data, count) if is_image_model(model) else _texts(data, count)
    return {"model": model, "methods": methods, "examples": examples}


def _pictures(data: str, count: int) -> list[dict[str, Plain]]:
    """Each by its place: a picture is too large to stand in a job."""
    return [{"dataset": data, "index": index} for index in range(len(load_images(data, limit=count)))]


def _texts(data: str, count: int) -> list[dict[str, Plain]]:
    examples = [labelled.example.as_plain() for labelled in load(data, limit=count).examples]
    return [{name: text for name, text in example.items() if text is not None} for example in examples]


def _controls(titles: dict[str, str]) -> None:
    left, middle, right = st.columns([2, 2, 1], gap="medium")
    with left:
        _open_choice("Model", MODEL, _models(), "An embedded model, a folder of a checkpoint, or a hub id.")
    with middle:
        _open_choice(
            "Data set", DATA, [*list_datasets("text"), *list_datasets("image")],
            "Of what the model reads: texts (a name, a CSV, TSV or JSONL file, hub:owner/name) or pictures (a name, a "
            "zip, a folder, hub:owner/name).",
        )  # fmt: skip
    st.session_state.setdefault(EXAMPLES, 30)
    right.number_input(
        "Examples", 1, MOST_EXAMPLES, key=EXAMPLES, step=1, persist_state="session",
        help="The first ones of the data set; all of it if it has fewer.",
    )  # fmt: skip
    st.session_state.setdefault(METHODS, [id for id in START if id in titles])
    st.multiselect(
        "Methods", list(titles), key=METHODS, format_func=lambda id: titles.get(id, id), persist_state="session",
        help="Each with its default parameters. Each method on each example is one part of the job.",
    )  # fmt: skip


def _models() -> list[str]:
    return [*list_models("text"), *list_models("image")]


def _open_choice(label: str, key: str, known: list[str], help: str) -> None:
    st.session_state.setdefault(key, known[0] if known else None)
    options = list(dict.fromkeys([*known, *filter(None, [st.session_state[key]])]))
    st.selectbox(label, options, key=key, accept_new_options=True, help=help, persist_state="session")


def _submit() -> None:
    model, data, count, methods = (st.session_state[name] for name in (MODEL, DATA, EXAMPLES, METHODS))
    try:
        with st.spinner("Reading the data set …"):
            job = jobs.submit(
                "explain", spec_of((model or "").strip(), (data or "").strip(), int(count), list(methods))
            )
    except Exception as error:
        st.html(trouble_html(sentence(error)))
        return
    st.toast(f"Job {job.id} is in the list below.")
