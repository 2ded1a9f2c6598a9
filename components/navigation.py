"""The pages: their list, the navigation, and the heading with a button that copies the link of the page."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st
from streamlit.navigation.page import Page

from components.styles import ASSETS, asset_sheet, use_sheet
from engine.access import STUDY_ONLY

ROOT = Path(__file__).resolve().parent.parent
VISIT = "frame_visit"
"""Session key: the number of the current page visit, and the page."""
ICON = ASSETS / "icon.svg"
COPY_LINK = "Copy link"
COPY_ANSWERS = {"copied": "Copied", "failed": "Copy it from the address bar"}


@dataclass(frozen=True)
class PageEntry:
    """A page: its file relative to the project's root, its title in the navigation, and the question that it answers.

    `caution`: how its answers can mislead, with the source; empty on a page for participants, whom it could bias.
    `alone`: the page is only reached by its own link; it is not in the navigation and shows none. `organizer`: the page
    itself admits only the organizer, on every server.
    """

    file: str
    title: str
    heading: str
    question: str
    alone: bool = False
    organizer: bool = False
    caution: str = ""

    @property
    def path(self) -> Path:
        return ROOT / self.file

    @property
    def url_path(self) -> str:
        return self.path.stem


HOME = PageEntry(
    "pages/home.py",
    "Home",
    "Exegesis",
    "See, compare and test explanations of transformer classifiers and language models.",
    caution=(
        "An explanation can be wrong about its model, so for high-stakes decisions prefer an inherently interpretable "
        "model (Rudin, 2019, Stop explaining black box machine learning models for high stakes decisions)."
    ),
)
TEXT = PageEntry(
    "pages/text.py",
    "Text",
    "Explain a text",
    "Which words does the prediction depend on?",
    caution=(
        "That a map marks what a person would mark does not show that the model used it (Jacovi and Goldberg, 2020, "
        "Towards faithfully interpretable NLP systems)."
    ),
)
IMAGES = PageEntry(
    "pages/images.py",
    "Images",
    "Explain an image",
    "Which patches does the prediction depend on?",
    caution=(
        "A map that follows the outlines of an object may look the same for a random model (Adebayo et al., 2018, "
        "Sanity checks for saliency maps)."
    ),
)
ATTENTION = PageEntry(
    "pages/attention.py",
    "Attention",
    "Explore attention",
    "What does each head attend to, and does it matter?",
    caution=(
        "Other attention weights can lead to the same prediction, so a weight alone does not explain it (Jain and "
        "Wallace, 2019, Attention is not explanation)."
    ),
)
LAYERS = PageEntry(
    "pages/layers.py",
    "Layers",
    "Layers",
    "Where inside the model is the prediction made, and what is it made from?",
    caution=(
        "What patching finds depends on the corruption and the metric, and a restored activation may act through "
        "paths that the model does not use by itself (Zhang and Nanda, 2024, Towards best practices of activation "
        "patching in language models)."
    ),
)
EVALUATE = PageEntry(
    "pages/evaluate.py",
    "Evaluate",
    "Evaluate methods",
    "Which method can you trust, and on which model?",
    caution=(
        "An input with parts removed is unlike the training data, and this shift alone can change the prediction "
        "(Hooker et al., 2019, A benchmark for interpretability methods in deep neural networks)."
    ),
)
COMPARE = PageEntry(
    "pages/compare.py",
    "Compare",
    "Compare models and methods",
    "Where do models and methods disagree?",
    caution=(
        "Methods often disagree, and their maps alone do not show which one is right (Krishna et al., 2024, The "
        "disagreement problem in explainable machine learning)."
    ),
)
REPRODUCTION = PageEntry(
    "pages/reproduction.py",
    "Reproduction",
    "Claims from papers",
    "Do published claims hold on these models?",
    caution=(
        "Models that are trained alike and equally accurate can still behave differently, so a verdict on one need "
        "not hold for another (D’Amour et al., 2022, Underspecification presents challenges for credibility in modern "
        "machine learning)."
    ),
)
WORDS = PageEntry(
    "pages/corpus.py",
    "Words",
    "Words that matter over a data set",
    "Which words or patches matter over a whole data set?",
    caution=(
        "A word can matter because of the words that it comes with, and a mean over texts hides that it speaks for a "
        "class in some and against it in others (Molnar et al., 2022, General pitfalls of model-agnostic "
        "interpretation methods for machine learning models)."
    ),
)
RANDOMIZATION = PageEntry(
    "pages/randomization.py",
    "Randomization",
    "Randomize a model",
    "Does the explanation depend on the model?",
    caution=(
        "Noisy, uninformative maps do well in this test, and a partly randomized model keeps some of its activations, "
        "so it cannot rank methods (Binder et al., 2023, Shortcomings of top-down randomization-based sanity checks "
        "for evaluations of deep neural network explanations)."
    ),
)
ADVERSARIAL = PageEntry(
    "pages/adversarial.py",
    "Adversarial",
    "Attack an explanation",
    "Can an explanation be manipulated?",
    caution=(
        "That a map can be manipulated may be due to the curvature of the model’s output and not to the method "
        "(Dombrowski et al., 2019, Explanations can be manipulated and geometry is to blame)."
    ),
)
SUPPRESSOR = PageEntry(
    "pages/suppressor.py",
    "Suppressor",
    "Suppressor variables",
    "Do methods credit a feature that carries no information about the class?",
    caution=(
        "That a method credits a suppressor is an error only if importance means association with the class: the model "
        "does use the suppressor (Haufe et al., 2014, On the interpretation of weight vectors of linear models in "
        "multivariate neuroimaging)."
    ),
)
SCAFFOLD = PageEntry(
    "pages/scaffold.py",
    "Scaffold",
    "Teach with explanations",
    "Do explanations help a student predict the model?",
    caution=(
        "How well explanations help to predict a model need not tell how well they help in a real task (Buçinca et "
        "al., 2020, Proxy tasks and subjective measures can be misleading in evaluating explainable AI systems)."
    ),
)
STUDY = PageEntry(
    "pages/study.py",
    "Study",
    "Studies",
    "Which explanations help or convince people?",
    caution=(
        "Explanations can make people accept a prediction whether or not it is right (Bansal et al., 2021, Does the "
        "whole exceed its parts? The effect of AI explanations on complementary team performance)."
    ),
    organizer=True,
)
RESULTS = PageEntry(
    "pages/study_results.py",
    "Study results",
    "Study results",
    "What did people prefer, and how certain is that?",
    caution=(
        "Ratings of explanations may not predict how well the explanations help people predict the model (Hase and "
        "Bansal, 2020, Evaluating explainable AI: which algorithmic explanations help users predict model behavior?)."
    ),
    organizer=True,
)
ANNOTATE = PageEntry(
    "pages/annotate.py",
    "Take part",
    "Compare explanations",
    "You see a model's prediction and explanations of it. Which one is best?",
    alone=True,
)
BEHAVIOR = PageEntry(
    "pages/behavior.py",
    "Ask the model",
    "Ask the model",
    "What will the model do, and do attributions know?",
    caution=(
        "A direct answer holds for the question as it was asked: another change of a word, or other examples, can have "
        "another answer (Bilodeau et al., 2024, Impossibility theorems for feature attribution)."
    ),
)
LIBRARY = PageEntry(
    "pages/library.py",
    "Library",
    "Library",
    "Which models, data sets, jobs and results are here?",
    caution=(
        "A high test accuracy does not show that a model is right for the right reasons (McCoy et al., 2019, Right "
        "for the wrong reasons)."
    ),
)

RULES_PAGE = PageEntry(
    "pages/rules.py",
    "Test a claim",
    "Test a claim about a model",
    "Does the model follow your rule?",
    caution=(
        "Removing or inserting words can make a text that the model was not trained on, and its prediction can change "
        "for that reason alone (Hase, Xie and Bansal, 2021, The out-of-distribution problem in explainability and "
        "search methods for feature importance explanations)."
    ),
)

CONCEPTS_PAGE = PageEntry(
    "pages/concepts.py",
    "Concepts",
    "Test concepts",
    "Does the prediction depend on a concept that you give by examples?",
    caution=(
        "A vector can also stand for what the examples have in common besides the concept, and other examples of the "
        "concept can give another vector (Ramaswamy et al., 2023, Overlooked factors in concept-based explanations)."
    ),
)

SECTIONS = {
    "": (HOME, REPRODUCTION, LIBRARY, ANNOTATE),
    "Explain": (TEXT, IMAGES, ATTENTION, LAYERS, COMPARE),
    "Ask the model": (BEHAVIOR, RULES_PAGE, CONCEPTS_PAGE, WORDS),
    "Test methods": (EVALUATE, RANDOMIZATION, ADVERSARIAL, SUPPRESSOR, SCAFFOLD),
    "Ask people": (STUDY, RESULTS),
}
"""Menus of the navigation. Pages without a menu come first; the first page is the default."""
PAGES = tuple(entry for entries in SECTIONS.values() for entry in entries)


def navigation() -> tuple[Page, PageEntry]:
    """Return the requested page and its entry, Home at the root address. A standalone page hides the navigation.

    A server for studies only serves the page for participants alone.
    """
    if os.environ.get(STUDY_ONLY) == "1":
        root = st.Page(_only_studies, title="Exegesis", default=True)
        return st.navigation([root, _page(ANNOTATE)], position="hidden"), ANNOTATE
    sections = {name: [_page(entry) for entry in entries] for name, entries in SECTIONS.items()}
    sections[""].append(st.Page(_open_home, title=HOME.title, url_path=HOME.url_path, visibility="hidden"))
    page = st.navigation(sections, position="hidden" if _entry_of_address().alone else "top")
    return page, next(entry for entry in PAGES if entry.url_path == (page.url_path or HOME.url_path))


def _only_studies() -> None:
    st.info("This server only serves studies. Open the link that you were given.")


def _open_home() -> None:
    """Redirect /home to Home, because Streamlit serves the default page only at /."""
    st.switch_page(HOME.path)


def _page(entry: PageEntry) -> Page:
    if entry is HOME:
        return st.Page(entry.path, title=entry.title, url_path="", default=True)
    visibility: Literal["visible", "hidden"] = "hidden" if entry.alone else "visible"
    return st.Page(entry.path, title=entry.title, url_path=entry.url_path, visibility=visibility)


def _entry_of_address() -> PageEntry:
    """Return the page of the address, or Home."""
    last = urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[-1]
    return next((entry for entry in PAGES if entry.url_path == last), HOME)


def heading(entry: PageEntry) -> None:
    """Draw the title of the page, a button that copies its link, and its question; count the visit.

    A standalone page has no such button, because a participant's address must not be passed on.
    """
    number, last = st.session_state.get(VISIT, (0, ""))
    if last != entry.url_path:
        st.session_state[VISIT] = (number + 1, entry.url_path)
    use_sheet("frame")
    with st.container(key="page_heading"):
        st.title(entry.heading, anchor=False)
        if not entry.alone:
            _copy_button()(key="copy_link", data={"label": COPY_LINK, **COPY_ANSWERS}, width="content")
        st.caption(entry.question)


def caution(entry: PageEntry) -> None:
    """Draw how the answers of the page can mislead, at its end."""
    if entry.caution:
        st.caption(entry.caution)


@cache
def _copy_button() -> Callable[..., object]:
    """Return the copy button, which is drawn at the end of the title's line and takes no space of its own.

    The browser copies its own address, so the link always matches the current state.
    """
    built: Callable[..., object] = st.components.v2.component(
        "exegesis_copy_link",
        html='<button type="button" class="xc-copy"></button><span class="xc-copied" role="status"></span>',
        css=asset_sheet("copy_link"),
        js=(ASSETS / "copy_link.js").read_text(encoding="utf-8"),
        isolate_styles=False,
    )
    return built


def visit_number() -> int:
    """Return the number of page visits in this session; it is constant while the session stays on a page."""
    number, _ = st.session_state.get(VISIT, (0, ""))
    return int(number)
