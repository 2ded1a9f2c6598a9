"""Links to results in the dashboard, built by the pages' own link builders. Only this module needs Streamlit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from engine.errors import UsageError, not_allowed
from engine.lazy import LazyModule
from engine.registry import explainer
from engine.request import DTYPES, Picture, Prompt
from engine.store import store_picture
from exegesis.questions import QuestionAnswer
from exegesis.results import ExperimentRun, Explanations, MapComparison, plain_plan

if TYPE_CHECKING:
    from components import links, navigation
    from components.ask import links as ask_links
    from components.compare import state as compare_state
    from components.images import state as image_state
    from components.inputs import picture_choice, text_choice
    from components.library import jobs
    from components.text import state as text_state
else:  # pages import Streamlit, which nothing else here needs
    ask_links = LazyModule("components.ask.links")
    compare_state = LazyModule("components.compare.state")
    image_state = LazyModule("components.images.state")
    jobs = LazyModule("components.library.jobs")
    links = LazyModule("components.links")
    navigation = LazyModule("components.navigation")
    picture_choice = LazyModule("components.inputs.picture_choice")
    text_choice = LazyModule("components.inputs.text_choice")
    text_state = LazyModule("components.text.state")

HOST, PORT = "localhost", 8501


def open_in_dashboard(
    result: Explanations | ExperimentRun | MapComparison | QuestionAnswer, port: int = PORT, *, host: str = HOST
) -> str:
    """Print and return the link that opens a result, or an answer of `ask`, on its page, from the cache.

    The dashboard (`exegesis app`) has to run on this machine, with the same home folder.

    >>> import exegesis
    >>> result = exegesis.explain("reviews-minilm", "A dull film.", "attn_lrp", progress=False)
    >>> link = exegesis.open_in_dashboard(result)
    http://localhost:8501/text?model=reviews-minilm&text=A+dull+film.&method=attn_lrp

    Errors: no page can show the result, with the reason.
    """
    with _quiet_pages():
        page, query = page_link(result)
    url = f"http://{host}:{port}/{page.url_path}?{urlencode(query, doseq=True)}"
    print(url)
    return url


@contextlib.contextmanager
def _quiet_pages() -> Iterator[None]:
    """Silence the warnings that Streamlit logs when its pages are imported without a server."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def page_link(result: Any) -> tuple[navigation.PageEntry, links.Query]:
    """Return the page of a result and its link."""
    if isinstance(result, Explanations):
        return _explanations(result)
    if isinstance(result, ExperimentRun):
        plan = getattr(result.result, "requested_plan", result.plan)
        return jobs.LINKS[result.id](plain_plan(plan))
    if isinstance(result, MapComparison):
        return jobs.LINKS["compare"](result.plan.as_plain()) if result.input is None else _comparison(result)
    if isinstance(result, QuestionAnswer):
        return ask_links.page_of(result.query)
    raise not_allowed("result", "what explain, evaluate, randomize, attack, compare or ask returned", result)


def _explanations(result: Explanations) -> tuple[navigation.PageEntry, links.Query]:
    origin = result[0].provenance
    if origin.dtype != DTYPES[0]:
        raise UsageError(f"dtype: is {origin.dtype}, and pages compute in {DTYPES[0]}. Explain it in {DTYPES[0]}.")
    if origin.heads:
        raise UsageError("heads: are scaled, which only the Attention page does. Explain it without heads.")
    methods = {one: explainer(one, result.input.kind) for one in result.methods}
    params = {
        one.provenance.method: links.non_default_params(methods[one.provenance.method], one.provenance.params)
        for one in result
    }
    shared: dict[str, Any] = {
        "methods": result.methods,
        "params": {id: own for id, own in params.items() if own},
        "target": None if result.target is None else str(result.target),
        "seed": origin.seed,
        "focus": _focus(origin.model, result.input),
    }
    if isinstance(result.input, Picture):
        return navigation.IMAGES, image_state.write_state(image_state.PictureState(**shared))
    return navigation.TEXT, text_state.write_state(text_state.TextState(**shared))


def _comparison(result: MapComparison) -> tuple[navigation.PageEntry, links.Query]:
    plan = result.plan
    focus = _focus(plan.pairs[0].model, result.input)
    state = compare_state.CompareState(
        kind=plan.kind, focus=focus, columns=plan.pairs, target=plan.target, seed=plan.seed
    )
    return navigation.COMPARE, compare_state.write(state)


def _focus(model: str, content: Any) -> Any:
    """Return the input as the pages hold it. A picture is cached, and the page reads it by its hash."""
    if isinstance(content, Picture):
        return picture_choice.PictureFocus(model, picture_sha=store_picture(content.pixels))
    prompt = (content.target, content.contrast, content.chat) if isinstance(content, Prompt) else (None, None, False)
    target, contrast, chat = prompt
    return text_choice.TextFocus(model, content.text, content.text_pair, target=target, contrast=contrast, chat=chat)
