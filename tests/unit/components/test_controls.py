"""Each parameter of each method becomes a widget with its own bounds, choices and help."""

from __future__ import annotations

import dataclasses

import pytest
from streamlit.testing.v1 import AppTest

from components.controls import has_parameters
from engine.params import as_plain
from engine.registry import all_explainers

WITH_PARAMETERS = [id for id, method in all_explainers().items() if has_parameters(method)]


def draw(method: str) -> None:
    import streamlit as st

    from components.controls import changed_parameters, parameter_widgets, reset_parameters
    from engine.registry import explainer

    if st.button("Reset"):
        reset_parameters(explainer(method), "here.")
    if not st.toggle("Hide"):
        parameter_widgets(explainer(method), "here.")
    st.json(changed_parameters(explainer(method), "here."))


@pytest.mark.parametrize("method", WITH_PARAMETERS)
def test_widgets_start_at_the_defaults_and_keep_the_bounds(method: str) -> None:
    page = AppTest.from_function(draw, args=(method,), default_timeout=60).run()
    assert not page.exception
    kind = all_explainers()[method].params
    for name, default in as_plain(kind()).items():
        assert page.session_state[f"here.{method}.{name}"] == default
    for field in dataclasses.fields(kind):
        if field.metadata["choices"]:
            assert page.selectbox(f"here.{method}.{field.name}").options == list(field.metadata["choices"])
        elif field.metadata["low"] is not None:
            box = page.number_input(f"here.{method}.{field.name}")
            assert (box.min, box.max) == (field.metadata["low"], field.metadata["high"])
            assert box.help == field.metadata["help"]


def test_a_changed_parameter_is_told_kept_while_hidden_and_reset() -> None:
    page = AppTest.from_function(draw, args=("occlusion",), default_timeout=60).run()
    assert page.json[0].value == "{}"
    page.number_input("here.occlusion.window").set_value(3).run()
    assert page.json[0].value == '{"window": "3"}'
    page.toggle[0].set_value(True).run()
    page.run()
    assert page.json[0].value == '{"window": "3"}'
    page.toggle[0].set_value(False).run()
    assert page.number_input("here.occlusion.window").value == 3
    page.button[0].click().run()
    assert page.json[0].value == "{}"
    assert page.number_input("here.occlusion.window").value == 1
