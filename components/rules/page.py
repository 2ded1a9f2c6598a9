"""The page of rules: fields for up to four rules, the answer, charts, exceptions to a rule, and the export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from components.browse.thumbnails import thumbnail_url
from components.charts.files import chart_file_buttons
from components.compute import run_cached, warm_up
from components.controls import PERSIST, options_popover
from components.errors import describe_error, escape_label, show_error, show_note
from components.experiment.page import export_area, references
from components.experiment.runs import PlanStatus, error_of, recent_area, spec_of, status_of, work_area
from components.experiment.state import (
    VIEW,
    ExperimentSession,
    ExperimentState,
    Methods,
    plan_controls,
    plan_of,
    say_beside,
)
from components.export import citation_html
from components.job_panel import JobPanel
from components.links import Query, write_text
from components.navigation import IMAGES, RULES_PAGE, TEXT, heading
from components.numbers import count, percent
from components.progress import run_with_progress
from components.rules.charts import (
    LETTERS,
    PICTURE_PANELS,
    TEXT_PANELS,
    RuleChart,
    ScoredRule,
    answer_html,
    notes_html,
    scored_rules,
    scores_table,
)
from components.styles import use_sheet, use_styles
from components.tables import draw_table
from engine.data.sources import SourceExample
from engine.errors import ExegesisError
from engine.experiments.run import carry_out, key_of, parts_of
from engine.home import product_version
from engine.models.summary import summarize_model
from engine.params import option
from engine.registry import all_explainers
from engine.request import Example, Picture
from engine.rules.language import ANY, FORMS, REACH, REGION_FORMS, parse_rule, target_of
from engine.rules.plan import MOST_RULES, RULES, RulesPlan
from engine.rules.result import ModelRules, RuleExample
from engine.substitution import words_of

ABOUT = (
    "Write what you believe about the model as a rule: a condition on the input, an arrow, and the class that the "
    "model then predicts. The rule is compared with the model’s own predictions, never with the labels."
)
AT_ONCE = 400
"""Maximum number of examples that the page tests itself; more become a job."""
LISTED = 10
"""Maximum number of listed exceptions."""
LONGEST = 300
"""Maximum length of a text in the list, in characters."""
RECENT = ("Recent tests", "Tests that were saved or ran as a job.")
SAVE_HELP = "Adds this test to the recent tests and to the jobs on the Library page. The link of the page holds it too."
STOPPED = "Stopped. Finished rules are in the cache."
HOW = {
    '"good"  "not good"': "These words, in this order, in any case.",
    "/^dis/": "A pattern that one word matches.",
    "negation": "not, no, never, without, … and words that end in n’t.",
    "and  or  not  ( )": "Join conditions.",
    "starts with  ends with": "The first or last words of the text.",
    "first third  last third": "The words lie in that part of the text.",
    "before": f'The first words lie at most {REACH} words before the second: negation before "good".',
    "-> class": "The class by its name, or by its number from 0.",
}
HOW_PICTURES = {
    "object": "The object that the data set marks, as patches.",
    "patch 3 4": "The patch in row 3 and column 4, counted from 1.",
    "-> any": "The class that the model predicts for each picture. Or name one class.",
}
LIMITS = (
    "A rule has at most 200 characters and no comma. A pattern has at most 40 characters and three of * + ?, none of "
    "them after a parenthesis, so that no pattern takes long."
)


@dataclass(frozen=True)
class RulesView:
    """The view options. `listed`: letter of the rule whose exceptions are listed."""

    listed: str = option(LETTERS[0], choices=tuple(LETTERS))


SESSION = ExperimentSession(RULES, "rules", RulesView)


def rules_page() -> None:
    """Draw the whole page."""
    use_styles()
    heading(RULES_PAGE)
    st.markdown(ABOUT)
    kind = SESSION.chosen()
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with line:
        SESSION.switch()
        recent_area(SESSION, *RECENT)
    methods = all_explainers(kind)
    loaded, wrong = SESSION.load(kind, methods)
    for one in wrong:
        show_error(one)
    options = options_popover(SESSION.key(kind, ""), line)
    models = SESSION.from_widgets(loaded, methods).plan.models
    with line:
        _help_popover(kind, models)
    readable = rule_fields(kind, loaded.plan.rules, models)
    with st.expander("Model, data set and methods", key=SESSION.key(kind, "plan"), on_change="rerun"):
        places = plan_controls(SESSION, kind, methods, options)
    places = dict.fromkeys(places, st.empty())  # an error in a closed expander would not be seen
    state = SESSION.from_widgets(loaded, methods)
    SESSION.save(state, loaded)
    if readable:
        try:
            _results(state, plan_of(state), methods, places)
        except ExegesisError as error:
            say_beside(places, describe_error(error))
    warm_up()  # last: see components/compute.py


def rule_fields(kind: str, rules: Sequence[str], models: Sequence[str]) -> bool:
    """Draw the fields of the rules, with an error below each invalid rule. Return whether all rules are valid.

    `rules`: initial values of the fields. `models`: the models whose classes the rules may name.
    """
    typed, readable = list[str](), True
    with st.container(key=SESSION.key(kind, "rule_fields")):
        columns = st.columns(2, gap="small") + st.columns(2, gap="small")
    for place, (letter, column) in enumerate(zip(LETTERS, columns, strict=True)):
        key = _field_key(kind, place)
        st.session_state.setdefault(key, rules[place] if place < len(rules) else "")
        if place > max(1, len(typed)) and not st.session_state[key]:
            continue  # one empty field after the used ones is enough
        with column:
            hint = "Add a rule to compare" if place else example_rules(kind, models)[0]
            text = str(
                st.text_input(f"Rule {letter}", key=key, persist_state=PERSIST, max_chars=200, placeholder=hint)
            ).strip()  # fmt: skip
            if text:
                typed.append(text)
                readable &= _is_readable(text, models)
    st.session_state[SESSION.key(kind, "rules")] = typed
    return readable


def _is_readable(text: str, models: Sequence[str]) -> bool:
    """Whether the rule is valid and names a class of each model. Draws the error if not."""
    try:
        rule = parse_rule(text)
        for labels in filter(None, (summarize_model(model).labels for model in models)):
            target_of(rule, labels)
    except ExegesisError as error:
        show_error(str(error).removeprefix("rules: "))
        return False
    return True


def _field_key(kind: str, place: int) -> str:
    return SESSION.key(kind, f"rules.{place}")


def example_rules(kind: str, models: Sequence[str]) -> list[str]:
    """Return an example of each form of rule, with classes of the first model."""
    if kind != "text":
        return list(REGION_FORMS)
    labels = summarize_model(models[0]).labels if models else ()
    if len(labels) < 2 or {"positive", "negative"} <= set(labels):
        return list(FORMS)
    return [form.replace("-> positive", f"-> {labels[0]}").replace("-> negative", f"-> {labels[-1]}") for form in FORMS]


def _help_popover(kind: str, models: Sequence[str]) -> None:
    how = HOW if kind == "text" else HOW_PICTURES
    with st.popover("How to write a rule", icon=":material/help:", key=SESSION.key(kind, "help")):
        rows = "".join(f"<dt><code>{escape(name)}</code></dt><dd>{escape(about)}</dd>" for name, about in how.items())
        st.html(f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl></div>')
        if kind == "text":
            st.caption(LIMITS)
        st.caption("Examples. Press one to use it.")
        for form in example_rules(kind, models):
            st.button(
                escape_label(form), key=SESSION.key(kind, f"form.{form}"), type="tertiary",
                on_click=partial(take_form, kind, form),
            )  # fmt: skip


def take_form(kind: str, form: str) -> None:
    """Put an example into the first empty field, or into the last field if none is empty (a callback)."""
    keys = [_field_key(kind, place) for place in range(MOST_RULES)]
    free = next((place for place, key in enumerate(keys) if not st.session_state.get(key)), MOST_RULES - 1)
    SESSION.put(kind, f"rules.{free}", form)


def _results(state: ExperimentState, plan: RulesPlan, methods: Methods, places: Mapping[str, Any]) -> None:
    if wrong := error_of(plan):
        say_beside(places, wrong)
        return
    status = status_of(plan)
    if status.results.missing and plan.examples <= AT_ONCE:
        key, place = key_of(parts_of(plan)[-1], status.results.sample), st.empty()
        done = run_with_progress(
            place, lambda: key, "Testing the rules", STOPPED,
            lambda tick: run_cached(key, lambda token: carry_out(plan, cancel=token), tick),
        )  # fmt: skip
        if done is None:
            return
        status = status_of(plan)
    else:
        work_area(SESSION.page, plan, status, _cost, "Some results of {} failed.")
    for found in status.results.found:
        _model_area(state, status, found)
    if status.results.found:
        _export(state, status, methods)


def _cost(plan: RulesPlan, status: PlanStatus) -> str:
    return f"{count(len(status.results.sample.indices), 'example')}, {count(len(plan.rules), 'rule')}."


def _model_area(state: ExperimentState, status: PlanStatus, found: ModelRules) -> None:
    plan = status.results.plan
    if not found.examples:
        show_error(f"No example can be tested. {next(iter(found.failed.values()), '')} Choose another data set.")
        return
    rules = scored_rules(found, plan.seed)
    st.caption(escape_label(f"{found.model} on {plan.dataset}"))  # its controls are in a closed expander
    st.html(answer_html(rules, len(found.examples), plan.seed))
    panels = PICTURE_PANELS if state.kind == "image" else TEXT_PANELS
    charts = [
        RuleChart(plan, found.model, rules, panel, SESSION.key(state.kind, f"chart.{found.model}")) for panel in panels
    ]
    drawn = [chart for chart in charts if len(chart.table)]
    for start in range(0, len(drawn), 2):
        for column, chart in zip(st.columns(2, gap="medium"), drawn[start : start + 2], strict=False):
            with column:
                _draw_chart(chart)
    st.html(notes_html(rules, plan.seed))
    with st.expander("All numbers", key=SESSION.key(state.kind, f"numbers.{found.model}"), on_change="rerun") as box:
        if box.open:
            draw_table(scores_table(rules), f"rules.{found.model}")
    if found.failed:
        show_note(f"{count(len(found.failed), 'example')} left out: {next(iter(found.failed.values()))}")
    _exceptions(state, status, found, rules)


def _draw_chart(chart: RuleChart) -> None:
    st.markdown(f"**{chart.panel.title}**")
    st.altair_chart(chart.chart(), key=chart.key("chart"), alt=f"{chart.panel.title} {chart.panel.axis}, by rule")
    with st.popover("Save chart", key=chart.key("files")):
        chart_file_buttons(chart)


def _exceptions(state: ExperimentState, status: PlanStatus, found: ModelRules, rules: Sequence[ScoredRule]) -> None:
    """Draw the examples that break a rule, the clearest first, each with a link to its page."""
    st.subheader("Exceptions", anchor=False)
    letters = [one.letter for one in rules]
    if len(rules) > 1:
        st.segmented_control(
            "Rule", letters, key=SESSION.key(state.kind, f"{VIEW}listed"), required=True, persist_state=PERSIST
        )
    listed = state.view.listed if state.view.listed in letters else letters[0]
    chosen = rules[letters.index(listed)]
    breaking = exceptions_of(chosen)
    pictures = chosen.result.of_pictures
    what = "The prediction stays without the region" if pictures else "The rule is true and another class is predicted"
    st.caption(f"{what}: {count(len(breaking), 'example')}.")
    for one in breaking[:LISTED]:
        shown, link = st.columns((5, 1), gap="small", vertical_alignment="center")
        try:
            example = status.results.sample.source.read(one.example)
        except ExegesisError as error:
            show_error(describe_error(error))
            continue
        shown.html(example_html(one, example, found.labels, _label(chosen, one, found)))
        page = IMAGES if pictures else TEXT
        query = [(name, value) for name, values in _link(status, found, example).items() for value in values]
        link.page_link(page.path, label=f"Open on {page.title}", icon=":material/open_in_new:", query_params=query)
    if len(breaking) > LISTED:
        st.caption(f"The first {LISTED} of {len(breaking)}. The export has all.")


def exceptions_of(rule: ScoredRule) -> list[RuleExample]:
    """Return the examples that break a rule, the clearest first.

    For a text, the rule is true and another class is predicted; the lowest probability of the rule's class comes first.
    For a picture, the prediction stays without the region; the highest probability without it comes first.
    """
    if rule.result.of_pictures:
        stays = [one for one in rule.result.examples if one.holds and one.removed_changed is False]
        return sorted(stays, key=lambda one: -(one.removed or 0.0))
    return sorted(rule.result.breaking, key=lambda one: one.probability)


def _label(rule: ScoredRule, one: RuleExample, found: ModelRules) -> str:
    """Return the class whose probability the rule is about."""
    return found.labels[one.predicted] if rule.result.label == ANY else rule.result.label


def example_html(one: RuleExample, example: SourceExample, labels: Sequence[str], label: str) -> str:
    """HTML of a text with the rule's words marked, or of a thumbnail, and the prediction. All text is escaped."""
    shown = one.words.lower().split()
    if isinstance(example.input, Picture):
        body = f'<img src="{escape(thumbnail_url(example.input.pixels))}" alt="">'
    elif isinstance(example.input, Example):
        body = f'<p dir="auto">{"".join(_marked(example.input, frozenset(shown)))}</p>'
    else:
        body = ""
    facts = f"#{one.example} · predicted {labels[one.predicted]} · probability of {label} {percent(one.probability)}"
    if one.removed is not None:
        facts += f", {percent(one.removed)} without the {'words' if one.words else 'region'}"
    return f'<div class="xg">{body}<p class="xg-small">{escape(facts)}</p></div>'


def _marked(example: Example, marked: frozenset[str]) -> Iterator[str]:
    """Yield the HTML of the text, cut to `LONGEST` characters, with the marked words in bold."""
    for segment, text in enumerate(filter(None, (example.text, example.text_pair))):
        last, cut = 0, text[:LONGEST]
        yield "<br>" if segment else ""
        for word in words_of(example):
            if word.segment == segment and word.end <= len(cut) and word.text.lower() in marked:
                yield f"{escape(cut[last : word.start])}<b>{escape(word.text)}</b>"
                last = word.end
        yield escape(cut[last:]) + ("…" if len(text) > LONGEST else "")


def _link(status: PlanStatus, found: ModelRules, example: SourceExample) -> Query:
    """Return the link that opens the example with this model."""
    plan = status.results.plan
    place: Query = {"data": [plan.dataset], "index": [str(example.index)]}
    if plan.split and isinstance(example.input, Example):  # the Text page reads the default split
        given = example.input
        place = write_text("text", given.text) | (write_text("pair", given.text_pair) if given.text_pair else {})
    elif plan.split:
        place |= {"split": [plan.split]}
    return {"model": [found.model]} | place


def _export(state: ExperimentState, status: PlanStatus, methods: Methods) -> None:
    plan = status.results.plan
    use_sheet("results")
    if status.last is None and status.running is None:
        panel = JobPanel(SESSION.page)
        panel.trouble()
        panel.offer("Save", "save", RULES.id, spec_of(plan), help=SAVE_HELP)
    cited = f"Exegesis {product_version()}. {RULES.title_of(plan.as_plain())}, seed {plan.seed}, {plan.dtype}."
    rules = [f"{letter}: {rule}" for letter, rule in zip(LETTERS, plan.rules, strict=False)]
    export_area(
        SESSION, state.kind, status.results.result, citation_html(cited, references(plan, methods, rules)),
        "One row per value of each example: the output of `exegesis rules --out`.",
        ("Scores, JSON", "exegesis-rules-scores.json", "The scores with intervals: the output of `--json`."),
    )  # fmt: skip
