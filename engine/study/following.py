"""Results for a page that follows a study: many votes take long to rate, so what is known is shown meanwhile."""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import replace

from engine.errors import ExegesisError
from engine.study.results import Results, Votes, known_results, results, votes_so_far
from engine.study.studies import find

FEW = 300
"""So many answers are rated while the page waits: that takes about a second."""

_log = logging.getLogger("exegesis.study")


def latest(study: int) -> Results:
    """The newest results that need no wait; those of fewer votes while newer ones are computed behind the page.

    Where nothing is known yet, it waits. Errors: there is no such study.
    """
    behind = _behind(study)
    return results(study) if behind is None else replace(behind[1], study=find(study))


def votes_shown(study: int) -> Votes:
    """Of which votes `latest` tells now: a page that shows others draws itself again. Cheap."""
    behind = _behind(study)
    return votes_so_far(study) if behind is None else behind[0]


def _behind(study: int) -> tuple[Votes, Results] | None:
    """Results of fewer votes, if they must do for now; newer ones are then on their way."""
    known, votes = known_results(study), votes_so_far(study)
    if known is None or known[0] == votes or votes[0] <= FEW or known[1].study.design != find(study).design:
        return None
    _begin(study)
    return known


def _begin(study: int) -> None:
    """One thread a study; after its work it rests as long, so that voters have the machine for half of the time."""
    with _guard:
        if time.monotonic() < _rests.get(study, 0.0):
            return
        _rests[study] = float("inf")
    threading.Thread(target=_work, args=(study,), name=f"results of study {study}", daemon=True).start()


def _work(study: int) -> None:
    began = time.monotonic()
    try:
        results(study)
    except ExegesisError as error:  # deleted meanwhile, or the database is away: the page itself will say so
        _log.info("results of study %d: %s", study, error)
    finally:
        ended = time.monotonic()
        with _guard:
            _rests[study] = ended + (ended - began)


def _renew() -> None:
    global _guard
    _guard = threading.Lock()
    _rests.clear()


_guard = threading.Lock()
_rests: dict[int, float] = {}
"""Until when no new computation begins, by study; infinity: one is under way."""
os.register_at_fork(after_in_child=_renew)
