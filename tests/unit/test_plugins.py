"""Plugins that do not work: nothing of them stays, all else goes on, and the error names the package and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import plugins
from engine.data.datasets import dataset_names, load, registered_name
from engine.data.labels import SENTIMENT_LABELS
from engine.errors import ExegesisError
from engine.evaluation.measurement import Measurements, UnitScores, measure_maps
from engine.evaluation.plan import EvaluationPlan
from engine.explain import explain, key_of
from engine.health import plugin_findings
from engine.jobs import cluster
from engine.metrics.catalog import METRICS, metric
from engine.models.adapters import ADAPTERS, adapter_for
from engine.registry import EXPLAINERS, all_explainers, explainer, load_plugins
from engine.request import Example, Request
from tests.tiny import save_checkpoint

Install = Callable[..., None]
HEAD = """
from dataclasses import dataclass, replace
import numpy as np
from engine.registry import Axes, register
from engine.task import Attribution
def of(id, **more):
    given = dict(title="T", family="f", axes=Axes("a", "b", "c"), citation="c", caution="d", inputs=("text",))
    return register(id, **(given | more))
"""
NEXT = (
    "It is from the package broken 2.0 (entry point exegesis.{group}: part), not part of Exegesis: update it, "
    "uninstall it (pip uninstall broken), or start with EXEGESIS_PLUGINS=off"
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package of one entry point, in place of what is installed here; it is gone after the test."""
    all_explainers()
    for name, fresh in (("_started", set()), ("_finished", set()), ("_plugins", {one: [] for one in plugins.GROUPS})):
        monkeypatch.setattr(plugins, name, fresh)
    monkeypatch.delenv(plugins.SETTING, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(part for part in sys.path if "plugin" not in part)])

    def write(group: str, code: str, package: str = "broken", value: str = "add") -> None:
        info = tmp_path / f"{package}-2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n", encoding="utf-8")
        entry = f"[exegesis.{group}]\npart = {package}_module:{value}\n"
        (info / "entry_points.txt").write_text(entry, encoding="utf-8")
        (tmp_path / f"{package}_module.py").write_text(HEAD + code, encoding="utf-8")

    yield write
    for plugin in plugins.plugins():
        for undo in plugin.undo:
            undo()
        sys.modules.pop(f"{plugin.package}_module", None)


def told(group: str) -> str:
    """The error of the only plugin of a group."""
    [plugin] = [one for one in plugins.plugins() if one.group == group]
    assert plugin.error
    assert plugin.added == ()
    return plugin.error


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise RuntimeError('no license')", "RuntimeError: no license"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("add = 5", "must be a function without arguments, got int"),
        ("def other(): pass", "AttributeError"),
        ("def add(): of('new')(print); of('lime')(print)", "explainer 'lime' is registered twice for text"),
        ("def add(): of('new')(print); of('<b>')(print)", "a name must be letters, digits, dots, - and _"),
        ("def add(): of('new', params=int)(print)", "params of new: must be a frozen dataclass"),
        ("def add(): of('new', inputs=('sound',))(print)", "inputs: unknown name 'sound'"),
        ("def add(): of('new', axes='x')(print)", "axes"),
        ("def add(): of('new', title=3)(print)", "title"),
        ("def add(): of('new', strange=1)(print)", "TypeError"),
    ],
)
def test_an_explainer_that_cannot_be_registered_adds_nothing(install: Install, code: str, why: str) -> None:
    before = {kind: list(methods) for kind, methods in EXPLAINERS.items() if methods}
    install("explainers", code)
    assert "lime" in all_explainers()
    error = told("explainers")
    assert error.startswith("plugins: broken could not be loaded (")
    assert why in error
    assert NEXT.format(group="explainers") in error
    assert {kind: list(methods) for kind, methods in EXPLAINERS.items() if methods} == before
    [finding] = plugin_findings()
    assert (finding.status, finding.name) == ("note", "plugins")
    assert why in finding.detail


def test_what_another_group_registers_is_refused(install: Install) -> None:
    install("metrics", "def add(): of('new')(print)")
    assert "complexity" in METRICS
    assert "'new' belongs to exegesis.explainers, but was registered by exegesis.metrics" in told("metrics")
    assert "new" not in all_explainers()


HELPERS = """
import asyncio
def cancelled(): raise asyncio.CancelledError
def noted(task, note):
    maps = [Attribution(np.zeros(len(item.encoded)), 0) for item in task.items]
    object.__setattr__(maps[0], 'notes', (note,))
    return maps
"""
GOOD = "lambda task, params: [Attribution(np.zeros(len(i.encoded)), 0) for i in task.items]"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("lambda task, params: 1 / 0", "method new: failed (ZeroDivisionError: division by zero)"),
        ("lambda task, params: []", "method new: wrong result (0 maps for 1 examples)"),
        ("lambda task, params: None", "method new: failed (TypeError"),
        ("lambda task, params: [Attribution(np.zeros(2), 0)]", "positions, got shape (2,))"),
        (GOOD.replace("zeros(", "log(np.zeros(").replace("))", ")))", 1), "scores must be finite numbers"),
        ("lambda task, params: noted(task, 5)", "method new: wrong result (notes must be texts)"),
        (GOOD.replace(", 0)", ", 0, extras={'k': object()})"), "method new: wrong result: extras must be plain values"),
        ("lambda task, params: exit(3)", "method new: failed (SystemExit: 3)"),
        ("lambda task, params: cancelled()", "method new: failed (CancelledError"),
    ],
)
def test_an_explainer_that_fails_is_named_as_the_packages(
    install: Install, own: str, body: str, why: str
) -> None:  # fmt: skip
    install("explainers", f"{HELPERS}def add(): of('new')({body})")
    with pytest.raises(ExegesisError) as caught, np.errstate(all="ignore"):
        explain(Request(own, "new", Example("good food")))
    assert why in str(caught.value)
    assert NEXT.format(group="explainers") in str(caught.value)
    assert explain(Request(own, "gradient", Example("good food"))).provenance.method == "gradient"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def test_the_version_of_the_package_is_part_of_the_key(
    install: Install, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    install("explainers", f"def add(): of('new')({GOOD})")
    request = Request(own, "new", Example("good food"))
    assert explainer("new").package == "broken 2.0"
    assert "From the package broken 2.0, which is not part of Exegesis." in explain(request).notes
    key = key_of(request)
    with monkeypatch.context() as patched:
        patched.setitem(EXPLAINERS["text"], "new", replace(explainer("new"), package="broken 2.1"))
        assert key_of(request) != key


@pytest.mark.parametrize(
    ("setting", "loaded"),
    [("off", False), ("OFF", False), ("other", False), ("broken", True), ("Broken, other", True), ("", True)],
)
def test_the_setting_chooses_which_packages_are_loaded(
    install: Install, monkeypatch: pytest.MonkeyPatch, setting: str, loaded: bool
) -> None:
    monkeypatch.setenv(plugins.SETTING, setting)
    install("explainers", f"def add(): of('new')({GOOD})")
    assert ("new" in all_explainers()) is loaded
    [finding] = plugin_findings()
    assert ("not loaded, because of EXEGESIS_PLUGINS" in finding.detail) is not loaded


METRIC = """
from engine.metrics import catalog
def add():
    catalog.register(catalog.Metric('top', 'Top', 'high', 'score', 'The top.', '', '{needs}'))({body})
"""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("lambda scores, marks: float(np.abs(scores).max())", None),
        ("lambda scores, marks: None", "the metric has no value for this map"),
        ("lambda scores, marks: float('nan')", "metric top (from the package broken 2.0) gave nan"),
        ("lambda scores, marks: 1j", "metric top (from the package broken 2.0) gave 1j"),
        ("lambda scores, marks: 10**400", "metric top (from the package broken 2.0) gave 1000"),
        ("lambda scores, marks: 'high'", "metric top (from the package broken 2.0) gave 'high'"),
        ("lambda scores, marks: 1 / 0", "metric top: failed (ZeroDivisionError"),
    ],
)
def test_a_metric_gives_values_or_reasons(install: Install, body: str, value: str | None) -> None:
    install("metrics", METRIC.format(needs="nothing", body=body))
    assert metric("top").package == "broken 2.0"
    cost = {"gradient": (1, 0.1), "random": (0, 0.0)}
    maps = [np.array([1.0, -3.0]), np.array([2.0, 0.5, 0.0])]
    examples = [
        UnitScores(at, {"gradient": one, "random": one}, {}, cost, "no marks", np.zeros(len(one), dtype=int), (0,))
        for at, one in enumerate(maps)
    ]
    measured = Measurements("model", "data")
    measure_maps(EvaluationPlan(("model",), "data", ("gradient",), ("top", "evaluations")), examples, measured)
    values = [row.value for row in measured.rows if (row.of.method, row.of.metric) == ("gradient", "top")]
    reasons = {skip.reason for skip in measured.skips if (skip.of.method, skip.of.metric) == ("gradient", "top")}
    assert values == ([] if value else [3.0, 2.0])
    assert {reason[: len(value or "")] for reason in reasons} == ({value} if value else set())
    assert sum(row.of.metric == "evaluations" for row in measured.rows) == 4


def test_a_metric_that_needs_more_than_maps_and_marks_is_refused(install: Install) -> None:
    install("metrics", METRIC.format(needs="removal", body="print"))
    assert "top" not in METRICS
    assert "needs of metric top: must be one of nothing, marks" in told("metrics")


DATASET = """
from engine.data import datasets
from engine.data.registry import DatasetCard
card = DatasetCard(*'abcdefgh')
def add():
    datasets.register('{name}', {card})(lambda request: {body})
"""


def test_a_dataset_that_fails_is_named_as_the_packages(install: Install) -> None:
    install("datasets", DATASET.format(name="new", card="card", body="[][1]"))
    assert dataset_names()[-1] == "new"
    with pytest.raises(ExegesisError, match=r"^dataset new: failed \(IndexError.* from the package broken 2\.0"):
        load("new")
    assert load("reviews").label_names == SENTIMENT_LABELS


@pytest.mark.parametrize(
    ("name", "card", "why"),
    [("reviews", "card", "'reviews' is registered twice"), ("new", "None", "card of new: must be a DatasetCard")],
)
def test_a_dataset_that_cannot_be_registered(install: Install, name: str, card: str, why: str) -> None:
    install("datasets", DATASET.format(name=name, card=card, body="None"))
    assert registered_name("new") is None
    assert why in told("datasets")


def test_a_wrong_dataset_is_refused(install: Install) -> None:
    install("datasets", DATASET.format(name="new", card="card", body="[1, 2]"))
    with pytest.raises(ExegesisError, match=r"^dataset new: wrong result \(must be a Dataset or an ImageDataset, got"):
        load("new")


def test_a_family_is_known_until_its_plugin_fails(install: Install) -> None:
    code = """
from engine.models.adapters import ADAPTERS, register_family
def add():
    register_family("mine", replace(ADAPTERS["bert"], family="Mine"))
    register_family("bert", ADAPTERS["bert"])
"""
    install("models", code)
    with pytest.raises(ExegesisError, match="its type 'mine' is not supported"):
        adapter_for("mine", "x")
    assert "model family 'bert' is registered twice" in told("models")
    assert ADAPTERS["bert"].family == "BERT"


def of_version(version: str) -> dict[str, tuple[str, ...]]:
    """What the package adds to the server."""
    return {f"broken {version}": ("new",)}


@pytest.mark.parametrize(
    ("code", "setting", "expected", "why"),
    [
        (f"def add(): of('new')({GOOD})", "", {"other 1.0": ("gini",)}, r"other 1.0 \(gini\) is not installed there"),
        (f"def add(): of('new')({GOOD})", "", of_version("3.0"), r"3.0 \(new\) is there in another version, 2.0"),
        (
            f"def add(): of('new')({GOOD})",
            "off",
            of_version("2.0"),
            r"2.0 \(new\) is left out there by EXEGESIS_PLUGINS",
        ),
        (f"def add(): of('old')({GOOD})", "", of_version("2.0"), r"2.0 \(new\) adds something else there"),
        ("1 / 0", "", of_version("2.0"), r"2.0 \(new\) does not work there: .*\(ZeroDivisionError: division by zero\)"),
    ],
)
def test_a_worker_that_lacks_what_a_package_adds_to_the_server_says_which_and_why(
    install: Install, monkeypatch: pytest.MonkeyPatch, code: str, setting: str, expected: dict[str, Any], why: str
) -> None:
    install("explainers", code)
    monkeypatch.setenv(plugins.SETTING, setting)
    task = NoWork()
    with pytest.raises(
        ExegesisError, match=rf"^worker \S+: the plugin .*{why}.*Install the same version on each worker"
    ):
        cluster._run(task, cluster.WorkerSettings("cpu", False, "", expected))
    assert not task.runs


def test_a_worker_with_the_same_plugin_runs_the_task(install: Install) -> None:
    install("explainers", f"def add(): of('new')({GOOD}); of('newer')({GOOD})")
    load_plugins()
    assert (expected := plugins.additions()) == {"broken 2.0": ("new", "newer")}
    task = NoWork()
    assert cluster._run(task, cluster.WorkerSettings("cpu", False, "", expected)) == {"entry": b""}
    assert task.runs == 1


class NoWork:
    """A task that only counts how often it runs."""

    key, size, runs = "key", 1, 0

    def run(self) -> cluster.CacheEntries:
        self.runs += 1
        return {"entry": b""}
