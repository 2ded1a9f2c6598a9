"""`exegesis reproduce thesis|smat`: the claims of a thesis or a paper, tried on models that are here, and a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli import values
from engine.cli.jobs import carried_out, end
from engine.cli.options import Seed
from engine.cli.reproduce_smat import SMAT, reproduce_smat
from engine.cli.writing import write
from engine.errors import Cancelled, UsageError, not_allowed, unknown

if TYPE_CHECKING:
    from engine.reproduction.asked import Asked
    from engine.reproduction.outcome import Reproduction

THESIS = "thesis"


def reproduce(
    what: Annotated[str, typer.Argument(metavar="thesis|smat", help="What is reproduced.")],
    scale: Annotated[
        str, typer.Option(metavar="embedded|full", help="Small models, or the authors' own.")
    ] = "embedded",
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Of the report, and of models that are trained.")
    ] = "reproduction",
    examples: Annotated[
        str | None, typer.Option(metavar="N", help="Of each data set. [default: as many as declared]")
    ] = None,
    seed: Seed = "0",
    topic: Annotated[
        str | None,
        typer.Option(metavar="faithfulness|sanity", help="Of the thesis, claims of one topic. [default: of both]"),
    ] = None,
    claims: Annotated[str, typer.Option(metavar="A,B", help="Some claims only. [default: all]")] = "",
    places: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON: folders of models and data sets by their names.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON, those of two topics by their names.")
    ] = False,
) -> None:
    """Try the claims of the thesis or of SMaT and write a report; stopped, the same command goes on where it was."""
    from engine.reproduction.asked import Asked, of_topics
    from engine.reproduction.claims import TOPICS

    if what not in (THESIS, SMAT):
        raise not_allowed("reproduce", f"{THESIS} or {SMAT}", what)
    if what == SMAT:
        if topic is not None:
            raise not_allowed("--topic", "left out: SMaT's claims are one topic", topic)
        return _smat(scale, out, examples, seed, claims, places, as_json)
    if topic is not None and topic not in TOPICS:
        raise unknown("topic", topic, TOPICS)
    folder = _folder(out)
    whole = Asked(
        scale=scale,
        examples=None if examples is None else values.whole("--examples", examples, 2),
        seed=values.whole("--seed", seed),
        claims=tuple(values.names("--claims", claims)) if claims else (),
        places={} if places is None else _places(Path(places).expanduser()),
        folder=str(folder),
    )
    parts = of_topics(whole, TOPICS if topic is None else (topic,))
    for asked in parts:
        asked.check()
    return _all_of(parts, folder, as_json)


def _smat(
    scale: str, out: str, examples: str | None, seed: str, claims: str, places: str | None, as_json: bool
) -> None:
    from engine.reproduction.smat.asked import Asked

    asked = Asked(
        scale=scale,
        examples=None if examples is None else values.whole("--examples", examples, 2),
        seed=values.whole("--seed", seed),
        claims=tuple(values.names("--claims", claims)) if claims else (),
        places={} if places is None else _places(Path(places).expanduser()),
    )
    reproduce_smat(asked, _folder(out), as_json)


def _all_of(parts: Sequence[Asked], folder: Path, as_json: bool) -> None:
    """Topic by topic, each with a report of its own."""
    from engine.cli.guard import note
    from engine.cli.output import print_json
    from engine.reproduction.run import kept
    from engine.reproduction.timing import seconds_of, time_told

    found = {}
    for asked in parts:
        if kept(asked) is None and seconds_of(asked) is not None:
            note(time_told(asked))
        found[asked.topic] = _found(asked)
        _keep(found[asked.topic], asked, folder)
        if not as_json:
            _show(found[asked.topic], asked, folder)
    if as_json:
        plain = {topic: own.as_plain() for topic, own in found.items()}
        print_json(plain if len(plain) > 1 else next(iter(plain.values())))


def _folder(out: str) -> Path:
    folder = Path(out).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: must be a folder, got the file {folder}. Choose another place.")
    return folder


def _places(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--places: {file} must be a file with JSON ({type(error).__name__}).") from None
    if not isinstance(found, dict) or not all(isinstance(place, str) for place in found.values()):
        raise not_allowed("--places", "an object of folders by name", found)
    return found


def _found(asked: Asked) -> Reproduction:
    """The work as a job, so that it is seen and stopped elsewhere; what failed in it the report says."""
    from engine.cli.guard import STOPPED, fail
    from engine.cli.output import only_ours
    from engine.cli.stopping import stoppable
    from engine.jobs import create
    from engine.reproduction.run import kept, reproduce

    ended = carried_out(create("reproduce", asked.as_plain()))
    if ended.state not in ("done", "failed"):
        end(ended)
    if found := kept(asked):
        return found
    with only_ours(), stoppable() as cancel:  # a cache that cannot be written to keeps no report
        try:
            return reproduce(asked, cancel=cancel)
        except Cancelled:
            raise typer.Exit(fail("reproduce: stopped; finished parts are kept.", STOPPED)) from None


def _file(asked: Asked) -> str:
    """What the report is called, without its ending."""
    from engine.reproduction.claims import TOPICS

    topic = "" if asked.topic == TOPICS[0] else f"-{asked.topic}"
    return f"{THESIS}{topic}-{asked.scale}"


def _keep(found: Reproduction, asked: Asked, folder: Path) -> None:
    from engine.reproduction.writing import markdown

    plain = json.dumps(found.as_plain(), indent=1, ensure_ascii=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for ending, text in {".md": markdown(found, asked.declared), ".json": plain}.items():
        write("--out", folder / f"{_file(asked)}{ending}", text.encode())


def _show(found: Reproduction, asked: Asked, folder: Path) -> None:
    from engine.cli.output import console, table, visible
    from engine.reproduction.scales import scale_of
    from engine.reproduction.words import decides, sentence

    made = table(["claim", "section", "verdict", "what decides"])
    for claim, one in zip(asked.chosen, found.outcomes, strict=True):
        told = (claim.id, claim.section, one.verdict, decides(claim, one, scale_of(asked.scale)))
        made.add_row(*map(visible, told))
    console().print(made)
    print(f"{sentence(found)} Written: {visible(str(folder / f'{_file(asked)}.md'))}")
