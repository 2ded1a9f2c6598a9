"""The picture files of a folder or a zip, each with its place below the root and a way to read it."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.amounts import byte_size
from engine.data.files import content_revision
from engine.data.images.opening import LARGEST_FILE
from engine.errors import ExegesisError

MOST_FILES = 500_000


@dataclass(frozen=True)
class File:
    """One file: its path below the root, and its bytes when asked for."""

    path: PurePosixPath
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Listing:
    """All files below one root, sorted by path. `revision` is a hash of names and content."""

    name: str
    files: tuple[File, ...]
    revision: Callable[[], str]


def list_folder(folder: Path) -> Listing:
    """The files of a folder and its subfolders; links that lead out of it are refused."""
    root = folder.resolve()
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    outside = next((path for path in paths if not path.resolve().is_relative_to(root)), None)
    if outside is not None:
        raise ExegesisError(f"{folder.name}: {outside.name} is a link out of the folder. Put the file itself there.")
    _check_count(folder.name, len(paths))
    places = [PurePosixPath(path.relative_to(folder).as_posix()) for path in paths]
    files = tuple(File(place, _reader(path)) for place, path in zip(places, paths, strict=True))
    return Listing(folder.name, files, lambda: content_revision(paths, {"names": [str(p) for p in places]}))


def list_zip(path: Path) -> Listing:
    """The files of a zip, read in memory one by one. A name that climbs out or a locked member refuses the whole."""
    archive = _opened(path)
    members = [m for m in archive.infolist() if not m.is_dir() and not PurePosixPath(m.filename).name.startswith(".")]
    _check_count(path.name, len(members))
    for member in members:
        _check_member(path.name, member)
    # Two members of one name are legal in a zip; the last one counts, as for unzip.
    by_place = {PurePosixPath(member.filename): member for member in members}
    files = tuple(File(place, _member_reader(archive, by_place[place], path.name)) for place in sorted(by_place))
    return Listing(path.name, files, lambda: content_revision([path], {}))


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
        raise ExegesisError(f"{path.name}: is not a zip that can be read. Save or download it again.") from None


def _check_count(name: str, count: int) -> None:
    if count > MOST_FILES:
        raise ExegesisError(f"{name}: must hold at most {MOST_FILES:,} files, got {count:,}. Split it.")


def _check_member(name: str, member: zipfile.ZipInfo) -> None:
    place = PurePosixPath(member.filename.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0] or stat.S_ISLNK(member.external_attr >> 16):
        raise ExegesisError(f"{name}: {member.filename!r} leads out of the zip, which is refused. Pack it anew.")
    if member.flag_bits & 1:
        raise ExegesisError(f"{name}: {member.filename!r} is locked by a password. Pack it without one.")
    if member.file_size > LARGEST_FILE:
        allowed, got = byte_size(LARGEST_FILE), byte_size(member.file_size)
        raise ExegesisError(f"{name}: {member.filename!r} must unpack to at most {allowed}, got {got}. Leave it out.")


def _reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise ExegesisError(f"{path.name}: cannot be read ({error.strerror}). Check its permissions.") from None

    return read


def _member_reader(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            with archive.open(member) as file:
                # One byte more than it says: a member that unpacks to more than its header is a bomb.
                data = file.read(member.file_size + 1)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError):
            raise ExegesisError(f"{name}: {member.filename!r} is damaged. Save or download the zip again.") from None
        if len(data) > member.file_size:
            raise ExegesisError(f"{name}: {member.filename!r} unpacks to more than it says, which is refused.")
        return data

    return read


def digest(*parts: object) -> str:
    """SHA-256 over plain values, for what is made by a rule."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()
