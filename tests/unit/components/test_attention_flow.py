"""Maps of several settings of a flow: which are compared, their titles, and their numbers against rollout's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from components.attention.flow import (
    RolloutSetting,
    compare_flow_maps,
    compared_settings,
    describe_layers,
    describe_setting,
    flow_maps_html,
    setting_title,
)
from components.attention.state import FlowOptions
from engine.explainers.attention import rollout
from engine.heads.readings import HeadReading
from engine.request import Example, Picture
from tests.unit.components.flow_readings import TEXT, picture, picture_reading, text_reading

THESIS, HALF = RolloutSetting(0.0), RolloutSetting(0.5)


def rolled(reading: HeadReading, setting: RolloutSetting) -> np.ndarray:
    layers = torch.from_numpy(reading.attention).double().mean(1)[setting.start_layer :]
    return np.asarray(reading.reads @ rollout(layers, setting.residual).numpy())


@pytest.mark.parametrize(
    ("chosen", "compared"),
    [
        (RolloutSetting(0.3, 2), [THESIS, HALF, RolloutSetting(0.3, 2)]),
        (RolloutSetting(0.0, 1), [THESIS, HALF, RolloutSetting(0.0, 1)]),
        (HALF, [THESIS, HALF, RolloutSetting(0.5, 3)]),
        (THESIS, [THESIS, HALF, RolloutSetting(0.0, 3)]),
        (None, [THESIS, HALF]),
    ],
)
def test_what_was_chosen_stands_beside_both_papers_or_else_a_later_first_layer(
    chosen: RolloutSetting | None, compared: list[RolloutSetting]
) -> None:
    assert list(compared_settings(chosen, 6)) == compared


def test_a_model_of_one_layer_has_no_later_one() -> None:
    assert compared_settings(HALF, 1) == (THESIS, HALF)


@pytest.mark.parametrize("reading", [text_reading(), picture_reading()], ids=["text", "picture"])
def test_each_map_is_rollout_read_where_the_prediction_reads(reading: HeadReading) -> None:
    shown = compare_flow_maps(reading, FlowOptions(residual=0.3, start_layer=2))
    assert [one.title for one in shown] == [
        "Residual 0, as in the thesis",
        "Residual 0.5, as in Abnar and Zuidema",
        "Residual 0.3, from layer 2 (chosen)",
    ]
    for one, setting in zip(shown, (THESIS, HALF, RolloutSetting(0.3, 2)), strict=True):
        np.testing.assert_allclose(one.shares, rolled(reading, setting), atol=2e-3)
        assert one.shares.sum() == pytest.approx(1)


def test_gradient_weighted_flow_stands_beside_both_papers() -> None:
    reading = text_reading(layers=1)
    reading = dataclasses.replace(reading, weighted=np.zeros_like(reading.weighted))
    *rolled_out, own = compare_flow_maps(reading, FlowOptions(kind="gradient"))
    titles = ["Residual 0, as in the thesis", "Residual 0.5, as in Abnar and Zuidema"]
    assert [one.title for one in rolled_out] == titles
    assert own.title == "Gradient-weighted (chosen)"
    np.testing.assert_allclose(own.shares, reading.reads)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (THESIS, "Attention alone"),
        (HALF, "Half of each position"),
        (RolloutSetting(0.25), "25% of each position"),
        (RolloutSetting(0.5, 3), "Only layers 3 to 5 count."),
        (RolloutSetting(0.0, 5), "Only layer 5 counts."),
    ],
)
def test_each_setting_says_what_it_does(setting: RolloutSetting, said: str) -> None:
    assert describe_setting(setting, 6).startswith(said)


def test_names() -> None:
    assert setting_title(RolloutSetting(0.5, 3), chosen=False) == "Residual 0.5, from layer 3"
    assert setting_title(THESIS, chosen=True) == "Residual 0, as in the thesis (chosen)"
    assert describe_layers(3, 6) == "layers 3 to 5 count"


def test_maps_of_a_text_are_its_tokens_and_escaped() -> None:
    text = TEXT.replace("thin", "<b>")
    drawn = flow_maps_html(compare_flow_maps(text_reading(text), FlowOptions()), text_reading(text), Example(text))
    assert drawn.count('class="xg-map') == 3
    assert "<b>" not in drawn
    assert "superb" in drawn


def test_maps_of_a_picture_say_where_they_are_largest() -> None:
    reading = picture_reading((4, 6))
    shown = compare_flow_maps(reading, FlowOptions())
    drawn = flow_maps_html(shown, reading, Picture(picture()))
    assert drawn.count('role="img"') == 3
    largest = reading.explanation.tokens[1 + int(shown[0].shares[1:].argmax())].text
    assert f'aria-label="{shown[0].title}. 4 rows, 6 columns. Largest: {largest} ' in drawn
