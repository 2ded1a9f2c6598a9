"""The home folder, which holds what outlives a process: cache, jobs, trained models."""

from __future__ import annotations

import functools
import os
import tomllib
from pathlib import Path


def home() -> Path:
    """`EXEGESIS_HOME`, or `~/.cache/exegesis`. The folder may not exist yet."""
    return Path(os.environ.get("EXEGESIS_HOME") or Path.home() / ".cache" / "exegesis")


def project_root() -> Path:
    """The checkout that holds the embedded data and model adapters."""
    return Path(__file__).resolve().parent.parent


@functools.cache
def product_version() -> str:
    """The version that the project states of itself."""
    stated = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))
    return str(stated["project"]["version"])
