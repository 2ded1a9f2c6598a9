"""The private copy: the loaded model is never touched, and the copy is as before whatever happened inside."""

from __future__ import annotations

import threading

import pytest
import torch

from engine.errors import Cancelled, ExegesisError
from engine.models.text_classifier import TextClassifier
from engine.randomization.twin import Twin
from engine.request import Example
from tests.explaining import classifier, run, task_for
from tests.explaining import fingerprint as bits

TEXT = "the acting never falters"


def logits(model: TextClassifier) -> torch.Tensor:
    return model.logits(model.collate([model.encode(Example(TEXT))]))


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_inside_only_the_twin_is_another_model_also_for_other_threads(family: str) -> None:
    model, twin = classifier(family), Twin(classifier(family))
    before, expected, seen = bits(model), logits(model), list[torch.Tensor]()
    with twin.randomized(("3", "2"), 0) as other:
        assert bits(model) == before
        assert other.module is not model.module
        assert not torch.allclose(logits(other), expected)
        thread = threading.Thread(target=lambda: seen.append(logits(model)))
        thread.start()
        thread.join()
    assert torch.equal(seen[0], expected)
    with twin.randomized((), 0) as same:
        assert torch.equal(logits(same), expected)
        assert bits(same) == before
    twin.check_untouched()


@pytest.mark.parametrize("error", [ValueError, Cancelled, KeyboardInterrupt])
def test_weights_are_back_after_an_exception_or_a_cancel(error: type[BaseException]) -> None:
    model = classifier("t5")
    twin, before = Twin(model), bits(model)

    def use() -> None:
        with twin.randomized(("1", "embeddings", "head"), 0) as other:
            assert other.embedding.weight is other.module.encoder.embed_tokens.weight, "tied weights stay tied"
            assert not torch.equal(other.embedding.weight, model.embedding.weight)
            raise error

    with pytest.raises(error):
        use()
    assert bits(model) == before
    with twin.randomized((), 0) as same:
        assert all(a is b for a, b in zip(same.module.parameters(), model.module.parameters(), strict=True))
    twin.check_untouched()


def test_what_one_remembers_is_not_taken_for_what_the_other_says() -> None:
    model = classifier("bert")
    twin, first = Twin(model), run("attention_mean", task_for(model, [TEXT]))[0].scores
    with twin.randomized(("1",), 0) as other:
        made = run("attention_mean", task_for(other, [TEXT]))[0].scores
        assert abs(made - first).max() > 1e-3
    with twin.randomized(("2",), 0) as other:
        assert abs(run("attention_mean", task_for(other, [TEXT]))[0].scores - made).max() > 1e-3
    assert (run("attention_mean", task_for(model, [TEXT]))[0].scores == first).all()


def test_a_model_that_changed_is_told_by_its_fingerprint() -> None:
    model = classifier("distilbert")
    twin, before = Twin(model), {name: value.clone() for name, value in model.module.state_dict().items()}
    with torch.no_grad():
        next(iter(model.module.parameters())).add_(1)
    with pytest.raises(ExegesisError, match="its weights changed while copies of it were randomized"):
        twin.check_untouched()
    model.module.load_state_dict(before)
    twin.check_untouched()
