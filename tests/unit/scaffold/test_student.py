"""Students: the states and heads that they read, what of them learns, and that the base is nobody's to change."""

from __future__ import annotations

import pytest
import torch

from engine.models.attention import capture_attention
from engine.scaffold.student import Student, head_count, mean_logits
from tests.unit.scaffold.making import KINDS, base, fingerprint, student, taught


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_the_hidden_states_of_transformers(kind: str) -> None:
    model = base(kind)
    examples = taught(model, 3)
    for row in range(3):
        rows = examples.batch([row], model).rows
        with torch.no_grad():
            found = model.hidden_states(rows)
            inputs = {"pixel_values": rows.pictures} if model.kind == "image" else {"input_ids": rows.ids}
            backbone = model.module.get_submodule(model.adapter.backbone)
            if kind in ("roberta", "xlm-roberta"):
                inputs["position_ids"] = model.adapter.first_position(model.module.config) + torch.arange(
                    rows.ids.shape[1]
                ).expand(rows.ids.shape)
            outputs = backbone(**inputs, output_hidden_states=True)
        # A norm that follows the last block is a part of what the last state is.
        wanted = [*outputs.hidden_states[:-1], outputs.last_hidden_state]
        assert len(found) == len(model.blocks) + 1 == len(wanted)
        for state, its in zip(found, wanted, strict=True):
            assert torch.allclose(state, its, atol=1e-9)
    assert not any(block._forward_pre_hooks for block in model.blocks), "nothing listens any more"


@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_batch_says_what_its_rows_say_alone(kind: str) -> None:
    model, split = base(kind), taught(base(kind), 4)
    pupil = student(model)
    with torch.no_grad():
        together = pupil(split.batch(range(4), model), explain=True)
        assert together.heads is not None
        for row, example in enumerate(split.examples):
            alone = pupil(split.batch([row], model), explain=True)
            assert torch.allclose(together.logits[row], alone.logits[0], atol=1e-9)
            assert alone.heads is not None
            assert torch.allclose(together.heads[row, :, : len(example)], alone.heads[0], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_heads_alone_are_those_of_the_whole_pass_and_logits_do_not_hang_on_being_asked(kind: str) -> None:
    model, pupil = base(kind), student(base(kind))
    batch = taught(model, 4).batch(range(4), model)
    with torch.no_grad():
        explained, plain = pupil(batch, explain=True), pupil(batch)
        heads = pupil.heads(batch)
    assert plain.heads is None
    assert torch.allclose(explained.logits, plain.logits, atol=1e-9)
    assert explained.heads is not None
    assert torch.equal(explained.heads, heads)
    assert heads.shape[1] == head_count(model)


def test_logits_are_a_mix_of_all_states_under_masked_means() -> None:
    model, pupil = base("bert"), student(base("bert"))
    split = taught(model, 2)
    batch = split.batch([1], model)
    with torch.no_grad():
        states = pupil.base.hidden_states(batch.rows)
        shares = pupil.mix.exp() / pupil.mix.exp().sum()
        mixed = torch.stack([s * state for s, state in zip(shares, states, strict=True)]).sum(0)[0].mean(0)
        assert torch.allclose(pupil(batch).logits[0], pupil.head(mixed), atol=1e-12)


def test_a_student_of_the_last_layer_reads_its_heads_alone() -> None:
    model = base("gpt2")
    batch = taught(model, 3).batch(range(3), model)
    of_last, of_all = (student(model, last_only=last).heads(batch) for last in (True, False))
    with torch.no_grad(), capture_attention(model.module) as recorder:
        model.logits(batch.rows)
    assert torch.allclose(of_last, mean_logits(recorder.logits[-1:], batch.visible, True))
    assert torch.equal(of_all[:, -4:], of_last)


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_that_learns_gets_a_gradient(kind: str) -> None:
    model, pupil = base(kind), student(base(kind))
    learning = {name: p for name, p in pupil.named_parameters() if p.requires_grad}
    said = pupil(taught(model, 4).batch(range(4), model))
    gradients = torch.autograd.grad(said.logits.square().sum(), list(learning.values()))
    # A bias of keys moves all logits of a query alike: its gradient is zero up to rounding, but it is there.
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    still = {name for name, p in pupil.named_parameters() if not p.requires_grad}
    own = tuple(f"module.{part}" for part in getattr(model.adapter, "heads", None) or model.adapter.head)
    assert still
    assert all(name.startswith(own) for name in still)
    assert {"mix", "head.weight", "head.bias"} <= learning.keys()


@pytest.mark.parametrize("kind", ["bert", "t5", "vit"])
def test_what_a_student_learns_does_not_touch_its_base(kind: str) -> None:
    model = base(kind)
    before, pupil = list(fingerprint(model.module)), student(model)
    with torch.no_grad():
        for parameter in pupil.parameters():
            parameter.add_(1)
    assert list(fingerprint(model.module)) == before
    assert not any(p.requires_grad for p in model.module.parameters())
    batch = taught(model, 3).batch(range(3), model)
    with torch.no_grad():
        assert not torch.equal(pupil.base.hidden_states(batch.rows)[0], model.hidden_states(batch.rows)[0])


@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5", "vit"])
def test_nothing_is_dropped_by_chance(kind: str) -> None:
    model, pupil = base(kind), student(base(kind))
    batch = taught(model, 3).batch(range(3), model)
    assert not any(part.training for part in pupil.modules())
    with torch.no_grad():
        assert torch.equal(pupil(batch).logits, pupil(batch).logits)
        assert torch.equal(pupil(batch, explain=True).logits, pupil(batch, explain=True).logits)


def test_the_seed_draws_the_head_and_the_mix_starts_at_equal_shares() -> None:
    model = base("bert")
    first, same, other = (Student(model, 3, seed) for seed in (4, 4, 5))
    assert torch.equal(first.head.weight, same.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)
    assert first.head.weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert not first.head.bias.any()
    assert torch.softmax(first.mix, 0).tolist() == pytest.approx([1 / 4] * 4)
