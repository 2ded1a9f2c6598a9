"""Two choices at once: the first is answered to the end, and the second draws at the top of the page."""

from __future__ import annotations

import pytest
from streamlit.runtime.state import SafeSessionState
from streamlit.testing.v1 import AppTest

from components.server import finish_callbacks

SECONDS = 20.0


def test_a_choice_that_comes_during_a_callback_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def script() -> None:
        import streamlit as st
        from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

        def add_one() -> None:
            context = get_script_run_ctx()
            assert context is not None
            assert context.script_requests is not None
            context.script_requests.request_rerun(RerunData(page_script_hash=context.page_script_hash))
            st.session_state["count"] = st.session_state.get("count", 0) + 1

        st.button("Add one", on_click=add_one)
        st.text(st.session_state.get("count", 0))

    # After the test, Streamlit is as it was before.
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", SafeSessionState.on_script_will_rerun)
    finish_callbacks()
    page = AppTest.from_function(script, default_timeout=SECONDS).run()
    assert page.button[0].click().run().text[0].value == "1"
    assert page.button[0].click().run().text[0].value == "2"


def test_a_page_is_drawn_at_its_top_whatever_was_drawn_before() -> None:
    def script() -> None:
        import streamlit as st
        from streamlit.delta_generator_singletons import context_dg_stack

        from components.server import draw_from_top

        context_dg_stack.set((*context_dg_stack.get(), st.container()))
        st.text("inside")
        draw_from_top()
        st.text("below")

    page = AppTest.from_function(script, default_timeout=SECONDS).run()
    inside, below = page.main.children.values()
    assert [text.value for text in inside.text] == ["inside"]
    assert below.value == "below"
