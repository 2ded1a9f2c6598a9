"""What is declared of randomized models and of attacks: complete, readable, and as it was before anything was run."""

from __future__ import annotations

import pytest

from engine.attacks.findings import METRICS
from engine.attacks.params import METHODS, OBJECTIVES
from engine.errors import UsageError
from engine.jobs.reproducing import asked_of
from engine.randomization.plan import MODES, THESIS_METHODS
from engine.reproduction import curves
from engine.reproduction.asked import Asked, experiments, of_topics
from engine.reproduction.claims import FILES, TOPICS, Claim, declared, every_claim
from engine.reproduction.measures import ATTACKS, MEASURES
from engine.reproduction.scales import EMBEDDED, SCALES
from engine.reproduction.sources import GRADIENTS, RANDOMIZED
from engine.reproduction.words import statistic_told, sum_told

DECLARED = declared(FILES["sanity"])
DIGEST = "075a1d7cedf0b02bf7841420f5590ba8aa432cc9c74b238da91a762bf745affb"
"""Of the claims as they were last revised: what that changed is tested in `test_labels`. It changes with any of them.
"""
SECTIONS = {"4.1.4", "4.1.6", "4.2.4", "4.2.6"}
CLAIMS = {claim.id: claim for claim in DECLARED.claims}


def test_nothing_was_moved_since_it_was_declared() -> None:
    assert DECLARED.digest == DIGEST
    assert DECLARED.topic == "sanity"


def test_each_section_has_claims_and_each_claim_a_name_of_its_own() -> None:
    assert {claim.section.partition(",")[0] for claim in CLAIMS.values()} == SECTIONS
    both = every_claim()
    assert len({claim.id for claim in both}) == len(both) == len(CLAIMS) + len(declared().claims)
    titles = {(claim.section, claim.title) for claim in CLAIMS.values()}
    assert len(titles) == len(CLAIMS)
    assert all(len(title) < 60 for _, title in titles)
    first = [claim.section.partition(",")[0] for claim in both]
    assert first == sorted(first), "in the order of the thesis"


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_names_what_there_is(claim: Claim) -> None:
    assert all(claim.asked)
    assert claim.bounds != (None, None)
    terms = [term for contrast in claim.contrasts for term in contrast.terms]
    assert len({MEASURES[term.metric].source for term in terms}) == 1
    for term in terms:
        source = MEASURES[term.metric].source
        assert source in ("randomization", "attack")
        assert term.metric in DECLARED.tasks[term.task]
        assert set(term.methods) <= set(RANDOMIZED if source == "randomization" else GRADIENTS)
        assert all(set(term.models) <= scale.bases.keys() for scale in SCALES.values())


def test_measures_are_those_of_both_engines() -> None:
    assert (set(GRADIENTS) <= set(METHODS), ATTACKS, curves.MODES) == (True, OBJECTIVES, MODES)
    assert set(RANDOMIZED) == {*THESIS_METHODS, "gradient_l2"} - {"gradient"}, (
        "the L2 norm stands for the thesis's Gradients"
    )
    ours = {id for id, one in MEASURES.items() if one.source == "attack"}
    assert ours < {f"{objective}_{id}" for objective in OBJECTIVES for id in METRICS}


def test_every_experiment_is_told_what_was_declared() -> None:
    embedded = {one.name: one.plan(Asked(topic="sanity")) for one in experiments(Asked(topic="sanity"))}
    assert list(embedded) == [
        "marked, T5 sizes, randomization", "nli, T5 sizes, randomization", "marked, T5 sizes, attack",
        "marked, architectures, randomization", "marked, architectures, attack", "nli, architectures, attack",
    ]  # fmt: skip
    random, attack = embedded["marked, T5 sizes, randomization"], embedded["nli, architectures, attack"]
    assert (random.examples, random.seeds, random.modes) == (50, 3, MODES)
    assert (attack.examples, attack.attack["steps"], attack.attack["alpha"], attack.dataset) == (16, 100, 1.0, "nli")


def test_the_full_scale_is_that_of_the_thesis() -> None:
    full = Asked("full", topic="sanity")
    [random, attack] = [full.wanted(source, ("m",), EMBEDDED.data[0], ()) for source in ("randomization", "attack")]
    assert (random.examples, random.settings) == (50, {"seeds": 1})
    assert (attack.examples, attack.settings) == (16, {"attack": {"steps": 500}})


def test_fewer_examples_are_fewer_of_each() -> None:
    counts = {
        given: [
            Asked(examples=given, topic="sanity").wanted(source, ("m",), EMBEDDED.data[0], ()).examples
            for source in ("randomization", "attack")
        ]
        for given in (2, 25, 100)
    }
    assert counts == {2: [2, 2], 25: [25, 8], 100: [100, 32]}


def test_one_command_asks_both_topics() -> None:
    both = of_topics(Asked(examples=100))
    assert [one.topic for one in both] == list(TOPICS)
    assert [one.count for one in both] == [100, 50], "of randomizations at most as many as declared"
    assert both[0].command() == "exegesis reproduce thesis --scale embedded --examples 100 --seed 0"
    assert both[1].command() == "exegesis reproduce thesis --topic sanity --scale embedded --examples 50 --seed 0"
    [one] = of_topics(Asked(examples=100, claims=("attack-rank",)))
    assert (one.topic, one.count) == ("sanity", 100)
    for given in (both[1], one):
        assert asked_of(given.as_plain()) == given
    with pytest.raises(UsageError, match=r"claims: unknown name 'attack-rnk'. Did you mean 'attack-rank'"):
        of_topics(Asked(claims=("attack-rnk",)))
    with pytest.raises(UsageError, match="topic: unknown name 'all'"):
        Asked(topic="all").check()


def test_sums_are_told_with_their_weights() -> None:
    linear = CLAIMS["random-average-linear"]
    assert statistic_told(linear) == (
        "paired difference of rho with the later half of the blocks random and rho with all blocks random; "
        "each of 4 numbers"
    )
    models = "attention_mean; t5-mini-marked"
    assert sum_told(linear.contrasts[0], EMBEDDED) == f"cascading_half({models}) - 0.5 cascading_end({models})"
