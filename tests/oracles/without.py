"""The prediction without tokens, on the model as transformers has it: ids, embeddings or the mask changed by hand."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import torch


def probabilities_without(
    module: Any, tokenizer: Any, ids: list[int], gone: Collection[int], removal: str
) -> list[float]:
    """Class probabilities with the positions in `gone` removed. The tokenizer must have a mask and a pad token."""
    first = 2 if "roberta" in module.config.model_type else 0
    places = {"position_ids": torch.tensor([[first + place for place in range(len(ids))]])}
    table = module.get_input_embeddings().weight
    with torch.no_grad():
        if removal == "delete":
            logits = module(input_ids=torch.tensor([[t for place, t in enumerate(ids) if place not in gone]])).logits
        elif removal == "hide":
            seen = torch.tensor([[int(place not in gone) for place in range(len(ids))]])
            logits = module(input_ids=torch.tensor([ids]), attention_mask=seen, **places).logits
        elif removal in ("mask", "pad"):
            stand_in = tokenizer.mask_token_id if removal == "mask" else tokenizer.pad_token_id
            changed = [stand_in if place in gone else token for place, token in enumerate(ids)]
            logits = module(input_ids=torch.tensor([changed]), **places).logits
        else:
            blank = sum(table) / len(table) if removal == "mean" else torch.zeros(table.shape[1])
            rows = [blank if place in gone else table[token] for place, token in enumerate(ids)]
            logits = module(inputs_embeds=torch.stack(rows)[None], **places).logits
    values = logits[0].double().tolist()
    shares = [math.exp(value - max(values)) for value in values]
    return [share / sum(shares) for share in shares]
