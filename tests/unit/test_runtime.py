"""The choice of the device."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import runtime
from engine.errors import UsageError


@pytest.fixture(autouse=True)
def forget_the_device() -> Iterator[None]:
    runtime.device.cache_clear()
    yield
    runtime.device.cache_clear()


def test_the_named_device_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    assert runtime.device().type == "cpu"


@pytest.mark.parametrize(
    ("name", "said"),
    [("toaster", "must be a device such as cpu or cuda:0, got 'toaster'"), ("meta", "meta cannot be used here"),
     ("cuda:99", "cuda:99 cannot be used here")],
)  # fmt: skip
def test_a_device_that_cannot_be_used_is_refused(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", name)
    with pytest.raises(UsageError, match=said):
        runtime.device()
