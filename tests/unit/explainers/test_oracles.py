"""Each explainer against its closed form on a linear model and against a slow re-implementation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import transformers

from engine.models.loading import classifier_class
from engine.task import Attribution, Task
from tests.explaining import METHODS, checkpoint, classifier, run, task_for
from tests.linear import bag_of_embeddings
from tests.oracles.table import ORACLES, Line
from tests.oracles.text import World

TEXTS = ["the plot never drags", "warm and funny", "not worth it although the acting is a quiet triumph"]
SHORT = {"bert": "a quiet film", "gpt2": "the film", "t5": "the film"}
LOOSE = {"bert": 1e-8, "gpt2": 1e-8, "t5": 2e-5}
"""T5 takes its norms in single precision whatever the precision of the model."""
ROUGH = {("t5", "integrated_gradients"): 3e-2}
"""T5's ReLU makes the gradient jump along the path: no rule converges faster than 1/n."""


def test_every_explainer_has_an_entry() -> None:
    missing = sorted(set(METHODS) - set(ORACLES))
    assert not missing, f"no oracle for {missing}: add a closed form (or why there is none) and a slow oracle"
    assert not set(ORACLES) - set(METHODS), "an entry without an explainer"


def test_entries_say_why_there_is_no_closed_form() -> None:
    for method, entry in ORACLES.items():
        assert callable(entry.linear) or len(entry.linear) > 10, method


ON_LOGITS = ("gradient", "gradient_l2", "gradient_x_input", "integrated_gradients", "smoothgrad")
LINEAR = [(m, 1) for m in METHODS if m in ORACLES and callable(ORACLES[m].linear)]


@pytest.mark.parametrize(("method", "labels"), [*LINEAR, *((m, 2) for m in ON_LOGITS)])
def test_closed_form_on_a_linear_model(method: str, labels: int) -> None:
    model = bag_of_embeddings(labels)
    task = _without_penalty(task_for(model, TEXTS, target=labels - 1))
    entry = ORACLES[method]
    for item, made in zip(task.items, run(method, task, **entry.params), strict=True):
        table = model.embedding.weight.numpy()
        line = Line(
            model.module.head.weight[labels - 1].numpy(), table[item.encoded.ids], table[model.mask_id],
            item.encoded.special,
        )  # fmt: skip
        np.testing.assert_allclose(made.scores, entry.linear(line), atol=1e-6, rtol=1e-6)


def _without_penalty(task: Task) -> Task:
    """Members of ensembles run with the parameters at which their own closed forms are exact."""

    def member(method: str) -> list[Attribution]:
        return run(method, task, **ORACLES[method].params)

    return dataclasses.replace(task, explain_with=member)


@pytest.fixture(scope="module", params=["bert", "gpt2", "t5"])
def world(request: pytest.FixtureRequest) -> World:
    """The checkpoint once more, loaded by transformers, in double precision and with its own attention."""
    family, folder = request.param, checkpoint(request.param, 3)
    kind = classifier_class(classifier(family, 3).adapter)
    module = kind.from_pretrained(str(folder), attn_implementation="eager").double().eval().requires_grad_(False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    return World(family, module, tokenizer, SHORT[family], target=1, seed=3)


@pytest.mark.parametrize("method", [m for m in METHODS if m in ORACLES])
def test_slow_oracle(method: str, world: World) -> None:
    model = classifier(world.family, 3)
    task = task_for(model, [world.text], target=1, seed=3)
    assert 2 <= len(world.features) <= 8
    expected = ORACLES[method].slow(world)
    (made,) = run(method, task, **ORACLES[method].slow_params)
    loose = ROUGH.get((world.family, method), LOOSE[world.family])
    np.testing.assert_allclose(made.scores, expected, atol=loose, rtol=1e-5)
    if method != "gradient" or world.family == "t5":
        assert np.abs(expected).max() > 1e-3, "an oracle of zeros would prove nothing"
