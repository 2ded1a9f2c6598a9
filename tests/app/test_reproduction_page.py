"""The Reproduction page as a script: what was declared, a run from start to end, verdicts, numbers, links."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.navigation import REPRODUCTION
from components.reproduction.claim_view import OPPOSED_NOTE
from components.reproduction.page import ABSENT, RUN_LABELS, SOME_MISSING
from components.reproduction.state import default_state, key, section_name, sections_by_claim
from engine import jobs
from engine.models import catalog
from engine.reproduction import shipped
from engine.reproduction.claims import declaration, thesis_claims
from engine.reproduction.documents import topic_examination
from engine.reproduction.papers import EXAMPLE_LEVEL, TOPICS, topics_at
from engine.reproduction.report import FINDINGS, VERDICTS, Reproduction, Verdict
from engine.reproduction.run import cached_report
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.wording import count_text
from tests.alerts import errors, readable_html
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.reproduction.stand_ins import report_of, store_report
from tests.unit.reproduction.student_reports import store_report as store_students_report

pytestmark = pytest.mark.usefixtures("own_home", "no_models")

SECONDS = 120.0
CLAIMS = thesis_claims()
COUNT = declaration().examples["embedded"]
OTHERS = len(CLAIMS) - len(declaration().claims)
"""Claims of another topic, which is another run."""


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes with the project: here nothing does, so that a run takes no time, and no report of one."""
    monkeypatch.setattr(catalog, "EMBEDDED", tmp_path / "nothing")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)


def opened_as_linked(**link: str | list[str]) -> AppTest:
    """The page in its frame."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(REPRODUCTION.file)
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def opened(**link: str | list[str]) -> AppTest:
    """The page with all sections open."""
    page = opened_as_linked(**link)
    show = link.get("show", ())
    for section in set(sections_by_claim().values()):
        page.session_state[key(section_name(section, [show] if isinstance(show, str) else show))] = True
    page.run()
    assert not page.exception
    return page


def badges(page: AppTest) -> list[str]:
    """The words of all badges of verdicts, in order."""
    return [word for word in all_badges(page) if word != OPPOSED_NOTE]


def all_badges(page: AppTest) -> list[str]:
    found = (re.fullmatch(r":\w+-badge\[(?::\S+: )?(.*)\]", one.value) for one in page.markdown)
    return [match[1] for match in found if match]


def badges_of(*found: Reproduction) -> list[str]:
    """The counts of all claims, and the verdict of each."""
    known = {one.id: one.verdict for report in found for one in report.outcomes}
    verdicts = [known.get(claim.id, "not run") for claim in CLAIMS]
    return [*counts_of(verdicts), *verdicts]


def counts_of(verdicts: Sequence[Verdict]) -> list[str]:
    """The findings, and what else there is."""
    return [count_text(one, verdicts.count(one)) for one in VERDICTS if one in FINDINGS or one in verdicts]


def button(page: AppTest, label: str) -> bool:
    return any(one.label == label for one in page.button)


def test_before_any_run_all_claims_stand_as_they_were_declared() -> None:
    page = opened()
    assert badges(page) == ["not run"] * len(CLAIMS)
    text = readable_html(page)
    assert all(claim.says in text for claim in CLAIMS)
    assert "Declared: mean of overlap with the marks; each of 3 numbers; at least 0.9." in text
    assert all(f'<a href="#claim-{claim.id}">{claim.title}</a>' in text for claim in CLAIMS), "the overview"
    assert all(f'id="claim-{claim.id}"' in text for claim in CLAIMS), "where it leads"
    assert "t5-deep-marked" in text, "which models are not here"
    ours = sum(claim.section.startswith("4.1.5") for claim in CLAIMS)
    assert f"**4.1.5 Ensembles, T5 in four sizes**: {ours} not run" in [one.label for one in page.expander]
    assert any(EXAMPLE_LEVEL in one.value for one in page.markdown), "how verdicts are made, before any run"
    assert any("Assessing the Interpretability of Large Language Models" in one.value for one in page.markdown)
    assert button(page, "Run")
    assert button(page, RUN_LABELS["sanity"])
    assert [one.value for one in page.code] == [
        declaration().digest,
        f"exegesis reproduce thesis --scale embedded --examples {COUNT} --seed 0",
        declaration("sanity").digest,
        "exegesis reproduce thesis --topic sanity --scale embedded --examples 50 --seed 0",
        "exegesis reproduce thesis --scale full",
    ]


def test_a_run_ends_with_a_verdict_for_each_claim() -> None:
    page = opened(examples="3")
    next(one for one in page.button if one.label == "Run").click().run()
    [job] = jobs.list_jobs()
    assert (job.kind, job.spec["examples"]) == ("reproduce", 3)
    assert jobs.wait(job.id, SECONDS).state == "done"
    page = opened(examples="3")
    assert badges(page) == [
        "0 hold",
        "0 do not",
        "0 undecided",
        f"{len(CLAIMS)} not run",
        *["not run"] * len(CLAIMS),
    ]
    assert SOME_MISSING in readable_html(page)
    assert "Why: t5-mini-marked: model: unknown name 't5-mini-marked'." in readable_html(page)
    assert not button(page, "Run")
    assert cached_report(ThesisQuery(examples=3)) is not None
    assert button(opened(examples="4"), "Run"), "another number of examples is another run"


def test_a_run_is_followed_stopped_and_resumed() -> None:
    waiting = jobs.create("reproduce", ThesisQuery(examples=3).as_plain())
    page = opened(examples="3")
    assert not button(page, "Run")
    next(one for one in page.button if one.label == "Cancel").click().run()
    assert jobs.get(waiting.id).state == "cancelled"
    page = opened(examples="3")
    next(one for one in page.button if one.label == "Go on").click().run()
    assert jobs.wait(waiting.id, SECONDS).state == "done"


def test_a_report_shows_verdicts_and_what_decides() -> None:
    found = store_report(ThesisQuery())
    page = opened()
    assert badges(page) == badges_of(found)
    text = readable_html(page)
    assert f"Deciding number: Integrated gradients: 0.95 (0.93 to 0.97), n {COUNT}" in text
    assert "Integrated gradients: 0.95 (0.93 to 0.97), required: at least 0.9" in text, "in the overview"
    assert "about 4,321 examples would decide" in text
    assert "Why: gpt2-marked: <b>is not here</b>" in text, "letter by letter"


def test_it_opens_with_the_report_that_comes_with_the_project() -> None:
    found = shipped.ShippedReport(report_of(ThesisQuery(), "reviews-minilm"), "2026-01-31", "abc123")
    shipped.report_file("faithfulness").write_text(found.as_json(), encoding="utf-8")
    page = opened()
    text = readable_html(page)
    assert f"This report comes with the project. {found.provenance}" in text
    assert "Other trainings: 55 claims were also judged on 2 other trainings" in text
    examination = topic_examination(TOPICS["faithfulness"], found.report.digest)
    assert examination is not None
    opposed = [one for one in found.report.outcomes if examination.is_opposed(one)]
    assert opposed
    assert all_badges(page).count(OPPOSED_NOTE) == len(opposed)
    assert text.count(OPPOSED_NOTE) == len(opposed), "in the lists of the sections"
    assert any(f"and {len(opposed)} hold with one training and fail with another" in one.value for one in page.caption)
    assert badges(page) == badges_of(found.report)
    assert button(page, "Run"), "for whoever wants numbers of this computer"
    other = opened(seed="1")
    assert "comes with the project" not in readable_html(other), "it answers one seed"
    assert badges(other) == ["not run"] * len(CLAIMS)


def test_a_report_that_the_command_line_wrote_meanwhile_is_shown_at_the_next_look() -> None:
    page = opened(seed="1")
    assert badges(page) == ["not run"] * len(CLAIMS)
    found = store_report(ThesisQuery(seed=1))
    page.run()
    assert badges(page)[: len(VERDICTS)] == badges_of(found)[: len(VERDICTS)]


def test_randomizations_and_attacks_have_a_report_of_their_own(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "tiny"))
    both = [store_report(ThesisQuery(topic=topic), model) for topic in topics_at("thesis", "embedded")]
    page = opened(claim=["random-rollout-late", "attack-integrated-rank"])
    assert badges(page) == badges_of(*both)
    text = readable_html(page)
    assert any("Randomized models, T5 in four sizes" in one.label for one in page.expander)
    assert "The first is cascading_half(attention_rollout; t5-context)." in text
    assert "The first is unconstrained_rank_change(gradient_l2; t5-mini-context, t5-small-context, t5-context" in text
    links = {link.proto.label: link.proto.query_string for link in page.get("page_link")}
    assert set(links) == {
        "Randomization: context, T5 sizes, randomization", "Attack: context, T5 sizes, attack",
    }  # fmt: skip
    assert "data=reviews-marked%3Acontext%3Dtrue" in links["Randomization: context, T5 sizes, randomization"]
    assert "examples=" in links["Attack: context, T5 sizes, attack"]
    assert "digest=" not in links["Attack: context, T5 sizes, attack"], "no example is open"
    assert "measure=" not in links["Attack: context, T5 sizes, attack"], "rank change is what the page opens with"


def test_sections_are_closed_until_a_link_or_a_verdict_opens_them(tmp_path: Path) -> None:
    found = store_report(ThesisQuery(), str(save_checkpoint("bert", tmp_path / "tiny")))
    page = opened_as_linked()
    assert badges(page) == counts_of([*(one.verdict for one in found.outcomes), *["not run"] * OTHERS])
    failing = [one for one in found.outcomes if one.verdict == "does not hold"]
    assert any("widest margin" in one.value for one in page.markdown)
    widest = [one for one in page.expander if "required" in one.label]
    assert len(widest) == min(5, len(failing))
    assert {one.proto.type for one in widest} == {one.proto.type for one in page.expander}
    page = opened_as_linked(claim="marked-found")
    assert 'id="claim-marked-found"' in readable_html(page), "the section of the claim is open"
    assert 'id="claim-attack-integrated-rank"' not in readable_html(page)
    page = opened_as_linked(show="holds")
    held = [one for one in found.outcomes if one.verdict == "holds"]
    assert all(f'id="claim-{one.id}"' in readable_html(page) for one in held)


def test_claims_are_chosen_by_verdict() -> None:
    found = store_report(ThesisQuery())
    page = opened(show=["holds", "not run"])
    known = {one.id: one.verdict for one in found.outcomes}
    verdicts = [known.get(claim.id, "not run") for claim in CLAIMS]
    shown = badges(page)[len(counts_of(verdicts)) :]
    assert shown == [verdict for verdict in verdicts if verdict in ("holds", "not run")]
    assert page.query_params["show"] == ["holds", "not run"]


def test_a_link_with_an_older_word_shows_the_same_claims() -> None:
    found = store_report(ThesisQuery())
    page = opened(show=["cannot be told"])
    undecided = [one for one in found.outcomes if one.verdict == "undecided"]
    assert badges(page)[-len(undecided) :] == ["undecided"] * len(undecided)
    assert "holds" not in badges(page)
    assert not errors(page)


def test_the_quantity_that_is_explained_stands_on_the_page() -> None:
    store_report(ThesisQuery())
    store_report(ThesisQuery(topic="sanity"))
    text = readable_html(opened())
    assert "LIME and Kernel SHAP its probability" in text
    assert "Attacks change a map of the " in text
    store_students_report(SmatQuery())
    assert "Gradient explanations explain the teacher's logit" in readable_html(opened(paper="smat"))


def test_numbers_open_by_the_link_and_lead_to_the_evaluation(tmp_path: Path) -> None:
    store_report(ThesisQuery(), str(save_checkpoint("bert", tmp_path / "tiny")))
    assert "The first is" not in readable_html(opened())
    page = opened(claim="marked-found")
    text = readable_html(page)
    sizes = "t5-mini-marked, t5-small-marked, t5-marked, t5-deep-marked"
    assert f"The first is gt_overlap(integrated_gradients; {sizes})." in text
    assert 'data-name="Inside">yes' in text
    [link] = page.get("page_link")
    assert link.proto.label == "Evaluation: marked, T5 sizes"
    assert "view=scaling" in link.proto.query_string
    assert "data=reviews-marked" in link.proto.query_string


def test_what_a_link_asks_for_and_is_not_known_is_said() -> None:
    page = opened(examples="1", seed="x", show="perhaps", claim="nothing")
    said = errors(page)
    assert len(said) == 4
    assert f"examples: must be a whole number from 2 to 1000, got '1'. {COUNT} is used." in said
    assert any("claim: unknown name 'nothing'" in one for one in said)
    assert "claim" not in page.query_params


def test_students_on_real_data_are_a_tab_of_their_own() -> None:
    [query] = dataclasses.replace(default_state(), paper="smat-data").queries
    assert isinstance(query, SmatQuery)
    before = opened(paper="smat-data")
    assert badges(before) == ["not run"] * len(query.selected_claims)
    assert button(before, RUN_LABELS["smat-data"])
    report = store_students_report(query)
    page = opened(paper="smat-data", claim=["real-ru-en-smat-baseline"])
    verdicts: list[Verdict] = [one.verdict for one in report.outcomes]
    assert badges(page) == [*counts_of(verdicts), *verdicts]
    assert "The first is simulability(SMaT; scores of ru-en, 128 examples)" in readable_html(page)
    assert not page.get("page_link"), "its teacher is not here"
    assert query.command() in [one.value for one in page.code]


def test_real_data_are_a_tab_of_their_own(tmp_path: Path) -> None:
    model = str(save_checkpoint("bert", tmp_path / "tiny"))
    claims = thesis_claims("data")
    before = opened(paper="data")
    assert badges(before) == ["not run"] * len(claims)
    assert button(before, RUN_LABELS["data"])
    missing = [text for text in readable_html(before).splitlines() if ABSENT in text]
    assert ["minilm-" in text for text in missing] == [False], "what a run trains is not missing; nli-minilm is, here"
    assert any(
        one.label == f"**4.1.5 Ensembles**: {sum(c.section == '4.1.5' for c in claims)} not run"
        for one in before.expander
    )
    query = ThesisQuery("data", topic="data")
    report = store_report(query, model)
    page = opened(paper="data", claim=["real-marked-found"])
    verdicts: list[Verdict] = [one.verdict for one in report.outcomes]
    assert badges(page) == [*counts_of(verdicts), *verdicts]
    text = readable_html(page)
    assert "The first is gt_overlap(integrated_gradients; minilm-sst2-marked)." in text
    assert "It rests on one training of one model." in text
    assert {link.proto.label for link in page.get("page_link")} == {"Evaluation: sst2-marked, minilm"}
    assert query.command() in [one.value for one in page.code]
    assert "exegesis reproduce thesis --scale full" in [one.value for one in page.code]
