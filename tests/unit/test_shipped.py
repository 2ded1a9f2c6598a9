"""The results that come with the project: current, equal to computed ones, found without torch, true to their cards."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cache import codec
from components.images import state as picture_state
from components.text.state import START
from engine import runtime, shipped
from engine.concepts.plan import CONCEPTS
from engine.corpus.plan import CORPUS
from engine.data.datasets import load
from engine.experiments.run import finished, sample_of
from engine.explain import explain, explain_many, key_of, shipped_explanation
from engine.predictions import predictions
from engine.request import Example, Request
from engine.result import Explanation
from engine.rules.plan import RULES
from engine.scaffold.experiment import StudentStore
from engine.scaffold.presets import NORMALIZATION_PLANS, OPENING_PLANS
from engine.shipped import make
from engine.shipped.gallery import (
    GALLERY,
    METHODS,
    MODEL,
    PICTURE_METHODS,
    PROMPT_MODEL,
    GalleryCard,
    gallery_requests,
    picture_requests,
)
from engine.shipped.make import pack_lines
from engine.similarity import similarity_key, text_similarity
from engine.store import result_store
from engine.suppressor.scene import scene_key
from engine.suppressor.text import text_key
from tests.project import ROOT

LARGEST_FILE = 1_000_000

OPEN_A_PIECE = """
import json, sys
from engine.experiments.run import finished, prepare
from engine.explain import explain, explain_many
from engine.shipped import make
from engine.shipped.gallery import GALLERY, METHODS, picture_requests
made = explain_many([GALLERY[-1].request(method) for method in METHODS])
heavy = {"torch", "transformers", "scipy"} & set(sys.modules)
made += explain_many(picture_requests())  # scipy draws the scenes
heavy |= {"torch", "transformers"} & set(sys.modules)
print(json.dumps([all(one.cached for one in made), sorted(heavy)]))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache on the CPU, whatever the machine has."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    forget_the_device()
    yield
    forget_the_device()


def forget_the_device() -> None:
    runtime.device.cache_clear()
    runtime._only_cpu.cache_clear()


def named(title: str) -> GalleryCard:
    return next(piece for piece in GALLERY if piece.title == title)


def scores(title: str, method: str = "") -> tuple[Explanation, dict[str, float]]:
    """The explanation of a card and the score of each of its tokens."""
    piece = named(title)
    made = shipped_explanation(piece.request(method or piece.method))
    assert made is not None
    return made, {t.text: float(s) for t, s in zip(made.tokens, made.scores, strict=True) if not t.special}


def students() -> Iterator[StudentStore]:
    """What the Scaffold page opens with; those of other normalizations are of the same data set, which is read once."""
    scores = StudentStore(OPENING_PLANS["regression"])
    yield from (scores, *(StudentStore(OPENING_PLANS[kind]) for kind in ("text", "image")))
    for plan in NORMALIZATION_PLANS:
        other = StudentStore(plan)
        other.__dict__["source"] = scores.source
        yield other


def test_the_shipped_results_are_those_of_the_gallery_and_small() -> None:
    of_the_gallery = {key_of(request) for request in gallery_requests()}
    of_evaluations = {key for plan in make.EVALUATION_PLANS.values() for key in make.evaluation_keys(plan)}
    of_students = {kept.key(pupil) for kept in students() for pupil in kept.plan.students}
    of_small_models = {similarity_key(*make.similar_texts()), text_key(), scene_key()}
    experiments = {*make.randomization_keys(), *make.behavior_keys(), *make.attack_keys()}
    opening = {key for experiment in (CONCEPTS, CORPUS, RULES) for key in make.opening_keys(experiment)}
    others = {*of_evaluations, *of_small_models, *experiments, *opening, *of_students}
    again = (
        "run python -m engine.shipped.make, for students python -m engine.scaffold.ship, "
        "for suppressors python -m engine.suppressor.ship"
    )
    assert set(shipped.entries()) == of_the_gallery | others, again
    assert len(of_the_gallery) == len(GALLERY) * len(METHODS) + len(PICTURE_METHODS)
    assert shipped.EXPLANATIONS.stat().st_size < LARGEST_FILE


def test_the_shipped_similarity_is_what_is_computed() -> None:
    one = text_similarity(*make.similar_texts())
    with shipped.ignore_entries():
        computed = text_similarity(*make.similar_texts())
    assert one.first == computed.first
    assert one.value == pytest.approx(computed.value, abs=1e-5)
    np.testing.assert_allclose(one.relevance, computed.relevance, atol=ROUNDING * np.abs(computed.relevance).max())


@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_shipped_evaluation_is_the_one_that_its_page_opens_with(kind: str) -> None:
    plan = make.EVALUATION_PLANS[kind]
    sample, found = sample_of(plan), finished(plan)
    assert found is not None, "run python -m engine.shipped.make"
    assert {fact.example for fact in found.facts} == set(sample.indices)
    assert {one.method for one in found.scores} == set(plan.methods_with_baselines)
    assert shipped.EVALUATIONS.stat().st_size < LARGEST_FILE


def test_the_methods_are_those_that_the_pages_start_with() -> None:
    assert METHODS == START
    assert PICTURE_METHODS == picture_state.START


ASKED = {
    **{piece.title: [piece.request(method) for method in METHODS] for piece in GALLERY},
    "the first scene": picture_requests(),
}
more = pytest.mark.slow(reason="explains a text by eight methods, as those of other cards do")
EACH = [
    pytest.param(asked, id=title, marks=more if title in [piece.title for piece in GALLERY[2:]] else ())
    for title, asked in ASKED.items()
]


ROUNDING = 3e-4
"""The share of the largest score by which two processors may differ; 1.1e-4 is the most that was seen."""


@pytest.mark.parametrize("asked", EACH)
def test_a_shipped_result_is_what_is_computed(asked: list[Request]) -> None:
    found = explain_many(asked)
    with shipped.ignore_entries():
        made = explain_many(asked)
    for old, new in zip(found, made, strict=True):
        assert old.cached
        assert not new.cached
        assert (old.tokens, old.provenance, old.evaluations) == (new.tokens, new.provenance, new.evaluations)
        np.testing.assert_allclose(old.scores, new.scores, rtol=0, atol=ROUNDING * np.abs(new.scores).max())
        np.testing.assert_allclose(old.prediction.logits, new.prediction.logits, atol=1e-3)


def test_a_shipped_result_is_found_in_an_empty_home_and_written_nowhere() -> None:
    request = GALLERY[0].request("random")
    assert result_store().contains(key_of(request))
    assert explain(request).cached
    assert result_store().stats().entries == 0
    with shipped.ignore_entries():
        assert not result_store().contains(key_of(request))


def test_another_parameter_or_text_is_not_found() -> None:
    own = Request(MODEL, "random", Example("Something else."))
    seed = Request(MODEL, "random", GALLERY[0].example, seed=1)
    assert not any(result_store().contains(key_of(request)) for request in (own, seed))
    assert shipped_explanation(own) is None


def test_a_shipped_result_opens_without_the_libraries_that_run_models() -> None:
    done = subprocess.run([sys.executable, "-c", OPEN_A_PIECE], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, []]


def test_the_gallery_is_there_on_a_machine_with_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.device_type", lambda: "cuda")
    request = GALLERY[0].request("random")
    assert not result_store().contains(key_of(request)), "a GPU's numbers are its own"
    made = shipped_explanation(request)
    assert made is not None
    assert made.provenance.device == "cpu"


def test_a_damaged_entry_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    key, body = next(iter(shipped.entries().items()))
    monkeypatch.setattr(shipped, "entries", lambda: {key: body[:-1] + bytes([body[-1] ^ 1])})
    with pytest.raises(codec.CorruptEntry):
        codec.decode(shipped.entries()[key], key)
    assert shipped.find(key) is None
    assert not result_store().contains(key)


def test_what_the_cards_say_of_their_predictions_is_so() -> None:
    wrong = {"Cheap is praise here": 0.99, "Irony": 0.94, "Praise, then the battery": 0.75,
             "One word decides": 0.95, "The wrong animal": 0.75}  # fmt: skip
    for piece in GALLERY:
        prediction = scores(piece.title)[0].prediction
        if piece.label is not None:
            assert (prediction.label == piece.label) is (piece.title not in wrong)
        assert max(prediction.probabilities) > wrong.get(piece.title, 0.5)
    assert scores("What follows “but”")[0].prediction.label == "positive"
    assert scores("The same words, reversed")[0].prediction.label == "negative"
    assert scores("Not bad")[0].prediction.label == "positive"


def highest(scored: dict[str, float], count: int) -> set[str]:
    return set(sorted(scored, key=scored.__getitem__)[-count:])


def test_what_the_cards_say_of_their_maps_is_so() -> None:
    bad, occluded = scores("Not bad")[1], scores("Not bad", "occlusion")[1]
    assert -0.1 * max(bad.values()) < bad["bad"] < 0
    assert occluded["bad"] > 0.5 * max(occluded.values())

    never, drains = scores("One word decides", "integrated_gradients")[1], scores("One word decides")[1]
    assert all(abs(score) < 0.2 * drains["drains"] for word, score in drains.items() if word != "drains")
    assert highest(never, 2) == {"Never", "drains"}
    assert never["Never"] == pytest.approx(never["drains"], rel=0.05)

    stop, scored = scores("Attention to a period")
    assert stop.tokens[int(np.argmax(stop.scores * [not t.special for t in stop.tokens]))].text == "."
    assert all(scored["."] > 1.5 * score for word, score in scored.items() if word != ".")
    assert highest(scores("Attention to a period", "occlusion")[1], 3) == {"most", "vent", "ive"}


@pytest.mark.parametrize("method", ["kernel_shap", "integrated_gradients"])
def test_what_the_cards_say_of_both_of_their_maps_is_so(method: str) -> None:
    assert highest(scores("Cheap is praise here", method)[1], 2) == {"less", "cheap"}

    battery = scores("Praise, then the battery", method)[1]
    assert max(battery.values()) == battery["Superb"] > -battery["dies"]
    assert highest({word: -score for word, score in battery.items()}, 2) == {"dies", "before"}

    first = scores("What follows “but”", method)[1]
    assert first["superb"] > 5 * abs(first["predictable"])


@pytest.mark.parametrize("method", ["kernel_shap", "occlusion"])
def test_what_the_cards_say_of_effects_of_single_words_is_so(method: str) -> None:
    assert highest(scores("Irony", method)[1], 1) == {"masterpiece"}
    turned = scores("The same words, reversed", method)[1]
    assert turned["predictable"] > -turned["superb"] > 0
    assert turned["but"] > 0.2 * turned["predictable"]


@pytest.mark.parametrize("title", ["The subject, not the nearest noun", "To whom?", "The wrong animal"])
def test_what_the_cards_of_prompts_say_of_both_of_their_maps_is_so(title: str) -> None:
    for method in named(title).methods[:2]:
        made, scored = scores(title, method)
        order = sorted(scored, key=scored.__getitem__)
        match title:
            case "The subject, not the nearest noun":
                assert (made.prediction.label, order[-1]) == (" have", "songs")
            case "To whom?":
                assert (made.prediction.label, order[:-3:-1]) == (" Sarah", ["Sarah", "to"])
            case _:
                assert (made.prediction.label, order[0]) == (" goat", "goat")
                assert -scored["goat"] > scored["cow"] > 0


def test_the_cards_of_prompts_are_the_first_that_show_it() -> None:
    """The first prompt of its data set; of a mistake, the first one on which the model is wrong."""
    cards = {piece.dataset: piece for piece in GALLERY if piece.model == PROMPT_MODEL}
    assert {name: piece.index for name, piece in cards.items()} == {"agreement": 0, "indirect-object": 0, "facts": 2}
    first = [load("facts")[index] for index in range(3)]
    answers = [one.label for one in predictions(PROMPT_MODEL, [one.example for one in first])]
    assert [answer == one.answer for answer, one in zip(answers, first, strict=True)] == [True, True, False]


def test_a_card_has_two_methods_and_its_page_all_that_are_shipped() -> None:
    for piece in GALLERY:
        assert piece.method != piece.second
        assert piece.methods[:2] == (piece.method, piece.second)
        assert sorted(piece.methods) == sorted(METHODS)


def test_what_is_packed_is_found_under_its_key() -> None:
    scores = np.linspace(-1, 1, 7)
    [line] = pack_lines([("k", {"n": 7}, {"scores": scores})])
    read = json.loads(line)
    assert read["key"] == "k"
    meta, arrays = codec.decode(zlib.decompress(base64.b64decode(read["body"])), "k")
    assert meta == {"n": 7}
    np.testing.assert_array_equal(arrays["scores"], scores)
