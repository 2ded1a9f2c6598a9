"""Whether a server is ready, and its metrics in the text format of Prometheus (version 0.0.4).

Names and labels hold no personal data: labels are ids of methods, states of jobs and classes of HTTP statuses.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psutil

from engine import jobs, runtime
from engine.errors import ExegesisError
from engine.health import Finding, examine_readiness
from engine.home import home, product_version
from engine.jobs.table import STATES
from engine.lazy import torch
from engine.store import result_store
from engine.telemetry import EXPLAINED, EXPLANATION_SECONDS, HTTP_REQUESTS, OPEN_PAGES, Labels, counts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def readiness() -> tuple[bool, list[Finding]]:
    """Return whether the server is ready (database, cache and home folder can be used), and the findings."""
    findings = list(examine_readiness())
    return all(one.status != "broken" for one in findings), findings


@dataclass(frozen=True)
class MetricFamily:
    """The samples of one metric. `kind`: counter, gauge or summary. `samples`: suffix of the name, labels, value."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[str, Labels, float]]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the family in the text format."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for suffix, labels, value in self.samples:
            inner = ",".join(f'{name}="{_escape(text)}"' for name, text in labels)
            yield f"{self.name}{suffix}{{{inner}}} {value:.10g}" if inner else f"{self.name}{suffix} {value:.10g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def metrics_text() -> str:
    """Return all metrics of this process and of the shared job table, in the text format."""
    return "\n".join(line for family in families() for line in family.lines()) + "\n"


def families() -> Iterator[MetricFamily]:
    """Yield all metric families. A family whose values cannot be read is left out."""
    yield _single("exegesis_info", "gauge", "Version of the program.", 1, (("version", product_version()),))
    yield _counted(HTTP_REQUESTS, "counter", "HTTP requests by class of status.")
    yield _single(OPEN_PAGES, "gauge", "Pages that browsers have open.", sum(counts.sums(OPEN_PAGES).values()))
    yield from _cache_families()
    yield _explanations()
    yield _single("exegesis_device_queue", "gauge", "Requests that wait for the device.", runtime.turns().waiting)
    yield from _job_families()
    yield from _memory_families()


def _single(name: str, kind: str, help: str, value: int | float, labels: Labels = ()) -> MetricFamily:
    return MetricFamily(name, kind, help, [("", labels, float(value))])


def _counted(name: str, kind: str, help: str) -> MetricFamily:
    return MetricFamily(name, kind, help, [("", labels, value) for labels, value in sorted(counts.sums(name).items())])


def _cache_families() -> Iterator[MetricFamily]:
    stats = result_store().stats()
    for name, kind, help, value in (
        ("exegesis_cache_hits_total", "counter", "Results found in the cache by this process.", stats.hits),
        ("exegesis_cache_misses_total", "counter", "Results not found in the cache by this process.", stats.misses),
        ("exegesis_cache_entries", "gauge", "Results in the cache.", stats.entries),
        ("exegesis_cache_bytes", "gauge", "Size of the results in the cache.", stats.bytes),
        ("exegesis_cache_limit_bytes", "gauge", "Limit of the size of the cache.", stats.max_bytes),
    ):
        yield _single(name, kind, help, value)


def _explanations() -> MetricFamily:
    """Number and seconds of computed explanations by method."""
    samples = [
        (suffix, labels, value)
        for suffix, name in (("_count", EXPLAINED), ("_sum", EXPLANATION_SECONDS))
        for labels, value in sorted(counts.sums(name).items())
    ]
    help = "Seconds of explanations computed by this process, by method."
    return MetricFamily("exegesis_explanation_seconds", "summary", help, samples)


def _job_families() -> Iterator[MetricFamily]:
    try:
        by_state: Mapping[str, int] = jobs.job_table().count_by_state()
    except ExegesisError:  # reported by the health check
        return
    samples = [("", (("state", state),), float(by_state.get(state, 0))) for state in STATES]
    yield MetricFamily("exegesis_jobs", "gauge", "Jobs in the list, of all processes, by state.", samples)


def _memory_families() -> Iterator[MetricFamily]:
    rss = psutil.Process().memory_info().rss
    yield _single("process_resident_memory_bytes", "gauge", "Memory of this process.", rss)
    folder = next((one for one in (home(), *home().parents) if one.exists()), None)
    if folder is not None:
        free = shutil.disk_usage(folder).free
        yield _single("exegesis_home_free_bytes", "gauge", "Free space on the disk of the home folder.", free)
    # A server that has not run a model yet has not imported torch, and holds no memory of the device.
    if "torch" in sys.modules and runtime.device().type == "cuda":
        free, total = torch.cuda.mem_get_info(runtime.device())
        yield _single("exegesis_device_memory_used_bytes", "gauge", "Used memory of the GPU.", total - free)
        yield _single("exegesis_device_memory_bytes", "gauge", "Memory of the GPU.", total)
