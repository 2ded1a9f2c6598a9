"""The data sets: a card each, with the first pictures of those that hold pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.browse.thumbnails import first_thumbnails, thumbnails_html, use_thumbnails
from components.library.links import draw_images_button, draw_text_button
from components.library_html import facts_html, note_html, trouble_html
from components.trouble import sentence
from engine.data.datasets import dataset_card, dataset_names
from engine.data.image_datasets import image_card, image_names, load_images
from engine.data.registry import DatasetCard

PICTURES = 10
"""How many of a set are shown; generated sets and folders begin with one of each class."""
FIRST = ("size", "licence", "intended_use", "limits")


def draw_datasets() -> None:
    """Draw what each data set is good for; where it comes from and how it was made on demand."""
    use_thumbnails()
    st.header("Sets of texts", anchor=False)
    for name in dataset_names():
        with _bordered(name):
            _draw_card(name, dataset_card(name))
            draw_text_button("Explain its texts", data=name)
    st.caption(
        "A file of your own works wherever a data set is asked for: JSONL with `text`, `text_pair`, `label` and "
        "`rationale`, or CSV and TSV. So does `hub:owner/name`."
    )
    st.header("Sets of pictures", anchor=False)
    rows = {name: _draw_image_dataset(name) for name in image_names()}
    st.caption(
        "Pictures of your own work too: a folder or a zip with a folder a class, masks or boxes beside them where the "
        "truth is known; a `.npz` of pictures; or `hub:owner/name`."
    )
    # The pictures come last: some sets take a second or two to open for the first time.
    for name, row in rows.items():
        row.html(_first_pictures_html(name))


def _draw_image_dataset(name: str) -> DeltaGenerator:
    """Draw the card of a picture set; return the place of its pictures."""
    row = st.empty()
    with _bordered(name):
        row = _draw_card(name, image_card(name))
        draw_images_button("Look at its pictures", data=name)
    return row


@contextlib.contextmanager
def _bordered(name: str) -> Iterator[None]:
    with st.container(border=True, key=f"data-{name}", gap="xsmall"):
        try:
            yield
        except Exception as error:
            st.html(trouble_html(sentence(error)))


def _draw_card(name: str, card: DatasetCard) -> DeltaGenerator:
    """Draw title and facts; return the place between them."""
    st.subheader(f"{card.title} · `{name}`", anchor=False)
    between = st.empty()
    first, rest = split_facts(card)
    st.html(facts_html(first))
    st.expander("Source, making, command").html(facts_html(rest))
    return between


def _first_pictures_html(name: str) -> str:
    try:
        return _thumbnails(name)
    except Exception as error:
        return note_html(sentence(error))


@st.cache_data(show_spinner=False)
def _thumbnails(name: str) -> str:
    return thumbnails_html(first_thumbnails(load_images(name, limit=PICTURES)))


def split_facts(card: DatasetCard) -> tuple[dict[str, object], dict[str, object]]:
    """The facts that people look for first, and the others."""
    facts = {name.replace("_", " "): value.replace("`", "") for name, value in asdict(card).items() if name != "title"}
    first = {name: facts.pop(name) for name in (key.replace("_", " ") for key in FIRST)}
    return first, facts
