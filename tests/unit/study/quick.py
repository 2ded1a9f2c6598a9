"""Ratings that take no time: the real ones, of fewer orders and resamples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from engine.study.ratings import summary as summaries
from engine.study.ratings.matches import Match
from engine.study.ratings.summary import Summary


def rate_quickly(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], object] = lambda _: None) -> None:
    """Results are rated so from now on; `before` is told of how many votes each time."""
    real = summaries.summary

    def summary(matches: Sequence[Match], placebo: str | None = None, seed: int = 0) -> Summary:
        before(len(matches))
        return real(matches, placebo, seed, orders=4, resamples=20)

    monkeypatch.setattr(summaries, "summary", summary)
