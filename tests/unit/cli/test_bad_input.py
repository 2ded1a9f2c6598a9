"""Whatever a person gives: one line that names the argument, what is allowed, what was got; no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from engine.errors import ExegesisError
from tests.unit.cli.conftest import Run

WRONG_USE, FAILURE = 2, 1


@pytest.fixture
def copied(bert: str, tmp_path: Path) -> Path:
    """A checkpoint that may be damaged."""
    return shutil.copytree(bert, tmp_path / "model")


def explain_with(run: Run, model: object, code: int, *more: str, text: str = "a warm film") -> str:
    said = run("explain", "--model", str(model), "--method", "random", "--text", text, *more).complaint(code)
    assert "unexpected" not in said
    return said


@pytest.mark.parametrize("text", ["", "   ", "\n", "\u200b", "\u200b\u200d\u2060", "\x00\x07"])
def test_nothing_to_explain(run: Run, bert: str, text: str) -> None:
    said = explain_with(run, bert, WRONG_USE, text=text)
    assert said.startswith("text: nothing to explain")
    assert "Give at least one word" in said


@pytest.mark.parametrize("family", ["roberta", "gpt2", "xlm-roberta", "t5"])
def test_an_empty_text_is_refused_by_every_kind_of_tokenizer(
    run: Run, checkpoint: Callable[[str], Path], family: str
) -> None:
    assert "nothing to explain" in explain_with(run, checkpoint(family), WRONG_USE, text="")


def test_an_unknown_model_lists_what_can_be_given(run: Run) -> None:
    said = explain_with(run, "reviews-minilmm", WRONG_USE)
    assert said.startswith("model: unknown name 'reviews-minilmm'.")
    assert "Known: " in said
    assert "Or give a folder, or a hub id" in said


def test_a_folder_that_is_not_there(run: Run) -> None:
    said = explain_with(run, "./no/such/folder", WRONG_USE)
    assert said == "model: no folder './no/such/folder'. Give a folder with config.json and safetensors."


def test_a_hub_id_without_a_network(run: Run) -> None:
    said = explain_with(run, "nobody/nothing", FAILURE)
    assert said.startswith("model: 'nobody/nothing' is neither embedded")
    assert "cannot be fetched from the hub" in said
    assert "Check the name and the network" in said


def test_an_unknown_method_lists_the_known_ones(run: Run, bert: str) -> None:
    said = run("explain", "--model", bert, "--method", "random,limee", "--text", "a").complaint(WRONG_USE)
    assert said.startswith("method: unknown name 'limee'. Did you mean 'lime'? Known: ")
    assert "integrated_gradients" in said


@pytest.mark.parametrize("given", [[], ["--method", ""]])
def test_no_method_lists_the_known_ones(run: Run, given: list[str]) -> None:
    said = run("explain", *given, "--text", "a").complaint(WRONG_USE)
    assert said.startswith("--method: is missing. Give one or more, separated by commas, or all. Known: ")


def test_an_unknown_parameter_lists_the_methods_own(run: Run, bert: str) -> None:
    args = ("explain", "--model", bert, "--method", "lime", "--text", "a", "--param", "sample=9")
    said = run(*args).complaint(WRONG_USE)
    assert said.startswith("--param: parameter of lime: unknown name 'sample'.")
    assert "Known: " in said


def test_a_parameter_that_no_named_method_has(run: Run, bert: str) -> None:
    args = ("explain", "--model", bert, "--method", "lime,occlusion", "--text", "a", "--param", "color=red")
    said = run(*args).complaint(WRONG_USE)
    assert said.startswith("--param: parameter of lime, occlusion: unknown name 'color'. Known: ")
    assert "window" in said


def test_a_parameter_addressed_to_a_method_that_was_not_asked_for(run: Run, bert: str) -> None:
    args = ("explain", "--model", bert, "--method", "lime", "--text", "a", "--param", "occlusion.window=2")
    assert run(*args).complaint(WRONG_USE) == "--param: method: unknown name 'occlusion'. Known: lime."


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("window=two", "occlusion.window: must be a whole number from 1 to 64, got 'two'."),
        ("window=0", "occlusion.window: must be a whole number from 1 to 64, got 0."),
        ("window", "--param: must be name=value, got 'window'. Example: --param n_steps=50."),
    ],
)
def test_a_value_that_is_not_allowed(run: Run, bert: str, pair: str, said: str) -> None:
    args = ("explain", "--model", bert, "--method", "occlusion", "--text", "a", "--param", pair)
    assert run(*args).complaint(WRONG_USE) == said


def test_an_unknown_target_lists_the_labels(run: Run, bert: str) -> None:
    said = explain_with(run, bert, WRONG_USE, "--target", "LABEL_7")
    assert said.startswith("target: unknown name 'LABEL_7'.")
    assert said.endswith("Known: LABEL_0, LABEL_1. Or a number from 0 to 1.")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--seed", "-1"), "--seed: must be a whole number of at least 0, got '-1'."),
        (("--seed", "x"), "--seed: must be a whole number of at least 0, got 'x'."),
        (("--dtype", "float8"), "--dtype: unknown name 'float8'. Did you mean 'float64'? Known: "),
        (("--index", "3"), "--index: requires --dataset, got --text."),
        (
            ("--dataset", "reviews"),
            "explain: needs one of --text, --image, or --dataset with --index, got --text and --dataset.",
        ),
        (("--modle", "x"), "exegesis explain: option: unknown name '--modle'. Did you mean '--model'? Known: "),
        (("loose",), "exegesis explain: too many arguments, got 'loose'."),
        (("--target",), "exegesis: option '--target' requires an argument."),
    ],
)
def test_options_that_cannot_be(run: Run, bert: str, more: tuple[str, ...], said: str) -> None:
    assert explain_with(run, bert, WRONG_USE, *more).startswith(said)


def test_an_unknown_command_lists_the_known_ones(run: Run) -> None:
    said = run("explane").complaint(WRONG_USE)
    assert said.startswith("exegesis: command: unknown name 'explane'. Did you mean 'explain'? Known: app, ask,")


def test_neither_text_nor_data_set(run: Run) -> None:
    assert "got none" in run("explain", "--method", "random").complaint(WRONG_USE)


def test_a_pickle_checkpoint_is_refused(run: Run, copied: Path) -> None:
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    said = explain_with(run, copied, FAILURE)
    assert "holds only a pickle checkpoint, which can run code when opened and is refused" in said


def test_remote_code_is_refused(run: Run, copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "code.Model"}
    (copied / "config.json").write_text(json.dumps(config))
    (copied / "code.py").write_text("raise SystemExit('ran')")
    said = explain_with(run, copied, FAILURE)
    assert "asks to run code from the checkpoint (auto_map), which is refused" in said


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_checkpoint_that_is_no_classifier(run: Run, copied: Path, kind: str) -> None:
    config = transformers.BertConfig.from_pretrained(str(copied))
    getattr(transformers, kind)(config).save_pretrained(str(copied))
    said = explain_with(run, copied, FAILURE)
    assert f"no classifier. Its architecture is {kind}" in said
    assert "exegesis train --base" in said


def test_a_head_that_is_missing_from_the_weights(run: Run, copied: Path) -> None:
    from safetensors.torch import save_file

    weights = load_file(copied / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier")}
    save_file(kept, copied / "model.safetensors", metadata={"format": "pt"})
    said = explain_with(run, copied, FAILURE)
    assert "its weights are incomplete (classifier.bias, classifier.weight" in said


def test_weights_of_another_shape(run: Run, copied: Path) -> None:
    from safetensors.torch import save_file

    weights = load_file(copied / "model.safetensors")
    weights["classifier.weight"] = torch.zeros(3, 7)
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    said = explain_with(run, copied, FAILURE)
    assert "its weights do not match its config.json" in said


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_truncated_safetensors(run: Run, copied: Path, share: float) -> None:
    file = copied / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    said = explain_with(run, copied, FAILURE)
    assert "its file of weights (safetensors) is damaged" in said
    assert "Download or save it again" in said


@pytest.mark.parametrize("content", ["", "{", "[]", "nul", "\ufeff{"])
def test_a_config_that_is_not_json(run: Run, copied: Path, content: str) -> None:
    (copied / "config.json").write_text(content)
    said = explain_with(run, copied, FAILURE)
    assert "config.json" in said
    assert "JSON" in said


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", "mamba"), ("hidden_size", "big"), ("num_hidden_layers", -1), ("id2label", 3), ("vocab_size", 7)],
)
def test_a_config_that_makes_no_sense(run: Run, copied: Path, key: str, value: object) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, key: value}))
    said = explain_with(run, copied, FAILURE)
    assert str(copied) in said


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_tokenizer_that_is_missing_or_broken(run: Run, copied: Path, content: str | None) -> None:
    file = copied / "tokenizer.json"
    file.unlink() if content is None else file.write_text(content)
    said = explain_with(run, copied, FAILURE)
    assert "tokenizer" in said


def test_an_empty_folder(run: Run, tmp_path: Path) -> None:
    assert "no config.json in the folder" in explain_with(run, tmp_path, FAILURE)


def test_a_text_of_ten_megabytes(run: Run, bert: str) -> None:
    args = ("explain", "--model", bert, "--method", "random", "--text", "-")
    said = run(*args, stdin=b"film " * 2_000_000).complaint(WRONG_USE)
    assert said.startswith("text: must have at most 1,000,000 characters, got 10,000,000.")


def test_stdin_that_is_not_utf8(run: Run, bert: str) -> None:
    args = ("explain", "--model", bert, "--method", "random", "--text", "-")
    said = run(*args, stdin=b"caf\xe9").complaint(WRONG_USE)
    assert said == "--text -: stdin must be UTF-8 text, got byte 0xe9 at position 3. Convert it to UTF-8."


def test_half_a_character(run: Run, bert: str) -> None:
    assert explain_with(run, bert, WRONG_USE, text="caf\udce9").startswith("--text: must be UTF-8 text")


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ('text,label\n"never closed,1\n', FAILURE, "broken.csv, line 2: a quotation mark opens here and never closes."),
        ("text,label\na,b,c\n", FAILURE, "broken.csv, line 2: has 3 columns, the header has 2 (text, label)."),
        ("", FAILURE, "broken.csv: is empty."),
        ("review,label\ngood,1\n", WRONG_USE, "broken.csv: has no column 'text' for text. Its columns: review, label."),
    ],
)
def test_a_broken_table(run: Run, bert: str, tmp_path: Path, content: str, code: int, said: str) -> None:
    file = tmp_path / "broken.csv"
    file.write_text(content)
    args = ("explain", "--model", bert, "--method", "random", "--dataset", str(file), "--index", "0")
    assert run(*args).complaint(code).startswith(said)
    assert run("datasets", str(file)).complaint(code).startswith(said)


@pytest.mark.parametrize("index", ["320000", "-1", "first"])
def test_an_index_outside_the_data_set(run: Run, bert: str, index: str) -> None:
    args = ("explain", "--model", bert, "--method", "random", "--dataset", "reviews", "--index", index)
    said = run(*args).complaint(WRONG_USE)
    assert said.startswith(("index: must be 0 to ", "--index: must be a whole number of at least 0"))
    assert index in said


def test_an_unknown_data_set_lists_the_known_ones(run: Run) -> None:
    said = run("datasets", "revews").complaint(WRONG_USE)
    assert "unknown name 'revews'" in said
    assert "reviews, reviews-generated, reviews-marked" in said


def test_a_fault_of_ours_is_one_line_and_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("engine.models.catalog.embedded_models", broken)
    said = run("models").complaint(FAILURE)
    assert said.startswith("unexpected RuntimeError: two lines. This is a bug in Exegesis; the traceback is in ")
    file = Path(said.partition("traceback is in ")[2].rstrip("."))
    assert 'raise RuntimeError("two\\nlines")' in file.read_text()


def test_a_home_that_cannot_be_written_does_not_hide_the_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken() -> list[str]:
        raise RuntimeError("why")

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("engine.models.catalog.embedded_models", broken)
    said = run("models").complaint(FAILURE)
    assert said.startswith("unexpected RuntimeError: why. The traceback could not be written")


def test_stopping_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.models.catalog.embedded_models", stopped)
    assert run("models").code == 130


def test_an_error_of_the_engine_keeps_its_exit_status(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> list[str]:
        raise ExegesisError("model: it\n failed.")

    monkeypatch.setattr("engine.models.catalog.embedded_models", failing)
    assert run("models").complaint(FAILURE) == "model: it failed."


@pytest.mark.parametrize(
    "command", ["study results", "study open", "study export", "jobs show", "jobs cancel", "jobs resume"]
)
@pytest.mark.parametrize("number", [str(2**31), "9" * 23, "9" * 5_000])
def test_a_number_that_no_database_holds_is_refused(command: str, number: str, run: Run) -> None:
    said = run(*command.split(), number).complaint(WRONG_USE)
    assert "ID: must be a whole number from 1 to 2,147,483,647" in said


def test_a_seed_that_no_generator_takes_is_refused(run: Run, bert: str) -> None:
    said = explain_with(run, bert, WRONG_USE, "--seed", "9" * 30)
    assert "--seed: must be a whole number from 0 to 9,223,372,036,854,775,807" in said


def test_a_token_without_an_embedding_is_told(run: Run, copied: Path) -> None:
    name, few = "bert.embeddings.word_embeddings.weight", 6
    weights = load_file(copied / "model.safetensors")
    save_file({**weights, name: weights[name][:few].clone()}, copied / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
    (copied / "config.json").write_text(json.dumps({**config, "vocab_size": few}), encoding="utf-8")
    said = explain_with(run, copied, FAILURE)
    assert f"but it has {few} embeddings. Save the matching tokenizer" in said
