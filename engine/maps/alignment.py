"""Alignment of imported scores with the tokens or patches of a model, by character offsets if they are given."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError, excerpt
from engine.format import count_text
from engine.maps.files import MapEntry, Span
from engine.models.classifier import EncodedInput
from engine.request import Example, Input
from engine.result import Token

MARKERS = re.compile(r"^(##|Ġ|▁|Ċ|\s)+|(</w>|\s)+$")
"""Marks that tokenizers add to a token: WordPiece, byte-level BPE, Unigram."""


def align(entry: MapEntry, example: Input, encoded: EncodedInput) -> Float[np.ndarray, "feature"]:
    """Return one score for each token or patch that may be removed, in order.

    The score of a span of several whole tokens, such as a word, is divided equally among them. Errors: the first
    mismatch between the file and the model.
    """
    if encoded.grid is not None:
        return _align_patches(entry, encoded.grid)
    assert isinstance(example, Example)
    tokens = [token for token in encoded.tokens if not token.special]
    if entry.offsets is None and entry.tokens is None:
        return _align_by_count(entry, encoded, len(tokens))
    scores = np.array(entry.scores)
    if entry.offsets is not None:
        spans = list(zip(entry.segments or [0] * len(scores), entry.offsets, strict=True))
    else:
        specials = {token.text for token in encoded.tokens if token.special}
        kept = [at for at, text in enumerate(entry.tokens or ()) if text and text not in specials]  # shap: "" for [CLS]
        spans, scores = locate_tokens(entry, [(entry.tokens or ())[at] for at in kept], example), scores[kept]
    return _share(entry, spans, scores, tokens, example)


def _align_patches(entry: MapEntry, grid: Span) -> Float[np.ndarray, "feature"]:
    if entry.grid not in (None, grid) or len(entry.scores) != grid[0] * grid[1]:
        got = f"a grid of {entry.grid[0]} x {entry.grid[1]}" if entry.grid else f"{len(entry.scores):,} scores"
        raise UsageError(f"{entry.name}: the model has {grid[0]} x {grid[1]} patches, the map {got}. Sum its pixels.")
    return np.array(entry.scores)


def _align_by_count(entry: MapEntry, encoded: EncodedInput, count: int) -> Float[np.ndarray, "feature"]:
    scores = np.array(entry.scores)
    if len(scores) == len(encoded):
        return scores[encoded.features]
    if len(scores) != count:
        raise UsageError(
            f"{entry.name}: has {count_text(len(scores), 'score')}, but the model reads {count_text(count, 'token')} ("
            f"{len(encoded)} with special ones). Add offsets or tokens."
        )
    return scores


def _folded(text: str) -> str:
    """Convert to lower case, character by character, so that offsets do not change."""
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)


def locate_tokens(entry: MapEntry, tokens: Sequence[str], example: Example) -> list[tuple[int, Span]]:
    """Return (segment, span in characters) of each token, located in order in the text, then in its pair."""
    texts, segment, cursor, spans = [_folded(text) for text in example.texts], 0, 0, list[tuple[int, Span]]()
    for at, token in enumerate(tokens):
        word = _folded(MARKERS.sub("", token))
        start = texts[segment].find(word, cursor)
        if start < 0 and segment + 1 < len(texts):
            segment, cursor = segment + 1, 0
            start = texts[segment].find(word)
        if start < 0 or texts[segment][cursor:start].strip():
            rest = example.texts[segment][cursor : cursor + 20]
            raise UsageError(
                f"{entry.name}: token {at + 1}, {excerpt(token, 40)}, is not what follows in the text, "
                f"{excerpt(rest, 40)}. Add offsets."
            )
        cursor = start + len(word)
        spans.append((segment, (start, cursor)))
    return spans


def _share(
    entry: MapEntry,
    spans: Sequence[tuple[int, Span]],
    scores: Float[np.ndarray, "span"],
    tokens: Sequence[Token],
    example: Example,
) -> Float[np.ndarray, "feature"]:
    """Divide the score of each span among the tokens inside it, which no other span may touch.

    Tokens of white space alone get 0. If there is one span around each token, they are matched in order, so that tokens
    that share a character each have a score.
    """
    if len(spans) == len(tokens) and all(map(_is_inside, tokens, spans)):
        return scores
    owners: dict[int, int] = {}
    sizes = np.zeros(len(spans), dtype=int)
    visible = [at for at, token in enumerate(tokens) if token.end > token.start]
    by_segment = {segment: [at for at in visible if tokens[at].segment == segment] for segment in (0, 1)}
    starts = {segment: [tokens[at].start for at in own] for segment, own in by_segment.items()}
    ends = {segment: [tokens[at].end for at in own] for segment, own in by_segment.items()}
    for number, (segment, (start, end)) in enumerate(spans):
        text = example.texts[segment] if segment < len(example.texts) else ""
        if end > len(text):
            raise UsageError(f"{entry.name}: span {number + 1}, [{start}, {end}], ends after the text.")
        touched = by_segment[segment][bisect_right(ends[segment], start) : bisect_left(starts[segment], end)]
        for at in touched if end > start else ():
            token = tokens[at]
            if not (start <= token.start and token.end <= end):
                raise UsageError(
                    f"{entry.name}: span {number + 1}, {excerpt(text[start:end], 40)} at [{start}, {end}], cuts the "
                    f"model's token {excerpt(token.text, 40)} at [{token.start}, {token.end}]. Use the model's tokens, "
                    "or words."
                )
            if at in owners:
                raise UsageError(
                    f"{entry.name}: spans {owners[at] + 1} and {number + 1} both cover {excerpt(token.text, 40)}."
                )
            owners[at] = number
            sizes[number] += 1
        if sizes[number] == 0 and scores[number] != 0:
            raise UsageError(
                f"{entry.name}: span {number + 1}, {excerpt(text[start:end], 40)} at [{start}, {end}], has a score, "
                "but the model reads no token there."
            )
    if missing := [tokens[at] for at in visible if at not in owners]:
        first = missing[0]
        raise UsageError(
            f"{entry.name}: no span covers the model's token {excerpt(first.text, 40)} at [{first.start}, {first.end}]."
        )
    shared = np.zeros(len(tokens))
    for at, number in owners.items():
        shared[at] = scores[number] / sizes[number]
    return shared


def _is_inside(token: Token, span: tuple[int, Span]) -> bool:
    segment, (start, end) = span
    return segment == token.segment and start <= token.start and token.end <= end
