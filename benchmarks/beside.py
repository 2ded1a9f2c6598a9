"""A long piece of work and the bare passes that it needs, step by step in turn: whatever else runs hits both alike."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.picture_memory import held, peak
from benchmarks.timing import ratio
from engine.models.classifier import AnyClassifier


class Beside:
    """Two clocks, of which ours runs until it is `paused`.

    `most`: bytes above the start that were held at most while ours ran, with what the bare work has left: to give that
    back in between would make ours wait for memory that the bare work finds ready.
    """

    def __init__(self, model: AnyClassifier) -> None:
        self.model, self.most = model, 0
        self.ours: list[float] = []
        self.bare: list[float] = []
        self._before = held(model)
        self._since = self._now()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Between two steps of ours: for the bare work of the next one, and what it needs beforehand."""
        self.stop()
        yield
        held(self.model)  # what ours holds at most is looked at from here on
        self._since = self._now()

    def stop(self) -> None:
        """A step of ours ends here."""
        self.ours.append(self._now() - self._since)
        self.most = max(self.most, peak(self.model) - self._before)

    def time(self, work: Callable[[], object]) -> None:
        """The bare work of a step."""
        started = self._now()
        work()
        self.bare.append(self._now() - started)

    def rows(self) -> list[dict[str, Any]]:
        """A row a side. `ratio` is that of all seconds, `low` to `high` the middle half of those of the steps."""
        steps = {"bare": np.array(self.bare), "exegesis": np.array(self.ours[1:])}  # before the first: our preparations
        seconds = {"bare": sum(self.bare), "exegesis": sum(self.ours)}
        return [
            {"by": by, "seconds": seconds[by], **ratio(steps, by, "bare"), "ratio": seconds[by] / seconds["bare"],
             "more MB": round(self.most / 1e6) if by == "exegesis" else ""}
            for by in steps
        ]  # fmt: skip

    def _now(self) -> float:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()
