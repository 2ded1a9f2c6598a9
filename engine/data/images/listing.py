"""The picture files of a folder or a zip, each with its place below the root and a way to read it."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.amounts import byte_size
from engine.data.files import content_revision
from engine.data.images.opening import LARGEST_FILE
from engine.errors import ExegesisError

MOST_FILES = 500_000
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")
"""Of pictures."""
BOXES = "boxes.csv"


@dataclass(frozen=True)
class Listing:
    """All files below one root: their paths there, sorted, and a way to read one.

    `revision` is a hash of names and content.
    """

    name: str
    paths: tuple[PurePosixPath, ...]
    read: Callable[[PurePosixPath], bytes]
    revision: Callable[[], str]


def list_folder(folder: Path) -> Listing:
    """The files of a folder and its subfolders; of links that lead out, pictures are refused and others left out."""
    root = folder.resolve()
    paths = sorted(path for path in files_below(folder) if path.is_file())
    outside = {path for path in paths if not path.resolve().is_relative_to(root)}
    if refused := min(filter(_is_read, outside), default=None):
        raise ExegesisError(f"{folder.name}: {refused.name} is a link out of the folder. Put the file itself there.")
    paths = [path for path in paths if path not in outside]
    places = tuple(PurePosixPath(path.relative_to(folder).as_posix()) for path in paths)
    how = {"names": [str(place) for place in places]}
    return Listing(folder.name, places, lambda place: _from_folder(folder, place), lambda: content_revision(paths, how))


def files_below(folder: Path) -> Iterator[Path]:
    """Every file of a folder and its subfolders but hidden ones; gives up on what is no folder of pictures at all."""
    count, told = 0, folder.name or str(folder)
    try:
        for above, _, names in os.walk(folder):
            count += len(names)
            _check_count(told, count)
            yield from (Path(above, name) for name in names if not name.startswith("."))
    except OSError as error:
        raise ExegesisError(f"{told}: cannot be read ({error.strerror}). Give a folder of pictures alone.") from None


def _is_read(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES or path.name == BOXES


def list_zip(path: Path) -> Listing:
    """The files of a zip, read in memory one by one. A name that climbs out or a locked member refuses the whole."""
    archive = _opened(path)
    members = [m for m in archive.infolist() if not m.is_dir() and not PurePosixPath(m.filename).name.startswith(".")]
    _check_count(path.name, len(members))
    _check_members(path.name, members)
    # Two members of one name are legal in a zip; the last one counts, as for unzip.
    by_place = {PurePosixPath(member.filename): member for member in members}
    return Listing(
        path.name,
        tuple(sorted(by_place)),
        lambda place: _from_zip(archive, by_place[place], path.name),
        lambda: content_revision([path], {}),
    )


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
        raise ExegesisError(f"{path.name}: is not a zip that can be read. Save or download it again.") from None


def _check_count(name: str, count: int) -> None:
    if count > MOST_FILES:
        raise ExegesisError(f"{name}: must hold at most {MOST_FILES:,} files, got {count:,} or more. Split it.")


def _check_members(name: str, members: Sequence[zipfile.ZipInfo]) -> None:
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        link = stat.S_ISLNK(member.external_attr >> 16)
        if place.is_absolute() or ".." in place.parts or ":" in place.parts[0] or link:
            raise ExegesisError(f"{name}: {member.filename!r} leads out of the zip, which is refused. Pack it anew.")
        if member.flag_bits & 1:
            raise ExegesisError(f"{name}: {member.filename!r} is locked by a password. Pack it without one.")
        if member.file_size > LARGEST_FILE:
            allowed, got = byte_size(LARGEST_FILE), byte_size(member.file_size)
            told = f"must unpack to at most {allowed}, got {got}. Leave it out."
            raise ExegesisError(f"{name}: {member.filename!r} {told}")


def _from_folder(folder: Path, place: PurePosixPath) -> bytes:
    try:
        return (folder / place).read_bytes()
    except OSError as error:
        raise ExegesisError(f"{place.name}: cannot be read ({error.strerror}). Check its permissions.") from None


def _from_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    try:
        with archive.open(member) as file:
            # One byte more than it says: a member that unpacks to more than its header is a bomb.
            data = file.read(member.file_size + 1)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError):
        raise ExegesisError(f"{name}: {member.filename!r} is damaged. Save or download the zip again.") from None
    if len(data) > member.file_size:
        raise ExegesisError(f"{name}: {member.filename!r} unpacks to more than it says, which is refused.")
    return data
