"""A server opens and tokenizes foreign checkpoints in a process of its own first, and outlives them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ExegesisError
from engine.explain import explain
from engine.models import catalog, sandbox
from engine.models.loading import load_image_model, load_model
from engine.models.sandbox import Sandbox
from engine.request import Example, Request
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

BOMB = {
    "type": "Sequence",
    "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100} for _ in range(6)],
}
"""One "a" becomes a hundred, six times: a terabyte."""


@pytest.fixture(scope="module", autouse=True)
def enabled() -> Iterator[None]:
    sandbox.enable()
    yield
    sandbox.disable()


def changed(folder: Path, name: str, **values: Any) -> str:
    file = folder / name
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **values}), encoding="utf-8")
    return str(folder)


def test_a_sound_checkpoint_is_opened_and_explained(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "tiny"))
    assert len(explain(Request(model, "gradient_x_input", Example("a good film"))).tokens) == 5
    assert load_image_model(str(save_vit(tmp_path / "vit"))).labels == ("cat", "dog", "eel")


def test_a_normalizer_that_makes_terabytes_is_refused_and_the_next_text_is_read(tmp_path: Path) -> None:
    model = changed(save_checkpoint("bert", tmp_path / "bomb"), "tokenizer.json", normalizer=BOMB)
    with pytest.raises(ExegesisError, match=r"crashed, most likely because it needs more than the 1\.0 GiB allowed"):
        explain(Request(model, "gradient_x_input", Example("a good film")))
    sound = str(save_checkpoint("bert", tmp_path / "sound"))
    assert len(explain(Request(sound, "gradient_x_input", Example("a good film"))).tokens) == 5


def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "tiny"))
    own = Sandbox()
    try:
        own.tokenize(model, "good", None)
        assert own.process is not None
        own.process.send_signal(signal.SIGSTOP)
        with pytest.raises(ExegesisError, match=r"took longer than 0\.5 s and was stopped"):
            own.tokenize(model, "good", None, seconds=0.5)
        own.tokenize(model, "good", None)
    finally:
        own.close()


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"num_hidden_layers": 1_000_000_000}, r"num_hidden_layers must be at most 1,000, got 1000000000"),
        ({"num_labels": 1_000_000_000}, r"num_labels must be at most 100,000"),
        ({"vocab_size": 10**12}, r"vocab_size must be at most 10,000,000"),
        ({"hidden_size": -1}, r"hidden_size must be at least 0"),
        ({"hidden_size": 4096, "intermediate_size": 65536}, r"its weights do not match its config\.json"),
    ],
)
def test_the_sizes_of_a_config_are_bounded_before_anything_is_built(
    values: dict[str, int], refusal: str, tmp_path: Path
) -> None:
    model = changed(save_checkpoint("bert", tmp_path / "tiny"), "config.json", **values)
    with pytest.raises(ExegesisError, match=refusal):
        load_model(model)


def test_a_config_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    folder = save_checkpoint("bert", tmp_path / "tiny")
    (folder / "config.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000, encoding="utf-8")
    with pytest.raises(ExegesisError, match=r"config\.json cannot be read as JSON"):
        catalog.locate(str(folder))
