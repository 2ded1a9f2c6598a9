"""Write a small home with the code of another checkout, and dump its databases as SQL beside this file.

    PYTHONPATH=/path/of/the/other/checkout python tests/upgrade/make.py REVISION

The home holds an explanation, an evaluation, two jobs, and an open study with the votes of two people.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
PRAGMAS = ("application_id", "user_version", "page_size", "auto_vacuum")
TEXT = "An honest, moving film."
MODEL, METHOD = "bert-reviews", "gradient_x_input"
EVALUATION = ["evaluate", "--models", MODEL, "--dataset", "reviews", "--methods", METHOD]
EVALUATION += ["--metrics", "comprehensiveness,gt_overlap", "--examples", "2", "--json"]


def explanation() -> dict[str, Any]:
    """The scores of one explanation, from the cache where it is there."""
    from engine.explain import explain
    from engine.request import Example, Request

    result = explain(Request(MODEL, METHOD, Example(TEXT)))
    return {"label": result.prediction.label, "scores": [float(score) for score in result.scores]}


def evaluation() -> Any:
    """The rows of a small evaluation, without the times."""
    from tests.frozen import doors

    done = doors.run(EVALUATION)
    assert done.code == 0, done.err
    return done.json


def jobs() -> list[dict[str, Any]]:
    """The jobs that are listed, without their progress."""
    from engine.jobs.runner import job_table

    return [{"id": job.id, "kind": job.kind, "title": job.title, "state": job.state} for job in job_table().all()]


def write_jobs() -> None:
    """A job that is done, and one that was canceled."""
    from engine.jobs.runner import job_table
    from engine.jobs.table import this_process

    for title, state in (("First", "done"), ("Second", "cancelled")):
        job = job_table().add("evaluate", title, {"models": [MODEL]}, "local", this_process())
        assert job_table().move(job.id, ["queued"], state=state)


def write_study() -> dict[str, Any]:
    """An open study: one person is through, another has answered practice and two items."""
    from engine.study.annotators import confirm, consent, join
    from engine.study.ballots import next_ballot
    from engine.study.results import export_rows
    from tests.unit.study.polls import answer, open_study

    study = open_study()
    codes, pending = [], None
    for most, ranks in ((99, (1, 2, 3)), (3, (2, 1, 2))):
        person, code = join(study.token)
        consent(person.id)
        codes.append(code)
        pending, votes = next_ballot(person.id), 0
        while pending and votes < most:
            confirm(person.id, answer(pending, *ranks))
            pending, votes = next_ballot(person.id), votes + 1
    assert pending is not None
    rows = json.loads(json.dumps(export_rows(study.id, "votes")))
    return {"id": study.id, "token": study.token, "codes": codes, "pending": pending.token, "votes": rows}


def dump(file: Path) -> str:
    """A database as SQL, with the pragmas that its file holds."""
    link = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    pragmas = [f"PRAGMA {name}={link.execute(f'PRAGMA {name}').fetchone()[0]};" for name in PRAGMAS]
    lines = [*pragmas, *link.iterdump(), "PRAGMA journal_mode=WAL;"]
    link.close()
    return "\n".join(lines) + "\n"


def load(folder: Path) -> None:
    """Write the databases of the stored home into `folder`."""
    for file in sorted(DATA.glob("*.sql")):
        place = folder / ("cache" if file.name.startswith("results") else "") / file.stem
        place.parent.mkdir(parents=True, exist_ok=True)
        link = sqlite3.connect(place)
        link.executescript(file.read_text(encoding="utf-8"))
        link.close()


def main() -> None:
    """Write the home and its description."""
    [revision] = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"EXEGESIS_HOME": home, "EXEGESIS_DEVICE": "cpu", "HF_HUB_OFFLINE": "1"})
        os.environ.pop("EXEGESIS_DATABASE_URL", None)
        write_jobs()
        notes = {
            "revision": revision, "explanation": explanation(), "evaluation": evaluation(), "jobs": jobs(),
            "study": write_study(),
        }  # fmt: skip
        DATA.mkdir(exist_ok=True)
        for file in Path(home).rglob("*.db"):
            (DATA / f"{file.name}.sql").write_text(dump(file), encoding="utf-8")
    (DATA / "home.json").write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
