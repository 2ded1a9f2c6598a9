"""Prefixes that are read once: the same numbers for less work, in every family of causal models."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
import torch

from engine import passes
from engine import task as task_module
from engine.generation import GenerationQuery, continue_tokens, log_probabilities
from engine.metrics.sensitivity import classifier_of_neighbors, moved
from engine.models.causal import CausalModel
from engine.models.classifier import AnyClassifier
from engine.models.loading import load_model
from engine.params import Plain
from engine.passes import ChangedRows
from engine.removal import coalition_probabilities, token_masks
from engine.removal_operators import OPERATORS
from engine.request import Example, Prompt
from engine.runtime import memory_budget, past_bytes
from engine.task import Attribution, Task
from tests.explaining import classifier, run, task_for
from tests.tiny import CAUSAL_FAMILIES, save_causal

TEXTS = (
    "the film is a quiet triumph",
    "good",
    "although the plot drags, the ending is warm and funny and never falters",
    "the price is not worth it",
)
TINY = "tiny-llama"


@pytest.fixture(autouse=True)
def cheap_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts share prefixes too, in as many groups as there are lengths."""
    monkeypatch.setattr(passes, "CPU_PASS_TOKENS", 0)


@pytest.fixture(scope="module", params=CAUSAL_FAMILIES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return loaded(str(save_causal(request.param, tmp_path_factory.mktemp(request.param))))


@pytest.fixture(scope="module")
def double(model: CausalModel) -> CausalModel:
    """In double precision, in which the order of sums does not show."""
    return loaded(model.id, "float64")


@pytest.fixture
def llama() -> CausalModel:
    return loaded(TINY)


def loaded(name: str, dtype: str = "float32") -> CausalModel:
    model = load_model(name, dtype)
    assert isinstance(model, CausalModel)
    return model


def whole_rows() -> contextlib.AbstractContextManager[object]:
    """Every row is read from its start, as by a model that shares nothing."""
    return mock.patch.object(passes, "shares_prefixes", return_value=False)


@contextlib.contextmanager
def counted_positions(model: AnyClassifier) -> Iterator[list[int]]:
    """Positions of each pass, padding included."""
    sizes: list[int] = []
    hook = model.blocks[0].register_forward_pre_hook(lambda _, args: sizes.append(args[0].shape[:2].numel()))
    try:
        yield sizes
    finally:
        hook.remove()


def random_rows(model: CausalModel, rows: int = 10) -> tuple[list, np.ndarray, np.ndarray]:
    """Texts of different lengths, and rows in which tokens are removed from a random place on, down to all of them."""
    encoded = [model.encode(Prompt(text)) for text in TEXTS]
    draw, width = np.random.default_rng(0), max(map(len, encoded))
    index = np.repeat(np.arange(len(encoded)), rows)
    keep = np.ones((len(index), width), dtype=bool)
    for row, text in enumerate(index):
        start, end = draw.integers(len(encoded[text]) + 1), len(encoded[text])
        keep[row, start:end] = draw.random(end - start) < draw.random()
    keep[index == 2][0, : len(encoded[2])] = False
    return encoded, index, keep


@pytest.mark.parametrize("operator", OPERATORS)
def test_rows_are_the_same_as_those_read_whole(model: CausalModel, operator: str) -> None:
    encoded, index, keep = random_rows(model)
    with whole_rows():
        expected = coalition_probabilities(model, encoded, index, keep, operator)
    with mock.patch.object(passes, "_read", wraps=passes._read) as read:
        found = coalition_probabilities(model, encoded, index, keep, operator)
    assert read.call_count == 1
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("count", [1, 3])
def test_deleted_sentences_are_the_same_as_rows_read_whole(model: CausalModel, count: int) -> None:
    ids = model.encode(Prompt(TEXTS[2])).ids
    prompts = [ids, *(np.delete(ids, range(start, start + 3)) for start in range(0, len(ids) - 3, 3)), ids[:2]]
    generated = [5, 9, 7][:count]
    with whole_rows():
        expected = log_probabilities(model, prompts, generated)
    np.testing.assert_allclose(log_probabilities(model, prompts, generated), expected, atol=1e-4, rtol=1e-5)


def test_gpt2_classifiers_share_prefixes_and_encoders_do_not() -> None:
    for name, shared in (("gpt2-nli", True), ("bert-marked", False)):
        model = load_model(name)
        encoded = model.encode(Example("A man plays a guitar.", "Somebody makes music." if shared else None))
        keep = token_masks(encoded, ~np.eye(len(encoded.features), dtype=bool), len(encoded))
        index = np.zeros(len(keep), dtype=int)
        with mock.patch.object(passes, "_read", wraps=passes._read) as read:
            found = coalition_probabilities(model, [encoded], index, keep, "mask")
        assert read.call_count == shared
        with whole_rows():
            expected = coalition_probabilities(model, [encoded], index, keep, "mask")
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_occlusion_computes_half_of_the_positions_and_a_fixed_head_none(llama: CausalModel) -> None:
    encoded = llama.encode(Prompt(TEXTS[2]))
    size = len(encoded)
    masks = token_masks(encoded, ~np.eye(len(encoded.features), dtype=bool), size)
    index = np.zeros(len(masks), dtype=int)
    with counted_positions(llama) as positions:
        coalition_probabilities(llama, [encoded], index, masks, "mask")
    starts = size - encoded.features
    assert sum(positions) == size + starts.sum() < 0.6 * size * len(masks)
    late = masks[-2:]
    with counted_positions(llama) as positions:
        coalition_probabilities(llama, [encoded], index[:2], late, "hide")
    assert sum(positions) == size + starts[-2:].sum()
    with counted_positions(llama) as positions, mock.patch.object(passes, "CPU_PASS_TOKENS", 10_000):
        coalition_probabilities(llama, [encoded], index, masks, "mask")
    assert positions == [size * len(masks)], "where passes cost more than they save, rows are read whole"


@pytest.mark.parametrize("operator", OPERATORS)
def test_what_rows_begin_with_in_common_is_read_once(model: CausalModel, operator: str) -> None:
    """Random rows of two texts share the beginnings that take the fewest positions, of all numbers of first ones."""
    encoded = [model.encode(Prompt(text)) for text in TEXTS[2:]]
    shortest, width, draw = min(map(len, encoded)), max(map(len, encoded)), np.random.default_rng(3)
    index = np.repeat([0, 1], 20)
    keep = np.ones((len(index), width), dtype=bool)
    for row, text in enumerate(index):
        keep[row, : len(encoded[text])] = draw.random(len(encoded[text])) < 0.5
    with whole_rows():
        expected = coalition_probabilities(model, encoded, index, keep, operator)
    with counted_positions(model) as positions:
        found = coalition_probabilities(model, encoded, index, keep, operator)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    if operator in ("delete", "hide"):
        return  # what follows depends on how many are deleted, or sees that they are hidden
    beginnings = [{(text, *keep[row, :count]) for row, text in enumerate(index)} for count in range(shortest)]
    whole = sum(len(encoded[text]) for text in index)
    fewest = min(whole - (len(index) - len(some)) * count for count, some in enumerate(beginnings))
    padding = sum(positions) - fewest
    assert fewest < 0.95 * whole
    assert 0 <= padding <= 20 * (width - shortest), (
        "the texts differ in length, and a pass is as wide as its longest row"
    )


def test_groups_take_the_fewest_tokens() -> None:
    """Against all ways to cut the rows, in rising order, into groups."""
    draw, size = np.random.default_rng(1), 17
    for _ in range(20):
        rows = ChangedRows(np.zeros(8, dtype=int), draw.integers(size, size=8), np.full(8, size))
        rest = np.sort(rows.rest)

        def tokens(ends: tuple[int, ...], rest: np.ndarray = rest) -> int:
            return sum(11 + (end - start) * int(rest[end - 1]) for start, end in itertools.pairwise((0, *ends)))

        cuts = [(*cut, 8) for count in range(8) for cut in itertools.combinations(range(1, 8), count)]
        found, ends = passes._group_ends(rows.rest, 11)
        assert found == tokens(tuple(ends.tolist())) == min(map(tokens, cuts))


@pytest.mark.parametrize("limit", ["two texts", "no text", "out of memory"])
def test_little_memory_gives_the_same_numbers(llama: CausalModel, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    encoded, index, keep = random_rows(llama)
    expected = coalition_probabilities(llama, encoded, index, keep, "hide")
    read = mock.Mock(wraps=passes._read, side_effect=MemoryError if limit == "out of memory" else None)
    monkeypatch.setattr(passes, "_read", read)
    if limit != "out of memory":
        share = past_bytes(llama, max(map(len, encoded))) / memory_budget()
        monkeypatch.setattr(passes, "PREFIX_SHARE", share * (2.5 if limit == "two texts" else 0.5))
    found = coalition_probabilities(llama, encoded, index, keep, "hide")
    assert read.call_count == {"two texts": 2, "no text": 0, "out of memory": 1}[limit]
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


def test_positions_that_depend_on_the_length_share_nothing(llama: CausalModel) -> None:
    assert passes.shares_prefixes(llama)
    for parameters in ({"rope_type": "dynamic"}, {"full_attention": {"rope_type": "longrope"}}):
        with mock.patch.object(llama.module.config, "rope_parameters", parameters):
            assert not passes.shares_prefixes(llama)


def test_moved_embeddings_follow_their_tokens() -> None:
    """A text whose embeddings are moved, with tokens deleted, is the rest with its own moves."""
    model = loaded(TINY)
    near = classifier_of_neighbors(model)
    encoded = model.encode(Prompt(TEXTS[0]))
    moves = np.random.default_rng(0).normal(0, 0.1, (len(encoded), model.embedding.embedding_dim)).astype(np.float32)
    stays = np.ones(len(encoded), dtype=bool)
    stays[[2, 3]] = False
    found = coalition_probabilities(near, [moved(encoded, moves)], np.zeros(1, dtype=int), stays[None], "delete")
    batch = model.collate([encoded])
    embeds = (model.embed(batch) + torch.from_numpy(moves))[:, stays]
    rest = batch.gather(torch.from_numpy(np.flatnonzero(stays))[None])
    rest.lengths[:] = int(stays.sum())
    with torch.no_grad():
        expected = torch.softmax(model.logits(rest, embeds).double(), -1).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def alone() -> contextlib.AbstractContextManager[object]:
    """Every item has a pass of its own."""
    return mock.patch.object(Task, "shared_passes", lambda task, prefixes=True: [[i] for i in range(len(task.items))])


def targets_of(model: CausalModel) -> list[Prompt]:
    """Targets and a contrast of one prompt, another prompt, and the start of the first."""
    text = TEXTS[2]
    labels = model.encode(Prompt(text)).labels
    return [
        *(Prompt(text, target=labels[at]) for at in (0, 3)), Prompt(text, target=labels[2], contrast=labels[1]),
        Prompt("good"), Prompt("although the plot"),
    ]  # fmt: skip


def assert_same_relevance(one: Attribution, other: Attribution) -> None:
    """AttnLRP: the logit and what has no token are each target's own, and both conserve it."""
    for name, share in other.extras.get("relevance", {}).items():
        assert one.extras["relevance"][name] == pytest.approx(share, rel=1e-5, abs=1e-5), name
        assert one.check is not None
        assert one.check.value < 1e-5


SHARING: list[tuple[str, dict[str, Plain], int, bool]] = [
    ("gradient_x_input", {}, 1, True),
    ("gradient_l2", {"quantity": "probability"}, 1, True),
    ("integrated_gradients", {"steps": "fixed", "n_steps": 3, "baseline": "zero"}, 3, True),
    ("integrated_gradients", {"quantity": "probability", "steps": "fixed", "n_steps": 2}, 2, True),
    ("smoothgrad", {"n_samples": 3}, 3, False),
    ("attn_lrp", {}, 1, True),
]
"""Methods, their parameters, their passes over an input, and whether prefixes share a pass."""


@pytest.mark.parametrize(("method", "params", "passes", "prefixes"), SHARING)
def test_targets_share_their_pass_forward(
    double: CausalModel, method: str, params: dict[str, Plain], passes: int, prefixes: bool
) -> None:
    if method == "attn_lrp" and double.adapter.lrp is None:
        return  # it refuses the model, which `test_causal` checks
    task = task_for(double, targets_of(double))
    assert task.shared_passes() == [[3], [0, 1, 2, 4]]
    assert task.shared_passes(prefixes=False) == [[3], [4], [0, 1, 2]]
    with counted_positions(double) as positions:
        together = run(method, task, **params)
    with alone(), counted_positions(double) as whole:
        expected = run(method, task, **params)
    assert sum(positions) < sum(whole)
    if passes:
        long, good, start = (len(task.examples[item]) for item in (0, 3, 4))
        assert sum(positions) == passes * (long + (good if prefixes else 2 * max(good, start)))
    # Gemma's norms run in single precision whatever that of the model is.
    close = 1e-5 if "Gemma" in double.adapter.family else 1e-6
    for one, other in zip(together, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=close * np.abs(other.scores).max(), rtol=0)
        assert one.evaluations == other.evaluations
        assert one.notes == other.notes
        assert_same_relevance(one, other)


@pytest.mark.parametrize(("method", "params", "passes", "_"), SHARING)
def test_classes_share_their_pass_forward(method: str, params: dict[str, Plain], passes: int, _: bool) -> None:
    model = classifier("bert", labels=4)
    tasks = [task_for(model, ["the plot drags", "a warm film"], target=target) for target in range(4)]
    task = Task(model, [item for own in tasks for item in own.items])
    assert task.shared_passes() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    with counted_positions(model) as positions:
        together = run(method, task, **params)
    if passes:
        assert sum(positions) == 2 * passes * max(map(len, task.examples))
    with alone():
        expected = [one for own in tasks for one in run(method, own, **params)]
    for one, other in zip(together, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6 * np.abs(other.scores).max(), rtol=0)
        assert_same_relevance(one, other)


def test_seeds_share_no_noise(llama: CausalModel) -> None:
    items = [dataclasses.replace(task_for(llama, ["good"]).items[0], seed=seed) for seed in (0, 1, 0)]
    first, second, third = (one.scores for one in run("smoothgrad", Task(llama, items), n_samples=2))
    np.testing.assert_allclose(first, third, rtol=1e-6)
    assert not np.allclose(first, second, rtol=1e-3)


def test_little_memory_takes_targets_apart(llama: CausalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_for(llama, targets_of(llama))
    expected = run("gradient_x_input", task)
    monkeypatch.setattr(task_module, "rows_at_once", lambda *_, **__: 3)
    with counted_positions(llama) as positions:
        found = run("gradient_x_input", task)
    long, good, start = (len(task.examples[item]) for item in (0, 3, 4))
    assert positions == [2 * max(good, start), long], "three go back together; the fourth reads its own tokens"
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5 * np.abs(other.scores).max(), rtol=0)


def test_positions_that_depend_on_the_length_share_no_prefix(llama: CausalModel) -> None:
    task = task_for(llama, targets_of(llama))
    with mock.patch.object(llama.module.config, "rope_parameters", {"rope_type": "dynamic"}):
        assert task.shared_passes() == [[3], [4], [0, 1, 2]]


def test_generation_reads_each_token_once(llama: CausalModel) -> None:
    ids = llama.encode(Prompt(TEXTS[0])).ids
    with counted_positions(llama) as positions, mock.patch.object(llama.module.generation_config, "eos_token_id", None):
        continue_tokens(llama, ids, GenerationQuery(TINY, TEXTS[0], 4))
    assert positions == [len(ids), 1, 1, 1]
