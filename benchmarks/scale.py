"""Inputs of docs/scale.md: what an explanation, a planned unit of a job and a cache entry cost, in time and bytes."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import psutil

from benchmarks.harness import Measurement, benchmark, empty_home, scratch_folder
from benchmarks.served_pages import open_session, processor_seconds, visit_page, wait_until_idle
from cache import canonical, key_for, open_store
from engine.data.datasets import load
from engine.evaluation.plan import EvaluationPlan
from engine.experiments.base import experiment
from engine.experiments.run import job_kind
from engine.explain import explain_many
from engine.request import Request
from engine.store import result_store
from tests.browser.server import running
from tests.unit.study.polls import open_study

PAGE = "annotate"
MODEL, DATASET = "reviews-minilm", "reviews"
METHODS = ("gradient_x_input", "attention_rollout", "occlusion", "integrated_gradients")
CHUNK = 10_000
IDLE_SECONDS, IDLE_USE = 8.0, 0.2
WARMING, ROUNDS = 10, 3
"""Views before those of Take part are measured; views of each session after its first."""


@benchmark(texts=8, examples=100, entries=60_000, sessions=40)
def scale(texts: int, examples: int, entries: int, sessions: int) -> Measurement:
    """What the plan of docs/scale.md takes as measured.

    Processor time and cached bytes of an explanation, by method, on texts of `reviews`; time and memory of a planned
    unit of an evaluation; time to store an entry of the cache, as it grows; what open pages of a study cost a server.
    """
    with empty_home():
        explanations = list(explanation_rows(texts))
        planned = [unit_row(examples)]
    return Measurement(
        {
            f"an explanation by {MODEL}, {texts} texts of {DATASET}": explanations,
            "a unit of an evaluation job": planned,
            f"{sessions} people open Take part, over a websocket each": [session_row(sessions)],
            f"an entry of a cache of up to {entries:,}": list(entry_rows(entries)),
        }
    )


def explanation_rows(texts: int) -> Iterator[dict[str, Any]]:
    """Each method on the same texts."""
    inputs = [one.example for one in load(DATASET, limit=texts).examples]
    explain_many([Request(MODEL, "gradient", inputs[0])])  # the model is loaded
    for method in METHODS:
        before, used = result_store().stats(), time.process_time()
        explain_many([Request(MODEL, method, example) for example in inputs])
        used, after = time.process_time() - used, result_store().stats()
        yield {
            "method": method,
            "processor ms": 1e3 * used / texts,
            "entries": (after.entries - before.entries) / texts,
            "kB": (after.bytes - before.bytes) / texts / 1e3,
        }


def unit_row(examples: int) -> dict[str, Any]:
    """The units of a job, as its runner lists them and looks them up in the cache."""
    plan = EvaluationPlan((MODEL,), DATASET, METHODS, ("comprehensiveness",), examples=examples)
    kind, spec = job_kind(experiment("evaluate")), json.loads(canonical(plan.as_plain()))
    begun = time.process_time()
    listed = list(kind.plan(spec))
    seconds, begun = time.process_time() - begun, time.process_time()
    found = sum(result_store().contains(unit.key) for unit in listed)
    looked, count = time.process_time() - begun, len(listed)
    listed.clear()
    tracemalloc.start()
    listed = list(kind.plan(spec))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "units": count, "cached": found, "processor ms to list": 1e3 * seconds / count,
        "processor ms to look up": 1e3 * looked / count, "kB of memory": size / count / 1e3,
    }  # fmt: skip


def session_row(sessions: int) -> dict[str, Any]:
    """Processor time and memory of the server for the first view of Take part, and for another view in each session."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        stack.enter_context(mock.patch.dict(os.environ, EXEGESIS_HOME=str(folder / "home")))
        query = f"study={open_study().token}"
        server = stack.enter_context(running(folder))
        wait_until_idle(server.process)
        with open_session(server) as warming:
            for _ in range(WARMING):
                visit_page(warming, query, PAGE)
        wait_for_imports(server.process)
        used, resident = processor_seconds(server.process), server.process.memory_info().rss
        opened = [stack.enter_context(open_session(server)) for _ in range(sessions)]
        bytes_sent = sum(len(visit_page(one, query, PAGE)) for one in opened)
        first, held = processor_seconds(server.process), server.process.memory_info().rss
        for one in opened * ROUNDS:
            visit_page(one, query, PAGE)
        again = processor_seconds(server.process)
    return {
        "processor ms, first view": 1e3 * (first - used) / sessions,
        "processor ms, again": 1e3 * (again - first) / sessions / ROUNDS,
        "MB a session": (held - resident) / sessions / 1e6,
        "kB of HTML": bytes_sent / sessions / 1e3,
    }


def wait_for_imports(process: psutil.Process) -> None:
    """Wait until the server uses no processor: on a busy machine its imports pause for seconds."""
    while True:
        used = processor_seconds(process)
        time.sleep(IDLE_SECONDS)
        if processor_seconds(process) - used < IDLE_USE:
            return


def entry_rows(entries: int) -> Iterator[dict[str, Any]]:
    """Entries of 1 kB, stored one after the other: the time of each as the file grows."""
    scores = np.zeros(64)
    with scratch_folder() as folder, open_store(folder) as store:
        for start in range(0, entries, CHUNK):
            put = list[float]()
            for number in range(start, start + CHUNK):
                begun = time.perf_counter()
                store.put(key_for({"number": number}), {"number": number}, {"scores": scores})
                put.append(time.perf_counter() - begun)
            if (start + CHUNK) in (CHUNK, entries // 2, entries):
                stats = store.stats()
                yield {
                    "entries": start + CHUNK,
                    "puts a second": CHUNK / sum(put),
                    "put ms, median": 1e3 * float(np.median(put)),
                    "put ms, 99%": 1e3 * float(np.percentile(put, 99)),
                    "file bytes an entry": stats.file_bytes / stats.entries,
                }
