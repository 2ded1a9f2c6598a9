"""What the Attention page keeps: numbers that come back exactly, names that no sheet runs, commands that repeat."""

from __future__ import annotations

import csv
import io
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load
from typer.testing import CliRunner

from components.attention.export import (
    HeadsExport,
    attention_file,
    explain_command,
    heads_command,
    html,
    matrix_csv,
    references,
    scores_csv,
    scores_json,
)
from components.attention.readings import ablation_score_map, agreement_score_map
from components.attention.state import AttentionState
from components.export import stdin_file
from components.inputs.datasets import open_pictures, read_picture
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.widgets.attention_board import BoardOptions, HeadScoreMap
from engine.cli.root import app
from engine.explain import explain
from engine.heads.readings import read_heads, switch_off_each
from engine.registry import explainer
from engine.request import Example, HeadScales
from engine.table_io import FORMULA_STARTS
from tests.head_readings import reading, text_tokens
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

MAPS = [[[0.1, 0.2, 0.3, 0.15, 0.05], [0.3, 0.1, 0.2, 0.05, 0.15]], [[0.1] * 5, [0.05, 0.1, 0.2, 0.25, 0.3]]]
TEXT = "good food bad service here"
SWITCHED = HeadScales(((0, 1, 0.0), (1, 0, 0.5)))


def score(values: list[list[float]], id: str = "importance") -> HeadScoreMap:
    return HeadScoreMap(
        id, "Importance", "logit", False, np.array(values, dtype=float), "How much.", "Somebody (2020), section 1"
    )


def state(board: BoardOptions | None = None, **more: object) -> AttentionState:
    focus = TextFocus("model-a", TEXT)
    return AttentionState(kind="text", focus=focus, board=board or BoardOptions(), **more)  # type: ignore[arg-type]


def kept(causal: bool = False, **more: object) -> HeadsExport:
    """2 x 2 heads over [CLS] good food bad service here [SEP], which attend to `MAPS` alike from every query."""
    tokens = text_tokens(["[CLS]", *TEXT.split(), "[SEP]"])
    attention = np.full((2, 2, len(tokens), len(tokens)), 0.1, dtype=np.float16)
    attention[..., 1:-1] = np.array(MAPS)[:, :, None]
    flat = np.full((2, 2), 0.5)
    scores = {"distance": flat, "entropy": flat, "special": flat * np.nan, "importance": np.array([[1.0, 0], [1, 2]])}
    made = replace(reading(attention, tokens, causal=causal), scores=scores)
    return HeadsExport(state(**more), made, score([[1, 0], [1, 2]]))  # type: ignore[arg-type]


def table_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_the_table_has_a_row_a_head_with_the_shown_score_first() -> None:
    header, *rows = table_of(scores_csv(kept(switched=SWITCHED)))
    assert header == ["layer", "head", "scale", "importance", "distance", "entropy", "special"]
    assert rows == [
        ["0", "0", "1.0", "1.0", "0.5", "0.5", ""],
        ["0", "1", "0.0", "0.0", "0.5", "0.5", ""],
        ["1", "0", "0.5", "1.0", "0.5", "0.5", ""],
        ["1", "1", "1.0", "2.0", "0.5", "0.5", ""],
    ]
    other = replace(kept(), scores=score([[1, 0], [1, 2]], "entropy"))
    assert table_of(scores_csv(other))[0][3:] == ["entropy", "importance", "distance", "special"]
    without = replace(kept(), scores=None)
    assert table_of(scores_csv(without))[0][3:] == ["importance", "distance", "entropy", "special"]


def test_the_matrix_is_that_of_the_shown_head_with_its_positions() -> None:
    header, *rows = table_of(matrix_csv(kept()))
    names = ["0 [CLS]", "1 good", "2 food", "3 bad", "4 service", "5 here", "6 [SEP]"]
    assert header == ["query", *names]
    assert [row[0] for row in rows] == names
    given = [float(np.float16(value)) for value in [0.1, 0.05, 0.1, 0.2, 0.25, 0.3, 0.1]]
    assert [float(value) for value in rows[3][1:]] == given, "head 1.1 has the largest score"
    locked = table_of(matrix_csv(kept(board=BoardOptions(head=(0, 0)))))
    assert float(locked[1][2]) == float(np.float16(0.1))
    assert not any(cell.startswith(FORMULA_STARTS) for row in (header, *rows) for cell in row)


def test_the_matrix_shows_what_the_page_shows() -> None:
    masked = table_of(matrix_csv(kept(causal=True)))
    assert [bool(cell) for cell in masked[3][1:]] == [True, True, True, False, False, False, False]
    bare = table_of(matrix_csv(kept(board=BoardOptions(special=False))))
    assert bare[0] == ["query", "1 good", "2 food", "3 bad", "4 service", "5 here"]
    assert len(bare) == 6
    # There is no second text: the page says so, and shows all.
    assert len(table_of(matrix_csv(kept(board=BoardOptions(between="a_to_b"))))) == 8


def test_all_attention_is_kept_as_it_is(tmp_path: Path) -> None:
    one = kept(causal=True)
    body = attention_file(one)
    np.testing.assert_array_equal(load(body)["attention"], one.reading.attention)
    (tmp_path / "kept.safetensors").write_bytes(body)
    with safe_open(tmp_path / "kept.safetensors", "numpy") as file:
        told = file.metadata()
    assert json.loads(told["tokens"]) == ["[CLS]", "good", "food", "bad", "service", "here", "[SEP]"]
    assert (told["axes"], told["model"], told["target"]) == ("layer head query key", "model-a", "positive")
    assert "NaN where a query may not attend" in told["about"]
    assert (json.loads(told["grid"]), json.loads(told["heads"])) == (None, [])


def test_the_files_of_a_prompt_name_its_contrast() -> None:
    one, focus = kept(), TextFocus("tiny-llama", TEXT, target=" is", contrast=" are")
    one = replace(one, state=replace(one.state, focus=focus))
    head = json.loads((body := attention_file(one))[8 : 8 + int.from_bytes(body[:8], "little")])
    assert (head["__metadata__"]["target"], head["__metadata__"]["contrast"]) == ("positive", " are")
    assert "Explained: positive rather than ·are." in html(one)
    assert "positive rather than ·are, float" in html(one), "the citation"
    assert "contrast" not in attention_file(kept()).decode("latin-1")


def test_what_is_shown_is_cited() -> None:
    assert list(references(kept())) == ["Importance: Somebody (2020), section 1."]
    agreeing = replace(kept(board=BoardOptions(against="kernel_shap")), scores=score([[1, 0], [1, 2]], "agreement"))
    method = explainer("kernel_shap")
    assert (
        list(references(agreeing))[1] == f"{method.title} (kernel_shap, version {method.version}): {method.citation}."
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def page(focus: TextFocus | PictureFocus, kind: str, board: BoardOptions, **more: object) -> AttentionState:
    return AttentionState(kind=kind, focus=focus, board=board, **more)  # type: ignore[arg-type]


def compared(shown: AttentionState) -> HeadsExport:
    """Colored by the agreement with an attribution."""
    found = read_heads(shown.request("random"))
    return HeadsExport(
        shown, found, agreement_score_map(found, explain(shown.request(shown.board.against)), shown.board)
    )


def switched(shown: AttentionState) -> HeadsExport:
    """Colored by the change when each head is switched off."""
    found, off = read_heads(shown.request("random")), switch_off_each(shown.request("random"))
    return HeadsExport(shown, found, ablation_score_map(off, regression=False))


def answered(command: str, read: bytes = b"") -> object:
    line, _, file = command.partition(" < ")
    assert bool(file) == bool(read)
    done = CliRunner().invoke(app, shlex.split(line)[1:], input=read)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def same_but_for_the_cache(printed: object, kept: HeadsExport) -> bool:
    assert isinstance(printed, dict)
    return {**printed, "cached": None} == {**json.loads(scores_json(kept)), "cached": None}


def test_the_commands_make_the_same_numbers_of_a_pair_under_switched_heads(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = BoardOptions(score="agreement", view="query", query=2, against="integrated_gradients")
    focus = TextFocus(model, "a 'quoted' film", "=and another")
    one = compared(page(focus, "text", board, switched=SWITCHED, target="LABEL_0", seed=4, method="gradient_x_input"))
    assert scores_json(one).count('"agreement":') == 1 + 12
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "elsewhere"))
    assert same_but_for_the_cache(answered(heads_command(one)), one)
    [made] = answered(explain_command(one))  # type: ignore[misc]
    assert (made["heads"], made["seed"], made["target"]) == ([[0, 1, 0.0], [1, 0, 0.5]], 4, "LABEL_0")
    assert made["method"] == "gradient_x_input"


def test_the_commands_read_a_long_text_from_its_file(model: str) -> None:
    text = "a film " * 300
    one = switched(page(TextFocus(model, text), "text", BoardOptions(score="off")))
    assert heads_command(one).endswith("--score off,importance,distance,entropy,special --json < text.txt")
    assert same_but_for_the_cache(answered(heads_command(one), stdin_file(Example(text))), one)
    assert table_of(scores_csv(one))[0][-1] == "flipped"


def test_the_commands_name_the_place_of_a_picture(tmp_path: Path) -> None:
    opened = open_pictures("scenes:count=3")
    focus = PictureFocus(str(save_vit(tmp_path / "vit")), opened.name, index=1, chosen=read_picture(opened, 1))
    board = BoardOptions(score="agreement", view="received", detail="overlay", against="occlusion")
    one = compared(page(focus, "image", board))
    assert "--dataset scenes:count=3 --index 1" in heads_command(one)
    assert "--query" not in heads_command(one)
    assert same_but_for_the_cache(answered(heads_command(one)), one)
