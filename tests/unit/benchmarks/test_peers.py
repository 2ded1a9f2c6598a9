"""What the benchmarks make of other tools: rows are counted, one question is put to all, the absent is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import peers, whole_evaluation
from benchmarks.counting import counting
from benchmarks.peers import NotThereError, PeerProcess
from benchmarks.workloads import text_task
from engine.explain import explain
from engine.metrics.faithfulness import faithfulness
from engine.request import Example, Request
from tests.explaining import checkpoint, classifier

TEXT = "although the plot drags, the ending is warm and funny"
PERCENTS = (0, *peers.PERCENTS)
WORKER = """
from benchmarks.peer_worker import answer_jobs
class Worker:
    def __init__(self, folder):
        self.folder = folder
    def work(self, job):
        print("a library's noise")
        return {"folder": self.folder, "texts": job["texts"]}
answer_jobs(Worker)
"""


class Silent(torch.nn.Module):
    """Takes what transformers take."""

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None, attention_mask: Any = None) -> None:
        return None


def test_rows_are_counted_with_their_lengths_whatever_the_mask() -> None:
    module, ids = Silent(), torch.zeros(2, 4, dtype=torch.long)
    added = torch.zeros(2, 1, 1, 4)
    added[1, ..., 3:] = float("-inf")
    with counting(module) as rows:
        module(input_ids=ids)
        module(input_ids=ids, attention_mask=torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]]))
        module(inputs_embeds=torch.zeros(2, 4, 3), attention_mask=added)
        module(inputs_embeds=torch.zeros(1, 5, 3, requires_grad=True))
    module(input_ids=ids)
    assert rows.by_way == ([4, 4, 2, 4, 4, 3], [5])
    assert rows.count == 7


@pytest.mark.usefixtures("home")
def test_the_loop_over_captum_asks_what_we_ask() -> None:
    request = Request(str(checkpoint("bert", 2)), "gradient_l2", Example(TEXT))
    made = explain(request)
    [ours] = faithfulness([request], PERCENTS)
    found = peers.score_map(text_task(classifier("bert", 2), TEXT), made.scores[made.features])
    wanted = ours.comprehensiveness(peers.PERCENTS), ours.sufficiency(peers.PERCENTS)
    assert np.allclose(found, wanted, atol=1e-6)


def test_a_worker_answers_line_by_line_and_its_end_is_told() -> None:
    command = [sys.executable, "-c", WORKER, "model"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        peer = PeerProcess(process)
        assert peer.answer() == {"ready": True}
        assert peer.ask("work", texts=["ä"]) == {"folder": "model", "texts": ["ä"]}
        assert process.stdin is not None
        process.stdin.close()
        with pytest.raises(NotThereError, match="its process ended with exit status 0"):
            peer.answer()


def test_where_ferret_cannot_be_installed_the_rest_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "No matching distribution\nfound for ferret-xai")

    monkeypatch.setenv("EXEGESIS_FERRET", str(tmp_path / "ferret"))
    monkeypatch.setattr(peers.subprocess, "run", refused)
    with whole_evaluation.optional_ferret(tmp_path) as other:
        assert other is None
    said = "ferret-xai is left out: its environment cannot be made (No matching distribution found for ferret-xai).\n"
    assert capsys.readouterr().out == said
