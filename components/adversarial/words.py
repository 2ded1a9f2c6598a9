"""What the Adversarial page says: what the attack is, how to read it, and its cautions."""

from __future__ import annotations

from engine.attacks.params import METHODS, MIXED, OBJECTIVES, TOLERANCE
from engine.params import LOGIT, PROBABILITY

ABOUT = (
    "The input is moved a little, so that the features with the highest scores lose them while the model answers as "
    "before. If that succeeds, the map can be changed without changing what it is to explain."
)
CAUTION = (
    "That a map can be fooled does not make it wrong for inputs as they come: the moved input need not be one that "
    "anybody would write or photograph (Ghorbani, Abid and Zou, 2019, Interpretation of neural networks is fragile)."
)
CITED = (
    "The attack: A. Ghorbani, A. Abid and J. Zou (2019), Interpretation of neural networks is fragile, AAAI. "
    "Top-k form, both objectives and the measures: sections 2.3 and 3.5 of the thesis."
)
OBJECTIVE_TITLES = {OBJECTIVES[0]: "Unconstrained", OBJECTIVES[1]: "Constrained"}
QUANTITY_TITLES = {LOGIT: "Logit", PROBABILITY: "Probability", MIXED: "Mixed"}
QUANTITY_HELP = (
    "The quantity of map and penalty. Logit or probability: both are of the same. Mixed: the map is of the logit and "
    "the penalty of the probability. A model that gives a score and no class has the score alone."
)
BOTH = "both"
OBJECTIVE_HELP = (
    "Unconstrained: the top scores fall as far as they can while the predicted class stays. Constrained: changes of "
    "its probability or logit count against the attack too; the constraint is broken where the probability moves by "
    f"more than {TOLERANCE:g} or where the class changes. A model that gives a score and no class has the second alone."
)
METHOD_HELP = (
    "Attacked is the map of one method. Only a map that can be differentiated again can be attacked: "
    f"{', '.join(METHODS)}. How other methods take the attacked input stands below the result."
)
PLACE_TITLES = {"pixels": "Pixels", "embedding": "Patch embeddings"}
EMPTY = "This attack is not computed yet. Press **Run the attack**: you see it at work and can stop it."
STOPPED = "Stopped in the middle. Nothing of it is kept; a run starts anew."
WRONG = (
    "The model is wrong about this example before the attack: it says {}, the data set says {}. It is attacked all "
    "the same; the class that stays is the one that it predicts."
)
NEAREST = "The words whose embeddings are nearest to each moved one, with the Euclidean distance."
GREY = "Grey is unchanged."
NO_COMMAND = "No command makes this again: `exegesis attack` takes examples of data sets, and this input is your own."
TRANSFER = "The maps of other methods of the same attacked input, with the share of the top places that changed."
NOT_ATTACKED = "A method need not be differentiable to be asked here, so attention, occlusion and LIME can be too."
ASKED_HELP = (
    "Does it transfer? The maps of these methods of each attacked input are compared with those of the input as it "
    "was, by rank change and sum change. A method that is attacked is always asked after its own attacks."
)
ASKED_LESS = "Of other methods' maps there are rank change and sum changes; the rest is of the model alone."
OWN_MAPS = "Each attacked method's own"
MANY_ABOUT = "The attack above, with its settings and on its data set, on examples drawn by the seed."
MANY_EMPTY = "Nothing is computed before you press **Attack them all**. It goes on while you are on other pages."
MANY_FAILED = "Some attacks failed and are left out of the numbers. Below, the reasons are counted."
