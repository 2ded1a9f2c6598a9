from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cache import canonical, key_for

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    """Equal, with types and the sign of zero told apart."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return one == other


@given(values)
@settings(deadline=None)
def test_the_order_of_keys_does_not_matter_and_nothing_is_lost(value: Any) -> None:
    assert canonical(value) == canonical(shuffled(value))
    assert same(json.loads(canonical(value)), value)


@given(values, values)
@settings(max_examples=150, deadline=None)
def test_different_values_have_different_keys(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(deadline=None)
def test_floats_are_exact(number: float) -> None:
    assert same(json.loads(canonical(number)), number)


def test_the_form_is_fixed() -> None:
    value = {"b": [1, 1.0, True, None], "a": "é ✓"}
    assert canonical(value) == '{"a":"é ✓","b":[1,1.0,true,null]}'.encode()
    assert key_for({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"


def test_numbers_that_are_equal_but_not_the_same_differ() -> None:
    assert len({key_for({"x": x}) for x in (1, 1.0, True, "1")}) == 4
    assert len({key_for({"x": x}) for x in (0, 0.0, -0.0, False, None, "")}) == 6


def test_text_is_not_normalised() -> None:
    assert canonical("\u00e9") != canonical("e\u0301")
    assert canonical("\U0001f600") != canonical("\ud83d\ude00")


def test_tuples_and_other_mappings_are_plain() -> None:
    assert canonical((1, (2,))) == canonical([1, [2]])
    proxy: Mapping[str, object] = MappingProxyType({"a": 1})
    assert canonical(proxy) == canonical({"a": 1})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=r"value\['x'\]\[1\]: must be a finite number"):
        canonical({"x": [0, bad]})


@pytest.mark.parametrize("bad", [b"", object(), {1}, np.float64(1), np.zeros(2), 1j, {1: 2}, {None: 1}])
def test_what_is_not_plain_is_refused(bad: object) -> None:
    with pytest.raises(TypeError, match=r"value\['x'\]: (must be None, bool|keys must be str)"):
        canonical({"x": bad})
