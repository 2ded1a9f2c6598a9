"""Adapters of causal models: language models, and classifiers of the same families."""

from __future__ import annotations

from dataclasses import replace

from engine.models.text_adapter import LrpParts, TextAdapter

_GPT2 = TextAdapter(
    family="GPT-2",
    architecture="GPT2ForSequenceClassification",
    backbone="transformer",
    embeddings="transformer.wte",
    blocks="transformer.h",
    head=("score",),
    norm="transformer.ln_f",
    lrp=LrpParts(("ln_1", "ln_2", "ln_f"), ("act",), ("wpe",)),
    reading="last",
    causal=True,
    lora_targets=("c_attn", "c_proj", "c_fc"),
)
_LLAMA = TextAdapter(
    family="Llama",
    architecture="LlamaForCausalLM",
    backbone="model",
    embeddings="model.embed_tokens",
    blocks="model.layers",
    head=("lm_head",),
    norm="model.norm",
    lrp=LrpParts(
        ("input_layernorm", "post_attention_layernorm", "norm", "q_norm", "k_norm"),
        ("act_fn",),
        gated=("up_proj", "down_proj"),
    ),
    reading="last",
    causal=True,
    lora_targets=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
)
_GEMMA_NORMS = (
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm", "norm",
    "q_norm", "k_norm",
)  # fmt: skip

LANGUAGE_MODELS: dict[str, TextAdapter] = {
    adapter.architecture: adapter
    for adapter in (
        _LLAMA,
        replace(_LLAMA, family="Mistral", architecture="MistralForCausalLM"),
        replace(_LLAMA, family="Qwen2", architecture="Qwen2ForCausalLM", masks_by_layer=True),
        replace(_LLAMA, family="Qwen3", architecture="Qwen3ForCausalLM", masks_by_layer=True),
        # Its logits are soft-capped at the end, which AttnLRP has no rule for; only eager attention soft-caps.
        replace(
            _LLAMA,
            family="Gemma 2",
            architecture="Gemma2ForCausalLM",
            masks_by_layer=True,
            lrp=None,
            attention="eager",
            lrp_missing="the logits that are soft-capped at the end",
        ),
        replace(
            _LLAMA,
            family="Gemma 3",
            architecture="Gemma3ForCausalLM",
            masks_by_layer=True,
            lrp=LrpParts(_GEMMA_NORMS, ("act_fn",), gated=("up_proj", "down_proj"), norm_shift=1.0),
        ),
        replace(_GPT2, architecture="GPT2LMHeadModel", head=("lm_head",)),
        TextAdapter(
            family="GPT-NeoX",
            architecture="GPTNeoXForCausalLM",
            backbone="gpt_neox",
            embeddings="gpt_neox.embed_in",
            blocks="gpt_neox.layers",
            head=("lm_head",),
            norm="gpt_neox.final_layer_norm",
            lrp=LrpParts(("input_layernorm", "post_attention_layernorm", "final_layer_norm"), ("act",)),
            reading="last",
            causal=True,
            lora_targets=("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
        ),
    )
}
"""Causal language models by the name of their architecture in config.json."""

CLASSIFIERS: dict[str, TextAdapter] = {"gpt2": _GPT2} | {
    name.lower(): replace(
        LANGUAGE_MODELS[f"{name}ForCausalLM"], architecture=f"{name}ForSequenceClassification", head=("score",)
    )
    for name in ("Llama", "Mistral", "Qwen2", "Qwen3")
}
"""Classifiers by the `model_type` of config.json."""
