"""Attention of families whose modules compute it themselves, routed through transformers' table of functions.

MPNet and DeBERTa-v2/v3 do not call the attention function that a config names. `route_attention` replaces the classes
of their modules by those below, which compute the same queries, keys, values and bias and call that function. Attention
is then captured, scaled and differentiated as for all families. Import this module lazily: it imports torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from engine.models.attention import fused_attention


def _attend(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, **options: Any
) -> torch.Tensor:
    """Return the concatenated outputs of the heads, computed by the function that the config names."""
    function = ALL_ATTENTION_FUNCTIONS.get_interface(module.config._attn_implementation, _fused)
    return function(module, query, key, value, attention_mask=mask, **options)[0].flatten(2)


def _fused(*args: Any, **options: Any) -> tuple[torch.Tensor, None]:
    return fused_attention(*args, **options), None


class RoutedMPNetAttention(MPNetSelfAttention):
    """MPNet's attention; all layers share one relative position bias."""

    def forward(
        self, hidden_states: Any, attention_mask: Any = None, position_bias: Any = None, *_: Any, **__: Any
    ) -> tuple[torch.Tensor]:
        shape = (*hidden_states.shape[:-1], self.num_attention_heads, -1)
        query, key, value = (part(hidden_states).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        return (self.o(_attend(self, query, key, value, attention_mask, position_bias=position_bias)),)


class RoutedDisentangledAttention(DisentangledSelfAttention):
    """DeBERTa's attention: content-to-content logits as usual, the logits between content and positions as a bias."""

    def forward(
        self, hidden_states: Any, attention_mask: Any, output_attentions: bool = False, query_states: Any = None,
        relative_pos: Any = None, rel_embeddings: Any = None,
    ) -> tuple[torch.Tensor, None]:  # fmt: skip
        heads = self.num_attention_heads
        asking = hidden_states if query_states is None else query_states
        query = self.transpose_for_scores(self.query_proj(asking), heads)
        key, value = (
            self.transpose_for_scores(part(hidden_states), heads) for part in (self.key_proj, self.value_proj)
        )
        kinds = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))
        bias = None
        if self.relative_attention:
            bias = self.disentangled_attention_bias(query, key, relative_pos, self.pos_dropout(rel_embeddings), kinds)
            bias = bias.unflatten(0, (-1, heads)) if isinstance(bias, torch.Tensor) else None
        # Padded positions attend to the text like any other; their outputs are not used.
        visible = attention_mask.bool().any(-2, keepdim=True)
        mask = torch.zeros(visible.shape, dtype=query.dtype, device=query.device)
        mask = mask.masked_fill(~visible, torch.finfo(query.dtype).min)
        query, key, value = (part.unflatten(0, (-1, heads)) for part in (query, key, value))
        scaling = (query.shape[-1] * kinds) ** -0.5
        return _attend(self, query, key, value, mask, position_bias=bias, scaling=scaling), None


ROUTED: dict[type[nn.Module], type[nn.Module]] = {
    MPNetSelfAttention: RoutedMPNetAttention,
    DisentangledSelfAttention: RoutedDisentangledAttention,
}
"""Routed classes by the class of transformers that they replace; both have the same parameters."""


def route_attention(module: Any) -> None:
    """Make every MPNet or DeBERTa attention module of a loaded model call the function that its config names."""
    for part in module.modules():
        if type(part) in ROUTED:
            part.__class__ = ROUTED[type(part)]
            part.config = module.config
