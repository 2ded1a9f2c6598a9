"""The picture set that a page looks at: opened once, again when its files change, read one picture at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import streamlit as st
from jaxtyping import Bool

from components.trouble import sentence
from engine import access
from engine.blob_store import load_picture
from engine.data.examples import ImageDataset
from engine.data.image_datasets import load_images
from engine.errors import ExegesisError
from engine.home import home
from engine.request import Picture

PICTURES = "scenes"
"""What a page shows that was asked for nothing else."""
OWN = "your picture"
FOLDERS_LOOKED_AT = 1000
Stamp = tuple[int, ...]


@dataclass(frozen=True)
class OpenPictures:
    """A picture set by its name and split; `split` is empty for its usual one.

    `wanted`: name and split as they were asked for; `trouble` says why this is not that set.
    """

    name: str
    split: str
    data: ImageDataset
    wanted: tuple[str, str]
    trouble: str = ""

    @property
    def asked(self) -> tuple[str, str]:
        """The name and split for controls and links: what cannot be had stays there until another set is chosen."""
        return self.wanted if self.trouble else (self.name, self.split)


@dataclass(frozen=True)
class Shown:
    """One picture and what is known of it; without a picture, `trouble` says why. `mask` has the picture's own size."""

    picture: Picture | None
    label: int | None = None
    name: str = ""
    trouble: str = ""
    mask: Bool[np.ndarray, "height width"] | None = field(default=None, compare=False, repr=False)


def open_pictures(name: str, split: str = "") -> OpenPictures:
    """The picture set of that name, zip, folder, `.npz` or hub id; `PICTURES` and a sentence where it cannot be had."""
    wanted = name, split
    try:
        return _named(wanted, _opened(name, split))
    except Exception as error:
        told = sentence(error)
    try:
        instead = _named((name, ""), _opened(name, "")) if split else _usual()
    except Exception:
        instead = _usual()
    shown = f"Its split {instead.data.split}" if instead.name == name else instead.name
    return replace(instead, wanted=wanted, trouble=f"{told} {shown} is shown.")


def shown_of(opened: OpenPictures, index: int) -> Shown:
    """The picture at that place; it is read once for all who look at it."""
    data = opened.data
    try:
        return _shown(data.id, data.revision, data.split, len(data), index, data)
    except Exception as error:
        return Shown(None, data.labels[index], trouble=sentence(error))


def own_shown(digest: str) -> Shown | None:
    """A picture that was uploaded, by its hash; None where this machine no longer has it."""
    try:
        return _own(digest, str(home()))
    except ExegesisError:
        return None


def stamp(name: str) -> Stamp:
    """What changes when the file does, or when a file is put into or taken out of the folder or one below it."""
    access.check_dataset(name)
    try:
        path = Path(name)
        found = [path.stat(), *(entry.stat() for entry in _folders(path))]
    except (OSError, ValueError):
        return ()
    return tuple(time for one in found for time in (one.st_mtime_ns, one.st_size))


def _usual() -> OpenPictures:
    return _named((PICTURES, ""), _opened(PICTURES, ""))


def _named(wanted: tuple[str, str], data: ImageDataset) -> OpenPictures:
    usual = next(iter(data.splits), data.split)
    return OpenPictures(wanted[0], "" if data.split == usual else data.split, data, wanted)


def _opened(name: str, split: str) -> ImageDataset:
    return _read(name, split, stamp(name))


@st.cache_resource(max_entries=4, show_spinner="Opening the pictures …")
def _read(name: str, split: str, stamp: Stamp) -> ImageDataset:
    return load_images(name, split or None)


@st.cache_resource(max_entries=8, show_spinner=False)
def _shown(id: str, revision: str, split: str, count: int, index: int, _data: ImageDataset) -> Shown:
    example = _data[index]
    return Shown(Picture(example.pixels), example.label, example.name, mask=example.mask)


@st.cache_resource(max_entries=4, show_spinner=False)
def _own(digest: str, home: str) -> Shown:
    pixels = load_picture(digest)
    if pixels is None:
        raise ExegesisError(f"picture: no picture is kept under {digest}.")
    return Shown(Picture(pixels), name=OWN)


def _folders(path: Path) -> list[os.DirEntry[str]]:
    """Split folders and their class folders."""
    if not path.is_dir():
        return []
    above = _inside(path)
    return [*above, *(entry for folder in above for entry in _inside(Path(folder)))][:FOLDERS_LOOKED_AT]


def _inside(path: Path) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        folders = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
        return sorted(islice(folders, FOLDERS_LOOKED_AT), key=lambda entry: entry.name)
