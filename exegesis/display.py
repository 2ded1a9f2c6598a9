"""Display of results in notebooks: the pages' maps as HTML with its own style, and progress bars.

An output fetches nothing and runs no script. It follows the theme of the notebook (Jupyter, VS Code, Colab), else that
of the browser.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape
from typing import Any

import numpy as np
from jaxtyping import UInt8
from rich.console import Console, RenderableType

from components.styles import TONES, asset_sheet, same_unit_rules, stylesheet
from components.widgets.patch_map import LAYOUT, picture_style
from engine.cli.output import progress_bar, stoppable
from engine.progress import CancelToken, Report, silent

OUTPUT = "exegesis-output"
"""The CSS class of an output."""
LIGHT = (
    'body[data-jp-theme-light="true"]',
    "body.vscode-light",
    "body.vscode-high-contrast-light",
    "html[theme=light]",
)
DARK = (
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    "body.vscode-high-contrast:not(.vscode-high-contrast-light)",
    "html[theme=dark]",
)
"""Selectors of the theme of a notebook: Jupyter, VS Code and Colab."""
CARDS = "exegesis-cards"
_LAYOUT = (
    f".{OUTPUT}{{background:var(--xg-ground);padding:.6rem .8rem;font:15px/1.5 system-ui,sans-serif;max-width:64rem;"
    "color-scheme:light dark}"
    f"{','.join(f'{theme} .{OUTPUT}' for theme in LIGHT)}{{color-scheme:light}}"
    f"{','.join(f'{theme} .{OUTPUT}' for theme in DARK)}{{color-scheme:dark}}"
    f".{OUTPUT} :is(p,dl,dd){{text-align:start}}.{OUTPUT} pre{{white-space:pre;overflow-x:auto;margin:.4rem 0;"
    "background:none;color:inherit;font-size:.82rem;line-height:1.4}"
    f".{OUTPUT}>div+div{{margin-top:.6rem}}"
    f".{CARDS}{{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,12.5rem),1fr));gap:1.1rem 1.3rem}}"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STEP = re.compile(rf"\.xg \.([{''.join(TONES.values())}]\d+)\{{[^}}]*\}}")
_ELSEWHERE = re.compile(r"\[data-testid|st-key-|\[class\*=|\.xg-(prose|grid|list|scroll|item|next|summary|answer)\b")
"""Matches selectors of rules for the dashboard's frame, or for elements that no output has."""
WIDTH = 110
"""Maximum width of tables, in characters."""


def output_html(sections: Iterable[str], picture: UInt8[np.ndarray, "height width 3"] | None = None) -> str:
    """Return sections of HTML as one output with its style. `picture`: the picture below patch maps."""
    body = "".join(f"<div>{section}</div>" for section in sections)
    scope, pictures = f"o{uuid.uuid4().hex[:10]}", ""
    if picture is not None:
        pictures = f"<style>{_compact(asset_sheet(LAYOUT))}</style>{picture_style(picture, scope=f'.{scope}')}"
    return f'<div class="{OUTPUT} xg {scope}">{_style(body)}{pictures}{body}</div>'


def cards_html(cards: Iterable[str]) -> str:
    """Return the HTML of cards side by side."""
    return f'<div class="{CARDS}">{"".join(cards)}</div>'


def table_html(sections: Iterable[RenderableType]) -> str:
    """Return tables and lines of a command as preformatted, escaped HTML."""
    return f"<pre>{escape(table_text(sections))}</pre>"


def table_text(sections: Iterable[RenderableType]) -> str:
    """Return tables and lines as the command prints them into a pipe, at most `WIDTH` characters wide."""
    file = io.StringIO()
    out = Console(file=file, highlight=False, markup=False, emoji=False, width=WIDTH, color_system=None)
    for section in sections:
        out.print(section)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())


def _style(body: str) -> str:
    """Return the pages' style sheet, without the color steps and rules that the body does not use."""
    sheet = _STEP.sub(lambda step: step[0] if re.search(rf"\b{step[1]}\b", body) else "", _sheet())
    return f"<style>{sheet}{_LAYOUT}</style>"


@cache
def _sheet() -> str:
    whole = stylesheet("auto").removeprefix("<style>").removesuffix("</style>")
    return _compact(whole.replace(same_unit_rules(), ""))


def _compact(sheet: str) -> str:
    """Return a style sheet without comments, indentation and rules for elements that outputs do not have."""
    plain = re.sub(r"\s*\n\s*", "\n", _COMMENT.sub("", sheet))
    rules = re.findall(r"[^{}]+\{[^{}]*\}|[^{}]+\{(?:[^{}]*\{[^{}]*\})*\s*\}", plain)
    return "".join(rule.strip() for rule in rules if not _ELSEWHERE.search(rule.partition("{")[0]))


@contextlib.contextmanager
def working(title: str, progress: bool) -> Iterator[tuple[Report, CancelToken]]:
    """Show a progress bar, in the notebook or the terminal; yield its report and a cancel token.

    Ctrl-C or an interrupted cell cancels the token. `progress`: whether to show the bar. Finished work stays in the
    cache.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = hasattr(shell, "kernel")
    bar = (
        contextlib.nullcontext(silent) if not progress else _notebook_bar(title) if in_notebook else progress_bar(title)
    )
    with stoppable() as cancel, bar as report:
        yield report, cancel


@contextlib.contextmanager
def _notebook_bar(title: str) -> Iterator[Report]:
    """Show a progress bar in the output of the cell, and clear it at the end. It needs no widgets."""
    html, display = _display()
    handle: Any = display(html(bar_html(title, 0, 0)), display_id=True)

    def report(done: int, total: int, label: str) -> None:
        handle.update(html(bar_html(label or title, done, total)))

    try:
        yield report
    finally:
        handle.update(html(""))


def _display() -> tuple[Callable[[str], Any], Callable[..., Any]]:
    """Return IPython's `HTML` and `display`: every notebook has them, so they are not a dependency of ours."""
    module = sys.modules["IPython"].display
    return module.HTML, module.display


def bar_html(label: str, done: int, total: int) -> str:
    """Return the HTML of a progress bar; without a total it is indeterminate."""
    place = f' value="{done}" max="{total}"' if total else ""
    count = f" {done:,}/{total:,}" if total else ""
    return f"<div><progress{place}></progress> <span>{escape(label)}{count}</span></div>"
