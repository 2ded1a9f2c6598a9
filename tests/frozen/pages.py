"""Pages as scripts: what their widgets hold when they are opened without a link, and by one; what they say is wrong,
and the address that is left. Widgets are known by their words, whatever holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import PropertyMock, patch
from urllib.parse import parse_qs

from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from tests.alerts import errors, notes
from tests.frame import pages_in_frame
from tests.project import ROOT

SECONDS = 120
KINDS = ("selectbox", "multiselect", "number_input", "text_input", "text_area", "toggle", "checkbox", "slider", "radio",
         "button_group")  # fmt: skip
OPENED: dict[str, tuple[str, ...]] = {
    "text": ("", "index=2&method=random&unit=word&seed=3&no_such=1&gamma=9"),
    "images": ("", "data=scenes&index=1&method=random&opacity=40&scale=x"),
    "attention": ("", "input=image"),
    "evaluate": ("", "input=image&examples=x&view=curves"),
    "behavior": (
        "",
        "task=recourse&size=9&question=order",
        "data=reviews-marked&model=bert-marked&task=feature&example=3",
        "input=image&task=recourse",
    ),
    "randomization": ("", "input=image&mode=independent&seeds=0"),
    "adversarial": ("", "objective=constrained&steps=7&alpha=x&points=0"),
    "scaffold": ("", "input=image&seeds=3&recipe.epochs=2&size=x"),
    "reproduction": ("", "paper=smat&show=cannot+be+told&seed=x"),
    "library": ("", "section=models", "section=nothing"),
    "study": ("", "study=99", "study=x", "new=empty"),
    "study_results": ("", "study=99"),
    "annotate": ("", "study=nothing"),
}


def parts() -> dict[str, Callable[[], Any]]:
    """Each golden file of this subject."""
    return {
        "pages": lambda: {f"{page}?{link}": _opened(page, link) for page, links in OPENED.items() for link in links}
    }


def _opened(name: str, link: str) -> dict[str, Any]:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page(f"pages/{name}.py")
    for parameter, values in parse_qs(link, keep_blank_values=True).items():
        page.query_params[parameter] = values
    # A script that is run without a browser counts as opened on this machine: the organizer's pages ask.
    with pages_in_frame(), patch.object(ContextProxy, "ip_address", new_callable=PropertyMock, return_value=None):
        page.run()
        assert not page.exception, page.exception
        found = {"errors": errors(page), "notes": [note[:200] for note in notes(page)]}
        for name in [name for name in page.session_state._state.filtered_state if name.endswith("options")]:
            page.session_state[name] = True  # the rare controls are drawn only while their popover is open
        page.run()
    assert not page.exception, page.exception
    widgets = [[kind, one.label, one.value] for kind in KINDS for one in page.get(kind) if one.label]
    return {
        "address": {one: page.query_params[one] for one in page.query_params},
        **found,
        "widgets": widgets,
    }
