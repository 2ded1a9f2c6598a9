"""BiLRP: pairs of tokens sum to the similarity, and agree with second derivatives and with one pass of AttnLRP."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine import similarity
from engine.errors import ExegesisError, UsageError
from engine.models.classifier import as_float64
from engine.models.lrp import lrp_parts, lrp_rules
from engine.similarity import Encoder, load_encoder, similarity_of, text_similarity, vector_relevance
from tests.tiny import save_checkpoint

TEXTS = ("the plot drags and the food is good", "a warm view of a funny film")
POOLING = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "pooling_mode_max_tokens": False}

pytestmark = pytest.mark.usefixtures("home")


def save_encoder(
    folder: Path, family: str = "bert", kinds: Sequence[str] = ("Transformer", "Pooling", "Normalize"), **pooling: bool
) -> str:
    """A random encoder in the layout of sentence-transformers."""
    save_checkpoint(family, folder)
    paths = {"Transformer": "", "Pooling": "1_Pooling"}
    modules = [
        {"idx": at, "path": paths.get(kind, f"{at}_{kind}"), "type": f"sentence_transformers.models.{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({**POOLING, **pooling}), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("kinds", [("Transformer", "Pooling", "Normalize"), ("Transformer", "Pooling")])
def test_tokens_and_rest_sum_to_the_similarity_of_the_library(
    family: str, kinds: tuple[str, ...], tmp_path: Path
) -> None:
    folder = save_encoder(tmp_path / "encoder", family, kinds)
    found = text_similarity(*TEXTS, folder)
    module = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        one, two = (module(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in TEXTS)
    scale = one.norm() * two.norm() if "Normalize" in kinds else torch.tensor(1.0)
    assert found.value == pytest.approx(float(one @ two / scale), rel=1e-4)
    assert found.relevance.sum() + found.rest == pytest.approx(found.value, rel=1e-4, abs=1e-5)
    assert found.check.ok
    assert found.relevance.shape == (len(found.first), len(found.second))
    assert np.abs(found.relevance).max() > 0


def test_the_first_token_can_stand_for_the_text(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "e", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    found = text_similarity(*TEXTS, folder)
    module = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        one, two = (module(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0] for text in TEXTS)
    assert found.value == pytest.approx(float(torch.cosine_similarity(one, two, 0)), rel=1e-4)
    assert found.check.ok


def test_a_token_has_the_relevance_of_one_pass_with_the_other_text_held(tmp_path: Path) -> None:
    """An oracle without dimensions: LRP of the similarity itself gives the sums over the other text's parts."""
    encoder = load_encoder(save_encoder(tmp_path / "e", kinds=("Transformer", "Pooling")))
    first, second = map(encoder.encode, TEXTS)
    found, other = similarity_of(encoder, first, second), vector_relevance(encoder, second)
    model, batch = encoder.model, encoder.model.collate([first])
    point = model.embed(batch).detach().requires_grad_()
    with lrp_rules(model.module, lrp_parts(model.adapter), 1):
        product = encoder.vectors(batch, point)[0] @ torch.from_numpy(other.vector).float()
        (slope,) = torch.autograd.grad(product, point)
    expected = as_float64((point.detach() * slope).sum(-1)[0])
    own = vector_relevance(encoder, first).tokens
    np.testing.assert_allclose(found.relevance.sum(1) + own.T @ other.rest, expected, rtol=1e-3, atol=1e-5)


def test_without_nonlinearities_it_is_the_second_derivative_times_both_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors that are a linear map of the mean embedding: the Hessian of their product is the whole of it."""
    encoder = load_encoder(save_encoder(tmp_path / "e", kinds=("Transformer", "Pooling")))
    width = encoder.model.embedding.embedding_dim
    weights = torch.randn(width, width, generator=torch.Generator().manual_seed(1))

    def linear(self: Any, batch: Any, embeds: torch.Tensor) -> torch.Tensor:
        return embeds @ weights

    monkeypatch.setattr(type(encoder.model), "hidden", linear)
    first, second = map(encoder.encode, TEXTS)
    found = similarity_of(encoder, first, second)
    points = [encoder.model.embed(encoder.model.collate([one]))[0] for one in (first, second)]

    def product(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        return (one @ weights).mean(0) @ (two @ weights).mean(0)

    mixed = torch.autograd.functional.hessian(product, tuple(points))[0][1]
    expected = torch.einsum("iajb,ia,jb->ij", mixed, *points)
    np.testing.assert_allclose(found.relevance, as_float64(expected), rtol=1e-4, atol=1e-6)
    assert found.rest == pytest.approx(0, abs=1e-9)


def test_the_order_of_the_texts_does_not_matter_and_a_second_call_reads_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_encoder(tmp_path / "e")
    found, turned = text_similarity(*TEXTS, folder), text_similarity(*reversed(TEXTS), folder)
    np.testing.assert_allclose(found.relevance, turned.relevance.T, rtol=1e-5, atol=1e-7)
    monkeypatch.setattr(similarity, "load_encoder", lambda model: pytest.fail("nothing is left to compute"))
    again = text_similarity(*TEXTS, folder)
    np.testing.assert_array_equal(again.relevance, found.relevance)
    assert dataclasses.replace(again, relevance=found.relevance) == found


def test_pairs_come_by_size_without_special_tokens(tmp_path: Path) -> None:
    found = text_similarity(*TEXTS, save_encoder(tmp_path / "e"))
    pairs = found.pairs()
    assert len(pairs) == (len(found.first) - 2) * (len(found.second) - 2)
    assert [abs(value) for *_, value in pairs] == sorted((abs(value) for *_, value in pairs), reverse=True)
    assert all(found.relevance[row, column] == value for row, column, value in pairs)
    assert not any(found.first[row].special or found.second[column].special for row, column, _ in pairs)
    assert found.pairs(3) == pairs[:3]


def test_long_texts_are_cut_and_the_result_says_so(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "e")
    (tmp_path / "e" / "sentence_bert_config.json").write_text('{"max_seq_length": 8}', encoding="utf-8")
    found = text_similarity("good " * 20, "good food", folder)
    assert len(found.first) == 8
    assert found.truncated[0] >= 14
    assert found.truncated[1] == 0


def test_what_is_no_sentence_encoder_is_refused(tmp_path: Path) -> None:
    plain = save_checkpoint("bert", tmp_path / "plain")
    with pytest.raises(UsageError, match=r"has no modules.json, so it is no sentence encoder. Give `minilm`"):
        load_encoder(str(plain))
    with pytest.raises(ExegesisError, match="at most Normalize, got Transformer, Pooling, Dense"):
        load_encoder(save_encoder(tmp_path / "dense", kinds=("Transformer", "Pooling", "Dense")))
    with pytest.raises(ExegesisError, match="must pool by the mean or the first token, got"):
        load_encoder(save_encoder(tmp_path / "max", pooling_mode_max_tokens=True))
    outside = save_encoder(tmp_path / "outside")
    modules = [{"type": "x.Transformer", "path": "../plain"}, {"type": "x.Pooling", "path": "1_Pooling"}]
    (tmp_path / "outside" / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(ExegesisError, match="which is outside its folder"):
        load_encoder(outside)
    (tmp_path / "outside" / "modules.json").write_text("[", encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"modules.json cannot be read \(JSONDecodeError\)"):
        load_encoder(outside)
    fine = save_encoder(tmp_path / "fine")
    for texts, name in ((("", "good"), "text"), (("good", " "), "text_pair")):
        with pytest.raises(UsageError, match=f"^{name}: must have at least one word, got none."):
            text_similarity(*texts, fine)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", '["x"]', "modules.json must be a list of objects"),
        ("modules.json", '{"a": 1}', "modules.json must hold a JSON list"),
        ("modules.json", "null", "modules.json must hold a JSON list"),
        ("modules.json", '[{"type": "x.Transformer", "path": ""}]', "must name Transformer, Pooling"),
        ("1_Pooling/config.json", "[]", "config.json must hold a JSON object"),
        ("sentence_bert_config.json", "[]", "must hold a JSON object"),
        ("sentence_bert_config.json", '{"max_seq_length": "128"}', "a whole number of at least 1, got '128'"),
        ("sentence_bert_config.json", '{"max_seq_length": -3}', "a whole number of at least 1, got -3"),
        ("sentence_bert_config.json", '{"do_lower_case": true}', "changes texts before it reads them"),
        ("config_sentence_transformers.json", '{"default_prompt_name": "query"}', "changes texts before it reads them"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_followed_are_refused(file: str, content: str, message: str, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "e")
    (tmp_path / "e" / file).write_text(content, encoding="utf-8")
    with pytest.raises(ExegesisError, match=message):
        load_encoder(folder)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "e")
    (tmp_path / "e" / "model.safetensors").unlink()
    with pytest.raises(ExegesisError, match="holds no safetensors"):
        load_encoder(folder)


def test_every_setting_that_changes_the_number_makes_it_anew(tmp_path: Path) -> None:
    """Also in the older layout, whose transformer has a folder of its own."""
    old = save_encoder(tmp_path / "e")
    (tmp_path / "e" / "0_Transformer").mkdir()
    for file in [one for one in (tmp_path / "e").iterdir() if one.is_file() and one.name != "modules.json"]:
        file.rename(tmp_path / "e" / "0_Transformer" / file.name)
    modules = json.loads((tmp_path / "e" / "modules.json").read_text(encoding="utf-8"))
    modules[0]["path"] = "0_Transformer"
    (tmp_path / "e" / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    values = [text_similarity(*TEXTS, old).value]
    pooling = tmp_path / "e" / "1_Pooling" / "config.json"
    pooling.write_text('{"pooling_mode": "cls"}', encoding="utf-8")
    values.append(text_similarity(*TEXTS, old).value)
    pooling.write_text('{"pooling_mode": "mean"}', encoding="utf-8")
    (tmp_path / "e" / "0_Transformer" / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 6}', encoding="utf-8"
    )
    values.append(text_similarity(*TEXTS, old).value)
    save_checkpoint("bert", tmp_path / "e" / "0_Transformer", seed=1)
    values.append(text_similarity(*TEXTS, old).value)
    assert len(set(values)) == 4


def test_minilm_pairs_words_of_one_meaning() -> None:
    found = text_similarity("A man plays a guitar.", "Somebody makes music with an instrument.")
    assert found.check.ok
    assert 0.3 < found.value < 0.9
    row, column, value = found.pairs(1)[0]
    assert (found.first[row].text, found.second[column].text) == ("guitar", "instrument")
    assert value > 0
    encoder: Encoder = load_encoder("minilm")
    assert (encoder.pooling, encoder.normalized, encoder.max_length) == ("mean", True, 256)
