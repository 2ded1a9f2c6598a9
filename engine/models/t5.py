"""T5's encoder with a mean-pooled linear head, saved like any checkpoint (config.json + safetensors)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import T5Config
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.t5.modeling_t5 import T5PreTrainedModel, T5Stack


class T5EncoderForSequenceClassification(T5PreTrainedModel):
    """T5's encoder with a classification head: half of the weights, and no decoder. Pooling ignores padding."""

    _tied_weights_keys = {"encoder.embed_tokens.weight": "shared.weight"}  # noqa: RUF012

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        config.use_cache = False
        config.is_encoder_decoder = False
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config)
        self.encoder.set_input_embeddings(self.shared)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, int(config.num_labels or 2))
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def set_input_embeddings(self, new_embeddings: Any) -> None:
        self.shared = new_embeddings
        self.encoder.set_input_embeddings(new_embeddings)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Logits `[batch labels]` from ids or embeddings; `attention_mask` is `[batch seq]`."""
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **kwargs
        ).last_hidden_state
        if attention_mask is None:
            attention_mask = torch.ones(hidden.shape[:2], device=hidden.device)
        weights = attention_mask.to(hidden.dtype)[..., None]
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(pooled)))
