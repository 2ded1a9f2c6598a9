"""The `exegesis` command: the dashboard's results on the command line.

`root` lists the commands, with one module per subject. `options`, `inputs`, `output` and `experiments` are shared.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from engine.cli.root import app, log_to_file

QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""Environment variables that stop libraries from printing, set unless they have a value already."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and exit the process. Exit status: 0 done, 1 failed, 2 wrong usage, 130 stopped."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for stream in (sys.stdout, sys.stderr):
        # Characters that a terminal cannot show are escaped and never raise an error.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    log_to_file()
    app(args=sys.argv[1:] if argv is None else list(argv), prog_name="exegesis")
