"""The texts of the Scaffold page, and the panel "How it works" with its figure of the two loops."""

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
"""Titles of the settings: what students see."""
SETTING_HELP = (
    "The explanation that a student sees with each example. SMaT weights the teacher's attention heads by learned "
    "coefficients. It starts from equal weights, which is “Attention logits, all layers”, and is optimized so that its "
    "students agree with the teacher."
)
METRICS = {"accuracy": "agreement with the teacher", "pearson": "correlation with the teacher's scores"}
METRIC_HELP = {
    "accuracy": "Simulability is the share of test examples for which student and teacher predict the same class, "
    "0 to 1.",
    "pearson": "Simulability is Pearson's correlation between the student's and the teacher's scores on the test "
    "examples, −1 to 1.",
}
EMPTY = (
    "No student of this plan has been trained yet. Press **Teach** to start. Training runs as a background job and "
    "saves each finished student."
)
PARTLY = "Some students of this plan are finished and shown below. Press **Teach** to train the others."
READS = (
    "Points are medians over seeds, bars span the quartiles, and small dots are single seeds. The gray band shows "
    "students without explanations."
)
MARKS = (
    "**Better** and **worse** mean that the quartiles do not overlap with those of “No explainer”. Without a mark, the "
    "difference may be due to chance (SMaT, section 5)."
)
NO_BASELINE = "Select the setting “No explainer” to compare with students without explanations."
FEW = "With fewer than three seeds, quartiles are unreliable: treat the marks as hints."
SOURCE = "SMaT, tables 1, 3 and 5."
CAUTION = (
    "Simulability measures what this kind of student learns from an explanation. It does not show that people "
    "understand a map or that the map is faithful (Fernandes et al., 2022, Learning to scaffold)."
)
CURVES = "Each line is one student, over its passes through the training examples. The large point is the pass used."
MEASURES = {
    "validation": "Simulability on validation",
    "loss": "Student's loss",
    "outer": "Explainer's outer loss",
}
MEASURE_HELP = (
    "Simulability on the validation examples decides when training stops and which pass is used. The student's loss is "
    "the mean over a pass; with explanations it includes the distance between the student's attention and the "
    "explanation. The outer loss trains the learned explainer: it is the student's loss on held-out examples, without "
    "explanations."
)
BASE_OWN = "The teacher's own"
BASE_HELP = (
    "The pre-trained model that students start from. It must have the teacher's architecture and is never the teacher "
    "itself."
)
TEACHER_HELP = (
    "The model that students learn to predict: an embedded model, the folder of a saved checkpoint, or a hub id such "
    "as owner/name. Type to add one."
)
SIZES_HELP = (
    "Numbers of examples that students learn from, separated by commas. The largest one determines the data splits, so "
    "changing it means new students at every size."
)
SEEDS_HELP = (
    "One student per seed, separated by commas. The seed draws the student's examples, their order and its new head."
)
SPLIT_HELP = "The split of the data set that examples are drawn from."
RECIPE = "How students are trained. The defaults are the authors' published configuration."
SAVE_HELP = (
    "Saves the explainer of the median student. The method SMaT then uses it for this teacher on every page and on the "
    "command line."
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
"""Titles of explainers."""
KINDS: Mapping[str, str] = {
    PUNCTUATION: "punctuation",
    STOP: "stop words",
    FIRST: "the first token",
    LAST: "the last token",
    BORDER: "border patches",
}
NO_STUDENT = (
    "No student of the setting “SMaT, learned” is finished with {}, so there is no learned explainer to show. Select "
    "this setting above and press Teach."
)
STUDENT = "The explainer of the median student with {}: seed {}, simulability {}."

HEADS = (
    "Weight λ of each of the teacher's attention heads in the learned explainer. Layers and heads count from 0 (SMaT, "
    "figure 5). Click a cell to open that head on the Attention page."
)
EVEN = "All heads have the same weight: training did not change the explainer."

MAPS = (
    "The learned explanation and the static ones of one test example. The values of each sum to 1 over the {}; special "
    "tokens get 0 (SMaT, figures 3 and 4)."
)
TRUTH = "The outline marks what is known to matter."

PLAUSIBILITY = (
    "How often an explanation ranks a marked {} above an unmarked one: the area under the ROC curve (AUC), averaged "
    "over examples. Chance is 0.5 (SMaT, tables 2 and 6). {} Bars are 95% bootstrap intervals over examples."
)
MARKED = {True: "The marks follow from how the examples were generated.", False: "The marks were made by people."}
SUPERVISED = (
    "Best layer and best head are supervised: they were selected by these same labels. Read them as upper bounds for "
    "attention."
)
NO_MARKS = "No example of {} has marks, so explanations cannot be scored. Choose a data set with marks."
ACTIVE_ALL = "All heads are active (λ > 0), so there are no inactive ones to compare with."
ACTIVE = "Active heads (λ > 0) against inactive ones"

PROTOCOLS = (
    "How much of an explanation's mass lies on features that can leak the label. A learned explainer that points only "
    "at punctuation, at stop words or at the ends of the text could reveal the label without explaining it (SMaT, "
    "section 7, after Treviso and Martins, 2020). Special tokens get 0 by construction."
)
PROTOCOLS_PICTURES = (
    "How much of an explanation's mass lies on features that can leak the label. A learned explainer that points only "
    "at the border could reveal the label without explaining it (SMaT, section 7). The special token gets 0 by "
    "construction."
)
STOP_NOTE = "Stop words are English function words without negations; texts in other languages have none."

NORMALIZATIONS_CAPTION = (
    "Simulability by how coefficients become head weights: median [lower : upper quartile] over seeds (SMaT, table 7). "
    "Only finished students are counted."
)
NO_OTHER = (
    "Trained with SMaT so far: {}. To compare, choose another normalization under **Options** and press **Teach**."
)
NOT_TRAINED = "not trained"
PARTS: Mapping[str, str] = {
    "heads": "All layers and heads",
    "smat": TITLES["smat"],
    "gradient_l2": TITLES["gradient_l2"],
    "gradient_x_input": TITLES["gradient_x_input"],
    "integrated_gradients": TITLES["integrated_gradients"],
}
"""Parts that are measured one after the other."""


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
"""Pixels: width and height of the figure, height of a box."""


def about_html(theme: Theme) -> str:
    """The figure and the steps; the static explainers use only the inner loop."""
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
