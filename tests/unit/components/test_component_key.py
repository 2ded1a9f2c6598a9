"""Keys made of data: Streamlit draws a component with each of them, and no two become one."""

from __future__ import annotations

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as some
from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
from streamlit.testing.v1 import AppTest

from components.component_key import component_key


@given(some.text(alphabet="a_%5F.é", max_size=12))
def test_a_key_is_safe_and_can_be_read_back(key: str) -> None:
    made = component_key(key)
    assert EVENT_DELIM not in f"{made}{EVENT_DELIM[:-1]}"
    assert unquote(made) == key


def test_usual_keys_stay_as_they_are() -> None:
    assert component_key("annotate.board.aB-3_x") == "annotate.board.aB-3_x"


def test_a_picture_of_a_slice_with_two_underscores_can_be_kept() -> None:
    def page() -> None:
        from components.png_button import png_button

        png_button("PNG", "chart.png", str, "Saves it.", "evaluate.keep.png.label__long")

    assert not AppTest.from_function(page, default_timeout=60).run().exception


def test_a_ballot_with_two_underscores_can_be_answered() -> None:
    def page() -> None:
        from components.annotate.ballot import board_key
        from components.annotate.ranking import draw_ranking_board

        draw_ranking_board(["<p>one</p>", "<p>two</p>"], board_key("9__f"))

    assert not AppTest.from_function(page, default_timeout=60).run().exception


def test_streamlit_still_refuses_them() -> None:
    """Once it does not, the module is no longer needed."""

    def page() -> None:
        from components.annotate.ranking import draw_ranking_board

        draw_ranking_board(["<p>one</p>", "<p>two</p>"], "board.9__f")

    shown = AppTest.from_function(page, default_timeout=60).run()
    assert [error.value for error in shown.exception]
