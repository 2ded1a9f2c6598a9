"""The `exegesis` command: every result of the dashboard without a browser.

`root` lists the commands, one module a subject; `options`, `inputs`, `output` and `experiments` are shared.
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
"""Variables that keep libraries from printing, where they are not set already."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and end the process: 0 done, 1 failed, 2 wrong use, 130 stopped."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, never a traceback.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    log_to_file()
    app(args=sys.argv[1:] if argv is None else list(argv), prog_name="exegesis")
