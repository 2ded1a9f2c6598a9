"""A job as pages show it while it runs."""

from __future__ import annotations

import dataclasses

import pytest

from components.job_panel import PARTS, job_view, now_html
from engine.experiments import base as experiments
from engine.jobs.kinds import MODULES
from tests.unit.components.test_library import JOB


def test_what_a_job_is_at_is_drawn_as_text_and_its_parts_are_explained() -> None:
    html = now_html("evaluate", "LIME on <b>m</b>, examples 1 to 16 of 40")
    assert "Now: LIME on &lt;b&gt;m&lt;/b&gt;, examples 1 to 16 of 40. A part is one map" in html
    assert "Now:" not in now_html("evaluate", "")
    assert "A part" not in now_html("sample", "unit 1")


def test_every_kind_of_job_says_what_its_parts_are() -> None:
    assert set(PARTS) == {*MODULES, *experiments.MODULES}


@pytest.mark.parametrize(
    ("started", "finished", "is_timed"),
    [(100.0, 100.0, True), (100.0, 160.0, True), (100.0, 99.0, False), (None, 100.0, False), (100.0, None, False)],
)
def test_the_last_run_is_timed_once_it_has_ended(started: float | None, finished: float | None, is_timed: bool) -> None:
    when = job_view(dataclasses.replace(JOB, started=started, finished=finished), 0).when
    assert when.startswith("submitted ")
    assert (", last run " in when) is is_timed
