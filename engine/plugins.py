"""Plugins: installed packages that add explainers, metrics, model families and data sets.

A package names functions without arguments in the entry points `exegesis.explainers`, `exegesis.metrics`,
`exegesis.models` and `exegesis.datasets`. Each registers its additions with the functions that the project itself
uses. A group is loaded when its registry is first read, in every process. A plugin is installed code: it runs with the
permissions of this process. `EXEGESIS_PLUGINS=off` loads none.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError, UsageError, excerpt
from engine.lazy import LazyModule

if TYPE_CHECKING:
    from engine import runtime
else:  # it needs torch to recognize out-of-memory errors
    runtime = LazyModule("engine.runtime")

SETTING = "EXEGESIS_PLUGINS"
"""Packages whose plugins are loaded: `off` for none, or comma-separated names. If it is not set, all are loaded."""
OFF = ("off", "0", "none", "no", "false")
GROUPS = ("explainers", "metrics", "models", "datasets")
PREFIX = "exegesis."
NAME = re.compile(r"[A-Za-z][\w.-]{0,63}")
"""Names that a plugin may register; they are used in links, options and files."""


@dataclass
class Plugin:
    """An entry point of a package, and the result of loading it.

    `added`: the names that it registered. `error`: the reason why it added nothing, else "". `skipped`: whether
    `EXEGESIS_PLUGINS` excludes it.
    """

    group: str
    name: str
    package: str
    version: str
    added: tuple[str, ...] = ()
    error: str = ""
    skipped: bool = False
    seconds: float = 0.0
    undo: list[Callable[[], object]] = field(default_factory=list, repr=False)

    @property
    def source(self) -> str:
        """The package with its version, as in cache keys and results."""
        return f"{self.package} {self.version}"

    @property
    def entry_point(self) -> str:
        """The entry point, as the package declares it."""
        return f"{PREFIX}{self.group}: {self.name}"

    def failure(self, what: str, error: object) -> ExegesisError:
        """Return the error for a failure of this plugin, with the next step."""
        words = str(error) if isinstance(error, str | ExegesisError) else f"{type(error).__name__}: {error}"
        return ExegesisError(f"{what} ({words.strip().rstrip('.')[:300]}). {self.next_step}")

    @property
    def next_step(self) -> str:
        """What to do about a plugin that does not work."""
        return (
            f"It is from the package {self.source} (entry point {self.entry_point}), not part of Exegesis: update it, "
            f"uninstall it (pip uninstall {self.package}), or start with {SETTING}=off, or with {SETTING} set to the "
            "names of the packages to load."
        )


_current: ContextVar[Plugin | None] = ContextVar("exegesis_plugin", default=None)
_lock = threading.RLock()
_started: set[str] = set()
_finished: set[str] = set()
_plugins: dict[str, list[Plugin]] = {group: [] for group in GROUPS}


def load(group: str) -> None:
    """Run the entry points of a group, once per process. One that fails adds nothing, and the others still run.

    Call it before a registry is read and after the project's own entries are registered: plugins cannot replace them.
    """
    if group in _finished:
        return
    with _lock:
        if group in _started:  # a lookup by a plugin while it registers
            return
        _started.add(group)
        for plugin, entry in _entry_points(group):
            _plugins[group].append(plugin)
            if not plugin.skipped:
                _run(plugin, entry)
        _finished.add(group)


def plugins() -> list[Plugin]:
    """List the entry points of the groups that were loaded so far, by group."""
    return [plugin for group in GROUPS for plugin in _plugins[group]]


def additions() -> dict[str, tuple[str, ...]]:
    """List the names that each package added so far, by package and version."""
    names: dict[str, tuple[str, ...]] = {}
    for plugin in plugins():
        if plugin.added:
            names[plugin.source] = tuple(dict.fromkeys((*names.get(plugin.source, ()), *plugin.added)))
    return names


def check_additions(expected: Mapping[str, Sequence[str]]) -> None:
    """Refuse to run in a process that lacks additions of another process. `expected`: the `additions` of that process.

    Load all groups first. Errors: the first package that is missing, has another version, or adds less here.
    """
    here = additions()
    for source, names in expected.items():
        if missing := [name for name in names if name not in here.get(source, ())]:
            raise UsageError(
                f"the plugin {source} ({', '.join(missing)}) {_why_missing(source)}. "
                "Install the same version on each worker of the cluster."
            )


def _why_missing(source: str) -> str:
    package = source.rpartition(" ")[0]
    own = [plugin for plugin in plugins() if _normal(plugin.package) == _normal(package)]
    if not own:
        return "is not installed there"
    if own[0].source != source:
        return f"is there in another version, {own[0].version}"
    if all(plugin.skipped for plugin in own):
        return f"is left out there by {SETTING}"
    error = next((plugin.error for plugin in own if plugin.error), "")
    return f"does not work there: {error.rstrip('.')}" if error else "adds something else there"


def _entry_points(group: str) -> Iterator[tuple[Plugin, importlib.metadata.EntryPoint]]:
    allowed = os.environ.get(SETTING, "").strip().lower()
    names = {_normal(name) for name in allowed.split(",") if name.strip()}
    entries = importlib.metadata.entry_points(group=PREFIX + group)
    for entry in sorted(entries, key=lambda one: (_package(one)[0], one.name)):
        package, version = _package(entry)
        skipped = allowed in OFF or (bool(names) and _normal(package) not in names)
        yield Plugin(group, entry.name, package, version, skipped=skipped), entry


def _package(entry: importlib.metadata.EntryPoint) -> tuple[str, str]:
    return (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "?")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _run(plugin: Plugin, entry: importlib.metadata.EntryPoint) -> None:
    token, started = _current.set(plugin), time.perf_counter()
    try:
        function = entry.load()
        if not callable(function):
            raise UsageError(f"{entry.value} must be a function without arguments, got {type(function).__name__}")
        function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # anything else it raises is its failure; the others still load
        for undo in reversed(plugin.undo):
            undo()
        plugin.added = ()
        plugin.error = str(plugin.failure(f"plugins: {plugin.package} could not be loaded", error))
    finally:
        plugin.seconds = time.perf_counter() - started
        _current.reset(token)


def registering(group: str, name: str, undo: Callable[[], object]) -> Plugin | None:
    """Record that the plugin being loaded adds `name` to a registry, and return it; None if no plugin is being loaded.

    `undo`: removes the name if the plugin fails later. Errors: a name that is not valid in links and options, or an
    entry point of another group.
    """
    plugin = _current.get()
    if plugin is None:
        return None
    if plugin.group != group:
        raise UsageError(f"{name!r} belongs to {PREFIX}{group}, but was registered by {PREFIX}{plugin.group}")
    if not NAME.fullmatch(name):
        raise UsageError(f"a name must be letters, digits, dots, - and _, at most 64, got {excerpt(name)}")
    plugin.undo.append(undo)
    plugin.added = (*plugin.added, name)
    return plugin


@contextmanager
def failures_of(plugin: Plugin, what: str) -> Iterator[None]:
    """Turn any error in the block into one that names the plugin, except out of memory: the caller splits the work.

    `what`: the beginning of the sentence, such as "explainer length: failed".
    """
    try:
        yield
    except (ExegesisError, MemoryError):
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # plugin code may raise anything
        if runtime.out_of_memory(error):
            raise
        raise plugin.failure(what, error) from error


def guarded(function: Callable[..., Any], plugin: Plugin, what: str) -> Callable[..., Any]:
    """Wrap a function so that its errors name the plugin."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        with failures_of(plugin, what):
            return function(*args, **named)

    return call
