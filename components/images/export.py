"""The export of the Images page: maps and scores as files, with the citation and the command that reproduces them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.export import (
    ExplainedMethods,
    FileOf,
    cite,
    cite_html,
    command_line,
    explain_arguments,
    explanations_json,
    export_area,
    input_arguments,
    references,
)
from components.images.results import PatchMask, describe_agreement
from components.images.state import DEFAULT_PICTURE_VIEW, PictureState, PictureViewOptions
from components.inputs.picture_choice import PictureFocus
from components.map_rows import patch_rows
from components.numbers import percent
from components.progress import shared_scale_ends
from components.widgets.patch_map import extent, patch_card
from components.widgets.patch_map.png import Sheet, sheet_png
from engine.errors import UsageError
from engine.registry import Explainer
from engine.result import Explanation
from engine.table_io import to_csv
from engine.vision.picture import read_view

FLAGS = {True: "true", False: "false"}


@dataclass(frozen=True)
class PictureExport:
    """The content of the exported files.

    `truth`: the patches of the labeled object. `pins`: indices of the pinned patches, row by row from 0. `seed`: breaks
    ties when maps are compared with the truth.
    """

    focus: PictureFocus
    methods: ExplainedMethods
    truth: PatchMask | None = None
    pins: tuple[int, ...] = ()
    view: PictureViewOptions = DEFAULT_PICTURE_VIEW
    seed: int = 0

    @property
    def first(self) -> Explanation:
        return self.methods[0][1]


def export_png(export: PictureExport) -> bytes:
    """Return a PNG of the picture and its maps side by side as on the page, in the light theme, with references."""
    return sheet_png(picture_sheet(export), "light")


def picture_sheet(export: PictureExport) -> Sheet:
    """Return the content of the PNG file."""
    model_view, view, picture = read_view(export.focus.model), export.view, export.focus.picture
    if picture is None:
        raise UsageError(f"picture: {export.focus.error}")
    ends = shared_scale_ends(export.methods, extent) if view.maps.shared else {}
    cards = (
        patch_card(method, one, (), view.maps, ends, tuple(describe_agreement(one, export.truth, export.seed)))
        for method, one in export.methods
    )
    mask = export.focus.mask if view.outline else None
    origin, prediction = export.first.provenance, export.first.prediction
    predicted = f"Predicted: {prediction.label}, {percent(prediction.probabilities[prediction.index])}."
    explained = "" if origin.target == prediction.index else f" Explained: {origin.target_label}."
    return Sheet(
        picture=model_view.transform(picture.pixels),
        cards=tuple(cards),
        head=(f"Explanations of one prediction of {origin.model}", f"{predicted}{explained}"),
        foot=(cite(export.methods, None), *references(export.methods)),
        truth=None if mask is None else model_view.transform_mask(mask),
        pins=export.pins,
        opacity=view.opacity / 100,
    )


def csv_table(export: PictureExport) -> str:
    """Return CSV with a row per patch and method. Rows, columns and ranks count from 1.

    Rank 1 is the largest absolute score. `in_mask` is empty if the truth is unknown. Scores have full precision.
    """
    rows = (
        {
            **row,
            "in_mask": None if export.truth is None else FLAGS[bool(export.truth.flat[patch])],
            "pinned": FLAGS[patch in export.pins],
        }
        for method, explanation in export.methods
        for patch, row in enumerate(patch_rows(method, explanation))
    )
    return to_csv(rows, "\r\n")


def json_list(export: PictureExport) -> str:
    """Return the output of `exegesis explain --json`: a list with one object per method."""
    return explanations_json(export.methods)


def command(export: PictureExport) -> str:
    """Return the command that reproduces the scores, quoted for a POSIX shell."""
    return command_line(command_arguments(export))


def command_arguments(export: PictureExport) -> list[str]:
    """Return the arguments of the command."""
    return explain_arguments(export.methods, input_arguments(export.focus), export.focus.input)


FILES: Sequence[FileOf[PictureExport]] = (
    ("PNG", "exegesis-maps.png", "image/png", export_png,
     "The picture and its maps side by side, with references, in the light theme."),
    ("CSV", "exegesis-patches.csv", "text/csv", csv_table, "One row per patch and method."),
    ("JSON", "exegesis-patches.json", "application/json", json_list, "The output of the command below."),
)  # fmt: skip


def draw_export(
    state: PictureState,
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
    truth: PatchMask | None,
) -> None:
    """Draw the download buttons and the citation. A file is only built when its button is pressed."""
    if not explanations:
        return
    explained = tuple((methods[id], explanation) for id, explanation in explanations.items())
    export = PictureExport(state.focus, explained, truth, state.pins, state.view, state.seed)
    export_area("picture", FILES, export, state.focus, command(export), cite_html(explained, None))
