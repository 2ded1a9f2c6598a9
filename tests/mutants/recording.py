"""A plugin of pytest, for the run that changes nothing: each test's duration, outcome and the mutants it passes."""

from __future__ import annotations

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mutant_switches as switches
import pytest

OF_FIXTURES: dict[tuple[str, str], set[int]] = defaultdict(set)
SECONDS: dict[tuple[str, str], float] = defaultdict(float)
"""How long a shared fixture took to set up, of the processor."""
OUTCOMES: dict[str, str] = {}


def processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_configure() -> None:
    switches.in_test_process = True


def write(record: dict[str, Any]) -> None:
    with (Path(os.environ[switches.FOLDER]) / f"tests-{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """What a file passes when it is imported, and what it imports first."""
    switches.hits.clear()
    try:
        return (yield)
    finally:
        if switches.hits and isinstance(collector, pytest.Module):
            write({"file": collector.nodeid, "hits": sorted(switches.hits)})


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """What a shared fixture passes counts for every test that uses it, not only for the first."""
    if fixturedef.scope == "function":
        return (yield)
    name, before, began = (fixturedef.baseid, fixturedef.argname), set(switches.hits), processor_seconds()
    switches.hits.clear()
    try:
        return (yield)
    finally:
        OF_FIXTURES[name] |= switches.hits
        SECONDS[name] = processor_seconds() - began
        switches.hits.update(before)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome != "passed" or report.nodeid not in OUTCOMES:
        OUTCOMES[report.nodeid] = report.outcome


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Function) -> Iterator[None]:
    switches.hits.clear()
    wall, cpu, known = time.perf_counter(), processor_seconds(), set(SECONDS)
    try:
        return (yield)
    finally:
        passed = set(switches.hits)
        definitions = [one for some in item._fixtureinfo.name2fixturedefs.values() for one in some]
        shared = {(one.baseid, one.argname) for one in definitions} & SECONDS.keys()
        for name in shared:
            passed |= OF_FIXTURES[name]
        write(
            {
                "test": item.nodeid,
                "wall": round(time.perf_counter() - wall, 3),
                "cpu": round(processor_seconds() - cpu, 3),
                "shared": round(sum(SECONDS[name] for name in shared & known), 3),
                "outcome": OUTCOMES.get(item.nodeid, "none"),
                "hits": sorted(passed),
            }
        )
