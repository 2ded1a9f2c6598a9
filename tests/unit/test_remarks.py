"""What is said of a map besides its notes: the share of the logit that it holds."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from components.method_row import method_row
from engine.explain import explain
from engine.registry import explainer
from engine.request import Example, Request
from tests.tiny import save_checkpoint
from tests.unit.components.making import explanation

EXAMPLE = Example("the cat sat")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"tokens": 1.5, "logit": 2.0, "biases": 0.3, "positions": 0.1, "softmax": 0.1},
            "The map holds 1.5 of the logit of 2 (75%).",
        ),
        (
            {"tokens": -2.18, "logit": 1.0, "biases": 0.2, "positions": 0.1, "softmax": 2.88},
            "The map holds -2.18 of the logit of 1: most of the relevance lies elsewhere, 2.88 in the softmax of "
            "attention.",
        ),
        (
            {"tokens": 0.5, "logit": 0.0, "biases": -0.5, "positions": 0.0, "softmax": 0.0},
            "The map holds 0.5 of the logit of 0: most of the relevance lies elsewhere, -0.5 in biases.",
        ),
    ],
)
def test_the_share_of_the_logit_is_said_beside_the_check(parts: dict[str, float], said: str) -> None:
    made = explanation(EXAMPLE, extras={"relevance": parts})
    assert made.remarks == (*made.notes, said)
    assert said in method_row(explainer("attn_lrp"), made, EXAMPLE, "token").notes
    assert dataclasses.replace(made, extras={}).remarks == made.notes


def test_a_real_map_says_what_its_scores_add_up_to(tmp_path: Path) -> None:
    made = explain(Request(str(save_checkpoint("bert", tmp_path)), "attn_lrp", EXAMPLE))
    assert made.remarks[-1].startswith(f"The map holds {made.scores.sum():.3g} of the logit of ")
    assert made.prediction.logits[made.provenance.target] == pytest.approx(made.extras["relevance"]["logit"], abs=1e-5)
