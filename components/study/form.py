"""The form of a study's design.

A method may occur several times with different parameters: its variants are named by its id, "#" and a number, and have
separate parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import tzinfo

import streamlit as st

from components.ballot_maps import scale_html, use_ballot_styles
from components.controls import current_parameters, has_parameters, reset_parameters
from components.errors import show_note
from components.inputs.imported_maps import methods_for_dataset
from components.method_picker import all_methods, chosen_methods
from components.navigation import visit_number
from components.safe_markdown import markdown
from components.study.descriptions import COLOR_WORDS
from components.study.fields import (
    NARROW,
    Fields,
    design_from_fields,
    draw_choice,
    draw_line,
    draw_name,
    draw_number,
    draw_text,
    field_key,
    field_names,
    field_row,
    field_value,
    fields_from_design,
    set_field,
)
from components.study.items import draw_items
from components.styles import use_sheet
from engine.data.sources import list_datasets
from engine.input_kinds import list_models
from engine.params import as_plain, from_mapping
from engine.registry import KINDS, Explainer, all_explainers
from engine.study.design import (
    BY_RANK,
    BY_SIGN,
    BY_SIZE,
    COUNTERFACTUAL,
    DECIDE,
    DEFAULT_TEXTS,
    FIELD_LABELS,
    MAX_METHODS,
    PREDICT,
    RANK,
    STAND_IN,
    Design,
    MethodChoice,
    consent_placeholders,
    smat_methods,
)

FILLED_KEY, DRAWN_KEY = "study_form_filled", "study_form_drawn"
"""Session keys: the source from which the controls were filled; source and visit of the last completely drawn form."""
CURTAIN = (
    "<style>.st-key-study_form { visibility: hidden; }</style>"
    '<div class="xg"><p class="xg-small" role="status">Loading the form …</p></div>'
)
MODES = {
    RANK: "Rank explanations",
    PREDICT: "Guess the prediction",
    COUNTERFACTUAL: "Guess after an edit",
    DECIDE: "Decide what is correct",
}
KIND_WORDS = {"text": "Texts", "image": "Images"}
MODEL_HELP = "Choose a listed model, or type the path of a checkpoint or a Hugging Face Hub ID."
DATA_HELP = "Choose a listed data set, or type the path of a file or folder, or hub:owner/name."
QUESTION_HELP = "Shown above every item."
MARKDOWN_HELP = "Supports Markdown: headings, lists, emphasis and links. HTML and images are removed."
PLACEBO_HELP = "The placebo of the study. A method that is not rated above it may be no better than chance."
LEARNED = "smat"
VARIANT_WIDTH = 280
"""Width of the select box for a variant, in pixels."""
NOT_LEARNED = (
    "This model has no learned explainer (SMaT). It is replaced by attention logits of all layers, its starting point. "
    "Train one on the Scaffold page."
)
AGAIN = "#"
AGAIN_HELP = "Adds another explanation to every ballot. Set its parameters under “All methods and parameters”."
COLOR_COSTS = {
    BY_RANK: "All explanations use the same set of colors, so the random one cannot be recognized by them. Neither "
    "sizes nor signs of scores are visible.",
    BY_SIZE: "Some methods color few parts strongly, others many weakly. Participants may therefore recognize the "
    "random explanation more often than by chance. Signs of scores are not visible.",
    BY_SIGN: "Methods without negative scores look different. Participants may therefore recognize the random "
    "explanation more often than by chance.",
}
"""The drawback of each rule; `python -m benchmarks study_placebo` measures how often the random one is recognized."""

Methods = Mapping[str, Explainer]


def fill_form(source: str, design: Design, zone: tzinfo) -> None:
    """Fill the controls from the design, unless they were filled from the same `source` already."""
    if st.session_state.get(FILLED_KEY) == source and field_key("title") in st.session_state:
        return
    for name, value in fields_from_design(design, zone).items():
        set_field(name, value)
    for kind in KINDS:
        _fill_kind(kind, design if design.kind == kind else Design(kind=kind))
    st.session_state[FILLED_KEY] = source


def _fill_kind(kind: str, design: Design) -> None:
    """Fill model, data set and methods; by default the data set that the model is named after, else the first."""
    model = design.model or next(iter(list_models(kind)), None)
    datasets = list_datasets(kind)
    usual = next((name for name in datasets if (model or "").startswith(name)), next(iter(datasets), None))
    set_field(f"{kind}.model", model)
    set_field(f"{kind}.dataset", design.dataset or usual)
    methods = all_explainers(kind)
    for method in methods.values():
        reset_parameters(method, field_key(f"{kind}."))
    choices = {name: choice for name, choice in entry_names(design.methods) if choice.id in methods}
    set_field(f"{kind}.methods", list(choices))
    for name, choice in choices.items():
        params = as_plain(from_mapping(methods[choice.id].params, choice.params, choice.id))
        for parameter, value in params.items():
            set_field(f"{kind}.{name}.{parameter}", value)


def read_design(zone: tzinfo) -> Design:
    """Read the design from the controls, not checked as a whole. Errors: a value that is not allowed."""
    kind = field_value("kind")
    fields: Fields = {name: field_value(name) for name in field_names()}
    model, dataset = ((field_value(f"{kind}.{name}") or "").strip() for name in ("model", "dataset"))
    entries, prefix = _entries(kind), field_key(f"{kind}.")
    methods = [
        {"id": method_id(name), "params": current_parameters(entries[name], prefix)}
        for name in field_value(f"{kind}.methods")
    ]
    return design_from_fields(fields, model, dataset, methods, zone)


def draw_form() -> None:
    """Draw the controls; they appear together once all are drawn and their code has loaded (`pages.css`).

    At each change the browser sends the values of the controls that it knows, and Streamlit resets the others: a value
    typed into one of these in the meantime would be lost.
    """
    use_sheet("study_form")
    curtain, now = st.empty(), (st.session_state[FILLED_KEY], visit_number())
    if st.session_state.get(DRAWN_KEY) != now:
        curtain.html(CURTAIN)
    try:
        with st.container(key="study_form"):
            for draw in (_draw_subject, draw_items, _draw_explanations, _draw_people, _draw_texts, _draw_rules):
                with st.container(border=True):
                    draw()
    except Exception:  # not if another request ends this run: the next one draws the rest
        curtain.empty()
        raise
    # In this order: a run that ends in between must not hide the form again while somebody types into it.
    st.session_state[DRAWN_KEY] = now
    curtain.empty()


def forget_form() -> None:
    """Note that the browser no longer has the controls, so that they appear together again."""
    st.session_state.pop(DRAWN_KEY, None)


def _draw_subject() -> None:
    st.subheader("Task", anchor=False)
    draw_line("title", "Participants see it at the top of the first page.")
    with st.container(horizontal=True, gap="medium"):
        draw_choice("mode", MODES, _change_texts)
        draw_choice("kind", KIND_WORDS)
    draw_line("question", QUESTION_HELP)
    kind = field_value("kind")
    left, right = st.columns(2, gap="medium")
    with left:
        draw_name(kind, "model", list_models(kind), MODEL_HELP)
    with right:
        draw_name(kind, "dataset", list_datasets(kind), DATA_HELP)


def _change_texts() -> None:
    """Replace unchanged default texts by those of the new mode."""
    for name, usual in DEFAULT_TEXTS.items():
        if field_value(name) in usual.values():
            set_field(name, usual[field_value("mode")])


def _draw_explanations() -> None:
    st.subheader("Explanations", anchor=False)
    kind = field_value("kind")
    model = (field_value(f"{kind}.model") or "").strip()
    _substitute_learned(kind, model)
    dataset, chosen = (field_value(f"{kind}.{name}") for name in ("dataset", "methods"))
    split, prefix = field_value("items.split").strip() or None, field_key(f"{kind}.")
    entries = methods_for_dataset(_entries(kind), chosen, (dataset or "").strip(), split)
    usual = [id for id in smat_methods(model, kind) if id in entries]
    chosen_methods(entries, prefix, placeholder="Choose 2 to 6 methods")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        all_methods(entries, usual, prefix, [model])
        _draw_variant_picker(kind, entries)
    st.toggle(FIELD_LABELS["placebo"], key=field_key("placebo"), help=PLACEBO_HELP, persist_state="page")
    draw_choice("colors", COLOR_WORDS)
    st.caption(COLOR_COSTS[field_value("colors")])
    st.caption("Choose 2 to 6 methods. Participants never see method names.")


def _substitute_learned(kind: str, model: str) -> None:
    """Replace a learned explainer that the model does not have by the method that it starts from."""
    chosen = field_value(f"{kind}.methods")
    others = [name for name in chosen if method_id(name) != LEARNED]
    if len(others) < len(chosen) and model and LEARNED not in smat_methods(model, kind):
        set_field(f"{kind}.methods", others if STAND_IN in others else [*others, STAND_IN])
        show_note(NOT_LEARNED)


def _draw_variant_picker(kind: str, entries: Methods) -> None:
    """Draw the control that adds a variant of a method."""
    chosen = [
        name for name in field_value(f"{kind}.methods") if method_id(name) == name and has_parameters(entries[name])
    ]
    st.selectbox(
        "Add a second variant of a method", chosen, None, key=field_key(f"{kind}.again"),
        format_func=lambda name: entries[name].title, placeholder="Choose a method", help=AGAIN_HELP,
        width=VARIANT_WIDTH, on_change=_add_variant, args=(kind,),
    )  # fmt: skip


def _add_variant(kind: str) -> None:
    """Add a variant under the first free name, with default parameters."""
    id, chosen = field_value(f"{kind}.again"), field_value(f"{kind}.methods")
    set_field(f"{kind}.again", None)
    if id is None:
        return
    name = next(name for name in (f"{id}{AGAIN}{time}" for time in range(2, MAX_METHODS + 2)) if name not in chosen)
    reset_parameters(_titled(all_explainers(kind)[id], name), field_key(f"{kind}."))
    set_field(f"{kind}.methods", [*chosen, name])


def _entries(kind: str) -> dict[str, Explainer]:
    return with_repeats(all_explainers(kind), field_value(f"{kind}.methods"))


def entry_names(choices: Sequence[MethodChoice]) -> list[tuple[str, MethodChoice]]:
    """Pair each choice with its name in the form: its id, with a number from the second occurrence on."""
    ids = [choice.id for choice in choices]
    times = [ids[: place + 1].count(id) for place, id in enumerate(ids)]
    names = [id if time == 1 else f"{id}{AGAIN}{time}" for id, time in zip(ids, times, strict=True)]
    return list(zip(names, choices, strict=True))


def method_id(name: str) -> str:
    """Return the id of the method with this name in the form."""
    return name.partition(AGAIN)[0]


def with_repeats(methods: Methods, entered: Sequence[str]) -> dict[str, Explainer]:
    """Return the methods, each followed by its variants, whose titles are numbered."""
    entries: dict[str, Explainer] = {}
    for id, method in methods.items():
        repeats = sorted({name for name in entered if method_id(name) == id} - {id})
        entries |= {id: method, **{name: _titled(method, name) for name in repeats}}
    return entries


def _titled(method: Explainer, name: str) -> Explainer:
    number = name.partition(AGAIN)[2]
    return dataclasses.replace(method, id=name, title=f"{method.title} ({number})")


def _draw_people() -> None:
    st.subheader("Participants", anchor=False)
    with field_row():
        draw_number("items_per_annotator")
        draw_number("repeats")
        draw_number("votes_per_item")
    st.datetime_input(
        FIELD_LABELS["closes_at"], None, key=field_key("closes_at"), width=2 * NARROW, format="YYYY-MM-DD",
        persist_state="page", help="In your browser's time zone. If empty, the study stays open until you close it.",
    )  # fmt: skip


def _draw_texts() -> None:
    st.subheader("Texts for participants", anchor=False)
    use_ballot_styles()
    for name in ("consent", "instructions"):
        left, right = st.columns(2, gap="medium")
        with left:
            draw_text(name, MARKDOWN_HELP, 220)
        with right:
            st.caption("Preview")
            with st.container(border=True):
                markdown(field_value(name))
                if name == "instructions":
                    st.html(scale_html(None, field_value("colors")))
    if unfilled := consent_placeholders(field_value("consent")):
        show_note(f"Replace these placeholders before you open the study: {', '.join(unfilled)}.")


def _draw_rules() -> None:
    st.subheader("Exclusion rules", anchor=False)
    st.caption(
        "These rules exclude votes from the results. They are fixed when the study opens and reported with the "
        "results. 0 or empty: no rule."
    )
    with field_row():
        draw_number("exclusion.least_seconds")
        draw_number("exclusion.least_votes")
        draw_number("exclusion.most_cannot_tell", 0.05)
        if field_value("mode") == RANK or field_value("exclusion.least_consistency") is not None:  # guesses have none
            draw_number("exclusion.least_consistency", 0.05)
