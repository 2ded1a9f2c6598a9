"""Opening a study takes a while: it runs on when its tab is closed, and any organiser sees how far it is."""

from __future__ import annotations

import threading

from components.computing import Computation
from engine.progress import CancelToken
from engine.study.studies import StudyRecord, open_study

Units = tuple[int, int, str]


class Opening:
    """One study that is being opened, or that could not be."""

    def __init__(self, study: int) -> None:
        self.study = study
        self._units: Units = (0, 0, "")
        self._work: Computation[StudyRecord] = Computation(f"opening of study {study}", self._open)
        self._work.token.join()  # for good: it does not end when nobody watches

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        """Before its next pass through the model; what is finished is found in the cache next time."""
        self._work.token.cancel()

    @property
    def over(self) -> bool:
        return self._work.over.is_set()

    def wait(self, seconds: int | float) -> bool:
        """Whether it is over, at the latest after so many seconds."""
        return self._work.over.wait(seconds)

    @property
    def progress(self) -> tuple[float, str]:
        """The share that is done, from 0 to 1, and words."""
        done, total, doing = self._units
        told = f"{done:,} of {total:,} {doing}".strip() if total else "reading the data set and the model"
        return (done / total if total else 0.0), f"{told} · {self._work.words()}"

    def trouble(self) -> Exception | None:
        """Why it ended without opening the study."""
        try:
            self._work.answer()
        except Exception as error:
            return error
        return None

    def _open(self, token: CancelToken) -> StudyRecord:
        return open_study(self.study, self._report, token)

    def _report(self, done: int, total: int, doing: str) -> None:
        """Predictions count examples; explanations are named by their method."""
        self._units = done, total, doing if doing in ("", "examples") else f"explanations, now {doing}"


def begin(study: int) -> Opening:
    """Starts to open it, unless that is under way."""
    with _lock:
        found = _openings.get(study)
        if found is None or found.over:
            found = _openings[study] = Opening(study)
            found.start()
        return found


def opening_of(study: int) -> Opening | None:
    """The latest one of that study which is under way, or whose end nobody has taken note of."""
    with _lock:
        return _openings.get(study)


def forget(study: int) -> None:
    """Its end has been taken note of."""
    with _lock:
        if study in _openings and _openings[study].over:
            del _openings[study]


_lock = threading.Lock()
_openings: dict[int, Opening] = {}
