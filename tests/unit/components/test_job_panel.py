"""A job as pages show it while it runs."""

from __future__ import annotations

from components.job_panel import PARTS, now_html
from engine.experiments import base as experiments
from engine.jobs.kinds import MODULES


def test_what_a_job_is_at_is_drawn_as_text_and_its_parts_are_explained() -> None:
    html = now_html("evaluate", "LIME on <b>m</b>, examples 1 to 16 of 40")
    assert "Now: LIME on &lt;b&gt;m&lt;/b&gt;, examples 1 to 16 of 40. A part is one map" in html
    assert "Now:" not in now_html("evaluate", "")
    assert "A part" not in now_html("sample", "unit 1")


def test_every_kind_of_job_says_what_its_parts_are() -> None:
    assert set(PARTS) == {*MODULES, *experiments.MODULES}
