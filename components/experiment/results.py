"""Parts of an experiment's results that several pages share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST_REASONS = 40


def skip_reasons_html(lines: Sequence[tuple[str, str, str]]) -> str:
    """Why something was left out, as a list; of very many reasons the first ones. Everything is escaped.

    `lines`: a reason, how many examples or maps it is of, and by which methods.
    """
    rows = "".join(
        f'<dt>{escape(number)}</dt><dd>{escape(why)} <span class="xg-small">{escape(of)}</span></dd>'
        for why, number, of in lines[:MOST_REASONS]
    )
    rest = len(lines) - MOST_REASONS
    more = f'<p class="xg-small">and {rest:,} more reasons</p>' if rest > 0 else ""
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl>{more}</div>'
