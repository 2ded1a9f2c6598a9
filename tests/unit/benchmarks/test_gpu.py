"""The benchmark of a GPU: rehearsed on the CPU and on a pretended GPU, with bounds that can fail and shares of time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import gpu, gpu_sections
from benchmarks.counting import counting
from benchmarks.gpu_clock import NO_MEMORY, TOO_LONG, USED_UP, TimeShare, within
from benchmarks.gpu_models import pass_flops, published_peak, random_model
from benchmarks.gpu_sections import REHEARSAL, Device, gradient_work, map_error, removal_work, text_task_of
from engine import runtime
from engine.errors import UsageError
from engine.registry import all_explainers
from engine.task import Attribution, Task
from tests.unit.gpu.machine import gpu as on_gpu

FEW = ("gradient_x_input", "occlusion", "attention_last_layer", "ensemble_top3")
ENOUGH = TimeShare.of(1e6)


@pytest.fixture(autouse=True)
def watchdog(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What ends a run that hangs, recorded instead of set: it would end the process of the tests."""
    told: dict[str, list[Any]] = {"set": [], "cancelled": []}
    monkeypatch.setattr(
        gpu.faulthandler, "dump_traceback_later", lambda after, exit, file: told["set"].append((after, exit))
    )
    monkeypatch.setattr(gpu.faulthandler, "cancel_dump_traceback_later", lambda: told["cancelled"].append(True))
    return told


@pytest.fixture
def few_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gpu_sections, "all_explainers", lambda kind="text": {name: all_explainers(kind)[name] for name in FEW}
    )


def test_without_cuda_it_refuses_and_names_the_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "device", lambda: torch.device("cpu"))
    with pytest.raises(SystemExit, match=r"needs CUDA.*gpu --rehearse"):
        gpu.gpu(["--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit, match=r"sections: unknown name 'sped'\. Known: peak, parity"):
        gpu.gpu(["--rehearse", "--sections", "sped"])


def test_a_run_that_hangs_is_ended_in_nine_minutes(tmp_path: Path, watchdog: dict[str, list[Any]]) -> None:
    assert gpu.gpu(["--rehearse", "--sections", "peak", "--out", str(tmp_path)]) == 0
    assert watchdog == {"set": [(pytest.approx(525), True)], "cancelled": [True]}
    assert sum(weight for _, weight, _ in gpu.SECTIONS.values()) == 60 * gpu.MINUTES


@pytest.mark.usefixtures("few_methods")
def test_a_rehearsal_writes_a_json_file_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = gpu.PAGE.read_bytes()
    assert gpu.gpu(["--rehearse", "--out", str(tmp_path)]) == 0
    assert gpu.PAGE.read_bytes() == before, "the page of the project is for real GPUs"
    told = json.loads((tmp_path / "gpu.json").read_text())
    assert told["machine"]["rehearsal"]
    assert list(told["sections"]) == list(gpu.SECTIONS)
    rows = [row for section in told["sections"].values() for row in section]
    assert not [row for row in rows if "failed" in row or "skipped" in row]
    models = {row["model"] for row in told["sections"]["speed"]}
    assert models == {"tiny encoder", "tiny decoder"}
    assert len(told["sections"]["speed"]) == 2 * 2 * len(FEW)
    assert all(row["ms"] > 0 for row in told["sections"]["speed"])
    assert all(row["TFLOP/s"] > 0 and row["tokens/s"] > 0 for row in told["sections"]["bulk"])
    assert len(told["sections"]["parity"]) == 3 * 2 * len(FEW)
    [shared] = told["sections"]["sessions"]
    assert shared["answers"] >= 1
    assert shared["kept"]
    assert all(row["halved"] and row["kept"] for row in told["sections"]["recovery"])
    page = (tmp_path / "gpu.md").read_text()
    generated = page.partition(gpu.BEGIN)[2].partition(gpu.END)[0]
    assert "no number here is of a GPU" in generated
    assert page.startswith(before.decode().partition(gpu.BEGIN)[0])
    speed = generated.partition("## Milliseconds an example")[2].strip().splitlines()
    assert speed[0].count("|") == 2 + 4, "a column for the method, and each model at each precision"
    assert [line.split("|")[1].strip() for line in speed[2 : 2 + len(FEW)]] == [f"`{name}`" for name in FEW]
    assert "kept: parity: rows beyond their bound: 0 rows" in capsys.readouterr().out


@pytest.mark.usefixtures("few_methods")
def test_a_wrong_map_breaks_the_bound_of_its_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A score that is a hundredth off is seen in float32 alone, one that is twice as large in both."""
    own, off = gpu_sections.run, {"occlusion": 1.01, "attention_last_layer": 2.0}

    def perturbed(method: str, task: Task, params: Any) -> list[Attribution]:
        maps = own(method, task, params)
        if method in off and task.model.dtype != torch.float64:
            scores = maps[0].scores.copy()
            scores[np.abs(scores).argmax()] *= off[method]
            return [dataclasses.replace(maps[0], scores=scores)]
        return maps

    monkeypatch.setattr(gpu_sections, "run", perturbed)
    assert gpu.gpu(["--rehearse", "--sections", "parity", "--out", str(tmp_path)]) == 1
    assert "BROKEN: parity" in capsys.readouterr().out
    rows = json.loads((tmp_path / "gpu.json").read_text())["sections"]["parity"]
    broken = {(row["method"], row["precision"]) for row in rows if not row["kept"]}
    assert broken == {
        ("occlusion", "float32"), ("attention_last_layer", "float32"), ("attention_last_layer", "bfloat16"),
    }  # fmt: skip
    assert "**beyond**" in (tmp_path / "gpu.md").read_text()


def test_the_error_of_a_map() -> None:
    assert map_error(np.array([3.0, 4.5]), np.array([3.0, 4.0])) == pytest.approx(0.1)
    assert map_error(np.zeros(2), np.zeros(2)) == 0
    assert map_error(np.array([0.0, 1e-9]), np.zeros(2)) == np.inf
    assert map_error(np.array([np.nan, 1.0]), np.ones(2)) == np.inf
    assert map_error(np.ones(3), np.ones(2)) == np.inf


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_that_is_left_over_passes_on_and_no_section_takes_that_of_another() -> None:
    clock, shares = Clock(), list[float]()
    for name, part in TimeShare.of(100, clock).split({"a": 50, "b": 30, "c": 20}):
        shares.append(part.left())
        clock.now += {"a": 10, "b": 70, "c": 5}[name]  # in time, over its share, in time
    assert shares == pytest.approx([50, 54, 20])
    assert [part.left() for _, part in TimeShare(clock.now - 1, clock).split({"late": 1})] == [0]


def test_a_row_that_has_no_number_says_why() -> None:
    clock = Clock()
    share = TimeShare.of(10, clock)

    def slow(rows: slice) -> None:
        clock.now += 4

    def fail(error: Exception) -> Callable[[], dict[str, Any]]:
        def work() -> dict[str, Any]:
            raise error

        return work

    assert within(share, lambda: {"ms": 1}) == {"ms": 1}
    assert within(share, fail(UsageError("n: at most 14. Shorten the text."))) == {"skipped": "n: at most 14"}
    assert within(share, fail(torch.OutOfMemoryError("CUDA out of memory."))) == {"skipped": NO_MEMORY}
    assert within(share, fail(ValueError("odd"))) == {"failed": "ValueError: odd"}
    assert within(share, lambda: {"n": len(runtime.in_chunks(slow, 9, 1))}) == {"skipped": TOO_LONG}
    assert clock.now == 112, "stopped after the step in which time ran out"
    assert within(share, lambda: {"ms": 1}) == {"skipped": USED_UP}


def test_a_failed_row_fails_the_run_and_a_slow_machine_still_writes_every_section(tmp_path: Path) -> None:
    assert gpu.gpu(["--rehearse", "--minutes", "0", "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "gpu.json").read_text())["sections"]
    assert all(rows and all(row["skipped"] == USED_UP for row in rows) for rows in told.values())
    assert gpu.failures({"bulk": [{"model": "m", "failed": "E: x"}]}) == ["bulk, m: E: x"]
    assert not all(limit.kept for limit in gpu.limits_of({"bulk": [{"failed": "E: x"}]}))


@pytest.mark.parametrize("size", ["tiny", "rehearsal"])
def test_counted_operations_are_those_of_torchs_counter(size: str) -> None:
    model = random_model(size, "float32")
    model.module.set_attn_implementation("eager")
    task = text_task_of(model, "although the plot drags")
    length = len(task.examples[0])
    ids = torch.from_numpy(np.stack([task.examples[0].ids] * 3))
    given = {"logits_to_keep": 1, "use_cache": False} if size == "rehearsal" else {}
    with FlopCounterMode(display=False) as forward:
        model.module(input_ids=ids, **given)
    assert pass_flops(model, 3, length) == pytest.approx(forward.get_total_flops(), rel=0.08)
    point = model.embedding(ids).detach().requires_grad_()
    with FlopCounterMode(display=False) as both:
        model.module(inputs_embeds=point, **given).logits.sum().backward()
    assert pass_flops(model, 3, length, back=True) == pytest.approx(both.get_total_flops(), rel=0.08)


@pytest.mark.parametrize(
    ("device", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989), ("NVIDIA H100 PCIe", 756), ("NVIDIA H200", 989), ("NVIDIA H20", 148),
        ("NVIDIA A100-SXM4-80GB", 312), ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None), ("NVIDIA A10", 125),
        ("NVIDIA A10G", 70), ("NVIDIA L4", 121), ("NVIDIA L40S", 362), ("NVIDIA GeForce RTX 4090", 165),
        ("Tesla T4", None),
    ],
)  # fmt: skip
def test_the_published_peak_of_a_card(device: str, peak: float | None) -> None:
    assert published_peak(device) == peak
    assert Device(device, 50.0).peak == (peak or 50.0)


def test_bulk_work_sends_as_many_rows_as_it_says() -> None:
    task = text_task_of(random_model("tiny", "float32"), "although the plot drags, the ending is warm and funny")
    with counting(task.model.module) as rows:
        removal_work(task, 5)()
        gradient_work(task, 3)()
    assert (len(rows.back), 4 <= len(rows.forward) <= 6) == (3, True)


@pytest.fixture
def pretended() -> Iterator[None]:
    with on_gpu():
        yield


@pytest.mark.skipif(torch.cuda.is_available(), reason="where there is a GPU, `make gpu` runs on it")
@pytest.mark.usefixtures("few_methods", "pretended")
def test_on_a_pretended_gpu_memory_runs_out_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of sessions leave what is pretended, so that section is rehearsed on the CPU alone."""
    scale = dataclasses.replace(REHEARSAL, rehearsed=False, room=60_000)
    monkeypatch.setattr(gpu, "FULL_SCALE", scale)
    sections = ",".join(name for name in gpu.SECTIONS if name not in ("sessions", "peak", "speed"))
    assert gpu.gpu(["--sections", sections, "--out", str(tmp_path)]) == 0
    told = json.loads((tmp_path / "gpu.json").read_text())
    assert told["machine"] | {"capability": "8.0", "memory_bytes": 8 << 30, "rehearsal": False} == told["machine"]
    rows = [row for section in told["sections"].values() for row in section]
    assert not [row for row in rows if "failed" in row]
    assert all(row["halved"] and row["kept"] for row in told["sections"]["recovery"])
    assert "no number here is of a GPU" not in (tmp_path / "gpu.md").read_text()
