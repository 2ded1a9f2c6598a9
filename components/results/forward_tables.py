"""The numbers of a study of guesses as tables."""

from __future__ import annotations

import pandas as pd

from components.numbers import plain
from components.results.tables import DECIMALS
from engine.study.forward.summary import Condition, ForwardSummary, Gain, Share


def condition_table(found: ForwardSummary) -> pd.DataFrame:
    """A row a condition, no explanation first; shares are from 0 to 1."""
    named = {found.placebo: f"{found.placebo} (placebo)"}
    return pd.DataFrame(
        [{"Explanation": named.get(one.name, one.name), **_counts(one), **_gain(one.gain)} for one in found.conditions]
    )


def sureness_table(found: ForwardSummary) -> pd.DataFrame:
    """A row for each condition and level of sureness that was used, all conditions together first."""
    groups = {"all": found.by_sureness} | {one.name: one.by_sureness for one in found.conditions}
    return pd.DataFrame(
        [
            {"Explanation": name, "How sure": level, "Guesses": share.guesses, **_span(share)}
            for name, levels in groups.items()
            for level, share in levels.items()
        ]
    )


def _counts(one: Condition) -> dict[str, float | None]:
    guesses = one.share.guesses if one.share else 0
    return {
        **_share(one.share),
        "Guesses": guesses,
        "Cannot tell": one.cannot_tell,
        "How sure": _short(one.sure),
        "Median seconds": None if one.seconds is None else round(one.seconds.median, 1),
    }


def _share(share: Share | None) -> dict[str, float | None]:
    low, high = share.interval if share else (None, None)
    return {"Right": _short(share.accuracy if share else None), "Low": _short(low), "High": _short(high)}


def _span(share: Share) -> dict[str, float | str | None]:
    """With the interval in one column: five fit on a telephone."""
    low, high = share.interval
    return {"Right": _short(share.accuracy), "Interval": f"{plain(low)} to {plain(high)}"}


def _gain(gain: Gain | None) -> dict[str, float | None]:
    low, high = gain.interval if gain else (None, None)
    sure_low, sure_high = gain.sure_interval if gain else (None, None)
    return {
        "Gain": _short(gain.accuracy if gain else None),
        "Low, gain": _short(low),
        "High, gain": _short(high),
        "Surer": _short(gain.sure if gain else None),
        "Low, surer": _short(sure_low),
        "High, surer": _short(sure_high),
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)
