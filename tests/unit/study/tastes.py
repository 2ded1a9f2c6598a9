"""People whose tastes are known and who vote through the study's own doors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from engine.study.annotators import confirm
from engine.study.ballots import Ballot, next_ballot
from engine.study.database import IssuedBallot as Given
from engine.study.database import Study, study_database
from tests.unit.study.polls import agreed, answer

CLOSE = 0.25
"""Two looks that differ by less are a tie."""


def poll(study: Study, people: int, strength: Sequence[float], seed: int = 0, noise: float = 1.0) -> None:
    """So many more people answer all that they are given. `strength`: of each method, in the design's order."""
    chance = np.random.default_rng(seed)
    for _ in range(people):
        person = agreed(study.token)
        while (ballot := next_ballot(person.id)) is not None:
            order = _order(ballot)
            looks = np.array(strength)[order] + noise * chance.standard_normal(len(order))
            ranks = [1 + int((looks > look + CLOSE).sum()) for look in looks]
            confirm(person.id, answer(ballot, *ranks, seconds=float(chance.uniform(5, 40))))


def _order(ballot: Ballot) -> list[int]:
    """Which method stands at each place: what no participant is told."""
    with study_database().reading() as session:
        return session.scalars(sa.select(Given.order).where(Given.token == ballot.token)).one()
