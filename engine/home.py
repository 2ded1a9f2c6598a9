"""The home folder, which holds persistent data: cache, jobs, trained models."""

from __future__ import annotations

import functools
import os
import tomllib
from importlib.metadata import version
from pathlib import Path


def home() -> Path:
    """Return `EXEGESIS_HOME`, by default `~/.cache/exegesis`. The folder may not exist yet."""
    return Path(os.environ.get("EXEGESIS_HOME") or Path.home() / ".cache" / "exegesis")


def project_root() -> Path:
    """Return the folder that contains the packages: a checkout, or the site-packages of an installation."""
    return Path(__file__).resolve().parent.parent


def is_checkout() -> bool:
    """Whether the packages are in a checkout of the project, rather than installed from a wheel."""
    return (project_root() / "pyproject.toml").is_file()


@functools.cache
def product_version() -> str:
    """Return the version of the project: that of the checkout if there is one, else of the installed distribution."""
    if not is_checkout():
        return version("exegesis")
    stated = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))
    return str(stated["project"]["version"])
