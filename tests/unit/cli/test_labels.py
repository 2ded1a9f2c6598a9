"""`exegesis explain` with labels: classes of a zero-shot model of pictures or texts, and the prompt of one label."""

from __future__ import annotations

import pytest

from engine.data.image_datasets import load_images
from engine.explain import explain
from engine.models.label_prompts import with_prompts
from engine.request import Picture, PicturePrompt, Request
from tests.unit.cli.conftest import Run
from tests.unit.vision.tiny_families import zero_shot_folder

SCENES = ("--dataset", "scenes:count=2", "--index", "0")


def arguments(*more: str, family: str = "clip", method: str = "occlusion") -> list[str]:
    return ["explain", "--model", str(zero_shot_folder(family)), "--method", method, *SCENES, *more]


def test_labels_make_the_classes_and_their_prompts_are_explained(run: Run) -> None:
    picture = Picture(load_images("scenes:count=2")[0].pixels)
    name = with_prompts(str(zero_shot_folder("siglip")), "film, food", "a view of the {}")
    typed = ("--labels", "film, food", "--template", "a view of the {}", "--json")
    [made] = run(*arguments(*typed, family="siglip")).json
    own = explain(Request(name, "occlusion", picture))
    assert made["model"] == name
    assert list(made["prediction"]["probabilities"]) == ["film", "food"]
    assert made["scores"] == pytest.approx(own.on_grid.tolist() if isinstance(made["scores"][0], list) else own.scores)
    [prompt] = run(*arguments(*typed, "--side", "prompt", "--target", "food", family="siglip")).json
    text = PicturePrompt("a view of the food", picture=picture)
    wanted = explain(Request(name, "occlusion", text))
    assert [feature["score"] for feature in prompt["features"]] == pytest.approx(wanted.scores)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "labels: {folder} matches pictures with texts and has no classes of its own. Give it two or more"),
        (("--labels", "film"), "labels: must be 2 to 1,000 labels, such as 'a cat, a dog', got 'film'"),
        (("--template", "a {}"), "--template: requires --labels. Example:"),
        (("--labels", "a,b", "--side", "text"), "--side: unknown name 'text'. Known: picture, prompt"),
        (("--labels", "a,b", "--side", "prompt", "--target", "c"), "--target: unknown name 'c'. Known: a, b"),
    ],
)
def test_wrong_labels_in_one_line(run: Run, more: tuple[str, ...], sentence: str) -> None:
    said = run(*arguments(*more)).complaint(2)
    assert said.startswith(sentence.format(folder=zero_shot_folder("clip")))


def test_a_model_with_classes_takes_no_labels_and_a_text_has_no_prompt_side(run: Run) -> None:
    said = run("explain", "--model", "scenes-vit", "--method", "random", *SCENES, "--labels", "a,b").complaint(2)
    assert said.startswith("labels: the model 'scenes-vit' has classes of its own. Leave labels and template")
    said = run("explain", "--method", "random", "--text", "Not bad.", "--side", "prompt").complaint(2)
    assert said.startswith("--side: prompt requires a picture. Give one: --image F")


def test_labels_of_a_text_beside_those_in_the_name(run: Run) -> None:
    text, typed = (
        ("--method", "random", "--text", "The chef fried the onions."),
        ("--labels", '"travel, by sea", a|b & c'),
    )
    [made] = run("explain", "--model", "nli-minilm", *text, *typed, "--template", "It is {}.", "--json").json
    name = with_prompts("nli-minilm", '"travel, by sea", a|b & c', "It is {}.")
    assert made["model"] == name
    assert list(made["prediction"]["probabilities"]) == ["travel, by sea", "a|b & c"]
    [again] = run("explain", "--model", name, *text, "--json").json
    assert again["prediction"] == made["prediction"]
    said = run("explain", "--model", name, *text, *typed).complaint(2)
    assert said.startswith("--labels: ")
    assert said.endswith("names its labels already. Remove them, or --labels.")
