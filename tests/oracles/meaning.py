"""What a generated review says, read from its words alone by trying every way to take it apart. Slow on purpose."""

from __future__ import annotations

import re

from engine.data.vocabulary import DOMAINS, LIKING_VERB_STEMS, LIKING_VERBS, QUALITIES, STRONG_ADJECTIVES, Sides

VERDICTS = Sides(("gladly", "worth", "recommend"), ("regret", "wasted", "ruined", "spoiled", "warn"))
ADJECTIVES = [group.adjectives for domain in DOMAINS for group in domain.groups]
WEIGHTS: list[tuple[Sides, int]] = [
    (STRONG_ADJECTIVES, 3), (QUALITIES, 2), (LIKING_VERB_STEMS, 2), (VERDICTS, 3),
    *((adjectives, 2) for adjectives in ADJECTIVES), *((both, weight) for weight, both in LIKING_VERBS.items()),
]  # fmt: skip
POLAR = {
    word: (sign * weight, other)
    for both, weight in WEIGHTS
    for sign in (1, -1)
    for word, other in zip(both.by_sign(sign), both.by_sign(-sign) * 3, strict=False)
}
"""Each word with what it is worth and a word of the other side."""
ANY = re.compile(r"\b(" + "|".join(sorted(map(re.escape, POLAR), key=len, reverse=True)) + r")\b")
TURNING = re.compile(r"\b(not|never|hardly|nothing|no|without|lacked|anything but|far from)\b|n't\b")
RAISING = re.compile(r"\b(very|really|truly|remarkably|extremely|so|absolutely|simply|utterly)$")
LOWERING = re.compile(r"\b(fairly|reasonably|somewhat|moderately|a bit|slightly|a little)$")
HEDGE = re.compile(r"(?:I think|I suppose|perhaps|it seemed to me that|I would say that|apparently) ")
DENIAL = re.compile(
    r"(?:it is not true that|it is simply wrong that|nobody could say that|I cannot agree that|I doubt that) "
)
TOLD = re.compile(r"(?:my|the|an|a|one) (?:\w+ ){1,3}said that (.+)")
EXPECTED = re.compile(
    r"I (?:had expected|was sure|had assumed) that (.+), "
    r"(and|but) (?:so it turned out|I was right|I was mistaken|not at all)"
)
AGREES = re.compile(r"(.+), and (?:that is right|I agree|rightly so)$")
DISAGREES = re.compile(r"(.+), (?:but that is wrong|but I disagree|which is nonsense)$")
LAST = re.compile(r"(?:all in all|overall|in the end|on the whole|all things considered|to sum up), (.+)")
INFIX = {", but ": 1, ", yet ": 1, "; still, ": 1, "; nevertheless, ": 1, ", although ": 0, ", even though ": 0}
"""Which side counts."""
PREFIX = re.compile(r"(?:although|while|even if) (.+)")


def meaning(text: str) -> int:
    """Above 0: the review speaks for the thing."""
    sentences = [sentence[0].lower() + sentence[1:] for sentence in text.removesuffix(".").split(". ")]
    sentences = [re.sub(r"^i\b", "I", sentence) for sentence in sentences]
    last = LAST.fullmatch(sentences[-1])
    if last:
        return _one(last[1])
    return sum(map(_one, sentences))


def turned_words(text: str) -> str:
    """The text with each word of praise or blame changed for one of the other side."""
    return ANY.sub(lambda found: POLAR[found[0]][1], text)


def _one(words: str) -> int:
    found = set(_readings(words))
    assert len(found) == 1, (words, found)
    return found.pop()


def _readings(words: str) -> list[int]:
    """Every value that the words can have, by every way to take them apart; a clause alone comes first."""
    simple = _clause(words)
    if simple is not None:
        return [simple]
    pairs = []
    for mark, counts in INFIX.items():
        for at in (m.start() for m in re.finditer(re.escape(mark), words)):
            pairs.append((words[:at], words[at + len(mark) :], counts))
    first = PREFIX.fullmatch(words)
    if first:
        pairs += [(first[1][: m.start()], first[1][m.end() :], 1) for m in re.finditer(", ", first[1])]
    values = [((_clause(left), _clause(right)), counts) for left, right, counts in pairs]
    return [int(both[counts] or 0) for both, counts in values if all(both)]


def _clause(words: str) -> int | None:
    """The value of a clause without a contrast; None where it is none."""
    hedge, denial = HEDGE.match(words), DENIAL.match(words)
    if hedge:
        inner = _clause(words[hedge.end() :])
        return inner and (1 if inner > 0 else -1) * max(1, abs(inner) - 1)
    if denial:
        return _turned(_clause(words[denial.end() :]))
    expected = EXPECTED.fullmatch(words)
    if expected:
        inner = _clause(expected[1])
        return inner if expected[2] == "and" else _turned(inner)
    told = TOLD.fullmatch(words)
    if told:
        return _told(told[1])
    return None if re.search("[,;]|^(?:although|while|even if) ", words) else _basic(words)


def _told(words: str) -> int | None:
    agrees, disagrees = AGREES.fullmatch(words), DISAGREES.fullmatch(words)
    if agrees:
        return _clause(agrees[1])
    if disagrees:
        return _turned(_clause(disagrees[1]))
    return 0 if _clause(words) is not None else None


def _turned(value: int | None) -> int | None:
    return value and (-2 if value > 0 else 2)


def _basic(words: str) -> int | None:
    found = list(ANY.finditer(words))
    if not found:
        return 0
    if len(found) > 1 or len(TURNING.findall(words)) > 1:
        return None
    value, before = POLAR[found[0][0]][0], words[: found[0].start()].rstrip()
    if TURNING.search(words):
        return _turned(value)
    degree = bool(RAISING.search(before)) - bool(LOWERING.search(before))
    return (1 if value > 0 else -1) * (abs(value) + degree)
