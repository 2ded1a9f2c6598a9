"""Writes the golden files: `python -m tests.frozen.make`, or only those that are named.

From the code as it is now: look at what changed in them before you keep it. A deliberate change is listed in the notes.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time

from tests import conftest  # a home of its own and no network, as the tests have it
from tests.frozen import golden, settings

SUBJECTS = ("keys", "units", "links", "commands", "study", "pages")


def main(*names: str) -> None:
    """Writes the named parts, or all."""
    try:
        for subject in SUBJECTS:
            for part, values in importlib.import_module(f"tests.frozen.{subject}").parts().items():
                if not names or part in names:
                    began = time.perf_counter()
                    with settings.fixed():
                        file = golden.write(part, golden.as_json(values()))
                    print(f"{file.name}: {file.stat().st_size:,} bytes, {time.perf_counter() - began:.1f} s")
    finally:
        shutil.rmtree(conftest.HOME, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
