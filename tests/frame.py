"""Pages that a test runs as scripts run inside app.py, as on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from streamlit.runtime.pages_manager import PagesManager

from components.server import run_pages_in_frame


@contextmanager
def pages_in_frame() -> Iterator[None]:
    """AppTest forgets before each run what `run_pages_in_frame` has set: set it again."""
    create = PagesManager.__init__

    def create_in_frame(*given: object, **options: object) -> None:
        create(*given, **options)  # type: ignore[arg-type]
        run_pages_in_frame()

    with patch.object(PagesManager, "__init__", create_in_frame):
        yield
