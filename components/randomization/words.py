"""What the Randomization page says: what the check is, how to read it, and its cautions."""

from __future__ import annotations

from engine.randomization.plan import MODES

ABOUT = (
    "Blocks of the model are made random, and every method explains again the class that the whole model predicted. "
    "A map that comes from what the model has learned changes; one that stays the same shows something else, mostly "
    "the input."
)
CAUTION = (
    "A map that changes is not thereby right: the check can show that a method fails, never that it is faithful "
    "(Adebayo et al., 2018, Sanity checks for saliency maps)."
)
APPLIES = (
    "LIME, SHAP and other methods that only look at the model's answers change whenever these do, so the thesis "
    "(section 4.1.4) leaves them out."
)
ZERO = (
    "The plain gradient is summed over an embedding, which layer normalisation makes zero on some architectures: such "
    "a map has no order. Its size, gradient_l2, has one."
)
MODE_TITLES = {MODES[0]: "Cascading", MODES[1]: "Independent"}
MODE_WORDS = {
    MODES[0]: "from the last part to the first, each with all before it",
    MODES[1]: "one part at a time, the others as they were trained",
}
ORIGINAL = "original"
EMPTY = "Nothing is computed before you press **Randomize**. The work goes on while you are on other pages."
FAILED = "Some maps failed on {} and are left out of the numbers. Below, the reasons are listed."
NO_VERDICT = "A verdict needs the cascading mode. Choose it above."
JUDGED = "By the rank correlation with sign and by that of sizes, in the cascading mode, whichever measure is drawn."
NO_MAPS = "The maps of this randomization are not in the cache; the numbers are. They are computed again when you ask."
MAPS_APART = (
    "The maps of this randomization are not in the cache; the numbers are. Open it alone, by its models, data set and "
    "methods above, to compute them again."
)
BESIDE = "Compare with"
BESIDE_HELP = (
    "Other data sets, sizes or settings: every check that was finished here, by this page or as a job of the command, "
    "can be drawn with this one. To compare data sets, randomize on each in turn."
)
NONE_BESIDE = "no other finished check yet"
CLICK = "Click a point, or choose a stage below, to see an example's maps there."
BELOW = "Below each map: its {} with the original map, and the score at which its colours are strongest."
ENDS = {
    "own": "Each map has a scale of its own, on which a correlation does not depend: compare where it is strong, not "
    "how strong its colours are.",
    "shared": "All maps of a method are on one scale, so that the colours of a row compare; a map of small scores is "
    "pale.",
}
"""By the chosen scale of the colours."""
CITED = (
    "Sanity checks: J. Adebayo, J. Gilmer, M. Muelly, I. Goodfellow, M. Hardt and B. Kim (2018), Sanity checks for "
    "saliency maps, NeurIPS."
)
