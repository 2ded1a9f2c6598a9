"""A page that stands alone as a file: style inside, nothing fetched, no script but one of ours."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape

from components.looked_at import TEXT_FILE, from_stdin
from components.styles import Wanted, stylesheet
from engine.request import Example, Input

_CSS = (
    "body{margin:0;background:var(--xg-ground);color:var(--xg-text);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:70rem;margin:0 auto;padding:1.5rem}h1{font-size:1.35rem;margin:0 0 1rem}"
    "h2{font-size:1.05rem;margin:0 0 .4rem}section{margin:0 0 1.5rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--xg-special);padding:.7rem;border-radius:4px}"
    "ul{margin:.4rem 0;padding-inline-start:1.2rem}"
)
# Nothing in the file may run or be fetched, whatever a text holds: the browser is told so as well.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def standing_page(title: str, sections: Iterable[str], css: str = "", theme: Wanted = "auto", script: str = "") -> str:
    """The page, whose sections are HTML. `theme`: auto is that of the reader. `script`: the only one that may run."""
    scheme = "light dark" if theme == "auto" else theme
    body = "".join(f"<section>{section}</section>" for section in sections)
    ours = f"<script>{script}</script>" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}{_allowed(script)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>{stylesheet(theme)}"
        f"<style>:root{{color-scheme:{scheme}}}{_CSS}{css}</style></head>"
        f'<body class="xg"><main><h1>{escape(title)}</h1>{body}</main>{ours}</body></html>\n'
    )


def _allowed(script: str) -> str:
    """The policy's words for a script, by what it is: no other text on the page can run."""
    return f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else ""


def command_html(example: Input, *commands: str) -> str:
    """The commands that make it again, and the file that they read where they read one."""
    shown = "".join(f"<pre>{escape(command)}</pre>" for command in commands)
    return shown + _stdin_html(example) if isinstance(example, Example) else shown


def _stdin_html(example: Example) -> str:
    read = from_stdin(example)
    if read is None:
        return ""
    which = "second text" if read == "text_pair" else "text"
    return f'<p class="xg-small">Save the {which} as {TEXT_FILE}: it is too long or too special for a command line.</p>'
