"""Every page's link reopens what it was written from, whatever somebody has made of the link before."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.adversarial import state as adversarial
from components.attention import state as attention
from components.compare import state as compare
from components.evaluate.view import EvaluationView
from components.experiment.state import read_state, write_state
from components.images import state as picture
from components.inputs import picture_choice, text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.links import unknown_fields
from components.randomization.view import RandomizationView
from components.reproduction import state as reproduction
from components.scaffold import state as scaffold
from components.state import describe_unknown
from components.text import state as text
from engine.evaluation.plan import EVALUATE
from engine.models.catalog import embedded_image_models
from engine.randomization.plan import RANDOMIZE
from engine.registry import all_explainers
from tests.frozen import doors
from tests.project import ROOT

Query = dict[str, list[str]]
Read = Callable[[Query], tuple[Any, list[str]]]
MODELS = ["model-a", "model-b"]
VALUES = {
    "model": ["model-a", "owner/name@rev"],
    "data": ["reviews", "scenes:count=3", "own.csv"],
    "index": ["0", "2", "-1"],
    "split": ["", "train"],
    "text": ["", "a good film", " é\u200d&=+#%"],
    "pair": ["", "bad"],
    "unit": ["token", "word"],
    "seed": ["0", "7", "-3"],
    "target": ["positive", "1"],
    "pin": ["1,2", "5", "3,3"],
    "edit": ["", "a bad film"],
    "edit_pair": ["", "good"],
    "method": ["random", "lime", "occlusion", "attention_mean"],
    "occlusion.window": ["1", "2", "0"],
    "lime.n_samples": ["10", "many"],
    "open": ["browse", "questions", "truth", "switch"],
    "layout": ["aligned", "text", "table"],
    "gamma": ["0.5", "1", "9"],
    "scale": ["own", "shared", "common"],
    "style": ["underline", "highlight"],
    "values": ["on", "off"],
    "outline": ["on", "off"],
    "opacity": ["40", "400"],
    "removal": ["delete", "mask", "mean"],
    "question": ["removal", "agreement"],
    "measure": ["top_k", "spearman", "ssim"],
    "search": ["good", ""],
    "sort": ["confident", "failures", "evaluations"],
    "head": ["1.2", "0.0", "9"],
    "query": ["0", "3"],
    "view": ["matrix", "received", "query", "scaling", "curves"],
    "detail": ["matrix", "lines", "overlay"],
    "order": ["score", "layer", "size"],
    "between": ["all", "a_to_b"],
    "special": ["on", "off"],
    "layers": ["0,1", "x"],
    "heads": ["1", "1,1"],
    "score": ["entropy", "off", "importance"],
    "switched": ["1.2x0", "1.2x0.5,0.1x2", "x"],
    "column": ["none", "random@model-a", "lime@owner/name", "nope"],
    "reference": ["A", "B", "Z"],
    "percent": ["25", "15", "0"],
    "metric": ["comprehensiveness", "plausibility_auc", "nope"],
    "examples": ["2", "0", "50"],
    "point": ["lime", "model-a"],
    "mode": ["cascading", "independent"],
    "stage": ["2", "x"],
    "objective": ["constrained", "unconstrained"],
    "steps": ["3", "0"],
    "learning_rate": ["0.5", "-1"],
    "paper": ["smat", "thesis"],
    "show": ["holds", "fails"],
    "claim": ["families-gpt2-flat"],
    "sizes": ["50,100", "0"],
    "seeds": ["0,1", "x"],
    "setting": ["none", "smat", "gradient_l2"],
    "base": ["minilm"],
    "section": ["heads", "maps", "plausibility"],
}


@cache
def texts() -> OpenTexts:
    return open_texts("reviews")


@cache
def pictures() -> OpenPictures:
    return open_pictures("scenes:count=3", "")


@cache
def pages() -> dict[str, tuple[Read, Callable[[Any], Query]]]:
    """By name: how a page reads its link, and how it writes one."""
    of_text, of_image = all_explainers("text"), all_explainers("image")
    of_texts: dict[str, Any] = {"models": MODELS, "methods": of_text, "opened": texts()}
    of_pictures: dict[str, Any] = {"models": embedded_image_models(), "methods": of_image, "opened": pictures()}
    found: dict[str, tuple[Read, Callable[[Any], Query]]] = {
        "text": (partial(text.read_state, **of_texts), text.write_state),
        "images": (partial(picture.read_state, **of_pictures), picture.write_state),
        "reproduction": (reproduction.read, reproduction.write),
    }
    for kind, inputs in (("text", of_texts), ("image", of_pictures)):
        compared = {"models": inputs["models"], "source": inputs["opened"]}
        found[f"compare, {kind}"] = (partial(compare.read_state, kind, **compared), compare.write)
        found[f"attention, {kind}"] = (partial(attention.read_state, kind, **inputs), attention.write)
        found[f"adversarial, {kind}"] = (partial(adversarial.read_state, kind, **inputs), adversarial.write)
    for kind, methods in (("text", of_text), ("image", of_image)):
        evaluation = partial(read_state, EVALUATE, EvaluationView, kind, methods=methods)
        found[f"evaluate, {kind}"] = (evaluation, write_state)
        randomization = partial(read_state, RANDOMIZE, RandomizationView, kind, methods=methods)
        found[f"randomization, {kind}"] = (randomization, write_state)
        found[f"scaffold, {kind}"] = (partial(scaffold.read_state, kind), scaffold.write_state)
    return found


PAGES = (
    "text",
    "images",
    "compare",
    "attention",
    "adversarial",
    "evaluate",
    "randomization",
    "scaffold",
    "reproduction",
)
ODD = st.text("a1,. é&-", max_size=4)
LINKS = st.lists(st.sampled_from(sorted(VALUES)), max_size=12, unique=True).flatmap(
    lambda names: st.fixed_dictionaries(
        {name: st.lists(st.sampled_from(VALUES[name]) | ODD, min_size=1, max_size=3) for name in names}
    )
)


@pytest.mark.parametrize("page", PAGES)
@settings(deadline=None, max_examples=40)  # the first link reads data sets
@given(query=LINKS)
@example(query={"model": [" "]})
def test_a_link_written_from_what_another_opened_opens_the_same(page: str, query: Query) -> None:
    for name, (read, write) in pages().items():
        if name.partition(",")[0] == page:
            link = write(read(query)[0])
            again, said = read(link)
            assert (write(again), said) == (link, []), name


GOLDEN = json.loads((ROOT / "tests" / "frozen" / "data" / "links.json").read_text("utf-8"))
MORE = {
    "text": text.OF_A_TEXT, "compare": ("column", "reference"), "adversarial": adversarial.LINK_FIELDS,
    "scaffold": scaffold.LINK_FIELDS,
}  # fmt: skip
"""The names in a link that are not of the state, as each page passes them."""


@pytest.mark.parametrize("name", GOLDEN)
def test_no_field_that_a_page_writes_is_unknown_to_it(name: str) -> None:
    state, _ = doors.pages()[name].read({})
    focus = {*text_choice.NAMES, *picture_choice.NAMES} if hasattr(state, "focus") else set()
    more = {*focus, *MORE.get(name.partition(",")[0], ())}
    written = {field: values for one in GOLDEN[name].values() for field, values in one.get("link", {}).items()}
    assert written
    assert unknown_fields(written, state, more) == {}
    assert list(unknown_fields({**written, "colour": ["red"], "no_such.steps": ["1"]}, state, more)) == [
        "colour", "no_such.steps"
    ]  # fmt: skip


def test_unknown_fields_are_named_in_one_line() -> None:
    line = "'colour' in the link is not known here. The page opened with the rest of the link."
    assert describe_unknown({"colour": ""}) == line


def test_names_of_the_command_line_point_to_those_of_a_link() -> None:
    state, _ = doors.pages()["text"].read({})
    strange = unknown_fields({"models": ["m"], "dataset": ["reviews"], "zzz": ["1"]}, state, text_choice.NAMES)
    assert strange == {"models": "model", "dataset": "data", "zzz": ""}
    assert describe_unknown(strange).startswith(
        "'models', 'dataset' and 'zzz' in the link are not known here: did you mean model, data? The page"
    )


def test_many_unknown_fields_are_counted() -> None:
    assert describe_unknown(dict.fromkeys("abcdef", "")).startswith(
        "'a', 'b', 'c' and 'd' and 2 more in the link are not known"
    )
