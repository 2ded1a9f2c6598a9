"""Maps of a picture as files to keep: a table, JSON, and the command that makes the same numbers again."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from components.citing import Shown, arguments_of, defused, json_of
from components.patch_card import patch_map
from components.picture_focus import PictureFocus

PICTURE_FILE = "picture.png"
COLUMNS = ("method", "row", "column", "score", "rank", "in_mask", "pinned")


@dataclass(frozen=True)
class KeptPicture:
    """What is kept: the picture, each method shown with its explanation, the patches of the truth, the pinned ones.

    `pins` are numbers of patches, row by row from 0.
    """

    focus: PictureFocus
    shown: Shown
    truth: Bool[np.ndarray, "row column"] | None = None
    pins: tuple[int, ...] = ()


def csv_table(kept: KeptPicture) -> str:
    """A row a patch a method. Rows and columns count from 1, as ranks do: 1 is the largest score whatever its sign.

    `in_mask` is empty where the truth is not known. Scores are written in full.
    """
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for method, made in kept.shown:
        view = patch_map(method, made)
        for at, score in enumerate(view.scores.ravel().tolist()):
            row, column = divmod(at, view.grid[1])
            place = [row + 1, column + 1, repr(score), view.ranks[at]]
            writer.writerow([defused(method.id), *place, _inside(kept, at), _told(at in kept.pins)])
    return sheet.getvalue()


def json_list(kept: KeptPicture) -> str:
    """What `exegesis explain --json` prints: a list, one object a method."""
    return json_of(kept.shown)


def command(kept: KeptPicture) -> str:
    """The command that makes the same numbers, quoted for a POSIX shell."""
    return shlex.join(["exegesis", *arguments(kept)])


def arguments(kept: KeptPicture) -> list[str]:
    """The command's arguments."""
    focus = kept.focus
    if focus.own:
        return arguments_of(kept.shown, ["--image", PICTURE_FILE])
    split = ["--split", focus.split] if focus.split else []
    return arguments_of(kept.shown, ["--dataset", focus.data, *split, "--index", str(focus.index)])


def picture_file(kept: KeptPicture) -> bytes:
    """The picture as it came, without loss: what the command reads."""
    from PIL import Image

    file = io.BytesIO()
    if kept.focus.picture is not None:
        Image.fromarray(kept.focus.picture.pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def _inside(kept: KeptPicture, at: int) -> str:
    return "" if kept.truth is None else _told(bool(kept.truth.flat[at]))


def _told(yes: bool) -> str:
    return "true" if yes else "false"
