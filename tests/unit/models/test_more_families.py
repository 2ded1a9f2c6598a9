"""The rest of the gate on families that are not fine-tuned here: removal, heads, blocks, gradients, AttnLRP, offsets.

The logits are in `test_text_classifier.py`. What stands beside ours is the module as transformers has it, on ids alone.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from engine.errors import ExegesisError
from engine.heads.scaling import layers_and_heads, scaled_model
from engine.inside.sites import block_parts
from engine.models.loading import classifier_class, load_model
from engine.models.summary import model_size
from engine.models.text_classifier import TextClassifier
from engine.randomization.model_copy import ModelCopy, weights_of
from engine.randomization.result import parts_in_order
from engine.removal import coalition_values, token_masks
from engine.removal_operators import BASELINES, OPERATORS
from engine.request import Example, HeadScales
from tests.explaining import METHODS, checkpoint, classifier, fingerprint, run, run_cheaply, task_for
from tests.tiny import MORE_FAMILIES, save_checkpoint

TEXT, PAIR = Example("the film is a quiet triumph"), Example("good food", "the acting never falters")
DECODERS = ("bart", "t5-decoder")
PLACES = [1, 3]
"""Features that are removed."""
BART_OUTPUT = "self_attn.out_proj"
T5_OUTPUT = "layer.0.SelfAttention.o"


@pytest.fixture(scope="module", params=MORE_FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plain_module(family: str, labels: int = 3) -> Any:
    """The checkpoint as transformers loads it, in double precision, with its own attention."""
    model = classifier(family, labels)
    kind = classifier_class(model.adapter)
    return kind.from_pretrained(str(checkpoint(family, labels)), attn_implementation="eager").double().eval()


def plain_logits(module: Any, model: TextClassifier, ids: Any, types: Any, **options: Any) -> torch.Tensor:
    if model.adapter.token_types:
        options["token_type_ids"] = torch.as_tensor(types)[None]
    with torch.no_grad():
        return module(input_ids=torch.as_tensor(ids)[None], **options).logits[0]


def share(logits: torch.Tensor, target: int = 1) -> float:
    return float(torch.softmax(logits.double(), -1)[target])


def values(model: TextClassifier, operator: str) -> list[float]:
    """m without some tokens: of a text, and of a longer pair in the same batch."""
    encoded = [model.encode(example) for example in (TEXT, PAIR)]
    masks = []
    for one in encoded:
        kept = np.ones((1, len(one.features)), dtype=bool)
        kept[0, PLACES] = False
        masks.append(token_masks(one, kept, max(map(len, encoded))))
    return coalition_values(model, encoded, [1, 1], np.array([0, 1]), np.concatenate(masks), operator).tolist()


@pytest.mark.parametrize("operator", BASELINES)
def test_a_token_in_place_is_one_whose_row_of_the_table_is_what_stands_for_it(family: str, operator: str) -> None:
    """On ids alone, so that an encoder's and a decoder's embedding are replaced together."""
    model, module = classifier(family, 3), plain_module(family)
    table = module.get_input_embeddings().weight
    pad = model.pad_id
    stand_in = {
        "mask": table[model.tokenizer.mask_token_id or pad], "pad": table[pad],
        "zero": torch.zeros_like(table[0]), "mean": table.mean(0),
    }[operator].detach().clone()  # fmt: skip
    expected = []
    for example in (TEXT, PAIR):
        encoded = model.encode(example)
        unused = next(i for i in range(10, len(table)) if i not in encoded.ids)
        changed = copy.deepcopy(module)
        changed.get_input_embeddings().weight.data[unused] = stand_in
        ids = encoded.ids.copy()
        ids[encoded.features[PLACES]] = unused
        expected.append(share(plain_logits(changed, model, ids, encoded.types)))
    assert values(model, operator) == pytest.approx(expected, abs=2e-6)


def test_delete_is_the_sequence_without_the_tokens(family: str) -> None:
    model, module, expected = classifier(family, 3), plain_module(family), []
    for example in (TEXT, PAIR):
        encoded = model.encode(example)
        left = np.delete(np.arange(len(encoded)), encoded.features[PLACES])
        expected.append(share(plain_logits(module, model, encoded.ids[left], encoded.types[left])))
    assert values(model, "delete") == pytest.approx(expected, abs=2e-6)


def test_hide_is_the_attention_mask(family: str) -> None:
    model, module, expected = classifier(family, 3), plain_module(family), []
    for example in (TEXT, PAIR):
        encoded = model.encode(example)
        mask = torch.ones(1, len(encoded), dtype=torch.long)
        mask[0, encoded.features[PLACES]] = 0
        options = {"attention_mask": mask}
        if family in DECODERS:
            options["decoder_attention_mask"] = torch.cat([torch.ones(1, 1, dtype=torch.long), mask[:, :-1]], 1)
        if model.adapter.position_start is not None and family not in DECODERS:
            options["position_ids"] = torch.arange(len(encoded))[None] + model.adapter.first_position(module.config)
        expected.append(share(plain_logits(module, model, encoded.ids, encoded.types, **options)))
    assert values(model, "hide") == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("operator", OPERATORS)
def test_nothing_of_a_removed_token_leaks(family: str, operator: str) -> None:
    model = classifier(family, 3)
    encoded = model.encode(TEXT)
    kept = np.ones((1, len(encoded.features)), dtype=bool)
    kept[0, [0, 2, -1]] = False
    keep = token_masks(encoded, kept, len(encoded))

    def value_of(ids: np.ndarray) -> float:
        changed = type(encoded)(ids, encoded.types, encoded.tokens, 0)
        return float(coalition_values(model, [changed], [1], np.array([0]), keep, operator)[0])

    other = encoded.ids.copy()
    other[encoded.features[~kept[0]]] = 9
    assert value_of(encoded.ids) == value_of(other)


def test_a_scaled_head_is_one_whose_slice_of_the_output_projection_is_scaled(family: str) -> None:
    model, module = classifier(family, 3), plain_module(family)
    state, scales = fingerprint(model), HeadScales(((0, 1, 0.0), (1, 3, 0.5), (2, 0, 2.0)))
    paths = {"bart": BART_OUTPUT, "t5-decoder": T5_OUTPUT}
    path = paths[family] if family in paths else block_parts(model).projection
    batch = model.collate([model.encode(TEXT), model.encode(PAIR)])
    with torch.no_grad():
        before = model.logits(batch)
        with scaled_model(model, scales) as scaled:
            found = scaled.logits(batch)
    if model.adapter.shared_blocks:
        # All layers of the plain module have the same projection: each call scales its own part of the input.
        calls = iter([0, 1, 2] * 2)

        def rescale(_: Any, args: Any) -> Any:
            layer, heads = next(calls), args[0].unflatten(-1, (4, -1)).clone()
            for of, head, factor in scales.scales:
                heads[:, :, head] *= factor if of == layer else 1
            return (heads.flatten(-2),)

        module.get_submodule(model.adapter.blocks)[0].get_submodule(path).register_forward_pre_hook(rescale)
    else:
        for layer, head, factor in scales.scales:
            projection: Any = module.get_submodule(model.adapter.blocks)[layer].get_submodule(path)
            width = projection.weight.shape[1] // 4
            projection.weight.data[:, head * width : (head + 1) * width] *= factor
    for row, example in enumerate((TEXT, PAIR)):
        encoded = model.encode(example)
        torch.testing.assert_close(
            found[row], plain_logits(module, model, encoded.ids, encoded.types), atol=2e-6, rtol=1e-6
        )
    assert (found - before).abs().max() > 1e-3
    assert fingerprint(model) == state


def test_each_part_is_randomized_alone_and_comes_back(family: str) -> None:
    model = classifier(family, 3)
    batch = model.collate([model.encode(TEXT), model.encode(PAIR)])
    parts = weights_of(model)
    assert set(parts) == set(parts_in_order(3, head=True, embeddings=True))
    assert layers_and_heads(model) == (3, 4)
    size = model_size(model.id)
    assert (size.blocks, size.heads) == (3, 4)
    found, own = [], ModelCopy(model)
    with torch.no_grad():
        before = model.logits(batch)
        for part in parts:
            with own.randomized([part], 0) as changed:
                found.append(changed.logits(batch))
    own.check_untouched()
    assert torch.equal(model.logits(batch), before)
    for at, one in enumerate(found):
        assert (one - before).abs().max() > 1e-3
        assert all((one - other).abs().max() > 1e-4 for other in found[:at]), "each part is another model"


def test_gradients_are_slopes(family: str) -> None:
    model = classifier(family, 3)
    batch = model.collate([model.encode(TEXT)])
    embeds = model.embed(batch).clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.logits(batch, embeds)[0, 1], embeds)
    direction = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(0), dtype=embeds.dtype)
    step = 1e-4  # T5's norms and rotary positions are computed in single precision
    with torch.no_grad():
        ends = [float(model.logits(batch, embeds + sign * step * direction)[0, 1]) for sign in (1, -1)]
    assert float((slope * direction).sum()) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=5e-3, abs=1e-3)


def test_every_method_gives_numbers_or_names_what_is_missing(family: str) -> None:
    if family in ("mistral-classifier", "qwen2-classifier", "qwen3-classifier"):
        return  # the code of Llama's, by the same adapter
    model = classifier(family, 3)
    task, before = task_for(model, [Example("the film"), Example("good", "a film")], target=1), fingerprint(model)
    for method in METHODS:
        if method == "attn_lrp" and model.adapter.lrp is None:
            with pytest.raises(ExegesisError, match=model.adapter.lrp_missing.split(" (")[0]):
                run(method, task)
            continue
        for item, made in zip(task.items, run_cheaply(method, task), strict=True):
            assert made.scores.shape == item.encoded.special.shape, method
            assert np.isfinite(made.scores).all(), method
            # The gradient summed over an embedding is 0 by construction where a LayerNorm follows.
            assert np.abs(made.scores).max() > 0 or method == "gradient", method
    assert fingerprint(model) == before


def test_attnlrp_conserves_the_logit(family: str) -> None:
    model = classifier(family, 3)
    if model.adapter.lrp is None:
        assert model.adapter.lrp_missing
        return
    for made in run("attn_lrp", task_for(model, [TEXT, PAIR], target=1)):
        assert made.check is not None
        assert made.check.ok
        assert made.check.value < 1e-6


def test_tokens_have_the_places_of_their_characters(family: str) -> None:
    model = classifier(family, 3)
    for example in (TEXT, PAIR):
        texts = (example.text, example.text_pair or "")
        covered: list[set[int]] = [set(), set()]
        for token in model.encode(example).tokens:
            if not token.special:
                covered[token.segment] |= set(range(token.start, token.end))
        for text, places in zip(texts, covered, strict=True):
            assert places >= {at for at, letter in enumerate(text) if not letter.isspace()}


def test_a_regression_head(family: str) -> None:
    model, module = classifier(family, 1), plain_module(family, 1)
    assert model.regression
    with torch.no_grad():
        found = model.logits(model.collate([model.encode(TEXT), model.encode(PAIR)]))
    for row, example in enumerate((TEXT, PAIR)):
        encoded = model.encode(example)
        torch.testing.assert_close(
            found[row], plain_logits(module, model, encoded.ids, encoded.types), atol=2e-6, rtol=1e-6
        )


def test_published_deberta_has_projections_of_its_own_for_positions(tmp_path: Path) -> None:
    """v3 shares the keys with the contents, v2 need not: also a convolution after the first block (v2-xlarge)."""
    config: Any = classifier("deberta-v3", 3).module.config
    folder = save_checkpoint("deberta-v3", tmp_path / "model", labels=3)
    other = copy.deepcopy(config)
    other.update({"share_att_key": False, "conv_kernel_size": 3, "position_biased_input": True, "type_vocab_size": 2})
    torch.manual_seed(0)
    transformers.DebertaV2ForSequenceClassification(other).save_pretrained(str(folder))
    model = load_model(str(folder), "float64")
    module = transformers.DebertaV2ForSequenceClassification.from_pretrained(str(folder)).double().eval()
    examples = [model.encode(TEXT), model.encode(PAIR)]
    with torch.no_grad():
        found = model.logits(model.collate(examples))
    for row, encoded in enumerate(examples):
        torch.testing.assert_close(
            found[row], plain_logits(module, model, encoded.ids, encoded.types), atol=1e-6, rtol=1e-6
        )
