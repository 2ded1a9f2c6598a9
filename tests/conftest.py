"""What holds for every test: a home of its own, no network, few threads. And a cluster for those who ask for one."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import lazy_checks

# Set here, not in a fixture: the libraries read these when they are first imported, and the servers
# that browser tests start inherit them.
OWN_HOME = Path(
    os.environ.setdefault(
        "EXEGESIS_TESTS_OWN_HOME", os.environ.get("EXEGESIS_HOME") or str(Path.home() / ".cache" / "exegesis")
    )
)
"""Of whoever runs the tests: models that were fetched are there. The processes of parallel tests inherit it."""
HOME = tempfile.mkdtemp(prefix="exegesis-tests-")
os.environ["EXEGESIS_HOME"] = HOME
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", str(min(2, os.cpu_count() or 1)))

# The same examples in every run: a run that is red is red for the next one too. Other examples:
# make test ARGS="tests/unit --hypothesis-profile=default"
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")

LONGEST = (
    "browser/test_deep_links.py",
    "browser/test_library_page.py",
    "browser/test_whole_study.py",
    "unit/evaluation/test_cluster.py",
    "unit/reproduction/test_full.py",
    "unit/reproduction/test_embedded.py",
    "unit/interface/test_documentation.py",
    "unit/test_shipped.py",
    "unit/test_layering.py",
    "unit/study/test_study_api.py",
    "unit/study/test_study_file_hostile.py",
    "unit/study/test_killed.py",
    "unit/study/test_ratings.py",
    "unit/study/test_results.py",
    "unit/study/test_studies.py",
    "unit/training/test_finetuning.py",
    "unit/training/test_image_training.py",
    "unit/training/test_pretraining.py",
    "unit/explainers/test_families.py",
    "unit/explainers/test_golden.py",
    "unit/explainers/test_integrated_gradients.py",
    "unit/explainers/test_marked_pictures.py",
    "unit/cache/test_damage.py",
    "unit/cli/test_process.py",
    "unit/gpu/test_experiments.py",
    "unit/jobs/test_table.py",
    "unit/models/test_embedded_models.py",
    "unit/models/test_sandbox.py",
    "unit/scaffold/test_bilevel.py",
    "unit/vision/test_embedded.py",
)
"""They come first: begun last, each would run on alone at the end, when the other cores have nothing left to do."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def unrestricted() -> Iterator[None]:
    """A page that a test has opened by `app.py` leaves no restriction of visitors to the tests after it."""
    yield
    if access := sys.modules.get("engine.access"):
        access.restrict(access.nobody)


@pytest.fixture(scope="module", autouse=True)
def closed_homes() -> Iterator[None]:
    """What a module's tests have opened in their homes is closed: all homes together are more files than many machines
    let a process open."""
    yield
    for module, name in (("engine.store", "_stores"), ("engine.jobs.runner", "_tables")):
        for opened in list(getattr(sys.modules.get(module), name, {}).values()):
            opened.close()


@pytest.fixture
def ray_cluster() -> Iterator[Any]:
    """Without a node that works: add some."""
    pytest.importorskip("ray", reason="needs Ray: pip install '.[distributed]'")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    made.shutdown()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--jaxtyping-packages"):
        lazy_checks.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hardly anything that it makes goes away again: until it is over no garbage is looked for, and afterwards none
    among what it has made. AppTest collects all garbage after each run of a page."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish() -> None:
    """What others work out anew for each page or command that a test runs, though it never changes, once is enough.

    Streamlit's AppTest looks for components in what every installed package says of itself, which takes longer than
    the page; Typer's runner makes the whole tree of commands.
    """
    for user, module, name in (
        ("streamlit.testing.v1", "streamlit.components.v2.manifest_scanner", "scan_component_manifests"),
        ("typer.testing", "typer.testing", "_get_command"),
    ):
        if user in sys.modules:
            held = importlib.import_module(module)
            setattr(held, name, functools.cache(getattr(held, name)))


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
