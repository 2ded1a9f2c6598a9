"""The texts of the Scaffold page, and the panel about what is optimized with its figure of the two loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

from components.palette import PALETTES, SIDES, STEPS, Side, Theme, color
from engine.scaffold.plan import NONE, SMAT
from engine.scaffold.plausibility import HEAD, LAYER
from engine.scaffold.trivial_protocols import BORDER, FIRST, LAST, PUNCTUATION, STOP, UNIFORM

ABOUT = (
    "A good explanation helps someone predict what the model will say. Here that someone is a **student**: a small "
    "model that starts from the same pre-trained base and learns from a few examples to answer like the model, its "
    "**teacher**, with or without explanations. How often it then agrees with the teacher on new inputs, shown without "
    "explanations, is the explanation's **simulability**."
)
SETTING_TITLES: Mapping[str, str] = {
    NONE: "No explainer",
    "gradient_l2": "Gradient L2 norm",
    "gradient_x_input": "Gradient x input",
    "integrated_gradients": "Integrated gradients",
    "attention_logits": "Attention logits, all layers",
    "attention_logits_last": "Attention logits, last layer",
    SMAT: "SMaT, learned",
}
"""What students see."""
SETTING_HELP = (
    "What a student sees with each example. SMaT weighs the attention heads by learned coefficients: it starts as the "
    "attention logits of all layers and is optimized for how well its students do."
)
METRICS = {"accuracy": "agreement with the teacher", "pearson": "correlation with the teacher's scores"}
METRIC_HELP = {
    "accuracy": "Simulability is the share of test examples on which student and teacher name the same class, 0 to 1.",
    "pearson": "Simulability is Pearson's correlation of the student's and the teacher's scores on the test examples, "
    "−1 to 1.",
}
EMPTY = (
    "No student of this plan has been trained yet. Press **Teach** to start: it runs as a job in the background, and "
    "each finished student is saved."
)
PARTLY = "Some students of this plan are finished and shown below. **Teach** trains the others."
READS = (
    "Points are medians over seeds, bars quartiles, small dots single seeds. The gray band shows students without "
    "explanations."
)
MARKS = (
    "**Better** and **worse** mark quartiles that do not overlap with those of no explainer; without a mark, the "
    "difference may be due to chance (SMaT, section 5)."
)
NO_BASELINE = "Without the setting “No explainer” there is no baseline to compare with."
FEW = "With fewer than three seeds, quartiles say little: treat the marks as hints."
SOURCE = "SMaT, tables 1, 3 and 5."
CAUTION = (
    "Simulability measures what this kind of student learns from. It does not show that people find a map clear or "
    "that the map is faithful (Fernandes et al., 2022, Learning to scaffold)."
)
CURVES = "One line per seed: each student's passes over its examples."
MEASURES = {
    "validation": "Simulability on validation",
    "loss": "Student's loss",
    "outer": "Explainer's outer loss",
}
MEASURE_HELP = (
    "Simulability on the validation examples decides when to stop and which pass counts. The student's loss is the "
    "mean over a pass: its answers and, where it sees explanations, the distance of its own attention from them. The "
    "outer loss trains the learned explainer: the student's answers on held-out examples, without explanations."
)
BASE_OWN = "The teacher's own"
BASE_HELP = (
    "The pre-trained model that students start from; it has the teacher's shape and is never the teacher itself."
)
TEACHER_HELP = "An embedded model, a folder of a saved checkpoint, or a hub id such as owner/name. Type to name one."
SIZES_HELP = "Number of examples a student learns from. Separate several sizes with commas; each is trained separately."
SEEDS_HELP = "One student per seed. The seed draws the examples, their order and the new head."
SAVE_HELP = (
    "Saves the median student's explainer, so that you can choose the method SMaT for this teacher on every page and "
    "on the command line."
)
CITED = (
    "Scaffold: P. Fernandes, M. Treviso, D. Pruthi, A. F. T. Martins and G. Neubig (2022), Learning to scaffold: "
    "optimizing model explanations for teaching, NeurIPS."
)


TITLES: Mapping[str, str] = {
    **SETTING_TITLES,
    LAYER: "Best layer",
    HEAD: "Best head",
    UNIFORM: "Uniform map",
}
"""Of explainers."""
KINDS: Mapping[str, str] = {
    PUNCTUATION: "punctuation",
    STOP: "stop words",
    FIRST: "the first token",
    LAST: "the last token",
    BORDER: "border patches",
}
NO_STUDENT = (
    "No student of the setting “SMaT, learned” is finished at {}, so there is no learned explainer to show. Choose the "
    "setting above and press Teach."
)
WHOSE = "This explainer taught the median student of {}: seed {}, simulability {}."

HEADS = (
    "Weight λ of each of the teacher's heads in the learned explainer, by layer and head, both counted from 0 (SMaT, "
    "figure 5). Click a cell to open that head on the Attention page."
)
EVEN = "All heads have the same weight: the explainer learned nothing beyond its start."

MAPS = (
    "The learned and the static explanations of one test example: each is a distribution that sums to 1 over the {} "
    "(SMaT, figures 3 and 4). Special tokens get nothing."
)
TRUTH = "The outline marks what is known to matter."

PLAUSIBILITY = (
    "How often an explanation puts a marked {} above an unmarked one: the area under the ROC curve, mean over "
    "examples, 0.5 by chance (SMaT, tables 2 and 6). {} Bars are 95% bootstrap intervals over examples."
)
MARKED = {True: "The marks follow from how the examples were made.", False: "The marks were made by people."}
SUPERVISED = (
    "Best layer and best head are supervised: each is the highest of all on these very labels. They are upper bounds "
    "for attention, not fair competitors."
)
NO_MARKS = "No example of {} marks what matters in it, so explanations cannot be scored. Choose a data set with marks."
ACTIVE_ALL = "All heads are active (λ > 0), so there are no inactive ones to compare with."
ACTIVE = "Active heads (λ > 0) against inactive ones"

PROTOCOLS = (
    "Where the mass of explanations lies: a learned explainer that only points at punctuation or stop words, or at the "
    "ends, could leak the label without explaining it (SMaT, section 7, on Treviso and Martins, 2020). Special tokens "
    "get 0 by construction."
)
PROTOCOLS_PICTURES = (
    "Where the mass of explanations lies: a learned explainer that only points at the border could leak the label "
    "without explaining it (SMaT, section 7). The special token gets 0 by construction."
)
STOP_NOTE = "Stop words are English words of grammar, without negations; in other languages none are known."

NORMALIZATIONS_CAPTION = (
    "Simulability by how coefficients become head weights: median [lower : upper quartile] over seeds (SMaT, table 7). "
    "Only what is finished is shown."
)
NO_OTHER = (
    "Trained with SMaT so far: {}. Choose another normalization under **Base and recipe** and press **Teach**; "
    "finished ones appear here side by side."
)
NOT_TAUGHT = "not trained"
PARTS: Mapping[str, str] = {
    "heads": "All layers and heads",
    "smat": TITLES["smat"],
    "gradient_l2": TITLES["gradient_l2"],
    "gradient_x_input": TITLES["gradient_x_input"],
    "integrated_gradients": TITLES["integrated_gradients"],
}
"""What is measured, one after the other."""


TITLE = "How it works"
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
"""The side of the palette whose color a loop has; each is named in words too."""
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
    """The two loops in the colors of a theme."""
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
