"""Agreement with an attribution in words: the numbers, and when attention must not be read as an explanation."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from components.attention.readings import CAUTION, HeadAgreement, agreement_html

RHO = np.array([[0.9, 0.2], [np.nan, -0.85]])
FOUND = HeadAgreement("Integrated gradients", "the attention received", "token", 9, RHO, 0.8)


def text(found: HeadAgreement, head: tuple[int, int], kind: str = "text") -> str:
    return re.sub(r"<[^>]+>", "", agreement_html(found, head, kind))


def test_a_head_beyond_chance() -> None:
    said = text(FOUND, (0, 0))
    assert "Head 0.0, shown above: ρ = +0.9. Best: head 0.0, ρ = +0.9." in said
    assert "chance alone takes one of 4 heads beyond |ρ| = 0.8" in said
    assert "Here 1 head is beyond it in the same order, 1 in the opposite order." in said
    assert "Head 0.0 orders the tokens like Integrated gradients, more than chance does" in said


@pytest.mark.parametrize("head", [(0, 1), (1, 0), (1, 1)])
def test_a_head_that_does_not_agree_is_said_to_be_no_explanation(head: tuple[int, int]) -> None:
    said = text(FOUND, head)
    assert f"Head {head[0]}.{head[1]} does not order the tokens like Integrated gradients beyond chance" in said
    assert "its map is not shown to explain here" in said
    assert ("its map is flat" in said) == (head == (1, 0))


def test_where_no_head_agrees() -> None:
    said = text(replace(FOUND, limit=0.95), (0, 0))
    assert "Here no heads are beyond it in the same order, none in the opposite order." in said
    assert "No head orders the tokens like Integrated gradients beyond chance" in said


def test_too_few_features_are_said_to_be_too_few() -> None:
    said = text(replace(FOUND, limit=None, n=3, unit="patch"), (0, 0), "picture")
    assert "Over 3 patches no ρ of the best of 4 heads can be told from chance." in said
    assert "This picture is too short for the test" not in said
    assert "too few patches" in said


def test_flat_maps_and_flat_attributions() -> None:
    said = text(replace(FOUND, rho=np.full((2, 2), np.nan), limit=None), (0, 0))
    assert said == "No head's map has an order, or Integrated gradients has none: all its scores are equal."


def test_names_are_letters_and_no_markup() -> None:
    assert "<script>" not in agreement_html(replace(FOUND, view="the attention from «<script>»"), (0, 0), "text")


def test_the_caution_names_both_sides_of_the_question() -> None:
    assert "Jain and Wallace, 2019" in CAUTION
    assert "Wiegreffe and Pinter, 2019" in CAUTION
