"""What the results of a study of guesses mean, in a plain sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.study.forward.summary import Condition, ForwardSummary

UNEVEN = 0.1
"""From which difference in the share of "cannot tell" on the accuracies are called hard to compare. Words alone."""


def meanings(found: ForwardSummary) -> dict[str, str]:
    """By part of the results, in the order in which a page shows them."""
    return {
        "helpful": _helpful(found),
        "plausible": _plausible(found),
        "leak": "A better guess is no proof of understanding: an explanation is made for the answer that the model "
        "gave, and its colours can give that answer away (Hase and Bansal, 2020).",
        "accuracy": _accuracy(found),
        "baseline": _baseline(found),
        "placebo": _placebo(found),
        "cannot_tell": _cannot_tell(found),
        "sureness": _sureness(found),
        "consistency": _consistency(found),
    }


def _helpful(found: ForwardSummary) -> str:
    better = [one.name for one in found.conditions if one.gain and one.gain.interval[0] > 0]
    worse = [one.name for one in found.conditions if one.gain and one.gain.interval[1] < 0]
    said = []
    if better:
        said.append(f"People guess the model's answer more often with {_and(better)} than without an explanation.")
    if worse:
        said.append(f"They guess it less often with {_and(worse)}.")
    open_ones = [one.name for one in found.conditions if one.gain and one.name not in better + worse]
    if open_ones:
        said.append(f"Not shown to help or to harm: {_and(open_ones)}.")
    return " ".join(said) or "Whether explanations help is not known: guesses with and without one are needed."


def _plausible(found: ForwardSummary) -> str:
    airs = [one.name for one in found.conditions if _surer(one) and not _helps(one)]
    if airs:
        return (
            f"People are surer with {_and(airs)}, and not shown to be right more often: "
            "what is convincing is not always helpful."
        )
    return (
        "Plausible is not helpful: guesses say which explanations help people foresee the model, and not which ones "
        "they find convincing; a study of rankings says that, and the two need not agree."
    )


def _accuracy(found: ForwardSummary) -> str:
    whose = "other people" if found.annotators > 1 else "other guesses of this one person"
    return (
        "Right is what the model said, be it true or not. The intervals are 95 % for "
        f"{whose} on the same items; those of the differences hold for all methods together."
    )


def _baseline(found: ForwardSummary) -> str:
    said = f"Who always names the class that the model gives most is right in {found.commonest:.0%}"
    if found.truthful is None:
        return f"{said}."
    return f"{said}; who names the true class, without a thought of the model, in {found.truthful:.0%}."


def _placebo(found: ForwardSummary) -> str:
    own = next((one for one in found.conditions if one.name == found.placebo), None)
    if own is None:
        return "The study has no placebo, so a gain may come from being shown anything at all."
    if _helps(own):
        return f"People guess better with the placebo, {own.name}, too: do not put the gain down to what is shown."
    return f"The placebo, {own.name}, is not shown to help: so it should be."


def _cannot_tell(found: ForwardSummary) -> str:
    if not found.cannot_tell:
        return "Nobody said that they cannot tell."
    shares = {one.name: one.cannot_tell / one.answers for one in found.conditions if one.answers}
    most, least = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
    said = (
        f"{found.cannot_tell:,} answers were “cannot tell”; they are no guesses and count as neither right nor wrong."
    )
    if shares[most] - shares[least] < UNEVEN:
        return said
    return (
        f"{said} They are {shares[most]:.0%} with {most} and {shares[least]:.0%} with {least}: "
        "compare these two with care, for an accuracy is of the items on which people dared to guess."
    )


def _sureness(found: ForwardSummary) -> str:
    levels = list(found.by_sureness.items())
    if len(levels) < 2:
        return "Whether people know when they are right is not known: all were equally sure."
    (low, doubtful), (high, certain) = levels[0], levels[-1]
    return (
        f"Of the guesses made {low} sure, {doubtful.accuracy:.0%} are right, and of those made {high} sure "
        f"{certain.accuracy:.0%}: where the share does not rise, how sure people are tells nothing."
    )


def _consistency(found: ForwardSummary) -> str:
    if found.consistency is None:
        return "Whether people agree with themselves is not known: no item was guessed twice by one person."
    share, pairs = found.consistency
    times = "one repeated guess" if pairs == 1 else f"{pairs:,} repeated guesses"
    return f"Asked again, people gave the same class in {share:.0%} of {times}."


def _helps(one: Condition) -> bool:
    return one.gain is not None and one.gain.interval[0] > 0


def _surer(one: Condition) -> bool:
    return one.gain is not None and one.gain.sure_interval[0] > 0


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
