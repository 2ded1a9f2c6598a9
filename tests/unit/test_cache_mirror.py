"""The copy of the cache on shared storage: the owner writes it, workers read it, and damage is a miss."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.cache_mirror import MIRROR, mirror_at, reading_mirror
from engine.errors import UsageError
from engine.explain import explain
from engine.jobs.cluster import worker_cache
from engine.request import Example, Request
from engine.store import result_store
from engine.telemetry import JsonFormatter
from tests.explaining import checkpoint

pytestmark = pytest.mark.usefixtures("home")


def flush(address: str) -> None:
    """Wait until all that was put is written: the writer has one thread."""
    mirror_at(address).write("flush", b"").result(timeout=10.0)


@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_a_worker_reads_what_the_owner_wrote_and_writes_nothing(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{protocol}://{tmp_path}/mirror"
    request = Request(str(checkpoint("bert")), "gradient_l2", Example("a warm film"))
    monkeypatch.setenv(MIRROR, address)
    own = explain(request)
    flush(address)
    with monkeypatch.context() as patch, worker_cache() as entries, reading_mirror(address):
        patch.setattr("engine.explain.load_classifier", lambda *given: pytest.fail("a model was run"))
        there = explain(request)
    assert there.cached
    assert np.array_equal(there.scores, own.scores)
    assert len(entries) == 1, "it is handed over, for the owner may have dropped it"
    with worker_cache() as entries, reading_mirror(address):
        result_store().put("new", {"made": "by a worker"}, {})
    flush(address)
    assert mirror_at(address).read("new") is None
    with worker_cache():
        assert result_store().get(next(iter(entries))) is None, "only where it is told to"


def test_a_damaged_entry_and_a_storage_that_fails_are_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"file://{tmp_path}/mirror"
    monkeypatch.setenv(MIRROR, address)
    result_store().put("abc", {"number": 1}, {})
    flush(address)
    file = tmp_path / "mirror" / "ab" / "abc"
    with worker_cache(), reading_mirror(address):
        assert result_store().get("abc") == ({"number": 1}, {})
    body = file.read_bytes()
    file.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    file.with_name("abd").write_bytes(body)
    with worker_cache(), reading_mirror(address):
        assert result_store().get("abc") is None
        assert not result_store().contains("abd"), "an entry under the key of another"
    file.unlink()
    file.mkdir()
    with worker_cache(), reading_mirror(address):
        assert result_store().get("abc") is None
    assert result_store().put("abc", {"number": 2}, {}), "the cache itself works"
    flush(address)


def test_an_address_that_cannot_be_opened_is_refused() -> None:
    with pytest.raises(UsageError, match=r"EXEGESIS_CACHE_MIRROR: cannot be opened, got .*nowhere://x"):
        mirror_at("nowhere://x")


def test_a_login_in_the_address_is_never_printed() -> None:
    with pytest.raises(UsageError, match=r"got 'nowhere://host/x'") as error:
        mirror_at("nowhere://user:hunter2@host/x")
    assert "hunter2" not in str(error.value)


def test_a_server_starts_only_if_it_can_write_there(tmp_path: Path) -> None:
    mirror_at(str(tmp_path / "new" / "folder")).check()
    assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"EXEGESIS_CACHE_MIRROR: cannot be written, got .* Check the address"):
        mirror_at(f"file://{tmp_path}/file/below").check()


def test_a_failure_of_the_storage_has_its_reason_in_the_json_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    mirror_at(f"file://{tmp_path}/file/below").write("abc", b"").result(timeout=10.0)
    [record] = [one for one in caplog.records if one.name == "exegesis.mirror"]
    line = json.loads(JsonFormatter().format(record))
    assert (line["event"], line["level"]) == ("the cache mirror cannot be written", "warning")
    assert line["error"] in ("NotADirectoryError", "FileExistsError")
