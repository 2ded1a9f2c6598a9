"""The time of a run, split into shares: what a section leaves over passes on to the next, and none takes another's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from engine import runtime
from engine.errors import Cancelled, UsageError
from engine.progress import CancelToken, cancellable

K = TypeVar("K")
Cells = dict[str, Any]
USED_UP = "the time of this part was used up"
TOO_LONG = "longer than its share of the time"
NO_MEMORY = "out of memory"


@dataclass(frozen=True)
class TimeShare:
    """What is left until `end`, in seconds of `clock`."""

    end: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> TimeShare:
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        return self.end - self.clock()

    def quarter(self) -> TimeShare:
        """A quarter of what is left: room for costly work, while later work keeps the rest."""
        return TimeShare(self.clock() + max(self.left(), 0) / 4, self.clock)

    def split(self, weights: Mapping[K, float]) -> Iterator[tuple[K, TimeShare]]:
        """A share for each in turn, by its weight among those that are still to come, of what is left by then."""
        rest = sum(weights.values())
        for key, weight in weights.items():
            yield key, TimeShare(self.clock() + max(self.left(), 0) * weight / rest, self.clock)
            rest -= weight


@dataclass
class ShareToken(CancelToken):
    """Cancels work at its next step once the share is used up."""

    share: TimeShare = TimeShare(0)

    @property
    def cancelled(self) -> bool:
        return self.share.left() <= 0


def within(share: TimeShare, work: Callable[[], Cells]) -> Cells:
    """The cells that the work returns.

    `skipped`: why it has none (no time, no memory, a method that does not apply). `failed`: any other error, since one
    row that fails must not cost the rest of them.
    """
    if share.left() <= 0:
        return {"skipped": USED_UP}
    try:
        with cancellable(ShareToken(share=share)):
            return work()
    except Cancelled:
        return {"skipped": TOO_LONG}
    except UsageError as error:
        return {"skipped": str(error).partition(". ")[0].rstrip(".")}
    except Exception as error:
        cells = (
            {"skipped": NO_MEMORY} if runtime.out_of_memory(error) else {"failed": f"{type(error).__name__}: {error}"}
        )
    runtime.free()  # once the traceback has let go of the tensors
    return cells
