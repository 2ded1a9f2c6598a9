"""The Compare page as a script: its columns, its link, a reference, the job that finds disagreement, bad input."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from streamlit.testing.v1 import AppTest

from components.compare import export
from components.compare.comparison import Comparison
from components.compare.export import cite_html, command, comparison_html, comparison_json, matrix_csv, scores_csv
from components.compare.state import SESSIONS, key
from components.inputs import text_choice
from engine import jobs
from engine.format import visible_token
from engine.next_token import next_tokens
from engine.request import Prompt
from tests.alerts import errors
from tests.app.heads_page import SECONDS, link_of
from tests.app.options import open_options
from tests.project import ROOT
from tests.tiny import save_causal, save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.vision.tiny_vit import save_vit

TEXT = "good food, bad service"
Query = dict[str, Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    made = {family: str(save_checkpoint(family, folder / family)) for family in ("bert", "gpt2")}
    made["three"] = str(save_checkpoint("bert", folder / "three", labels=3))
    return made | {"fine": str(save_vit(folder / "fine")), "coarse": str(save_vit(folder / "coarse", patch=12))}


def opened(columns: list[str], **query: Any) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=SECONDS)
    for name, value in {"input": "text", "text": TEXT, "column": columns, **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def board(page: AppTest) -> str:
    return "".join(_bodies(page))


def _bodies(page: AppTest) -> Iterator[str]:
    yield from (unescape(one.proto.body) for one in page.get("html") if not one.proto.body.startswith("<style>"))


def columns_of(page: AppTest) -> list[str]:
    return list(page.query_params["column"])


def press(page: AppTest, label: str, place: int = 0) -> AppTest:
    [button for button in page.button if button.label == label][place].click().run()
    assert not page.exception
    return page


@pytest.fixture
def two(models: dict[str, str]) -> list[str]:
    return [f"gradient_l2@{models['bert']}", f"occlusion,window=2@{models['gpt2']}"]


def test_maps_of_models_with_other_tokenizers_stand_on_the_same_words(two: list[str]) -> None:
    shown = board(opened(two))
    for word in ("good", "food,", "bad", "service"):
        assert f"<bdi dir=ltr>{word}</bdi>" in shown
    assert shown.count("<tr>") == 1 + 4
    assert "Occlusion, window 2" in shown
    assert "Both" not in shown


def test_the_page_begins_with_methods_of_the_model_looked_at(models: dict[str, str]) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=SECONDS)
    page.query_params["model"], page.query_params["text"] = models["bert"], TEXT
    page.run()
    assert not page.exception
    assert page.session_state[key("text", "columns")][-1] == f"random@{models['bert']}"
    assert "Do they agree?" in [one.value for one in page.subheader]


def test_columns_are_added_changed_moved_and_removed_and_stand_in_the_link(
    models: dict[str, str], two: list[str]
) -> None:
    page = press(opened(two), "Add Random")
    assert columns_of(page) == [*two, f"random@{models['bert']}"]
    page = press(page, "Move left", 1)
    assert columns_of(page) == [two[0], f"random@{models['bert']}", two[1]]
    page = press(page, "Remove", 1)
    assert columns_of(page) == two
    name = key("text", f"change.0.{two[0]}.")
    page.selectbox(f"{name}method").set_value("integrated_gradients").run()
    page.selectbox(f"{name}integrated_gradients.steps").set_value("fixed").run()
    page = press(page, "Change the column")
    assert columns_of(page) == [f"integrated_gradients,steps=fixed@{models['bert']}", two[1]]
    again = opened(columns_of(page))
    assert columns_of(again) == columns_of(page)


def test_another_model_for_the_data_set_is_one_click_away() -> None:
    columns = ["gradient_x_input@reviews-minilm", "random@reviews-minilm"]
    assert not any(button.label.startswith("Add bert") for button in opened(columns).button), "it guesses on reviews"
    page = press(opened(columns, data="reviews-generated"), "Add bert\\-reviews")
    assert columns_of(page)[-1] == "gradient_x_input@bert-reviews"
    assert not any(button.label.startswith("Add bert") for button in page.button), "there are two models now"


def test_a_reference_tells_the_agreement_of_the_others_and_the_moves(two: list[str]) -> None:
    page = press(opened(two), "Pin as the reference")
    assert link_of(page)["reference"] == "A"
    assert "with A: ρ" in board(page)
    open_options(page, key("text", "options"))
    page.segmented_control(key("text", "look.shown")).set_value("moves").run()
    assert link_of(page)["shown"] == "moves"
    shown = board(page)
    assert "<b>reference</b>" in shown
    assert any(sign in shown for sign in ("↑", "↓"))
    page.segmented_control(key("text", "look.shown")).set_value("difference").run()
    assert "of the total is on other words than in A" in board(page)
    page = press(page, "Unpin")
    assert "reference" not in link_of(page)


def test_a_column_that_cannot_read_the_example_says_so_and_the_others_stay(
    models: dict[str, str], two: list[str]
) -> None:
    page = opened([*two, "gradient@no-such-model"])
    shown = board(page)
    assert "unknown name 'no-such-model'" in shown
    assert "<bdi dir=ltr>service</bdi>" in shown
    page = opened([*two, f"gradient_l2@{models['three']}"], target="LABEL_2")
    assert board(page).count("target: unknown name 'LABEL_2'") == 2


def test_models_that_disagree_on_the_class_are_told(models: dict[str, str]) -> None:
    page = opened([f"random@{models['bert']}", f"random@{models['gpt2']}", f"random@{models['three']}"])
    assert any(words in board(page) for words in ("The models disagree on the class", "All 3 models predict"))


def test_one_class_for_all_is_explained_by_its_label(two: list[str]) -> None:
    page = opened(two)
    open_options(page, key("text", "options"))
    page.selectbox(key("text", "target")).set_value("LABEL_0").run()
    assert link_of(page)["target"] == "LABEL_0"
    assert board(page).count("explains <bdi>LABEL_0</bdi>") == 2


@pytest.mark.parametrize("text", ["food", "שלום עולם, טוב", "lovely view " * 300])
def test_one_word_a_text_from_the_right_and_a_long_one(text: str, two: list[str]) -> None:
    page = opened(two, text=text)
    assert not errors(page)
    if text == "food":
        assert "no order" in board(page).lower() or "no order" in " ".join(one.value for one in page.caption)
    if text.startswith("ש"):
        assert "dir=rtl" in board(page)
    if text.startswith("lovely"):
        assert " not read" in board(page)


def test_both_texts_of_a_pair_are_named(two: list[str]) -> None:
    shown = board(opened(two, pair="lovely view"))
    assert "First text" in shown
    assert "Second text" in shown


def test_pictures_of_other_grids_are_compared_on_a_common_one(models: dict[str, str]) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=SECONDS)
    columns = [f"gradient_l2@{models['fine']}", f"occlusion@{models['coarse']}"]
    asked: Query = {"input": "image", "data": "scenes:count=3", "column": columns}
    for name, value in asked.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert not errors(page)
    assert page.session_state[SESSIONS.switched] == "image"
    assert board(page).count('role="img"') == 1 + 2
    assert 'aria-label="The picture without a map"' in board(page)
    assert any(
        "common grid of 2 rows and 2 columns over the area that all models see" in one.value for one in page.caption
    )


def test_the_job_fills_the_list_and_a_click_opens_the_next_of_it(
    two: list[str], tmp_path: Path, own_home: None
) -> None:
    data = written(tmp_path / "reviews.jsonl", REVIEWS)
    page = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=SECONDS)
    for name, value in {"input": "text", "data": data, "index": "0", "column": two, "open": "search"}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 1, "the maps of the example at hand are there"
    page = press(page, "Compare the other 5 examples")
    [job] = jobs.list_jobs()
    jobs.wait(job.id)
    page.run()
    assert not page.exception
    [table] = page.dataframe
    values = list(table.value["Disagreement"])
    assert values == sorted(values, reverse=True)
    assert len(values) == 6
    assert "Label: 1." in board(page)
    places = [int(place) for place in table.value["#"]]
    if places.index(0) < 5:
        page = press(page, "Next", -1)
        assert link_of(page)["index"] == str(places[places.index(0) + 1])
    else:
        page = press(page, "Previous", -1)
        assert link_of(page)["index"] == str(places[4])


def test_what_is_wrong_in_a_link_is_said_and_left_out(two: list[str]) -> None:
    page = opened([*two, "gradiant@m"], measure="pearson", percent="7", reference="Z", data="../x")
    [said] = errors(page)
    for words in ("dataset: unknown name '../x'", "Did you mean 'gradient'", "measure: unknown name", "percent: must",
                  "reference: unknown", "The address now matches what is shown."):  # fmt: skip
        assert words in said
    assert not {"data", "measure", "percent", "reference"} & set(link_of(page))
    assert page.session_state[key("text", "columns")] == two


def test_without_columns_or_text_the_page_says_what_to_do(two: list[str]) -> None:
    assert [one.value for one in opened(["none"]).info] == ["Add a column: a model and a method."]
    assert "Type a text above" in opened(two, text=" ").info[0].value


def test_files_hold_what_is_shown(two: list[str]) -> None:
    with patch.object(export, "cite_html", wraps=cite_html) as cited:
        opened(two)
    comparison: Comparison = cited.call_args.args[0]
    rows = list(csv.reader(io.StringIO(scores_csv(comparison))))
    answer = json.loads(comparison_json(comparison))
    assert rows[0] == ["part", "start", "end", "segment", *two]
    assert [row[0] for row in rows[1:]] == [part["text"] for part in answer["parts"]]
    assert [[float(cell) for cell in row[4:]] for row in rows[1:]] == [part["scores"] for part in answer["parts"]]
    pairs = list(csv.DictReader(io.StringIO(matrix_csv(comparison))))
    assert len(pairs) == 3
    assert float(pairs[1]["spearman"]) == answer["agreement"]["spearman"][1][0]
    alone = comparison_html(comparison)
    assert "<script" not in alone
    assert alone.count("<h2>") == 2
    assert alone.count('xg-caution"') == 2
    assert command(comparison).startswith("exegesis compare --column ")


def test_a_model_of_another_task_is_told_with_a_data_set_that_fits() -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=SECONDS)
    link = {"input": "text", "data": "reviews", "index": "3", "column": ["random@reviews-minilm", "random@nli-minilm"]}
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    assert any("minilm was trained for inference" in caption.value for caption in page.caption)
    press(page, "Use nli instead")
    assert (page.query_params["data"], page.query_params["index"]) == ("nli", "0")
    # The other model is now the one that does not fit.
    assert [button.label for button in page.button if button.label.startswith("Use ")] == ["Use reviews instead"]
    press(page, "Use reviews instead")
    assert page.query_params["data"] == "reviews"


def test_another_text_is_explained_for_the_same_class_and_stands_in_link_command_and_files(two: list[str]) -> None:
    with patch.object(export, "cite_html", wraps=cite_html) as cited:
        page = opened(two)
        assert "Both texts" not in [one.value for one in page.subheader]
        page.toggle(key("text", "has_other")).set_value(True).run()
        assert page.text_area(key("text", "other")).value == TEXT, "it begins with the text at hand"
        assert any("Change the other text above" in one.value for one in page.info)
        page.text_area(key("text", "other")).set_value("good food, lovely service").run()
    assert not page.exception
    assert not errors(page)
    assert "Both texts" in [one.value for one in page.subheader]
    shown = board(page)
    assert shown.count("<i>first</i><i>other</i>") == len(two)
    assert shown.count("over 3 unchanged words") == len(two)
    assert shown.count("percentage points") == len({code.partition("@")[2] for code in two})
    assert link_of(page)["other"] == "good food, lovely service"
    comparison: Comparison = cited.call_args.args[0]
    assert "--other 'good food, lovely service'" in command(comparison)
    answer = json.loads(comparison_json(comparison))
    assert [one["column"] for one in answer["other"]] == two
    assert [one["target"] for one in answer["other"]] == [one["target"] for one in answer["columns"]]
    assert "<h2>Both texts</h2>" in comparison_html(comparison)
    again = opened(two, other="good food, lovely service")
    assert board(again).count("over 3 unchanged words") == len(two)
    again.toggle(key("text", "has_other")).set_value(False).run()
    assert "other" not in link_of(again)
    assert "Both texts" not in [one.value for one in again.subheader]


def test_two_prompts_of_one_model_are_compared_with_one_column(tmp_path: Path) -> None:
    model = str(save_causal("llama", tmp_path / "causal"))
    query = {"model": model, "text": "The film was good.", "other": "The film was bad."}
    page = opened([f"gradient_x_input@{model}"], **query)
    assert not errors(page)
    assert [area.label for area in page.text_area] == ["Prompt", "Other prompt"]
    assert "Both prompts" in [one.value for one in page.subheader]
    assert "Do they agree?" not in [one.value for one in page.subheader]
    assert "over 3 unchanged words" in board(page)
    assert any("--other 'The film was bad.'" in one.value for one in page.code)


def test_an_empty_other_text_asks_for_one(two: list[str]) -> None:
    assert any("Type the other text above." in one.value for one in opened(two, other=" ").info)


def test_a_typed_prompt_has_the_choice_of_its_token_and_of_a_contrast(tmp_path: Path) -> None:
    model = str(save_causal("llama", tmp_path / "causal"))
    likely = next_tokens(model, Prompt("The film was good.")).labels
    page = opened([f"gradient_x_input@{model}"], model=model, text="The film was good.")
    open_options(page, key("text", "options"))
    assert "Explained class" not in [one.label for one in page.selectbox]
    target, contrast = (text_choice.key(name) for name in text_choice.TOKENS)
    assert len(page.selectbox(target).options) == len(likely), "one for none, and no other tokens"
    page.selectbox(target).set_value(likely[1]).run()
    page.selectbox(contrast).set_value(likely[0]).run()
    assert not errors(page)
    assert (link_of(page)["target_token"], link_of(page)["contrast"]) == (likely[1], likely[0])
    assert f"{visible_token(likely[1])} rather than {visible_token(likely[0])}" in board(page)
