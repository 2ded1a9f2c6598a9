"""What heads make of inputs at the edge: one token, a text that fills the model, a causal one, no attention at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import ExegesisError
from engine.heads.flow import FLOW_KINDS, attention_flow
from engine.heads.matrices import MASKED, from_bytes, pack_heads, quantize
from engine.heads.readings import read_heads, switch_off_each
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.request import Example, Request
from tests.explaining import checkpoint
from tests.head_readings import strongest_path

pytestmark = pytest.mark.usefixtures("home")

FAMILIES = ("bert", "gpt2", "t5")


def asked(family: str, text: str) -> Request:
    return Request(str(checkpoint(family, 3)), "random", Example(text))


@pytest.mark.parametrize("family", FAMILIES)
def test_one_token(family: str) -> None:
    request = asked(family, "a")
    found = read_heads(request)
    n = len(found.explanation.tokens)
    assert n == {"bert": 3, "gpt2": 1, "t5": 2}[family]
    assert quantize(found.attention).levels.shape == (3, 4, n, n)
    for kind in FLOW_KINDS:
        assert attention_flow(found, kind).nodes.sum(1) == pytest.approx(1)
    assert np.isfinite(switch_off_each(request).fall).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_longer_than_the_model_reads(family: str) -> None:
    request = asked(family, "the plot drags " * 300)
    found = read_heads(request)
    longest = load_classifier("text", request.model).max_length
    assert found.explanation.truncated > 0
    assert found.attention.shape == (3, 4, longest, longest)
    made = from_bytes(pack_heads(found.attention, side=20))
    assert made.levels.shape[-1] <= 20
    assert f"{longest} positions are drawn as" in made.note
    assert len(strongest_path(attention_flow(found)).positions) == 4
    assert np.isfinite(switch_off_each(request).fall).all()


def test_what_a_causal_model_may_not_attend_to_is_no_zero() -> None:
    found = read_heads(asked("gpt2", "the ending is warm"))
    future = ~np.tri(found.attention.shape[-1], dtype=bool)
    assert (quantize(found.attention).levels[..., future] == MASKED).all()
    assert not (quantize(found.attention).levels[..., ~future] == MASKED).any()
    assert (attention_flow(found).weights[:, future] == 0).all()


def test_heads_that_cannot_be_reached_are_not_said_to_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked("bert", "a model that yields no attention")
    model = load_classifier("text", request.model)
    real = type(model).logits_with_attention

    def none(self: AnyClassifier, *given: object) -> tuple[torch.Tensor, object]:
        logits, recorder = real(self, *given)
        recorder.probabilities.clear()
        return logits, recorder

    monkeypatch.setattr(type(model), "logits_with_attention", none)
    for read in (switch_off_each, read_heads):
        with pytest.raises(ExegesisError, match="0 of its 3 layers yield attention, so its heads cannot be shown"):
            read(request)
