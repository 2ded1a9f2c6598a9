"""Removal: each operator against a construction by hand on the untouched module, and no leak of what was removed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.errors import UsageError
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.removal import coalition_values, token_masks
from engine.removal_operators import BASELINES, OPERATORS
from engine.request import Example
from tests.explaining import classifier, task_for
from tests.tiny import FAMILIES

TEXTS = ["the plot drags", "good", "although the ending is warm, the acting never falters and the view is lovely"]


def value(model: TextClassifier, encoded: EncodedText, kept: list[bool], operator: str) -> float:
    keep = token_masks(encoded, np.array([kept]), len(encoded))
    return float(coalition_values(model, [encoded], [0], np.array([0]), keep, operator)[0])


def share(logits: Tensor) -> float:
    return float(torch.softmax(logits[0], -1)[0])


def in_place(model: TextClassifier, encoded: EncodedText, kept: list[bool], stand_in: Tensor) -> float:
    """The module itself on embeddings with the stand-in put in place, positions where they were."""
    table = model.module.get_input_embeddings().weight
    rows = [table[i] for i in encoded.ids.tolist()]
    for place, keep in zip(encoded.features, kept, strict=True):
        if not keep:
            rows[place] = stand_in
    types: dict[str, Any] = {}
    if "token_type_ids" in model.module.forward.__code__.co_varnames:
        types["token_type_ids"] = torch.from_numpy(encoded.types)[None]
    with torch.no_grad():
        return share(model.module(inputs_embeds=torch.stack(rows)[None], **types).logits)


@pytest.mark.parametrize("operator", BASELINES)
@pytest.mark.parametrize("family", FAMILIES)
def test_in_place_operators_by_hand(family: str, operator: str) -> None:
    model = classifier(family, 3)
    table, names = model.module.get_input_embeddings().weight, model.tokenizer
    pad = names.pad_token_id if names.pad_token_id is not None else names.eos_token_id
    stand_in = {
        "mask": table[names.mask_token_id if names.mask_token_id is not None else pad],
        "pad": table[pad],
        "zero": torch.zeros_like(table[0]),
        "mean": sum(row for row in table) / len(table),
    }[operator]
    encoded = model.encode(Example(TEXTS[0]))
    kept = [i % 3 != 1 for i in range(len(encoded.features))]
    expected = in_place(model, encoded, kept, stand_in)
    assert value(model, encoded, kept, operator) == pytest.approx(expected, abs=1e-6)
    assert expected != pytest.approx(in_place(model, encoded, [True] * len(kept), stand_in), abs=1e-4)


def test_models_without_a_mask_token_use_pad_else_end_of_text() -> None:
    gpt2, t5 = classifier("gpt2"), classifier("t5")
    assert gpt2.tokenizer.mask_token_id is None
    assert gpt2.mask_id == gpt2.pad_id == gpt2.tokenizer.eos_token_id
    assert t5.tokenizer.mask_token_id is None
    assert t5.mask_id == t5.tokenizer.pad_token_id != t5.tokenizer.eos_token_id


@pytest.mark.parametrize("family", ["bert", "electra", "distilbert", "roberta", "xlm-roberta"])
def test_hide_hides_the_position_and_keeps_the_places_of_the_others(family: str) -> None:
    """The plain module with attention mask 0 there, its position ids spelt out."""
    model = classifier(family, 3)
    encoded = model.encode(Example(TEXTS[0]))
    kept = [i != 1 for i in range(len(encoded.features))]
    mask = torch.ones(1, len(encoded), dtype=torch.long)
    mask[0, encoded.features[1]] = 0
    extra = {} if family == "distilbert" else {"position_ids": _places(model, len(encoded))}
    with torch.no_grad():
        ids = torch.from_numpy(encoded.ids)[None]
        expected = share(model.module(input_ids=ids, attention_mask=mask, **extra).logits)
    assert value(model, encoded, kept, "hide") == pytest.approx(expected, abs=1e-6)


def _places(model: TextClassifier, length: int) -> Tensor:
    first = 2 if "roberta" in model.module.config.model_type else 0
    return (torch.arange(length) + first)[None]


def test_pads_do_not_move_robertas_positions() -> None:
    """RoBERTa counts positions from pad ids: with pad as the removal operator the rest must stay where it was."""
    model = classifier("roberta", 3)
    encoded = model.encode(Example(TEXTS[0]))
    kept = [i != 0 for i in range(len(encoded.features))]
    ids = torch.from_numpy(encoded.ids)[None].clone()
    ids[0, encoded.features[0]] = model.pad_id
    with torch.no_grad():
        moved = share(model.module(input_ids=ids).logits)
        stayed = share(model.module(input_ids=ids, position_ids=_places(model, len(encoded))).logits)
    assert abs(moved - stayed) > 1e-4, "the trap is there"
    assert value(model, encoded, kept, "pad") == pytest.approx(stayed, abs=1e-6)


def test_hide_on_t5_leaves_the_pool_too() -> None:
    model = classifier("t5", 3)
    encoded = model.encode(Example(TEXTS[0]))
    gone = int(encoded.features[1])
    mask = torch.ones(1, len(encoded), dtype=torch.long)
    mask[0, gone] = 0
    with torch.no_grad():
        ids = torch.from_numpy(encoded.ids)[None]
        hidden = model.module.encoder(input_ids=ids, attention_mask=mask).last_hidden_state[0]
        pooled = torch.stack([h for i, h in enumerate(hidden) if i != gone]).mean(0)
        expected = share(model.module.classifier(pooled)[None])
    kept = [i != 1 for i in range(len(encoded.features))]
    assert value(model, encoded, kept, "hide") == pytest.approx(expected, abs=1e-6)


def test_hide_on_gpt2_inside_the_text() -> None:
    """The key is hidden from every later query; the last position reads the head."""
    model = classifier("gpt2", 3)
    encoded = model.encode(Example(TEXTS[0]))
    n = len(encoded)
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    seen[:, 1] = False
    seen[1, 1] = True  # what the hidden position itself sees reaches nobody
    mask = torch.zeros(1, 1, n, n, dtype=torch.float64).masked_fill(~seen, torch.finfo(torch.float64).min)
    with torch.no_grad():
        hidden = model.module.transformer(
            input_ids=torch.from_numpy(encoded.ids)[None], attention_mask=mask
        ).last_hidden_state
        expected = share(model.module.score(hidden[:, -1]))
    kept = [i != 1 for i in range(n)]
    assert value(model, encoded, kept, "hide") == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("place", ["first", "middle", "last", "all"])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_of_a_removed_token_leaks(family: str, operator: str, place: str) -> None:
    """Another token in the removed place gives the very same value."""
    model = classifier(family, 3)
    encoded = model.encode(Example(TEXTS[0]))
    n = len(encoded.features)
    gone = {"first": [0], "middle": [n // 2], "last": [n - 1], "all": list(range(n))}[place]
    kept = [i not in gone for i in range(n)]
    other = encoded.ids.copy()
    for i in gone:
        other[encoded.features[i]] = 7 if other[encoded.features[i]] != 7 else 8
    changed = EncodedText(other, encoded.types, encoded.tokens, 0)
    assert value(model, encoded, kept, operator) == value(model, changed, kept, operator)
    assert value(model, encoded, [True] * n, operator) != value(model, changed, [True] * n, operator)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_different_examples_are_as_if_alone(family: str, operator: str) -> None:
    model = classifier(family, 3)
    task = task_for(model, TEXTS, target=0)
    generator = np.random.default_rng(0)
    masks = [generator.random((4, len(e.features))) < 0.5 for e in task.examples]
    for masked in masks:
        masked[0] = False
    together = task.masked_values(masks, operator)
    for encoded, rows, values in zip(task.examples, masks, together, strict=True):
        alone = [value(model, encoded, row.tolist(), operator) for row in rows]
        np.testing.assert_allclose(values, alone, atol=1e-6)


def without(model: TextClassifier, encoded: EncodedText, kept: list[bool]) -> float:
    """The module as transformers has it, on the ids that are left and nothing else."""
    gone = set(encoded.features[~np.array(kept)].tolist())
    left = [place for place in range(len(encoded)) if place not in gone]
    read = model.module.config.model_type in ("bert", "electra")
    types = {"token_type_ids": torch.from_numpy(encoded.types[left])[None]} if read else {}
    with torch.no_grad():
        return share(model.module(input_ids=torch.from_numpy(encoded.ids[left])[None], **types).logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_delete_is_the_sequence_without_the_tokens(family: str) -> None:
    """Rows of two examples and of different numbers of removed tokens, in one padded batch."""
    model = classifier(family, 3)
    examples = [model.encode(Example(*texts)) for texts in ((TEXTS[0], TEXTS[1]), (TEXTS[2],))]
    masks = [
        [[True] * n, [False] + [True] * (n - 1), [True] * (n - 1) + [False], [at % 3 == 1 for at in range(n)],
         [at == n - 1 for at in range(n)], [at == 0 for at in range(n)]]
        for n in (len(encoded.features) for encoded in examples)
    ]  # fmt: skip
    width = max(len(encoded) for encoded in examples)
    keep = np.concatenate([token_masks(e, np.array(m), width) for e, m in zip(examples, masks, strict=True)])
    index = np.repeat([0, 1], len(masks[0]))
    values = coalition_values(model, examples, [0, 0], index, keep, "delete")
    expected = [without(model, e, kept) for e, own in zip(examples, masks, strict=True) for kept in own]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    assert values[2] != pytest.approx(value(model, examples[0], masks[0][2], "hide"), abs=1e-4), "no place is kept"


@pytest.mark.parametrize("family", FAMILIES)
def test_with_all_tokens_deleted_the_special_ones_are_left_or_what_stands_for_a_removed_one(family: str) -> None:
    model = classifier(family, 3)
    encoded = model.encode(Example(TEXTS[0]))
    kept = [False] * len(encoded.features)
    if encoded.special.any():
        expected = without(model, encoded, kept)
    else:
        with torch.no_grad():
            expected = share(model.module(input_ids=torch.tensor([[model.tokenizer.eos_token_id]])).logits)
    assert family == "gpt2" or encoded.special.any()
    assert value(model, encoded, kept, "delete") == pytest.approx(expected, abs=1e-9)


def test_hidden_last_words_of_gpt2_are_still_read_blank_and_deleted_ones_are_not() -> None:
    model = classifier("gpt2", 3)
    encoded = model.encode(Example(TEXTS[0]))
    n = len(encoded)
    last = [True] * (n - 1) + [False]
    shorter = EncodedText(encoded.ids[:-1], encoded.types[:-1], encoded.tokens[:-1], 0)
    assert value(model, encoded, last, "delete") == pytest.approx(value(model, shorter, [True] * (n - 1), "mask"))
    assert value(model, encoded, last, "hide") != pytest.approx(value(model, encoded, last, "delete"), abs=1e-4)


def test_special_tokens_and_padding_are_always_kept() -> None:
    encoded = classifier("bert").encode(Example("good"))
    keep = token_masks(encoded, np.zeros((1, len(encoded.features)), dtype=bool), len(encoded) + 3)
    assert keep[0].tolist() == [*encoded.special.tolist(), True, True, True]


def test_unknown_operators_are_named() -> None:
    model = classifier("bert")
    encoded = model.encode(Example("good"))
    kept = [True] * len(encoded.features)
    for ask in (
        lambda: model.removal_embedding(model.collate([encoded]), "blur"),
        lambda: value(model, encoded, kept, "blur"),
    ):
        with pytest.raises(
            UsageError, match=r"removal: unknown name 'blur'\. Known: delete, hide, mask, mean, pad, zero"
        ):
            ask()


def test_a_regression_head_is_explained_by_its_score() -> None:
    model = classifier("bert", 1)
    encoded = model.encode(Example(TEXTS[0]))
    with torch.no_grad():
        score = float(model.logits(model.collate([encoded]))[0, 0])
    assert value(model, encoded, [True] * len(encoded.features), "mask") == pytest.approx(score, abs=1e-6)
