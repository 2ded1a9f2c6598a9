"""`exegesis app`: replace the process by the dashboard's server. The engine itself never imports the dashboard."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Mapping
from typing import Annotated, NoReturn

import typer

from engine.access import ADMINS, DATASETS, MODELS, OPEN, PASSWORD, STUDY_ONLY, monitor_networks, offered
from engine.cache_mirror import configured_mirror, mirror_at
from engine.cli.options import read_whole
from engine.errors import UsageError, not_allowed
from engine.home import is_checkout, project_root
from engine.telemetry import log_format

DEFAULT_PORT = 8501
MAX_PORT = 65_535
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def serve(
    port: Annotated[str, typer.Option(metavar="N", help="Port to listen on.")] = str(DEFAULT_PORT),
    host: Annotated[str, typer.Option(metavar="NAME", help="0.0.0.0 allows other machines.")] = "localhost",
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser window.")] = False,
    everybody: Annotated[bool, typer.Option("--open", help="Allow other machines without a password.")] = False,
    study_only: Annotated[bool, typer.Option("--study-only", help="Serve only the Take part page.")] = False,
) -> None:
    """Open the dashboard in a browser."""
    launch(read_whole("--port", port, low=1), host=host, headless=headless, everybody=everybody, study_only=study_only)


def launch(
    port: int = DEFAULT_PORT,
    *,
    host: str = "localhost",
    headless: bool = False,
    everybody: bool = False,
    study_only: bool = False,
) -> NoReturn:
    """Replace this process with the server, so that signals and the exit status pass through.

    Errors: a setting, host or port that the server cannot use.
    """
    for variable in (MODELS, DATASETS):
        offered(variable)  # raises now, rather than on each page, if a quotation mark is not closed
    log_format()  # likewise for an unknown format, and below for an invalid network
    monitor_networks()
    if mirror := configured_mirror():
        mirror_at(mirror).check()
    variables = server_environment(os.environ, everybody, study_only)
    warning = check_admission(host, variables)
    check_port(port, host)
    if warning:
        print("note:", warning, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, server_command(port, host, headless), variables)


def server_command(port: int, host: str, headless: bool) -> list[str]:
    """Return the command line of the server."""
    # -P keeps the current folder off the import path, where another `cache` or `pages` would come first.
    base = [sys.executable, "-P", "-m", "components.server", "--port", str(port), "--host", host]
    return [*base, "--headless"] if headless else base


def server_environment(base: Mapping[str, str], everybody: bool = False, study_only: bool = False) -> dict[str, str]:
    """Return the server's environment: `base`, the import path of a checkout, and the access settings.

    Only a checkout is put on the path, first. An installed package is found without it, and site-packages on the path
    would come before the standard library.
    """
    paths = [str(project_root()), *filter(None, base.get("PYTHONPATH", "").split(os.pathsep))]
    path = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))} if is_checkout() else {}
    access = {name: "1" for name, is_set in {OPEN: everybody, STUDY_ONLY: study_only}.items() if is_set}
    return {**base, **path, **access}


def check_admission(host: str, environment: Mapping[str, str]) -> str:
    """Return a warning if the server is open to everybody, else "". Errors: it would be open without `--open`."""
    if host in LOOPBACK or environment.get(STUDY_ONLY) == "1" or any(map(environment.get, (PASSWORD, ADMINS))):
        return ""
    if environment.get(OPEN) != "1":
        raise UsageError(
            f"--host: {host} lets other machines in, but no password is set. Set {PASSWORD} first, add --study-only "
            "to serve only the page Take part, or add --open to open all pages except the organizer's to everybody."
        )
    return (
        "open to everybody who can reach this machine: all pages except Study and Study results, with the embedded "
        f"models and data sets and those in {MODELS} and {DATASETS}. Everybody can start jobs; only this "
        "machine can cancel them."
    )


def check_port(port: int, host: str) -> None:
    """Raise `UsageError` unless a server can listen on this port now."""
    if not 1 <= port <= MAX_PORT:
        raise not_allowed("--port", f"between 1 and {MAX_PORT}", port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As in the server, a port whose last connections are still closing counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise port_error(error, port, host) from error


def port_error(error: OSError, port: int, host: str) -> UsageError:
    """Return a readable error for a port or a host that cannot be used."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return not_allowed("--host", "an address of this machine", host, "Try --host localhost or 0.0.0.0.")
    reason = f"The system says: {error.strerror or error}. Try --port {port % MAX_PORT + 1}."
    return not_allowed("--port", f"free on {host}", port, reason)
