"""What the Scaffold page says: what is taught to whom, how to read the numbers, and its cautions."""

from __future__ import annotations

from collections.abc import Mapping

from engine.scaffold.plan import NONE, SMAT

ABOUT = (
    "A good explanation helps somebody who sees it to foresee what the model will say. Here the somebody is a "
    "**student**, a small copy that starts from the same pre-trained base: it learns from a few examples to answer as "
    "the model does, its **teacher**, with explanations beside them or without. How often it then agrees with the "
    "teacher on new texts or pictures, without explanations, is the explanation's **simulability**."
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
"""What students are shown."""
SETTING_HELP = (
    "What a student is shown beside the examples. SMaT is attention whose heads are weighed by what is learned: it "
    "starts as the attention logits of all layers and is changed by how well its students do."
)
METRICS = {"accuracy": "agreement with the teacher", "pearson": "correlation with the teacher's scores"}
METRIC_HELP = {
    "accuracy": "Simulability is the share of test examples on which student and teacher name the same class, 0 to 1.",
    "pearson": "Simulability is Pearson's correlation of the student's and the teacher's scores on the test examples, "
    "−1 to 1.",
}
EMPTY = (
    "No student of this plan is finished yet. Press **Teach** to begin: it runs as a job, goes on while you are on "
    "other pages, and each finished student is kept."
)
PARTLY = "Some students of this plan are finished and shown below. **Teach** does the others."
READS = (
    "A point is the median over seeds, a bar its quartiles, small dots the seeds. The grey band is what students "
    "reach without explanations."
)
MARKS = (
    "Marked **better** or **worse** only where the quartiles do not overlap with those of no explainer; without a "
    "mark, chance may have made the difference (SMaT, section 5)."
)
NO_BASELINE = "Nothing is marked: without the setting “No explainer” there is nothing to compare with."
FEW = "With fewer than three seeds a cell, quartiles say little: read the marks as hints."
SOURCE = "SMaT, tables 1, 3 and 5."
CAUTION = (
    "Simulability tells what a student of this kind learns from, not what people find clear, nor that a map is "
    "faithful (Fernandes et al., 2022, Learning to scaffold)."
)
CURVES = "How each student came to its result: pass by pass over its examples, a line a seed."
MEASURES = {
    "validation": "Simulability on validation",
    "loss": "Student's loss",
    "outer": "Explainer's outer loss",
}
MEASURE_HELP = (
    "Simulability on the validation examples chooses when to stop and what is kept. The student's loss is the mean of "
    "a pass: answers and, where it is shown explanations, how far its own are from them. The outer loss is what the "
    "learned explainer is changed by: the student's answers on held-out examples, without explanations."
)
BASE_OWN = "The teacher's own"
BASE_HELP = "What students start from: the pre-trained base of the teacher's shape, never the teacher itself."
TEACHER_HELP = "An embedded model, a folder of a saved checkpoint, or a hub id such as owner/name. Type to name one."
SIZES_HELP = "How many examples a student learns from, several between commas. Each size is taught by itself."
SEEDS_HELP = "A student for each: it draws the examples, their order and the new head."
SAVE_HELP = (
    "Keeps the weights of the median student's explainer, so that method smat can be chosen for this teacher on every "
    "page and in the command."
)
CITED = (
    "Scaffold: P. Fernandes, M. Treviso, D. Pruthi, A. F. T. Martins and G. Neubig (2022), Learning to scaffold: "
    "optimizing model explanations for teaching, NeurIPS."
)
