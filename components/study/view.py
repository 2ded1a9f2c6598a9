"""A study as organisers see it, in words: its state, its facts, its link, what happened to it; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from components.frame import ANNOTATE
from components.method_axes import in_words
from components.numbers import count
from components.request_link import differing
from components.study.methods import COLOR_WORDS
from engine.registry import Explainer
from engine.study.counts import Counts
from engine.study.design import Design, ExclusionRules, ItemChoice, MethodChoice, counted_items
from engine.study.studies import ARCHIVED, CLOSED, DRAFT, OPEN, StudyRecord

Colour = Literal["blue", "gray", "green", "orange"]
OVER = "over"
# Each state has a word and a sign of its own, so that colour is never the only difference.
LOOKS: dict[str, tuple[str, Colour, str]] = {
    DRAFT: ("draft", "gray", ":material/edit:"),
    OPEN: ("open", "green", ":material/how_to_vote:"),
    OVER: ("its time is over", "orange", ":material/hourglass_bottom:"),
    CLOSED: ("closed", "blue", ":material/lock:"),
    ARCHIVED: ("archived", "gray", ":material/inventory_2:"),
}
MODES = {"rank": "people rank explanations", "predict": "people guess the model's answer"}
LONGEST_DETAIL = 300


def look(record: StudyRecord) -> tuple[str, Colour, str]:
    """The state in a word, its colour and its sign."""
    return LOOKS[OVER if record.state == OPEN and not record.takes_votes else record.state]


def titled(record: StudyRecord) -> str:
    """Its title on one line."""
    return " ".join(record.design.title.split()) or f"Study {record.id}"


def progress(record: StudyRecord, counts: Counts) -> str:
    """What it has gathered."""
    if record.state == DRAFT:
        return "not opened yet"
    if not counts.annotators:
        return "nobody has taken part yet"
    told = f"{count(counts.answers, 'answer')} of {count(counts.annotators, 'annotator')}"
    return f"{told}, {counts.cannot_tell:,} “cannot tell”" if counts.cannot_tell else told


def facts(record: StudyRecord, counts: Counts, zone: tzinfo) -> dict[str, str]:
    """What stands on its card."""
    design = record.design
    return {
        "votes": progress(record, counts),
        "model": design.model,
        "data set": design.dataset,
        "asks": MODES[design.mode],
        "methods": ", ".join(method.id for method in design.shown),
        "when": history(record, zone),
    }


def history(record: StudyRecord, zone: tzinfo) -> str:
    """When it was made, opened and closed, or will close."""
    times = [("made", record.created), ("opened", record.opened), ("closed", record.closed)]
    if record.state in (DRAFT, OPEN):
        times.append(("closes" if record.state == DRAFT or record.takes_votes else "closed", record.design.closes_at))
    return ", ".join(f"{word} {at(when, zone)}" for word, when in times if when is not None)


def design_facts(design: Design, known: Mapping[str, Explainer]) -> dict[str, str]:
    """All that was decided, for a study that can no longer be changed."""
    return {
        "question": design.question,
        "what people do": MODES[design.mode],
        "model": design.model,
        "data set": design.dataset,
        "items": _items(design),
        "practice items": f"{design.practice}",
        "methods": "; ".join(_method(method, known) for method in design.methods),
        "placebo": "a random explanation is mixed in" if design.placebo else "none",
        "colors show": COLOR_WORDS[design.colors].lower(),
        "items a person sees": f"{design.items_per_annotator:,}, and {design.repeats:,} of them twice",
        "votes wanted an item": "as many as come" if design.votes_per_item is None else f"{design.votes_per_item:,}",
        "left out of the results": rules(design.exclusion),
        "seed": f"{design.seed}",
    }


def rules(declared: ExclusionRules) -> str:
    """The exclusion rules in words."""
    told = [
        f"votes made in less than {declared.least_seconds:g} s" if declared.least_seconds else "",
        f"people with fewer than {count(declared.least_votes, 'vote')}" if declared.least_votes else "",
        _over("people who could not tell in more than", declared.most_cannot_tell, " of their answers"),
        _over("people whose self-consistency is below", declared.least_consistency),
    ]
    return "; ".join(filter(None, told)) or "nothing"


def happened(log: Iterable[tuple[str, float, Mapping[str, Any]]], zone: tzinfo) -> list[dict[str, str]]:
    """A row an event, the latest first."""
    rows = [{"when": at(when, zone), "what": kind.replace("_", " "), "more": _more(more)} for kind, when, more in log]
    return rows[::-1]


def join_link(page: str | None, token: str) -> str:
    """The address that participants get, from the address of the organiser's own page."""
    parts = urlsplit(page or "")
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{ANNOTATE.url_path}", f"study={token}", ""))


def leads_here_only(link: str) -> bool:
    """Whether other machines cannot follow that link."""
    return urlsplit(link).hostname in ("localhost", "127.0.0.1", "::1", None)


def at(seconds: float, zone: tzinfo) -> str:
    """A time in the organiser's zone."""
    return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M %Z")


def _items(design: Design) -> str:
    chosen, there = design.items, count(counted_items(design), "item")
    if chosen.how == "hand":
        return f"{there}, picked by hand"
    drawn = f"{there} drawn at random" + (f" of {chosen.split}" if chosen.split else "")
    return drawn if chosen.how == "seed" else f"{drawn} {_conditions(chosen)}".rstrip()


def _conditions(chosen: ItemChoice) -> str:
    told = [
        f"class {chosen.label}" if chosen.label else "",
        f"the model is {chosen.judged}" if chosen.judged != "any" else "",
        f"at least {count(chosen.least_words, 'word')}" if chosen.least_words else "",
        f"at most {count(chosen.most_words, 'word')}" if chosen.most_words is not None else "",
    ]
    named = ", ".join(filter(None, told))
    return f"of those with: {named}" if named else ""


def _method(method: MethodChoice, known: Mapping[str, Explainer]) -> str:
    if method.id not in known:
        return method.id
    changed = in_words(differing(known[method.id], method.params))
    return f"{known[method.id].title} ({changed})" if changed else known[method.id].title


def _over(words: str, limit: float | None, after: str = "") -> str:
    return "" if limit is None else f"{words} {limit:g}{after}"


def _more(details: Mapping[str, Any]) -> str:
    """Details in short: the whole design of an opening is in the export."""
    short = {name: held for name, held in details.items() if name != "design"}
    told = json.dumps(short, ensure_ascii=False) if short else ""
    return told if len(told) <= LONGEST_DETAIL else f"{told[:LONGEST_DETAIL]}…"
