"""Browse as a script: the list of a data set, predictions through a job, filters in the link, all kinds of data."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from components.browse.confusion import TITLE, class_column
from components.browse.examples import MOST_SHOWN
from components.inputs import text_choice
from components.job_panel import describe_end
from components.navigation import EVALUATE, TEXT
from components.text.state import key
from engine import jobs
from engine.data.datasets import load
from engine.data.slices import format_rows, slice_name
from engine.predictions import cached_predictions, predictions
from engine.store import result_store
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import CORPUS, save_checkpoint

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "scorer", labels=1))


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Five texts with classes 0 and 1 in turn."""
    return written(tmp_path, [{"text": text, "label": i % 2} for i, text in enumerate(CORPUS)])


def written(folder: Path, rows: list[dict[str, object]]) -> str:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def opened(**query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in ({"open": "browse", "method": ["random"]} | query).items():
        page.query_params[name] = value
    return page.run()


def told(page: AppTest) -> str:
    """All that the page says in words."""
    html = (unescape(element.proto.body) for element in page.get("html"))
    return " ".join([*html, *(element.value for element in (*page.caption, *page.info))])


def column(page: AppTest, name: str) -> list[object]:
    return list(page.dataframe[0].value[name])


def button(page: AppTest, label: str) -> object:
    return next(one for one in page.button if one.label == label)


def press(page: AppTest, label: str) -> AppTest:
    return button(page, label).click().run()  # type: ignore[attr-defined,no-any-return]


def current(page: AppTest) -> int:
    return int(page.number_input(text_choice.key("index")).value or 0)


def predicted(page: AppTest, label: str) -> AppTest:
    """After the job that this button starts."""
    press(page, label)
    [job] = [job for job in jobs.list_jobs() if not job.is_over] or jobs.list_jobs()[:1]
    assert jobs.wait(job.id, SECONDS).state == "done"
    return page.run()


def test_closed_it_shows_and_computes_nothing(model: str, data: str) -> None:
    page = opened(model=model, data=data, open="questions")
    assert not page.exception
    assert "examples" not in told(page)
    press(page, "Browse")
    assert "5 examples, none predicted yet." in told(page)
    assert page.query_params["open"] == "browse,questions"


@pytest.mark.parametrize("name", ["text", "images"])
def test_a_button_beside_the_example_opens_and_closes_the_list(name: str, model: str, data: str) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=SECONDS)
    for field, given in ({"model": model, "data": data} if name == "text" else {}).items():
        page.query_params[field] = given
    page.query_params["method"] = ["random"]
    press(page.run(), "Browse")
    assert not page.exception
    assert "none predicted yet." in told(page)
    assert page.query_params["open"] in ("browse", ["browse"])
    press(page, "Close list")
    assert "none predicted yet." not in told(page)
    assert "open" not in page.query_params


def test_without_predictions_the_list_and_the_way_through_it_work(model: str, data: str) -> None:
    page = opened(model=model, data=data)
    assert column(page, "Text") == CORPUS
    assert list(page.dataframe[0].value.columns) == ["#", "Text", "Label", "Length"]
    assert button(page, "Previous").disabled  # type: ignore[attr-defined]
    press(page, "Next")
    assert (current(page), page.text_area(text_choice.key("text")).value) == (1, CORPUS[1])
    assert page.query_params["index"] == "1"
    press(page, "Random, filtered")
    assert current(page) != 1
    page.text_input(key("browse.search")).set_value("BATTERY  died").run()
    assert column(page, "#") == [2]
    assert page.query_params["find"] == "BATTERY  died"
    assert cached_predictions(model, [labeled.example for labeled in load(data).examples]) == [None] * 5


def test_predictions_come_by_a_job_and_agree_with_the_model(model: str, data: str) -> None:
    page = predicted(opened(model=model, data=data), "Predict all 5 examples")
    assert not page.exception
    examples = load(data).examples
    made = predictions(model, [labeled.example for labeled in examples])
    right = [prediction.index == labeled.label for prediction, labeled in zip(made, examples, strict=True)]
    assert column(page, "Prediction") == [prediction.label for prediction in made]
    assert column(page, "Confidence") == pytest.approx([max(prediction.probabilities) for prediction in made])
    assert column(page, "Verdict") == ["✓ right" if one else "✗ wrong" for one in right]
    assert f"{sum(right)} of 5 right, {5 - sum(right)} wrong" in told(page)
    assert "Classes are matched by number: 0 is LABEL_0, 1 is LABEL_1." in told(page)
    page.selectbox(key("browse.show")).set_value("wrong").run()
    assert column(page, "#") == [index for index, one in enumerate(right) if not one]
    page.selectbox(key("browse.sort")).set_value("long").run()
    link = {name: page.query_params[name] for name in page.query_params}
    assert (link["show"], link["sort"]) == ("wrong", "long")
    again = opened(**link)
    assert column(again, "#") == column(page, "#")


def test_after_the_cache_is_cleared_nothing_is_predicted(model: str, data: str) -> None:
    page = predicted(opened(model=model, data=data), "Predict all 5 examples")
    assert "none predicted yet" not in told(page)
    result_store().clear()
    page.run()
    assert "none predicted yet" in told(page)
    assert "Prediction" not in page.dataframe[0].value


def test_next_walks_through_what_is_listed_in_its_order(model: str, data: str) -> None:
    page = opened(model=model, data=data, sort="long", label="0")
    order = sorted((0, 2, 4), key=lambda index: -len(CORPUS[index]))
    assert column(page, "#") == order
    page.number_input(text_choice.key("index")).set_value(1).run()
    assert "3 listed; the current example is not in the list" in told(page)
    for place, index in enumerate(order, 1):
        press(page, "Next")
        assert current(page) == index
        assert f"{place} of 3 in the list" in told(page)
        assert page.session_state[key("browse_table")]["selection"]["rows"] == [place - 1]
    assert button(page, "Next").disabled  # type: ignore[attr-defined]
    press(page, "Previous")
    assert current(page) == order[1]


def test_methods_are_compared_by_a_job_and_the_filter_shows_where_they_disagree(model: str, data: str) -> None:
    page = predicted(opened(model=model, data=data), "Compare methods on all 5 examples")
    values = column(page, "Disagreement")
    assert all(isinstance(value, float) and 0 <= value <= 4 / 3 for value in values)
    assert "Disagreement on 5 examples: 1 minus the mean Spearman ρ" in told(page)
    page.selectbox(key("browse.show")).set_value("disagree").run()
    top = sorted(range(5), key=lambda index: -float(str(values[index])))[:2]
    assert column(page, "#") == sorted(top)
    assert not [one.label for one in page.button if one.label.startswith(("Predict all", "Compare"))]


def test_a_running_job_shows_its_progress_and_can_be_cancelled(model: str, tmp_path: Path) -> None:
    data = written(tmp_path, [{"text": f"film number {i}", "label": 0} for i in range(400)])
    page = press(opened(model=model, data=data), "Compare methods on all 400 examples")
    press(page, "Cancel")
    [job] = jobs.list_jobs()
    assert jobs.wait(job.id, SECONDS).state == "cancelled"
    page.run()
    assert describe_end(jobs.get(job.id)) in told(page)
    press(page, "Go on")
    assert jobs.get(job.id).state in ("queued", "running")


def test_scores_have_errors_instead_of_verdicts(scorer: str, tmp_path: Path) -> None:
    data = written(tmp_path, [{"text": text, "label": i / 4 + 0.1} for i, text in enumerate(CORPUS)])
    page = predicted(opened(model=scorer, data=data), "Predict all 5 examples")
    made = predictions(scorer, [labeled.example for labeled in load(data).examples])
    errors = [abs(prediction.logits[0] - (i / 4 + 0.1)) for i, prediction in enumerate(made)]
    assert column(page, "Error") == pytest.approx(errors)
    assert "Verdict" not in page.dataframe[0].value
    assert "Mean absolute error" in told(page)
    page.selectbox(key("browse.show")).set_value("off").run()
    farthest = sorted(range(5), key=lambda index: -errors[index])[:2]
    assert column(page, "#") == sorted(farthest)
    assert "wrong" not in page.selectbox(key("browse.show")).options


def test_pairs_and_texts_without_labels(model: str, tmp_path: Path) -> None:
    data = written(tmp_path, [{"text": "=1+1 <b>", "text_pair": "a hypothesis"}, {"text": "b", "text_pair": "c"}])
    page = predicted(opened(model=model, data=data), "Predict all 2 examples")
    assert column(page, "Text") == ["'=1+1 <b>", "b"]
    assert column(page, "Second text") == ["a hypothesis", "c"]
    assert "This data set has no labels" in told(page)
    press(page, "Next")
    assert page.text_area(text_choice.key("pair")).value == "c"


def test_classes_that_are_not_the_models_are_not_called_wrong(model: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": text, "label": f"topic {i}"} for i, text in enumerate(CORPUS)]
    page = predicted(opened(model=model, data=written(tmp_path, rows)), "Predict all 5 examples")
    assert "do not match the model's (LABEL_0, LABEL_1), so accuracy cannot be computed." in told(page)
    assert "Accuracy" not in told(page)
    assert "Verdict" not in page.dataframe[0].value


def test_of_a_large_data_set_the_table_holds_the_first_and_says_so(model: str, tmp_path: Path) -> None:
    data = written(tmp_path, [{"text": f"film number {i}"} for i in range(MOST_SHOWN + 500)])
    page = opened(model=model, data=data, index=str(MOST_SHOWN + 498))
    assert len(page.dataframe[0].value) == MOST_SHOWN
    assert "The table shows the first 1,000 of 1,500" in told(page)
    press(page, "Next")
    assert current(page) == MOST_SHOWN + 499
    assert "1,500 of 1,500 in the list" in told(page)


def test_nothing_found_says_what_to_change(model: str, data: str) -> None:
    page = opened(model=model, data=data, find="nothing like it")
    assert "No example matches. 5 are not predicted yet." in told(page)
    assert not page.dataframe
    page.text_input(key("browse.search")).set_value("").run()
    assert column(page, "#") == list(range(5))
    page.selectbox(key("browse.show")).set_value("wrong").run()
    assert "Not predicted yet: press Predict above." in told(page)
    assert "No example matches" not in told(page)
    page.selectbox(key("browse.show")).set_value("disagree").run()
    assert "Not compared yet: press Compare methods above." in told(page)
    assert not page.dataframe
    page.selectbox(key("browse.show")).set_value("all").run()
    assert column(page, "#") == list(range(5))


def test_a_model_that_is_not_there_is_said_and_the_page_goes_on(data: str) -> None:
    page = opened(model="no-such-model", data=data)
    assert not page.exception
    assert "model: unknown name 'no-such-model'" in told(page)


def test_unknown_values_in_the_link_are_named(model: str, data: str) -> None:
    page = opened(model=model, data=data, show="bad", sort="worse")
    assert [error.partition(":")[0] for error in errors(page)] == ["show", "sort"]
    assert column(page, "#") == list(range(5))


def test_the_confusion_matrix_counts_and_its_filters_are_in_the_link(model: str, data: str) -> None:
    page = predicted(opened(model=model, data=data), "Predict all 5 examples")
    examples = load(data).examples
    made = predictions(model, [labeled.example for labeled in examples])
    [section] = [one for one in page.expander if one.label == TITLE]
    assert not section.dataframe, "closed, it draws nothing"
    page.session_state[key("confusion")] = True
    page.run()
    [section] = [one for one in page.expander if one.label == TITLE]
    frame = section.dataframe[0].value
    pairs = [(str(labeled.label), prediction.label) for labeled, prediction in zip(examples, made, strict=True)]
    for place, label in enumerate("01"):
        for name in {one for _, one in pairs}:
            assert frame[class_column(name)][place] == str(pairs.count((label, name)))
    label, name = pairs[0]
    again = opened(model=model, data=data, label=label, predicted=name)
    assert column(again, "#") == [index for index, pair in enumerate(pairs) if pair == (label, name)]
    assert again.selectbox(key("browse.predicted")).value == name
    again.selectbox(key("browse.predicted")).set_value("").run()
    assert "predicted" not in again.query_params


def test_a_list_of_a_file_is_a_slice_until_the_file_changes(model: str, data: str) -> None:
    page = opened(model=model, data=data, find=" and ")
    page.session_state[key("slice_panel")] = True
    page.run()
    whole = load(data)
    rows = [index for index, labeled in enumerate(whole.examples) if " and " in labeled.text]
    name = f"{data}:rows={format_rows(rows)},digest={whole.revision[:12]}"
    assert name in [code.value for code in page.code]
    part = predicted(opened(model=model, data=name), f"Predict all {len(rows)} examples")
    assert column(part, "Text") == [whole[row].text for row in rows]
    assert jobs.list_jobs()[0].spec["data"] == name
    Path(data).write_text(json.dumps({"text": "movie", "label": 0}) + "\n", encoding="utf-8")
    part.run()
    assert "digest: own.jsonl has changed since the slice was named" in told(part)


def test_a_filtered_list_is_a_slice_that_evaluate_takes() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    page.switch_page(TEXT.file)
    for name, value in {"open": "browse", "model": "bert-reviews", "find": "soup", "method": "random"}.items():
        page.query_params[name] = value
    page.run()
    page.session_state[key("slice_panel")] = True
    page.run()
    whole = load("reviews")
    rows = [index for index, labeled in enumerate(whole.examples) if "soup" in labeled.text.lower()]
    assert 0 < len(rows) < len(whole)
    assert column(page, "#") == rows
    page.text_input(key("slice")).set_value("about soup").run()
    name = slice_name("reviews", rows, "about soup")
    assert name in [code.value for code in page.code]
    [link] = [one for one in page.get("page_link") if one.proto.label.startswith("Evaluate methods on")]
    query = parse_qs(link.proto.query_string)
    assert (query["model"], query["data"]) == (["bert-reviews"], [name])
    assert [labeled.text for labeled in load(name).examples] == [whole[row].text for row in rows]
    evaluate = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run().switch_page(EVALUATE.file)
    for field, values in query.items():
        evaluate.query_params[field] = values
    evaluate.run()
    assert not evaluate.exception
    assert not errors(evaluate)
    assert evaluate.query_params["data"] == name
