"""Hands the process over to the dashboard's server. The engine itself never imports the dashboard."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from engine.access import ADMINS, DATASETS, MODELS, OPEN, PASSWORD, STUDY_ONLY, offered
from engine.errors import UsageError, not_allowed

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_PORT = 8501
LARGEST_PORT = 65_535
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def command(port: int, host: str, headless: bool) -> list[str]:
    """The server's command line."""
    # -P keeps the caller's folder off the import path, where a `cache` or `pages` of theirs would win.
    base = [sys.executable, "-P", "-m", "components.launcher", "--port", str(port), "--host", host]
    return [*base, "--headless"] if headless else base


def environment(base: Mapping[str, str], everybody: bool = False, study_only: bool = False) -> dict[str, str]:
    """The server's environment: as given, with this checkout first on the import path, and who may open what."""
    paths = [str(ROOT), *filter(None, base.get("PYTHONPATH", "").split(os.pathsep))]
    chosen = {name: "1" for name, is_set in {OPEN: everybody, STUDY_ONLY: study_only}.items() if is_set}
    return {**base, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), **chosen}


def check_admission(host: str, environment: Mapping[str, str]) -> str:
    """What to say of a server that others can reach; raises `UsageError` where it would be open by accident."""
    if host in LOOPBACK or environment.get(STUDY_ONLY) == "1" or any(map(environment.get, (PASSWORD, ADMINS))):
        return ""
    if environment.get(OPEN) != "1":
        raise UsageError(
            f"--host: {host} lets other machines in, and no password is set. Set {PASSWORD} first, or add --study-only "
            "to serve the page Take part alone, or --open to open all pages but the organiser's to everybody."
        )
    return (
        "open to everybody who reaches this machine: all pages but Study and Study results, with the embedded models "
        f"and data sets and those in {MODELS} and {DATASETS}. Jobs can be started by all, canceled here only."
    )


def check_port(port: int, host: str) -> None:
    """Raises `UsageError` unless a server could listen there now."""
    if not 1 <= port <= LARGEST_PORT:
        raise not_allowed("port", f"between 1 and {LARGEST_PORT}", port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server does it: a port whose last connections are still closing counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise refusal(error, port, host) from error


def refusal(error: OSError, port: int, host: str) -> UsageError:
    """What to tell a person about a port or a host that cannot be had."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return not_allowed("host", "an address of this machine", host, "Try --host localhost or 0.0.0.0.")
    reason = f"The system says: {error.strerror or error}. Try --port {port % LARGEST_PORT + 1}."
    return not_allowed("port", f"free on {host}", port, reason)


def launch(
    port: int = DEFAULT_PORT,
    *,
    host: str = "localhost",
    headless: bool = False,
    everybody: bool = False,
    study_only: bool = False,
) -> NoReturn:
    """Replaces this process by the server, so that signals and the exit status reach the caller."""
    for variable in (MODELS, DATASETS):
        offered(variable)  # an open quotation mark is an error now, not on each page
    chosen = environment(os.environ, everybody, study_only)
    warning = check_admission(host, chosen)
    check_port(port, host)
    if warning:
        print("note:", warning, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command(port, host, headless), chosen)
