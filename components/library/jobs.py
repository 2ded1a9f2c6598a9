"""Jobs: the form that submits one, their list with buttons to cancel, resume and remove them, and links to results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from components.adversarial.state import MEASURES, settings_as_text
from components.adversarial.state import state_of_plan as attack_state
from components.adversarial.state import write as attack_link
from components.compare.state import EXAMPLES as COMPARE_EXAMPLES
from components.compare.state import CompareState, CompareViewOptions
from components.compare.state import write as compare_link
from components.errors import describe_error, error_html
from components.experiment.state import plan_link
from components.inputs.datasets import ModelLabels, dataset_label
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.job_panel import FINDS, STOPS, JobView, failures_html, job_view
from components.links import LONGEST_IN_LINK, Query
from components.navigation import (
    ADVERSARIAL,
    BEHAVIOR,
    COMPARE,
    CONCEPTS_PAGE,
    EVALUATE,
    IMAGES,
    LIBRARY,
    RANDOMIZATION,
    REPRODUCTION,
    RULES_PAGE,
    SCAFFOLD,
    TEXT,
    WORDS,
    PageEntry,
)
from components.organizer import is_organizer
from components.reproduction.state import ReproductionState, default_state
from components.reproduction.state import write as reproduction_link
from components.scaffold.state import state_of as scaffold_state
from components.scaffold.state import write_state as scaffold_link
from components.state import renew_models
from engine import jobs
from engine.attacks.plan import AttackPlan
from engine.comparison.plan import plan_of as comparison_plan
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.data.sources import list_datasets
from engine.errors import ExegesisError, UsageError, unknown
from engine.experiments.base import experiment
from engine.experiments.example_jobs import is_text
from engine.experiments.options import options_of
from engine.input_kinds import kind_of_model, list_models
from engine.jobs import Job
from engine.params import Plain
from engine.registry import KINDS, all_explainers
from engine.reproduction.run import check
from engine.reproduction.smat import SmatQuery
from engine.request import DTYPES, Prompt, read_example
from engine.scaffold.plan import plan_from_json

OPEN, MODEL, DATA, EXAMPLES, METHODS = (f"library.new_{name}" for name in ("job", "model", "data", "count", "methods"))
START = ("gradient_x_input", "random")
MOST_EXAMPLES = 100_000
REFRESH_SECONDS = 1.0
MOST_SHOWN = 20
ALL_KEY, FAILURE_KEY = "library_all_jobs", "library_jobs_said"
EMPTY = (
    "No jobs yet. Open **New job** above to explain many examples in the background. A job continues while you use "
    "other pages, can be resumed after a restart of the server, and links to its result."
)
Spec = Mapping[str, Any]
PageLink = tuple[PageEntry, Query]
IN_CACHE = "The result is in the cache: the command that computed it prints it again without running the model."


def draw_job_form() -> None:
    """Draw the form of an explain job.

    It runs only while open: the list of methods needs the engine, which takes seconds to import.
    """
    section = st.expander("New job", icon=":material/add:", key=OPEN, on_change="rerun")
    if not section.open:
        return
    with section:
        with st.spinner("Starting the engine …"):
            titles = {id: method.title for kind in KINDS for id, method in all_explainers(kind).items()}
        with st.form("library.job", border=False):
            _draw_controls(titles)
            submitted = st.form_submit_button("Start job", type="primary")
        if submitted:
            _submit()


def explain_spec(model: str, data: str, count: int, methods: list[str]) -> dict[str, Any]:
    """Build the spec of an explain job from the values of the form. Errors: missing or unknown values."""
    if not methods:
        raise UsageError("methods: pick at least one.")
    if not model:
        raise unknown("model", model, _models())
    examples: list[dict[str, Plain]]
    if kind_of_model(model) == "image":  # by index, because a picture is too large for a spec
        examples = [{"dataset": data, "index": index} for index in range(len(load_images(data, limit=count)))]
    else:
        texts = [labeled.example.as_plain() for labeled in load(data, limit=count).examples]
        examples = [{name: text for name, text in example.items() if text is not None} for example in texts]
    return {"model": model, "methods": methods, "examples": examples}


def _draw_controls(titles: dict[str, str]) -> None:
    left, middle, right = st.columns([2, 2, 1], gap="medium")
    datasets = [*list_datasets("text"), *list_datasets("image")]
    labels = ModelLabels(str(st.session_state.get(DATA) or datasets[0]), {})  # of the last run: forms do not rerun
    renew_models(MODEL, labels)
    with left:
        _draw_name("Model", MODEL, _models(), labels, "A listed model, the folder of a checkpoint, or a hub ID.")
    with middle:
        _draw_name(
            "Data set", DATA, datasets, dataset_label,
            "Texts for a text model (a name, a CSV, TSV or JSONL file, or hub:owner/name); pictures for an image model "
            "(a name, a zip file, a folder, or hub:owner/name).",
        )  # fmt: skip
    st.session_state.setdefault(EXAMPLES, 30)
    right.number_input(
        "Examples", 1, MOST_EXAMPLES, key=EXAMPLES, step=1, persist_state="session",
        help="The first examples of the data set; all of them if it has fewer.",
    )  # fmt: skip
    st.session_state.setdefault(METHODS, [id for id in START if id in titles])
    st.multiselect(
        "Methods", list(titles), key=METHODS, format_func=lambda id: titles.get(id, id), persist_state="session",
        help="With default parameters. One part of the job is one method on one example.",
    )  # fmt: skip


def _models() -> list[str]:
    return [*list_models("text"), *list_models("image")]


def _draw_name(label: str, key: str, names: list[str], label_of: Callable[[str], str], help: str) -> None:
    """Draw a select box of listed names that also accepts a typed name."""
    st.session_state.setdefault(key, names[0] if names else None)
    options = list(dict.fromkeys([*names, *filter(None, [st.session_state[key]])]))
    st.selectbox(
        label, options, key=key, format_func=label_of, accept_new_options=True, help=help, persist_state="session",
    )  # fmt: skip


def _submit() -> None:
    model, data, count, methods = (st.session_state[name] for name in (MODEL, DATA, EXAMPLES, METHODS))
    try:
        with st.spinner("Reading the data set …"):
            spec = explain_spec((model or "").strip(), (data or "").strip(), int(count), list(methods))
            job = jobs.submit("explain", spec)
    except Exception as error:
        st.html(error_html(describe_error(error)))
        return
    st.toast(f"Job {job.id} was added to the list below.")


def draw_jobs() -> None:
    """Draw all jobs, the newest first; the list is refreshed every second while one is waiting or running."""
    listed = _list_jobs()
    if listed is not None:
        is_active = _are_active(listed)
        st.fragment(_follow, run_every=REFRESH_SECONDS if is_active else None)(is_active)


def _follow(is_active: bool) -> None:
    listed = _list_jobs()
    if listed is None:
        return
    if _are_active(listed) != is_active:
        st.rerun()  # the whole page, which starts or stops the refresh
    for failure in filter(None, (jobs.job_table().status, st.session_state.get(FAILURE_KEY))):
        st.html(error_html(failure))
    if not listed:
        st.info(EMPTY)
    first = listed if st.session_state.get(ALL_KEY) else listed[:MOST_SHOWN]
    for job in first:
        _draw_card(job, job_view(job, jobs.count_ahead(job)))
    if len(first) < len(listed):
        st.button(f"Show all {len(listed):,} jobs", key="library.all_jobs", on_click=_show_all)


def _list_jobs() -> list[Job] | None:
    """Return all jobs, or draw an error and return None."""
    try:
        return jobs.list_jobs()
    except ExegesisError as error:
        st.html(error_html(describe_error(error)))
        return None


def _are_active(listed: list[Job]) -> bool:
    return any(not job.is_over for job in listed)


def _draw_card(job: Job, view: JobView) -> None:
    word, color, icon = view.badge
    with st.container(border=True, key=f"job-{view.id}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(word, color=color, icon=icon)
            st.caption(f"#{view.id} · {view.when}")
        st.html(line_html("xg-title", view.title))
        st.progress(view.share, view.progress)
        if view.counts:
            st.html(line_html("xg-small", view.counts))
        for text in filter(None, (view.trouble, view.note)):
            st.html(error_html(text))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _draw_buttons(job, view)
        if view.failed:
            section = st.expander("Failed parts", key=f"job.failed.{view.id}", on_change="rerun")
            if section.open:
                section.html(failures_html(jobs.failures(view.id)))


def line_html(kind: str, text: str) -> str:
    """HTML of a line on a card; its text is escaped."""
    return f'<div class="xg"><p class="{kind}">{escape(text)}</p></div>'


def _draw_buttons(job: Job, view: JobView) -> None:
    may_stop = is_organizer()
    if view.can_cancel and may_stop:
        _draw_button("Cancel", view, jobs.cancel, STOPS)
    if view.can_resume:
        _draw_button("Resume", view, jobs.resume, FINDS)
    if job.is_over and may_stop:
        _draw_button("Remove", view, jobs.forget, "Removes the job from this list. Its results stay in the cache.")
    if job.state == "done":
        _draw_result(job)


def _draw_result(job: Job) -> None:
    link = result_link(job)
    if isinstance(link, str):
        if link:
            st.html(line_html("xg-small", link))
        return
    page, query = link
    label = f"{'First example' if job.kind == 'explain' else 'Result'} on the {page.title} page"
    st.page_link(page.path, label=label, query_params=query, icon=":material/open_in_new:")


def _draw_button(name: str, view: JobView, action: Callable[[int], object], help: str) -> None:
    st.button(name, key=f"job.{name.lower()}.{view.id}", help=help, on_click=_try, args=(action, view.id))


def _try(action: Callable[[int], object], id: int) -> None:
    st.session_state.pop(FAILURE_KEY, None)
    try:
        action(id)
    except ExegesisError as error:
        st.session_state[FAILURE_KEY] = describe_error(error)


def _show_all() -> None:
    st.session_state[ALL_KEY] = True


def result_link(job: Job) -> PageLink | str:
    """Return the page and link that show the result of a job, or a sentence on why no page does and where it is.

    The sentence is empty for a kind of job without a result of its own.
    """
    if job.kind not in LINKS:
        return ""
    try:
        return LINKS[job.kind](job.spec)
    except ExegesisError as error:
        return f"No page shows this result. {error} {IN_CACHE}"


def _explain_link(spec: Spec) -> PageLink:
    """Link to the first example."""
    _check_dtype(spec)
    example, query = spec["examples"][0], {"model": [spec["model"]], "method": list(spec["methods"])}
    for method, params in spec.get("params", {}).items():
        query |= {f"{method}.{name}": [str(value)] for name, value in params.items()}
    query |= {name: [str(spec[name])] for name in ("target", "seed") if spec.get(name) is not None}
    if not is_text(example):
        return IMAGES, query | {"data": [example["dataset"]]} | _split(example) | {"index": [str(example["index"])]}
    own = read_example(example)
    if sum(map(len, own.texts)) > LONGEST_IN_LINK:
        raise UsageError("examples: the first text is too long for a link; paste it on the Text page.")
    fields = {"text": own.text, "pair": own.text_pair}
    if isinstance(own, Prompt):
        fields |= {"target_token": own.target, "contrast": own.contrast, "chat": "on" if own.chat else None}
    return TEXT, query | {name: [text] for name, text in fields.items() if text}


def _predict_link(spec: Spec) -> PageLink:
    """Link to the list of the data set's examples."""
    _check_dtype(spec)
    query = {"model": [spec["model"]], "data": [spec["data"]], **_split(spec), "open": ["browse"]}
    return (IMAGES if kind_of_model(spec["model"]) == "image" else TEXT), query


def _plan_link(id: str, page: PageEntry, spec: Spec) -> PageLink:
    """Link for experiments whose page is generated from their plan."""
    plan = experiment(id).plan_of(spec)
    for one in options_of(experiment(id).plan).values():
        if not one.get("page", True) and (value := getattr(plan, one.name)) != one.default:
            raise UsageError(f"{one.name}: is {value}, and the page always uses {one.default}.")
    _check_dtype(spec)
    return page, plan_link(plan)


def _attack_link(spec: Spec) -> PageLink:
    plan: AttackPlan = experiment("attack").plan_of(spec)
    state = attack_state(plan, MEASURES[0])
    if plan.kind == "image":
        focus = PictureFocus(plan.models[0], plan.dataset, plan.split or "")
        state = replace(state, kind="image", focus=focus, strength=settings_as_text("image", plan.attack))
    if state.plan() != plan:
        raise UsageError("The Adversarial page does not offer these settings of the attack.")
    return ADVERSARIAL, {name: values for name, values in attack_link(state).items() if name != "digest"}


def _compare_link(spec: Spec) -> PageLink:
    plan = comparison_plan(spec)
    if plan.examples not in COMPARE_EXAMPLES:
        allowed = ", ".join(map(str, COMPARE_EXAMPLES))
        raise UsageError(f"examples: is {plan.examples}, and the page offers {allowed}.")
    model = plan.pairs[0].model
    focus: TextFocus | PictureFocus = (
        PictureFocus(model, plan.dataset, plan.split or "") if plan.kind == "image"
        else TextFocus(model, "", None, 0, plan.dataset)
    )  # fmt: skip
    state = CompareState(
        kind=plan.kind, focus=focus, columns=plan.pairs, target=plan.target, seed=plan.seed,
        view=CompareViewOptions(examples=plan.examples), open_sections=("search",),
    )  # fmt: skip
    return COMPARE, {name: values for name, values in compare_link(state).items() if name != "digest"}


def _empirical_link(spec: Spec) -> PageLink:
    """Link to the table of empirical explainers."""
    return LIBRARY, {"section": ["previews"]}


def _scaffold_link(spec: Spec) -> PageLink:
    return SCAFFOLD, scaffold_link(scaffold_state(plan_from_json(spec)))


def _reproduce_link(job: str, spec: Spec) -> PageLink:
    query = check(job, spec)
    if job == SmatQuery.job:
        state = replace(default_state(), paper=query.topic_id)
    else:
        state = ReproductionState(examples=query.count, seed=query.seed)
    if query.command() not in [one.command() for one in state.queries]:
        raise UsageError(f"The page does not cover this run: {query.command()}.")
    return REPRODUCTION, reproduction_link(state)


def _check_dtype(spec: Spec) -> None:
    if spec.get("dtype", DTYPES[0]) != DTYPES[0]:
        raise UsageError(f"dtype: is {spec['dtype']}, and pages compute in {DTYPES[0]}.")


def _split(spec: Spec) -> Query:
    return {"split": [spec["split"]]} if spec.get("split") else {}


LINKS: Mapping[str, Callable[[Spec], PageLink]] = {
    "attack": _attack_link,
    "behavior": partial(_plan_link, "behavior", BEHAVIOR),
    "compare": _compare_link,
    "concepts": partial(_plan_link, "concepts", CONCEPTS_PAGE),
    "corpus": partial(_plan_link, "corpus", WORDS),
    "empirical": _empirical_link,
    "evaluate": partial(_plan_link, "evaluate", EVALUATE),
    "explain": _explain_link,
    "predict": _predict_link,
    "randomize": partial(_plan_link, "randomize", RANDOMIZATION),
    "rules": partial(_plan_link, "rules", RULES_PAGE),
    "reproduce": partial(_reproduce_link, "reproduce"),
    "reproduce_smat": partial(_reproduce_link, "reproduce_smat"),
    "scaffold": _scaffold_link,
}
"""Functions that return the page and the link of a result, by kind of job. Errors: no page shows it."""
