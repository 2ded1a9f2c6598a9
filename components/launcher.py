"""Starts the dashboard's server: `python -m components.launcher --port 8501 --host localhost`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

from components.engine_room import import_engine
from components.frame import ROOT
from components.serving import ask_no_network

QUIET_SECONDS = 8
"""When nobody has opened a page until then, what runs models is imported all the same."""


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m components.launcher", description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--host", default="localhost", help="0.0.0.0 lets other machines in")
    parser.add_argument("--headless", action="store_true", help="do not open a browser window")
    return parser.parse_args(argv)


def serve(port: int, host: str, headless: bool) -> None:
    """Runs the server until it is stopped."""
    # Streamlit asks this flag before it has run app.py for the first time: see `frame.guard`.
    PagesManager.uses_pages_directory = False
    ask_no_network()
    import_engine(after=QUIET_SECONDS)
    flags = [f"--server.port={port}", f"--server.address={host}"]
    if headless:
        flags.append("--server.headless=true")
    cli.main(["run", str(ROOT / "app.py"), *flags], prog_name="streamlit")


def main(argv: Sequence[str] | None = None) -> None:
    options = arguments(sys.argv[1:] if argv is None else argv)
    serve(options.port, options.host, options.headless)


if __name__ == "__main__":
    main()
