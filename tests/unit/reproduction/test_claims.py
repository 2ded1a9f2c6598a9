"""What is declared of the thesis: complete, readable, and as it was before anything was run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.registry import explainer
from engine.reproduction.claims import FOLDER, Claim, Contrast, MethodTerm, declaration, load_declaration, thesis_claims
from engine.reproduction.experiments import GRADIENTS, METHODS, RANDOMIZED
from engine.reproduction.papers import ALONE, EMBEDDED, FULL, MEASURES, THESIS_TOPICS, TOPICS

DIGESTS = {
    "faithfulness": "40d48f5a7b0546caa924fc29a4b23a0f07ea970a86377ffb502fee033d4fdd21",
    "sanity": "fb7afb98cd80b22229ae50d8d61e94bff0e084847197f9a8573e531ea6438580",
    "data": "fbc4385531492458192adbeb3d655c4515f6039ded1761adeda65e3ca4eef53c",
}
"""Of the claims as they were last revised: what that changed is tested in `test_run`. It changes with any of them.
"""
WITH_100_REAL_EXAMPLES = "07360885a9ac03969eac1049df1586cc7b03d8b8741ae043c4211a078d4afa27"
SECTIONS = {
    "faithfulness": {"4.1.1", "4.1.2", "4.1.3", "4.1.5", "4.2.1", "4.2.2", "4.2.3", "4.2.5"},
    "sanity": {"4.1.4", "4.1.6", "4.2.4", "4.2.6"},
    "data": {"4.1.1", "4.1.2", "4.1.3", "4.1.5", "4.2.1", "4.2.3", "4.2.5"},
}
CLAIMS = {claim.id: claim for claim in declaration().claims}
SANITY = {claim.id: claim for claim in declaration("sanity").claims}
REAL = {claim.id: claim for claim in declaration("data").claims}
ON_REAL_DATA = {"mnli": "nli", "esnli": "movies"}
OF_FILMS = {"movies-plausible-lead": "families-nli-plausible-lead"}
"""The claim of the thesis, where its name differs by more than the data."""


def test_nothing_was_moved_since_it_was_declared(tmp_path: Path) -> None:
    assert {topic: declaration(topic).digest for topic in THESIS_TOPICS} == DIGESTS
    assert declaration("sanity").topic == "sanity"
    moved = json.loads((FOLDER / TOPICS["faithfulness"].declaration).read_text(encoding="utf-8"))

    def digest(**layout: object) -> str:
        (tmp_path / "claims.json").write_text(json.dumps(moved, **layout), encoding="utf-8")  # type: ignore[arg-type]
        return load_declaration(tmp_path / "claims.json", "faithfulness").digest

    moved["claims"][0]["threshold"] = 0.89
    assert digest() != DIGESTS["faithfulness"]
    moved["claims"][0]["threshold"] = 0.9
    assert digest(indent=7, sort_keys=True) == DIGESTS["faithfulness"], "its content counts, not how it is laid out"


def test_the_claims_on_real_data_were_revised_only_in_their_examples(tmp_path: Path) -> None:
    plain = json.loads((FOLDER / TOPICS["data"].declaration).read_text(encoding="utf-8"))
    plain["revised"], revision = plain["revised"].split(" Revised on 2026-11-30")
    assert revision.endswith(f"Without this revision the digest is {WITH_100_REAL_EXAMPLES}.")
    plain["examples"] = {"data": 100}
    (tmp_path / "claims.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_declaration(tmp_path / "claims.json", "data").digest == WITH_100_REAL_EXAMPLES


@pytest.mark.parametrize("topic", THESIS_TOPICS)
def test_each_section_has_claims_and_each_claim_a_name_of_its_own(topic: str) -> None:
    claims = declaration(topic).claims
    assert {claim.section.split(", ")[0] for claim in claims} == SECTIONS[topic]
    titles = [(claim.section, claim.title) for claim in claims]
    assert len(set(titles)) == len(titles) == len({claim.id for claim in claims})
    assert all(len(title) < 60 for _, title in titles)


def test_claims_of_both_topics_come_in_the_order_of_the_thesis() -> None:
    both = thesis_claims()
    assert len({claim.id for claim in both}) == len(both) == len(SANITY) + len(CLAIMS)
    assert not {claim.id for claim in both} & {claim.id for claim in thesis_claims("data")}
    first = [claim.section.partition(",")[0] for claim in both]
    assert first == sorted(first)
    assert {section for claim in CLAIMS.values() for section in claim.section.split(", ")} == SECTIONS["faithfulness"]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_names_what_there_is(claim: Claim) -> None:
    assert all(claim.entries)
    assert claim.bounds != (None, None)
    for term in claim.terms:
        assert MEASURES[term.metric].source == "evaluation"
        assert term.metric in declaration().tasks[term.task]
        assert all(explainer(method, "text") for method in term.methods)
        assert set(term.methods) <= {*METHODS, "random"}
        for scale in (EMBEDDED, FULL):
            assert set(term.models) <= scale.bases.keys()
            assert term.task in scale.tasks


@pytest.mark.parametrize("claim", SANITY.values(), ids=SANITY)
def test_a_claim_on_randomized_models_or_attacks_names_what_there_is(claim: Claim) -> None:
    assert all(claim.entries)
    assert claim.bounds != (None, None)
    assert len({MEASURES[term.metric].source for term in claim.terms}) == 1
    for term in claim.terms:
        source = MEASURES[term.metric].source
        assert source in ("randomization", "attack")
        assert term.metric in declaration("sanity").tasks[term.task]
        assert set(term.methods) <= set(RANDOMIZED if source == "randomization" else GRADIENTS)
        assert all(set(term.models) <= scale.bases.keys() for scale in (EMBEDDED, FULL))


@pytest.mark.parametrize("claim", REAL.values(), ids=REAL)
def test_a_claim_on_real_data_is_one_of_the_thesis_on_one_model(claim: Claim) -> None:
    name = claim.id.removeprefix("real-")
    known = CLAIMS[OF_FILMS.get(name, name.replace("movies-", "nli-"))]
    assert (claim.rule, claim.bounds, claim.least) == (known.rule, known.bounds, known.least)

    def compared(contrasts: Sequence[Contrast], tasks: Mapping[str, str]) -> set[object]:
        return {
            (
                one.oriented,
                *((term.times, tasks.get(term.task, term.task), term.metric, term.methods) for term in one.terms),
            )
            for one in contrasts
        }

    tasks = set(claim.tasks)
    theirs = [one for one in known.contrasts if {ON_REAL_DATA.get(term.task, term.task) for term in one.terms} <= tasks]
    assert compared(claim.contrasts, {}) == compared(theirs, ON_REAL_DATA)
    assert {term.models for term in claim.terms} == {(ALONE,)}
    models = {model for term in known.terms for model in term.models}
    assert "bert" in models or models & {"size-2", "size-3"}, "a group to which an encoder belongs, or most sizes"
    assert len(models) > 2
    assert {term.metric for term in claim.terms if term.task == "movies"} <= set(declaration("data").tasks["movies"])


def test_what_a_claim_goes_through_is_written_out() -> None:
    claim = CLAIMS["marked-gradients-behind"]
    assert len(claim.entries) == 2 * 3
    assert all(len(choices) == 1 for choices in claim.entries)
    sizes = tuple(f"size-{number}" for number in range(1, 5))
    [first, *_] = claim.contrasts
    assert first.name == "gradient_l2, integrated_gradients"
    assert first.terms == (
        MethodTerm(1, "marked", "mean_rank_pct", ("gradient_l2",), sizes),
        MethodTerm(-1, "marked", "mean_rank_pct", ("integrated_gradients",), sizes),
    )
    assert (claim.rule, claim.bounds, claim.strict) == ("at least", (0.1, None), False)


def test_nothing_is_compared_with_itself() -> None:
    [choices] = CLAIMS["families-nli-bert-roberta"].entries
    assert [one.name for one in choices] == ["bert, roberta", "roberta, bert"]


def test_claims_are_chosen_by_their_names() -> None:
    ids = ("nli-harder", "marked-best")
    chosen = declaration().select(ids)
    assert [claim.id for claim in chosen] == ["marked-best", "nli-harder"], "in the thesis's order"
    assert declaration().select(()) == declaration().claims
    with pytest.raises(UsageError, match=r"claims: unknown name 'marked-bst'\. Did you mean 'marked-best'"):
        declaration().select(("marked-bst",))
