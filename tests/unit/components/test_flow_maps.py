"""Maps of several settings of a flow: which are compared, what they are called, whether their numbers are rollout's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from components.attention.look import FlowLook
from components.flow.maps import Setting, about, counted, maps_html, maps_of, settings, title_of
from engine.explainers.attention import rollout
from engine.heads.readings import HeadReading
from engine.request import Example, Picture
from tests.unit.components.flows import TEXT, picture, picture_reading, text_reading

THESIS, HALF = Setting(0.0), Setting(0.5)


def rolled(reading: HeadReading, setting: Setting) -> np.ndarray:
    layers = torch.from_numpy(reading.attention).double().mean(1)[setting.start_layer :]
    return np.asarray(reading.reads @ rollout(layers, setting.residual).numpy())


@pytest.mark.parametrize(
    ("chosen", "compared"),
    [
        (Setting(0.3, 2), [THESIS, HALF, Setting(0.3, 2)]),
        (Setting(0.0, 1), [THESIS, HALF, Setting(0.0, 1)]),
        (HALF, [THESIS, HALF, Setting(0.5, 3)]),
        (THESIS, [THESIS, HALF, Setting(0.0, 3)]),
        (None, [THESIS, HALF]),
    ],
)
def test_what_was_chosen_stands_beside_both_papers_or_else_a_later_first_layer(
    chosen: Setting | None, compared: list[Setting]
) -> None:
    assert list(settings(chosen, 6)) == compared


def test_a_model_of_one_layer_has_no_later_one() -> None:
    assert settings(HALF, 1) == (THESIS, HALF)


@pytest.mark.parametrize("reading", [text_reading(), picture_reading()], ids=["text", "picture"])
def test_each_map_is_rollout_read_where_the_prediction_reads(reading: HeadReading) -> None:
    shown = maps_of(reading, FlowLook(residual=0.3, start_layer=2))
    assert [one.title for one in shown] == [
        "Residual 0, as in the thesis",
        "Residual 0.5, as Abnar and Zuidema",
        "Residual 0.3, from layer 2 (chosen)",
    ]
    for one, setting in zip(shown, (THESIS, HALF, Setting(0.3, 2)), strict=True):
        np.testing.assert_allclose(one.shares, rolled(reading, setting), atol=2e-3)
        assert one.shares.sum() == pytest.approx(1)


def test_gradient_weighted_flow_stands_beside_both_papers() -> None:
    reading = text_reading(layers=1)
    reading = dataclasses.replace(reading, weighted=np.zeros_like(reading.weighted))
    *rolled_out, own = maps_of(reading, FlowLook(kind="gradient"))
    assert [one.title for one in rolled_out] == ["Residual 0, as in the thesis", "Residual 0.5, as Abnar and Zuidema"]
    assert own.title == "Gradient-weighted (chosen)"
    np.testing.assert_allclose(own.shares, reading.reads)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (THESIS, "Attention alone"),
        (HALF, "Half of each position"),
        (Setting(0.25), "25\u00a0% of each position"),
        (Setting(0.5, 3), "Only layers 3 to 5 count."),
        (Setting(0.0, 5), "Only layer 5 counts."),
    ],
)
def test_each_setting_says_what_it_does(setting: Setting, said: str) -> None:
    assert about(setting, 6).startswith(said)


def test_names() -> None:
    assert title_of(Setting(0.5, 3), chosen=False) == "Residual 0.5, from layer 3"
    assert title_of(THESIS, chosen=True) == "Residual 0, as in the thesis (chosen)"
    assert counted(3, 6) == "layers 3 to 5 count"


def test_maps_of_a_text_are_its_tokens_and_escaped() -> None:
    text = TEXT.replace("thin", "<b>")
    drawn = maps_html(maps_of(text_reading(text), FlowLook()), text_reading(text), Example(text))
    assert drawn.count('class="xg-map') == 3
    assert "<b>" not in drawn
    assert "superb" in drawn


def test_maps_of_a_picture_say_where_they_are_largest() -> None:
    reading = picture_reading((4, 6))
    shown = maps_of(reading, FlowLook())
    drawn = maps_html(shown, reading, Picture(picture()))
    assert drawn.count('role="img"') == 3
    largest = reading.of.tokens[1 + int(shown[0].shares[1:].argmax())].text
    assert f'aria-label="{shown[0].title}. 4 rows, 6 columns. Largest: {largest} ' in drawn
