"""`engine.explain` refuses in words what it cannot do: bad requests, damaged models, texts that are too long."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from engine.errors import ExegesisError, UsageError
from engine.explain import explain
from engine.models.loading import load_model
from engine.registry import explainer, register
from engine.request import Example
from tests.explaining import checkpoint
from tests.unit.explainers.asking import ask, checkpoints


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own for each test."""
    checkpoints()
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))


@pytest.mark.parametrize("method", ["random", "gradient", "lime"])
def test_a_model_that_gives_no_numbers_is_told_in_one_sentence(method: str, tmp_path: Any) -> None:
    folder = shutil.copytree(checkpoint("bert", 3), tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ExegesisError, match="its logits are not finite numbers in float32"):
        explain(ask(method, model=str(folder)))


def test_half_a_character_is_refused() -> None:
    with pytest.raises(UsageError, match="text_pair: holds half a character"):
        Example("whole", "\ud800")


@pytest.mark.parametrize("target", ["LABEL_3", 3, -1, True, "positive"])
def test_an_unknown_target_lists_the_known_ones(target: int | str) -> None:
    with pytest.raises(UsageError, match=r"target: .* Known: LABEL_0, LABEL_1, LABEL_2\. Or a number from 0 to 2\.$"):
        explain(ask(target=target))


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_seeds_that_are_none(seed: Any) -> None:
    request = ask()
    object.__setattr__(request, "seed", seed)
    with pytest.raises(UsageError, match="seed: must be a whole number of at least 0, got"):
        explain(request)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"method": "gradients"},
            r"method: unknown name 'gradients'\. Did you mean 'gradient'\? Known: attention_head",
        ),
        ({"method": "lime", "params": {"sample": 3}}, r"parameter of lime: unknown name 'sample'.*n_samples, removal"),
        ({"method": "lime", "params": {"removal": "blur"}}, r"lime\.removal: must be one of mask, pad, delete"),
        ({"method": "lime", "params": {"n_samples": 1}}, r"lime\.n_samples: must be a whole number from 2 to 20,000"),
        ({"dtype": "int8"}, r"dtype: must be one of float32, bfloat16, float16, float64, got 'int8'"),
        ({"model": "nowhere"}, "model: unknown name 'nowhere'"),
        ({"text": "  "}, "text: nothing to explain"),
    ],
)
def test_bad_requests_in_one_line(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ExegesisError, match=words) as caught:
        explain(ask(**parts))
    assert "\n" not in str(caught.value)


def test_a_truncated_text_says_so() -> None:
    made = explain(ask(text="good " * 100))
    limit = load_model(str(checkpoint("bert", 3))).max_length
    assert len(made.tokens) == limit
    assert made.truncated == 102 - limit
    assert f"{made.truncated} of its 102 tokens were cut off" in made.notes[0]


def test_a_name_is_registered_once() -> None:
    known = explainer("occlusion")
    again = register("occlusion", title="", family="", axes=known.axes, citation="", caution="")
    with pytest.raises(ValueError, match="explainer 'occlusion' is registered twice for text"):
        again(known.function)
