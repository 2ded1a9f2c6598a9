"""The models: the embedded ones as cards, and a check of any other before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from components.library.links import draw_images_button, draw_scaffold_button, draw_text_button
from components.library_html import facts_html, looks_html, trouble_html
from components.trouble import sentence
from engine.errors import UsageError
from engine.format import size_text
from engine.models import catalog
from engine.models.sizes import stored_parameters
from engine.vision.view import read_view

INSPECTION_KEY, FAILURE_KEY = "library_checked_model", "library_check_failed"
NAME_KEY = "library.model_to_check"
ADAPTER = "LoRA adapter"
"""The kind on the card of a model that is stored as a change of another one."""


def draw_models() -> None:
    """Draw a card each: measured accuracy, license, size, revision, and on demand how it was made."""
    _draw_cards("Models of texts", catalog.embedded_models(), _draw_card)
    _draw_cards("Models of pictures", catalog.embedded_image_models(), _draw_card)
    _draw_cards("Bases to fine-tune", catalog.embedded_bases(), _draw_base_card)


def _draw_cards(title: str, names: Sequence[str], draw: Callable[[str], None]) -> None:
    if names:
        st.header(title, anchor=False)
    for name in names:
        with st.container(border=True, key=f"model-{name.replace('/', '-')}", gap="xsmall"):
            st.subheader(name, anchor=False)
            try:
                draw(name)
            except Exception as error:
                st.html(trouble_html(sentence(error)))


def _draw_base_card(name: str) -> None:
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name))))
    _draw_whole_card(name)


def _draw_card(name: str) -> None:
    is_image = catalog.is_image_model(name)
    view = view_facts(name) if is_image else {}
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name), view)))
    _draw_whole_card(name)
    _draw_page_buttons(name, is_image, "it")


def _draw_page_buttons(name: str, is_image: bool, pronoun: str) -> None:
    with st.container(horizontal=True, gap="medium"):
        if is_image:
            draw_images_button(f"Look at pictures with {pronoun}", model=name)
        else:
            draw_text_button(f"Explain a text with {pronoun}", model=name)
        draw_scaffold_button(f"Train an explainer for {pronoun}", "image" if is_image else "text", name)


def view_facts(name: str) -> dict[str, object]:
    """The further facts on the card of a model that reads pictures."""
    return {**read_view(name).describe(), "parameters": f"{stored_parameters(name):,}"}


def card_facts(card: dict[str, Any], revision: str, view: Mapping[str, object] | None = None) -> dict[str, object]:
    """The facts on a model's card, name and value; `view` says what it reads, where that is not texts."""
    return {
        "use": card.get("intended_use"),
        "labels": ", ".join(card.get("labels") or []),
        **measured_scores(card),
        "kind": card.get("kind"),
        **(view or {}),
        "licence": card.get("licence"),
        "size": _size(card),
        "revision": revision,
    }


def _size(card: dict[str, Any]) -> str:
    """The bytes that the project stores of it, and the base that an adapter comes on top of."""
    if not card.get("bytes"):
        return ""
    base = (card.get("base") or {}).get("name")
    return size_text(card["bytes"]) + (f", on top of {base}" if base and card.get("kind") == ADAPTER else "")


def measured_scores(card: dict[str, Any]) -> dict[str, str]:
    """The scores of the splits that no choice was made on; others only where there is nothing else."""
    metric = card.get("metric") or "score"
    return {
        f"{metric}, {split}": f"{score['value']:.3f} on {score['count']:,} examples"
        for split, score in catalog.fair_scores(card).items()
    }


def draw_model_check() -> None:
    """Draw the form that loads a model, runs one sentence and says what it is, or why it cannot be used."""
    st.subheader("Check a model", anchor=False)
    with st.form("library.check", border=False):
        st.text_input(
            "Folder or hub id", key=NAME_KEY, placeholder="path/to/checkpoint, or owner/name", persist_state="session",
            help="safetensors only; a checkpoint that asks to run code of its own is refused.",
        )  # fmt: skip
        submitted = st.form_submit_button("Check")
    if submitted:
        _check((st.session_state[NAME_KEY] or "").strip())
    if FAILURE_KEY in st.session_state:
        st.html(trouble_html(st.session_state[FAILURE_KEY]))
    if INSPECTION_KEY in st.session_state:
        _draw_inspection(st.session_state[INSPECTION_KEY])


def _check(name: str) -> None:
    for key in (INSPECTION_KEY, FAILURE_KEY):
        st.session_state.pop(key, None)
    try:
        if not name:
            raise UsageError("model: type the folder of a checkpoint, or a hub id such as owner/name.")
        with st.spinner("Loading the model …"):
            # Whether there is such a model is known at once; only then is it worth loading the libraries.
            catalog.locate(name)
            from engine.models.inspection import inspect_model

            st.session_state[INSPECTION_KEY] = inspect_model(name)
    except Exception as error:
        st.session_state[FAILURE_KEY] = sentence(error)


def _draw_inspection(inspection: dict[str, Any]) -> None:
    with st.container(border=True, key="checked-model", gap="xsmall"):
        st.html(looks_html([("ok" if c["ok"] else "broken", c["name"], c["detail"], "") for c in inspection["checks"]]))
        st.html(facts_html(inspection_facts(inspection)))
        _draw_page_buttons(inspection["name"], "picture" in inspection, "this model")


def inspection_facts(inspection: dict[str, Any]) -> dict[str, object]:
    """The facts of a model that was loaded; one of pictures has a grid in place of a longest input."""
    names = ("name", "family", "task", "folder", "base", "revision")
    facts: dict[str, object] = {name: inspection.get(name) for name in names}
    facts["labels"] = ", ".join(map(str, inspection["labels"]))
    facts |= {name: f"{inspection[name]:,}" for name in ("parameters", "blocks")}
    facts |= {name: inspection.get(name) for name in ("picture", "patches")}
    if "longest_input" in inspection:
        facts["longest input"] = f"{inspection['longest_input']:,} tokens"
    return facts


def _draw_whole_card(name: str) -> None:
    file = catalog.locate(name).folder / "card.md"
    if file.is_file():
        st.expander("The whole card").markdown(without_title(file.read_text(encoding="utf-8")), anchors=False)


def without_title(card: str) -> str:
    """The card's Markdown below its first heading, which stands above it already."""
    first, _, rest = card.partition("\n")
    return rest.strip() if first.startswith("# ") else card
