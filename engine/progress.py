"""How long work reports its progress and is told to stop, without knowing who listens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.errors import Cancelled

Report = Callable[[int, int, str], None]
"""Called with (units done, units in all, what is being done)."""


def silent(done: int, total: int, label: str) -> None:
    """The report of somebody who does not listen."""


@dataclass
class CancelToken:
    """A flag that another thread raises; the work looks at it between units."""

    _event: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self._event.set()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raises `Cancelled` once the flag is up."""
        if self.cancelled:
            raise Cancelled("Stopped on request. Finished parts are kept and will not be computed again.")
