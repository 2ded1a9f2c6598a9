"""What the sections below the tables of the Scaffold page say."""

from __future__ import annotations

from collections.abc import Mapping

from components.scaffold.words import SETTING_TITLES
from engine.scaffold.plausibility import HEAD, LAYER
from engine.scaffold.protocols import UNIFORM
from engine.scaffold.trivial import BORDER, FIRST, LAST, PUNCTUATION, STOP

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
    "No student of the setting “SMaT, learned” is finished at {}, so that there is no learned explainer to look at. "
    "Choose the setting above and press Teach."
)
WHOSE = "The explainer is the one that taught the median student of {}: seed {}, simulability {}."

HEADS = (
    "How much each head of the teacher weighs in the learned explainer: λ by layer and head, both counted from 0 "
    "(SMaT, figure 5). Click a cell to see that head on the Attention page."
)
EVEN = "All heads have the same weight: nothing was learned beyond the start."

MAPS = (
    "The learned and the static explanations of one test example: each is a distribution that sums to 1 over the {} "
    "(SMaT, figures 3 and 4). Special tokens get nothing."
)
TRUTH = "The line runs around what is known to matter."

PLAUSIBILITY = (
    "How often an explanation puts a marked {} above an unmarked one: the area under the ROC curve, mean over "
    "examples, 0.5 by chance (SMaT, tables 2 and 6). {} Bars are 95 % bootstrap intervals over examples."
)
MARKED = {True: "The marks follow from how the examples were made.", False: "The marks are people's."}
SUPERVISED = (
    "Best layer and best head are supervised: each is the highest of all by these very labels, so that they are bounds "
    "for attention and no fair rivals."
)
NO_MARKS = (
    "No example of {} says what matters in it, so that nothing can be held against explanations. Choose a data set "
    "with marks."
)
ACTIVE_ALL = "All heads are active (λ > 0), so that there are no inactive ones to compare with."
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

NORMALISATIONS = (
    "Simulability by how coefficients become head weights: median [lower : upper quartile] over seeds (SMaT, table 7). "
    "Only what is finished is shown."
)
NO_OTHER = (
    "Taught with SMaT so far: {}. Under **Base and recipe** choose another normalisation and press **Teach**; finished "
    "ones then stand side by side here."
)
NOT_TAUGHT = "not taught"
PARTS: Mapping[str, str] = {
    "heads": "All layers and heads",
    "smat": TITLES["smat"],
    "gradient_l2": TITLES["gradient_l2"],
    "gradient_x_input": TITLES["gradient_x_input"],
    "integrated_gradients": TITLES["integrated_gradients"],
}
"""What is measured, one after the other."""
