"""Results of the Python interface: tables and files as on the page, reloading, and HTML for notebooks."""

from __future__ import annotations

import dataclasses
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import exegesis
from components.images.export import PictureExport
from components.images.export import csv_table as picture_csv
from components.inputs.picture_choice import PictureFocus
from components.method_row import method_row, method_row_html
from components.text.export import TextExport, csv_table, json_list
from components.widgets.patch_map import patch_map, patches_html
from engine.registry import explainer
from exegesis.results import write_archive

TEXT = "A fine film. <script>alert(1)</script> positive"
METHODS = ["gradient_x_input", "occlusion"]


@pytest.fixture(scope="module")
def result() -> exegesis.Explanations:
    return exegesis.explain("bert-marked", TEXT, METHODS, progress=False)


@pytest.fixture(scope="module")
def picture() -> exegesis.Explanations:
    methods = ["gradient_x_input", "grad_cam"]
    return exegesis.explain("scenes-vit", exegesis.example("scenes", 2), methods, progress=False)


def explained(result: exegesis.Explanations) -> Any:
    return tuple((explainer(one.provenance.method, result.input.kind), one) for one in result)


def test_rows_and_values_are_those_of_the_pages_files(
    result: exegesis.Explanations, picture: exegesis.Explanations, tmp_path: Path
) -> None:
    export = TextExport(result.input, "token", explained(result))  # type: ignore[arg-type]
    assert result.to_dict()["explanations"] == json.loads(json_list(export))
    file = result.save(tmp_path / "scores.csv")
    assert [line.lower() for line in file.read_text().splitlines()] == csv_table(export).lower().splitlines()
    page = picture_csv(PictureExport(PictureFocus("scenes-vit"), explained(picture)))
    columns = [line.split(",")[:5] for line in page.splitlines()]
    assert [line.split(",") for line in picture.save(tmp_path / "p.csv").read_text().splitlines()] == columns


def test_a_data_frame_has_a_row_a_token(result: exegesis.Explanations) -> None:
    frame = result.to_pandas()
    assert list(frame) == ["token", "start", "end", "segment", "special", *METHODS]
    assert frame["occlusion"].tolist() == result["occlusion"].scores.tolist()
    assert frame["special"].sum() == 2
    assert [TEXT[start:end].lower() for start, end in zip(frame.start, frame.end, strict=True)][1] == "a"


def test_results_are_frozen_sequences(result: exegesis.Explanations) -> None:
    assert result["occlusion"] is result[1]
    assert [one.provenance.method for one in result] == METHODS == list(result.methods)
    assert len(result[:1]) == 1
    with pytest.raises(exegesis.UsageError, match=r"method: unknown name 'lime'\. Known: gradient_x_input, occlusion"):
        result["lime"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.target = 1  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        result[0].scores[0] = 1
    assert result.cautions["occlusion"] == (explainer("occlusion").caution, *result["occlusion"].remarks)


@pytest.mark.parametrize("name", ["result", "picture"])
def test_an_archive_gives_the_same_result(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    before: exegesis.Explanations = request.getfixturevalue(name)
    after = exegesis.load(before.save(tmp_path / "maps.npz"))
    assert isinstance(after, exegesis.Explanations)
    assert (after.input, after.target, after.methods) == (before.input, before.target, before.methods)
    for one, other in zip(after, before, strict=True):
        assert dataclasses.replace(one, scores=other.scores, cached=other.cached) == other
        np.testing.assert_array_equal(one.scores, other.scores)
    with np.load(tmp_path / "maps.npz") as opened:  # anyone can read it
        np.testing.assert_array_equal(opened["0.scores"], before[0].scores)


def test_tables_and_values_are_read_back(result: exegesis.Explanations, tmp_path: Path) -> None:
    for suffix in ("csv", "parquet"):
        frame = exegesis.load(result.save(tmp_path / f"scores.{suffix}"))
        pd.testing.assert_frame_equal(frame, result.to_pandas(), check_dtype=False)
    assert exegesis.load(result.save(tmp_path / "scores.json")) == result.to_dict()


def test_a_formula_is_no_formula_in_a_file(tmp_path: Path) -> None:
    formula = exegesis.explain("bert-marked", "=1+2 positive", "random", progress=False)
    file = formula.save(tmp_path / "scores.csv")
    assert "'=" in file.read_text()
    assert exegesis.load(file)["token"][1] == "="


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("maps.pkl", b"", r"path: must be a file whose name ends with one of .csv, .json, .parquet, .npz, got"),
        ("maps.npz", b"PK\3\4", r"path: maps.npz is no result that save wrote \("),
        ("maps.json", b"{", r"path: maps.json cannot be read \(JSONDecodeError: .*\). Save it again.$"),
        ("maps.json", b"[" * 100_000, r"path: maps.json cannot be read \(RecursionError: .*\). Save it again.$"),
        ("maps.json", b"\xff", r"path: maps.json cannot be read \(UnicodeDecodeError: "),
        ("maps.parquet", b"PAR1" + bytes(20) + b"PAR1", r"path: maps.parquet cannot be read \(.*\). Save it again.$"),
        ("maps.csv", b"", r"path: maps.csv cannot be read \(EmptyDataError: "),
        ("missing.csv", None, r"path: no file .*missing.csv"),
    ],
)
def test_files_that_cannot_be_read(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(exegesis.ExegesisError, match=message):
        exegesis.load(tmp_path / name)


def test_an_edited_archive_is_refused_when_it_is_read(result: exegesis.Explanations, tmp_path: Path) -> None:
    file = result.save(tmp_path / "maps.npz")
    with np.load(file) as opened:
        parts = dict(opened)
    header = json.loads(bytes(parts["exegesis"]))
    header["meta"]["explanations"][0]["seconds"] = "x"
    parts["exegesis"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(file, **parts)
    with pytest.raises(exegesis.ExegesisError, match=r"maps\.npz is damaged or of another version"):
        exegesis.load(file)


def test_a_hostile_archive_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bomb.npz"
    np.savez(file, exegesis=np.array([object()], dtype=object))  # stored as a pickle
    with pytest.raises(exegesis.ExegesisError, match="is no result that save wrote"):
        exegesis.load(file)
    file.write_bytes(write_archive("explanations", {"input": {}, "target": None, "explanations": [{}]}, [{}, {}]))
    with pytest.raises(exegesis.ExegesisError, match="is damaged or of another version"):
        exegesis.load(file)
    header = json.dumps({"kind": "explanations", "parts": 10**9, "meta": {}}).encode()
    np.savez_compressed(file, exegesis=np.frombuffer(header, np.uint8))
    with pytest.raises(exegesis.ExegesisError, match=r"is no result that save wrote \(ValueError: 1000000000 parts\)"):
        exegesis.load(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("exegesis.npy", bytes(5000))
    monkeypatch.setattr("exegesis.results.LARGEST_ARCHIVE", 4999)
    with pytest.raises(exegesis.ExegesisError, match="must unpack to at most"):
        exegesis.load(file)


def test_a_place_that_cannot_be_written_is_named(result: exegesis.Explanations, tmp_path: Path) -> None:
    with pytest.raises(exegesis.UsageError, match=r"path: .*nowhere is not a folder"):
        result.save(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(exegesis.UsageError, match="path: must be a file whose name ends with one of"):
        result.save(tmp_path / "x.txt")


def test_the_maps_in_a_notebook_are_those_of_the_pages(
    result: exegesis.Explanations, picture: exegesis.Explanations
) -> None:
    html = result._repr_html_()
    for method, one in explained(result):
        assert method_row_html(method_row(method, one, result.input, "token")) in html  # type: ignore[arg-type]
    cards = picture._repr_html_()
    for method, one in explained(picture):
        assert patches_html(method.title, patch_map(method, one)) in cards
    assert "data:image/png;base64," in cards


@pytest.mark.parametrize("name", ["result", "picture"])
def test_an_output_is_safe_small_and_self_contained(name: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(name)._repr_html_()
    assert len(html) < 40_000
    assert "<script" not in html
    assert not re.search(r"(?:src|href|url\()\s*=?[\"']?(?!data:)(?:https?:)?//", html)
    for theme in ("color-scheme:light dark", "data-jp-theme-light", "vscode-dark", "html[theme=dark]"):
        assert theme in html
    used = set(re.findall(r'class="?([fam]\d+)\b', html))
    assert used <= set(re.findall(r"\.xg \.([fam]\d+)\{", html))
    bundle = request.getfixturevalue(name)._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Explanations of ")


def test_a_map_has_the_units_of_the_page(result: exegesis.Explanations) -> None:
    assert result.to_html("word") != result.to_html()
    with pytest.raises(exegesis.UsageError, match="unit: unknown name 'patch'"):
        result.to_html("patch")


def test_the_text_of_a_result_is_a_few_lines(result: exegesis.Explanations) -> None:
    lines = repr(result).splitlines()
    assert len(lines) == 1 + len(METHODS)
    assert "'positive'" in lines[0]
    top = result["occlusion"]
    name = top.tokens[int(np.abs(top.scores).argmax())].text
    assert f"occlusion         '{name}'" in lines[2]
    hostile = exegesis.explain("bert-marked", "a \x1b[31m b", "random", progress=False)
    assert "\x1b" not in repr(hostile)
