"""What kind of method each one is: how it removes, what it explains, how it sums up (Covert et al., 2021).

Everything is read from the registry, so a method that is added there is listed, filtered and preset here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from components.compact import compact_css
from engine.registry import Explainer

LAYOUT = Path(__file__).resolve().parent / "assets" / "picker.css"
TRAITS = {
    "removal": "Removed by",
    "behaviour": "Explains",
    "summary": "Summarised as",
    "scores": "Scores",
    "cost": "Cost",
}
"""The names of what methods are told apart by, the three axes first."""
SCORES = {True: "signed", False: "unsigned"}
COSTS = {True: "quick", False: "many evaluations"}
ANY, BASELINE = "any", "baseline"
PRESETS: dict[str, Callable[[Explainer], bool]] = {
    "Quick": lambda method: method.cheap,
    "Path methods": lambda method: kind(method.axes.summary) == "path integral",
    "Attention": lambda method: method.family == "attention",
    "Removal-based": lambda method: kind(method.axes.removal) == "chosen operator",
    "All": lambda method: True,
}


def kind(text: str) -> str:
    """What a text of an axis says before its details, which stand after a colon or a comma."""
    return re.split("[:,]", text, maxsplit=1)[0].strip()


def traits(method: Explainer, params: Mapping[str, object]) -> dict[str, str]:
    """The method's kind by each of `TRAITS`. A parameter may change whether its scores are signed."""
    axes = method.axes_at(params)
    return {
        "removal": kind(axes.removal),
        "behaviour": kind(axes.behaviour),
        "summary": kind(axes.summary),
        "scores": SCORES[method.is_signed(params)],
        "cost": COSTS[method.cheap],
    }


def kinds(of: Iterable[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    """By each trait, the kinds that there are, in the order in which methods show them."""
    listed = list(of)
    return {trait: tuple(dict.fromkeys(one[trait] for one in listed)) for trait in TRAITS}


def fits(shown: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a method's traits are those wanted, or any will do."""
    return all(kind in (ANY, shown[trait]) for trait, kind in wanted.items())


def presets(methods: Mapping[str, Explainer], usual: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Sets of methods under a name; the baseline stands in each, so that every map has it to compare with."""
    made = {"Default": tuple(id for id in usual if id in methods)}
    for name, rule in PRESETS.items():
        fitting = [id for id, method in methods.items() if rule(method) and method.family != BASELINE]
        if fitting:
            made[name] = tuple(id for id in methods if id in fitting or methods[id].family == BASELINE)
    return made


def lacking_on(methods: Iterable[Explainer], models: Iterable[str]) -> dict[str, str]:
    """The methods that one of these models has not, with the reason and what helps."""
    asked = list(models)
    found = {method.id: next(filter(None, map(method.why_not, asked)), "") for method in methods}
    return {id: reason for id, reason in found.items() if reason}


def in_words(changed: Mapping[str, str]) -> str:
    """Parameters as people and links name them: "n_steps 20, baseline zero"."""
    return ", ".join(f"{name} {value}" for name, value in changed.items())


def columns_html() -> str:
    """The heads of the columns in which the rows' traits stand. A narrow row names its own."""
    heads = "".join(f"<span>{name}</span>" for name in TRAITS.values())
    return f'<div class="xa"><div class="xa-axes xa-heads" aria-hidden="true">{heads}</div></div>'


def traits_html(method: Explainer, params: Mapping[str, object]) -> str:
    """The traits in full, then the caution with its source."""
    axes = method.axes_at(params)
    told = traits(method, params) | {name: getattr(axes, name) for name in ("removal", "behaviour", "summary")}
    cells = "".join(f"<div><dt>{TRAITS[name]}</dt><dd>{escape(told[name])}</dd></div>" for name in TRAITS)
    return (
        f'<div class="xa"><dl class="xa-axes">{cells}</dl>'
        f'<p class="xa-caution">{escape(method.caution)} <cite>{escape(method.citation)}</cite></p></div>'
    )


@cache
def picker_style() -> str:
    """The layout of the rows. It takes no room."""
    return f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>"
