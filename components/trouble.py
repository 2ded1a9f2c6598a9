"""What a person reads when something fails."""

from __future__ import annotations

import logging

from engine.errors import ExegesisError

LOG = logging.getLogger(__name__)


def sentence(error: Exception) -> str:
    """What a person reads. Anything unforeseen also goes to the log, with its traceback."""
    if isinstance(error, ExegesisError):
        return str(error)
    LOG.error("unforeseen failure", exc_info=error)
    return f"This failed unexpectedly ({type(error).__name__}: {error}). The server's log has the details."
