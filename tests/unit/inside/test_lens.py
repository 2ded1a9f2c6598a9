"""The logit lens against the checkpoint's own norm and head, in plain PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import ExegesisError
from engine.explain import explain
from engine.inside import lens
from engine.inside.lens import LensQuery, lens_rows, lens_to_json, logit_lens
from engine.models.loading import load_model
from engine.request import Example, Request
from tests.tiny import CAUSAL_FAMILIES, FAMILIES, save_causal, save_checkpoint
from tests.unit.inside.circuits import save_induction_model

TEXT = "the film is warm"

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("family", [*FAMILIES, *CAUSAL_FAMILIES])
def test_the_last_depth_is_the_prediction_of_the_model(family: str, tmp_path: Path) -> None:
    save: Any = save_checkpoint if family in FAMILIES else save_causal
    folder = str(save(family, tmp_path / family))
    result = logit_lens(LensQuery(folder, Example(TEXT)))
    assert result.check.ok
    assert result.check.value < 1e-5
    prediction = explain(Request(folder, "random", Example(TEXT))).prediction
    assert result.reading_top[-1] == result.target == prediction.label
    assert result.reading[-1] == pytest.approx(prediction.probabilities[prediction.index], abs=1e-5)
    if result.read_position is not None:
        np.testing.assert_array_equal(result.value[:, result.read_position], result.reading)
    assert result.value.shape == (4, len(result.tokens))


def test_cells_of_a_language_model_by_hand(tmp_path: Path) -> None:
    folder = str(save_causal("llama", tmp_path / "llama"))
    module: Any = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = module(**tokenizer(TEXT, return_tensors="pt"), output_hidden_states=True).hidden_states
        logits = torch.stack([module.lm_head(module.model.norm(state[0])) for state in states[:-1]])
        last = module.lm_head(states[-1][0])[None]  # transformers has normed it already
    probabilities = torch.softmax(torch.cat([logits, last]).double(), -1).numpy()
    result = logit_lens(LensQuery(folder, Example(TEXT)))
    [target] = tokenizer(result.target, add_special_tokens=False)["input_ids"]
    np.testing.assert_allclose(result.value, probabilities[..., target], atol=1e-5)
    np.testing.assert_allclose(result.top_value, probabilities.max(-1), atol=1e-5)
    assert result.top[1][2] == tokenizer.decode([int(probabilities[1, 2].argmax())])


def test_cells_of_a_classifier_by_hand(tmp_path: Path) -> None:
    """BERT's pooler and classifier on every vector of the stream."""
    folder = str(save_checkpoint("bert", tmp_path / "bert"))
    model = load_model(folder)
    module: Any = model.module
    with torch.no_grad():
        states = torch.cat(model.hidden_states(model.collate([model.encode(Example(TEXT))])))
        logits = module.classifier(torch.tanh(module.bert.pooler.dense(states)))
    result = logit_lens(LensQuery(folder, Example(TEXT), target="LABEL_1"))
    np.testing.assert_allclose(result.value, torch.softmax(logits.double(), -1)[..., 1].numpy(), atol=1e-5)


def test_the_induction_model_knows_the_answer_after_its_last_layer_only(tmp_path: Path) -> None:
    folder = str(save_induction_model(tmp_path / "induction"))
    result = logit_lens(LensQuery(folder, Example("x a b c d a")))
    assert result.target == "b"
    assert result.decided == 2
    np.testing.assert_allclose(result.value[:2], 1 / 6, atol=1e-6)  # nothing is written to the output before
    assert result.value[2, 5] > 0.6
    assert result.value[2, :5].max() < 0.3
    assert lens_to_json(result)["decided_layer"] == 1
    assert len(list(lens_rows(result))) == 3 * 7


def test_a_cached_lens_is_the_same_and_a_target_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(save_checkpoint("t5", tmp_path / "t5"))
    first = logit_lens(LensQuery(folder, Example(TEXT)))
    assert first.read_position is None, "T5 reads the mean over positions"
    with pytest.raises(ExegesisError, match="target: unknown name 'x'"):
        logit_lens(LensQuery(folder, Example(TEXT), target="x"))
    monkeypatch.setattr(lens, "load_text_model", None)
    assert lens_to_json(logit_lens(LensQuery(folder, Example(TEXT)))) == lens_to_json(first)
