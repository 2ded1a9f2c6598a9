"""The grids of the Layers page as HTML. Rows are layers, the last one on top; columns are positions or heads.

All names are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from components.numbers import MINUS, fixed, percent, plain, signed
from components.palette import Side, step_of
from components.styles import TONES
from engine.format import visible_token
from engine.result import Token

if TYPE_CHECKING:
    from engine.inside.lens import LensResult
    from engine.inside.patching import Effects, PatchPreview

EMBEDDING = "Embedding"
HEADS, RESIDUAL = "heads", "residual"
NEARLY = 0.9
FIT = 5
"""Number of columns that fit on a phone."""
LEAST_SHOWN = 0.005
"""Smallest value that is drawn with a number."""
READ = "prediction"
"""Label of the column of the logit lens from which the model reads its own prediction."""


def layer_name(row: int, site: str = RESIDUAL) -> str:
    """Return the name of a row. The first row of the residual stream is the embedding."""
    number = row - 1 if site == RESIDUAL else row
    return EMBEDDING if number < 0 else f"Layer {number}"


def lens_html(result: LensResult) -> str:
    """HTML grid of the logit lens.

    Each cell names the most probable output; its color and number are the probability of the target. The number is
    labeled “target” if that is another output. For a regression head, color and number are the score.
    """
    largest = max(1e-9, float(abs(result.value).max())) if result.regression else 1.0
    whole = result.read_position is None
    heads = "".join(
        _head(token, f"{at}, {READ}" if at == result.read_position else str(at))
        for at, token in enumerate(result.tokens)
    )
    heads += f'<th scope="col">Mean<small>{READ}</small></th>' if whole else ""
    rows = []
    for depth in range(len(result.reading)):
        cells = [_lens_cell(result, depth, at, largest, at == result.read_position) for at in range(len(result.tokens))]
        cells += [_lens_cell(result, depth, None, largest, True)] if whole else []
        rows.append(f'<tr><th scope="row">{layer_name(depth)}</th>{"".join(cells)}</tr>')
    label = f"Logit lens: layers as rows, tokens as columns, {result.target} as the target"
    value = "score" if result.regression else f"probability of “<bdi>{escape(_visible(result.target))}</bdi>”"
    scale = "signed" if result.regression else "amount"
    ends = f"{signed(-largest)} to {signed(largest)}" if result.regression else "0 to 100%"
    legend = (
        f"Color and number: {value}, {ends}. Word: the most probable output. Column “{READ}”: where the model's own "
        "prediction is read."
    )
    return _box(label, heads, rows, legend, scale, result.read_position == len(result.tokens) - 1)


def _lens_cell(result: LensResult, depth: int, at: int | None, largest: float, is_read: bool) -> str:
    value = float(result.reading[depth] if at is None else result.value[depth, at])
    top = result.reading_top[depth] if at is None else result.top[depth][at]
    top_value = float(result.reading_top_value[depth] if at is None else result.top_value[depth, at])
    number = signed(value) if result.regression else percent(value)
    place = "mean over positions" if at is None else f"{_visible(result.tokens[at].text)} ({at})"
    best = "" if result.regression else f"{_visible(top)} {percent(top_value)}; "
    title = f"{layer_name(depth)}, {place}: {best}{_visible(result.target)} {number}"
    side: Side = "amount" if not result.regression else "for" if value > 0 else "against"
    text = "" if result.regression else f"<bdi>{escape(_visible(top))}</bdi>"
    whose = "" if result.regression or top == result.target else "target "
    below = f"<small>{whose}{number}</small>" if abs(value) >= LEAST_SHOWN else ""
    return _cell(side, value, largest, title, text + below, is_read)


def patch_html(preview: PatchPreview, site: str, shares: Effects, exact: bool) -> str:
    """HTML grid of the restored share of each place, on a zero-centered scale.

    Blue moves toward the clean run, orange away from it.
    """
    largest = max(1.0, float(abs(shares).max()))
    if site == HEADS:
        heads = "".join(f'<th scope="col">{at}</th>' for at in range(shares.shape[1]))
    else:
        pairs = enumerate(zip(preview.tokens, preview.corrupted_tokens, strict=True))
        heads = "".join(_pair_head(at, one, other, at in preview.query.tokens) for at, (one, other) in pairs)
    rows = []
    for row, values in enumerate(shares.tolist()):
        cells = "".join(_patch_cell(preview, site, row, at, value, largest) for at, value in enumerate(values))
        rows.append(f'<tr><th scope="row">{layer_name(row, site)}</th>{cells}</tr>')
    columns = "heads" if site == HEADS else "tokens"
    what = "restored share" if exact else "restored share estimated by gradients"
    label = f"Patching: layers as rows, {columns} as columns, {what}"
    ends = f"{MINUS}{100 * largest:.0f}% to {100 * largest:.0f}%"
    legend = f"{what.capitalize()}, {ends}. Blue: toward the clean run. Orange: away from it."
    largest_of = abs(shares).max(0).tolist()
    from_end = largest_of[-1] >= LEAST_SHOWN > max(largest_of[:FIT])
    return _box(label, heads, rows, legend, "signed", from_end)


def _patch_cell(preview: PatchPreview, site: str, row: int, at: int, value: float, largest: float) -> str:
    place = f"head {at}" if site == HEADS else f"{_visible(preview.tokens[at].text)} ({at})"
    title = f"{layer_name(row, site)}, {place}: {fixed(100 * value, 1, sign=True)}%"
    text = fixed(100 * value, 0, sign=True) if abs(value) >= LEAST_SHOWN else ""
    return _cell("for" if value > 0 else "against", value, largest, title, text, False)


def _cell(side: Side, value: float, largest: float, title: str, text: str, is_read: bool) -> str:
    step = step_of(value, largest)
    classes = " ".join(filter(None, (f"{TONES[side]}{step}" if step else "", "xg-read" if is_read else "")))
    return f'<td class="{classes}" title="{escape(title)}">{text}</td>'


def _head(token: Token, below: str) -> str:
    return f'<th scope="col"><bdi>{escape(_visible(token.text))}</bdi><small>{below}</small></th>'


def _pair_head(at: int, one: Token, other: Token, corrupted: bool) -> str:
    """HTML column head of a token, with the token of the corrupted text below it if it differs."""
    if one.text == other.text:
        return _head(one, f"{at} corrupted" if corrupted else str(at))
    name = f"<bdi>{escape(_visible(one.text))}</bdi><small>← <bdi>{escape(_visible(other.text))}</bdi></small>"
    return f'<th scope="col" class="xg-changed">{name}</th>'


def _box(label: str, heads: str, rows: Sequence[str], legend: str, scale: str, from_end: bool = False) -> str:
    """HTML of a grid that scrolls sideways, with its legend. `from_end`: a phone shows its last columns first."""
    more = '<p class="xg-small xg-more">Scroll sideways for more columns.</p>' if heads.count("<th") > FIT else ""
    start = " xg-from-end" if more and from_end else ""
    return (
        f'<div class="xg">{more}<div class="xg-scroll xg-layers-box{start}" role="region" tabindex="0" '
        f'aria-label="{escape(label)}"><table class="xg-grid xg-layers"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(reversed(rows))}</tbody></table></div>"
        f'<p class="xg-small"><span class="xg-scale xg-{scale}" aria-hidden="true"></span>{legend}</p></div>'
    )


def _visible(text: str) -> str:
    """Return a token with visible white space."""
    return visible_token(text) or "␣"


def best_places(shares: Effects, least: float) -> list[tuple[int, int, int, float]]:
    """Return runs of rows with the same best place, as (first row, last row, place, its largest share).

    Rows are visited from the last to the first. A place remains the best one while its share is at least `NEARLY` times
    the row's largest. Rows whose largest share is below `least` are skipped.
    """
    runs: list[tuple[int, int, int, float]] = []
    for row in reversed(range(len(shares))):
        values = shares[row]
        best = float(values.max())
        if best < least:
            continue
        if runs and values[runs[-1][2]] >= NEARLY * best:
            _, last, place, largest = runs[-1]
            runs[-1] = (row, last, place, max(largest, float(values[place])))
        else:
            runs.append((row, row, int(values.argmax()), best))
    return runs[::-1]


def heads_html(means: Effects, errors: Effects) -> str:
    """HTML grid of the mean share of the prediction that each head moves. `errors`: standard errors of the means."""
    largest = float(means.max()) or 1.0
    heads = "".join(f'<th scope="col">{at}</th>' for at in range(means.shape[1]))
    rows = []
    for row, values in enumerate(means.tolist()):
        cells = "".join(
            _cell(
                "amount", value, largest, f"Head {row}.{at}: {percent(value)} ± {plain(100 * errors[row, at])} points",
                f"{100 * value:.1f}" if value >= LEAST_SHOWN else "", False,
            )
            for at, value in enumerate(values)
        )  # fmt: skip
        rows.append(f'<tr><th scope="row">{layer_name(row, HEADS)}</th>{cells}</tr>')
    legend = f"Mean share of the prediction that a head moves, in percent, 0 to {percent(largest)}."
    return _box("Head importance: layers as rows, heads as columns", heads, rows, legend, "amount")
