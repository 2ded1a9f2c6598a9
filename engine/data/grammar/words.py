"""The words that carry a verdict by themselves, and those that change one."""

from __future__ import annotations

from dataclasses import dataclass


def listed(text: str) -> tuple[str, ...]:
    """The entries of a list written with commas."""
    return tuple(" ".join(entry.split()) for entry in text.split(","))


@dataclass(frozen=True)
class Sides:
    """Entries that speak for something and entries that speak against it."""

    good: tuple[str, ...]
    bad: tuple[str, ...]

    def of(self, sign: int) -> tuple[str, ...]:
        return self.good if sign > 0 else self.bad


def sides(good: str, bad: str) -> Sides:
    return Sides(listed(good), listed(bad))


PLAIN, STRONG = 2, 3
"""How much an adjective counts by itself."""
STRONGLY = Sides(
    listed("excellent, superb, wonderful, brilliant, outstanding, magnificent, perfect, fantastic"),
    listed("terrible, awful, dreadful, horrible, appalling, atrocious, abysmal, disastrous"),
)
RAISED = listed("very, really, truly, remarkably, extremely, so")
"""Before a plain adjective: one more."""
UTTERLY = listed("absolutely, simply, utterly, truly")
"""Before a strong adjective: one more."""
LOWERED = sides("fairly, reasonably, somewhat, moderately", "a bit, slightly, somewhat, a little")
"""Before a plain adjective: one less."""

LIKED = {2: sides("liked, enjoyed", "disliked, resented"), 4: sides("loved, adored", "hated, detested")}
LIKE = Sides(listed("like, enjoy, admire"), listed("dislike, mind, resent"))
"""Plain forms, for what was not done."""
HAD = sides("charm, character, polish, warmth, flair", "flaws, faults, defects, shortcomings, weak spots")
"""What something has or is without."""

BE_NOT = listed("was not, wasn't, was not very, was not at all, was never, was hardly, was anything but, was far from")
DO_NOT = listed("did not, didn't, never did")
NOT_FIND = (*DO_NOT, "could not")
DENIED = listed(
    "it is not true that, it is simply wrong that, nobody could say that, I cannot agree that, I doubt that"
)
HEDGED = {True: listed("I think, I suppose, perhaps"),
          False: listed("I think, I suppose, perhaps, it seemed to me that, I would say that, apparently")}  # fmt: skip
"""Before what the writer felt, and before what was so."""
PEOPLE = listed(
    "my sister, my neighbour, an old friend, the man beside me, a colleague, one critic, the local paper, my brother"
)
RIGHT = {True: listed("and that is right, and I agree, and rightly so"),
         False: listed("but that is wrong, but I disagree, which is nonsense")}  # fmt: skip
"""What the writer thinks of what somebody else said."""
HELD = {True: listed("and so it turned out, and I was right"), False: listed("but I was mistaken, but not at all")}
"""How an expectation ended."""
EXPECTED = listed("I had expected, I was sure, I had assumed")
SUMMED = listed("all in all, overall, in the end, on the whole, all things considered, to sum up")
CONTRASTS = (
    "{aside}, but {main}",
    "{aside}, yet {main}",
    "although {aside}, {main}",
    "while {aside}, {main}",
    "even if {aside}, {main}",
    "{main}, although {aside}",
    "{main}, even though {aside}",
    "{aside}; still, {main}",
    "{aside}; nevertheless, {main}",
)
"""Which side counts is told by the connective."""
