"""The Scaffold page: controls, job, simulability, learning curves, learned explainer, files, and how it works."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

import streamlit as st

from components.errors import describe_error, show_error, show_note
from components.numbers import count
from components.palette import PALETTES, SIDES, STEPS, Side, Theme, browser_theme, color
from components.scaffold import controls
from components.scaffold.charts import NO_BASELINE, answer_html, exceptions_of, lines_of, table_html
from components.scaffold.controls import key, open_guide, plan_controls, view_choice
from components.scaffold.export import curves_files, draw_chart, explainer_area, export_area, simulability_files
from components.scaffold.runs import ScaffoldStatus, status_of, students_in_training, work_area
from components.scaffold.sections import sections_area
from components.scaffold.state import GUIDE, MEASURES, SETTING_TITLES, ScaffoldState, plan_of
from components.styles import use_sheet
from engine.scaffold.plan import NONE, SETTINGS, SMAT, check
from engine.scaffold.result import ScaffoldResult

ABOUT = (
    "A good explanation helps someone predict what the model will say. Here that someone is a **student**: a small "
    "model that starts from the same pre-trained base and learns from a few examples to answer like the model, its "
    "**teacher**, with or without explanations. How often it then agrees with the teacher on new inputs, shown without "
    "explanations, is the explanation's **simulability**."
)
METRIC_HELP = {
    "accuracy": "Simulability is the share of test examples for which student and teacher predict the same class, "
    "0 to 1.",
    "pearson": "Simulability is Pearson's correlation between the student's and the teacher's scores on the test "
    "examples, −1 to 1.",
}
READS = (
    "Points are medians over seeds, bars span the quartiles, and small dots are single seeds. The gray band shows "
    "students without explanations."
)
MARKS = (
    "**Better** and **worse** mean that the quartiles do not overlap with those of “No explainer”. Without a mark, the "
    "difference may be due to chance (SMaT, section 5)."
)
FEW = "With fewer than three seeds, quartiles are unreliable: treat the marks as hints."
SOURCE = "SMaT, tables 1, 3 and 5."
CURVES = (
    "Each line is one student, over its passes through the training examples. The large point is the pass used. "
    "Point at a line for its seed."
)
MEASURE_HELP = (
    "Simulability on the validation examples decides when training stops and which pass is used. The student's loss is "
    "the mean over a pass; with explanations it includes the distance between the student's attention and the "
    "explanation. The outer loss trains the learned explainer: it is the student's loss on held-out examples, without "
    "explanations."
)
TITLE = "How it works"
FIGURE = (
    "Two loops. Inner loop: the student learns to predict what the teacher predicts, from examples with the "
    "explainer's maps. Outer loop: the student predicts new examples without maps, and the explainer is updated to "
    "raise its agreement with the teacher."
)
STEPS_OF = (
    (
        "Inner loop.",
        "The student sees a few examples, each with the teacher's prediction and the explainer's map. It updates its "
        "weights so that it predicts what the teacher predicts and its own attention points where the map does (SMaT, "
        "equations 6 and 7).",
    ),
    (
        "Outer loop.",
        "The student takes one more such step on trial and predicts other examples, without maps. The explainer is "
        "then updated in the direction that would have made these predictions agree more with the teacher's "
        "(equations 8 and 9).",
    ),
    (
        "What is learned.",
        "One coefficient for each attention head of the teacher. The map is the softmax, over tokens or patches, of "
        "the weighted sum of the heads' logits. Sparsemax turns coefficients into weights and makes many of them zero. "
        "All heads start with equal weights, which is the setting “Attention logits, all layers”.",
    ),
    (
        "What is reported.",
        "Training uses the pass with the best simulability on the validation examples. The simulability in the table "
        "is measured once, on test examples that played no part in training.",
    ),
)
LOOPS: dict[str, Side] = {"inner": SIDES[0], "outer": SIDES[1]}
"""The side of the palette that colors each loop; the figure names the loops too."""
FONT = "system-ui,'Noto Sans','DejaVu Sans',sans-serif"
WIDTH, HEIGHT, HIGH = 400, 332, 56
"""Width and height of the figure and height of a box, in pixels."""
FEWEST_SEEDS = 3
"""Number of seeds below which quartiles are unreliable."""


def scaffold_page() -> None:
    """Draw the page below its title."""
    kind = controls.SESSIONS.chosen()
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with line:
        controls.SESSIONS.switch()
    guided = GUIDE in st.query_params
    loaded, errors = controls.load(kind)
    plan_controls(kind, line)
    state, wrong = controls.from_widgets(loaded)
    controls.save(state, loaded)
    if guided:
        st.query_params.pop(GUIDE, None)
        open_guide(state.teacher)
    for error in [*errors, *wrong]:
        show_error(error)
    _plan_area(state)
    with st.expander(TITLE, key=key(state.kind, "about")):
        st.markdown(ABOUT)
        st.html(about_html(browser_theme()))


def _plan_area(state: ScaffoldState) -> None:
    """Draw the results of the plan, or its error."""
    use_sheet("scaffold")
    try:
        plan = plan_of(state)
        check(plan)
        status = status_of(plan)
    except Exception as error:
        show_error(describe_error(error))
        return
    work_area(status)
    if status.result.students:
        _simulability_area(state, status.result)
        explainer_area(status.result, max(one.run.train_size for one in status.result.students))
        size = _curves_area(state, status)
        sections_area(status.result, size)
        export_area(status.result, size)


def _simulability_area(state: ScaffoldState, result: ScaffoldResult) -> None:
    st.html(answer_html(result))
    draw_chart(simulability_files(result), " ".join([METRIC_HELP[result.metric], READS, SOURCE]))
    st.html(table_html(result))
    has_baseline = any(result.cell(NONE, size) for size in result.plan.train_sizes)
    few = [FEW] if len(result.plan.seeds) < FEWEST_SEEDS else []
    st.caption(" ".join([MARKS if has_baseline else NO_BASELINE, *few]))
    if exceptions := exceptions_of(result):
        items = "".join(f"<li>{escape(one)}</li>" for one in exceptions)
        title = f"Students that did not learn as planned ({len(exceptions)})"
        with st.expander(title, key=key(state.kind, "told")):
            st.html(f'<div class="xg"><ul class="xg-told xg-small">{items}</ul></div>')


def _curves_area(state: ScaffoldState, status: ScaffoldStatus) -> int:
    """Draw the learning curves and return their train size, which the sections below also use."""
    result = status.result
    sizes = {size: f"{size:,}" for size in sorted({one.run.train_size for one in result.students})}
    st.subheader("Learning curves", anchor=False)
    st.caption(CURVES)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        size = view_choice(state, "Train size", "size", sizes, max(sizes)) if len(sizes) > 1 else max(sizes)
        settings = {one: SETTING_TITLES[one] for one in SETTINGS if one in result.plan.settings}
        setting = view_choice(state, "Setting", "curve", settings, SMAT if SMAT in settings else next(iter(settings)))
        measures = {name: title for name, title in MEASURES.items() if name != "outer" or setting == SMAT}
        measure = view_choice(state, "Measure", "measure", measures, "validation", MEASURE_HELP)
    in_training = students_in_training(status.store) if status.running else {}
    lines = lines_of(result, setting, size, measure, in_training)
    if lines:
        draw_chart(curves_files(result, setting, size, measure, lines))
    else:
        show_note(f"{SETTING_TITLES[setting]}, {count(size, 'example')}: no student has finished a pass yet.")
    return size


def about_html(theme: Theme) -> str:
    """Return the figure, the steps, and a note on static explainers as HTML."""
    steps = "".join(f"<li><b>{name}</b> {words}</li>" for name, words in STEPS_OF)
    note = '<p class="xg-small">The static explainers and “No explainer” use only the inner loop.</p>'
    # As an image: Streamlit removes SVG elements from HTML.
    drawn = f'<img alt="{escape(FIGURE)}" src="data:image/svg+xml,{quote(figure_svg(theme))}">'
    return f'<div class="xg"><div class="xg-loops">{drawn}<div><ol>{steps}</ol>{note}</div></div></div>'


def figure_svg(theme: Theme) -> str:
    """Draw the two loops in the colors of a theme, as SVG."""
    parts = [
        _box(8, 14, 84, "Teacher", "", theme),
        _box(120, 14, 170, "Explainer", "weights the heads", theme),
        _box(120, 140, 170, "Student", "few examples, with maps", theme),
        _box(120, 262, 170, "New examples", "no maps: do they agree?", theme),
        _arrow("M92,42 H114", "inner", "121,42 112,37 112,47", theme),
        _arrow("M205,70 V132", "inner", "205,140 200,131 210,131", theme),
        _arrow("M120,186 C24,190 24,148 110,152", "inner", "120,152 111,147 111,157", theme),
        _arrow("M205,196 V254", "outer", "205,262 200,253 210,253", theme),
        _arrow("M290,290 H390 V42 H300", "outer", "290,42 299,37 299,47", theme),
        _words(213, 110, ["maps"], theme),
        _words(8, 214, ["Inner loop:", "it learns to", "answer like", "the teacher"], theme),
        _words(300, 148, ["Outer loop:", "explainer", "is updated", "by how well", "students do"], theme),
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
