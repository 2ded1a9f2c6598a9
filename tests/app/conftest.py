"""What the tests of pages as scripts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest
from streamlit.runtime.context import ContextProxy

from engine import jobs
from tests.frame import pages_in_frame

SECONDS = 120.0


@pytest.fixture(autouse=True)
def as_on_a_server() -> Iterator[None]:
    """Pages run in their frame. A script without a browser counts as opened on this machine: the organizer's pages
    ask."""
    with pages_in_frame(), patch.object(ContextProxy, "ip_address", new_callable=PropertyMock, return_value=None):
        yield


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home of the test's own, whose jobs end with it."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    yield
    for job in jobs.list_jobs():
        jobs.cancel(job.id)
        jobs.wait(job.id, SECONDS)
