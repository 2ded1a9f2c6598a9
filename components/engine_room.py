"""The engine as pages reach it. Its libraries take seconds to import, so that starts in the background, once."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.registry import Explainer, all_explainers

if TYPE_CHECKING:
    from engine.request import Request
    from engine.result import Explanation


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Starts importing what runs models; returns at once."""
    return import_engine()


def import_engine() -> threading.Thread:
    """Imports the engine in the background; who needs it waits for the rest of the import."""
    thread = threading.Thread(target=importlib.import_module, args=("engine.explain",), daemon=True)
    thread.start()
    return thread


def explainers() -> Mapping[str, Explainer]:
    """Every method for text, in the order in which people meet them."""
    warm_up().join()
    return {id: method for id, method in all_explainers().items() if "text" in method.inputs}


def engine() -> Any:
    """The module `engine.explain`, imported when there is something to compute."""
    return importlib.import_module("engine.explain")


def is_cached(request: Request) -> bool:
    """Whether the explanation can be had without computing."""
    from engine.store import result_store

    return result_store().contains(engine().key_of(request))


def explain(request: Request) -> Explanation:
    """The explanation, from the cache or computed."""
    return engine().explain(request)
