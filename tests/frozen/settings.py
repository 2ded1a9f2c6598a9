"""What golden values may not depend on is fixed while they are made: device, home, terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator

FIXED = {
    "EXEGESIS_DEVICE": "cpu",
    "COLUMNS": "100",
    "LINES": "40",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
}
UNSET = ("FORCE_COLOR", "LC_ALL", "LC_NUMERIC")


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    """An empty home and the same surroundings as on every machine."""
    before = dict(os.environ)
    # Of each thing that a page would cache it says that there is no page.
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="exegesis-frozen-") as home:
        for name in [*UNSET, *(name for name in before if name.startswith("EXEGESIS_"))]:
            os.environ.pop(name, None)
        os.environ.update(FIXED | {"EXEGESIS_HOME": home})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
