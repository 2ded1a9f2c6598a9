"""The Randomization page as a script: before and after a check, a model of one block, what is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from components.experiment.runs import AGAIN, spec_of
from components.experiment.state import plan_of, read_state
from components.navigation import RANDOMIZATION
from components.randomization.view import COMPARE_WITH, SESSION, RandomizationView, mark_of
from engine import jobs
from engine.models.classifier import AnyClassifier
from engine.randomization.model_copy import ModelCopy, Weights, reinitialize
from engine.randomization.plan import RANDOMIZE
from engine.registry import all_explainers
from engine.shipped.make import RANDOMIZATION_PLANS
from tests.alerts import errors, readable_html
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.randomization.making import TEXTS, reviews
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240.0
METHODS = ("gradient_x_input", "gradient", "attention_mean")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str | Sequence[str]) -> AppTest:
    """The page in its frame."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(RANDOMIZATION.file)
    for name, value in query.items():
        page.query_params[name] = value if isinstance(value, str) else list(value)
    page.run()
    assert not page.exception
    return page


def spec(link: dict[str, str]) -> dict[str, Any]:
    """What the page asks of the jobs when it shows this link."""
    query = {name: [value] for name, value in link.items()}
    state, _ = read_state(RANDOMIZE, RandomizationView, "text", query, all_explainers("text"))
    return spec_of(plan_of(state))


def press(page: AppTest, label: str) -> AppTest:
    [button] = [button for button in page.button if button.label == label]
    button.click().run()
    assert not page.exception
    return page


def finish() -> None:
    for job in jobs.list_jobs():
        assert jobs.wait(job.id, SECONDS).state == "done"


def test_what_is_pressed_is_randomized_shown_and_opens_again_without_a_model(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = {"model": model, "data": reviews(tmp_path), "method": METHODS, "examples": "5", "seeds": "1"}
    page = opened(**link)
    assert jobs.list_jobs() == []
    said = "\n".join(caption.value for caption in page.caption)
    assert "5 examples, 4 methods, 1 model: 120 maps of 5 randomized models" in said
    press(page, "Randomize")
    finish()
    for name in ("engine.randomization.chunks.load_classifier", "engine.models.loading.load_model"):
        monkeypatch.setattr(name, None)
    page = opened(**link)
    html = readable_html(page)
    assert f'aria-label="Verdicts on {model}"' in html
    assert "no correlation" in html  # the plain gradient of a BERT is zero
    assert "Gradient cannot be judged: no map has a rank correlation with the original." in html
    assert html.count('<th scope="col">') == 4
    assert html.count("ρ ") >= 9
    assert "Randomize" not in [button.label for button in page.button]
    page.selectbox(SESSION.key("text", "view.stage")).select(2).run()
    html = readable_html(page)
    assert html.count('<th scope="col">') == 2
    assert "Blocks 2 to 3 randomized" in html
    assert page.query_params["stage"] == "2"
    open_options(page, SESSION.key("text", "options"))
    page.selectbox(SESSION.key("text", "view.order")).select("most").run()
    assert "Changed by" in [box.label for box in page.selectbox]
    assert any(
        text.startswith("#") and " ρ " in text for text in page.selectbox(SESSION.key("text", "view.example")).options
    )
    assert len(page.selectbox(SESSION.key("text", "view.example")).options) == 5
    assert len(TEXTS) >= 5
    page = opened(**link, beside=mark_of(RANDOMIZATION_PLANS["text"]), lines="gradient_x_input")
    assert 'aria-label="Verdicts on Gradient x input"' in readable_html(page)
    assert "reviews-minilm on reviews" in page.selectbox(SESSION.key("text", "view.of")).options
    assert page.query_params["lines"] == "gradient_x_input"


def test_a_vit_of_one_block_has_one_stage(tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit", num_hidden_layers=1))
    link = {"input": "image", "model": vit, "data": "scenes:count=6", "method": "gradient_l2", "examples": "3"}
    page = opened(**link, seeds="1", mode="independent")
    press(page, "Randomize")
    finish()
    html = readable_html(opened(**link, seeds="1", mode="independent"))
    assert html.count('<th scope="col">') == 2
    assert "Verdicts need the cascading mode" in html


def test_what_ships_is_offered_beside_a_check_of_ones_own(model: str, tmp_path: Path) -> None:
    link = {"model": model, "data": reviews(tmp_path), "method": "gradient_l2", "examples": "3", "seeds": "1"}
    press(opened(**link), "Randomize")
    finish()
    page = open_options(opened(**link), SESSION.key("text", "options"))
    [beside] = [one for one in page.multiselect if one.label == COMPARE_WITH]
    assert "reviews-minilm on reviews" in beside.options[0]
    assert not beside.disabled
    assert beside.proto.placeholder == "Other finished runs"


def test_a_cancelled_check_goes_on_where_it_was(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"model": model, "data": reviews(tmp_path), "method": "gradient_l2", "examples": "5", "seeds": "1"}
    real = ModelCopy.randomized

    def cancelled(self: ModelCopy, parts: tuple[str, ...], seed: int) -> Any:
        if len(parts) == 2:
            jobs.cancel(jobs.list_jobs()[0].id)
        return real(self, parts, seed)

    with monkeypatch.context() as patch:
        patch.setattr(ModelCopy, "randomized", cancelled)
        jobs.run_now(jobs.create("randomize", spec(link)))
    [stopped] = jobs.list_jobs()
    assert stopped.state == "cancelled"
    press(opened(**link), "Go on")
    finish()
    [ended] = jobs.list_jobs()
    whole = (1 + 3 + 2) * 3 + 1
    assert (ended.total, ended.computed) == (whole, whole - 2 * 3), "the model as it is and the first stage were there"
    assert f'aria-label="Verdicts on {model}"' in readable_html(opened(**link))


def test_a_stage_that_gives_no_numbers_is_told_and_can_be_tried_again(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = {"model": model, "data": reviews(tmp_path), "method": "gradient_l2", "examples": "5", "seeds": "1"}

    def broken(model: AnyClassifier, part: str, names: Sequence[str], seed: int) -> Weights:
        made = reinitialize(model, part, names, seed)
        return {name: values * torch.nan for name, values in made.items()} if part == "1" else made

    with monkeypatch.context() as patch:
        patch.setattr("engine.randomization.model_copy.reinitialize", broken)
        jobs.run_now(jobs.create("randomize", spec(link)))
    page = opened(**link)
    html = readable_html(page)
    assert f"Some maps failed on {model} and are not included" in html
    assert "scores by gradient_l2" in html
    press(page, AGAIN)
    finish()
    assert "Some maps failed" not in readable_html(opened(**link))


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"mode": ""}, "modes: must name at least one"),
        ({"model": ""}, "models: must name at least one"),
        ({"method": "random"}, "methods: random does not depend on the model"),
        ({"data": "nowhere"}, "nowhere"),
        ({"stage": "x"}, "stage: "),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(query: dict[str, str], told: str, model: str) -> None:
    page = opened(**({"model": model, "data": "reviews"} | query))
    assert any(told in one for one in errors(page))
    assert jobs.list_jobs() == []
