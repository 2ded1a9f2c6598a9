"""The Adversarial page's state in a link and back, what a link may get wrong, and what it asks of the engine."""

from __future__ import annotations

import dataclasses

import pytest

from components.adversarial.export import example_command, experiment_command
from components.adversarial.state import (
    MANY_METHODS,
    OTHERS,
    AdversarialState,
    ManyExamples,
    default_settings,
    parse_settings,
    read_state,
    settings_as_text,
    widget_settings,
    write,
)
from components.inputs.datasets import open_texts
from components.inputs.text_choice import TextFocus
from engine.errors import UsageError
from engine.registry import all_explainers

TEXT = all_explainers("text")
MODELS = ["reviews-minilm"]
PLAIN = AdversarialState(kind="text", focus=TextFocus("reviews-minilm", "a film", index=None), others=OTHERS["text"])
FULL = dataclasses.replace(
    PLAIN,
    method="integrated_gradients",
    objective="constrained",
    strength={"epsilon": "8/255", "top_k": "3", "beta": "0.5", "steps": "7", "sign_steps": "True"},
    seed=4,
    scale="one",
    others=("lime",),
    opened=("others",),
    points=20,
    start="zero",
    many=ManyExamples(
        ("a", "b"),
        ("gradient_l2", "integrated_gradients"),
        5,
        "class_kept",
        "wrong",
        ("a", "gradient_l2", "constrained"),
        ("lime",),
        "gradient_l2",
    ),
)


@pytest.mark.parametrize("state", [PLAIN, FULL], ids=["usual", "full"])
def test_a_link_reopens_the_state(state: AdversarialState) -> None:
    assert read_state("text", write(state), MODELS, TEXT, open_texts("reviews")) == (state, [])


def test_what_is_usual_is_not_written() -> None:
    assert write(PLAIN) == {"input": ["text"], "model": ["reviews-minilm"], "text": ["a film"]}


def test_each_thing_that_is_not_known_is_said_and_the_usual_stands_instead() -> None:
    query = {
        "text": ["a film"], "model": MODELS, "method": ["occlusion"], "objective": ["worst"], "epsilon": ["-1"],
        "steps": ["0"], "top_k": ["1.5"], "seed": ["x"], "examples": ["0"], "measure": ["luck"], "which": ["some"],
        "attacked": ["lime"], "other": ["nonsense"], "place": ["pixel"], "scale": ["large"],
        "points": ["0"], "start": ["here"], "asked": ["nonsense"], "of": ["lime"],
    }  # fmt: skip
    state, errors = read_state("text", query, MODELS, TEXT, open_texts("reviews"))
    assert len(errors) == len(query) - 2
    assert any("occlusion cannot be attacked" in one for one in errors)
    assert state.strength == {}
    assert dataclasses.replace(state, others=PLAIN.others, many=ManyExamples()) == PLAIN
    assert state.many.methods in ((), MANY_METHODS)


def test_epsilon_may_be_a_fraction_and_controls_hold_what_the_link_says() -> None:
    assert parse_settings("text", {"epsilon": "8/255"}).epsilon == pytest.approx(0.0313725, rel=1e-5)
    assert parse_settings("text", {"epsilon": "0"}).bound == 0
    assert parse_settings("image", {}).place == "pixels"
    assert parse_settings("image", {}).bound == pytest.approx(8 / 255)
    for wrong in ("wide", "1/0"):
        with pytest.raises(UsageError, match="a fraction such as 8/255"):
            parse_settings("text", {"epsilon": wrong})
    for strength in ({}, FULL.strength):
        assert settings_as_text("text", widget_settings("text", strength)) == strength
    assert settings_as_text("image", default_settings("image")) == {}


def test_the_request_and_the_plan_ask_for_the_same_attack() -> None:
    plan, request = FULL.plan(), FULL.request("constrained")
    assert plan.objectives == ("constrained",)
    assert PLAIN.plan().objectives == ("unconstrained", "constrained")
    assert PLAIN.plan().models == ("reviews-minilm",)
    assert {**plan.attack, "objective": "constrained"} == request.attack
    assert request.attack["epsilon"] == pytest.approx(8 / 255)
    assert plan.params == {"integrated_gradients": request.params} == {
        "integrated_gradients": {"n_steps": 20, "baseline": "zero"}
    }  # fmt: skip
    text = (
        "--epsilon 0.0313725490196 --top-k 3 --beta 0.5 --steps 7 --sign-steps --transfer lime "
        "--param integrated_gradients.n_steps=20 --param integrated_gradients.baseline=zero --out rows.csv"
    )
    assert experiment_command(plan) == (
        "exegesis attack --models a,b --dataset reviews --methods gradient_l2,integrated_gradients "
        f"--objective constrained --examples 5 --seed 4 {text}"
    )
    assert example_command(FULL) == "", "a text of one's own is in no data set"
    of_data = dataclasses.replace(FULL, focus=TextFocus("m", "a film", index=7))
    assert example_command(of_data) == (
        "exegesis attack --models m --dataset reviews --methods integrated_gradients --objective constrained "
        f"--index 7 --seed 4 {text}"
    )
    assert "--transfer" not in example_command(dataclasses.replace(of_data, opened=()))
