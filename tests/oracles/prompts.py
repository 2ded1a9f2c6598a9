"""The next word of a generated prompt, read from its text alone; None where the text does not decide it."""

from __future__ import annotations

import re

from tests.oracles.meaning import meaning

BLANK = "___"
"""Stands for a word that was taken out."""
RELATIONS = ("lives in", "likes the color", "works as a", "owns a")
"""What a sentence says of a person and a value, and a question of a person."""
REVIEW = " The review is"


def number(text: str) -> str | None:
    """The number of the verb that follows: that of the first noun of the last clause before any other noun."""
    main = text.rpartition(", ")[2]
    subject = re.match(r"[Tt]he (\w+) ", main)
    if subject is None or subject[1] == BLANK:
        return None
    return "plural" if subject[1].endswith("s") else "singular"


def other_person(text: str) -> str | None:
    """Of the two who met, the one who does not act afterwards."""
    met = re.match(rf"(?:When|After|While|Yesterday|Then) ({BLANK}|\w+) and ({BLANK}|\w+) ", text)
    actor = re.search(rf"(?:, |\. |, and )({BLANK}|\w+) \w+ (?:a|the) \w+ to$", text)
    assert met is not None, text
    assert actor is not None, text
    left = {met[1], met[2]} - {actor[1]} - {BLANK}
    # Without the actor's first mention the other one is still the only one left.
    return left.pop() if len(left) == 1 and actor[1] != BLANK else None


def stated_value(text: str) -> str | None:
    """What exactly one sentence of the context states of the person in the question."""
    *sentences, question = text.split(". ")
    for relation in RELATIONS:
        if asked := re.fullmatch(rf"(\w+) {relation}", question):
            matches = [re.fullmatch(rf"(\w+) {relation} (\w+)", sentence) for sentence in sentences]
            values = [match[2] for match in matches if match and match[1] == asked[1] and match[2] != BLANK]
            return values[0] if len(values) == 1 and asked[1] != BLANK else None
    return None


def sentiment(text: str) -> str | None:
    """What the review says, if it says anything."""
    assert text.endswith(REVIEW)
    value = meaning(text.removesuffix(REVIEW))
    return None if value == 0 else "positive" if value > 0 else "negative"
