"""What people give that cannot be evaluated: it is said which and why, and the rest goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from engine.data.datasets import load
from engine.data.registry import parse_names
from engine.errors import ExegesisError, UsageError
from engine.evaluation import experiment
from engine.evaluation.experiment import evaluate
from engine.evaluation.measurement import explain_examples
from engine.evaluation.result import Evaluation, group_reasons
from engine.evaluation.scores import leaderboard
from engine.experiments.run import FORMATS
from engine.experiments.sample import GROUP_SIZE, UnreadableExample
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

TEXT = "a warm and funny film"


def model() -> str:
    return str(checkpoint("bert", 2))


def evaluated(data: str, metrics: tuple[str, ...] = ("gt_overlap",)) -> Evaluation:
    return evaluate([model()], data, ["gradient_l2"], metrics, unit="word")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"rationale": [[0, 99]]}, "rationale: [0, 99] lies outside its text of 21 characters."),
        ({"rationale": [[-1, 3]]}, "rationale: [-1, 3] lies outside its text of 21 characters."),
        ({"rationale": [[0, 6], [2, 10]]}, "rationale: [0, 6] and [2, 10] overlap. Join them or move one."),
        ({"rationale": [[5, 2]]}, "rationale: a span must end after it starts, got [5, 2]."),
        ({"rationale": "warm"}, "rationale: is not valid JSON"),
        ({"rationale_pair": [[0, 1]]}, "rationale_pair: marks a text_pair, but there is none."),
        ({"text": "  "}, "text: is empty. Fill it in or remove the row."),
        ({"text": 5}, "text: must be a text, got 5."),
        ({"label": [1]}, "label: must be a number or a name, got [1]."),
    ],
)
def test_a_bad_row_is_skipped_with_its_line_and_the_others_are_as_without_it(
    tmp_path: Path, row: dict[str, object], why: str
) -> None:
    bad = {"text": TEXT, "label": 1, **row}
    found = evaluated(written(tmp_path / "with.jsonl", [*REVIEWS[:2], bad, *REVIEWS[2:]]))
    skips = [skip for skip in found.skips if skip.example == 2]
    assert {skip.of.method for skip in skips} == {"gradient_l2", "random"}
    assert all(skip.reason.startswith(f"with.jsonl, line 3: {why}") for skip in skips)
    whole = evaluated(written(tmp_path / "without.jsonl", list(REVIEWS)))
    moved = [(row.of.method, row.example + (row.example >= 2), row.value) for row in whole.rows]
    assert sorted((row.of.method, row.example, row.value) for row in found.rows) == sorted(moved)


def test_where_no_row_is_an_example_the_first_says_why(tmp_path: Path) -> None:
    bad = {"text": TEXT, "label": 1, "rationale": [[0, 99]]}
    with pytest.raises(ExegesisError, match=r"none.jsonl, line 1: rationale: \[0, 99\] lies outside"):
        evaluated(written(tmp_path / "none.jsonl", [bad, bad]))


def test_elsewhere_a_bad_row_is_still_refused(tmp_path: Path) -> None:
    data = written(tmp_path / "some.jsonl", [*REVIEWS, {"text": TEXT, "label": 1, "rationale": [[0, 99]]}])
    with pytest.raises(ExegesisError, match="line 7: rationale"):
        load(data)
    assert list(load(data, tolerant=True).faults) == [6]


def test_scores_that_are_no_numbers_skip_their_examples(tmp_path: Path) -> None:
    folder = shutil.copytree(model(), tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    data = written(tmp_path / "reviews.jsonl", list(REVIEWS))
    found = evaluate([str(folder), model()], data, ["gradient_l2"], ["complexity"])
    reasons = {skip.reason for skip in found.skips if skip.of.model == str(folder)}
    assert len(reasons) == 1
    assert "not finite numbers in float32. Use a wider precision" in reasons.pop()
    assert {row.of.model for row in found.rows} == {model()}


def test_many_short_examples_that_fail_alike_take_no_other_with_them(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model(), tmp_path / "one-word-damaged"))
    weights = load_file(folder / "model.safetensors")
    lovely = AutoTokenizer.from_pretrained(folder)("lovely", add_special_tokens=False)["input_ids"][0]
    next(own for name, own in weights.items() if name.endswith("word_embeddings.weight"))[lovely] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    rows = [{"text": "lovely", "label": 1}] * (GROUP_SIZE + 1) + [{"text": TEXT, "label": 1}] * 2
    found = evaluate([str(folder)], written(tmp_path / "short.jsonl", rows), ["gradient_l2"], ["complexity"])
    assert {row.example for row in found.rows} == {GROUP_SIZE + 1, GROUP_SIZE + 2}
    assert {skip.example for skip in found.skips} == set(range(GROUP_SIZE + 1))


def test_a_model_that_does_not_load_is_not_tried_again_for_every_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(model(), tmp_path / "no-weights"))
    (folder / "model.safetensors").write_bytes(b"nothing")
    tried = []
    monkeypatch.setattr(
        experiment,
        "explain_examples",
        lambda plan, model, given: tried.append(given) or explain_examples(plan, model, given),
    )
    rows = [{"text": TEXT, "label": 1}] * (GROUP_SIZE + 2)
    found = evaluate([str(folder)], written(tmp_path / "reviews.jsonl", rows), ["gradient_l2"], ["complexity"])
    assert found.rows == ()
    assert len({skip.reason for skip in found.skips}) == 1
    assert [isinstance(one, UnreadableExample) for one in tried[1]] == [True, True]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{bad", "is not valid JSON"),
        ('{"text": "so so", "rationale": [[0, NaN]]}', "is not valid JSON ('NaN is not a JSON number')"),
        ("[1]", "must be an object"),
    ],
)
def test_a_line_that_is_no_json_is_skipped_like_any_bad_row(tmp_path: Path, line: str, why: str) -> None:
    data = Path(written(tmp_path / "lines.jsonl", REVIEWS[:2]))
    data.write_text(f"{data.read_text()}{line}\n", encoding="utf-8")
    found = evaluated(str(data), ("complexity",))
    assert {row.example for row in found.rows} == {0, 1}
    assert all(skip.reason.startswith(f"lines.jsonl, line 3: {why}") for skip in found.skips if skip.example == 2)
    assert [skip.example for skip in found.skips if skip.of.method == "gradient_l2"] == [2]
    with pytest.raises(ExegesisError, match="line 3"):
        load(str(data))


def test_a_row_of_a_table_with_a_cell_too_many_is_skipped_too(tmp_path: Path) -> None:
    data = tmp_path / "cells.csv"
    data.write_text(f"text,label\n{TEXT},1\none,two,3\nlovely view,0\n", encoding="utf-8")
    assert load(data, tolerant=True).faults == {
        1: "cells.csv, line 3: has 3 columns, the header has 2 (text, label). Quote cells that hold the delimiter."
    }


def test_a_file_without_one_good_line_says_why_of_the_first(tmp_path: Path) -> None:
    data = tmp_path / "none.jsonl"
    data.write_text("{bad\nworse}\n", encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"none\.jsonl, line 1: is not valid JSON"):
        load(data, tolerant=True)


def test_labels_that_the_model_lacks_are_said(tmp_path: Path) -> None:
    rows = [{"text": TEXT, "label": name} for name in ("joy", "anger", "fear")]
    found = evaluated(written(tmp_path / "moods.jsonl", rows), ("complexity",))
    assert "The data set's classes (anger, fear, joy) do not match the model's" in found.class_notes[0]
    assert all(fact.right is None for fact in found.facts)
    assert len(found.rows) == 6


def test_one_class_is_said_and_evaluated(tmp_path: Path) -> None:
    rows = [{"text": text, "label": "warm"} for text in ("a warm film", "lovely view")]
    found = evaluated(written(tmp_path / "one.jsonl", rows), ("complexity",))
    assert found.class_notes[-1] == "All examples have the label warm, so nothing can be compared between labels."
    assert list(found.by(lambda fact: str(fact.label))) == ["warm"]


def test_a_slice_without_examples_has_no_scores_and_an_empty_table(tmp_path: Path) -> None:
    none = evaluated(written(tmp_path / "reviews.jsonl", list(REVIEWS))).slice(lambda fact: False)
    assert (none.rows, none.skips, none.scores, leaderboard(none)) == ((), (), [], [])
    assert FORMATS["csv"](none).decode().startswith("model,dataset,example,method")


def test_the_same_text_twice_and_the_same_id_twice_are_examples_of_their_own(tmp_path: Path) -> None:
    twice = [{**row, "id": "one"} for row in (REVIEWS[0], REVIEWS[0], REVIEWS[2])]
    found = evaluated(written(tmp_path / "twice.jsonl", twice))
    values = {row.example: row.value for row in found.rows if row.of.method == "gradient_l2"}
    assert set(values) == {0, 1, 2}
    assert values[0] == values[1]


@pytest.mark.parametrize(("data", "models", "what"), [("scenes", [], "pictures"), ("reviews", ["scenes-vit"], "texts")])
def test_a_data_set_of_the_other_kind_is_known_but_refused(data: str, models: list[str], what: str) -> None:
    with pytest.raises(UsageError, match=f"dataset: {data} holds {what}, but the models read"):
        evaluate(models or [model()], data, ["random"])


def test_an_unknown_column_names_those_there_are(tmp_path: Path) -> None:
    data = written(tmp_path / "other.jsonl", [{"sentence": TEXT, "label": 1}])
    with pytest.raises(UsageError, match="has no column 'text' for text"):
        evaluated(data)


def test_reasons_that_differ_in_numbers_alone_are_counted_together() -> None:
    told = {"line 2: [0, 99] lies outside 11": 1, "line 1,300: [4, 7] lies outside 3": 2, "nothing is marked": 4}
    assert group_reasons(told) == {"such as: line 2: [0, 99] lies outside 11": 3, "nothing is marked": 4}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("sst2, reviews", ["sst2", "reviews"]),
        ("reviews-marked:seed=1,strength=0.5,reviews", ["reviews-marked:seed=1,strength=0.5", "reviews"]),
        ("quality:seed=1,quality:seed=2,count=9", ["quality:seed=1", "quality:seed=2,count=9"]),
        ("hub:a/b,,c", ["hub:a/b", "c"]),
        ("", []),
    ],
)
def test_commas_inside_the_options_of_a_name_part_no_names(text: str, names: list[str]) -> None:
    assert parse_names(text) == names
