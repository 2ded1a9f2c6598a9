"""The popover of rare controls on the pages that explain one input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.method_picker import all_methods
from components.state import PageSession
from engine.registry import Explainer


@contextmanager
def options_popover(
    page: PageSession, methods: Mapping[str, Explainer], usual: Sequence[str]
) -> Iterator[DeltaGenerator]:
    """Draw the button "Options". The block draws the rare controls into its popover, below those of every page.

    Yields the place of the choice of the explained class, which is drawn once the model has predicted. `usual`: the
    methods of the preset "Default".
    """
    popover, model = page.key("options"), str(page.selection.value("model") or "")
    # The list of all methods is a dialog, which an open popover would cover.
    close = partial(st.session_state.__setitem__, popover, False)
    with st.popover("Options", key=popover, on_change="rerun"):
        all_methods(methods, usual, page.widgets, [model], on_open=close)
        yield st.container()
