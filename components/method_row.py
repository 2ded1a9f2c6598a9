"""The row of a method: its map, its check and cost beside it, its caution below, its provenance on a click."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

from components.numbers import count, plain, seconds, small
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions, scale_group
from engine.registry import Explainer
from engine.request import Example
from engine.result import Check, Explanation
from engine.word_units import units_of

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MethodRow:
    """The content of a row, in plain values."""

    title: str
    view: TokenMap
    check: Check | None
    cost: str
    notes: tuple[str, ...]
    caution: str
    citation: str
    facts: Facts


@dataclass(frozen=True)
class Placeholder:
    """The row of a method without a map: its numbers are still to come, or there is an error."""

    title: str
    sentence: str
    failed: bool = False


def method_row(
    method: Explainer,
    made: Explanation,
    example: Example,
    unit: str,
    said: Iterable[str] = (),
    look: ViewOptions = DEFAULT_VIEW,
    ends: Mapping[str, float] | None = None,
) -> MethodRow:
    """The row of an explanation. Notes that were `said` elsewhere on the page are left out.

    `ends`: where the scales end that maps share (`look.shared_ends`).
    """
    view = replace(token_map(method, made, example, unit), look=look)
    group = scale_group(method, made.provenance.params)
    if ends and group is not None and group in ends:
        view = replace(view, end=ends[group], sharing=group)
    notes = tuple(note for note in made.remarks if note not in set(said))
    return MethodRow(
        method.title, view, made.check, cost_line(made), notes, method.caution, method.citation, facts(method, made)
    )


def token_map(method: Explainer, made: Explanation, example: Example, unit: str) -> TokenMap:
    """The map of an explanation, on its own scale."""
    texts = (example.text,) if example.text_pair is None else (example.text, example.text_pair)
    drawn, origin = units_of(made, example, unit), made.provenance
    return TokenMap(drawn, texts, method.is_signed(origin.params), origin.target_label, made.truncated)


def facts(method: Explainer, made: Explanation) -> Facts:
    """Everything that the numbers depend on: names and values."""
    origin, axes = made.provenance, method.axes_at(made.provenance.params)
    chosen = ", ".join(f"{name} = {value}" for name, value in origin.params.items()) or "none"
    return (
        ("method", f"{origin.method}, version {origin.version}"),
        ("parameters", chosen),
        ("model", f"{origin.model}, revision {origin.revision}"),
        ("explained", "the score" if made.prediction.regression else f"class {origin.target}: {origin.target_label}"),
        ("run", f"{origin.dtype} on {origin.device}, seed {origin.seed}"),
        ("cost", f"{count(made.evaluations, 'model evaluation')}, {seconds(made.seconds)} when computed"),
        ("removed by", axes.removal),
        ("explains", axes.behaviour),
        ("summarized as", axes.summary),
        *_shares(made),
        ("source", method.citation),
    )


def _shares(made: Explanation) -> Facts:
    """The shares of the logit, for a method that distributes all of it: not all of it reaches the input."""
    parts = made.extras.get("relevance")
    if parts is None:
        return ()
    input = "tokens" if made.grid is None else "patches and special tokens"
    named = {"tokens": input, "biases": "biases", "positions": "positions", "softmax": "softmax of attention"}
    terms = " + ".join(f"{plain(parts[part])} ({name})" for part, name in named.items())
    return (("score" if made.prediction.regression else "logit", f"{plain(parts['logit'])} = {terms}"),)


def cost_line(made: Explanation) -> str:
    """The cost of the numbers in a line."""
    source = "cached" if made.cached else seconds(made.seconds)
    return f"{count(made.evaluations, 'evaluation')} · {source}"


@functools.lru_cache(maxsize=128)
def method_row_html(row: MethodRow) -> str:
    """The row. Everything that is not ours is escaped. Remembered, since most reruns of a page draw the same rows."""
    return (
        f'<div class="xg"><div class="xg-row"><div class="xg-side"><p class="xg-title">{escape(row.title)}</p>'
        f'{check_html(row.check)}<p class="xg-small">{escape(row.cost)}</p></div>'
        f"<div>{token_map_html(row.view)}{footer_html(row)}</div></div></div>"
    )


def footer_html(row: MethodRow) -> str:
    """The lines below a map: its scale, its caution, its notes, and the rest on a click."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in row.notes)
    return (
        f'<div class="xg-small xg-foot">{legend_html(row.view)}{details_html(row.facts)}'
        f'{notes}<p class="xg-caution">{escape(row.caution)}</p></div>'
    )


def check_html(check: Check | None) -> str:
    """The method's own check: name, value, good or not, a line for each number."""
    return "" if check is None else "".join(map(_check_part_html, check.parts))


def _check_part_html(part: Check) -> str:
    name, value, limit = escape(part.name), escape(small(part.value)), plain(part.limit)
    if part.ok:
        return f'<p class="xg-small" title="good: at most {limit}">✓ {name}: {value}</p>'
    return f'<p class="xg-small xg-bad">✗ {name}: {value}, not good (above {limit})</p>'


def details_html(facts: Facts) -> str:
    """The facts that the numbers depend on, on a click."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f'<details class="xg-details"><summary>Details</summary><dl class="xg-facts">{rows}</dl></details>'


def waiting_placeholder(title: str, now: bool) -> Placeholder:
    """The row of a method whose numbers are still to come. `now`: they are being computed."""
    return Placeholder(title, "being computed …" if now else "waiting …")


def placeholder_html(row: Placeholder) -> str:
    """The row of a method without a map."""
    kind = " xg-error" if row.failed else ""
    return (
        f'<div class="xg"><div class="xg-row xg-quiet"><p class="xg-title">{escape(row.title)}</p>'
        f'<p class="xg-sentence{kind}">{escape(row.sentence)}</p></div></div>'
    )
