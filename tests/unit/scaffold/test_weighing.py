"""Head weights as pages have them are those that teaching uses, and are had without what runs models."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from engine.errors import UsageError
from engine.scaffold.normalising import normalisation
from engine.scaffold.plan import NORMALISATIONS
from engine.scaffold.weighing import weights_of
from tests.project import ROOT

HEAVY = {"torch", "transformers", "peft", "captum"}
PAGE = "components.scaffold.area", "components.scaffold.sections", "engine.scaffold.keeping", "engine.models.catalog"


@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 2.0, 50.0])
def test_both_give_the_same_weights(name: str, scale: float) -> None:
    for seed in range(20):
        phi = 0.1 + scale * np.random.default_rng(seed).standard_normal(24)
        wanted = normalisation(name)(torch.tensor(phi, dtype=torch.float64)).numpy()
        np.testing.assert_allclose(weights_of(phi, name), wanted, atol=1e-12)


def test_by_hand() -> None:
    np.testing.assert_allclose(weights_of(np.array([0.75, 0.25, -1.0]), "sparsemax"), [0.75, 0.25, 0.0])
    np.testing.assert_allclose(weights_of(np.array([3.0, 1.0]), "sparsemax"), [1.0, 0.0])


def test_an_unknown_projection_is_refused() -> None:
    with pytest.raises(UsageError, match="normalisation: unknown name 'sparse'"):
        weights_of(np.zeros(3), "sparse")


def test_the_page_imports_nothing_that_runs_models() -> None:
    # The background import of another run would meet such an import half way.
    code = f"import sys, {', '.join(PAGE)}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"
