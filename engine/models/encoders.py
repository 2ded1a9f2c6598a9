"""Adapters of classifiers with an encoder: BERT and its relatives, T5, BART."""

from __future__ import annotations

from dataclasses import replace

from engine.models.text_adapter import LrpParts, TextAdapter

_BERT_LRP = LrpParts(
    ("LayerNorm",), ("intermediate_act_fn", "activation"), ("position_embeddings", "token_type_embeddings")
)
_BERT = TextAdapter(
    family="BERT",
    architecture="BertForSequenceClassification",
    backbone="bert",
    embeddings="bert.embeddings.word_embeddings",
    blocks="bert.encoder.layer",
    head=("bert.pooler", "classifier"),
    lrp=_BERT_LRP,
    token_types=True,
    lora_targets=("query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"),
)
_ROBERTA = replace(
    _BERT,
    family="RoBERTa",
    architecture="RobertaForSequenceClassification",
    backbone="roberta",
    embeddings="roberta.embeddings.word_embeddings",
    blocks="roberta.encoder.layer",
    head=("classifier",),
    lrp=replace(
        _BERT_LRP, activations=("intermediate_act_fn",), between=(("classifier.dense", "classifier.out_proj"),)
    ),
    token_types=False,
    position_start="after_pad",
)

CLASSIFIERS: dict[str, TextAdapter] = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": replace(_ROBERTA, family="XLM-R", architecture="XLMRobertaForSequenceClassification"),
    "electra": replace(
        _BERT,
        family="ELECTRA",
        architecture="ElectraForSequenceClassification",
        backbone="electra",
        embeddings="electra.embeddings.word_embeddings",
        blocks="electra.encoder.layer",
        head=("classifier",),
    ),
    "distilbert": TextAdapter(
        family="DistilBERT",
        architecture="DistilBertForSequenceClassification",
        backbone="distilbert",
        embeddings="distilbert.embeddings.word_embeddings",
        blocks="distilbert.transformer.layer",
        head=("pre_classifier", "classifier"),
        lrp=LrpParts(("LayerNorm", "sa_layer_norm", "output_layer_norm"), ("activation",), ("position_embeddings",)),
        lora_targets=("q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"),
    ),
    "t5": TextAdapter(
        family="T5 encoder",
        architecture="T5EncoderForSequenceClassification",
        backbone="encoder",
        embeddings="shared",
        blocks="encoder.block",
        head=("classifier",),
        norm="encoder.final_layer_norm",
        lrp=LrpParts(("layer_norm", "final_layer_norm"), ("act",), gated=("wi_1", "wo")),
        reading="mean",
        position_start=None,
        lora_targets=("q", "k", "v", "o", "wi", "wo", "wi_0", "wi_1"),
    ),
    "camembert": replace(_ROBERTA, family="CamemBERT", architecture="CamembertForSequenceClassification"),
    "modernbert": TextAdapter(
        family="ModernBERT",
        architecture="ModernBertForSequenceClassification",
        backbone="model",
        embeddings="model.embeddings.tok_embeddings",
        blocks="model.layers",
        head=("head", "classifier"),
        norm="model.final_norm",
        lrp=LrpParts(("norm", "attn_norm", "mlp_norm", "final_norm"), ("act",), gated=("Wi", "Wo")),
        masks_by_layer=True,
        lora_targets=("Wqkv", "Wo", "Wi"),
        pooling="classifier_pooling",
    ),
    "albert": TextAdapter(
        family="ALBERT",
        architecture="AlbertForSequenceClassification",
        backbone="albert",
        embeddings="albert.embeddings.word_embeddings",
        blocks="albert.encoder.albert_layer_groups",
        head=("albert.pooler", "classifier"),
        lrp=LrpParts(
            ("LayerNorm", "full_layer_layer_norm"),
            ("activation", "pooler_activation"),
            ("position_embeddings", "token_type_embeddings"),
        ),
        token_types=True,
        lora_targets=("query", "key", "value", "dense", "ffn", "ffn_output"),
        shared_blocks=True,
    ),
    "mpnet": replace(
        _ROBERTA,
        family="MPNet",
        architecture="MPNetForSequenceClassification",
        backbone="mpnet",
        embeddings="mpnet.embeddings.word_embeddings",
        blocks="mpnet.encoder.layer",
        attention="eager",
        lora_targets=("q", "k", "v", "o", "intermediate.dense", "output.dense"),
    ),
    "deberta-v2": TextAdapter(
        family="DeBERTa-v3",
        architecture="DebertaV2ForSequenceClassification",
        backbone="deberta",
        embeddings="deberta.embeddings.word_embeddings",
        blocks="deberta.encoder.layer",
        head=("pooler", "classifier"),
        lrp=None,
        lrp_missing="the products of queries and keys with relative positions (disentangled attention)",
        token_types=True,
        attention="eager",
        plain_mask=True,
        lora_targets=(
            "query_proj",
            "key_proj",
            "value_proj",
            "attention.output.dense",
            "intermediate.dense",
            "output.dense",
        ),
    ),
    "bart": TextAdapter(
        family="BART",
        architecture="BartForSequenceClassification",
        backbone="model",
        embeddings="model.shared",
        blocks="model.encoder.layers",
        head=("classification_head",),
        lrp=None,
        lrp_missing="relevance of the decoder's start token and positions",
        reading="decoder",
        position_start=0,
        lora_targets=("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"),
    ),
}
"""Classifiers by the `model_type` of config.json."""
OTHER_CLASSIFIERS = (
    replace(
        CLASSIFIERS["t5"],
        family="T5",
        architecture="T5ForSequenceClassification",
        backbone="transformer",
        embeddings="transformer.shared",
        blocks="transformer.encoder.block",
        head=("classification_head",),
        norm=None,
        lrp=None,
        lrp_missing="relevance of the decoder's start token",
        reading="decoder",
    ),
)
"""Additional classifiers of these types: T5 with its decoder."""
