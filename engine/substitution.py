"""Replacements of words in a text: drawn from a masked language model, or near in the model's own word embeddings."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from engine import runtime
from engine.errors import ExegesisError, UsageError, excerpt
from engine.lazy import LazyModule, torch
from engine.models import catalog
from engine.models.catalog import locate_base
from engine.models.checkpoint_files import read_base_config, weights_sha256
from engine.models.classifier import as_float64
from engine.models.text_classifier import TextClassifier, encode_text, tokenize
from engine.progress import check_cancelled
from engine.request import Example, Prompt
from engine.result import Explanation, Token

if TYPE_CHECKING:
    import transformers

    from engine.models import loading
else:  # words and edits do not need the libraries that run models
    transformers, loading = LazyModule("transformers"), LazyModule("engine.models.loading")


def _combining_marks() -> str:
    """Return the combining marks of Unicode as ranges of a character class."""
    held = (*range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xFB00, 0x17000), *range(0x1B000, 0x1F000))
    marks = [at for at in (*held, *range(0xE0100, 0xE01F0)) if unicodedata.category(chr(at))[0] == "M"]
    starts = [at for place, at in enumerate(marks) if not place or marks[place - 1] != at - 1]
    ends = [at for place, at in enumerate(marks) if place == len(marks) - 1 or marks[place + 1] != at + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


MARKS = _combining_marks()
WORD = re.compile(rf"\w[\w{MARKS}]*(?:['’-]\w[\w{MARKS}]*)*")
"""A word: letters and digits with their combining marks, and apostrophes and hyphens inside."""
MASKED_MODEL = "bases/bert-generated"
"""The embedded masked language model, trained on generated reviews."""
ROWS_AT_ONCE = 64
"""Number of sequences per pass of a masked language model."""
STARTS = ("Ġ", "▁")
"""How byte-level and sentence-piece tokenizers mark a token that begins a word."""
CONTINUES = "##"
"""How word-piece tokenizers mark a token that continues a word."""
EDGE = 8
"""Tokens that a part of a long text leaves free at each end, since its first and last word may be cut."""


@dataclass(frozen=True, order=True)
class Word:
    """A word of an example. `segment`: 0 in the text, 1 in the second text of a pair. Offsets count its characters."""

    segment: int
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Edit:
    """A word and its replacement; an empty `replacement` deletes it."""

    word: Word
    replacement: str = ""


def words_of(example: Example) -> tuple[Word, ...]:
    """Return the words of a text or pair in reading order, without punctuation."""
    return tuple(
        Word(segment, found.start(), found.end(), found.group())
        for segment, text in enumerate((example.text, example.text_pair or ""))
        for found in WORD.finditer(text)
    )


def overlaps(token: Token, word: Word) -> bool:
    """Whether a token shares a character with a word. The model does not read a word that no token overlaps."""
    return not token.special and token.segment == word.segment and token.start < word.end and word.start < token.end


def word_scores(
    explanation: Explanation, words: Sequence[Word], first_token: bool = False
) -> Float[np.ndarray, "word"]:
    """Return the sum of the token scores of each word; NaN for a word that the model does not read.

    `first_token`: take the score of the first token instead. This keeps a random order random, while sums of random
    scores would be larger for words of several tokens.
    """
    scored = list(zip(explanation.tokens, explanation.scores.tolist(), strict=True))
    inside = ([score for token, score in scored if overlaps(token, word)] for word in words)
    return np.array([sum(own[:1] if first_token else own) if own else np.nan for own in inside], dtype=np.float64)


def with_fixed_classes(model: str, example: Example) -> Example:
    """Return the example; for a causal language model, as a prompt whose edits have the same classes as itself."""
    if not catalog.is_causal(model):
        return example
    prompt = example if isinstance(example, Prompt) else Prompt(example.text, example.text_pair)
    return prompt if prompt.of is not None else replace(prompt, of=prompt.text)


def edited(example: Example, edits: Iterable[Edit]) -> Example:
    """Return the example with all edits applied. Deleting a word also removes one space next to it.

    Errors: two edits of the same word; a word that is not in the example.
    """
    texts = [example.text, example.text_pair or ""]
    last: Word | None = None
    for edit in sorted(edits, key=lambda one: one.word, reverse=True):
        word, text = edit.word, texts[edit.word.segment]
        if last is not None and _overlap(word, last):
            raise UsageError(f"edits: each must change another word, got two of {excerpt(word.text)}.")
        if text[word.start : word.end] != word.text:
            raise UsageError(
                f"edits: each must change a word of the text, got {excerpt(word.text)}, which is not there."
            )
        before, after = text[: word.start], text[word.end :]
        if not edit.replacement and before.endswith(" "):
            before = before[:-1]
        elif not edit.replacement and after.startswith(" "):
            after = after[1:]
        texts[word.segment], last = before + edit.replacement + after, word
    return replace(example, text=texts[0], text_pair=None if example.text_pair is None else texts[1])


def _overlap(word: Word, later: Word) -> bool:
    return word.segment == later.segment and word.end > later.start


def like(word: str, replacement: str) -> str:
    """Return the replacement in the case of the word: all capitals, a first capital, or unchanged."""
    if len(word) > 1 and word.isupper():
        return replacement.upper()
    return replacement[:1].upper() + replacement[1:] if word[:1].isupper() else replacement


def whole_words(tokenizer: Any) -> dict[str, int]:
    """Return the words of a vocabulary that are single tokens of letters only, in lower case, with their ids.

    Errors: there is none.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    pieces = any(token.startswith(CONTINUES) and len(token) > len(CONTINUES) for token in vocabulary)
    marked = not pieces and any(token.startswith(STARTS) for token in vocabulary)
    found: dict[str, int] = {}
    for token, place in sorted(vocabulary.items(), key=lambda item: item[1]):
        if (pieces and token.startswith(CONTINUES)) or (marked and not token.startswith(STARTS)):
            continue
        word = token[1:] if marked else token
        if marked and not word.isascii():  # byte-level tokenizers represent bytes by other letters
            word = tokenizer.convert_tokens_to_string([token]).strip()
        if word.isalpha() and (len(word) > 1 or word.lower() in "ai"):
            found.setdefault(word.lower(), place)
    if not found:
        raise ExegesisError("tokenizer: none of its tokens is a whole word. Choose a model whose tokenizer has words.")
    return found


def near_words(model: TextClassifier, words: Sequence[str], count: int) -> list[list[str]]:
    """Return for each word the `count` nearest single-token words, by the cosine of the model's word embeddings.

    The embedding of a word is the mean over its tokens. The word itself is excluded. The caller must hold the device.
    """
    known = whole_words(model.tokenizer)
    names = list(known)
    with torch.inference_mode():
        table = torch.nn.functional.normalize(model.embedding.weight[list(known.values())].float(), dim=1)
        own = [encode_text(model.tokenizer, Example(word), model.max_length) for word in words]
        vectors = torch.stack(
            [
                model.embedding.weight[torch.from_numpy(one.ids[one.features]).to(table.device)].float().mean(0)
                for one in own
            ]
        )
        order = (
            (torch.nn.functional.normalize(vectors, dim=1) @ table.T).topk(min(count + 1, len(names)), dim=1).indices
        )
    return [
        [names[place] for place in places if names[place] != word.lower()][:count]
        for word, places in zip(words, order.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class MaskedModel:
    """A masked language model. `words`: the words that it can predict, each a single token of its vocabulary."""

    id: str
    revision: str
    module: Any
    tokenizer: Any
    words: tuple[str, ...]
    ids: torch.Tensor
    max_length: int
    device: torch.device

    def probabilities(self, example: Example, words: Sequence[Word]) -> Float[np.ndarray, "place word"]:
        """Return the probability of each of `self.words` in each place, with only that place masked; rows sum to 1.

        Errors: a place beyond the model's maximum length. The caller must hold the device.
        """
        rows = [self._masked(example, word) for word in words]
        return np.concatenate(
            [self._filled(rows[start : start + ROWS_AT_ONCE]) for start in range(0, len(rows), ROWS_AT_ONCE)]
        )

    def _masked(self, example: Example, word: Word) -> list[int]:
        if self.tokenizer.mask_token in example.text + (example.text_pair or ""):
            raise UsageError(
                f"text: must not hold the mask token of {self.id}, {self.tokenizer.mask_token}, which stands for the "
                "word that is replaced. Remove it from the text."
            )
        masked = edited(example, [Edit(word, self.tokenizer.mask_token)])
        row: list[int] = tokenize(self.tokenizer, masked.text, masked.text_pair, self.max_length)["input_ids"]
        if row.count(self.tokenizer.mask_token_id) > 1:
            raise UsageError(
                f"masked_model: the text holds {excerpt(self.tokenizer.mask_token)}, which {self.id} reads as a masked "
                "word. Write it in another way."
            )
        if self.tokenizer.mask_token_id not in row:
            raise UsageError(
                f"masked_model: {self.id} reads {self.max_length} tokens, and the word {excerpt(word.text)} lies "
                "beyond them. Shorten the text."
            )
        return row

    def _filled(self, rows: Sequence[Sequence[int]]) -> Float[np.ndarray, "place word"]:
        check_cancelled()
        ids = torch.full((len(rows), max(map(len, rows))), self.tokenizer.pad_token_id, device=self.device)
        visible = torch.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)], visible[at, : len(row)] = torch.tensor(row, device=self.device), 1
        with torch.inference_mode():
            logits = self.module(input_ids=ids, attention_mask=visible).logits
            chosen = logits[ids == self.tokenizer.mask_token_id][:, self.ids]
            return as_float64(torch.softmax(chosen.double(), dim=1))


def load_masked_model(name: str = MASKED_MODEL) -> MaskedModel:
    """Load a masked language model: an embedded base, a folder, or a hub id, safetensors only.

    Errors: as in `locate_base`; a model without a mask token, or a checkpoint without a masked-language-model head.
    """
    folder = locate_base(name, "masked_model")
    return _load(name, folder, masked_revision(name), runtime.device())


def masked_revision(name: str = MASKED_MODEL) -> str:
    """Return the hash of the weights, for cache keys. Reads the file, never loads the model."""
    return weights_sha256(locate_base(name, "masked_model"))


@functools.lru_cache(maxsize=2)
def _load(name: str, folder: Path, revision: str, device: torch.device) -> MaskedModel:
    read_base_config(folder)  # refuses remote code
    with loading.silence_libraries(), loading.loading_errors(name):
        module, report = transformers.AutoModelForMaskedLM.from_pretrained(
            str(folder), use_safetensors=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = loading.load_tokenizer(folder)
    if report["missing_keys"] or tokenizer.mask_token_id is None:
        raise ExegesisError(
            f"masked_model: {excerpt(name)} is no masked language model (it has no head or no mask token for one). "
            f"Give {MASKED_MODEL}, or a folder or hub id of one, such as bert-base-uncased."
        )
    known = whole_words(tokenizer)
    places = getattr(module.config, "max_position_embeddings", tokenizer.model_max_length)
    longest = min(places - 2, tokenizer.model_max_length)  # RoBERTa's positions begin at 2
    return MaskedModel(
        name, revision, module.eval().requires_grad_(False).to(device), tokenizer, tuple(known),
        torch.tensor(list(known.values()), device=device), longest, device,
    )  # fmt: skip


def reads_all(masked: MaskedModel, example: Example) -> bool:
    """Whether the masked model reads the whole example at once."""
    length = len(tokenize(masked.tokenizer, example.text, example.text_pair)["input_ids"])
    return length <= masked.max_length


def around(masked: MaskedModel, example: Example, word: Word) -> tuple[Example, Word]:
    """Return the part of the word's text that the masked model can read, centered on the word, and the word there."""
    text = (example.text, example.text_pair or "")[word.segment]
    spans = [span for span in tokenize(masked.tokenizer, text, None, return_offsets_mapping=True)["offset_mapping"]
             if span[0] < span[1]]  # fmt: skip
    at = next(place for place, (_, end) in enumerate(spans) if end > word.start)
    reach = (masked.max_length - 2) // 2 - EDGE
    start = min(word.start, spans[max(0, at - reach)][0])
    end = max(word.end, spans[min(len(spans) - 1, at + reach)][1])
    return Example(text[start:end]), Word(0, word.start - start, word.end - start, word.text)


def likely_words(
    masked: MaskedModel, example: Example, words: Sequence[Word], count: int
) -> list[list[tuple[str, float]]]:
    """Return for each word the `count` most probable other words in its place, with their probabilities."""
    shares = masked.probabilities(example, words)
    order = np.argsort(-shares, axis=1, kind="stable")[:, : count + 1]
    return [
        [(masked.words[at], float(row[at])) for at in places if masked.words[at] != word.text.lower()][:count]
        for word, row, places in zip(words, shares, order, strict=True)
    ]


def sampled_words(
    masked: MaskedModel, example: Example, words: Sequence[Word], draws: int, generator: np.random.Generator,
    others: bool = False,
) -> list[list[str]]:  # fmt: skip
    """Draw `draws` words for the place of each word from the masked model's distribution, including the word itself.

    Given the rest of the text, the draws are independent of the word in that place. If the text is too long for the
    masked model, the rest is the part `around` the word. `others`: exclude the word itself.
    """
    if reads_all(masked, example):
        shares = masked.probabilities(example, words)
    else:
        parts = (around(masked, example, word) for word in words)
        shares = np.concatenate([masked.probabilities(part, [own]) for part, own in parts])
    if others:
        for word, row in zip(words, shares, strict=True):
            row[[at for at, one in enumerate(masked.words) if one == word.text.lower()]] = 0.0
    return [
        [masked.words[at] for at in generator.choice(len(masked.words), draws, p=row / row.sum())] for row in shares
    ]
