"""Zero-shot classifiers: logits beside the NLI model on whole pairs, names, removal, every explainer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import ExegesisError, UsageError
from engine.explain import explain, key_of
from engine.models import catalog
from engine.models.label_prompts import PAIR_LABELS, LabelPrompts, format_labels, split_prompts, with_prompts
from engine.models.loading import load_model
from engine.models.zero_shot import ZeroShotClassifier, find_relations
from engine.randomization.model_copy import ModelCopy
from engine.removal import coalition_values, removed, token_masks
from engine.removal_operators import OPERATORS
from engine.request import Example, Request
from tests.explaining import METHODS, fingerprint, run_cheaply, task_for
from tests.tiny import save_checkpoint

LABELS = ("travel", "good food and the view", "acting")
TEMPLATE = "the film is about {}, a quiet triumph"
TEXTS = ("the film is a quiet triumph", "good")
FAMILIES = ("bert", "roberta", "gpt2", "modernbert-mean", "deberta-v3", "bart", "t5-decoder", "albert", "mpnet")
NLI = {0: "contradiction", 1: "neutral", 2: "entailment"}


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return nli(request.param, tmp_path_factory)


def nli(family: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model with the labels of `facebook/bart-large-mnli`, in its order."""
    folder = save_checkpoint(family, tmp_path_factory.mktemp(family), labels=3)
    config = (folder / "config.json").read_text(encoding="utf-8")
    for at, name in NLI.items():
        config = config.replace(f'"{at}": "LABEL_{at}"', f'"{at}": "{name}"').replace(f'"LABEL_{at}"', f'"{name}"')
    (folder / "config.json").write_text(config, encoding="utf-8")
    return str(folder)


def named(folder: str, *labels: str) -> ZeroShotClassifier:
    model = load_model(with_prompts(folder, format_labels(labels or LABELS), TEMPLATE), "float64")
    assert isinstance(model, ZeroShotClassifier)
    return model


def pair_logits(folder: str, text: str, label: str) -> torch.Tensor:
    """The NLI model's own logits on the pair, alone."""
    plain = load_model(folder, "float64")
    with torch.no_grad():
        return plain.logits(plain.collate([plain.encode(Example(text, TEMPLATE.replace("{}", label)))]))[0]


def test_logits_are_those_of_entailment_of_each_pair_alone(folder: str) -> None:
    model = named(folder)
    assert model.labels == LABELS
    batch = model.collate([model.encode(Example(text)) for text in TEXTS])
    with torch.no_grad():
        found, again = model.logits(batch), model.logits(batch, model.embed(batch))
    expected = torch.stack([torch.stack([pair_logits(folder, text, label)[2] for label in LABELS]) for text in TEXTS])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(found, again)
    assert all(token.segment != 1 for token in model.encode(Example(TEXTS[0])).tokens)


def test_a_single_label_is_told_from_its_opposite(folder: str) -> None:
    model = named(folder, "travel")
    assert model.labels == ("travel", "not travel")
    with torch.no_grad():
        found = model.logits(model.collate([model.encode(Example(TEXTS[0]))]))[0]
    torch.testing.assert_close(found, pair_logits(folder, TEXTS[0], "travel")[[2, 0]], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("operator", OPERATORS)
def test_removal_acts_on_the_text_alone(folder: str, operator: str) -> None:
    """As on the NLI model, whose pair loses the same tokens of its first text and none of its second."""
    model, plain = named(folder), load_model(folder, "float64")
    encoded = model.encode(Example(TEXTS[0]))
    kept = np.ones((1, len(encoded.features)), dtype=bool)
    kept[0, [1, 3]] = False
    found = coalition_values(model, [encoded], [0], np.array([0]), token_masks(encoded, kept, len(encoded)), operator)
    entailed = []
    for label in LABELS:
        pair = plain.encode(Example(TEXTS[0], TEMPLATE.replace("{}", label)))
        keep = torch.ones(1, len(pair), dtype=torch.bool)
        keep[0, encoded.features[[1, 3]]] = False
        with torch.no_grad():
            entailed.append(plain.logits(*removed(plain, plain.collate([pair]), keep, operator))[0, 2])
    assert found[0] == pytest.approx(float(torch.softmax(torch.stack(entailed), 0)[0]), abs=1e-6)


def test_every_method_runs_or_says_why_not(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = named(nli("bert", tmp_path_factory))
    task, before, refused = task_for(model, ["the film", "good"], target=1), fingerprint(model), dict[str, str]()
    for method in METHODS:
        try:
            made = run_cheaply(method, task)
        except ExegesisError as error:
            refused[method] = str(error)
            continue
        assert all(np.isfinite(one.scores).all() for one in made), method
    assert fingerprint(model) == before
    assert all("once per label" in reason for reason in refused.values())
    assert set(refused) == {
        "attention_head", "attention_last_layer", "attention_logits", "attention_logits_last", "attention_mean",
        "attention_rollout", "attention_x_gradient", "attn_lrp", "empirical",
        "ensemble_all", "smat",
    }  # fmt: skip


def test_a_copy_with_a_random_block_has_the_same_labels(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = named(nli("bert", tmp_path_factory))
    batch = model.collate([model.encode(Example(TEXTS[0]))])
    with torch.no_grad():
        before = model.logits(batch)
        with ModelCopy(model).randomized(["2"], 0) as other:
            assert other.labels == LABELS
            assert (other.logits(batch) - before).abs().max() > 1e-3


def test_a_long_text_loses_its_end_and_never_the_hypothesis(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = named(nli("bert", tmp_path_factory))
    encoded = model.encode(Example("good " * 100))
    assert encoded.truncated == 100 - len(encoded.features)
    assert len(encoded) + max(len(one.ids) for one in model.suffixes) == 64
    with torch.no_grad():
        assert torch.isfinite(model.logits(model.collate([encoded]))).all()


def test_names_hold_everything_and_read_themselves_back() -> None:
    prompts = LabelPrompts(("travel & food", "50% off, now"), "About {}? Yes = sure.")
    name = with_prompts("some/folder", format_labels(prompts.labels), prompts.template)
    assert split_prompts(name) == ("some/folder", prompts)
    assert "," not in name
    assert split_prompts("nli-minilm?labels=a|b") == ("nli-minilm", LabelPrompts(("a", "b")))
    assert prompts.texts(PAIR_LABELS)[0] == "About travel & food? Yes = sure."
    assert LabelPrompts(("a",)).texts(PAIR_LABELS) == ("This example is a.",)


def test_labels_and_template_are_in_the_key() -> None:
    own = (("a, b",), ("b, a",), ("a, b", "Is {}."))
    names = ["nli-minilm", *(with_prompts("nli-minilm", *one) for one in own)]
    keys = {key_of(Request(name, "occlusion", Example("good"), {}, None, 0)) for name in names}
    assert len(keys) == len(names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("reviews-minilm?labels=a|b", "or decides pairs of texts"),
        ("tiny-llama?labels=a|b", "or decides pairs of texts"),
        ("nli-minilm?labels=", "one of them is empty"),
        ("nli-minilm?labels=a|a", "is there twice"),
        ("nli-minilm?labels=" + "|".join(map(str, range(51))), "must be 1 to 50 labels"),
        ("nli-minilm?labels=a&template=none", "must be a text with {} once"),
        ("nli-minilm?labels=a&top=3", "only template=... may follow"),
        ("no-such?labels=a|b", "unknown"),
    ],
)
def test_what_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("{}", r"\{\}")):
        load_model(name)


def test_a_pair_is_refused() -> None:
    with pytest.raises(UsageError, match="reads one text"):
        load_model("nli-minilm?labels=a|b").encode(Example("good", "bad"))


def test_two_classes_of_an_nli_model() -> None:
    assert find_relations("m", ["entailment", "not_entailment"]) == {"entail": 0, "contradict": 1}


def test_the_included_nli_model_knows_what_a_text_is_about() -> None:
    name = with_prompts("nli-minilm", "travel, cooking, sports")
    assert catalog.model_labels(name) == ("travel", "cooking", "sports")
    found = explain(Request(name, "occlusion", Example("The chef chopped the onions and fried them."), {}, None, 0))
    assert found.prediction.label == "cooking"
