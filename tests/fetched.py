"""A fetched model, where whoever runs the tests has it, and the mark of tests that need it."""

from __future__ import annotations

import pytest

from tests.conftest import OWN_HOME

NAME = "smollm2-135m"
STORED = OWN_HOME / "models" / NAME
needs_smollm2 = pytest.mark.skipif(
    not (STORED / "config.json").is_file(), reason="needs the model: exegesis models get smollm2-135m"
)
