"""The page about Captum holds what its benchmark writes: all methods, the command, sentences by its rules."""

from __future__ import annotations

import re
from pathlib import Path

import captum.attr
import pytest

import benchmarks.captum
from benchmarks.captum import BEGIN, COMMAND, COMPARISONS, END, FILE, HEADER, Figures, describe_differences, render
from engine.registry import all_explainers

NUMBER = re.compile(r"\d[\d.,]*(e[-+]\d+)?")
SAME = Figures(0.5, 0.5, 2.0, 2.0, 1.0)


def generated() -> list[str]:
    """The committed lines between the markers."""
    return FILE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def parsed(cell: str) -> float:
    return float(cell.replace(",", ""))


def words(lines: list[str]) -> list[list[str]]:
    """The table without its figures."""
    return [[NUMBER.sub("#", cell) if place >= 4 else cell for place, cell in enumerate(cells(line))] for line in lines]


def test_the_committed_table_has_the_layout_of_the_generator() -> None:
    committed = generated()
    layout = render({one.method: SAME for one in COMPARISONS}, "today").splitlines()
    assert committed[0].startswith(f"`{COMMAND}`, ")
    assert tuple(cells(committed[2])) == HEADER
    assert words(committed[2:-3]) == words(layout[2:-3])
    figures = {cells(line)[0].strip("`"): Figures(*map(parsed, cells(line)[4:])) for line in committed[4:-3]}
    assert committed[-2:] == describe_differences(figures), "the sentences are those of the figures"


def test_every_method_is_ours_and_captums() -> None:
    registered = {kind: set(all_explainers(kind)) for kind in ("text", "image")}
    assert all(one.method in registered[one.kind] for one in COMPARISONS)
    assert len({one.method for one in COMPARISONS}) == len(COMPARISONS)
    assert all(hasattr(captum.attr, one.captum) for one in COMPARISONS)


def test_a_difference_is_named_on_the_side_that_it_is_for() -> None:
    exact, rounding = Figures(0.01, 0.05, 3.0, 1.0, 0.25), Figures(1e-7, 9e-7, 1.0, 2.0, 2.0)
    assert describe_differences({"kernel_shap": exact, "gradient_l2": rounding, "lime": SAME}) == [
        "Ours is more exact at `kernel_shap` (5.0 times); Captum's at none.",
        "Ours is faster at `gradient_l2` (2.0 times); Captum's at `kernel_shap` (4.0 times).",
    ]


def test_the_page_keeps_its_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "captum.md"
    file.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.setattr(benchmarks.captum, "FILE", file)
    benchmarks.captum.write_page("new")
    assert file.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
