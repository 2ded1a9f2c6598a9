"""What holds for every test: a home of its own, no network, few threads. And a cluster for those who ask for one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Set here, not in a fixture: the libraries read these when they are first imported, and the servers
# that browser tests start inherit them.
HOME = tempfile.mkdtemp(prefix="exegesis-tests-")
os.environ["EXEGESIS_HOME"] = HOME
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", str(min(2, os.cpu_count() or 1)))

LONGEST = (
    "unit/reproduction/test_full.py",
    "unit/cli/test_process.py",
    "unit/evaluation/test_executors.py",
    "unit/study/test_ratings.py",
    "unit/reproduction/test_embedded.py",
    "unit/evaluation/test_data_sets.py",
    "unit/images/test_embedded.py",
    "unit/images/test_marked_truth.py",
    "unit/study/test_killed.py",
    "unit/study/test_votes_at_once.py",
    "unit/pretraining/test_pretrain.py",
    "unit/training/test_resume.py",
    "browser/test_view.py",
    "browser/test_whole_study.py",
    "browser/test_blindness.py",
)
"""They come first: begun last, each would run on alone at the end, when the other cores have nothing left to do."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ray_cluster() -> Iterator[Any]:
    """Without a node that works: add some."""
    pytest.importorskip("ray", reason="needs Ray: pip install '.[distributed]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield made
    made.shutdown()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
