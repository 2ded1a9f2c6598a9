"""Files of small studies, whole and with something changed in them."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

from cache import key_for
from engine.study import studies
from engine.study.annotators import confirm
from engine.study.ballots import next_ballot
from engine.study.study_file import export_study
from tests.unit.study.polls import agreed, answer
from tests.unit.study.samples import image_design, text_design

File = dict[str, Any]


def opened(kind: str) -> int:
    design = text_design if kind == "text" else image_design
    with tempfile.TemporaryDirectory() as folder:
        made = studies.create(design(Path(folder)))
        return studies.open_study(made.id).id


@functools.cache
def written(kind: str) -> bytes:
    """The file of an open study in which two people voted; made once, in the database of the test that asks first."""
    study = opened(kind)
    for ranks in ((1, 2, 3), (3, 1, 1)):
        person = agreed(studies.find(study).token)
        while ballot := next_ballot(person.id):
            confirm(person.id, answer(ballot, *ranks, seconds=4.5))
    return export_study(study, votes=True)


def content_of(data: bytes) -> File:
    content: File = json.loads(data)["content"]
    return content


def sealed(content: object, **head: object) -> bytes:
    """A file of that content whose digest fits."""
    known = {"format": "exegesis study", "version": 1, "exegesis": "0", "digest": key_for(content)}  # type: ignore[arg-type]
    return json.dumps({**known, "content": content, **head}).encode()


def without_votes(kind: str) -> bytes:
    return sealed({**content_of(written(kind)), "votes": None})
