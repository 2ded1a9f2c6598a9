"""The corpus view as an experiment: scores beside single predictions and maps, slices, cache, job, files, command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from engine import jobs
from engine.corpus import experiment, scores
from engine.corpus.experiment import ALL, CORRECT, WRONG, corpus, rows, slices_of
from engine.corpus.plan import CorpusPlan
from engine.corpus.scores import REMOVAL, score_examples
from engine.data.sources import load_source
from engine.errors import ExegesisError
from engine.experiments.run import carry_out, finished, sample_of
from engine.explain import explain
from engine.predictions import predictions
from engine.request import Example, Request
from engine.significance.false_discovery import adjusted_p_values, shortage
from engine.substitution import Edit, edited, word_scores, words_of
from tests.unit.cli.conftest import Run, run

__all__ = ["run"]
MODEL = "bert-reviews"
TEXTS = [
    ("A wonderful film.", "positive"),
    ("The film was wonderful, truly.", "positive"),
    ("Such a dull film.", "negative"),
    ("I found the film dull.", "negative"),
    ("A wonderful, wonderful story.", "positive"),
    ("The story is dull.", "negative"),
]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> str:
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in TEXTS), "utf-8")
    return str(file)


def test_scores_are_those_of_single_predictions_and_of_maps(data: str) -> None:
    plan = CorpusPlan((MODEL,), data, ("gradient_x_input",))
    source = load_source("text", data)
    [found] = score_examples(plan, [source.read(1)])
    example = Example(TEXTS[1][0])
    words = words_of(example)
    assert found.words == ("the", "film", "was", "wonderful", "truly")
    (whole,) = predictions(MODEL, [example])
    for place, word in enumerate(words):
        (without,) = predictions(MODEL, [edited(example, [Edit(word)])])
        fall = whole.probabilities[whole.index] - without.probabilities[whole.index]
        assert found.scores[0, place] == pytest.approx(fall, abs=1e-5)
    explanation = explain(Request(MODEL, "gradient_x_input", example))
    np.testing.assert_allclose(found.scores[1], word_scores(explanation, words))
    assert sorted(found.scores[2]) == sorted(set(found.scores[2])), "a random order has no ties, as it has no sums"
    inside = [not token.special and token.text not in (",", ".") for token in explanation.tokens]
    assert found.scores[1].sum() == pytest.approx(explanation.scores[inside].sum()), "punctuation belongs to no word"


def test_the_result_has_every_slice_and_its_statistics(data: str) -> None:
    result = corpus([MODEL], data, ["gradient_x_input"], least=2)
    [one] = result.models
    assert one.methods == (REMOVAL, "gradient_x_input", "random")
    assert one.complete
    assert set(one.words) >= {"film", "dull", "wonderful", "the", "a"}
    assert one.slices[0] == ALL
    assert set(one.slices) >= {"labeled positive", "labeled negative"}
    assert {CORRECT, WRONG} & set(one.slices)
    place = one.words.index("dull")
    assert one.counts[0, place] == 3
    assert one.occurrences[0, one.words.index("wonderful")] == 4
    own = [row for row in rows(one) if row["slice"] == ALL and row["method"] == REMOVAL]
    assert [row["word"] for row in own] == list(one.words)
    adjusted = adjusted_p_values(np.array([row["p_value"] for row in own]))
    np.testing.assert_allclose([row["adjusted_p_value"] for row in own], adjusted)
    assert all(row["low"] <= row["value"] <= row["high"] for row in own)


def test_slices_are_those_of_a_slow_count(data: str) -> None:
    source = load_source("text", data)
    examples = [source.read(at) for at in range(len(TEXTS))]
    scored = score_examples(CorpusPlan((MODEL,), data, ("random",)), examples)
    slices = slices_of(source, examples, scored)
    named = [one.labels[one.predicted] for one in scored]
    for label in ("positive", "negative"):
        expected = [name == label for name in named]
        if any(expected):
            assert slices[f"predicted {label}"].tolist() == expected
        assert slices[f"labeled {label}"].tolist() == [true == label for _, true in TEXTS]
    right = [name == true for name, (_, true) in zip(named, TEXTS, strict=True)]
    assert slices[CORRECT].tolist() == right
    assert (WRONG in slices) == (not all(right))


def test_a_second_run_and_another_threshold_run_no_model(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = CorpusPlan((MODEL,), data, ("gradient_x_input",), least=2)
    carry_out(plan)
    monkeypatch.setattr(scores, "_compute", lambda plan, examples: pytest.fail("all is cached") if examples else ())
    assert finished(plan) is not None
    higher = carry_out(CorpusPlan((MODEL,), data, ("gradient_x_input",), least=4)).models[0]
    assert higher.words == ("film",)


def test_a_job_leaves_what_the_page_opens(data: str) -> None:
    plan = CorpusPlan((MODEL,), data, ("random",), least=2)
    job = jobs.run_now(jobs.create("corpus", json.loads(json.dumps(plan.as_plain()))))
    assert job.state == "done"
    assert job.total == len(TEXTS) + 1
    assert finished(plan) is not None


def test_an_example_that_cannot_be_scored_is_counted_with_its_reason(data: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text(Path(data).read_text("utf-8") + '{"label": "positive"}\n', "utf-8")
    [one] = corpus([MODEL], str(broken), ["random"], least=2).models
    assert list(one.failed) == [len(TEXTS)]
    assert not one.complete
    assert len(one.examples) == len(TEXTS)


def test_words_that_the_model_does_not_read_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    texts = ["dull film " * 2, "dull " + "so " * 520 + "film"]
    file.write_text("".join(json.dumps({"text": text, "label": "negative"}) + "\n" for text in texts), "utf-8")
    [one] = corpus([MODEL], str(file), ["random"], least=2).models
    assert one.cut == 1
    assert one.words == ("dull",), "film is read in one example alone"


def test_too_few_permutations_are_told() -> None:
    assert shortage(400, 9_999, 0.05, drawn="permutations") == ""
    assert shortage(600, 9_999, 0.05, drawn="permutations") == (
        "With 9,999 permutations a p-value is at least 0.0001, so at a rate of 5% none is unless at least 2 words are "
        "significant."
    )


def test_nothing_but_failures_is_no_error(run: Run, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ExegesisError("out of memory: even one row does not fit.")

    monkeypatch.setattr(experiment, "score_examples", fail)
    [one] = corpus([MODEL], data, ["random"], least=2).models
    assert (one.examples, one.words, list(rows(one))) == ((), (), [])
    assert set(one.failed.values()) == {"out of memory: even one row does not fit."}
    done = run("corpus", "--models", MODEL, "--dataset", data, "--methods", "random")
    assert done.code == 1
    assert "6 examples left out: out of memory" in done.out
    assert "corpus: no example could be explained" in done.err


def test_pictures_are_tested_by_place() -> None:
    plan = CorpusPlan(("digits-vit",), "digits", ("gradient_x_input",), examples=3, least=2)
    [one] = carry_out(plan).models
    assert one.words[:2] == ("row 1, column 1", "row 1, column 2")
    assert (one.counts[0] == 3).all()
    sample = sample_of(plan)
    first = explain(Request("digits-vit", "occlusion", sample.source.read(sample.indices[0]).input))
    [scored] = score_examples(plan, [sample.source.read(sample.indices[0])])
    np.testing.assert_allclose(scored.scores[0], first.on_grid.ravel(), atol=1e-6)


def test_the_command_prints_the_words_and_writes_the_rows(run: Run, data: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    given = ("corpus", "--models", MODEL, "--dataset", data, "--methods", "random", "--least", "2", "--out", str(out))
    printed = run(*given)
    assert printed.code == 0
    assert "removal: " in printed.out
    assert "words significant" in printed.out
    plain = json.loads(run(*given, "--json").out)
    assert pandas.read_parquet(out).to_dict("records") == plain["models"][0]["rows"]
    none = run("corpus", "--models", MODEL, "--dataset", data, "--methods", "random", "--least", "50")
    assert "No word is in at least 50 examples." in none.out


def test_slices_of_prompts_are_their_answer_and_their_other() -> None:
    """Each prompt has tokens of its own as classes, and its answer is explained whichever is predicted."""
    source = load_source("text", "facts")
    examples = [source.read(at) for at in (0, 2, 3, 4)]
    scored = score_examples(CorpusPlan(("tiny-llama",), "facts", ("random",)), examples)
    whole = predictions("tiny-llama", [one.input for one in examples])
    assert [one.target for one in scored] == [0, 0, 0, 0]
    assert [one.predicted for one in scored] == [one.index for one in whole] == [0, 1, 0, 1]
    slices = {name: own.tolist() for name, own in slices_of(source, examples, scored).items()}
    right, wrong = [True, False, True, False], [False, True, False, True]
    assert slices == {
        ALL: [True] * 4, "predicted answer": right, "predicted other": wrong, "labeled answer": [True] * 4,
        CORRECT: right, WRONG: wrong,
    }  # fmt: skip


def test_next_tokens_that_differ_by_text_are_no_slices(data: str) -> None:
    source = load_source("text", data)
    examples = [source.read(at) for at in range(2)]
    scored = score_examples(CorpusPlan(("tiny-llama",), data, ("random",)), examples)
    assert list(slices_of(source, examples, scored)) == [ALL]
