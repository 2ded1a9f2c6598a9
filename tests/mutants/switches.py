"""What stands in the mutated copy as `mutant_switches`: which mutant is on, and which have been passed."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

CHOSEN = "EXEGESIS_MUTANT"
"""The environment variable that names the mutant that is on, for the processes that tests start too."""
FOLDER = "EXEGESIS_MUTANT_HITS"
"""The one that names the folder where the mutants that were passed are written."""
JOB = "EXEGESIS_MUTANT_JOB"
"""The one that names the file with what the plugin `killing` is to do."""

chosen = int(os.environ.get(CHOSEN, "0"))
hits: set[int] = set()
in_test_process = False
"""Whether a plugin of pytest reads `hits`; elsewhere each first hit is written to a file."""


def active(number: int) -> bool:
    if number not in hits:
        hits.add(number)
        if not in_test_process and FOLDER in os.environ:
            _write(number)
    return number == chosen


def _write(number: int) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    # A process that has given up its rights, as one of the tests does, may not write here.
    with suppress(PermissionError), (Path(os.environ[FOLDER]) / f"process-{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps({"test": test, "hits": [number]}) + "\n")


def _begin_in_child() -> None:
    global in_test_process
    in_test_process = False
    hits.clear()


os.register_at_fork(after_in_child=_begin_in_child)
