"""What golden values may not depend on is fixed while they are made: device, home, terminal."""

from __future__ import annotations

import contextlib
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
    with tempfile.TemporaryDirectory(prefix="exegesis-frozen-") as home:
        for name in [*UNSET, *(name for name in before if name.startswith("EXEGESIS_"))]:
            os.environ.pop(name, None)
        os.environ.update(FIXED | {"EXEGESIS_HOME": home})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
