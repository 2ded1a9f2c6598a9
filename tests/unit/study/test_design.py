"""Designs: plain JSON both ways, refused with what would do, and the preset of SMaT's study."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.registry import KINDS, all_explainers
from engine.study.design import (
    CONSENT,
    CONSENT_PLACEHOLDERS,
    GUESS_INSTRUCTIONS,
    GUESS_QUESTION,
    INSTRUCTIONS,
    PRESETS,
    QUESTION,
    SMAT_METHODS,
    Design,
    ExclusionRules,
    ItemChoice,
    MethodChoice,
    check_design,
    consent_placeholders,
    find_preset,
)

METHODS = (MethodChoice("gradient"), MethodChoice("attention_mean"))
GOOD = Design(title="A study", model="reviews", dataset="reviews", methods=METHODS)


@given(
    title=st.text(max_size=200),
    consent=st.text(max_size=300),
    mode=st.sampled_from(["rank", "predict"]),
    count=st.integers(1, 10_000),
    indices=st.lists(st.integers(0, 10**6), unique=True).map(tuple),
    closes_at=st.none() | st.floats(0, 1e11),
    share=st.none() | st.floats(0, 1),
    placebo=st.booleans(),
    label=st.none() | st.just("None") | st.text(),
)
def test_a_design_is_the_same_after_json(
    title: str,
    consent: str,
    mode: str,
    count: int,
    indices: tuple[int, ...],
    closes_at: float | None,
    share: float | None,
    placebo: bool,
    label: str | None,
) -> None:
    items = ItemChoice("filter", count, label=label, indices=indices)
    rules = ExclusionRules(least_seconds=1.5, most_cannot_tell=share)
    design = dataclasses.replace(
        GOOD,
        title=title,
        consent=consent,
        mode=mode,
        items=items,
        closes_at=closes_at,
        placebo=placebo,
        exclusion=rules,
        methods=(MethodChoice("lime", {"n_samples": 40}), *METHODS),
    )
    assert Design.from_json(json.loads(json.dumps(design.to_json()))) == design


def test_what_is_left_out_is_as_usual() -> None:
    assert Design.from_json({}) == Design()
    assert Design.from_json({"title": "None", "items": {"how": "hand", "indices": [3, 1]}}) == Design(
        "None", items=ItemChoice("hand", indices=(3, 1))
    )


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ({"titel": "x"}, r"design: unknown name 'titel'. Did you mean 'title'"),
        ({"heads": [[0, 1, 0.0]]}, r"design: unknown name 'heads'"),
        ({"title": 7}, r"design.title: must be a text of at most 200 characters, got 7"),
        ({"consent": "x" * 20_001}, r"design.consent: must be a text of at most 20,000 characters, got '20,001 char"),
        ({"mode": "guess"}, r"design.mode: must be one of rank, predict"),
        ({"kind": "sound"}, r"design.kind: must be one of text, image"),
        ({"items": [1]}, r"design.items: must be an object with named values"),
        ({"items": {"how": "luck"}}, r"design.items.how: must be one of seed, filter, hand"),
        ({"items": {"indices": [1, 1]}}, r"design.items.indices: must be different whole numbers"),
        ({"items": {"indices": [True]}}, r"design.items.indices: must be different whole numbers"),
        ({"items": {"label": 1}}, r"design.items.label: must be the name of a class, or none, got 1"),
        ({"items": {"count": 0}}, r"design.items.count: must be a whole number from 1 to 10,000"),
        ({"methods": "gradient"}, r"design.methods: must be a list"),
        ({"methods": [{"name": "gradient"}]}, r"design.methods: must be a list of"),
        ({"exclusion": {"most_cannot_tell": 1.5}}, r"design.exclusion.most_cannot_tell: must be a number from 0 to 1"),
        ({"closes_at": float("inf")}, r"design.closes_at: must be a finite number"),
    ],
)
def test_what_cannot_be_read_is_refused(plain: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Design.from_json(plain)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": " "}, r"design\.title is empty\. Give one"),
        ({"dataset": ""}, r"design\.dataset is empty\. Give one"),
        ({"methods": METHODS[:1]}, r"design.methods: must be 2 to 6 methods, got gradient"),
        ({"methods": tuple(map(MethodChoice, list(all_explainers())[:7]))}, r"design.methods: must be 2 to 6 methods"),
        ({"methods": (*METHODS, METHODS[0])}, r"gradient is listed twice with the same parameters"),
        ({"methods": (*METHODS, MethodChoice("random"))}, r"random is the placebo already"),
        ({"methods": (*METHODS, MethodChoice("lime", {"samples": 3}))}, r"parameter of lime: unknown name 'samples'"),
        ({"methods": (*METHODS, MethodChoice("grad_cam"))}, r"method: unknown name 'grad_cam'"),
        ({"repeats": 20}, r"design.repeats: must be less than the items per person \(20\), got 20"),
        ({"items": ItemChoice(count=5)}, r"design.items_per_annotator: must be at most the study's 5 items, got 20"),
        ({"items": ItemChoice("hand", indices=(4, 5))}, r"must list more than the 2 practice items"),
        (
            {"mode": "predict", "exclusion": ExclusionRules(least_consistency=0.5)},
            r"least_consistency: must be empty in a study of guesses, got 0.5",
        ),
        (
            {"items": ItemChoice("filter", least_words=9, most_words=8)},
            r"most_words: must be at least the minimum \(9\), got 8",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_design(dataclasses.replace(GOOD, **changes))


def test_a_method_may_come_twice_with_other_parameters() -> None:
    few, many = (MethodChoice("lime", {"n_samples": n}) for n in (50, 500))
    assert [m.params["n_samples"] for m in check_design(dataclasses.replace(GOOD, methods=(few, many))).methods] == [
        50,
        500,
    ]


def test_defaults_of_methods_are_written_down() -> None:
    made = check_design(dataclasses.replace(GOOD, methods=(*METHODS, MethodChoice("smoothgrad"))))
    assert made.methods[2].params == dataclasses.asdict(all_explainers()["smoothgrad"].params())
    assert check_design(made) == made


@pytest.mark.parametrize(
    ("mode", "texts"), [("rank", (QUESTION, INSTRUCTIONS)), ("predict", (GUESS_QUESTION, GUESS_INSTRUCTIONS))]
)
@pytest.mark.parametrize("came_with", [(QUESTION, INSTRUCTIONS), (GUESS_QUESTION, GUESS_INSTRUCTIONS)])
def test_usual_texts_are_those_of_what_people_do(mode: str, texts: tuple[str, str], came_with: tuple[str, str]) -> None:
    asked, told = came_with
    made = check_design(dataclasses.replace(GOOD, mode=mode, question=asked, instructions=told))
    assert (made.question, made.instructions) == texts
    assert check_design(dataclasses.replace(made, question="Why?")).question == "Why?"


def test_the_placebo_is_shown_last() -> None:
    assert [m.id for m in GOOD.ballot_methods] == ["gradient", "attention_mean", "random"]
    assert dataclasses.replace(GOOD, placebo=False).ballot_methods == METHODS


def test_hand_picked_practice_items_do_not_count() -> None:
    by_hand = dataclasses.replace(GOOD, items=ItemChoice("hand", indices=(9, 8, 7, 6, 5)), items_per_annotator=3)
    assert check_design(by_hand).item_count == 3


@pytest.mark.parametrize("kind", KINDS)
def test_smat_has_its_four_methods_and_says_what_stands_in(kind: str) -> None:
    made = check_design(find_preset("smat").design("a-model", "a-set", kind))
    assert tuple(m.id for m in made.methods) == (*SMAT_METHODS[:3], "attention_logits")
    assert made.methods[1].params["n_steps"] == 50  # appendix A: 50 iterations in the plausibility experiments
    assert made.question == "Which explanation aligns the most with how you would explain a similar decision?"
    assert made.ballot_methods[-1].id == "random"
    assert "so attention logits of all layers replace it" in PRESETS["smat"].note("a-model", kind)


def test_an_unknown_preset_lists_the_known() -> None:
    with pytest.raises(UsageError, match=r"preset: unknown name 'smatt'. Did you mean 'smat'"):
        find_preset("smatt")


def test_the_default_consent_names_what_the_organizer_has_to_fill_in() -> None:
    assert consent_placeholders(CONSENT) == list(CONSENT_PLACEHOLDERS)
    assert consent_placeholders(CONSENT.replace("[your organization]", "ours")) == list(CONSENT_PLACEHOLDERS[1:])
    assert consent_placeholders("Ours [1].") == []
