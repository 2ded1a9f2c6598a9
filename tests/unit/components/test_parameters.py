"""Each parameter of each method becomes a widget with its own bounds, choices and help."""

from __future__ import annotations

import dataclasses

import pytest
from streamlit.testing.v1 import AppTest

from components.text_session import key
from engine.params import as_plain
from engine.registry import all_explainers

WITH_PARAMETERS = [id for id, method in all_explainers().items() if dataclasses.fields(method.params)]


def draw(method: str) -> None:
    from components.parameters import parameters
    from engine.registry import explainer

    parameters([explainer(method)])


@pytest.mark.parametrize("method", WITH_PARAMETERS)
def test_widgets_start_at_the_defaults_and_keep_the_bounds(method: str) -> None:
    page = AppTest.from_function(draw, args=(method,), default_timeout=60).run()
    assert not page.exception
    kind = all_explainers()[method].params
    for name, default in as_plain(kind()).items():
        assert page.session_state[key(f"{method}.{name}")] == default
    for field in dataclasses.fields(kind):
        if field.metadata["choices"]:
            assert page.selectbox(key(f"{method}.{field.name}")).options == list(field.metadata["choices"])
        elif field.metadata["low"] is not None:
            box = page.number_input(key(f"{method}.{field.name}"))
            assert (box.min, box.max) == (field.metadata["low"], field.metadata["high"])
            assert box.help == field.metadata["help"]


def test_methods_without_parameters_say_so() -> None:
    page = AppTest.from_function(draw, args=("random",), default_timeout=60).run()
    assert [caption.value for caption in page.caption] == ["None of the chosen methods has parameters."]
