"""The wheel is whole: installed without the checkout in a read-only environment, it explains and serves pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import exegesis_entry
from engine import health
from engine.home import product_version
from tests.browser.server import Server, free_port, wait_until_healthy
from tests.project import ROOT

INSTALLED = ("cache/", "components/", "engine/", "pages/")
OPEN_TEXT = """
import sys
from streamlit.testing.v1 import AppTest
from components.navigation import ROOT, TEXT
page = AppTest.from_file(str(ROOT / "pages/dashboard/app.py"), default_timeout=120).run()
page = page.switch_page(str(TEXT.path)).run()
maps = ["data-v=" in one.proto.body for one in page.get("html")]
print(ROOT, [one.value for one in page.exception], [one.value for one in page.title], any(maps))
"""


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel, a home of its own, and a folder outside the checkout to run in."""

    folder: Path
    site: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def command(self, program: str, *arguments: str) -> list[str]:
        return [str(self.folder / "venv" / "bin" / program), *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**plain, "EXEGESIS_HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1", **more}

    def run(self, program: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(program, *arguments), cwd=self.folder, env=self.environment(**more),
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip

    def files(self) -> set[str]:
        return {str(file.relative_to(self.site)) for file in self.site.rglob("*")}


def project_files() -> list[str]:
    """The files of the project, tracked or new, relative to its root."""
    if not (ROOT / ".git").exists():
        pytest.skip(reason="not a git checkout, so the project's files are unknown")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the project: a build leaves folders in its source."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in project_files():
        if not name.startswith(("docs/", "tests/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name, follow_symlinks=False)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(built)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)
    [file] = built.iterdir()
    return file


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The wheel installed in a fresh environment, read-only, which takes the libraries from that of the tests.

    A .pth file names the folder of the libraries. Python reads no .pth files there, so an editable checkout stays out.
    """
    folder = tmp_path_factory.mktemp("installation")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = str(folder / "venv" / "bin" / "python")
    options = ["--quiet", "--no-deps", "--no-index", str(wheel)]
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    libraries = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    places = [site, *site.rglob("*")]
    modes = {place: place.stat().st_mode for place in places}
    for place, mode in modes.items():
        place.chmod(mode & ~0o222)
    before = {str(place.relative_to(site)) for place in places[1:]}
    made = Installation(folder, site)
    yield made
    assert made.files() == before, "something was written into the installed packages"  # root may write all the same
    for place, mode in modes.items():
        with suppress(FileNotFoundError):
            place.chmod(mode)


def test_the_wheel_holds_every_file_of_the_packages_and_no_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    packaged = (*INSTALLED, "exegesis/")
    expected = {name for name in project_files() if name.startswith(packaged)} | {"exegesis_entry.py"}
    assert names == expected
    assert {"pages/dashboard/app.py", "pages/dashboard/.streamlit/config.toml", "engine/constraints.txt"} <= names


def test_the_installed_packages_are_those_of_the_wheel(installation: Installation) -> None:
    names = ("cache", "components", "engine", "pages", "exegesis_entry")
    code = "import importlib, sys; print(*(importlib.import_module(name).__file__ for name in sys.argv[1:]))"
    done = installation.run("python", "-P", "-c", code, *names)
    assert done.returncode == 0, done.stderr
    assert [Path(file).is_relative_to(installation.site) for file in done.stdout.split()] == [True] * 5


def test_the_command_explains_outside_the_checkout(installation: Installation) -> None:
    assert installation.run("exegesis", "--version").stdout.strip() == product_version()
    assert installation.run("exegesis", "--help").stdout.startswith("Usage: exegesis [OPTIONS] COMMAND")
    arguments = ["--model", "bert-reviews", "--text", "Not bad at all.", "--method", "gradient_x_input,random"]
    done = installation.run("exegesis", "explain", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    gradient, random = json.loads(done.stdout)
    assert gradient["prediction"]["label"] == random["prediction"]["label"] == "negative"
    assert [token["text"] for token in gradient["features"]] == ["[CLS]", "Not", "b", "ad", "at", "all", ".", "[SEP]"]
    assert (installation.home / "cache").is_dir()


def test_it_knows_the_tested_versions_and_the_place_of_local_data(installation: Installation) -> None:
    code = "from engine import health; print(health._packages().detail); print(health._direct(), health._tested())"
    code += "; from engine.data.registry import data_root; print(data_root())"
    done = installation.run("python", "-P", "-c", code, EXEGESIS_DATA="")
    packages, versions, data = done.stdout.splitlines()
    assert packages == f"cache, components, engine, pages in {installation.site}"
    assert versions == f"{health._direct()} {health._tested()}"
    assert data == str(installation.home / "data"), "not beside site-packages"


def test_the_app_serves_and_opens_a_page(installation: Installation) -> None:
    port, log_file = free_port(), installation.folder / "server.log"
    command = installation.command("exegesis", "app", "--port", str(port), "--headless")
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=installation.folder, env=installation.environment(), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_until_healthy(process, Server(f"http://localhost:{port}", installation.home, log_file, process.pid))
        finally:
            process.terminate()
            process.wait(20)
    opened = installation.run("python", "-P", "-c", OPEN_TEXT, EXEGESIS_OPEN="1")
    assert opened.stdout.strip() == f"{installation.site} [] ['Explain a text'] True", opened.stderr[-2000:]


def test_a_package_of_the_same_name_on_the_path_is_an_error(installation: Installation, tmp_path: Path) -> None:
    for name in ("cache", "engine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    done = installation.run("exegesis", "models", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: other packages hide those of Exegesis in {installation.site}: Python imports ")
    assert f"cache from {tmp_path}/cache/__init__.py; engine from {tmp_path}/engine/__init__.py." in line
    assert "unset PYTHONPATH" in line


def test_modules_and_folders_of_the_same_name_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exegesis_entry, "PACKAGES", ("xx_module", "xx_folder", "xx_absent", "json"))
    (tmp_path / "xx_module.py").write_text("")
    (tmp_path / "xx_folder").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert exegesis_entry.foreign_packages(Path(json.__file__).parents[1]) == {
        "xx_module": str(tmp_path / "xx_module.py"), "xx_folder": str(tmp_path / "xx_folder"), "xx_absent": "nowhere",
    }  # fmt: skip


def test_packages_that_two_distributions_install_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {"cache": ["exegesis", "other"], "engine": ["exegesis", "exegesis"], "numpy": ["numpy"]}
    monkeypatch.setattr(exegesis_entry, "packages_distributions", lambda: owners)
    finding = health._packages()
    assert (finding.status, finding.detail) == ("broken", "installed by several distributions: cache (exegesis, other)")
    monkeypatch.setitem(sys.modules, "engine.cli", None)  # as if the other's files had replaced ours
    with pytest.raises(SystemExit, match=r"error: several distributions .*: cache \(exegesis, other\)\. import of"):
        exegesis_entry.main()
