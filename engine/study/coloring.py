"""How strongly the parts of an explanation are colored, by the one rule of a study."""

from __future__ import annotations

import zlib

import numpy as np
from jaxtyping import Float

from engine.request import Example, Input
from engine.study.design import BY_RANK, BY_SIGN
from engine.study.freezing import FrozenMap
from engine.word_units import units


def colored(shown: FrozenMap, given: Input, rule: str) -> Float[np.ndarray, "seq"]:
    """A number a token from -1 to 1: its color. Special tokens have 0, and all tokens where all scores are equal.

    By rank, the part of rank r among n has (r / n) ** 2, whatever the method; equal scores are put in an order by
    chance, always the same. What is drawn as one part has its number at its first token.
    """
    scores = np.where([token.special for token in shown.tokens], 0, shown.scores)
    if rule == BY_RANK:
        return _by_rank(shown, scores, given)
    largest = np.abs(scores).max(initial=0)
    shares = scores / largest if largest > 0 else scores
    return shares if rule == BY_SIGN else np.abs(shares)


def _by_rank(shown: FrozenMap, scores: Float[np.ndarray, "seq"], given: Input) -> Float[np.ndarray, "seq"]:
    places, sizes = _parts(shown, scores, given)
    strengths = np.zeros(len(scores))
    if not len(sizes) or np.ptp(sizes) == 0:
        return strengths
    chance = np.random.default_rng(zlib.crc32(np.ascontiguousarray(scores).tobytes())).permutation(len(sizes))
    ranks = np.empty(len(sizes))
    ranks[np.lexsort((chance, sizes))] = np.arange(1, len(sizes) + 1)
    strengths[places] = (ranks / len(sizes)) ** 2
    return strengths


def _parts(shown: FrozenMap, scores: Float[np.ndarray, "seq"], given: Input) -> tuple[list[int], np.ndarray]:
    """The first position of what is drawn as one, and its size."""
    if not isinstance(given, Example):
        places = [at for at, token in enumerate(shown.tokens) if not token.special]
        return places, np.abs(scores[places])
    drawn = [unit for unit in units(shown.tokens, scores, given) if not unit.special]
    return [unit.tokens[0] for unit in drawn], np.array([abs(unit.score) for unit in drawn])
