"""The words of the Reproduction page, by paper and topic; each verdict has a word, a sign and a color of its own."""

from __future__ import annotations

from typing import Literal

from engine.reproduction.verdicts import CEILING, CONSTRUCTION, DUPLICATE, NOT_RUN, UNLEARNED, Verdict

BadgeColor = Literal["blue", "orange", "violet", "gray"]
BADGES: dict[Verdict, tuple[BadgeColor, str]] = {
    "holds": ("blue", ":material/check:"),
    "does not hold": ("orange", ":material/close:"),
    "undecided": ("violet", ":material/question_mark:"),
    CONSTRUCTION: ("gray", ":material/architecture:"),
    CEILING: ("gray", ":material/vertical_align_top:"),
    DUPLICATE: ("gray", ":material/link:"),
    UNLEARNED: ("gray", ":material/school:"),
    NOT_RUN: ("gray", ":material/hourglass_empty:"),
}
SIGNS: dict[Verdict, str] = {
    "holds": "✓", "does not hold": "✗", "undecided": "?", CONSTRUCTION: "≡", CEILING: "⊤", DUPLICATE: "=",
    UNLEARNED: "–", NOT_RUN: "–",
}  # fmt: skip
NO_FINDINGS = "Not counted as findings:"
SECTIONS = {
    "4.1.1": "One added word decides, T5 in four sizes",
    "4.1.2": "Natural language inference, T5 in four sizes",
    "4.1.3": "Natural language inference with highlights of people, T5 in four sizes",
    "4.1.4": "Models made random, T5 in four sizes",
    "4.1.5": "Ensembles, T5 in four sizes",
    "4.1.6": "Attacks on explanations, T5 in four sizes",
    "4.2.1": "One added word decides, four architectures",
    "4.2.2": "Natural language inference, four architectures",
    "4.2.3": "Natural language inference with highlights of people, four architectures",
    "4.2.4": "Models made random, four architectures",
    "4.2.5": "Ensembles, four architectures",
    "4.2.6": "Attacks on explanations, four architectures",
    "5.1": "Classification of texts",
    "5.2": "Classification of pictures",
    "5.3": "Scores of pairs of texts",
    "6": "Which heads are weighed, and how",
}
"""Of the thesis, then of SMaT."""
PAPER_TITLES = {"thesis": "Thesis on faithfulness", "smat": "SMaT: explanations that teach"}
ABOUT = {
    "thesis": "What a thesis found (*Assessing the Interpretability of Large Language Models*, chapter 4), claim by "
    "claim in our own words, each with its statistic and its bounds as they were declared before a run was complete. A "
    "run tries them on the small models that come with the project.",
    "smat": "What the SMaT paper found (*Learning to Scaffold: Optimizing Model Explanations for Teaching*, Fernandes "
    "et al., 2022, sections 5 and 6), claim by claim in our own words, each with its statistic and its bounds as they "
    "were declared before a run. A run teaches students of the small models that come with the project, with each "
    "explainer and several seeds, and compares them.",
}
FULL = {
    "thesis": "With the models and data sets of the thesis itself, which are fetched and fine-tuned first:",
    "smat": "With the models and data sets of the paper itself, once their teachers are trained:",
}
JSON_HELP = {"thesis": "The same as plain values.", "smat": "As plain values."}
RUN = {"faithfulness": "Run", "sanity": "Run random models and attacks", "smat": "Teach and judge"}
HERE = {
    "faithfulness": "Run it on this computer",
    "sanity": "Run random models and attacks on this computer",
    "smat": "Run it on this computer",
}
NOTHING = {
    "faithfulness": "Nothing has been run on the models that are here now. Press **Run**: explanations and "
    "measurements are kept one by one, so that a run that is stopped goes on where it was, also while you are on other "
    "pages.",
    "sanity": "**Sections 4.1.4, 4.1.6, 4.2.4 and 4.2.6**, of random models and of attacks, are a run of their own. "
    "Nothing has been run on the models that are here now. Press **Run random models and attacks**: explanations and "
    "measurements are kept one by one, so that a run that is stopped goes on where it was, also while you are on other "
    "pages.",
    "smat": "Nothing has been judged yet with the teachers that are here now. A run teaches some 200 students, one by "
    "one, which takes hours; what is finished is kept, so that a run that is stopped goes on where it was.",
}
FILE_OF = {"faithfulness": "", "sanity": ", random models and attacks", "smat": ""}
CHANGED = "Since then these models have changed, so that a run here may find something else: {}."
DECLARED = "The SHA-256 of all that was declared{}. It changes with any word, bound or number of examples."
ABSENT = "Not here, so that claims that need them will not be run:"
SOME_MISSING = "Claims whose models are not here are not run. Once they are here, this page offers a run again."
"""Of the thesis: of SMaT's claims some are never run."""
