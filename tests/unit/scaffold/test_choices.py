"""A choice that is called none is that choice, and not the absence of one."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.params import from_mapping
from engine.scaffold.plan import NORMALISATIONS, Recipe


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_every_normalisation_can_be_asked_for(name: str) -> None:
    assert from_mapping(Recipe, {"normalisation": name}, "recipe").normalisation == name


def test_where_none_is_no_choice_it_is_refused() -> None:
    with pytest.raises(UsageError, match=r"recipe\.epochs: must be a whole number of at least 1, got 'none'"):
        from_mapping(Recipe, {"epochs": "none"}, "recipe")
