"""Computation of explanations for pages: from the cache, or in a thread that sessions share.

A computation runs once for all sessions that wait for it, and ends when nobody waits any more. A request that a person
stopped stays stopped in their session.

The libraries that run models take seconds to import. Pages that only show results (the list of methods, cached and
shipped explanations) do not need them, and are drawn in half the time if nothing is imported meanwhile. Therefore
`components.server.import_pages` imports only those that fit into the second in which the first browser loads. The
others are imported in the background once a page is drawn, or immediately if there is something to compute. The
libraries that draw charts and tables come last.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import explain as engine_explain
from engine import runtime
from engine.errors import Cancelled
from engine.explain import key_of
from engine.lazy import paused_collection
from engine.progress import CancelToken, reporting
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store

T = TypeVar("T")
Tick = Callable[[str], None]
"""A progress callback that takes a description. An exception in it ends the wait of its caller, not the shared work."""

GRACE_SECONDS = 3.0
"""Time after which a computation that nobody waits for ends. A page that is redrawn rejoins it earlier."""
POLL_SECONDS = 0.2
MODELS, CHARTS = ("engine.models.loading", "peft"), ("pandas", "altair")
"""Modules that run models, and modules that draw charts and tables."""
STOPPED = "stopped_requests"
"""Session key: cache keys of requests that the person stopped."""
_lock = threading.Lock()
_running: dict[str, Computation[Any]] = {}


class WatchedToken(CancelToken):
    """A token that cancels itself permanently after `GRACE_SECONDS` without a watcher."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._watchers, self._left = 0, time.monotonic()

    @property
    def cancelled(self) -> bool:
        with self._lock:
            if not self._watchers and time.monotonic() - self._left > GRACE_SECONDS:
                self.cancel()
            return super().cancelled

    def join(self) -> bool:
        """Add a watcher unless the token is cancelled, and return whether one was added. `leave` removes it."""
        with self._lock:
            joined = not super().cancelled
            self._watchers += joined
            return joined

    def leave(self) -> None:
        with self._lock:
            self._watchers, self._left = self._watchers - 1, time.monotonic()


class Computation(Generic[T]):
    """A computation in a thread, and its result or error."""

    def __init__(self, key: str, compute: Callable[[CancelToken], T]) -> None:
        self.token, self.finished = WatchedToken(), threading.Event()
        self._key, self._compute = key, compute
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._rows = (0, 0)
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def words(self) -> str:
        """Describe the progress: the place in the queue, or the elapsed seconds and the number of evaluations."""
        before = runtime.turns().place(self._thread.ident)
        if before:
            return f"waiting for the device, place {before} in the queue"
        done, total = self._rows
        seconds = f"{time.monotonic() - self._started:.0f} s"
        return f"{seconds}, {done:,} of {total:,} evaluations" if 0 < done < total else seconds

    def result(self) -> T:
        """Return the result of a finished computation. Its error is raised for everybody who waits."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            with reporting(self._report):
                self._results.append(self._compute(self.token))
        except BaseException as error:
            self._error = error
        finally:
            with _lock:
                if _running.get(self._key) is self:
                    del _running[self._key]
            self.finished.set()

    def _report(self, done: int, total: int, label: str) -> None:
        self._rows = done, total


def run_shared(key: str, compute: Callable[[CancelToken], T], tick: Tick) -> T:
    """Return the result of `compute`. Callers with the same key share one computation."""
    with _watching(key, compute) as work:
        while not work.finished.wait(POLL_SECONDS):
            tick(work.words())
        return work.result()


@st.cache_resource(show_spinner=False)
def warm_up() -> threading.Thread:
    """Start importing the libraries for models and charts, at the end of a page. Returns immediately."""
    return import_engine()


def import_engine() -> threading.Thread:
    """Import the libraries for models and charts in the background. Computations that started earlier do not wait."""
    thread = threading.Thread(target=import_held, args=(*MODELS, *CHARTS), daemon=True)
    thread.start()
    return thread


def is_stopped(key: str) -> bool:
    """Whether the person stopped the request of this cache key."""
    return key in st.session_state.get(STOPPED, [])


def raise_if_stopped(key: str) -> None:
    """Raise `Cancelled` for a request that the person stopped."""
    if is_stopped(key):
        raise Cancelled("Stopped.")


def is_cached(request: Request) -> bool:
    """Whether the explanation is in the cache."""
    return result_store().contains(key_of(request))


def explain(request: Request, tick: Tick | None = None) -> Explanation:
    """Return the explanation, from the cache or computed. Errors: `Cancelled` if the person stopped it.

    `tick` draws the progress. On a page that nobody sees any more it raises, which ends the wait.
    """
    cached = engine_explain.cached_explanation(request)
    if cached is not None:
        return cached
    return run_cached(key_of(request), lambda token: _compute(request, token), tick)


def run_cached(key: str, compute: Callable[[CancelToken], T], tick: Tick | None = None) -> T:
    """Return the result of `compute`: at once if the cache has the key, else from a shared thread, as in `explain`."""
    if result_store().contains(key):
        return compute(CancelToken())
    raise_if_stopped(key)
    if tick is not None:
        return run_shared(key, compute, tick)
    place = st.empty()
    try:
        return run_shared(key, compute, lambda words: _show_progress(place, words))
    finally:
        place.empty()


@contextlib.contextmanager
def _watching(key: str, compute: Callable[[CancelToken], T]) -> Iterator[Computation[T]]:
    work = _join_or_start(key, compute)
    try:
        yield work
    finally:
        work.token.leave()


def _join_or_start(key: str, compute: Callable[[CancelToken], T]) -> Computation[T]:
    with _lock:
        work = _running.get(key)
        if work is None or not work.token.join():
            work = _running[key] = Computation(key, compute)
            work.token.join()
            work.start()
        return work


def import_held(*names: str) -> None:
    """Import modules while holding the device, as every computation does.

    Two threads that import at the same time see half-imported modules.
    """
    with runtime.turn(), paused_collection():
        for name in names:
            importlib.import_module(name)


def _compute(request: Request, token: CancelToken) -> Explanation:
    return engine_explain.explain_many([request], cancel=token)[0]


def _show_progress(place: DeltaGenerator, words: str) -> None:
    place.caption(f"Computing: {words}")
