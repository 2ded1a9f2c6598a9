"""Jobs on a Ray cluster, started as pages start them: all kinds, a lost node, a lost head, and no cluster at all."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import engine.jobs.cluster as cluster_work
from engine import jobs, plugins, runtime
from engine.behavior.plan import DELETE, BehaviorPlan
from engine.errors import ExegesisError
from engine.evaluation import experiment as evaluation
from engine.evaluation.plan import EvaluationPlan
from engine.experiments import base, example_jobs
from engine.experiments.run import finished, rows_of
from engine.jobs import runner
from engine.jobs.cluster import RAY_ADDRESS, EndedTask, run_tasks_apart
from engine.jobs.cluster_tasks import cluster_tasks
from engine.jobs.kinds import MODULES, ClusterEstimate, kind_of
from engine.progress import CancelToken
from engine.randomization.plan import RandomizationPlan
from engine.store import result_store
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.vision.tiny_vit import save_vit

EXAMPLES = [{"text": text} for text in ("a warm film", "a cold film", "no film at all")]


@pytest.fixture
def data(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


def spec_of(plan: Any) -> dict[str, Any]:
    return dict(plan.as_plain())


class WorkersHere:
    """Stands for `run_tasks_apart` with one worker, in this process."""

    def __init__(self, fails: Callable[[Any], bool] = lambda task: False) -> None:
        self.fails, self.addresses, self.count = fails, list[str](), 0

    def __call__(self, tasks: Any, address: str) -> Iterator[list[EndedTask]]:
        self.addresses.append(address)
        yield []
        for place, task in enumerate(tasks):
            self.count += 1
            yield [EndedTask(place, None, "OSError: no room") if self.fails(task) else EndedTask(place, task.run())]


def on_workers(monkeypatch: pytest.MonkeyPatch, **options: Any) -> WorkersHere:
    workers = WorkersHere(**options)
    monkeypatch.setenv(RAY_ADDRESS, "10.0.0.1:6379")
    monkeypatch.setattr(runner, "run_tasks_apart", workers)
    return workers


def run_job(kind: str, spec: Mapping[str, Any]) -> jobs.Job:
    return jobs.wait(jobs.submit(kind, spec).id, 300.0)


def test_every_kind_of_job_names_its_tasks_or_has_batches() -> None:
    """What has none of its own sends its batches; docs/deploying.md says what stays on this machine."""
    by_batches = {id for id in {*MODULES, *base.MODULES} if kind_of(id).tasks is None}
    assert by_batches == {"explain", "predict", "compare", "empirical"}


def test_units_of_an_explain_job_go_out_in_batches_and_run_nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2", "occlusion"], "examples": EXAMPLES}
    alone = run_job("explain", spec)
    assert (alone.state, alone.computed) == ("done", 6)
    keys = [unit.key for unit in kind_of("explain").plan(spec)]
    expected = [entry[1]["scores"] for key in keys if (entry := result_store().get(key))]
    result_store().clear()
    workers = on_workers(monkeypatch)
    monkeypatch.setattr(runner._Run, "_compute_alone", lambda run, unit: pytest.fail(f"{unit.label} was run here"))
    monkeypatch.setattr(runner._Run, "_compute_together", lambda run, group: pytest.fail("a batch was run here"))
    ended = jobs.run_now(jobs.create("explain", spec))  # the worker's home is the process's: nobody else may look
    assert (ended.state, ended.total, ended.done, ended.computed, ended.failed) == ("done", 6, 6, 6, 0), ended.error
    assert (workers.addresses, workers.count) == (["10.0.0.1:6379"], 2), "a task a method"
    got = [entry[1]["scores"] for key in keys if (entry := result_store().get(key))]
    assert [one.tolist() for one in got] == [pytest.approx(one.tolist(), abs=1e-6) for one in expected]
    assert cluster_tasks(kind_of("explain"), spec, list(kind_of("explain").plan(spec))) == []


def test_what_fails_there_is_tried_here_so_that_its_reason_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2", "occlusion"], "examples": EXAMPLES}
    keys = [unit.key for unit in kind_of("explain").plan(spec)]
    on_workers(monkeypatch, fails=lambda task: keys[0] in task.units)
    explain_many = example_jobs.explain_many

    def failing(requests: Any) -> Any:
        if any((one.method, one.example.text) == ("gradient_l2", "a cold film") for one in requests):
            raise ExegesisError("this unit fails")
        return explain_many(requests)

    monkeypatch.setattr(example_jobs, "explain_many", failing)
    ended = jobs.run_now(jobs.create("explain", spec))
    assert (ended.state, ended.done, ended.computed, ended.failed) == ("failed", 6, 5, 1)
    assert ended.note == "3 units failed on the cluster and ran here. The first: OSError: no room"
    assert [(one.label, one.error) for one in jobs.failures(ended.id)] == [
        ("gradient_l2, example 2", "this unit fails")
    ]


class RayHere:
    """Stands for Ray with one worker, in this process, which runs a task when its result is awaited."""

    class exceptions:
        RayError = ExegesisError

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def remote(self, **options: Any) -> Callable[[Any], Any]:
        return lambda function: SimpleNamespace(remote=lambda *given: partial(function, *given))

    def wait(self, waiting: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return waiting[:1], waiting[1:]

    def get(self, reference: Callable[[], Any]) -> Any:
        return reference()


def test_what_fails_for_a_command_is_a_note_that_names_the_worker_and_the_plugin(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(cluster_work, "_cluster", lambda address: nullcontext(RayHere()))
    monkeypatch.setattr(plugins, "additions", lambda: {"example 0.1": ("gini",)})
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2"], "examples": EXAMPLES}
    tasks = cluster_tasks(kind_of("explain"), spec, list(kind_of("explain").plan(spec)))
    with runtime.noting() as notes, monkeypatch.context() as patch:
        patch.setattr(cluster_work.WorkerSettings, "of_this_process", lambda: LACKING)
        cluster_work.run_tasks(tasks, "10.0.0.1:6379", lambda *given: None, CancelToken())
    assert notes == [
        f"3 examples failed on the cluster and ran here. The first: worker {socket.gethostname()}: the plugin "
        "absent 0.1 (gini) is not installed there. Install the same version on each worker of the cluster."
    ]
    assert cluster_work.pending(tasks) == tasks
    assert cluster_work.WorkerSettings.of_this_process().plugins == {"example 0.1": ("gini",)}


LACKING = cluster_work.WorkerSettings("cpu", False, "", {"absent 0.1": ("gini",)})


def test_a_job_on_a_cluster_is_canceled_between_two_tasks_and_keeps_what_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2", "occlusion"], "examples": EXAMPLES}
    token = CancelToken()
    workers = on_workers(monkeypatch)
    ended = jobs.run_now(jobs.create("explain", spec), lambda done, *_: token.cancel() if done else None, token)
    assert (ended.state, ended.done, ended.computed, workers.count) == ("cancelled", 3, 3, 2)
    left = cluster_tasks(kind_of("explain"), spec, list(kind_of("explain").plan(spec)))
    assert [task.size for task in left] == [3], "a task that ended is not sent again"


def test_a_cluster_that_cannot_be_reached_fails_the_job_in_one_sentence_and_it_resumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(RAY_ADDRESS, "127.0.0.1:9")
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2"], "examples": EXAMPLES}
    ended = run_job("explain", spec)
    assert (ended.state, ended.failed, ended.computed) == ("failed", 0, 0)
    assert ended.error.startswith("EXEGESIS_RAY_ADDRESS: no Ray cluster answers at 127.0.0.1:9 (")
    assert ended.error.endswith(" Start one: ray start --head.")
    monkeypatch.delenv(RAY_ADDRESS)
    jobs.resume(ended.id)
    assert jobs.wait(ended.id, 60.0).state == "done"


def test_the_driver_has_no_secret_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in cluster_work.SECRETS:
        monkeypatch.setenv(name, "hidden")
    seen: dict[str, str] = {}
    popen = cluster_work.subprocess.Popen

    def noted(command: Any, **options: Any) -> Any:
        seen.update(options["env"])
        return popen(command, **options)

    monkeypatch.setattr(cluster_work.subprocess, "Popen", noted)
    monkeypatch.setattr(cluster_work, "DRIVER", "no_such_module")
    with cluster_work._driver([], "10.0.0.1:1"):
        pass
    assert seen["PATH"] == os.environ["PATH"]
    assert "hidden" not in seen.values()


def test_a_driver_that_ends_is_a_lost_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_work, "DRIVER", "no_such_module")
    monkeypatch.setattr(cluster_work, "_check_reachable", lambda *given: None)
    with pytest.raises(ExegesisError, match=r"The Ray cluster at 10.0.0.1:1 was lost. .* resume the job"):
        list(run_tasks_apart([], "10.0.0.1:1"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow(reason="starts a Ray cluster")
def test_jobs_of_pages_on_a_cluster_that_loses_a_node_and_then_its_head(
    ray_cluster: Any, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "GROUP_SIZE", 1)
    ray_cluster.add_node(num_cpus=1)
    lost = ray_cluster.add_node(num_cpus=1)
    address = ray_cluster.address
    monkeypatch.setenv(RAY_ADDRESS, address)
    model, vit = (str(checkpoint("bert", 2)),), str(save_vit(tmp_path / "vit"))
    plans = {
        "evaluate": EvaluationPlan(model, data, ("gradient_x_input", "occlusion"), ("comprehensiveness", "complexity")),
        "randomize": RandomizationPlan(model, data, ("gradient_l2",), modes=("cascading",), seeds=1),
        "behavior": BehaviorPlan((vit,), "scenes:count=6", ("gradient_x_input",), examples=2, edit=DELETE, margin=0),
    }
    with monkeypatch.context() as patch:
        patch.setattr("engine.explain.load_classifier", lambda *given: pytest.fail("a model was run here"))
        first, removed, end = threading.Event(), threading.Event(), ClusterEstimate.end
        labels: list[str] = []

        def end_and_wait(estimate: ClusterEstimate, size: int) -> None:
            end(estimate, size)
            labels.append(estimate.label())
            first.set()
            removed.wait(60.0)

        patch.setattr(ClusterEstimate, "end", end_and_wait)
        job = jobs.submit("evaluate", spec_of(plans["evaluate"]))
        assert first.wait(300.0), "a task ends on the cluster"
        assert jobs.get(job.id).state == "running"
        assert labels[0].startswith("on the cluster, 1 of ")
        ray_cluster.remove_node(lost, allow_graceful=False)
        removed.set()
        ended = {"evaluate": jobs.wait(job.id, 300.0)}
    for kind in ("randomize", "behavior"):
        ended[kind] = run_job(kind, spec_of(plans[kind]))
    assert {kind: (job.state, job.failed) for kind, job in ended.items()} == dict.fromkeys(plans, ("done", 0))
    there = {kind: finished(plan) for kind, plan in plans.items()}
    assert None not in there.values()
    result_store().clear()
    monkeypatch.delenv(RAY_ADDRESS)
    for kind, plan in plans.items():
        assert run_job(kind, spec_of(plan)).state == "done"
        assert numbers(there[kind]) == pytest.approx(numbers(finished(plan)), abs=1e-5)

    monkeypatch.setenv(RAY_ADDRESS, address)
    result_store().clear()
    first, killed = threading.Event(), threading.Event()

    def end_and_wait_for_the_kill(estimate: ClusterEstimate, size: int) -> None:
        end(estimate, size)
        first.set()
        killed.wait(60.0)

    monkeypatch.setattr(ClusterEstimate, "end", end_and_wait_for_the_kill)
    job = jobs.submit("evaluate", spec_of(plans["evaluate"]))
    assert first.wait(300.0), "a task ends on the cluster"
    ray_cluster.head_node.kill_gcs_server()
    # Nodes that have tasks finish them without the head: the next look at it must come before the last of them ends.
    monkeypatch.setattr(cluster_work, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(cluster_work, "PROBES", 1)
    killed.set()
    failed = jobs.wait(job.id, 120.0)
    assert (failed.state, failed.error) == ("failed", str(cluster_work._lost_cluster(address)))
    assert failed.done > 0, "what was finished stays"
    stop_headless(ray_cluster)
    monkeypatch.delenv(RAY_ADDRESS)
    jobs.resume(job.id)
    assert jobs.wait(job.id, 120.0).state == "done"


def stop_headless(ray_cluster: Any) -> None:
    """End a cluster without a head at once: its own shutdown would wait for the head, for minutes."""
    for node in (*ray_cluster.worker_nodes, ray_cluster.head_node):
        node.kill_all_processes(check_alive=False, allow_graceful=False)
    ray_cluster.worker_nodes.clear()
    ray_cluster.head_node = None


def numbers(result: Any) -> list[float]:
    return [row["value"] for row in rows_of(result) if row["value"] is not None]
