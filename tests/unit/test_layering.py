"""Imports run pages -> components -> engine -> cache and never back; nothing is ever unpickled."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import PACKAGES, ROOT, calls, imported, module_of, name_of, sources, tree

# What a package may import of ours, itself always included.
MAY_IMPORT = {
    "cache": set(),
    "engine": {"cache"},
    "components": {"engine", "cache"},
    "pages": {"components", "engine", "cache"},
    "exegesis": {"components", "engine", "cache"},
}
# A cached page opens without a model, so these load without the libraries that run one.
LIGHT = (
    "cache",
    "engine.request",
    "engine.result",
    "engine.params",
    "engine.errors",
    "engine.jobs",
    "engine.data",
    "engine.explainers",
    "engine.explain",
    "engine.heads.readings",
    "engine.heads.flow",
    "engine.heads.matrices",
    "engine.randomization.experiment",
    "engine.randomization.curves",
    "engine.corpus.experiment",
    "engine.significance.false_discovery",
)
SHARED_ROOMS = ("browse", "charts", "experiment", "inputs", "widgets")
"""Rooms of `components` that belong to no page."""
WRITES_LINKS = [
    ("components/ask/links.py", "components.adversarial.state"),
    ("components/ask/links.py", "components.attention.state"),
    ("components/ask/links.py", "components.compare.state"),
    ("components/ask/links.py", "components.images.state"),
    ("components/ask/links.py", "components.layers.state"),
    ("components/ask/links.py", "components.text.state"),
    ("components/library/cards.py", "components.scaffold.state"),
    ("components/library/jobs.py", "components.adversarial.state"),
    ("components/library/jobs.py", "components.compare.state"),
    ("components/library/jobs.py", "components.reproduction.state"),
    ("components/library/jobs.py", "components.scaffold.state"),
    ("components/reproduction/claim_view.py", "components.adversarial.state"),
    ("components/reproduction/claim_view.py", "components.scaffold.state"),
]
"""Links to pages that do not stand on the frame of experiments yet are written by the state of these pages."""
HEAVY = {"torch", "transformers", "captum", "peft"}
UNPICKLERS = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}

REPORT = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded_after(*modules: str) -> set[str]:
    """Top-level names in `sys.modules` after importing `modules` in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *modules],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def modules(*packages: str) -> list[str]:
    return [module_of(file) for file in sources(*packages) if file.stem != "__main__"]


def test_engine_and_cache_import_no_user_interface() -> None:
    names = modules("engine", "cache")
    assert {"engine.request", "engine.errors"} <= set(names)
    assert not loaded_after(*names) & {"streamlit", "altair", "plotly", "components", "exegesis", "pages"}


def test_the_python_interface_loads_without_pages_and_models() -> None:
    assert not loaded_after(*modules("exegesis"), "components.prediction_bars") & {
        *HEAVY,
        "streamlit",
        "pandas",
        "pages",
    }


def test_cache_imports_nothing_of_ours() -> None:
    assert not loaded_after(*modules("cache")) & {"engine", "components", "pages", "streamlit"}


def test_what_a_cached_page_needs_loads_without_the_model_libraries() -> None:
    assert not loaded_after(*LIGHT) & HEAVY


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package: str) -> None:
    forbidden = {*PACKAGES, "app", "tests", "benchmarks"} - MAY_IMPORT[package] - {package}
    if package in ("engine", "cache", "exegesis"):
        forbidden.add("streamlit")
    back = [
        f"{name_of(file)}:{line} imports {name}"
        for file in sources(package)
        for line, name in imported(file)
        if name.partition(".")[0] in forbidden
    ]
    assert not back


def room_of(module: str) -> str:
    """The room of a module of `components`, empty for what lies in front."""
    floor, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if floor == "components" and room and (ROOT / floor / room).is_dir() else ""


def test_the_room_of_a_page_imports_none_of_another_page() -> None:
    """What several pages use lies in front or in a shared room, which imports no page's room either."""
    across = {
        (name_of(file), name)
        for file in sources("components")
        for _, name in imported(file)
        if (room := room_of(name)) and room not in {*SHARED_ROOMS, room_of(module_of(file))}
    }
    assert across == set(WRITES_LINKS)


def defined(statements: list[ast.stmt]) -> Iterator[str]:
    """The names that a module has, those that it imports among them."""
    for one in statements:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield one.name
        elif isinstance(one, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in one.names)
        elif isinstance(one, ast.If | ast.Try):
            yield from defined([*one.body, *one.orelse])
        else:
            yield from (name.id for name in ast.walk(one) if isinstance(name, ast.Name))


def test_every_import_of_ours_finds_its_name() -> None:
    """The type checker is told to pass over modules that are missing, and does not read the tests."""
    names: dict[str, set[str]] = {}
    for file in sources():
        names.setdefault(module_of(file), set()).update(defined(tree(file).body))
        package, _, name = module_of(file).rpartition(".")
        names.setdefault(package, set()).add(name)
    lost = [
        f"{name_of(file)}:{node.lineno} {node.module}.{alias.name}"
        for file in sources()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in {*PACKAGES, "tests", "benchmarks"}
        for alias in node.names
        if alias.name not in names.get(str(node.module), ())
    ]
    assert not lost


def test_pages_do_not_import_each_other() -> None:
    found = [name_of(file) for file in sources("pages") for _, name in imported(file) if name.startswith("pages")]
    assert not found


def is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def unsafe(name: str, keywords: dict[str, ast.expr]) -> bool:
    """Whether a call could run code that a file brings along."""
    owner, _, function = name.rpartition(".")
    if owner in UNPICKLERS and function in {"load", "loads", "Unpickler"}:
        return True
    if name == "torch.load" and not is_true(keywords.get("weights_only")):
        return True
    return function in {"read_pickle", "read_hdf"} or any(
        is_true(keywords.get(word)) for word in ("trust_remote_code", "allow_pickle")
    )


def test_nothing_is_unpickled_and_no_remote_code_is_trusted() -> None:
    # A test may set off its own bomb, to show that it is a real one.
    found = [
        f"{name_of(file)}:{line} {name}"
        for file in sources()
        for line, name, keywords in calls(file)
        if unsafe(name, keywords) and not (name == "pickle.loads" and file in sources("tests"))
    ]
    assert not found


def test_no_pickling_library_is_imported() -> None:
    found = [
        f"{name_of(file)}:{line} imports {name}"
        for file in sources("app.py", *PACKAGES)
        for line, name in imported(file)
        if name.partition(".")[0] in UNPICKLERS
    ]
    assert not found


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pickle.loads(data)", True),
        ("torch.load(path)", True),
        ("torch.load(path, weights_only=False)", True),
        ("torch.load(path, weights_only=True)", False),
        ("np.load(path, allow_pickle=True)", True),
        ("AutoModel.from_pretrained(name, trust_remote_code=True)", True),
        ("AutoModel.from_pretrained(name, trust_remote_code=False)", False),
        ("json.loads(data)", False),
    ],
)
def test_the_check_itself_tells_unsafe_from_safe(code: str, expected: bool, tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(code)
    [(_, name, keywords)] = calls(file)
    assert unsafe(name, keywords) is expected


SKIPS = {
    *("pytest.skip", "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"),
    "pytest.mark.slow",
}


def explained(call: ast.Call) -> bool:
    """Whether a skip says why: by `reason`, or as `pytest.skip`'s first argument."""
    named = any(word.arg == "reason" for word in call.keywords)
    return named or (ast.unparse(call.func) == "pytest.skip" and bool(call.args))


def unexplained_skips(file: Path) -> list[int]:
    """Lines of `file` where a test is left out without a reason in words."""
    nodes = list(ast.walk(tree(file)))
    calls_of_skip = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in SKIPS]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    bare = {mark.lineno for node in functions for mark in node.decorator_list if ast.unparse(mark) in SKIPS}
    return sorted(bare | {call.lineno for call in calls_of_skip if not explained(call)})


def test_every_skip_has_its_reason() -> None:
    found = [f"{name_of(file)}:{line}" for file in sources("tests") for line in unexplained_skips(file)]
    assert not found


def test_the_skip_check_itself_sees_a_bare_skip(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(
        "@pytest.mark.skip\ndef test_a(): pass\n\ndef test_b():\n    pytest.skip('why')\n    pytest.skip()\n"
    )
    assert unexplained_skips(file) == [1, 6]
