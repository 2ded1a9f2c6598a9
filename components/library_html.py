"""What the Library page says in its own HTML: facts, checks, troubles. Everything that is not ours is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

SIGNS = {"ok": "✓", "note": "·", "broken": "✗"}


def facts_html(facts: Mapping[str, object]) -> str:
    """Names and values; what is not known is left out."""
    known = {name: str(value) for name, value in facts.items() if value not in (None, "")}
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in known.items())
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl></div>'


def trouble_html(text: str) -> str:
    """A failure in words, as it came: names of files and models in it are not Markdown."""
    return f'<div class="xg" role="alert"><p class="xg-error">{escape(text)}</p></div>'


def note_html(text: str) -> str:
    """A remark in words, as it came: nothing failed, but it should be read."""
    return f'<div class="xg" role="status"><p class="xg-note">{escape(text)}</p></div>'


def looks_html(looks: Iterable[tuple[str, str, str, str]]) -> str:
    """(status, name, detail, advice) of each look: `ok`, `note` or `broken`, told by a sign and not by colour."""
    return f'<div class="xg"><dl class="xg-facts">{"".join(_look(*look) for look in looks)}</dl></div>'


def _look(status: str, name: str, detail: str, advice: str) -> str:
    more = f' <span class="xg-small">{escape(advice)}</span>' if advice else ""
    mark = ' class="xg-bad"' if status == "broken" else ""
    sign = f'<span title="{escape(status)}">{SIGNS[status]}</span>'
    return f"<dt{mark}>{sign} {escape(name)}</dt><dd>{escape(detail)}{more}</dd>"


def duration(seconds: float) -> str:
    """A span of time that is waited for: 12 s, 3 min 5 s, 2 h 10 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
