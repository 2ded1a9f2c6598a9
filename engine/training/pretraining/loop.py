"""The training loop for pre-training: the loss is that of the family's own objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.nn import functional

from engine.training.loop import Loop
from engine.training.pretraining.lines import Lines
from engine.training.pretraining.objectives import IGNORED, Objective

EVALUATED = 64
"""Texts a step when a loss is measured."""
HELD_OUT_SEED = 0
"""What is hidden from a held-out text is always the same."""


class PretrainLoop(Loop):
    """Its score is the held-out loss with a minus, so that higher is better."""

    objective: Objective
    tokenizer: Any

    def _loss(self, indices: list[int]) -> torch.Tensor:
        with self._arithmetic():
            logits, answers = self._answered(cast(Lines, self.data).rows(indices))
        return functional.cross_entropy(
            logits.float(), answers, ignore_index=IGNORED, label_smoothing=self.config.label_smoothing
        )

    def _score(self) -> float:
        return -self.nats(cast(Lines, self.held_out))

    def nats(self, lines: Lines) -> float:
        """Mean cross-entropy of a hidden (or next) token in nats, in eval mode."""
        lengths = lines.lengths
        order = sorted(range(len(lines)), key=lambda i: lengths[i])
        total, count, training = 0.0, 0, self.module.training
        self.module.eval()
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            torch.default_generator.manual_seed(HELD_OUT_SEED)  # the CPU's alone, which hides the tokens
            for at in range(0, len(order), EVALUATED):
                logits, answers = self._answered(lines.rows(order[at : at + EVALUATED]))
                total += functional.cross_entropy(logits.float(), answers, ignore_index=IGNORED, reduction="sum").item()
                count += int((answers != IGNORED).sum())
        self.module.train(training)
        return total / count

    def _answered(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (tokens, vocabulary) and the right token of each."""
        inputs, answers = self.objective.task(rows, self.tokenizer)
        logits = self.module(**{name: tensor.to(self.device) for name, tensor in inputs.items()}).logits
        return logits.flatten(0, 1), answers.flatten().to(self.device)
