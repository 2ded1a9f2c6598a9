"""Streamlit, imported on first use, since the HTML builders also serve notebooks, which need no server.

Write `from components.lazy import st` instead of `import streamlit as st` in a module of builders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lazy import LazyModule

if TYPE_CHECKING:
    import streamlit as st
else:
    st = LazyModule("streamlit")

__all__ = ["st"]
