"""Descriptions of a study for organizers: its state, facts, join link and log. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from components.links import non_default_params
from components.method_picker import describe_params
from components.navigation import ANNOTATE
from components.numbers import count, format_time
from engine.registry import Explainer
from engine.study.design import BY_RANK, BY_SIGN, BY_SIZE, Design, ExclusionRules, ItemChoice, MethodChoice
from engine.study.studies import ARCHIVED, CLOSED, DRAFT, OPEN, AnswerCounts, StudyRecord

BadgeColor = Literal["blue", "gray", "green", "orange"]
OVER = "over"
# Each state has its own word and icon, so that color is never the only difference.
BADGES: dict[str, tuple[str, BadgeColor, str]] = {
    DRAFT: ("draft", "gray", ":material/edit:"),
    OPEN: ("open", "green", ":material/how_to_vote:"),
    OVER: ("ended", "orange", ":material/hourglass_bottom:"),
    CLOSED: ("closed", "blue", ":material/lock:"),
    ARCHIVED: ("archived", "gray", ":material/inventory_2:"),
}
MODES = {
    "rank": "rank explanations",
    "predict": "guess the prediction",
    "counterfactual": "guess the prediction for an edited text",
    "decide": "decide what is correct",
}
COLOR_WORDS = {BY_RANK: "Rank", BY_SIZE: "Size", BY_SIGN: "Size and sign"}
LONGEST_DETAIL = 300


def state_badge(record: StudyRecord) -> tuple[str, BadgeColor, str]:
    """Return the word, color and icon of the state."""
    return BADGES[OVER if record.state == OPEN and not record.takes_votes else record.state]


def one_line_title(record: StudyRecord) -> str:
    """Return the title on one line."""
    return " ".join(record.design.title.split()) or f"Study {record.id}"


def study_progress(record: StudyRecord, counts: AnswerCounts) -> str:
    """Describe the number of answers."""
    if record.state == DRAFT:
        return "not opened yet"
    if not counts.annotators:
        return "no participants yet"
    answers = f"{counts.people}, {count(counts.answers, 'answer')}"
    return f"{answers}, {counts.cannot_tell:,} “cannot tell”" if counts.cannot_tell else answers


def study_facts(
    record: StudyRecord, counts: AnswerCounts, zone: tzinfo, methods: Mapping[str, Explainer]
) -> dict[str, str]:
    """Return the facts on the card of a study. `methods`: methods of its kind; an unknown method is named by its id."""
    design = record.design
    return {
        "progress": study_progress(record, counts),
        "model": design.model,
        "data set": design.dataset,
        "task": MODES[design.mode],
        "methods": ", ".join(_describe_method(method, methods) for method in design.ballot_methods),
        "dates": study_history(record, zone),
    }


def study_history(record: StudyRecord, zone: tzinfo) -> str:
    """Describe the times of its creation, opening and end, past or planned."""
    times = [("created", record.created), ("opened", record.opened), ("closed", record.closed)]
    if record.state in (DRAFT, OPEN):
        times.append(("closes" if record.state == DRAFT or record.takes_votes else "closed", record.design.closes_at))
    return ", ".join(f"{word} {format_time(when, zone)}" for word, when in times if when is not None)


def design_facts(design: Design, methods: Mapping[str, Explainer]) -> dict[str, str]:
    """Return the facts of a design that can no longer be changed."""
    votes = design.votes_per_item
    repeated = f", {design.repeats:,} of them shown twice" if design.repeats else ""
    return {
        "question": design.question,
        "task": MODES[design.mode],
        "model": design.model,
        "data set": design.dataset,
        "items": _describe_items(design),
        "practice items": f"{design.practice}",
        "methods": "; ".join(_describe_method(method, methods) for method in design.methods),
        "placebo": "a random explanation" if design.placebo else "none",
        "colors show": COLOR_WORDS[design.colors].lower(),
        "items per person": f"{design.items_per_annotator:,}{repeated}",
        "target votes per item": "no limit" if votes is None else f"{votes:,}",
        "exclusion rules": describe_exclusions(design.exclusion),
        "seed": f"{design.seed}",
    }


def describe_exclusions(rules: ExclusionRules) -> str:
    """Describe the exclusion rules."""
    parts = []
    if rules.least_seconds:
        parts.append(f"votes faster than {rules.least_seconds:g} s")
    if rules.least_votes:
        parts.append(f"people with fewer than {count(rules.least_votes, 'vote')}")
    if rules.most_cannot_tell is not None:
        parts.append(f"people with more than {rules.most_cannot_tell:.0%} “cannot tell”")
    if rules.least_consistency is not None:
        parts.append(f"people with a self-consistency below {rules.least_consistency:g}")
    return "; ".join(parts) or "none"


def event_rows(log: Iterable[tuple[str, float, Mapping[str, Any]]], zone: tzinfo) -> list[dict[str, str]]:
    """Return a row per event, the latest first."""
    rows = [
        {"time": format_time(when, zone), "event": kind.replace("_", " "), "details": _shorten(details)}
        for kind, when, details in log
    ]
    return rows[::-1]


def join_link(page: str | None, token: str) -> str:
    """Return the participants' address, derived from the address of the organizer's own page."""
    parts = urlsplit(page or "")
    folder = parts.path.rpartition("/")[0]
    return urlunsplit((parts.scheme, parts.netloc, f"{folder}/{ANNOTATE.url_path}", f"study={token}", ""))


def is_local_link(link: str) -> bool:
    """Whether the link works on this machine only."""
    return urlsplit(link).hostname in ("localhost", "127.0.0.1", "::1", None)


def _describe_items(design: Design) -> str:
    chosen, number = design.items, count(design.item_count, "item")
    if chosen.how == "hand":
        return f"{number}, picked by hand"
    at_random = count(design.item_count, "random item")
    source = f" from {chosen.split}" if chosen.split else ""
    return f"{at_random}{source}{_describe_conditions(chosen) if chosen.how == 'filter' else ''}"


def _describe_conditions(chosen: ItemChoice) -> str:
    parts = [
        f"class {chosen.label}" if chosen.label else "",
        f"the model is {chosen.judged}" if chosen.judged != "any" else "",
        f"at least {count(chosen.least_words, 'word')}" if chosen.least_words else "",
        f"at most {count(chosen.most_words, 'word')}" if chosen.most_words is not None else "",
    ]
    conditions = ", ".join(filter(None, parts))
    return f": {conditions}" if conditions else ""


def _describe_method(choice: MethodChoice, methods: Mapping[str, Explainer]) -> str:
    if choice.id not in methods:
        return choice.id
    changed = describe_params(non_default_params(methods[choice.id], choice.params))
    return f"{methods[choice.id].title} ({changed})" if changed else methods[choice.id].title


def _shorten(details: Mapping[str, Any]) -> str:
    """Shorten the details of an event: the whole design of an opening is in the export."""
    rest = {name: value for name, value in details.items() if name != "design"}
    text = json.dumps(rest, ensure_ascii=False) if rest else ""
    return text if len(text) <= LONGEST_DETAIL else f"{text[:LONGEST_DETAIL]}…"
