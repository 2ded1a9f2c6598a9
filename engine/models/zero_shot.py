"""Zero-shot classifiers: an NLI model and labels that a user chooses (Yin, Hay and Roth, 2019).

The model reads the text as the premise, once with each label's hypothesis ("This example is travel."). The logit of a
class is the logit of entailment, so the softmax is over the labels. With a single label the classes are the label and
its opposite, by the logits of entailment and contradiction. The features are the tokens of the text: hypotheses are
never removed. Labels and template are part of the model's name (`engine.models.label_prompts`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from engine.errors import ExegesisError, UsageError, excerpt
from engine.lazy import torch
from engine.models.attention import AttentionRecorder
from engine.models.catalog import is_entailment
from engine.models.label_prompts import PAIR_LABELS, LabelPrompts, base_name
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier, encode_text
from engine.request import Example

PROBE = "a"
"""A premise of one token, to find out how the tokenizer encodes a pair."""


def find_relations(model: str, labels: Sequence[str]) -> dict[str, int]:
    """Return the indices of entailment and contradiction among an NLI model's labels. Errors: no entailment."""
    names = [label.casefold() for label in labels]
    places: Mapping[str, int | None] = {
        "entail": next((at for at, name in enumerate(names) if is_entailment(name)), None),
        "contradict": next((at for at, name in enumerate(names) if name.startswith("contradict")), None),
    }
    if places["entail"] is None:
        raise UsageError(
            f"labels: need a model that decides pairs (NLI), with a label 'entailment'; {model} has "
            f"{', '.join(labels) or 'none'}. Use one such as nli-minilm."
        )
    if places["contradict"] is None:  # of two classes, the other one
        places = {**places, "contradict": 1 - places["entail"] if len(names) == 2 else None}
    return {relation: at for relation, at in places.items() if at is not None}


@dataclass(frozen=True, eq=False)
class Suffix:
    """The part of the model's input after the text: a hypothesis with its special tokens."""

    ids: Int[np.ndarray, "seq"]
    types: Int[np.ndarray, "seq"]


@dataclass(eq=False)
class ZeroShotClassifier(TextClassifier):
    """An NLI model as a classifier of the labels in its name. `relations`: see `find_relations`."""

    prompts: LabelPrompts | None = None
    relations: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @cached_property
    def suffixes(self) -> tuple[Suffix, ...]:
        """The suffix of each label."""
        assert self.prompts is not None
        suffixes = []
        for hypothesis in self.prompts.texts(PAIR_LABELS):
            encoded = encode_text(self.tokenizer, Example(PROBE, hypothesis), None)
            start = _second_text(encoded)
            if start is None:
                raise ExegesisError(
                    f"model {self.id}: its tokenizer reads nothing in the hypothesis {excerpt(hypothesis)}. "
                    "Write another template."
                )
            suffixes.append(Suffix(encoded.ids[start:], encoded.types[start:]))
        return tuple(suffixes)

    @cached_property
    def max_length(self) -> int:
        """Maximum number of tokens of the text, including the special tokens before the hypothesis."""
        longest = max(len(suffix.ids) for suffix in self.suffixes)
        left = self.adapter.longest_input(self.module.config, self.tokenizer) - longest
        if left < 8:
            raise ExegesisError(
                f"model {self.id}: its longest hypothesis has {longest} tokens, which leaves {max(0, left)} for the "
                "text. Shorten the template or the labels."
            )
        return left

    def encode(self, example: Example, max_length: int | None = None) -> EncodedText:
        """Tokenize a text as the premise. Errors: as in `TextClassifier.encode`; a second text."""
        if example.text_pair is not None:
            raise UsageError(
                "text_pair: a zero-shot classifier reads one text, as the second one is the hypothesis. Remove it."
            )
        assert self.prompts is not None
        pair = super().encode(Example(example.text, self.prompts.texts(PAIR_LABELS)[0]), 10**6)
        end = _second_text(pair)
        assert end is not None, "the suffixes are read from the same hypotheses"
        special = pair.special[:end]
        features = np.flatnonzero(~special)
        if not len(features):
            raise UsageError(
                "text: nothing to explain: it has no token that the model can read. Give at least one word."
            )
        cut = max(0, end - (max_length or self.max_length))
        stays = np.ones(end, dtype=bool)
        if cut:
            stays[features[-cut:]] = False
        tokens = tuple(token for token, stay in zip(pair.tokens[:end], stays, strict=True) if stay)
        return EncodedText(pair.ids[:end][stays], pair.types[:end][stays], tokens, cut)

    def logits(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Return the entailment logit of each label; for a single label, those of entailment and contradiction."""
        pairs, pair_embeds = self._with_hypotheses(batch, self.embed(batch) if embeds is None else embeds)
        scores = super().logits(pairs, pair_embeds).unflatten(0, (len(batch.ids), -1))
        if len(self.suffixes) > 1:
            return scores[..., self.relations["entail"]]
        return torch.stack([scores[:, 0, self.relations[relation]] for relation in ("entail", "contradict")], dim=1)

    def _with_hypotheses(self, batch: TextBatch, embeds: torch.Tensor) -> tuple[TextBatch, torch.Tensor]:
        """Return a row for each text and label: the text's positions, then the hypothesis, then padding."""
        count, width, rows = len(self.suffixes), max(len(one.ids) for one in self.suffixes), len(batch.ids)
        ids = np.full((count, width), self.pad_id, dtype=np.int64)
        types = np.zeros((count, width), dtype=np.int64)
        for at, one in enumerate(self.suffixes):
            ids[at, : len(one.ids)], types[at, : len(one.ids)] = one.ids, one.types
        sizes = torch.tensor([len(one.ids) for one in self.suffixes], device=self.device)

        def append_hypotheses(text: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
            return torch.cat([text.repeat_interleave(count, 0), own.repeat(rows, *([1] * (own.dim() - 1)))], dim=1)

        place = torch.arange(batch.ids.shape[1], device=self.device)
        there = torch.arange(width, device=self.device) < sizes[:, None]
        valid = append_hypotheses(place < batch.lengths[:, None], there)
        order = (~valid).int().argsort(dim=1, stable=True)
        suffix_ids = torch.from_numpy(ids).to(self.device)
        pairs = TextBatch(
            append_hypotheses(batch.ids, suffix_ids).gather(1, order),
            (append_hypotheses(batch.visible, there) & valid).gather(1, order),
            append_hypotheses(batch.types, torch.from_numpy(types).to(self.device)).gather(1, order),
            valid.sum(1),
            batch.whole and len({len(one.ids) for one in self.suffixes}) == 1,
        )
        joined = append_hypotheses(embeds, self.embedding(suffix_ids).to(embeds.dtype))
        return pairs, joined.gather(1, order[..., None].expand(*order.shape, embeds.shape[-1]))

    def hidden(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """Raise an error, since each label has its own hidden states."""
        raise self._no_single_pass("hidden states")

    def logits_with_attention(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> tuple[Float[torch.Tensor, "batch label"], AttentionRecorder]:
        """Raise an error, since each label has its own attention."""
        raise self._no_single_pass("attention")

    def _no_single_pass(self, what: str) -> ExegesisError:
        return ExegesisError(
            f"model {base_name(self.id)}: with labels of your own it reads the text once per label, so it has no "
            f"single {what}. Explain the text and one hypothesis as a pair instead, or use another method."
        )


def _second_text(encoded: EncodedText) -> int | None:
    """Return the position of the first token of the second text, or None."""
    return next((at for at, token in enumerate(encoded.tokens) if token.segment == 1), None)


def as_zero_shot(model: TextClassifier, prompts: LabelPrompts) -> ZeroShotClassifier:
    """Return a loaded NLI model as a classifier of these labels. Errors: it is no NLI model, or lacks contradiction."""
    relations = find_relations(base_name(model.id), model.labels)
    if len(prompts.labels) == 1 and "contradict" not in relations:
        raise UsageError(f"labels: {base_name(model.id)} has no label 'contradiction', so give two labels or more.")
    adapter: Any = dataclasses.replace(
        model.adapter, lrp=None, lrp_missing="a text that is read once per label, with another hypothesis each"
    )
    own = {field.name: getattr(model, field.name) for field in dataclasses.fields(TextClassifier)}
    own |= {"adapter": adapter, "labels": prompts.classes, "regression": False, "memo": {}}
    return ZeroShotClassifier(**own, prompts=prompts, relations=relations)
