"""Claims on the page: headline, widest failures, sections, and a card for each claim with its numbers on demand.

Each verdict has its own word, sign and color.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import streamlit as st

from components.adversarial.state import state_of_plan as attack_state
from components.adversarial.state import write as attack_link
from components.errors import escape_label
from components.experiment.state import plan_link
from components.links import Query
from components.navigation import ADVERSARIAL, EVALUATE, RANDOMIZATION, SCAFFOLD, PageEntry
from components.reproduction.state import OPEN, key
from components.scaffold.state import state_of as students_state
from components.scaffold.state import write_state as students_link
from components.tables import draw_table
from engine.attacks.plan import ATTACK
from engine.evaluation.plan import EVALUATE as EVALUATION
from engine.lazy import LazyModule
from engine.models.catalog import embedded_image_models, embedded_models
from engine.randomization.plan import RANDOMIZE
from engine.reproduction import wording
from engine.reproduction.claims import Claim, ReproductionQuery
from engine.reproduction.documents import Examination, examination_text
from engine.reproduction.papers import ALONE, SIZES, TASKS, Scale, scale_of
from engine.reproduction.report import (
    CEILING,
    CONSTRUCTION,
    DUPLICATE,
    FINDINGS,
    NON_FINDINGS,
    NOT_RUN,
    OPPOSED,
    UNLEARNED,
    VERDICTS,
    ClaimOutcome,
    ExperimentSummary,
    Reproduction,
    Verdict,
    margin,
)
from engine.reproduction.smat import SmatQuery, student_keys
from engine.reproduction.thesis import experiment_names

if TYPE_CHECKING:
    import pandas
else:
    pandas = LazyModule("pandas")

BadgeColor = Literal["blue", "orange", "violet", "gray"]
BADGES: dict[Verdict, tuple[BadgeColor, str]] = {
    "holds": ("blue", ":material/check:"),
    "does not hold": ("orange", ":material/close:"),
    "undecided": ("violet", ":material/question_mark:"),
    CONSTRUCTION: ("gray", ":material/architecture:"),
    CEILING: ("gray", ":material/vertical_align_top:"),
    DUPLICATE: ("gray", ":material/link:"),
    UNLEARNED: ("gray", ":material/school:"),
    NOT_RUN: ("gray", ":material/hourglass_empty:"),
}
SIGNS: dict[Verdict, str] = {
    "holds": "✓", "does not hold": "✗", "undecided": "?", CONSTRUCTION: "≡", CEILING: "⊤", DUPLICATE: "=",
    UNLEARNED: "–", NOT_RUN: "–",
}  # fmt: skip
NO_FINDINGS = "Not counted as findings:"
SECTIONS = {
    "4.1.1": "Synthetic label word, T5 in four sizes",
    "4.1.2": "Natural language inference, T5 in four sizes",
    "4.1.3": "Natural language inference with human highlights, T5 in four sizes",
    "4.1.4": "Randomized models, T5 in four sizes",
    "4.1.5": "Ensembles, T5 in four sizes",
    "4.1.6": "Attacks on explanations, T5 in four sizes",
    "4.2.1": "Synthetic label word, four architectures",
    "4.2.2": "Natural language inference, four architectures",
    "4.2.3": "Natural language inference with human highlights, four architectures",
    "4.2.4": "Randomized models, four architectures",
    "4.2.5": "Ensembles, four architectures",
    "4.2.6": "Attacks on explanations, four architectures",
    "5.1": "Text classification",
    "5.2": "Image classification",
    "5.3": "Quality scores of text pairs",
    "6": "Head weights and their normalization",
}
"""Titles of the sections of the thesis, then of SMaT."""
ON_REAL_DATA = ("Natural language inference with", "Film reviews with")
"""Data in the title of a section, and the data that replaces it when the scale has only one model, on real data."""
BELOW_THE_TOP = "scroll-margin-top:6.5rem"
"""Keeps the verdict above a linked claim visible below the navigation bar."""
SURPRISES = 5
NO_NUMBER = "–"
OPPOSED_NOTE = "trainings disagree"
HEADS = ("Claim", "Verdict", "Deciding number")
Outcomes = Mapping[str, ClaimOutcome]


def verdict_of(claim: Claim, outcomes: Outcomes) -> Verdict:
    """Return the verdict on a claim, "not run" if it has no outcome."""
    return outcomes[claim.id].verdict if claim.id in outcomes else NOT_RUN


def by_section(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    """Group the claims by section; a claim of several sections belongs to the first."""
    sections: dict[str, list[Claim]] = {}
    for claim in claims:
        sections.setdefault(claim.section.partition(",")[0], []).append(claim)
    return sections


def count_verdicts(claims: Sequence[Claim], outcomes: Outcomes) -> dict[str, Counter[Verdict]]:
    """Return the number of claims with each verdict, by section."""
    return {name: Counter(verdict_of(one, outcomes) for one in own) for name, own in by_section(claims).items()}


def totals(counts: Mapping[str, Mapping[Verdict, int]]) -> dict[Verdict, int]:
    """Return the number of claims with each verdict over all sections."""
    return {verdict: sum(own.get(verdict, 0) for own in counts.values()) for verdict in VERDICTS}


def counts_row(counts: Mapping[Verdict, int]) -> None:
    """Draw the number of findings with each verdict, and below them the claims that are not findings."""
    with st.container(gap="xsmall", key="reproduction_counts"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            _badges(counts, FINDINGS)
        if others := [verdict for verdict in NON_FINDINGS if counts[verdict]]:
            with st.container(horizontal=True, gap="small", vertical_alignment="center"):
                st.caption(NO_FINDINGS, width="content")
                _badges(counts, others)


def _badges(counts: Mapping[Verdict, int], verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        color, icon = BADGES[verdict]
        st.badge(wording.count_text(verdict, counts[verdict]), color=color, icon=icon)


def trainings_caption(outcomes: Outcomes, examinations: Mapping[str, Examination | None]) -> str:
    """Return sentences on how verdicts change with other trainings of the models; empty if there are none."""
    found = {id: one for id, one in outcomes.items() if one.numbers}
    judged = [(one, own) for id, one in found.items() if (own := examinations.get(id)) and id in own.trainings]
    if not judged:
        return ""
    kept = sum(set(own.trainings[one.id]) == {one.verdict} for one, own in judged)
    opposed = sum(own.is_opposed(one) for one, own in judged)
    decided = sum(own.overall.get(one.id) in OPPOSED for one, own in judged)
    were, have = ("claim was" if len(judged) == 1 else "claims were"), ("has" if kept == 1 else "have")
    hold, are = ("holds", "fails") if opposed == 1 else ("hold", "fail"), ("is" if decided == 1 else "are")
    return (
        f"{len(judged)} {were} also judged on other trainings of the models: {kept} {have} the same verdict with all, "
        f"and {opposed} {hold[0]} with one training and {hold[1]} with another. Over trainings and examples together, "
        f"{decided} {are} decided."
    )


def section_label(name: str, counts: Mapping[Verdict, int], scale: Scale) -> str:
    """Return the title of a section with its number of claims for each verdict.

    The title does not name the models if the scale has only one.
    """
    title = SECTIONS[name] if len(scale.bases) > 1 else SECTIONS[name].partition(",")[0].replace(*ON_REAL_DATA)
    numbers = ", ".join(wording.count_text(verdict, counts[verdict]) for verdict in VERDICTS if counts.get(verdict))
    return f"**{name} {title}**: {numbers}"


def headline(counts: Mapping[Verdict, int]) -> str:
    """Return a sentence on how many findings hold."""
    held, failed, undecided = (counts[verdict] for verdict in FINDINGS)
    if not (total := held + failed + undecided):
        return "No claim has a result yet."
    verbs = "holds" if held == 1 else "hold", "does" if failed == 1 else "do", "is" if undecided == 1 else "are"
    return f"{held} of {total} claims {verbs[0]}, {failed} {verbs[1]} not, and {undecided} {verbs[2]} undecided."


def failure_margin(claim: Claim, outcome: ClaimOutcome) -> float:
    """Return the distance of the decisive number from the bound that it violates, 0 inside the bounds."""
    value = wording.decisive_number(claim, outcome).value
    return max(0.0, -margin(value, (value, value), (value, value), claim.bounds, 1).value)


def widest_failures(claims: Sequence[Claim], outcomes: Outcomes, count: int = SURPRISES) -> list[Claim]:
    """Return the claims that fail by the widest margin, widest first; ties keep the order of the paper.

    Claims that fail only because a gain is too small are omitted.
    """
    failing = (one for one in claims if verdict_of(one, outcomes) == "does not hold")
    plainly = (one for one in failing if not outcomes[one.id].too_small)
    return sorted(plainly, key=lambda claim: -failure_margin(claim, outcomes[claim.id]))[:count]


def overview_html(
    claims: Sequence[Claim], outcomes: Outcomes, examinations: Mapping[str, Examination | None], scale: Scale
) -> str:
    """HTML table with a row for each claim: a link to its card, its verdict and its deciding number."""
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in HEADS)
    rows = "".join(_overview_row(claim, outcomes, examinations.get(claim.id), scale) for claim in claims)
    return (
        f'<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="Claims">'
        f'<table class="xg-numbers" role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div></div>'
    )


def _overview_row(claim: Claim, outcomes: Outcomes, examination: Examination | None, scale: Scale) -> str:
    verdict = verdict_of(claim, outcomes)
    opposed = claim.id in outcomes and examination is not None and examination.is_opposed(outcomes[claim.id])
    note = f'<br><span class="xg-small" style="white-space:normal">{OPPOSED_NOTE}</span>' if opposed else ""
    title = f'<a href="#{claim_anchor(claim)}">{escape(claim.title)}</a>'
    number = escape(decisive_number_text(claim, outcomes.get(claim.id), scale))
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span>'
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{title}</th>'
        f'<td role="cell" style="white-space:nowrap">{sign} {verdict}{note}</td><td role="cell">{number}</td></tr>'
    )


def claim_anchor(claim: Claim) -> str:
    """Return the HTML id of a claim's card."""
    return f"claim-{claim.id}"


def decisive_number_text(
    claim: Claim, outcome: ClaimOutcome | None, scale: Scale, with_quantity: bool = False
) -> str:  # fmt: skip
    """Return the deciding number and the rule that it must meet. `with_quantity`: name the measured quantity first."""
    if outcome is None or not outcome.numbers:
        return NO_NUMBER
    number = wording.decisive_number(claim, outcome)
    title = wording.number_title(number.name, scale)
    text = f"{wording.number_with_interval(number)}, required: {wording.rule_text(claim)}"
    if outcome.verdict == "does not hold" and number.too_small:
        text += f" (gains below {wording.format_number(number.smallest_gain)} do not count)"
    if with_quantity:
        quantity = wording.quantity_name(claim, number.name, scale)
        # The quantity may name what the title names.
        named = [one for one in title.split(", ") if one and not re.search(rf"\b{re.escape(one)}\b", quantity, re.I)]
        title = ", ".join([*named, quantity])
    return f"{title}: {text}" if title else text


def surprise(claim: Claim, outcome: ClaimOutcome, examination: Examination | None, scale: Scale) -> None:
    """Draw a closed expander for a claim that fails by a wide margin: the number as its label, the claim inside."""
    number = escape_label(decisive_number_text(claim, outcome, scale, with_quantity=True))
    label = f"**{escape_label(claim.title)}** ({escape_label(claim.section)}): {number}"
    with st.expander(label, key=key(f"surprise.{claim.id}")):
        st.html(claim_html(claim, scale))
        _outcome(claim, outcome, examination, scale)


def claim_card(
    claim: Claim,
    outcome: ClaimOutcome | None,
    report: Reproduction | None,
    query: ReproductionQuery,
    examination: Examination | None,
) -> None:
    """Draw a claim with its verdict and numbers. `outcome`, `report`: None before a run."""
    scale = scale_of(query.scale)
    with st.container(border=True, key=claim_anchor(claim), gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            verdict = outcome.verdict if outcome else NOT_RUN
            color, icon = BADGES[verdict]
            st.badge(verdict, color=color, icon=icon)
            if outcome is not None and examination is not None and examination.is_opposed(outcome):
                st.badge(OPPOSED_NOTE, color="gray", icon=":material/swap_vert:")
            st.caption(f"Section {claim.section}")
        st.html(f'<div id="{claim_anchor(claim)}" style="{BELOW_THE_TOP}">{claim_html(claim, scale)}</div>')
        if outcome is None or report is None:
            return
        _outcome(claim, outcome, examination, scale)
        if outcome.numbers:
            _numbers(claim, outcome, report, query)


def _outcome(claim: Claim, outcome: ClaimOutcome, examination: Examination | None, scale: Scale) -> None:
    st.html(outcome_html(claim, outcome, scale))
    if text := examination_text(outcome, examination):
        st.html(note_html(text))


def claim_html(claim: Claim, scale: Scale) -> str:
    """HTML of a claim, its statistic and its rule."""
    declared = [wording.statistic_text(claim), *([wording.rule_text(claim)] if claim.contrasts else [])]
    trainings = wording.trainings_text(claim, scale)
    rule = f"Declared: {'; '.join(declared)}.{trainings and ' '}{trainings} For the command: {claim.id}."
    text = f'<p><b>{escape(claim.title)}</b></p><p>{escape(claim.says)}</p><p class="xg-small">{escape(rule)}</p>'
    return f'<div class="xg">{text}</div>'


def outcome_html(claim: Claim, outcome: ClaimOutcome, scale: Scale) -> str:
    """HTML of the number that decides the verdict, and of how many numbers are inside the bounds."""
    lead = "Why" if outcome.why else "Deciding number"
    distribution = wording.distribution_text(outcome)
    line = f"<br>{escape(distribution)}." if distribution else ""
    decision = escape(wording.decision_text(claim, outcome, scale))
    return f'<div class="xg"><p class="xg-small">{lead}: {decision}{line}</p></div>'


def note_html(text: str) -> str:
    """HTML of a small paragraph; text between backticks becomes code."""
    marked = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return f'<div class="xg"><p class="xg-small">{marked}</p></div>'


def _numbers(claim: Claim, outcome: ClaimOutcome, report: Reproduction, query: ReproductionQuery) -> None:
    opened = st.expander("Numbers", key=key(f"{OPEN}{claim.id}"), on_change="rerun")
    if not opened.open:
        return
    with opened:
        sizes = query.sizes if isinstance(query, SmatQuery) else {}
        first = wording.sum_text(claim.contrasts[0], scale_of(query.scale), sizes)
        st.html(note_html(f"The first is {first}."))
        draw_table(pandas.DataFrame(number_rows(outcome, scale_of(query.scale))), f"claim_{claim.id}")
        for entry, label, link in experiment_links(claim, report, query):
            st.page_link(entry.path, label=label, icon=":material/open_in_new:", query_params=link)


def number_rows(outcome: ClaimOutcome, scale: Scale) -> list[dict[str, object]]:
    """Return a table row for each number of a claim."""
    has_gain = any(one.smallest_gain for one in outcome.numbers)
    return [
        {
            "What": wording.number_title(one.name, scale) or "all",
            "Value": round(one.value, 3),
            "From": round(one.low, 3),
            "To": round(one.high, 3),
            "Widened from": round(one.wide_low, 3),
            "Widened to": round(one.wide_high, 3),
            **({"Smallest gain that counts": round(one.smallest_gain, 3)} if has_gain else {}),
            "n": one.n,
            "Inside": wording.INSIDE[one.verdict],
        }
        for one in outcome.numbers
    ]


def experiment_links(
    claim: Claim, report: Reproduction, query: ReproductionQuery
) -> Iterator[tuple[PageEntry, str, Query]]:
    """Yield page, label and link of each experiment that a claim is based on, opened at the claim's comparison.

    Experiments whose models are unavailable are omitted.
    """
    if isinstance(query, SmatQuery):
        for task, normalization in student_keys(claim):
            plan = query.plan((task, normalization))
            if not isinstance(plan, str) and _is_here(plan.teacher):
                link = students_link(students_state(plan, "image" if task == "image" else "text"))
                yield SCAFFOLD, f"Students: {TASKS[task]}, {normalization}", link
        return
    by_name = {one.name: one for one in report.experiments}
    for name in experiment_names(claim, scale_of(query.scale)):
        experiment = by_name[name]
        if experiment.plan and all(map(_is_here, experiment.plan["models"])):
            label = f"{experiment.source.capitalize()}: {name}"
            yield PAGES[experiment.source], label, LINKS[experiment.source](experiment, claim.terms[0].metric)


def _is_here(model: str) -> bool:
    """Whether a model is embedded or is an existing folder."""
    return model in (*embedded_models(), *embedded_image_models()) or Path(model).is_dir()


def _evaluation_link(experiment: ExperimentSummary, metric: str) -> Query:
    plan = EVALUATION.plan_of(experiment.plan)
    if experiment.name.endswith(ALONE):
        return plan_link(plan, y=metric)
    return plan_link(plan, view="scaling" if experiment.name.endswith(SIZES) else "architecture", y=metric)


def _randomization_link(experiment: ExperimentSummary, metric: str) -> Query:
    return plan_link(RANDOMIZE.plan_of(experiment.plan))


def _attack_link(experiment: ExperimentSummary, metric: str) -> Query:
    link = attack_link(attack_state(ATTACK.plan_of(experiment.plan), metric.partition("_")[2]))
    return {name: values for name, values in link.items() if name != "digest"}


LINKS = {"evaluation": _evaluation_link, "randomization": _randomization_link, "attack": _attack_link}
PAGES = {"evaluation": EVALUATE, "randomization": RANDOMIZATION, "attack": ADVERSARIAL}
"""Page by the source of an experiment, as in `LINKS`."""
