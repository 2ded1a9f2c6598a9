"""Buttons and links from a card or a job of the Library to the page that shows what it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from components.frame import IMAGES, SCAFFOLD, TEXT, PageEntry
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.link import LONGEST_IN_LINK
from components.scaffold.state import opening_state, train_link
from engine.jobs import Job

Link = list[tuple[str, str]]


def draw_text_button(label: str, **names: str) -> None:
    """Draw a button that opens the Text page with another model or data set."""
    _draw_button(label, TEXT, text_choice.turn_to, names)


def draw_images_button(label: str, **names: str) -> None:
    """Draw a button that opens the Images page with another model or picture set."""
    _draw_button(label, IMAGES, picture_focus_controls.turn_to, names)


def draw_scaffold_button(label: str, kind: str, model: str) -> None:
    """Draw a button that opens the Scaffold page filled to train an explainer for a model that reads this kind."""
    if st.button(label, key=f"train-for-{model}", icon=":material/school:", type="tertiary"):
        st.switch_page(SCAFFOLD.path, query_params=train_link(kind, model, opening_state(kind).data))


def example_link(job: Job) -> tuple[PageEntry, Link] | None:
    """The page that shows the first example of an explain job, and the link to it; None where there is no such link."""
    if job.kind != "explain":
        return None
    example = job.spec["examples"][0]
    page, place = (TEXT, _text(example)) if "text" in example else (IMAGES, _picture(example))
    if not place:
        return None
    return page, [("model", job.spec["model"]), *(("method", method) for method in job.spec["methods"]), *place]


def _text(example: Mapping[str, str | None]) -> Link:
    """Empty where it would be too long."""
    pair = (("text", example["text"]), ("pair", example.get("text_pair")))
    texts = [(name, text) for name, text in pair if text]
    return texts if sum(len(text) for _, text in texts) <= LONGEST_IN_LINK else []


def _picture(example: Mapping[str, Any]) -> Link:
    split = [("split", example["split"])] if example.get("split") else []
    return [("data", example["dataset"]), *split, ("index", str(example["index"]))]


def _draw_button(label: str, page: PageEntry, turn_to: Callable[..., None], names: Mapping[str, str]) -> None:
    place = "-".join([page.url_path, *names.values()])
    if st.button(label, key=f"turn-to-{place}", icon=":material/arrow_forward:", type="tertiary"):
        turn_to(**names)
        st.switch_page(page.path)
