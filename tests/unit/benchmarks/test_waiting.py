"""The benchmarks of waiting: medians and ratios of two revisions, and the study whose votes are rated."""

from __future__ import annotations

import pytest

from benchmarks.waiting import BEFORE, NOW, RATIO, Visits, record, visit_rows, voted_study
from engine.study.database import study_database
from engine.study.results import results


def test_each_visit_has_a_row_for_each_revision_and_their_ratio() -> None:
    visits: Visits = {}
    for seconds in (4.0, 9.0, 5.0):
        record(visits, "Text", BEFORE, {"s": seconds, "cpu": 2.0})
    for seconds in (1.0, 2.0, 9.0):
        record(visits, "Text", NOW, {"s": seconds, "cpu": 1.0})
    record(visits, "Home", NOW, {"s": 3.0, "cpu": 1.0})
    assert visit_rows(visits) == [
        {"": "Text", "revision": BEFORE, "s": 5.0, "cpu": 2.0},
        {"": "Text", "revision": NOW, "s": 2.0, "cpu": 1.0},
        {"": "Text", "revision": RATIO, "s": 0.4, "cpu": 0.5},
        {"": "Home", "revision": NOW, "s": 3.0, "cpu": 1.0},
    ]


@pytest.mark.usefixtures("home")
def test_every_simulated_vote_counts() -> None:
    rated = results(voted_study(60))
    study_database().close()
    assert (rated.answers, rated.annotators, len(rated.votes)) == (60, 3, 60)
    assert rated.summary is not None
    assert [one.method for one in rated.summary.ratings] == ["integrated_gradients", "lime", "random"]
