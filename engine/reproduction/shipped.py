"""Reports that ship with the project: shown without running a model until a reproduction has been run.

`python -m engine.reproduction.shipped REPORT.json [...]` replaces them by finished reports.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.home import project_root
from engine.reproduction.claims import ReproductionQuery
from engine.reproduction.documents import markdown
from engine.reproduction.papers import THESIS_TOPICS, TOPICS
from engine.reproduction.report import Reproduction, report_from_plain
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import FOLDER as TRAINED
from engine.reproduction.thesis import ThesisQuery

FOLDER = Path(__file__).parent
DOCUMENTS = project_root() / "docs"


@dataclass(frozen=True)
class ShippedReport:
    """A shipped report. `date`: date of the run, in ISO format. `revision`: git revision of the project at the run.

    `revised`: when and why its verdicts were relabeled without a run; else empty.
    """

    report: Reproduction
    date: str
    revision: str
    revised: str = ""

    @property
    def provenance(self) -> str:
        """When, with which revision and by which command it was made."""
        text = f"Made on {self.date}, with revision {self.revision} of the project, by: {self.report.command}"
        return f"{text}. {self.revised}" if self.revised else text

    def as_json(self) -> str:
        """Return the content of its file."""
        plain = {
            "date": self.date,
            "revision": self.revision,
            "revised": self.revised,
            "report": self.report.as_plain(),
        }
        return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def default_query(topic: str) -> ReproductionQuery:
    """Return the query for all claims of a topic, with the declared settings."""
    scale = TOPICS[topic].scales[0]
    return ThesisQuery(topic=topic, scale=scale) if topic in THESIS_TOPICS else SmatQuery(scale)


def report_file(topic: str) -> Path:
    """Return the JSON file of a topic's shipped report."""
    return FOLDER / TOPICS[topic].report


def document_file(topic: str) -> Path:
    """Return the Markdown file of a topic's shipped report, in `docs`."""
    return DOCUMENTS / f"{'-'.join(filter(None, ('reproduction', TOPICS[topic].suffix)))}.md"


def shipped_report(topic: str) -> ShippedReport | None:
    """Return the shipped report of a topic, or None if there is none."""
    file = report_file(topic)
    if not file.exists():
        return None
    plain = json.loads(file.read_text(encoding="utf-8"))
    return ShippedReport(report_from_plain(plain["report"]), plain["date"], plain["revision"], plain.get("revised", ""))


def shipped_for(query: ReproductionQuery) -> ShippedReport | None:
    """Return the shipped report if it answers the query and the query has no `places`, else None."""
    shipped = shipped_report(query.topic_id)
    return shipped if shipped is not None and answers(shipped.report, query) and not query.places else None


def answers(report: Reproduction, query: ReproductionQuery) -> bool:
    """Whether a report answers the query, with the claims as they are declared now."""
    return (report.command, report.digest) == (query.command(), query.declaration.digest)


def changed_models(report: Reproduction, revisions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of models that have changed since the report was made.

    `revisions`: the current revisions by name; an unavailable model is missing or has an empty string.
    """
    return tuple(dict.fromkeys(one.name for one in report.models if one.revision != revisions.get(one.name, "")))


def answered_topic(report: Reproduction) -> str:
    """Return the topic whose current declaration a report answers.

    Errors: a report of another query, or one that lacks a model or student.
    """
    paper = "smat" if report.rows is not None else "thesis"
    queries = [default_query(topic) for topic, own in TOPICS.items() if own.paper == paper]
    answered = [query.topic_id for query in queries if answers(report, query)]
    if not answered:
        wanted = " or ".join(f"`{query.command()}`" for query in queries)
        raise UsageError(f"REPORT: must be what {wanted} writes with the claims as they are declared now.")
    if paper == "thesis":
        missing = [one.name for one in report.models if one.why]
    else:
        incomplete = (one for one in report.experiments if one.why or one.skipped)
        missing = [f"{one.name} ({one.why or f'{one.skipped} students'})" for one in incomplete]
    if missing:
        raise UsageError(f"REPORT: was made without {', '.join(missing)}. Run the command again with them.")
    return answered[0]


def write_shipped(topic: str, shipped: ShippedReport) -> None:
    """Write the report that the page opens with, and its Markdown document with the reasons why claims fail."""
    report_file(topic).write_text(shipped.as_json(), encoding="utf-8")
    text = markdown(shipped.report, default_query(topic), shipped.provenance)
    document_file(topic).write_text(text, encoding="utf-8")


def ship(file: Path, date: str, revision: str) -> None:
    """Replace the shipped report by a finished one.

    Models that were trained for the report lie in its folder, whose path is replaced by the default folder's name.
    """
    text = file.read_text(encoding="utf-8").replace(f"{file.resolve().parent}/", f"{TRAINED}/")
    report = report_from_plain(json.loads(text))
    write_shipped(answered_topic(report), ShippedReport(report, date, revision))


def main() -> None:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    revision = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=True).stdout.strip()
    for file in map(Path, sys.argv[1:]):
        ship(file, datetime.date.today().isoformat(), revision)


if __name__ == "__main__":
    main()
