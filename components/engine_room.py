"""The engine as pages reach it.

What runs models takes seconds to import. What shows results (the list of methods, cached and shipped explanations)
needs none of it, and is drawn in half the time while nothing is imported beside it. So the import starts in the
background once a page is drawn, and at once when there is something to compute.
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
    """For the end of a page: starts importing what runs models; returns at once."""
    return import_engine()


def import_engine(after: int | float = 0) -> threading.Thread:
    """Imports what runs models in the background, in `after` seconds; who computes before does not wait for that."""
    timer = threading.Timer(after, importlib.import_module, args=("engine.models.load",))
    timer.daemon = True
    timer.start()
    return timer


def explainers() -> Mapping[str, Explainer]:
    """Every method for text, in the order in which people meet them."""
    return {id: method for id, method in all_explainers().items() if "text" in method.inputs}


def is_cached(request: Request) -> bool:
    """Whether the explanation can be had without computing."""
    return result_store().contains(engine_explain.key_of(request))


def explain(request: Request) -> Explanation:
    """The explanation, from the cache or computed."""
    return engine_explain.explain(request)
