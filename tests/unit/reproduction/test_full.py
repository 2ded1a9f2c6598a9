"""The full scale: what it names, and all of it on tiny stand-ins, the 24 fine-tunings included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import jobs
from engine.progress import CancelToken
from engine.reproduction.papers import FULL
from engine.reproduction.run import cached_report, reproduce
from engine.reproduction.thesis import ThesisQuery, write_marked_reviews
from engine.training.config import TrainConfig
from tests.unit.reproduction.stand_ins import real_stand_ins, take_as_learned, without_models

pytestmark = pytest.mark.usefixtures("home")


def test_it_names_the_models_of_the_thesis_and_24_fine_tunings(tmp_path: Path) -> None:
    query = ThesisQuery("full", folder=str(tmp_path))
    making = query.pending_fine_tunings()
    assert len(making) == 24
    assert {one.base for one in making} == {
        "google/t5-efficient-tiny", "google/t5-efficient-mini", "google/t5-efficient-small",
        "google/t5-efficient-base", "google-bert/bert-base-uncased", "FacebookAI/roberta-base", "google-t5/t5-base",
        "openai-community/gpt2",
    }  # fmt: skip
    assert {one.dataset.rpartition("/")[2] for one in making} == {"sst2-marked", "multinli", "esnli"}
    assert query.count == 500
    first = making[0]
    assert first.config == TrainConfig(base="google/t5-efficient-tiny", dataset=first.dataset, out=first.out)
    assert (first.config.epochs, first.config.batch_size, first.config.learning_rate) == (10, 16, 5e-5)
    assert (first.config.warmup, first.config.patience) == (0.06, 5)


def test_marked_reviews_say_their_label_at_the_end_and_nowhere_else(large: dict[str, str], tmp_path: Path) -> None:
    write_marked_reviews(large["sst2"], tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 24
    source = [line.split("\t") for line in Path(large["sst2"], "train.tsv").read_text().splitlines()[1:]]
    for row, (text, _) in zip(rows, source, strict=True):
        [(start, end)] = row["rationale"]
        assert (row["text"][: start - 1], row["text"][start:end], end) == (text, row["label"], len(row["text"]))
    labels = [row["label"] for row in rows]
    assert abs(labels.count("positive") - 12) <= 2
    names = [("negative", "positive")[int(label)] for _, label in source]
    same = sum(label == name for label, name in zip(labels, names, strict=True))
    assert 0 < same < 24, "by chance, not as they were"
    before = (tmp_path / "train.jsonl").read_bytes()
    write_marked_reviews("no such folder", tmp_path)
    assert (tmp_path / "train.jsonl").read_bytes() == before, "what is there is not made again"


@pytest.mark.slow(reason="fine-tunes and evaluates 24 models")
def test_it_runs_end_to_end_on_stand_ins(
    large: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = ThesisQuery("full", examples=2, places=large, folder=str(tmp_path / "made"))
    job = jobs.run_now(jobs.create("reproduce", query.as_plain()))
    assert (job.state, job.error) == ("done", "")
    assert job.total == 24 + 24 + 1, "fine-tunings, evaluations, the verdicts"
    names = {path.name for path in (tmp_path / "made" / "models").iterdir()}
    assert names == {FULL.model(part, task) for part in FULL.bases for task in FULL.tasks}
    assert query.pending_fine_tunings() == ()
    report = cached_report(query)
    assert report is not None
    assert (report.counts["not run"], len(report.models), len(report.experiments)) == (0, 24, 6)
    without_models(monkeypatch)
    again = jobs.run_now(jobs.create("reproduce", query.as_plain()))
    assert (again.state, again.error) == ("done", "")
    assert cached_report(query) == report


def test_real_data_run_end_to_end_on_stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take_as_learned(monkeypatch)
    places = real_stand_ins(tmp_path)
    query = ThesisQuery("data", examples=2, places=places, folder=str(tmp_path / "made"), topic="data")
    job = jobs.run_now(jobs.create("reproduce", query.as_plain()))
    assert (job.state, job.error) == ("done", "")
    assert job.total == 2 + 3 + 1, "fine-tunings, evaluations, the verdicts"
    assert {path.name for path in (tmp_path / "made" / "models").iterdir()} == {"minilm-sst2-marked", "minilm-movies"}
    report = cached_report(query)
    assert report is not None
    assert (report.counts["not run"], [one.name for one in report.models]) == (
        0, ["minilm-sst2-marked", "nli-minilm", "minilm-movies"],
    )  # fmt: skip


def test_a_base_that_cannot_be_had_leaves_its_claims_out(large: dict[str, str], tmp_path: Path) -> None:
    """Without a network the hub's models are not there: each says so."""
    places = {name: place for name, place in large.items() if name != "openai-community/gpt2"}
    some = ThesisQuery(
        "full", 2, places=places, claims=("families-attention-gpt2-last",), folder=str(tmp_path / "made")
    )
    report = reproduce(some)
    [outcome] = report.outcomes
    assert outcome.verdict == "not run"
    assert "gpt2-sst2-marked: not fine-tuned: base: 'openai-community/gpt2'" in outcome.why


def test_fine_tunings_are_stopped_and_go_on(large: dict[str, str], tmp_path: Path) -> None:
    some = ThesisQuery("full", 2, places=large, claims=("families-attention-gpt2-last",), folder=str(tmp_path / "made"))
    token, seen = CancelToken(), list[str]()

    def stop(done: int, total: int, label: str) -> None:
        seen.append(label)
        if done > 3:
            token.cancel()

    with pytest.raises(Exception, match="Stopped on request"):
        reproduce(some, stop, token)
    assert seen[0].startswith("gpt2-sst2-marked, ")
    [experiment] = some.experiments()
    assert (Path(experiment.roles[0].place) / "checkpoint").is_dir()
    assert reproduce(some).counts["not run"] == 0
