"""Files that commands write: the old one or the new one, never a part. Progress without a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from engine.cli import output
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


def test_progress_in_a_log_is_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    for lines, printed in ((False, "3/9 part 3\n7/9 part 7\n"), (True, "1/9 part 1: closed\n5/9 part 5\n")):
        now[0] = 0.0
        with output.progress_bar("working", lines=lines) as report:
            for done in range(1, 8):
                now[0] = {1: 20.0, 2: 59.9, 3: 60.0, 4: 70.0, 5: 119.9, 6: 119.9, 7: 120.0}[done]
                report(done, 9, f"part {done}: closed" if lines and done == 1 else f"part {done}")
        assert capsys.readouterr().err == printed
