"""The models: the embedded ones as cards, and a check of any other before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from components.library.links import go_to_images, go_to_scaffold, go_to_text
from components.library_html import facts_html, looks_html, trouble_html
from components.trouble import sentence
from engine.errors import UsageError
from engine.format import size_text
from engine.models import catalog
from engine.models.sizes import stored_parameters
from engine.vision.view import read_view

CHECKED, FAILED = "library_checked_model", "library_check_failed"
NAME = "library.model_to_check"
ADAPTER = "LoRA adapter"
"""What the card of a model says that is stored as a change of another one."""


def model_cards() -> None:
    """A card each: measured accuracy, licence, size, revision, and on demand how it was made."""
    _cards("Models of texts", catalog.embedded_models(), _card)
    _cards("Models of pictures", catalog.embedded_image_models(), _card)
    _cards("Bases to fine-tune", catalog.embedded_bases(), _base_card)


def _cards(title: str, names: Sequence[str], draw: Callable[[str], None]) -> None:
    if names:
        st.header(title, anchor=False)
    for name in names:
        with st.container(border=True, key=f"model-{name.replace('/', '-')}", gap="xsmall"):
            st.subheader(name, anchor=False)
            try:
                draw(name)
            except Exception as error:
                st.html(trouble_html(sentence(error)))


def _base_card(name: str) -> None:
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name))))
    _whole_card(name)


def _card(name: str) -> None:
    pictures = catalog.is_image_model(name)
    reads = picture_facts(name) if pictures else {}
    st.html(facts_html(card_facts(catalog.card(name), catalog.revision(name), reads)))
    _whole_card(name)
    _go(name, pictures, "it")


def _go(name: str, pictures: bool, called: str) -> None:
    with st.container(horizontal=True, gap="medium"):
        if pictures:
            go_to_images(f"Look at pictures with {called}", model=name)
        else:
            go_to_text(f"Explain a text with {called}", model=name)
        go_to_scaffold(f"Train an explainer for {called}", "image" if pictures else "text", name)


def picture_facts(name: str) -> dict[str, object]:
    """What else stands on the card of a model that reads pictures."""
    return {**read_view(name).describe(), "parameters": f"{stored_parameters(name):,}"}


def card_facts(card: dict[str, Any], revision: str, reads: Mapping[str, object] | None = None) -> dict[str, object]:
    """What stands on a model's card, name and value; `reads` says what it reads, where that is not texts."""
    return {
        "use": card.get("intended_use"),
        "labels": ", ".join(card.get("labels") or []),
        **measured(card),
        "kind": card.get("kind"),
        **(reads or {}),
        "licence": card.get("licence"),
        "size": size(card),
        "revision": revision,
    }


def size(card: dict[str, Any]) -> str:
    """What the project stores of it, and the base that an adapter comes on top of."""
    if not card.get("bytes"):
        return ""
    base = (card.get("base") or {}).get("name")
    return size_text(card["bytes"]) + (f", on top of {base}" if base and card.get("kind") == ADAPTER else "")


def measured(card: dict[str, Any]) -> dict[str, str]:
    """The scores of the splits that no choice was made on; others only where there is nothing else."""
    metric = card.get("metric") or "score"
    return {
        f"{metric}, {split}": f"{score['value']:.3f} on {score['count']:,} examples"
        for split, score in catalog.fair_scores(card).items()
    }


def model_check() -> None:
    """Loads a model, runs one sentence and says what it is, or in one sentence why it cannot be used."""
    st.subheader("Check a model", anchor=False)
    with st.form("library.check", border=False):
        st.text_input(
            "Folder or hub id", key=NAME, placeholder="path/to/checkpoint, or owner/name", persist_state="session",
            help="safetensors only; a checkpoint that asks to run code of its own is refused.",
        )  # fmt: skip
        asked = st.form_submit_button("Check")
    if asked:
        _check((st.session_state[NAME] or "").strip())
    if FAILED in st.session_state:
        st.html(trouble_html(st.session_state[FAILED]))
    if CHECKED in st.session_state:
        _found(st.session_state[CHECKED])


def _check(name: str) -> None:
    for kept in (CHECKED, FAILED):
        st.session_state.pop(kept, None)
    try:
        if not name:
            raise UsageError("model: type the folder of a checkpoint, or a hub id such as owner/name.")
        with st.spinner("Loading the model …"):
            # Whether there is such a model is known at once; only then is it worth loading the libraries.
            catalog.locate(name)
            from engine.models.inspection import inspect_model

            st.session_state[CHECKED] = inspect_model(name)
    except Exception as error:
        st.session_state[FAILED] = sentence(error)


def _found(found: dict[str, Any]) -> None:
    with st.container(border=True, key="checked-model", gap="xsmall"):
        st.html(looks_html([("ok" if c["ok"] else "broken", c["name"], c["detail"], "") for c in found["checks"]]))
        st.html(facts_html(found_facts(found)))
        _go(found["name"], "picture" in found, "this model")


def found_facts(found: dict[str, Any]) -> dict[str, object]:
    """What was found in a model that was loaded; one of pictures has a grid in place of a longest input."""
    plain = {name: found.get(name) for name in ("name", "family", "task", "folder", "base", "revision")}
    numbers = {name: f"{found[name]:,}" for name in ("parameters", "blocks")}
    reads = {name: found.get(name) for name in ("picture", "patches")}
    longest = {"longest input": f"{found['longest_input']:,} tokens"} if "longest_input" in found else {}
    return {**plain, "labels": ", ".join(map(str, found["labels"])), **numbers, **reads, **longest}


def _whole_card(name: str) -> None:
    file = catalog.locate(name).folder / "card.md"
    if file.is_file():
        st.expander("The whole card").markdown(without_title(file.read_text(encoding="utf-8")), anchors=False)


def without_title(card: str) -> str:
    """The card's Markdown below its first heading, which stands above it already."""
    first, _, rest = card.partition("\n")
    return rest.strip() if first.startswith("# ") else card
