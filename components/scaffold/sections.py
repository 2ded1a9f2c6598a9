"""What stands below the tables of the Scaffold page: a look into the learned explainer, one section at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from components.scaffold.heads import heads_area
from components.scaffold.look import SECTIONS
from components.scaffold.maps import maps_area
from components.scaffold.normalisations import normalisations_area
from components.scaffold.pick import switch
from components.scaffold.plausible import plausible_area
from components.scaffold.protocols import protocols_area
from components.trouble import say_error, sentence
from engine.errors import ExegesisError
from engine.scaffold.result import Scaffold

DRAWN: Mapping[str, Callable[[Scaffold, int], None]] = {
    "heads": heads_area,
    "maps": maps_area,
    "plausibility": plausible_area,
    "protocols": protocols_area,
    "normalisations": normalisations_area,
}


def sections_area(found: Scaffold, train_size: int) -> None:
    """A switch, and the section that it names, of the explainer learned at this train size."""
    st.subheader("The learned explainer", anchor=False)
    chosen = switch(found.plan.kind, "Look at", "section", SECTIONS)
    try:
        DRAWN[chosen](found, train_size)
    except ExegesisError as error:
        say_error(sentence(error))
