"""Maps of a picture as files to keep: a sheet of them, a table, JSON, and the command that makes the numbers again."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from components.citing import Shown, arguments_of, cite, json_of, references
from components.inputs.picture_choice import PictureFocus
from components.looked_at import command_line, picture_arguments
from components.numbers import percent
from components.picture.look import PLAIN_PICTURE, PictureLook
from components.picture.truth import truth_lines
from components.scales import ends_of
from components.widgets.patch_map.card import extent, patch_card, patch_map
from components.widgets.patch_map.png import Sheet, sheet_png
from engine.errors import UsageError
from engine.result import Explanation
from engine.table_io import escape_cell
from engine.vision.view import read_view

COLUMNS = ("method", "row", "column", "score", "rank", "in_mask", "pinned")


@dataclass(frozen=True)
class KeptPicture:
    """What is kept: the picture, each method shown with its explanation, the patches of the truth, the pinned ones.

    `pins` are numbers of patches, row by row from 0. `seed` breaks ties where maps are held against the truth.
    """

    focus: PictureFocus
    shown: Shown
    truth: Bool[np.ndarray, "row column"] | None = None
    pins: tuple[int, ...] = ()
    look: PictureLook = PLAIN_PICTURE
    seed: int = 0

    @property
    def first(self) -> Explanation:
        return self.shown[0][1]


def png(kept: KeptPicture) -> bytes:
    """The picture and its maps side by side as the page shows them, in its light theme, with references."""
    return sheet_png(sheet(kept), "light")


def sheet(kept: KeptPicture) -> Sheet:
    """What the picture of all maps shows."""
    view, look, picture = read_view(kept.focus.model), kept.look, kept.focus.picture
    if picture is None:
        raise UsageError(f"picture: {kept.focus.error}")
    ends = ends_of(kept.shown, extent) if look.maps.shared else {}
    cards = (
        patch_card(method, made, (), look.maps, ends, tuple(truth_lines(made, kept.truth, kept.seed)))
        for method, made in kept.shown
    )
    mask = kept.focus.mask if look.outline else None
    return Sheet(
        seen=view.transform(picture.pixels),
        cards=tuple(cards),
        head=_head(kept),
        foot=(cite(kept.shown), *references(kept.shown)),
        truth=None if mask is None else view.transform_mask(mask),
        pins=kept.pins,
        opacity=look.opacity / 100,
    )


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
            writer.writerow([escape_cell(method.id), *place, _inside(kept, at), _told(at in kept.pins)])
    return sheet.getvalue()


def json_list(kept: KeptPicture) -> str:
    """What `exegesis explain --json` prints: a list, one object a method."""
    return json_of(kept.shown)


def command(kept: KeptPicture) -> str:
    """The command that makes the same numbers, quoted for a POSIX shell."""
    return command_line(arguments(kept))


def arguments(kept: KeptPicture) -> list[str]:
    """The command's arguments."""
    return arguments_of(kept.shown, picture_arguments(kept.focus))


def _head(kept: KeptPicture) -> tuple[str, str]:
    origin, prediction = kept.first.provenance, kept.first.prediction
    share = percent(prediction.probabilities[prediction.index])
    explained = "" if origin.target == prediction.index else f" Explained: {origin.target_label}."
    return f"Explanations of one prediction of {origin.model}", f"Predicted: {prediction.label}, {share}.{explained}"


def _inside(kept: KeptPicture, at: int) -> str:
    return "" if kept.truth is None else _told(bool(kept.truth.flat[at]))


def _told(yes: bool) -> str:
    return "true" if yes else "false"
