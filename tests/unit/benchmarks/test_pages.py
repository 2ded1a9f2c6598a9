"""What the page benchmarks make of what they see: the log's lines, the slope of memory, the limits."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from benchmarks import pages
from benchmarks.harness import Limit, judge
from benchmarks.watched_server import MARK, Run, runs, troubles

RUN = Run("s", 0.1, 0.05, 7)
LINE = f"{MARK}{json.dumps(asdict(RUN))}\n"


def test_the_runs_are_read_from_the_log_and_a_line_half_written_waits() -> None:
    assert runs(f"  URL: http://localhost:1\n{LINE}{LINE}{LINE[:-9]}") == [RUN, RUN]


@pytest.mark.parametrize(
    "line",
    ["Traceback (most recent call last):", "ValueError: no", "2026-11-20 12:00:00.000 ERROR x", "x UserWarning: y"],
)
def test_errors_and_warnings_in_the_log_are_troubles(line: str) -> None:
    assert troubles(f"{LINE}  Stopping...\n{line}\n") == [line]


def test_a_server_that_says_its_address_is_in_no_trouble() -> None:
    assert not troubles(f"2026-11-20 Uvicorn server started on localhost:1\n\n  You can now view\n{LINE}")


def test_the_slope_is_that_of_the_second_half() -> None:
    grows = [1_000_000 * step for step in range(10)]
    assert pages.slope([*grows, *(9_000_000 + 5_000 * step for step in range(10))]) == pytest.approx(5_000)
    assert pages.slope([*grows, *[9_000_000] * 10]) == pytest.approx(0, abs=1e-6)


def test_a_broken_limit_fails_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    kept, broken = Limit("median", 150, 150, "ms"), Limit("bytes", 301, 300, "kB")
    assert judge([kept]) == 0
    assert judge([kept, broken]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "BROKEN: bytes: 301 kB, at most 300 kB"
    assert said[-2] == "kept: median: 150 ms, at most 150 ms"
