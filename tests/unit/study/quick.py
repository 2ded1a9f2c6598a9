"""Ratings that take no time: the real ones, of fewer orders and resamples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from engine.progress import Report, silent
from engine.study import results, summary
from engine.study.counted_votes import Ranking
from engine.study.summary import RankingSummary, summarize_rankings


def rate_quickly(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], object] = lambda _: None) -> None:
    """Results are rated so from now on; `before` is told of how many votes each time."""

    def summarize(
        rankings: Sequence[Ranking], placebo: str | None = None, seed: int = 0, report: Report = silent
    ) -> RankingSummary:
        before(len(rankings))
        return summarize_rankings(rankings, placebo, seed, orders=4, resamples=20, report=report)

    for module in (results, summary):
        monkeypatch.setattr(module, "summarize_rankings", summarize)
