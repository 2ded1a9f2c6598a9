"""`exegesis app`: the dashboard."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.launcher import DEFAULT_PORT, launch
from engine.cli.values import whole


def serve(
    port: Annotated[str, typer.Option(metavar="N", help="Port to listen on.")] = str(DEFAULT_PORT),
    host: Annotated[str, typer.Option(metavar="NAME", help="0.0.0.0 lets other machines in.")] = "localhost",
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser window.")] = False,
    everybody: Annotated[bool, typer.Option("--open", help="Let others in without a password.")] = False,
    study_only: Annotated[bool, typer.Option("--study-only", help="Serve Take part and nothing else.")] = False,
) -> None:
    """Open the dashboard in a browser."""
    launch(whole("--port", port, low=1), host=host, headless=headless, everybody=everybody, study_only=study_only)
