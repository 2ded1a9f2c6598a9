"""No page preselects a method whose map is constant on a shipped model, such as the summed gradient with layer norm."""

from __future__ import annotations

import numpy as np
import pytest

from components.adversarial.state import MANY_METHODS, MANY_OTHERS, METHOD, OTHERS
from components.compare import state as compare
from components.images import state as images
from components.library import jobs as library
from components.text import state as text
from engine.behavior.plan import METHODS as BEHAVIOR
from engine.data.datasets import load
from engine.data.image_datasets import load_images
from engine.evaluation.plan import EVALUATE
from engine.explain import explain_many
from engine.input_kinds import list_models
from engine.metrics.agreement import QUICK
from engine.randomization.plan import RANDOMIZE
from engine.registry import explainer
from engine.request import Picture, Request
from engine.study.design import smat_methods

NEVER_CONSTANT = ("perturbation", "ensemble", "baseline")
"""The families whose maps are not constant by construction: they remove parts of the input, or are random."""
BEHAVIOR_METHODS = {"text": BEHAVIOR, "image": ()}
LAYER_NORM_ONLY = ["reviews-minilm", "bert-reviews", "gpt2-nli", "roberta-nli"]


def preselected(model: str, kind: str) -> set[str]:
    """The default methods of all pages."""
    own = {"text": text.START, "image": images.START}[kind]
    plans = EVALUATE.opens_with[kind].methods, RANDOMIZE.opens_with[kind].methods, BEHAVIOR_METHODS[kind]
    attacked = (METHOD, *OTHERS[kind], *MANY_METHODS, *MANY_OTHERS)
    each = (own, compare.START[kind], *plans, attacked, library.START, QUICK, smat_methods(model, kind))
    return {method for methods in each for method in methods}


def constant_methods(model: str, kind: str, methods: set[str]) -> list[str]:
    """The methods with a constant map of the first example of a data set."""
    given = load("reviews")[0].example if kind == "text" else Picture(load_images("scenes")[0].pixels)
    known = [one for one in sorted(methods) if explainer(one, kind).family not in NEVER_CONSTANT]
    maps = explain_many([Request(model, one, given) for one in known if not explainer(one, kind).why_not(model)])
    return [one.provenance.method for one in maps if np.ptp(one.scores[[not t.special for t in one.tokens]]) == 0]


@pytest.mark.parametrize(
    ("kind", "model"), [(kind, model) for kind in ("text", "image") for model in list_models(kind)]
)
def test_no_preselected_method_has_a_constant_map(kind: str, model: str) -> None:
    assert constant_methods(model, kind, preselected(model, kind)) == []


@pytest.mark.parametrize("model", LAYER_NORM_ONLY)
def test_the_summed_gradient_is_constant_where_layer_norm_follows_the_embeddings(model: str) -> None:
    assert constant_methods(model, "text", {"gradient"}) == ["gradient"]
