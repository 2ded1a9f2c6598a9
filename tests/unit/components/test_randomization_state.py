"""The Randomization page's state in a link and back, what a link may get wrong, and the plan that it asks for."""

from __future__ import annotations

import dataclasses

import pytest

from components.randomization.keep import command
from components.randomization.look import Look
from components.randomization.state import RandomizationState, plan_of, read, usual, write
from engine.randomization.plan import THESIS_METHODS, RandomizationPlan
from engine.registry import all_explainers
from engine.shipped.experiments import RANDOMIZATION_PLANS

TEXT = all_explainers("text")
FULL = RandomizationState(
    kind="text",
    models=("a folder/with spaces", "owner/name"),
    data="hub:owner/set",
    methods=("lime", "gradient_l2"),
    examples=7,
    seeds=5,
    modes=("independent",),
    head=True,
    embeddings=True,
    split="dev",
    seed=3,
    params={"lime": {"n_samples": "64"}},
    look=Look(
        measure="top_k", model="owner/name", only=("lime",), beside=("0123456789",), lines="lime",
        of="owner/name", way="independent", stage=2, example="17",
        order="most", by="lime", draw=2, scale="shared",
    ),
)  # fmt: skip


@pytest.mark.parametrize("state", [usual("text"), usual("image"), FULL], ids=["text", "image", "full"])
def test_a_link_reopens_the_state(state: RandomizationState) -> None:
    assert read(state.kind, write(state), all_explainers(state.kind)) == (state, [])


def test_what_is_usual_is_not_written() -> None:
    assert write(usual("text")) == {"input": ["text"]}
    assert write(dataclasses.replace(usual("text"), head=True)) == {"input": ["text"], "head": ["on"]}


def test_no_model_no_method_and_no_mode_stay_none() -> None:
    state = dataclasses.replace(usual("text"), models=(), methods=(), modes=())
    assert read("text", write(state), TEXT) == (state, [])


def test_each_thing_that_is_not_known_is_said_and_the_usual_stands_instead() -> None:
    query = {
        "method": ["nonsense", "gradient"], "examples": ["0"], "seeds": ["0"], "mode": ["upwards", "cascading"],
        "head": ["perhaps"], "seed": ["-1"], "measure": ["ssim"], "way": ["up"], "stage": ["x"], "example": ["first"],
        "draw": ["0"], "order": ["best"], "scale": ["log"],
    }  # fmt: skip
    state, said = read("text", query, TEXT)
    assert len(said) == len(query)
    assert any(one.startswith("measure: ") and "spearman, spearman_abs, top_k" in one for one in said)
    assert state == dataclasses.replace(usual("text"), methods=("gradient",), modes=("cascading",))


def test_a_picture_has_one_measure_more() -> None:
    assert read("image", {"measure": ["ssim"]}, all_explainers("image"))[0].look.measure == "ssim"


def test_the_plan_is_that_of_the_command() -> None:
    plan = plan_of(FULL, TEXT)
    assert plan == RandomizationPlan(
        models=FULL.models, dataset="hub:owner/set", methods=("lime", "gradient_l2"), examples=7, seed=3,
        modes=("independent",), seeds=5, head=True, embeddings=True, split="dev", params={"lime": {"n_samples": 64}},
    )  # fmt: skip
    assert command(plan) == (
        "exegesis randomize --models 'a folder/with spaces,owner/name' --dataset hub:owner/set --methods "
        "lime,gradient_l2 --examples 7 --seed 3 --seeds 5 --mode independent --split dev --head --embeddings "
        "--param lime.n_samples=64 --out rows.csv"
    )
    assert command(RandomizationPlan(("m",), "d")) == (
        f"exegesis randomize --models m --dataset d --methods {','.join(THESIS_METHODS)} --out rows.csv"
    )


@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_page_opens_with_what_is_shipped(kind: str) -> None:
    assert plan_of(usual(kind), all_explainers(kind)) == RANDOMIZATION_PLANS[kind]
