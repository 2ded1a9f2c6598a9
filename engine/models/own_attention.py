"""Attention of families whose modules compute it themselves: routed through transformers' table of functions.

MPNet and DeBERTa-v2/v3 do not call the function that a config names. Their modules get the class of the same name here,
which computes the same queries, keys, values and bias and calls that function. Attention is then captured, scaled and
differentiated as for all families. Import this module lazily: it imports torch.
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
    """Outputs of the heads side by side, by the function that the config names."""
    function = ALL_ATTENTION_FUNCTIONS.get_interface(module.config._attn_implementation, _fused)
    return function(module, query, key, value, attention_mask=mask, **options)[0].flatten(2)


def _fused(*args: Any, **options: Any) -> tuple[torch.Tensor, None]:
    return fused_attention(*args, **options), None


class RoutedMPNetAttention(MPNetSelfAttention):
    """MPNet's attention: its relative position bias is one for all layers."""

    def forward(
        self, hidden_states: Any, attention_mask: Any = None, position_bias: Any = None, *_: Any, **__: Any
    ) -> tuple[torch.Tensor]:
        shape = (*hidden_states.shape[:-1], self.num_attention_heads, -1)
        query, key, value = (part(hidden_states).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        return (self.o(_attend(self, query, key, value, attention_mask, position_bias=position_bias)),)


class RoutedDisentangledAttention(DisentangledSelfAttention):
    """DeBERTa's attention: content to content as usual; content to position and position to content as its bias."""

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
        # A padded position sees the text as any other does: nobody reads what it computes.
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
"""By the class of transformers, whose parameters the routed class has too."""


def route_attention(module: Any) -> None:
    """Let every such part of a loaded model call the attention function that its config names."""
    for part in module.modules():
        if type(part) in ROUTED:
            part.__class__ = ROUTED[type(part)]
            part.config = module.config
