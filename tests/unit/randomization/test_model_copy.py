"""The private copy, and fresh weights, drawn as the model's own initializer draws them, for every family.

The loaded model is never touched, and the copy is as before whatever happened inside.
"""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import Cancelled, ExegesisError
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.models.summary import is_head_tied
from engine.models.text_classifier import TextClassifier
from engine.randomization.model_copy import ModelCopy, copy_of, reinitialize, weights_of
from engine.randomization.result import EMBEDDINGS, HEAD, parts_in_order, parts_words
from engine.request import Example
from tests.explaining import classifier, fingerprint, run, task_for
from tests.tiny import FAMILIES, save_causal
from tests.unit.vision.tiny_vit import ARCHITECTURES, vit

TEXT = "the acting never falters"
MODELS = (*FAMILIES, *ARCHITECTURES)


def model_of(name: str) -> AnyClassifier:
    return vit(name, dtype="float32") if name in ARCHITECTURES else classifier(name, dtype="float32")


@pytest.mark.parametrize("name", MODELS)
def test_every_part_is_drawn_as_a_model_that_was_never_trained_is(name: str) -> None:
    model, before = model_of(name), fingerprint(model_of(name))
    torch.manual_seed(7)
    newborn = {n: p.detach() for n, p in type(model.module)(model.module.config).named_parameters()}
    parts = weights_of(model)
    assert sorted(name for names in parts.values() for name in names) == sorted(newborn)
    assert set(parts) == set(parts_in_order(3, head=True, embeddings=True))
    for part, names in parts.items():
        for weight, values in reinitialize(model, part, names, 0).items():
            expected = newborn[weight]
            if expected.std() == 0:  # a LayerNorm or a bias begins as a constant
                assert torch.equal(values, expected), weight
            else:
                spread = float(values.std() / expected.std())
                assert spread == pytest.approx(1, abs=6 / math.sqrt(2 * values.numel())), weight
                assert (values != model.module.get_parameter(weight)).float().mean() > 0.9, weight
    assert fingerprint(model) == before


def test_a_seed_gives_the_same_weights_and_blocks_and_seeds_have_draws_of_their_own() -> None:
    model = classifier("bert")
    parts = weights_of(model)
    state = torch.random.get_rng_state()
    first, again, other = (reinitialize(model, "1", parts["1"], seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), state), "nobody else's draws are moved"
    name = next(name for name in parts["1"] if name.endswith("query.weight"))
    assert torch.equal(first[name], again[name])
    second = reinitialize(model, "2", parts["2"], 0)[name.replace("layer.0", "layer.1")]
    assert not torch.equal(first[name], other[name])
    assert not torch.equal(first[name], second)
    assert first[name].dtype == torch.float64


def test_an_adapter_goes_with_the_base_that_it_changes() -> None:
    model = load_model("t5-mini-marked")
    names = weights_of(model)["2"]
    made = reinitialize(model, "2", names, 0)
    config: Any = model.module.config
    queries = next(made[name] for name in names if name.endswith("SelfAttention.q.weight"))
    assert float(queries.std()) == pytest.approx((config.d_model * config.d_kv) ** -0.5, rel=0.1)


def test_where_the_parts_that_are_easily_misplaced_belong() -> None:
    t5, gpt2, bert = (weights_of(classifier(name)) for name in ("t5", "gpt2", "bert"))
    assert any("relative_attention_bias" in name for name in t5["1"])
    assert "encoder.final_layer_norm.weight" in t5[HEAD]
    assert "transformer.ln_f.weight" in gpt2[HEAD]
    assert "bert.pooler.dense.weight" in bert[HEAD]
    assert "bert.embeddings.LayerNorm.weight" in bert[EMBEDDINGS]
    assert parts_words(("head", "3", "2", "embeddings")) == "blocks 2 to 3, the head and the embeddings"
    assert (parts_words(("2",)), parts_words(())) == ("block 2", "nothing")


def test_an_initializer_that_leaves_a_weight_out_or_as_it_was_is_refused() -> None:
    model = classifier("bert")
    names = weights_of(model)["1"]
    module = copy_of(model.module)
    broken = dataclasses.replace(model, module=module, memo={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(module), "_init_weights", lambda self, part: None)
        with pytest.raises(ExegesisError, match=r"its initializer does not set bert\.encoder\.layer\.0\."):
            reinitialize(broken, "1", names, 0)
    fresh = reinitialize(model, "1", names, 0)
    for name, values in fresh.items():
        module.get_submodule(name.rpartition(".")[0])._parameters[name.rpartition(".")[2]] = torch.nn.Parameter(values)
    with pytest.raises(ExegesisError, match="does not change its part 1"):
        reinitialize(broken, "1", names, 0)


def logits(model: TextClassifier) -> torch.Tensor:
    return model.logits(model.collate([model.encode(Example(TEXT))]))


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_inside_only_the_copy_is_another_model_also_for_other_threads(family: str) -> None:
    model, copy = classifier(family), ModelCopy(classifier(family))
    before, expected, seen = fingerprint(model), logits(model), list[torch.Tensor]()
    with copy.randomized(("3", "2"), 0) as other:
        assert fingerprint(model) == before
        assert other.module is not model.module
        assert not torch.allclose(logits(other), expected)
        thread = threading.Thread(target=lambda: seen.append(logits(model)))
        thread.start()
        thread.join()
    assert torch.equal(seen[0], expected)
    with copy.randomized((), 0) as same:
        assert torch.equal(logits(same), expected)
        assert fingerprint(same) == before
    copy.check_untouched()


@pytest.mark.parametrize("error", [ValueError, Cancelled, KeyboardInterrupt])
def test_weights_are_back_after_an_exception_or_a_cancel(error: type[BaseException]) -> None:
    model = classifier("t5")
    copy, before = ModelCopy(model), fingerprint(model)

    def use() -> None:
        with copy.randomized(("1", "embeddings", "head"), 0) as other:
            assert other.embedding.weight is other.module.encoder.embed_tokens.weight, "tied weights stay tied"
            assert not torch.equal(other.embedding.weight, model.embedding.weight)
            raise error

    with pytest.raises(error):
        use()
    assert fingerprint(model) == before
    with copy.randomized((), 0) as same:
        assert all(a is b for a, b in zip(same.module.parameters(), model.module.parameters(), strict=True))
    copy.check_untouched()


def test_what_one_remembers_is_not_taken_for_what_the_other_says() -> None:
    model = classifier("bert")
    copy, first = ModelCopy(model), run("attention_mean", task_for(model, [TEXT]))[0].scores
    with copy.randomized(("1",), 0) as other:
        made = run("attention_mean", task_for(other, [TEXT]))[0].scores
        assert abs(made - first).max() > 1e-3
    with copy.randomized(("2",), 0) as other:
        assert abs(run("attention_mean", task_for(other, [TEXT]))[0].scores - made).max() > 1e-3
    assert (run("attention_mean", task_for(model, [TEXT]))[0].scores == first).all()


def test_a_model_that_changed_is_told_by_its_fingerprint() -> None:
    model = classifier("distilbert")
    copy, before = ModelCopy(model), {name: value.clone() for name, value in model.module.state_dict().items()}
    with torch.no_grad():
        next(iter(model.module.parameters())).add_(1)
    with pytest.raises(ExegesisError, match="its weights changed while a copy was randomized"):
        copy.check_untouched()
    model.module.load_state_dict(before)
    copy.check_untouched()


def test_a_tied_matrix_belongs_to_the_embeddings_and_the_config_tells(tmp_path: Path) -> None:
    assert weights_of(load_model("tiny-llama"))[HEAD] == ("model.norm.weight",)
    assert is_head_tied("tiny-llama")
    folder = save_causal("llama", tmp_path)
    assert weights_of(load_model(str(folder)))[HEAD] == ("model.norm.weight", "lm_head.weight")
    assert not is_head_tied(str(folder))
    config = json.loads((folder / "config.json").read_text())
    del config["tie_word_embeddings"]
    (folder / "config.json").write_text(json.dumps(config))
    assert not is_head_tied(str(folder)), "the default of a Llama"
    assert not is_head_tied("bert-reviews"), "a classifier's head has a matrix of its own"
