"""Maps of a picture as files: numbers that come back exactly, and a command that makes them again."""

from __future__ import annotations

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from components.export import ExplainedMethods, to_png
from components.images.export import (
    PictureExport,
    command,
    command_arguments,
    csv_table,
    export_png,
    json_list,
    picture_sheet,
)
from components.images.state import PictureViewOptions
from components.inputs.datasets import OpenPictures, open_pictures, read_picture, read_uploaded_picture
from components.inputs.picture_choice import PictureFocus
from engine.cli.root import app
from engine.explain import explain
from engine.registry import explainer
from engine.request import Picture, Request
from engine.store import store_picture
from tests.unit.vision.tiny_vit import save_vit

METHODS = ("gradient_x_input", "random")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def opened() -> OpenPictures:
    return open_pictures("scenes:count=3")


def shown_by(model: str, picture: Picture, target: str | None = None, seed: int = 0) -> ExplainedMethods:
    requests = [Request(model, id, picture, {}, target, seed) for id in METHODS]
    return tuple((explainer(one.method, "image"), explain(one)) for one in requests)


@pytest.fixture
def kept(model: str, opened: OpenPictures) -> PictureExport:
    """The second scene with a truth of two patches, one of them pinned."""
    focus = PictureFocus(model, opened.name, index=1, chosen=read_picture(opened, 1))
    assert focus.picture is not None
    truth = np.zeros((3, 3), dtype=bool)
    truth[0, 2] = truth[1, 1] = True
    return PictureExport(focus, shown_by(model, focus.picture), truth, (4,))


def rows_of(kept: PictureExport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table(kept))))


def test_the_table_has_every_score_in_full_with_its_place(kept: PictureExport) -> None:
    rows = rows_of(kept)
    assert list(rows[0]) == ["method", "row", "column", "score", "rank", "in_mask", "pinned"]
    assert len(rows) == len(METHODS) * 9
    for id, (_, made) in zip(METHODS, kept.methods, strict=True):
        mine = [row for row in rows if row["method"] == id]
        found = np.full((3, 3), np.nan)
        for row in mine:
            found[int(row["row"]) - 1, int(row["column"]) - 1] = float(row["score"])
        np.testing.assert_array_equal(found, made.on_grid)


def test_ranks_follow_the_size_of_scores(kept: PictureExport) -> None:
    for id in METHODS:
        mine = [row for row in rows_of(kept) if row["method"] == id]
        by_rank = sorted(mine, key=lambda row: int(row["rank"]))
        sizes = [abs(float(row["score"])) for row in by_rank]
        assert sizes == sorted(sizes, reverse=True)
        assert [row["rank"] for row in by_rank] == [str(rank) for rank in range(1, 10)]


def test_the_truth_and_the_pins_are_marked(kept: PictureExport) -> None:
    first = rows_of(kept)[:9]
    marked = [(row["row"], row["column"]) for row in first if row["in_mask"] == "true"]
    assert marked == [("1", "3"), ("2", "2")]
    assert [(row["row"], row["column"]) for row in first if row["pinned"] == "true"] == [("2", "2")]
    unknown = rows_of(PictureExport(kept.focus, kept.methods))
    assert {row["in_mask"] for row in unknown} == {""}


def test_json_is_what_the_command_line_prints(kept: PictureExport) -> None:
    told = json.loads(json_list(kept))
    assert [one["method"] for one in told] == list(METHODS)
    for one, (_, made) in zip(told, kept.methods, strict=True):
        assert one["grid"] == [3, 3]
        np.testing.assert_array_equal(np.array(one["scores"]), made.on_grid.ravel())


def test_the_sheet_shows_the_maps_as_the_page_does(kept: PictureExport) -> None:
    view = PictureViewOptions(opacity=30, gamma=0.5, outline=False)
    made = picture_sheet(replace(kept, view=view))
    assert made.opacity == 0.3
    assert made.truth is None
    assert made.pins == (4,)
    assert made.picture.shape == (24, 24, 3)
    for card, (method, found) in zip(made.cards, kept.methods, strict=True):
        assert card.title == method.title
        assert card.view.look.gamma == 0.5
        assert len(card.truth) == 2
        np.testing.assert_array_equal(card.view.scores, found.on_grid)
    outlined = picture_sheet(kept)
    assert outlined.truth is not None
    assert outlined.truth.shape == (24, 24)
    with Image.open(io.BytesIO(export_png(kept))) as file:
        assert file.format == "PNG"
        assert min(file.size) > 256


@pytest.mark.parametrize("target", [None, "eel"])
def test_the_command_makes_the_same_numbers(model: str, opened: OpenPictures, target: str | None) -> None:
    focus = PictureFocus(model, opened.name, index=2, chosen=read_picture(opened, 2))
    assert focus.picture is not None
    kept = PictureExport(focus, shown_by(model, focus.picture, target=target, seed=5))
    words = shlex.split(command(kept))
    assert words == ["exegesis", *command_arguments(kept)]
    assert ["--dataset", opened.name, "--index", "2"] == words[words.index("--dataset") : words.index("--dataset") + 4]
    same_numbers(words, kept)


def test_a_picture_of_ones_own_is_saved_for_the_command(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (31, 17, 3), dtype=np.uint8)
    digest = store_picture(pixels)
    shown = read_uploaded_picture(digest)
    assert shown is not None
    focus = PictureFocus(model, picture_sha=digest, chosen=shown)
    kept = PictureExport(focus, shown_by(model, Picture(pixels)))
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(to_png(pixels)))), pixels)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picture.png").write_bytes(to_png(pixels))
    same_numbers(shlex.split(command(kept)), kept)


def same_numbers(words: list[str], kept: PictureExport) -> None:
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.output
    for one, (_, made) in zip(json.loads(done.stdout), kept.methods, strict=True):
        np.testing.assert_array_equal(np.array(one["scores"]), made.on_grid.ravel())
