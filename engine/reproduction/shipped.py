"""The reports that come with the project, which are read without a model, wherever nothing was run yet.

`python -m engine.reproduction.shipped REPORT.json [...]` puts finished reports in their place.
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
    """`date`: of the run, year first. `revision`: of the project that it ran with, as its version control names it.

    `revised`: how verdicts were labeled anew without a run, when, and why; else empty.
    """

    report: Reproduction
    date: str
    revision: str
    revised: str = ""

    @property
    def provenance(self) -> str:
        """How it was made."""
        text = f"Made on {self.date}, with revision {self.revision} of the project, by: {self.report.command}"
        return f"{text}. {self.revised}" if self.revised else text

    def as_json(self) -> str:
        """Content of its file."""
        plain = {
            "date": self.date,
            "revision": self.revision,
            "revised": self.revised,
            "report": self.report.as_plain(),
        }
        return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def default_query(topic: str) -> ReproductionQuery:
    """The query of all claims of a topic, as they are declared."""
    scale = TOPICS[topic].scales[0]
    return ThesisQuery(topic=topic, scale=scale) if topic in THESIS_TOPICS else SmatQuery(scale)


def report_file(topic: str) -> Path:
    """The file of a topic's report."""
    return FOLDER / TOPICS[topic].report


def document_file(topic: str) -> Path:
    """The same in Markdown, for readers of the project."""
    return DOCUMENTS / f"{'-'.join(filter(None, ('reproduction', TOPICS[topic].suffix)))}.md"


def shipped_report(topic: str) -> ShippedReport | None:
    """The shipped report of a topic; None where there is none."""
    file = report_file(topic)
    if not file.exists():
        return None
    plain = json.loads(file.read_text(encoding="utf-8"))
    return ShippedReport(report_from_plain(plain["report"]), plain["date"], plain["revision"], plain.get("revised", ""))


def shipped_for(query: ReproductionQuery) -> ShippedReport | None:
    """The shipped report that answers the query; None where it answers something else, or other claims."""
    shipped = shipped_report(query.topic_id)
    return shipped if shipped is not None and answers(shipped.report, query) and not query.places else None


def answers(report: Reproduction, query: ReproductionQuery) -> bool:
    """Whether a report is of this query, with the claims as they are declared now."""
    return (report.command, report.digest) == (query.command(), query.declaration.digest)


def changed_models(report: Reproduction, revisions: Mapping[str, str]) -> tuple[str, ...]:
    """Models that are not what they were when the report was made. `revisions`: the current ones by name, empty where a
    model is not here."""
    return tuple(dict.fromkeys(one.name for one in report.models if one.revision != revisions.get(one.name, "")))


def answered_topic(report: Reproduction) -> str:
    """The topic that a report answers as it is declared.

    Errors: a report of something else, or one without a model, a teacher or a student that it needs.
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
    """Write what the page opens with, and the same in Markdown, with why claims fail as far as it is known."""
    report_file(topic).write_text(shipped.as_json(), encoding="utf-8")
    text = markdown(shipped.report, default_query(topic), shipped.provenance)
    document_file(topic).write_text(text, encoding="utf-8")


def ship(file: Path, date: str, revision: str) -> None:
    """Put a finished report in the place of the shipped one. Models that were trained for it lie beside it."""
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
