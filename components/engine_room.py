"""The engine as pages reach it.

What runs models takes seconds to import. What shows results (the list of methods, cached and shipped explanations)
needs none of it, and is drawn in half the time while nothing is imported beside it. So the import starts in the
background once a page is drawn, and at once when there is something to compute.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.computing import Tick, shared
from components.stopping import refuse_stopped
from engine import explain as engine_explain
from engine import malloc, runtime
from engine.progress import CancelToken
from engine.registry import Explainer, all_explainers
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store

T = TypeVar("T")


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """For the end of a page: starts importing what runs models; returns at once."""
    return import_engine()


def import_engine(after: int | float = 0) -> threading.Thread:
    """Imports what runs models in the background, in `after` seconds; who computes before does not wait for that."""
    timer = threading.Timer(after, _import)
    timer.daemon = True
    timer.start()
    return timer


def _import() -> None:
    """In the device's turn, as all computing is: two threads that import at once see modules that are half there."""
    with runtime.turn():
        importlib.import_module("engine.vision.loader")
        malloc.freeze_garbage()


def explainers(kind: str = "text") -> Mapping[str, Explainer]:
    """Every method for inputs of that kind, in the order in which people meet them."""
    return all_explainers(kind)


def key_of(request: Request) -> str:
    """The request's cache key."""
    return engine_explain.key_of(request)


def is_cached(request: Request) -> bool:
    """Whether the explanation can be had without computing."""
    return result_store().contains(key_of(request))


def explain(request: Request, tick: Tick | None = None) -> Explanation:
    """The explanation, from the cache or computed; `Cancelled` if the person stopped it.

    `tick` is told how far the computation is and draws that: a page that nobody sees any more ends there.
    """
    return computed(key_of(request), lambda token: _compute(request, token), tick)


def computed(key: str, compute: Callable[[CancelToken], T], tick: Tick | None = None) -> T:
    """What `compute` makes of its token, at once if the cache has that key; otherwise as `explain` does it."""
    if result_store().contains(key):
        return compute(CancelToken())
    refuse_stopped(key)
    if tick is not None:
        return shared(key, compute, tick)
    place = st.empty()
    try:
        return shared(key, compute, lambda words: _say(place, words))
    finally:
        place.empty()


def _compute(request: Request, token: CancelToken) -> Explanation:
    return engine_explain.explain_many([request], cancel=token)[0]


def _say(place: DeltaGenerator, words: str) -> None:
    place.caption(f"Computing: {words}")
