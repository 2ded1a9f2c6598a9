"""Whole models put together from the rules of tests/oracles/lrp.py, family by family, with the module's weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.oracles import lrp
from tests.oracles.lrp import Value
from tests.oracles.text import World

HEADS = 4
Norm = Callable[[Value], Value]


def attn_lrp(world: World) -> np.ndarray:
    return relevance(world.family, world.module, world.ids, world.target)


def relevance(family: str, module: Any, ids: list[int], target: int) -> np.ndarray:
    """Relevance of each token's word embedding, summed over its dimensions."""
    words = Value(torch.stack([module.get_input_embeddings().weight[i] for i in ids]))
    lrp.propagate(TEXT[family](module, words), (0, target))
    return words.relevance.sum(1).numpy()


def picture_relevance(module: Any, embedded: Tensor, target: int) -> np.ndarray:
    """Relevance of each special token and patch, `embedded` before positions are added."""
    patches = Value(embedded)
    lrp.propagate(_vit(module, patches), (0, target))
    return patches.relevance.sum(1).numpy()


def _lin(x: Value, layer: Any) -> Value:
    return lrp.linear(x, layer.weight, layer.bias)


def _conv(x: Value, layer: Any) -> Value:
    """GPT-2 keeps its weights the other way round."""
    return lrp.linear(x, layer.weight.T, layer.bias)


def _norm(x: Value, layer: Any) -> Value:
    return lrp.layer_norm(x, layer.weight, layer.bias, layer.eps)


def _attended(x: Value, query: Any, key: Any, value: Any, bias: Tensor | None = None, scale: float = 0) -> Value:
    q, k, v = _lin(x, query), _lin(x, key), _lin(x, value)
    return lrp.attention(q, k, v, HEADS, scale or lrp.deviation_of_heads(q.data.shape[1] // HEADS), bias)


def _embedded(words: Value, parts: Any, first: int = 0) -> Value:
    places = parts.position_embeddings.weight[first : first + len(words.data)]
    types = getattr(parts, "token_type_embeddings", None)
    added = places if types is None else places + types.weight[0]
    return _norm(lrp.plus(words, added), parts.LayerNorm)


def _bert_body(base: Any, words: Value, first: int = 0) -> Value:
    hidden = _embedded(words, base.embeddings, first)
    if hasattr(base, "embeddings_project"):
        hidden = _lin(hidden, base.embeddings_project)
    for block in base.encoder.layer:
        own, out = block.attention.self, block.attention.output
        attended = _lin(_attended(hidden, own.query, own.key, own.value), out.dense)
        hidden = _norm(lrp.add(attended, hidden), out.LayerNorm)
        inner = lrp.activation(_lin(hidden, block.intermediate.dense), torch.nn.functional.gelu)
        hidden = _norm(lrp.add(_lin(inner, block.output.dense), hidden), block.output.LayerNorm)
    return lrp.row(hidden, 0)


def _bert(module: Any, words: Value) -> Value:
    pooled = _lin(_bert_body(module.bert, words), module.bert.pooler.dense)
    return _lin(lrp.activation(pooled, torch.tanh), module.classifier)


def _roberta(module: Any, words: Value) -> Value:
    first = _bert_body(module.roberta, words, module.config.pad_token_id + 1)
    return _lin(lrp.activation(_lin(first, module.classifier.dense), torch.tanh), module.classifier.out_proj)


def _electra(module: Any, words: Value) -> Value:
    first = _lin(_bert_body(module.electra, words), module.classifier.dense)
    return _lin(lrp.activation(first, torch.nn.functional.gelu), module.classifier.out_proj)


def _distilbert(module: Any, words: Value) -> Value:
    hidden = _embedded(words, module.distilbert.embeddings)
    for block in module.distilbert.transformer.layer:
        own = block.attention
        attended = _lin(_attended(hidden, own.q_lin, own.k_lin, own.v_lin), own.out_lin)
        hidden = _norm(lrp.add(attended, hidden), block.sa_layer_norm)
        inner = lrp.activation(_lin(hidden, block.ffn.lin1), torch.nn.functional.gelu)
        hidden = _norm(lrp.add(_lin(inner, block.ffn.lin2), hidden), block.output_layer_norm)
    first = lrp.activation(_lin(lrp.row(hidden, 0), module.pre_classifier), torch.relu)
    return _lin(first, module.classifier)


def _gpt2(module: Any, words: Value) -> Value:
    base, n = module.transformer, len(words.data)
    size = words.data.shape[1]
    future = torch.full((n, n), -math.inf, dtype=words.data.dtype).triu(1).expand(HEADS, n, n)
    hidden = lrp.plus(words, base.wpe.weight[:n])
    for block in base.h:
        three = _conv(_norm(hidden, block.ln_1), block.attn.c_attn)
        q, k, v = (lrp.columns(three, part * size, (part + 1) * size) for part in range(3))
        attended = lrp.attention(q, k, v, HEADS, lrp.deviation_of_heads(size // HEADS), future)
        hidden = lrp.add(_conv(attended, block.attn.c_proj), hidden)
        inner = lrp.activation(_conv(_norm(hidden, block.ln_2), block.mlp.c_fc), block.mlp.act)
        hidden = lrp.add(hidden, _conv(inner, block.mlp.c_proj))
    return _lin(lrp.row(_norm(hidden, base.ln_f), n - 1), module.score)


def _t5(module: Any, words: Value) -> Value:
    blocks = module.encoder.block
    bias = blocks[0].layer[0].SelfAttention.compute_bias(len(words.data), len(words.data))[0]
    hidden = words
    for block in blocks:
        own, after = block.layer[0], block.layer[1]
        normed = lrp.rms_norm(hidden, own.layer_norm.weight, own.layer_norm.variance_epsilon)
        parts = own.SelfAttention
        attended = _attended(normed, parts.q, parts.k, parts.v, bias, scale=1.0)
        hidden = lrp.add(hidden, _lin(attended, parts.o))
        normed = lrp.rms_norm(hidden, after.layer_norm.weight, after.layer_norm.variance_epsilon)
        hidden = lrp.add(hidden, _t5_inner(normed, after.DenseReluDense))
    last = module.encoder.final_layer_norm
    return _lin(lrp.mean_row(lrp.rms_norm(hidden, last.weight, last.variance_epsilon)), module.classifier)


def _t5_inner(normed: Value, layer: Any) -> Value:
    if hasattr(layer, "wi_1"):
        gate = lrp.activation(_lin(normed, layer.wi_0), layer.act)
        return _lin(lrp.times(gate, _lin(normed, layer.wi_1)), layer.wo)
    return _lin(lrp.activation(_lin(normed, layer.wi), torch.relu), layer.wo)


def _vit(module: Any, patches: Value) -> Value:
    base = module.base_model
    hidden = lrp.plus(patches, base.embeddings.position_embeddings[0])
    for block in base.layers:
        own = block.attention
        normed = _norm(hidden, block.layernorm_before)
        hidden = lrp.add(_lin(_attended(normed, own.q_proj, own.k_proj, own.v_proj), own.o_proj), hidden)
        inner = _lin(_norm(hidden, block.layernorm_after), block.mlp.fc1)
        inner = lrp.activation(inner, torch.nn.functional.gelu)
        hidden = lrp.add(_lin(inner, block.mlp.fc2), hidden)
    hidden = _norm(hidden, base.layernorm)
    if hasattr(module, "cls_classifier"):
        heads = (module.cls_classifier, module.distillation_classifier)
        both = [_lin(lrp.row(hidden, place), head) for place, head in enumerate(heads)]
        return lrp.scaled(lrp.add(*both), torch.tensor(0.5, dtype=patches.data.dtype))
    return _lin(lrp.row(hidden, 0), module.classifier)


TEXT: dict[str, Callable[[Any, Value], Value]] = {
    "bert": _bert,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
    "electra": _electra,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "t5": _t5,
}
