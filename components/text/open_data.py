"""The data set that a page looks at: read once, read again when its file changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components.trouble import sentence
from engine import access
from engine.data.datasets import load
from engine.data.examples import Dataset

DATA = "reviews"
"""What a page shows that was asked for nothing else."""
Stamp = tuple[int, int] | None


@dataclass(frozen=True)
class OpenData:
    """A data set by its name; `trouble` says why it is not the one that was asked for, by the name `wanted`."""

    name: str
    data: Dataset
    trouble: str = ""
    wanted: str = ""

    @property
    def asked(self) -> str:
        """The name that was asked for: controls and links keep it until another data set is chosen."""
        return self.wanted or self.name


def open_data(name: str) -> OpenData:
    """The data set of that name, file, folder or hub id; `DATA` and a sentence when it cannot be had."""
    try:
        return OpenData(name, _read(name, _stamp(name)))
    except Exception as error:
        return OpenData(DATA, _read(DATA, None), f"{sentence(error)} {DATA} is shown.", name)


@st.cache_resource(max_entries=4, show_spinner="Reading the data set …")
def _read(name: str, stamp: Stamp) -> Dataset:
    return load(name)


def _stamp(name: str) -> Stamp:
    """What changes when the file does; None for what is no file."""
    access.check_dataset(name)
    try:
        found = Path(name).stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
