"""Keys of Streamlit's components where they are made of data: a ballot's token, a slice's label, a model's name.

Streamlit joins a component's key and its events by two underscores and refuses to draw one whose key has them.
"""

from __future__ import annotations


def component_key(key: str) -> str:
    """The same key without two underscores in a row and without one at its end. Different keys stay different."""
    safe = key.replace("%", "%25").replace("__", "_%5F")
    return f"{safe[:-1]}%5F" if safe.endswith("_") else safe
