"""What the Library page says of jobs, models, data sets and the cache, from plain values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cache import CheckReport, Stats
from components.errors import describe_error, error_html
from components.job_panel import BADGES, FAILURES_SHOWN, describe_end, failures_html, job_view
from components.library.cards import (
    card_facts,
    inspection_facts,
    measured_scores,
    model_row,
    split_facts,
    view_facts,
    without_title,
)
from components.library.jobs import IN_CACHE, LINKS, explain_spec, line_html, result_link
from components.library.page import cache_facts, describe_check, describe_size
from components.links import LONGEST_IN_LINK
from components.navigation import IMAGES, TEXT
from components.numbers import duration
from components.tables import checks_html, facts_html
from engine.data.datasets import dataset_card
from engine.errors import ExegesisError, UsageError
from engine.format import size_text
from engine.jobs import Job, UnitFailure
from engine.jobs.kinds import known_ids
from engine.jobs.table import STATES, Process
from engine.models import catalog
from engine.models.summary import summarize_model
from engine.request import Prompt

MARKUP = "<b>x</b> & *y*"
JOB = Job(
    id=7, kind="explain", title="Explain 2 examples", state="running", queue="q", total=60, done=20, computed=15,
    spec={"model": "m", "methods": ["random", "lime"], "examples": [{"text": "good"}, {"text": "bad"}]},
    failed=1, label="random, example 3", seconds_left=64.2, created=0.0, queued=0.0, started=10.0, finished=None,
    error="", note="", owner=Process("here", 1, 0.0), heartbeat=0.0, cancel_requested=False,
)  # fmt: skip


def test_a_running_job_tells_its_share_its_counts_and_the_time_left() -> None:
    view = job_view(JOB, 0)
    assert view.share == 20 / 60
    assert view.progress == "20 of 60 parts · about 1 min 4 s left"
    assert view.counts == "15 computed in this run · 4 from the cache · 1 failed · now: random, example 3"
    assert (view.can_cancel, view.can_resume) == (True, False)


@pytest.mark.parametrize(("ahead", "said"), [(0, "next in the queue"), (1, "1 job ahead"), (3, "3 jobs ahead")])
def test_a_waiting_job_tells_its_place(ahead: int, said: str) -> None:
    assert job_view(replace(JOB, state="queued", started=None), ahead).progress == said


def test_a_job_without_parts_yet_is_not_a_division_by_zero() -> None:
    view = job_view(replace(JOB, total=0, done=0), 0)
    assert (view.share, view.counts) == (0.0, "")
    assert view.progress.startswith("preparing")
    assert job_view(replace(JOB, total=0, state="failed"), 0).progress == "nothing computed"


def test_a_job_that_is_over_says_how_long_it_took_and_no_time_left() -> None:
    view = job_view(replace(JOB, state="done", done=60, computed=60, failed=0, finished=22.0), 0)
    assert view.progress == "60 of 60 parts"
    assert view.counts == "60 computed in this run · 0 from the cache"
    assert view.when.endswith(", last run 12 s")


def test_a_job_that_did_not_end_well_says_how_far_it_came() -> None:
    assert describe_end(replace(JOB, state="cancelled")) == "Cancelled after 20 of 60 parts."
    assert describe_end(replace(JOB, state="interrupted", total=0, done=0)) == "Interrupted before it started."


def test_every_state_has_its_own_word_and_sign() -> None:
    assert set(BADGES) == {*STATES, "stopping"}
    assert len({word for word, _, _ in BADGES.values()}) == len({sign for _, _, sign in BADGES.values()}) == len(BADGES)


def test_a_job_that_was_asked_to_stop_cannot_be_asked_again() -> None:
    view = job_view(replace(JOB, cancel_requested=True), 0)
    assert view.badge[0] == "stopping"
    assert not view.can_cancel


@pytest.mark.parametrize("state", STATES)
def test_what_can_be_done_follows_the_state(state: str) -> None:
    view = job_view(replace(JOB, state=state), 0)
    assert view.can_cancel == (state in ("queued", "running"))
    assert view.can_resume == (state in ("interrupted", "failed", "cancelled"))


def test_names_are_drawn_as_text() -> None:
    shown = "&lt;b&gt;x&lt;/b&gt; &amp; *y*"
    assert shown in line_html("xg-title", MARKUP)
    assert shown in error_html(MARKUP)
    assert facts_html({MARKUP: MARKUP, "unknown": None, "empty": ""}).count(shown) == 2
    assert failures_html([UnitFailure("k", MARKUP, MARKUP)]).count(shown) == 2
    assert checks_html([("broken", MARKUP, MARKUP, MARKUP)]).count(shown) == 3


def test_of_very_many_failures_the_first_are_shown_and_the_others_counted() -> None:
    html = failures_html([UnitFailure(str(n), f"part {n}", "bad") for n in range(FAILURES_SHOWN + 1234)])
    assert html.count("<dt>") == FAILURES_SHOWN
    assert "and 1,234 more" in html


def of(examples: list[dict[str, Any]]) -> Job:
    return replace(JOB, spec={**JOB.spec, "examples": examples})


EXAMPLE = {"model": ["m"], "method": ["random", "lime"]}


def test_the_link_of_a_job_names_its_model_methods_and_first_text() -> None:
    assert result_link(JOB) == (TEXT, {**EXAMPLE, "text": ["good"]})
    pair = of([{"text": "good", "text_pair": "bad"}])
    assert result_link(pair) == (TEXT, {**EXAMPLE, "text": ["good"], "pair": ["bad"]})
    assert result_link(replace(JOB, kind="sample", spec={})) == ""
    prompt = of([Prompt("good", target=" a", contrast=" b", chat=True).as_plain()])
    tokens = {"target_token": [" a"], "contrast": [" b"], "chat": ["on"]}
    assert result_link(prompt) == (TEXT, {**EXAMPLE, "text": ["good"], **tokens})


def test_the_link_of_a_job_names_its_parameters_target_and_seed() -> None:
    spec = {**JOB.spec, "params": {"lime": {"n_samples": 50}}, "target": "positive", "seed": 3}
    link = {**EXAMPLE, "lime.n_samples": ["50"], "target": ["positive"], "seed": ["3"], "text": ["good"]}
    assert result_link(replace(JOB, spec=spec)) == (TEXT, link)


def test_the_link_of_a_job_on_pictures_names_the_place_of_the_first_one() -> None:
    link = {**EXAMPLE, "data": ["scenes:seed=2"], "index": ["3"]}
    place = {"dataset": "scenes:seed=2", "index": 3}
    assert result_link(of([place])) == (IMAGES, link)
    assert result_link(of([{**place, "split": "test"}])) == (IMAGES, {**link, "split": ["test"]})


ATTACK = {"models": ["reviews-minilm"], "dataset": "reviews", "methods": ["gradient_l2"]}


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("explain", {**JOB.spec, "examples": [{"text": "x" * (LONGEST_IN_LINK + 1)}]}, "too long for a link"),
        ("predict", {"model": "reviews-minilm", "data": "reviews", "dtype": "bfloat16"}, "pages compute in float32"),
        ("evaluate", {**ATTACK, "k": 3}, "k: is 3, and the page always uses 5."),
        ("attack", {**ATTACK, "attack": {"steps": 7}}, "does not offer these settings"),
        ("compare", {"dataset": "reviews", "pairs": ["random@a", "lime@b"], "examples": 7}, "examples: is 7, and the"),
        ("scaffold", {"teacher": "nonsense", "dataset": "reviews"}, "nonsense"),
        ("reproduce", {"scale": "full"}, "does not cover this run: exegesis reproduce thesis --scale full"),
    ],
)
def test_a_result_that_no_page_shows_is_said_with_its_place(kind: str, spec: dict[str, Any], reason: str) -> None:
    said = result_link(replace(JOB, kind=kind, spec=spec))
    assert isinstance(said, str)
    assert said.startswith("No page shows this result. ")
    assert reason in said
    assert said.endswith(IN_CACHE)


def test_every_kind_of_job_has_a_link() -> None:
    assert known_ids() - {"sample", "toy"} == set(LINKS)


def test_the_form_names_pictures_by_their_place() -> None:
    spec = explain_spec("digits-vit", "digits", 2, ["grad_cam"])
    assert spec["examples"] == [{"dataset": "digits", "index": 0}, {"dataset": "digits", "index": 1}]
    assert len(explain_spec("digits-vit", "photos", 1000, ["random"])["examples"]) == 12


def test_the_form_asks_for_the_first_examples_of_a_data_set() -> None:
    spec = explain_spec("reviews-minilm", "reviews", 2, ["random"])
    assert (spec["model"], spec["methods"]) == ("reviews-minilm", ["random"])
    assert [sorted(example) for example in spec["examples"]] == [["text"], ["text"]]


@pytest.mark.parametrize(
    ("model", "data", "methods", "said"),
    [
        ("reviews-minilm", "reviews", [], "methods: pick at least one"),
        ("reviews-minil", "reviews", ["random"], "Did you mean 'reviews-minilm'?"),
        ("", "reviews", ["random"], "model: unknown name ''"),
        ("reviews-minilm", "rewiews", ["random"], "Did you mean 'reviews'?"),
        ("reviews-minilm", "", ["random"], "dataset: unknown name ''"),
        ("digits-vit", "reviews", ["random"], "dataset: unknown name 'reviews'. Known: cifar10, digits"),
    ],
)
def test_the_form_says_what_is_wrong_with_it(model: str, data: str, methods: list[str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        explain_spec(model, data, 1, methods)
    assert said in str(error.value)


def test_a_model_is_told_by_the_splits_that_no_choice_was_made_on() -> None:
    scores = {split: {"value": value, "count": 872} for split, value in (("held-out", 0.9), ("dev", 0.8853))}
    card: dict[str, Any] = {"metric": "accuracy", "scores": scores, "bytes": 1_634_692, "base": {"name": "minilm"}}
    card["kind"] = "LoRA adapter"
    assert measured_scores(card) == {"accuracy, dev": "0.885 on 872 examples"}
    assert measured_scores({"scores": {"held-out": {"value": 0.5, "count": 2}}}) == {
        "score, held-out": "0.500 on 2 examples"
    }
    assert measured_scores({}) == {}
    marked = catalog.card("scenes-marked-vit")
    assert measured_scores(marked)["accuracy, test"] == "1.000 on 2,000 examples"
    assert float(measured_scores(marked)["accuracy, unmarked"].split()[0]) < 0.15
    facts = card_facts(card, "abc")
    assert (facts["on disk"], facts["revision"]) == ("1.6 MB, on top of minilm", "abc")
    assert card_facts({}, "abc")["on disk"] == ""
    assert card_facts(card | {"kind": "Vision transformer"}, "abc")["on disk"] == "1.6 MB"


def test_the_row_of_a_model_names_its_task_and_its_test_score() -> None:
    row = model_row("quality-minilm", is_base=False)
    assert (row["Task"], row["Input"], row["Accuracy"]) == ("Translation quality (pairs)", "Text", None)
    assert (row["Other score"], row["Measured on"]) == ("r = 0.755", "test, 2,000 examples")
    assert (row["On disk"], row["Trained on"]) == (1.633922, "Translation quality")
    pickers = summarize_model("quality-minilm")
    assert (pickers.score, pickers.parameters) == ("r = 0.755", 22_713_601)
    assert (row["Other score"], row["Parameters"]) == (pickers.score, 22_713_601)
    assert model_row("digits-vit", is_base=False)["Input"] == "Picture"
    base = model_row("bases/gpt2", is_base=True)
    assert (base["Task"], base["Measured on"][:8]) == ("Base for fine-tuning", "held-out")
    assert model_row("nonsense", is_base=False) == {"Model": "nonsense"}


def test_a_model_of_pictures_is_told_by_its_grid_and_its_parameters() -> None:
    # The embedding has 128 x 3 x 8 x 8 weights, each of four blocks 198,272, the head 10 x 128 + 10, and so on.
    assert view_facts("scenes-vit") == {
        "picture": "64 x 64 pixels", "patches": "8 rows x 8 columns of 8 x 8 pixels", "parameters": "827,786",
    }  # fmt: skip


def test_what_was_checked_is_told_for_texts_and_for_pictures() -> None:
    found = dict.fromkeys(("name", "family", "task", "folder", "base", "revision"), "x")
    shared = {**found, "labels": ["a", "b"], "parameters": 12345, "blocks": 3}
    texts = inspection_facts({**shared, "longest_input": 512})
    assert (texts["parameters"], texts["longest input"]) == ("12,345", "512 tokens")
    pictures = inspection_facts({**shared, "picture": "8 x 8 pixels", "patches": "2 rows x 2 columns of 4 x 4 pixels"})
    assert (pictures["picture"], pictures["labels"]) == ("8 x 8 pixels", "a, b")
    assert "longest input" not in pictures


def test_a_card_loses_only_its_first_heading() -> None:
    assert without_title("# name\n\nText.\n\n## More\n") == "Text.\n\n## More"
    assert without_title("No heading\n\nText.") == "No heading\n\nText."


def test_a_data_card_loses_nothing_but_its_title() -> None:
    first, rest = split_facts(dataset_card("reviews"))
    assert list(first) == ["size", "license", "intended use", "limits"]
    assert list(rest) == ["source", "creation", "command"]
    assert not [value for value in {**first, **rest}.values() if not value or "`" in str(value)]


def test_the_cache_tells_its_size_against_its_bound_and_its_state() -> None:
    stats = Stats("/home/cache", 1234, 5_600_000, 4_000_000_000, 6_000_000, 1, 2, "")
    assert describe_size(stats) == "1,234 results, 5.6 MB of at most 4.0 GB"
    assert cache_facts(stats)["state"] == "works"
    assert cache_facts(stats)["lookups since start"] == "hits: 1, misses: 2"
    assert cache_facts(replace(stats, status="It is full."))["state"] == "see below"
    assert describe_check(CheckReport(10, 0, False, "")) == "10 entries read, no damage found."
    assert describe_check(CheckReport(1, 1, False, "")) == "1 entry read, 1 damaged entry removed."
    assert describe_check(CheckReport(1000, 2, True, "It was replaced.")) == (
        "1,000 entries read, 2 damaged entries removed. It was replaced."
    )


@pytest.mark.parametrize(
    ("seconds", "said"), [(59.4, "59 s"), (60.0, "1 min 0 s"), (185.0, "3 min 5 s"), (7800.0, "2 h 10 min")]
)
def test_a_span_of_time(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 bytes"), (1000, "1.0 kB"), (1_634_692, "1.6 MB"), (4e9, "4.0 GB")])
def test_bytes(count: float, said: str) -> None:
    assert size_text(int(count)) == said


def test_an_error_of_ours_is_said_as_it_is_and_another_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert describe_error(ExegesisError("Do this.")) == "Do this."
    missing = ExegesisError("Not stored. Fetch it: exegesis models get smollm2-135m.")
    assert describe_error(missing) == (
        "Not stored. Fetch it on the Library page, or: exegesis models get smollm2-135m."
    )
    assert not caplog.records
    assert "KeyError" in describe_error(KeyError("x"))
    assert caplog.records
