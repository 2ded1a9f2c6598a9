"""Events and counts of this process, for the log and for `engine.monitoring`.

An event is a name with plain values, such as a job, a model or a method. It never holds what people type, upload or
vote.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.errors import unknown

LOG_FORMAT = "EXEGESIS_LOG_FORMAT"
LOG_FORMATS = ("text", "json")
OWN_LOGGERS = ("exegesis", "components")
FRAMES = 5
"""Number of innermost stack frames in the log line of an error."""
HTTP_REQUESTS, OPEN_PAGES = "exegesis_http_requests_total", "exegesis_open_pages"
EXPLAINED, EXPLANATION_SECONDS = "exegesis_explanation_seconds_count", "exegesis_explanation_seconds_sum"
"""The names of the counters."""
Value = str | int | float | bool | None


def log_event(log: logging.Logger, event: str, level: int = logging.INFO, **fields: Value) -> None:
    """Log an event on one line. At level INFO it appears if `EXEGESIS_LOG_FORMAT` is json, or the level is lowered."""
    if log.isEnabledFor(level):
        text = " ".join([event, *(f"{name}={value}" for name, value in fields.items())])
        log.log(level, "%s", text, extra={"event": event, "fields": fields})


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time (UTC), level, logger, process, event, and the fields of the event.

    For other records the event is the message without its arguments. An error is logged with its type and stack frames,
    without its message. Arguments and error messages may hold what people typed.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "event": getattr(record, "event", None) or str(record.msg),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _error_fields(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def _error_fields(error: BaseException) -> Mapping[str, object]:
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "at": places}


def log_format() -> str:
    """Return the value of `EXEGESIS_LOG_FORMAT`, "text" by default. Errors: it is neither text nor json."""
    wanted = os.environ.get(LOG_FORMAT, "").strip() or LOG_FORMATS[0]
    if wanted not in LOG_FORMATS:
        raise unknown(LOG_FORMAT, wanted, LOG_FORMATS)
    return wanted


def configure_logging() -> None:
    """Configure logging by `EXEGESIS_LOG_FORMAT`. Errors: as in `log_format`.

    With json, everything that reaches Python's root logger goes to stderr as JSON lines, and events are included.
    """
    if log_format() == "text":
        return
    root = logging.getLogger()
    if not any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter())
        root.addHandler(handler)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)


Labels = tuple[tuple[str, str], ...]


class Counts:
    """Sums by name and labels, shared by all threads."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._lock = threading.Lock()

    def add(self, name: str, amount: int | float = 1, **labels: str) -> None:
        """Add to a sum; a negative amount subtracts."""
        with self._lock:
            self._sums[name][tuple(sorted(labels.items()))] += amount

    def sums(self, name: str) -> dict[Labels, float]:
        """Return the sums of this name by labels."""
        with self._lock:
            return dict(self._sums[name])


counts = Counts()
"""The counts of this process since its start."""
