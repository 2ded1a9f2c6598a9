"""The panel that says what is optimised, with a figure of the two loops. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from components.palette import PALETTES, SIDES, STEPS, Side, Theme, color

TITLE = "What is optimised?"
FIGURE = (
    "Two loops. Inner loop: the student learns to answer like the teacher, with the explainer's maps beside the "
    "examples. Outer loop: the student answers new examples without maps, and the explainer is changed so that it "
    "agrees with the teacher more."
)
STEPS_OF = (
    (
        "Inner loop.",
        "The student sees a few examples with what the teacher says of them and the explainer's map of each. It "
        "changes its weights so that it answers as the teacher does, and so that its own attention points where the "
        "map does (SMaT, equations 6 and 7).",
    ),
    (
        "Outer loop.",
        "One more such step is tried out. The student that it would make is asked about other examples, without any "
        "map. The explainer is then changed in the direction that would have made these answers agree more with the "
        "teacher's (equations 8 and 9).",
    ),
    (
        "What is learned.",
        "One coefficient for each attention head of the teacher: the map is the softmax over tokens or patches of the "
        "heads' logits, each times its weight. Sparsemax makes weights of the coefficients, and many of them zero. "
        "All heads start alike, so that the start is the setting “Attention logits, all layers”.",
    ),
    (
        "What is kept.",
        "The pass with the best simulability on validation examples. Simulability in the table is measured once, on "
        "test examples that had no part in any of this.",
    ),
)
LOOPS: dict[str, Side] = {"inner": SIDES[0], "outer": SIDES[1]}
"""The side of the palette whose colour a loop has; each is named in words too."""
FONT = "system-ui,'Noto Sans','DejaVu Sans',sans-serif"
WIDTH, HEIGHT, HIGH = 400, 332, 56
"""Of the figure, and of a box in it."""


def about_html(theme: Theme) -> str:
    """The figure and the steps; the static explainers have the inner loop alone."""
    steps = "".join(f"<li><b>{name}</b> {words}</li>" for name, words in STEPS_OF)
    note = '<p class="xg-small">The static explainers and “No explainer” have the inner loop alone.</p>'
    # As a picture: Streamlit takes elements of SVG out of HTML.
    drawn = f'<img alt="{escape(FIGURE)}" src="data:image/svg+xml,{quote(figure_svg(theme))}">'
    return f'<div class="xg"><div class="xg-loops">{drawn}<div><ol>{steps}</ol>{note}</div></div></div>'


def figure_svg(theme: Theme) -> str:
    """The two loops in the colours of a theme."""
    parts = [
        _box(8, 14, 84, "Teacher", "", theme),
        _box(120, 14, 170, "Explainer", "weighs the heads", theme),
        _box(120, 140, 170, "Student", "few examples, with maps", theme),
        _box(120, 262, 170, "New examples", "no maps: do they agree?", theme),
        _arrow("M92,42 H114", "inner", "121,42 112,37 112,47", theme),
        _arrow("M205,70 V132", "inner", "205,140 200,131 210,131", theme),
        _arrow("M120,186 C24,190 24,148 110,152", "inner", "120,152 111,147 111,157", theme),
        _arrow("M205,196 V254", "outer", "205,262 200,253 210,253", theme),
        _arrow("M290,290 H390 V42 H300", "outer", "290,42 299,37 299,47", theme),
        _words(213, 110, ["maps"], theme),
        _words(8, 214, ["Inner loop:", "it learns to", "answer like", "the teacher"], theme),
        _words(300, 148, ["Outer loop:", "explainer", "is changed", "by how well", "students do"], theme),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="{FONT}" role="img"><title>{escape(FIGURE)}</title>{"".join(parts)}</svg>'
    )


def _box(x: int, y: int, width: int, name: str, more: str, theme: Theme) -> str:
    palette, middle = PALETTES[theme], x + width / 2
    first = y + HIGH / 2 + (-4 if more else 5)
    named = f'<text x="{middle:g}" y="{first:g}" font-size="14" font-weight="600" fill="{palette.text}">{name}</text>'
    told = f'<text x="{middle:g}" y="{first + 18:g}" font-size="12" fill="{palette.muted}">{more}</text>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HIGH}" rx="6" fill="none" stroke="{palette.muted}"/>'
        f'<g text-anchor="middle">{named}{told if more else ""}</g>'
    )


def _arrow(path: str, loop: str, head: str, theme: Theme) -> str:
    tone = color(theme, LOOPS[loop], STEPS)
    return f'<path d="{path}" fill="none" stroke="{tone}" stroke-width="2"/><polygon points="{head}" fill="{tone}"/>'


def _words(x: int, y: int, lines: Sequence[str], theme: Theme) -> str:
    tone = PALETTES[theme].muted
    each = (f'<text x="{x}" y="{y + 16 * at}" fill="{tone}">{line}</text>' for at, line in enumerate(lines))
    return f'<g font-size="12">{"".join(each)}</g>'
