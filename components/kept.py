"""What every control of a page says, so that the browser shows what Python holds."""

from __future__ import annotations

from typing import Literal

KEPT: Literal["session"] = "session"
"""The `persist_state` of a control whose value stands in the link.

Streamlit tells the browser of a value that Python gave in that one run alone. A control that the browser draws later,
as those in a popover are, starts from a default of its own and reports it as if it were a choice; one that a closed
section hides falls back to the value of its first run. What persists is told in each run until the browser reports it,
so nobody's choice is overwritten, and stays while it is hidden.
"""
