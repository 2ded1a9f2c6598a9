"""Times as the person who looks at them reads a clock."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

import streamlit as st


def zone() -> tzinfo:
    """The browser's time zone; UTC where it does not say, or says one that this machine does not know."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (OSError, ValueError):
        return UTC
