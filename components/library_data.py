"""The data sets: a card each."""

from __future__ import annotations

from dataclasses import asdict

import streamlit as st

from components.focus_controls import go_to_text
from components.library_html import facts_html, trouble_html
from components.trouble import sentence
from engine.data.cards import Card
from engine.data.datasets import dataset_card, dataset_names

FIRST = ("size", "licence", "intended_use", "limits")


def data_cards() -> None:
    """What each data set is good for; where it comes from and how it was made on demand."""
    for name in dataset_names():
        with st.container(border=True, key=f"data-{name}", gap="xsmall"):
            try:
                _card(name, dataset_card(name))
            except Exception as error:
                st.html(trouble_html(sentence(error)))
    st.caption(
        "A file of your own works wherever a data set is asked for: JSONL with `text`, `text_pair`, `label` and "
        "`rationale`, or CSV and TSV. So does `hub:owner/name`."
    )


def _card(name: str, card: Card) -> None:
    st.subheader(f"{card.title} · `{name}`", anchor=False)
    first, rest = told(card)
    st.html(facts_html(first))
    st.expander("Source, making, command").html(facts_html(rest))
    go_to_text("Explain its texts", data=name)


def told(card: Card) -> tuple[dict[str, object], dict[str, object]]:
    """The facts that people ask first, and the others."""
    facts = {name.replace("_", " "): value.replace("`", "") for name, value in asdict(card).items() if name != "title"}
    first = {name: facts.pop(name) for name in (key.replace("_", " ") for key in FIRST)}
    return first, facts
