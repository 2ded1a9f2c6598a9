"""Requests become explanations: cached, shared, cancelled, timed; bad ones are refused in words."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from engine import explain as engine_explain
from engine import runtime
from engine.errors import Cancelled, ExegesisError, UsageError
from engine.explain import explain, explain_many, key_of
from engine.explainers import path_integrals
from engine.models import loading
from engine.models.loading import load_model
from engine.progress import CancelToken
from engine.registry import EXPLAINERS, TOP_THREE, explainer, register
from engine.request import Example, Request
from tests import estimated
from tests.explaining import METHODS, checkpoint
from tests.learned import for_model

TEXT = "the plot drags"


def request_for(method: str = "gradient_l2", text: str = TEXT, **parts: Any) -> Request:
    pair = parts.pop("text_pair", None)
    return Request(**{"model": str(checkpoint("bert", 3)), "method": method, "example": Example(text, pair), **parts})


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own for each test; checkpoints are written before, so that they stay where they are."""
    for family, labels in (("bert", 3), ("bert", 1), ("gpt2", 3)):
        checkpoint(family, labels)
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    for_model(str(checkpoint("bert", 3)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """How many examples each run of a method was given."""

    def count(method: str) -> list[int]:
        sizes: list[int] = []
        known = explainer(method)

        def function(task: Any, params: Any) -> Any:
            sizes.append(len(task.items))
            return known.function(task, params)

        monkeypatch.setitem(EXPLAINERS["text"], method, dataclasses.replace(known, function=function))
        return sizes

    return count


@pytest.mark.parametrize("method", METHODS)
def test_a_hit_is_equal_and_touches_no_model(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"kernel_shap": {"n_samples": 16}, "lime": {"n_samples": 16}}.get(method, {})
    if method == "empirical":
        estimated.for_model(str(checkpoint("bert", 3)))
    first = explain(request_for(method, params=params))
    assert not first.cached
    monkeypatch.setattr(loading, "load_model", lambda *_: pytest.fail("the model was touched"))
    second = explain(request_for(method, params=params))
    assert second.cached
    assert second.scores.tobytes() == first.scores.tobytes()
    assert dataclasses.replace(second, scores=first.scores, cached=False) == first


def test_a_result_says_how_it_was_made() -> None:
    made = explain(request_for("occlusion", params={"window": "2"}, seed=4, target="LABEL_2", dtype="float64"))
    assert made.provenance.method == "occlusion"
    assert made.provenance.version == explainer("occlusion").version
    assert made.provenance.params == {"removal": "mask", "window": 2}
    assert (made.provenance.target, made.provenance.target_label) == (2, "LABEL_2")
    assert (made.provenance.seed, made.provenance.dtype, made.provenance.device) == (4, "float64", "cpu")
    assert made.provenance.revision
    assert made.seconds > 0
    assert made.evaluations == 1 + 2
    assert [t.text for t in made.tokens if not t.special] == TEXT.split()
    assert not made.scores.flags.writeable


@pytest.mark.parametrize("count", [1, 3])
def test_two_who_ask_the_same_cost_one_computation(count: int, calls: Callable[[str], list[int]]) -> None:
    sizes = calls("occlusion")
    requests = [request_for("occlusion", text) for text in ("the plot", "the film", "good food")[:count]]
    start, answers = threading.Barrier(4), []

    def work() -> None:
        start.wait()
        answers.append(explain_many(requests))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [count]
    assert len(answers) == 4
    for answer in answers:
        for got, expected in zip(answer, answers[0], strict=True):
            assert got.scores.tobytes() == expected.scores.tobytes()


def test_target_by_label_index_or_prediction() -> None:
    by_index = [explain(request_for("gradient_x_input", target=i)) for i in range(3)]
    by_label = [explain(request_for("gradient_x_input", target=f"LABEL_{i}")) for i in range(3)]
    by_text = [explain(request_for("gradient_x_input", target=str(i))) for i in range(3)]
    for a, b, c in zip(by_index, by_label, by_text, strict=True):
        assert a.scores.tobytes() == b.scores.tobytes() == c.scores.tobytes()
    assert np.abs(by_index[0].scores - by_index[1].scores).max() > 1e-3
    predicted = explain(request_for("gradient_x_input"))
    assert predicted.provenance.target == predicted.prediction.index
    assert predicted.scores.tobytes() == by_index[predicted.prediction.index].scores.tobytes()


def test_a_regression_head_has_one_target() -> None:
    model = str(checkpoint("bert", 1))
    plain, named = (explain(request_for("occlusion", model=model, target=t)) for t in (None, "LABEL_0"))
    assert plain.scores.tobytes() == named.scores.tobytes()
    assert plain.prediction.regression
    with pytest.raises(UsageError, match=r"target: unknown name '1'\. Known: LABEL_0\. Or 0\.$"):
        explain(request_for("occlusion", model=model, target=1))


def test_many_come_back_in_order_and_share_passes(calls: Callable[[str], list[int]]) -> None:
    occlusion, gradients = calls("occlusion"), calls("gradient_l2")
    texts = ["the plot drags", "good", "the ending is warm"]
    requests = [request_for(method, text) for text in texts for method in ("occlusion", "gradient_l2")]
    requests += [request_for("occlusion", model=str(checkpoint("gpt2", 3))), request_for("occlusion", "good")]
    reports: list[tuple[int, int]] = []
    answers = explain_many(requests, lambda done, total, label: reports.append((done, total)))
    assert (occlusion, gradients) == ([3, 1], [3])
    assert reports == [(0, 8), (4, 8), (7, 8), (8, 8)]
    for request, answer in zip(requests, answers, strict=True):
        assert answer.provenance.method == request.method
        assert answer.provenance.model == request.model
        shown = [t.text for t in answer.tokens if not t.special]
        assert "".join(shown) == request.example.text.replace(" ", "")
        assert answer.scores.tobytes() == explain(request).scores.tobytes()


def test_what_is_cached_is_not_made_again(calls: Callable[[str], list[int]]) -> None:
    explain(request_for("occlusion", "good"))
    sizes = calls("occlusion")
    answers = explain_many([request_for("occlusion", text) for text in ("the plot", "good", "the film")])
    assert sizes == [2]
    assert [a.cached for a in answers] == [False, True, False]


def test_a_cancelled_call_stops_and_keeps_what_is_done() -> None:
    token = CancelToken()

    def cancel_after_first(done: int, total: int, label: str) -> None:
        if done:
            token.cancel()

    requests = [request_for("occlusion"), request_for("gradient_l2"), request_for("attention_mean")]
    with pytest.raises(Cancelled):
        explain_many(requests, cancel_after_first, token)
    assert explain(requests[0]).cached
    assert not explain(requests[2]).cached


def test_many_askers_compute_once_even_without_a_cache(
    calls: Callable[[str], list[int]], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-folder").write_text("a file where the home should be")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "no-folder"))
    sizes, start = calls("occlusion"), threading.Barrier(6)
    scores: list[bytes] = []

    def asker() -> None:
        start.wait()
        scores.append(explain(request_for("occlusion", "the plot " * 10)).scores.tobytes())

    with runtime.turn():  # nobody is done before all have asked
        threads = [threading.Thread(target=asker) for _ in range(6)]
        for thread in threads:
            thread.start()
        while runtime.turns().waiting < 1:
            time.sleep(0.01)
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert len(set(scores)) == 1
    assert len(scores) == 6
    assert sizes == [1]


def test_a_long_computation_stops_between_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    token, passes = CancelToken(), []
    own = runtime.attempt

    def attempt(compute: Any) -> Any:
        passes.append(compute)
        token.cancel()
        return own(compute)

    monkeypatch.setattr(runtime, "attempt", attempt)
    with pytest.raises(Cancelled):
        explain_many([request_for("lime", "the plot drags and drags")], cancel=token)
    assert len(passes) == 1
    assert runtime.turns().place() is None, "the turn was given back"


def test_the_key_holds_every_part() -> None:
    requests = [
        request_for("lime"),
        request_for("occlusion"),
        request_for("lime", "the plot drags."),
        request_for("lime", "the plot", text_pair="drags"),
        request_for("lime", "drags", text_pair="the plot"),
        request_for("lime", "the plot", text_pair=""),
        request_for("lime", "the plot"),
        request_for("lime", seed=1),
        request_for("lime", dtype="float64"),
        request_for("lime", target=1),
        request_for("lime", target=0),
        request_for("lime", params={"n_samples": 100}),
        request_for("lime", params={"removal": "pad"}),
        request_for("lime", model=str(checkpoint("bert", 1))),
    ]
    keys = [key_of(r) for r in requests]
    assert len(set(keys)) == len(requests)
    assert keys == [key_of(r) for r in requests]
    assert key_of(request_for("lime", params={"n_samples": "512", "removal": "mask"})) == keys[0], (
        "defaults are filled in"
    )


@pytest.mark.parametrize(
    ("method", "changed"), [("lime", "lime"), ("ensemble_all", "gradient"), ("ensemble_top3", "lime")]
)
def test_a_new_version_is_a_new_key(method: str, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(request_for(method))
    known = explainer(changed)
    monkeypatch.setitem(EXPLAINERS["text"], changed, dataclasses.replace(known, version=known.version + 1))
    assert key_of(request_for(method)) != before


def test_other_weights_are_another_key(tmp_path: Any) -> None:
    from tests.tiny import save_checkpoint

    model = str(save_checkpoint("bert", tmp_path / "m", 3, seed=1))
    before = explain(request_for(model=model))
    save_checkpoint("bert", tmp_path / "m", 3, seed=2)
    after = explain(request_for(model=model))
    assert not after.cached
    assert before.scores.tobytes() != after.scores.tobytes()


def test_an_ensemble_takes_its_members_from_the_cache(calls: Callable[[str], list[int]]) -> None:
    lime, shap = calls("lime"), calls("kernel_shap")
    target = explain(request_for("lime")).provenance.target  # for the predicted class: found under its name too
    made = explain(request_for("ensemble_top3"))
    assert (lime, shap) == ([1], [1])
    again = [explain(request_for(m, target=target)) for m in ("lime", "kernel_shap", "integrated_gradients")]
    assert all(a.cached for a in again)
    shares = [a.scores / np.abs(a.scores).sum() for a in again]
    np.testing.assert_allclose(made.scores, np.mean(shares, axis=0), atol=1e-12)


def test_an_ensemble_tells_the_warnings_of_its_members_and_says_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_integrals, "GAP_LIMIT", 0.0)
    monkeypatch.setattr(path_integrals, "MAX_PARTS", 8)
    text = "good " * 100
    (gap,) = (n for n in explain(request_for("integrated_gradients", text)).notes if "completeness gap" in n)
    made = explain(request_for("ensemble_top3", text))
    assert f"Integrated gradients: {gap}" in made.notes
    assert sum("were cut off" in note for note in made.notes) == 1
    assert len(set(made.notes)) == len(made.notes)
    assert explain(request_for("ensemble_top3", text)).notes == made.notes


def test_predictions_that_were_forgotten_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of a batch are remembered when the memory of predictions is full."""
    monkeypatch.setattr(engine_explain, "PREDICTIONS_REMEMBERED", 1)
    texts = ["the plot", "the film", "good food", "the view"]
    explain_many([request_for("gradient_l2", text) for text in texts[:2]])
    answers = explain_many([request_for("gradient_x_input", text) for text in texts])
    load_model(str(checkpoint("bert", 3))).memo.clear()
    for text, answer in zip(texts, answers, strict=True):
        again = explain(request_for("attention_mean", text)).prediction
        np.testing.assert_allclose(answer.prediction.logits, again.logits, atol=1e-5)


@pytest.mark.parametrize("method", ["random", "gradient", "lime"])
def test_a_model_that_gives_no_numbers_is_told_in_one_sentence(method: str, tmp_path: Any) -> None:
    folder = shutil.copytree(checkpoint("bert", 3), tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ExegesisError, match="its logits are not finite numbers in float32"):
        explain(request_for(method, model=str(folder)))


def test_half_a_character_is_refused() -> None:
    with pytest.raises(UsageError, match="text_pair: holds half a character"):
        Example("whole", "\ud800")


@pytest.mark.parametrize("target", ["LABEL_3", 3, -1, True, "positive"])
def test_an_unknown_target_lists_the_known_ones(target: int | str) -> None:
    with pytest.raises(UsageError, match=r"target: .* Known: LABEL_0, LABEL_1, LABEL_2\. Or a number from 0 to 2\.$"):
        explain(request_for(target=target))


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, None])
def test_seeds_that_are_none(seed: Any) -> None:
    request = request_for()
    object.__setattr__(request, "seed", seed)
    with pytest.raises(UsageError, match="seed: must be a whole number of at least 0, got"):
        explain(request)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"method": "gradients"},
            r"method: unknown name 'gradients'\. Did you mean 'gradient'\? Known: attention_head",
        ),
        ({"method": "lime", "params": {"sample": 3}}, r"parameter of lime: unknown name 'sample'.*n_samples, removal"),
        ({"method": "lime", "params": {"removal": "blur"}}, r"lime\.removal: must be one of mask, pad, delete"),
        ({"method": "lime", "params": {"n_samples": 1}}, r"lime\.n_samples: must be a whole number from 2 to 20,000"),
        ({"dtype": "int8"}, r"dtype: must be one of float32, bfloat16, float16, float64, got 'int8'"),
        ({"model": "nowhere"}, "model: unknown name 'nowhere'"),
        ({"text": "  "}, "text: nothing to explain"),
    ],
)
def test_bad_requests_in_one_line(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ExegesisError, match=words) as caught:
        explain(request_for(**parts))
    assert "\n" not in str(caught.value)


def test_a_truncated_text_says_so() -> None:
    made = explain(request_for(text="good " * 100))
    limit = load_model(str(checkpoint("bert", 3))).max_length
    assert len(made.tokens) == limit
    assert made.truncated == 102 - limit
    assert f"{made.truncated} of its 102 tokens were cut off" in made.notes[0]


def test_a_name_is_registered_once() -> None:
    known = explainer("occlusion")
    again = register("occlusion", title="", family="", axes=known.axes, citation="", caution="")
    with pytest.raises(ValueError, match="explainer 'occlusion' is registered twice for text"):
        again(known.function)


@pytest.mark.parametrize("cached", range(len(TOP_THREE) + 1))
def test_an_ensemble_takes_as_long_as_its_members_wherever_they_were_made(cached: int) -> None:
    target = explain(request_for("gradient")).provenance.target
    earlier = sum(explain(request_for(method, target=target)).seconds for method in TOP_THREE[:cached])
    began = time.perf_counter()
    made = explain(request_for("ensemble_top3", target=target))
    passed = time.perf_counter() - began
    members = [explain(request_for(method, target=target)) for method in TOP_THREE]
    assert all(one.cached for one in members)
    assert sum(one.seconds for one in members) < made.seconds < earlier + passed


def test_each_example_of_a_batch_has_the_time_of_its_own_members() -> None:
    """One text's members were made alone, the other's with the ensemble: no time is counted twice, none is lost."""
    texts = (TEXT, f"{TEXT} again")
    for method in TOP_THREE:
        explain(request_for(method, texts[0]))
    made = explain_many([request_for("ensemble_top3", text) for text in texts])
    own = [
        one.seconds
        - sum(explain(request_for(method, text, target=one.provenance.target)).seconds for method in TOP_THREE)
        for text, one in zip(texts, made, strict=True)
    ]
    assert own[0] == pytest.approx(own[1]), "what merging took is shared alike"
    assert own[0] > 0
