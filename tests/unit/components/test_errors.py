"""What a page says is text and never Markdown: a link or a file could put pictures and links into it."""

from __future__ import annotations

import ast
import re

import pytest

from components.errors import WORD_JOINER, error_html, escape_label, note_html
from tests.project import name_of, sources, tree

DRAWN = {"error", "warning", "success", "info", "markdown", "caption", "write", "toast", "subheader", "toggle"}
"""Calls whose first argument Streamlit reads as Markdown."""
SAFE = {
    (
        "components/images/label_tokens.py",
        "f'The similarity of this prompt with the picture is {score}. {MEANING}'",
    ): "a number",
    ("components/layers/page.py", "describe_carried_share(graph)"): "numbers",
    ("components/images/sliding.py", "how_to_repeat(state.focus)"): "our words",
    ("components/significance.py", "how_to_repeat(focus)"): "our words",
    ("components/behavior/page.py", "HOW.format(plural(INPUTS[state.kind]))"): "our words",
    ("components/text/generation.py", "how_to_repeat(state.focus)"): "our words",
    ("components/rules/page.py", "f\"{what}: {count(len(breaking), 'example')}.\""): "our words and a number",
    ("components/rules/page.py", "f'**{chart.panel.title}**'"): "one of our titles",
    ("components/suppressor/page.py", "answer(result)"): "numbers and titles of methods",
    ("components/suppressor/page.py", "f'{weights_text(result.problem)} {CHART_NOTE}'"): "numbers and our words",
    ("components/suppressor/page.py", "agreement_text(result.methods)"): "numbers and titles of methods",
    ("components/suppressor/page.py", "trained_text(found)"): "numbers and titles of methods",
    ("components/suppressor/page.py", "checks_text(found.checks)"): "numbers and our words",
    ("components/ask/bar.py", "f'**{title}:** {escape_label(sentence)}'"): "our title, and an escaped sentence",
    ("components/ask/bar.py", "f'The page shows all of them. Read the first {asked.count}.'"): "a number",
    ("components/scaffold/page.py", "' '.join([MARKS if has_baseline else NO_BASELINE, *few])"): "our words",
    ("components/scaffold/export.py", "caption"): "our words",
    (
        "components/evaluate/leaderboard.py",
        "f'{legend(shown)} {escape_label(hidden_text(tables, shown[0].metrics, named))}'",
    ): "our words, and an escaped label",
    ("components/scaffold/learned_explainer.py", "active_words(weights)"): "numbers",
    ("components/scaffold/controls.py", "describe_work(plan, len(missing), seconds)"): "numbers",
    ("components/scaffold/runs.py", "training_words(run, passes)"): "numbers and our words",
    (
        "components/scaffold/learned_explainer.py",
        "MAPS.format('patches' if kind == 'image' else 'tokens; a word shows the sum of its tokens')",
    ): "our words",
    (
        "components/scaffold/learned_explainer.py",
        "example_words(comparison, candidate, sample.dataset)",
    ): "all that is not ours is a literal",
    (
        "components/scaffold/sections.py",
        "NO_OTHER.format(' and '.join((f'*{name}*' for name in there)) or 'none')",
    ): "names of normalisations",
    (
        "components/scaffold/sections.py",
        "ACTIVE_ALL if measured.contrast is None else contrast_words(measured.contrast)",
    ): "ours",
    ("components/scaffold/sections.py", "PLAUSIBILITY.format(unit, MARKED[measured.exact])"): "our words",
    (
        "components/scaffold/sections.py",
        "f\"**{SIDE_TITLES[side.name].removeprefix(', ').capitalize()}**\"",
    ): "ours",
    (
        "components/scaffold/sections.py",
        "f'{escape_label(skipped_words(protocols))} Brackets: 95% intervals over examples.{note}'",
    ): "a literal and our words",
    ("components/scaffold/sections.py", "verdict(protocols)"): "numbers and our words",
    ("components/scaffold/learned_explainer.py", "student_words(student)"): "numbers",
    ("components/scaffold/runs.py", "cost_words(status.result, status.missing)"): "numbers",
    ("components/adversarial/example_panel.py", "pale"): "numbers and our words",
    ("components/adversarial/example_panel.py", "describe_run_cost(state, len(missing))"): "numbers",
    (
        "components/adversarial/experiment_panel.py",
        "describe_experiment(result, len(sample.indices))",
    ): "numbers and our words",
    ("components/adversarial/experiment_panel.py", "METRICS[state.many.measure].about"): "our words",
    (
        "components/adversarial/experiment_panel.py",
        "summarize_means(means.scores, means.frame.titles)",
    ): "numbers and titles of methods",
    ("components/browse/embedding.py", "describe_map(embedding, table)"): "numbers and our words",
    ("components/browse/embedding.py", "f\"{count(len(selected), 'example').capitalize()} selected.\""): "a number",
    ("components/browse/lists.py", "' '.join(notes)"): "numbers, and titles of methods",
    ("components/browse/lists.py", "f'No example matches.{more} Change the search or the filter.'"): "a number",
    ("components/browse/lists.py", "describe_place(listed, current)"): "numbers",
    ("components/widgets/base.py", "PIN_HINT.format(unit=unit, units=plural(unit))"): "our words",
    ("components/compare/results.py", "parts_words(comparison)"): "numbers and our words",
    ("components/compare/results.py", "agreement_words(comparison.agreement, comparison.view, comparison.unit)"): (
        "numbers and our words"
    ),
    ("components/compare/results.py", "f'Not compared, because the scores have no order (all are equal): {names}.'"): (
        "letters of columns"
    ),
    ("components/compare/results.py", "disagreement_words(disagreement, comparison)"): "numbers and our words",
    ("components/compare/results.py", "missing"): "one of three sentences",
    ("components/compare/results.py", "list_words(examples, comparison)"): "numbers and our words",
    ("components/compare/results.py", "f'Nothing is compared yet. Press {label}.'"): "a number",
    ("components/study/form.py", "COLOR_COSTS[field_value('colors')]"): "one of three sentences",
    ("components/text/results.py", "hint"): "one of three sentences",
    ("components/compute.py", "f'Computing: {words}'"): "numbers, and what is counted",
    ("components/attention/flow.py", "' '.join(filter(None, words))"): "numbers and our words",
    (
        "components/evaluate/page.py",
        "' '.join([plan_text(evaluation.plan, size), *reference_texts(evaluation, source.exact)])",
    ): "numbers, listed words and our sentences",
    (
        "components/evaluate/page.py",
        "f\"Added automatically: {', '.join((methods[id].title for id in added))}.\"",
    ): "titles of methods",
    ("components/evaluate/views.py", "cost_text(missing[0], methods, missing[0].examples, pace)"): "numbers",
    ("components/experiment/runs.py", "note"): "our words",
    ("components/evaluate/views.py", "view.question"): "one of our questions",
    ("components/evaluate/views.py", "view.about"): "our words, without anything of Markdown",
    ("components/attention/flow.py", "describe_rows(reading)"): "our words, and a token as `escape_label` has it",
    ("components/navigation.py", "entry.question"): "the question of one of our pages",
    ("components/navigation.py", "entry.caution"): "the caution of one of our pages",
    ("pages/home.py", "f'**{name}**'"): "the name of one of our menus",
    ("components/job_panel.py", "describe_end(last)"): "one of our states, and numbers",
    ("components/experiment/page.py", "page.about"): "our words",
    ("components/experiment/page.py", "page.advice(state.plan)"): "numbers and our words",
    ("components/behavior/page.py", "about(plan, question)"): "a number and our words",
    ("components/behavior/page.py", "EQUAL.format(found.largest_difference)"): "a number",
    ("components/randomization/page.py", "describe_means(models)"): "numbers and our words",
    ("components/experiment/runs.py", "empty.format(start)"): "our words",
    ("components/experiment/runs.py", "cost(plan, status)"): "numbers",
    (
        "components/randomization/page.py",
        "' '.join([CAUTION, APPLIES, *([ZERO] if flat else [])])",
    ): "our sentences",
    (
        "components/randomization/stage_maps.py",
        "f'{BELOW.format(MEASURES[view.measure].lower())} {ENDS[view.scale]}'",
    ): "our words",
    ("components/reproduction/page.py", "FULL_SCALE[topics[0].paper]"): "one of two sentences",
    ("components/reproduction/claim_view.py", "f'Section {claim.section}'"): "of a declared claim",
    ("components/library/page.py", "message"): "numbers",
    ("components/library/cards.py", "f'{card.title} · `{name}`'"): "the card of an embedded data set",
    ("components/library/jobs.py", "f'Job {job.id} was added to the list below.'"): "a number",
    ("components/library/previews.py", "f'Job {job.id} was added: see Jobs.'"): "a number",
    (
        "components/library/maps.py",
        "f\"Imported {count_text(stored.maps, 'map')}: {stored.id}.\"",
    ): "a number and a name",
    ("components/library/jobs.py", "f'#{view.id} · {view.when}'"): "a number and a time",
    ("components/library/cards.py", "name"): "an embedded model",
    (
        "components/library/cards.py",
        "without_title(file.read_text(encoding='utf-8'))",
    ): "the card of an embedded model",
    ("components/method_picker.py", "f'Changed: {changes}'"): "parameters of a method: numbers and listed words",
    ("components/progress.py", "sentence"): "what was stopped, in our words",
    ("components/export.py", "how"): "one of our sentences",
    (
        "components/corpus/page.py",
        "TEST.format(f'{found.permutations:,}', 'words' if kind == 'text' else 'patches', unit)",
    ): ("numbers and our words"),
    ("components/text/significance.py", "CAUTIONS[view.replacements]"): "one of our sentences",
    ("components/text/similarity.py", "how_to_repeat(state.focus)"): "one of our sentences",
    ("components/text/counterfactuals.py", "how_to_repeat(state.focus)"): "one of our sentences",
    ("components/images/counterfactuals.py", "how_to_repeat(state.focus)"): "one of our sentences",
    (
        "components/text/counterfactuals.py",
        "f'The score is {signed(probe.prediction.logits[0])}. Enter a threshold that it has to cross.'",
    ): "a number",
    (
        "components/browse/lists.py",
        "f'{page * PAGE_SIZE + 1:,} to {min(total, (page + 1) * PAGE_SIZE):,} of {total:,} pictures'",
    ): "numbers",
    ("components/images/results.py", "explain_agreement(chance)"): "numbers and our words",
    ("components/questions.py", "f'{page.words.curves} and agreement of these methods'"): "our words",
    (
        "components/questions.py",
        "_describe_agreement(result.measure, result.k, result.n, page.unit)",
    ): "numbers and our words",
    (
        "components/questions.py",
        "_describe_curves(ways, page.unit, 'score' if score else 'probability', page.words.shortened)",
    ): "our words",
    (
        "components/questions.py",
        "f\"Left out because they have no map (the reason is above): {', '.join(missing)}.\"",
    ): "titles of methods",
    ("components/attention/page.py", "missing"): "one of four sentences",
    (
        "components/attention/readings.py",
        "f'This {kind} has only one {unit} to rank, so there is nothing to compare.'",
    ): "our words",
    (
        "components/annotate/page.py",
        "f'{saved}{trial}' or 'Take as much time as you need.'",
    ): "our words",
    ("components/results/sections.py", "results.summary.meanings['by_annotator']"): "our words",
    ("components/results/sections.py", "results.summary.meanings['by_item']"): "our words",
    ("components/results/sections.py", "f\"{summary.meanings['needed']} {FORECAST}\""): "numbers and our words",
    ("components/reproduction/page.py", "' '.join((topic.about for topic in topics))"): "our words",
    (
        "components/reproduction/page.py",
        "' '.join(filter(None, (topics[0].level, NON_FINDING_RULES, topics[0].note)))",
    ): "our words",
    ("components/reproduction/page.py", "headline(counts)"): "numbers and our words",
    ("components/reproduction/page.py", "small_text(small, counts['does not hold'])"): "numbers and our words",
    ("components/reproduction/page.py", "trained"): "numbers and our words",
    (
        "components/reproduction/page.py",
        "f'{DECLARED.format(FILE_SUFFIXES[query.topic_id])} {query.declaration.revised}'",
    ): "our words",
    ("components/reproduction/page.py", "status.local.time"): "a number and our words",
    ("components/reproduction/page.py", "ABOUT[state.paper]"): "our words",
    ("components/reproduction/page.py", "FULL_SCALE[state.paper]"): "our words",
    ("components/reproduction/page.py", "NOT_RUN_YET[query.topic_id]"): "our words",
    ("components/results/sections.py", "summary.meanings['course']"): "our words",
    ("components/results/sections.py", "summary.meanings['needed']"): "numbers and our words",
    ("components/results/sections.py", "summary.meanings['spread']"): "a number and our words",
    ("components/results/sections.py", "summary.meanings['wins']"): "our words",
    ("components/results/sections.py", "summary.meanings[part]"): "of three measures: numbers and our words",
    ("components/results/sections.py", "f'**{title}**'"): "one of two titles of ours",
    (
        "components/results/sections.py",
        "f'{describe_rules(results.study.design.exclusion)}{share}'",
    ): "numbers and our words",
    ("components/results/sections.py", "results.summary.meanings['seconds']"): "numbers and our words",
    ("components/study/form.py", "FIELD_LABELS['placebo']"): "our words",
    ("components/study/page.py", "f'#{record.id}'"): "a number",
    (
        "components/study/items.py",
        "f'Examples {start:,} to {min(last, start + A_PAGE - 1):,}; the last one is {last:,}'",
    ): "numbers",
    ("components/study/items.py", "_describe_preview(design, len(items))"): "numbers and our words",
    ("components/text/results.py", "missing"): "one of three sentences",
    ("components/compare/controls.py", "f'Compare with another {noun}'"): "a noun of ours",
    ("components/compare/texts.py", "f'Both {noun}s'"): "a noun of ours",
    (
        "components/compare/texts.py",
        "f'Change the other {noun} above to see how the predictions and maps differ.'",
    ): "a noun of ours",
    ("components/compare/texts.py", "f'Type the other {noun} above.'"): "a noun of ours",
    ("components/ablation.py", "words.nothing"): "our words",
}
"""Texts that need no `escape_label`, and why."""
EVIL = "![](http://127.0.0.1:9/x.png) [a](http://evil.example) <img src=x> www.evil.example a@b.example"


def drawn() -> list[tuple[str, ast.expr]]:
    """(file, first argument) of every call in pages and components that may draw Markdown."""
    calls = ((file, node) for file in sources("pages", "components") for node in ast.walk(tree(file)))
    return [
        (name_of(file), node.args[0])
        for file, node in calls
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DRAWN and node.args
    ]


def is_ours(said: ast.expr) -> bool:
    """Words that stand in the source; names of constants among them; what `escape_label` has escaped."""
    if isinstance(said, ast.JoinedStr):
        return all(is_ours(part.value) for part in said.values if isinstance(part, ast.FormattedValue))
    if isinstance(said, ast.IfExp):
        return is_ours(said.body) and is_ours(said.orelse)
    if isinstance(said, ast.Call):
        return isinstance(said.func, ast.Name) and said.func.id in {"escape_label", "count", "size_text", "len"}
    return isinstance(said, ast.Constant) or (isinstance(said, ast.Name) and said.id.isupper())


def test_only_words_of_ours_are_drawn_as_markdown() -> None:
    foreign = {(file, ast.unparse(said)) for file, said in drawn() if not is_ours(said)}
    assert not foreign - set(SAFE)


@pytest.mark.parametrize("said", [EVIL, "\"quotes\" & 'entities' &lt;b&gt;", "<script>alert(1)</script>"])
def test_what_is_said_has_no_elements_but_ours(said: str) -> None:
    for html in (error_html(said), note_html(said)):
        assert re.findall(r"<(\w+)", html) == ["div", "p"]


def test_a_label_escapes_every_sign_and_joins_what_would_be_found_without_one() -> None:
    assert escape_label("a_b [c](d)") == r"a\_b \[c\]\(d\)"
    assert escape_label("good food") == "good food"
    assert escape_label("two\n\nlines\t.") == r"two lines \."
    j = WORD_JOINER
    assert escape_label(":material/x:") == rf"\:{j}material\/x\:{j}"
    assert escape_label("http://a.b") == rf"http\:{j}\/\/a\.b"
    assert escape_label("www.a.b") == rf"www{j}\.a\.b"
    assert escape_label("a@b.c") == rf"a\@{j}b\.c"
    assert escape_label("a -> b") == rf"a \-{j}\> b"
