"""Files that commands write: the old one or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from engine.cli.output import check_place, write_file
from engine.errors import ExegesisError, UsageError


def test_a_file_is_replaced_whole_and_a_failure_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.csv"
    write_file("--out", file, b"old")
    write_file("--out", file, b"new")
    assert file.read_bytes() == b"new"

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExegesisError, match=r"--out: .*rows.csv cannot be written \(No space left on device\)"):
        write_file("--out", file, b"newer")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_file("--out", tmp_path / "link", b"rows")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"rows"
    write_file("--out", Path(os.devnull), b"rows")
    assert not Path(os.devnull).is_file()


def test_a_place_where_no_file_can_be_is_refused_early(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--out: must be a file, got the folder"):
        check_place("--out", tmp_path)
    with pytest.raises(UsageError, match=r"is not a folder\. Create it first"):
        check_place("--out", tmp_path / "none" / "rows.csv")
