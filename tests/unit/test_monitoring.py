"""The health check, the metrics and the log of a server: their formats, their numbers, and who may read them."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import monitoring
from components.server import middleware
from engine import jobs
from engine.access import MONITORS
from engine.errors import UsageError
from engine.explain import explain
from engine.monitoring import metrics_text
from engine.request import Example, Request
from engine.store import result_store
from engine.study.database import ADDRESS
from engine.telemetry import LOG_FORMAT, OWN_LOGGERS, JsonFormatter, configure_logging, counts, log_event
from tests.explaining import checkpoint

pytestmark = pytest.mark.usefixtures("home")

SAMPLE = re.compile(r'(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>\w+="(?:[^"\\\n]|\\[\\"n])*")\})? (?P<value>[-+.\de]+)')
SECRET = "the participant wrote this"

Client = Callable[..., TestClient]
Lines = Callable[[], list[dict[str, object]]]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    def opened(address: str = "127.0.0.1", host: str = "localhost") -> TestClient:
        monkeypatch.setattr(monitoring, "_readiness", monitoring._Readiness())
        app = Starlette(routes=[*monitoring.monitoring_routes()], middleware=middleware())
        return TestClient(app, base_url=f"http://{host}:8501", client=(address, 4000))

    return opened


def samples(text: str) -> dict[tuple[str, str], float]:
    """The samples of the text format by name and label; every line must be of the grammar."""
    types = dict(line.split(" ")[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert set(types.values()) <= {"counter", "gauge", "summary"}
    found = {}
    for line in (line for line in text.splitlines() if not line.startswith("#")):
        match = SAMPLE.fullmatch(line)
        assert match, line
        assert match["name"] in types or match["name"].removesuffix("_sum").removesuffix("_count") in types
        found[match["name"], match["labels"] or ""] = float(match["value"])
    assert text.endswith("\n")
    return found


def test_a_ready_server_says_so_and_names_its_checks_to_this_machine_alone(client: Client) -> None:
    here = client().get("/healthz")
    assert (here.status_code, here.json()["status"]) == (200, "ready")
    assert [check["name"] for check in here.json()["checks"]] == ["cache", "home", "database"]
    assert here.headers["cache-control"] == "no-store"
    for other in (
        client("203.0.113.7", "exegesis.example.org").get("/healthz"),
        client().get("/healthz", headers={"X-Forwarded-For": "203.0.113.7"}),
    ):
        assert (other.status_code, other.json()) == (200, {"status": "ready"})


def test_a_home_that_cannot_be_written_and_a_database_that_does_not_answer_are_not_ready(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install '.[postgres]'")
    with monkeypatch.context() as patch:
        patch.setenv(ADDRESS, "postgresql://user:hidden@127.0.0.1:9/exegesis?connect_timeout=1")
        found = client().get("/healthz")
    assert (found.status_code, found.json()["status"]) == (503, "unavailable")
    [database] = [check for check in found.json()["checks"] if check["status"] == "broken"]
    assert database["name"] == "database"
    assert "hidden" not in found.text
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    found = client().get("/healthz")
    assert found.status_code == 503
    assert {check["name"] for check in found.json()["checks"] if check["status"] == "broken"} >= {"cache", "home"}


def test_metrics_are_for_this_machine_and_the_networks_of_the_variable(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client().get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert client("10.1.2.3", "exegesis").get("/metrics").status_code == 403
    monkeypatch.setenv(MONITORS, "10.0.0.0/8 fd00::/8")
    assert client("10.1.2.3", "exegesis").get("/metrics").status_code == 200
    assert client("::ffff:10.1.2.3", "exegesis").get("/metrics").status_code == 200
    assert client("192.168.1.1", "exegesis").get("/metrics").status_code == 403
    for address, status in (("192.168.1.1", 403), ("10.1.2.3", 404), ("127.0.0.1", 404)):  # 404: no Streamlit here
        host = "localhost" if address.startswith("127") else "exegesis"
        assert client(address, host).get("/_stcore/metrics").status_code == status
    proxied = client("10.1.2.3", "exegesis").get("/metrics", headers={"X-Forwarded-For": "10.1.2.3"})
    assert proxied.status_code == 403, "the proxy is in the network, whoever asks it"
    monkeypatch.setenv(MONITORS, "10.0.0.0/8,10.1.2.3")
    with pytest.raises(UsageError, match=r"EXEGESIS_MONITORS: must be networks such as 10.0.0.0/8"):
        client()


def test_metrics_count_what_was_done(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    before = samples(metrics_text())
    asked = Request(str(checkpoint("bert")), "gradient_l2", Example("a warm film"))
    [first, second] = [explain(asked), explain(asked)]
    assert (first.cached, second.cached) == (False, True)
    spec = {"model": asked.model, "methods": ["gradient_l2"], "examples": [{"text": "a warm film"}]}
    jobs.run_now(jobs.create("explain", spec))
    jobs.create("explain", spec)
    server = client()
    assert server.get("/nothing").status_code == 404
    after = samples(server.get("/metrics").text)

    def grown(name: str, labels: str = "") -> float:
        return after[name, labels] - before.get((name, labels), 0.0)

    by_method = 'method="gradient_l2"'
    assert grown("exegesis_explanation_seconds_count", by_method) == 1
    assert grown("exegesis_explanation_seconds_sum", by_method) == pytest.approx(first.seconds)
    assert grown("exegesis_http_requests_total", 'status="4xx"') == 1
    stats = result_store().stats()
    assert (after["exegesis_cache_hits_total", ""], after["exegesis_cache_bytes", ""]) == (stats.hits, stats.bytes)
    states = {labels: value for (name, labels), value in after.items() if name == "exegesis_jobs"}
    assert {'state="done"': 1.0, 'state="queued"': 1.0, 'state="failed"': 0.0}.items() <= states.items()
    assert after["exegesis_device_queue", ""] == 0
    assert after["exegesis_home_free_bytes", ""] > 0
    assert after["process_resident_memory_bytes", ""] > 10**7


def test_an_open_page_is_counted_while_it_is_open() -> None:
    def pages() -> float:
        return sum(counts.sums("exegesis_open_pages").values())

    seen: list[float] = []

    async def page(scope: object, receive: object, send: object) -> None:
        seen.append(pages())
        raise RuntimeError("it breaks")

    before = pages()
    # In a thread of its own: one in which Playwright has run has a loop already.
    with ThreadPoolExecutor(1) as thread, pytest.raises(RuntimeError, match="it breaks"):
        thread.submit(anyio.run, monitoring.CountRequests(page), {"type": "websocket"}, None, None).result()
    assert (seen, pages()) == ([before + 1], before)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv(LOG_FORMAT, "json")
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in OWN_LOGGERS}
    configure_logging()
    yield lambda: [json.loads(line) for line in stderr.getvalue().splitlines() if line.startswith("{")]
    root.handlers[:] = [one for one in root.handlers if not isinstance(one.formatter, JsonFormatter)]
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_the_log_is_a_json_object_a_line_without_texts(lines: Lines) -> None:
    spec = {"model": str(checkpoint("bert")), "methods": ["gradient_l2"], "examples": [{"text": SECRET}]}
    job = jobs.run_now(jobs.create("explain", spec))
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("exegesis.study").exception("an answer of %s could not be saved", SECRET)
    found = lines()
    assert [line["event"] for line in found] == [
        "job started", "explained", "job ended", "an answer of %s could not be saved",
    ]  # fmt: skip
    started, explained, ended, error = found
    assert {"level", "time", "logger", "process"} <= started.keys()
    assert str(started["time"]).endswith("+00:00")
    assert (started["job"], started["kind"]) == (job.id, "explain")
    assert (explained["model"], explained["method"], explained["examples"]) == (spec["model"], "gradient_l2", 1)
    assert (ended["state"], ended["total"], ended["computed"], ended["failed"]) == ("done", 1, 1, 0)
    assert (error["level"], error["error"]) == ("error", "ValueError")
    assert str(error["at"]).startswith("['test_monitoring.py:")
    assert SECRET not in json.dumps(found)


def test_events_are_silent_by_default_and_another_format_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(LOG_FORMAT, raising=False)
    configure_logging()
    log_event(logging.getLogger("exegesis.test"), "nothing to see", job=1)
    assert not caplog.records
    with caplog.at_level(logging.INFO, "exegesis"):
        log_event(logging.getLogger("exegesis.test"), "seen", job=1, state="100%s")
    assert caplog.messages == ["seen job=1 state=100%s"]
    assert json.loads(JsonFormatter().format(caplog.records[0]))["state"] == "100%s"
    monkeypatch.setenv(LOG_FORMAT, "jsn")
    with pytest.raises(UsageError, match=r"EXEGESIS_LOG_FORMAT: unknown name 'jsn'. Did you mean 'json'\?"):
        configure_logging()
