"""The engine as pages reach it. What runs models takes seconds to import: that starts in the background, once.

What shows results (the list of methods, cached and shipped explanations) needs none of it and never waits for it.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping

import streamlit as st

from engine import explain as engine_explain
from engine.registry import Explainer, all_explainers
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Starts importing what runs models; returns at once."""
    return import_engine()


def import_engine() -> threading.Thread:
    """Imports what runs models in the background; who computes waits for the rest of the import."""
    thread = threading.Thread(target=importlib.import_module, args=("engine.models.load",), daemon=True)
    thread.start()
    return thread


def explainers() -> Mapping[str, Explainer]:
    """Every method for text, in the order in which people meet them."""
    return {id: method for id, method in all_explainers().items() if "text" in method.inputs}


def is_cached(request: Request) -> bool:
    """Whether the explanation can be had without computing."""
    return result_store().contains(engine_explain.key_of(request))


def explain(request: Request) -> Explanation:
    """The explanation, from the cache or computed."""
    return engine_explain.explain(request)
