"""The home folder, which holds what outlives a process: cache, jobs, trained models."""

from __future__ import annotations

import functools
import os
import tomllib
from importlib.metadata import version
from pathlib import Path


def home() -> Path:
    """`EXEGESIS_HOME`, or `~/.cache/exegesis`. The folder may not exist yet."""
    return Path(os.environ.get("EXEGESIS_HOME") or Path.home() / ".cache" / "exegesis")


def project_root() -> Path:
    """The folder of the packages: a checkout, or the site-packages of an installation."""
    return Path(__file__).resolve().parent.parent


def is_checkout() -> bool:
    """Whether the packages are in a checkout of the project and not installed from a wheel."""
    return (project_root() / "pyproject.toml").is_file()


@functools.cache
def product_version() -> str:
    """The version of the project: that of a checkout, else of the installed distribution."""
    if not is_checkout():
        return version("exegesis")
    stated = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))
    return str(stated["project"]["version"])
