"""`exegesis counterfactuals`: what flips and what was tried, as a table, JSON and files."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

from pyarrow import parquet

from engine.counterfactuals.search import SearchOptions
from tests.unit.cli.conftest import Run


def test_counterfactuals_print_what_flips_and_what_was_tried(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "flips.csv"
    typed = ("counterfactuals", "--model", "gpt2-context", "--text", "The food was cold and slow.", "--results", "2")
    done = run(*typed, "--out", str(file))
    assert (done.code, done.err) == (0, "")
    assert "gpt2-context predicts negative" in done.out
    assert "changes of one word flip the prediction." in done.out
    plain = run(*typed, "--json").json
    assert len(plain["results"]) == 2
    assert plain["options"]["results"] == 2
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert {row["text"] for row in rows} == {one["example"]["text"] for one in plain["results"]}
    for ending in ("json", "parquet"):
        assert run(*typed, "--out", str(tmp_path / f"flips.{ending}")).code == 0
    table = parquet.read_table(tmp_path / "flips.parquet")
    assert table.to_pylist() == json.loads((tmp_path / "flips.json").read_text(encoding="utf-8"))
    assert table.column_names == list(rows[0])


def test_counterfactuals_that_find_nothing_say_what_to_try(run: Run) -> None:
    done = run("counterfactuals", "--model", "bert-quality", "--text", "A film.", "--threshold", "99")
    assert done.code == 0
    assert "Nothing that was tried flips it. The closest:" in done.out
    assert "Raise --most-changes" in done.out
    assert run("counterfactuals", "--text", "x", "--dataset", "digits").code == 2


def test_a_picture_loses_patches(run: Run, tmp_path: Path) -> None:
    typed = ("counterfactuals", "--model", "scenes-marked-vit", "--dataset", "scenes-marked", "--index", "0")
    done = run(*typed, "--out", str(tmp_path / "flips.parquet"))
    assert (done.code, done.err) == (0, "")
    assert "1 of 64 single patches flips it." in done.out
    assert parquet.read_table(tmp_path / "flips.parquet").num_rows == 1
    assert run(*typed, "--json").json["results"][0]["prediction"]["labels"]
    assert run(*typed, "--beam", "3").err.startswith("error: --beam: serves texts only.")
    assert run("counterfactuals", "--text", "x", "--removal", "mean").err.startswith("error: --removal: serves images")


def test_the_help_of_counterfactuals_names_the_defaults_of_the_search(run: Run) -> None:
    text = " ".join(run("counterfactuals", "--help").out.replace("│", " ").split())
    for name, default in dataclasses.asdict(SearchOptions()).items():
        shown = ",".join(default) if isinstance(default, tuple) else str(default)
        assert re.search(rf"--{name.replace('_', '-')} .*?\[default: {re.escape(shown)}\]", text), name
