"""Training on a GPU: the CPU's numbers without chance, a generator of its own, and checkpoints of either device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import runtime
from engine.errors import Cancelled, ExegesisError
from engine.models import loading
from engine.models.loading import load_model
from engine.progress import CancelToken
from engine.training.config import ImageTrainConfig, PretrainConfig, TrainConfig
from engine.training.finetuning import train
from engine.training.image_training import train_images
from engine.training.pretraining import pretrain
from engine.training.recipe import TrainResult, select_device
from tests.tiny import save_checkpoint
from tests.unit.gpu.machine import REAL, assert_same, both, gpu, on
from tests.unit.scaffold.plans import pictures, texts

pytestmark = pytest.mark.usefixtures("home")
Train = Callable[..., TrainResult]


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A base that drops nothing out: no chance is left on the device."""
    folder = save_checkpoint("bert", tmp_path_factory.mktemp("base"), seed=1)
    config = json.loads((folder / "config.json").read_text())
    chance = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config | chance))
    return str(folder)


@pytest.fixture(scope="module")
def dropping(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("base"), seed=1))


@pytest.fixture
def trained(tmp_path: Path) -> Train:
    """Trains on the engine's device, in a folder for each call."""
    data, numbers = texts(tmp_path), iter(range(99))

    def run(base: str, device: str, *given: Any, out: str = "", **more: Any) -> TrainResult:
        quick = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-3, "held_out": 8, "device": device}
        place = str(tmp_path / (out or f"out-{next(numbers)}"))
        return train(TrainConfig(base=base, dataset=data, out=place, **{**quick, **more}), *given)

    return run


@pytest.fixture
def cuda() -> Iterator[Any]:
    with gpu() as made:
        yield made


def numbers(result: Any) -> list[Any]:
    return [*((row.loss, row.held_out) for row in result.history), result.scores["held-out"].value]


def device() -> str:
    return runtime.device().type


@pytest.mark.parametrize(
    "how",
    [{}, {"precision": "bfloat16"}, {"method": "lora", "rank": 2, "dropout": 0.0, "average": 0.9}],
    ids=["all weights", "bfloat16", "adapter"],
)
def test_fine_tuning_without_chance(how: dict[str, Any], trained: Train, steady: str) -> None:
    bound = {"bound": 3e-2} if REAL and "precision" in how else {}
    assert_same(*both(lambda: numbers(trained(steady, device(), **how))), **bound)


@pytest.mark.parametrize(
    "base", ["t5-mini", pytest.param("gpt2", marks=pytest.mark.slow(reason="pre-trains another family"))]
)
def test_pretraining(base: str, tmp_path: Path) -> None:
    """What is hidden is drawn on the CPU, so that it is the same on any device."""

    def run() -> Any:
        out = str(tmp_path / device())
        quick = {"epochs": 2, "batch_size": 16, "vocabulary": 500, "max_length": 48, "held_out": 20}
        return numbers(pretrain(PretrainConfig(base, "reviews-generated:count=60", out, device=device(), **quick)))

    assert_same(*both(run))


def test_training_on_pictures(tmp_path: Path) -> None:
    """Pictures are changed by chance drawn on the CPU."""
    data = pictures(tmp_path)

    def run() -> Any:
        small = {"size": 8, "patch": 4, "layers": 1, "width": 16, "heads": 2, "flip": True, "turn": 5.0, "jitter": 0.1}
        quick = {"epochs": 2, "batch_size": 8, "learning_rate": 5e-3, "held_out": 8, "average": 0.5, "shift": 1}
        out = str(tmp_path / device())
        return numbers(train_images(ImageTrainConfig(dataset=data, out=out, device=device(), **small, **quick)))

    assert_same(*both(run))


def test_chance_of_the_gpu_is_part_of_a_checkpoint(cuda: Any, trained: Train, dropping: str) -> None:
    """A run that was stopped and went on ends as one that was not, dropout and all."""
    token = CancelToken()

    def stop(done: int, total: int, label: str) -> None:
        if done == 3:
            token.cancel()

    whole = trained(dropping, "cuda")
    with pytest.raises(Cancelled):
        trained(dropping, "cuda", stop, token, out="cut")
    torch.rand(5, device="cuda")
    assert_same(numbers(whole), numbers(trained(dropping, "cuda", out="cut")), 0.0 if not REAL else 1e-4)


def test_scoring_a_pretraining_leaves_the_gpu_s_chance_alone(cuda: Any, tmp_path: Path) -> None:
    """Else each pass would drop out the same units."""
    states: list[bytes] = []

    def report(done: int, total: int, label: str) -> None:
        torch.rand(1, device="cuda")
        states.append(torch.cuda.get_rng_state().numpy().tobytes())

    quick = {"epochs": 3, "batch_size": 64, "vocabulary": 500, "max_length": 48, "held_out": 20}
    pretrain(PretrainConfig("bert", "reviews-generated:count=60", str(tmp_path / "b"), device="cuda", **quick), report)
    assert len(set(states)) == len(states) > 3


@pytest.mark.parametrize("first", ["cpu", "cuda"])
def test_a_run_goes_on_on_another_device(first: str, cuda: Any, trained: Train, steady: str) -> None:
    token = CancelToken()

    def stop(done: int, total: int, label: str) -> None:
        if done == 3:
            token.cancel()

    with pytest.raises(Cancelled):
        trained(steady, first, stop, token, out="cut")
    then = "cuda" if first == "cpu" else "cpu"
    assert_same(numbers(trained(steady, "cpu")), numbers(trained(steady, then, out="cut")))


@pytest.mark.skipif(REAL, reason="the memory of a real GPU is not ours to fill")
def test_memory_that_runs_out_is_told_as_too_large_a_batch(cuda: Any, trained: Train, steady: str) -> None:
    def fill(done: int, total: int, label: str) -> None:
        cuda.largest = 1000

    with pytest.raises(ExegesisError, match=r"batch_size: out of memory .* 8 examples per step\. Use a smaller batch"):
        trained(steady, "cuda", fill)


def test_auto_is_the_device_that_was_named(cuda: Any) -> None:
    assert select_device("auto") == "cuda"
    with on("cpu"):
        assert select_device("auto") == "cpu"


def test_an_adapter_is_read_on_the_cpu(trained: Train, steady: str, tmp_path: Path) -> None:
    """Where its model goes is for the engine to say: another GPU, or none."""
    with on("cpu"):
        trained(steady, "cpu", method="lora", rank=2, epochs=1, out="adapter")
    with gpu() as seen, on("cpu"):
        assert load_model(str(tmp_path / "adapter")).device.type == "cpu"
        assert loading.merge_adapter(loading.load_base(Path(steady), ("bad", "good")), tmp_path / "adapter") is not None
    assert not seen.kernels
    assert not seen.waits
