"""The device that a training runs on."""

from __future__ import annotations

import os
import platform

import torch

from engine import runtime
from engine.errors import not_allowed


def device_named(name: str) -> str:
    """`auto` is what `EXEGESIS_DEVICE` names, else the best device that is there; one that is not there is refused."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto" and os.environ.get("EXEGESIS_DEVICE"):
        return str(runtime.device())
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available.get(name):
        raise not_allowed("device", "one of " + ", ".join(k for k, ok in available.items() if ok), name)
    return name


def machine_name(device: torch.device) -> str:
    """The device in words, as cards state it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = min(cores or 1, torch.get_num_threads())
    return f"{threads} CPU thread{'s' if threads > 1 else ''} ({platform.machine()})"
