"""What is looked at before a study opens is what its opening chooses, and no model is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from components.study.items import awaits_model, example_card, item_count, preview_items
from engine.data.sources import ExampleSource, load_source
from engine.request import Prompt
from engine.study.design import Design, ItemChoice
from engine.study.items import read_candidates, select_items
from tests.unit.study.samples import LABELS, TEXTS, image_design, text_design

pytestmark = pytest.mark.usefixtures("store")
HOWS = {
    "seed": ItemChoice(count=3),
    "filter": ItemChoice("filter", count=2, label="good", least_words=2),
    "hand": ItemChoice("hand", indices=(4, 0, 2, 5)),
}


def source(design: Design) -> ExampleSource:
    return load_source(design.kind, design.dataset, design.items.split)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_first_items_are_those_that_the_opening_chooses(kind: str, how: str, tmp_path: Path) -> None:
    make = text_design if kind == "text" else image_design
    names = {} if kind == "text" else {"names": ("bad", "good")}
    design = make(tmp_path, **names, items=dataclasses.replace(HOWS[how], least_words=0))
    opened = {(one.index, one.practice, one.label) for one in select_items(design)}
    unseen = dataclasses.replace(design, model="no/such")
    shown = [(one.index, practice, one.label) for one, practice in preview_items(unseen, source(design), 99)]
    assert len(shown) == item_count(design)
    assert set(shown) == opened
    assert [(one.index, practice, one.label) for one, practice in preview_items(unseen, source(design), 2)] == shown[:2]


def test_what_the_model_decides_is_left_open(tmp_path: Path) -> None:
    design = text_design(tmp_path, items=ItemChoice("filter", count=1, judged="wrong"))
    assert awaits_model(design)
    first = preview_items(design, source(design))
    assert [practice for _, practice in first] == [False, False]
    drawn = dataclasses.replace(design, items=ItemChoice(count=1))
    assert [one for one, _ in first] == [one for one, _ in preview_items(drawn, source(design))]


def test_an_example_is_shown_in_short(tmp_path: Path) -> None:
    design = text_design(tmp_path)
    look = example_card(source(design).read(1))
    assert (look.name, look.text, look.url) == (f"1 · {LABELS[1]}", TEXTS[1], "")
    prompt = Prompt("The doctors", target=" were", contrast=" was")
    assert example_card(dataclasses.replace(source(design).read(1), input=prompt)).text == "The doctors"
    pictures = image_design(tmp_path)
    seen = example_card(next(read_candidates(pictures, source(pictures))))
    assert seen.url.startswith("data:image/webp;base64,")
    assert seen.text == ""
