"""Methods that come several times in a study's form."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from streamlit.runtime.scriptrunner import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from components.study import form
from components.study.form import CURTAIN, DRAWN_KEY, FILLED_KEY, entry_names, method_id, with_repeats
from engine.registry import all_explainers
from engine.study.design import MethodChoice


def test_each_time_has_a_name_of_its_own() -> None:
    ids = ("lime", "gradient", "lime", "lime")
    named = entry_names([MethodChoice(id, {"place": place}) for place, id in enumerate(ids)])
    assert [name for name, _ in named] == ["lime", "gradient", "lime#2", "lime#3"]
    assert [choice.params["place"] for _, choice in named] == [0, 1, 2, 3]
    assert [method_id(name) for name, _ in named] == list(ids)


def test_what_comes_again_is_listed_after_the_first_and_told_apart() -> None:
    known = all_explainers()
    listed = with_repeats(known, ["lime#3", "gradient", "lime#2"])
    at = list(listed).index("lime")
    assert list(listed)[at : at + 3] == ["lime", "lime#2", "lime#3"]
    assert listed["lime#2"].title == f"{known['lime'].title} (2)"
    assert listed["lime#2"].params is known["lime"].params
    assert [id for id in listed if method_id(id) == id] == list(known)
    assert len({method.title for method in listed.values()}) == len(listed)


@pytest.mark.parametrize(("end", "hidden"), [(RerunException(RerunData()), True), (ValueError("broken"), False)])
def test_a_half_drawn_form_stays_hidden_unless_the_rest_never_comes(
    monkeypatch: pytest.MonkeyPatch, end: BaseException, hidden: bool
) -> None:
    """What is typed into a control before the browser knows the others would be lost."""
    page = MagicMock(session_state={FILLED_KEY: "draft"})
    monkeypatch.setattr(form, "st", page)
    monkeypatch.setattr(form, "_draw_subject", lambda: None)
    monkeypatch.setattr(form, "draw_items", MagicMock(side_effect=end))
    with pytest.raises(type(end)):
        form.draw_form()
    curtain = page.empty.return_value
    curtain.html.assert_called_once_with(CURTAIN)
    assert curtain.empty.called is not hidden
    assert DRAWN_KEY not in page.session_state


def test_a_run_that_ends_as_the_form_appears_does_not_hide_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hidden field loses the focus, and what was typed into it is not sent when the next key is pressed."""
    page = MagicMock(session_state={FILLED_KEY: "draft"})
    page.empty.return_value.empty.side_effect = RerunException(RerunData())
    monkeypatch.setattr(form, "st", page)
    for name in ("_draw_subject", "draw_items", "_draw_explanations", "_draw_people", "_draw_texts", "_draw_rules"):
        monkeypatch.setattr(form, name, lambda: None)
    with pytest.raises(RerunException):
        form.draw_form()
    page.empty.return_value.html.reset_mock()
    with pytest.raises(RerunException):
        form.draw_form()
    page.empty.return_value.html.assert_not_called()
    form.forget_form()
    with pytest.raises(RerunException):
        form.draw_form()
    page.empty.return_value.html.assert_called_once_with(CURTAIN)
