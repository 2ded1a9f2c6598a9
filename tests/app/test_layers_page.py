"""The Layers page: the answers, both grids, routes, presets, refusals, files, link and command."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import components.layers.page as panel
from components.compute import STOPPED
from components.layers import state as page_state
from components.layers.grids import best_places, lens_html, patch_html
from components.layers.page import lens_answer, patch_answer, patch_facts_html, routes_answer
from components.layers.state import EXAMPLES, LayersState, key
from engine.format import visible_token
from engine.input_kinds import list_models
from engine.inside.lens import LensQuery, LensResult, logit_lens
from engine.inside.patching import EXACT, SITES, PatchingResult, patch_map
from engine.inside.routes import RoutesQuery, information_routes
from engine.next_token import next_tokens
from engine.request import Prompt
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import save_causal

SECONDS = 120
STATE = LayersState()

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    """The page on the example of a classifier, or on what the link says."""
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/layers.py")
    for name, value in ({"model": STATE.model, "text": STATE.text, "corrupted": STATE.corrupted} | link).items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def drawn(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


@pytest.fixture(scope="module")
def lens_result() -> LensResult:
    return logit_lens(LensQuery(STATE.model, STATE.example))


@pytest.fixture(scope="module")
def maps() -> dict[str, PatchingResult]:
    return {site: patch_map(replace(STATE, site=site).query) for site in SITES}


def test_the_page_opens_finished_on_a_language_model() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/layers.py").run()
    assert not page.exception
    assert not errors(page)
    body = drawn(page)
    assert "The prediction, “<bdi>·Anna</bdi>”" in body
    assert "Restoring “<bdi>Paul</bdi>” (10) brings back up to 100% of the difference from the embedding" in body
    assert "Metric: logit of “·Anna” minus logit of “·Paul”" in body
    assert "Most of the prediction is written from" in body


def test_the_page_opens_finished_with_the_answers_first() -> None:
    page = opened()
    assert not errors(page)
    body = drawn(page)
    answer = "is first readable by the lens in layer 3: before it, the lens reads"
    assert body.index(answer) < body.index("Restoring “<bdi>wonderful")
    assert body.index("Restoring “<bdi>wonderful") < body.index("Logit lens: layers as rows")
    assert "Patching: layers as rows, tokens as columns, restored share" in body
    assert "Pearson correlation of exact shares and gradient preview" in body
    assert "Most of the prediction is written from" in body
    assert not any(button.label == "Compute the exact map" for button in page.button)


def test_the_link_reopens_what_is_seen() -> None:
    page = opened(site="heads", metric="probability", view="preview", open="")
    assert not errors(page)
    body = drawn(page)
    assert "Patching: layers as rows, heads as columns, restored share estimated by gradients" in body
    assert "(estimated by gradients)." in body
    assert "Metric: probability of “positive”" in body
    assert "Most of the prediction is written from" not in body
    assert "heads" in page.query_params["site"]
    page.selectbox(key("site")).set_value("mlp").run()
    assert "mlp" in page.query_params["site"]


def test_presets_replace_model_and_texts() -> None:
    page = opened(model="bert-reviews", text="Good.", corrupted="Bad.", open="")
    next(one for one in page.button if one.label == "Sentiment").click().run()
    assert not errors(page)
    assert "reviews-minilm" in page.query_params["model"]
    assert page.text_area(key("text")).value == "The film was wonderful and I loved it."


def test_a_pair_of_texts() -> None:
    page = opened(open="")
    next(one for one in page.button if one.label == "Entailment").click().run()
    assert not errors(page)
    body = drawn(page)
    assert "“<bdi>entailment</bdi>” (90.8%)" in body
    assert "corrupted run: <bdi>contradiction</bdi> (99.0%)" in body
    assert "← <bdi>dinner</bdi>" in body
    assert "on" in page.query_params["has_pair"]
    assert "A woman is making dinner." in page.query_params["corrupted_pair"]
    page.text_area(key("pair")).set_value(" ").run()
    assert "text_pair: is empty" in errors(page)[0]


def test_both_texts_are_read_in_the_chat_template(tmp_path: Path) -> None:
    folder = str(save_causal("llama", tmp_path / "model"))
    page = opened(model=folder, text="the film is good", corrupted="the good is film", chat="on", open="")
    assert not errors(page)
    likely = next_tokens(folder, Prompt("the film is good", chat=True)).labels[0]
    assert f"The prediction, “<bdi>{visible_token(likely)}</bdi>”" in html.unescape(drawn(page))
    commands = [one.value for one in page.code if one.value.startswith("exegesis layers ")]
    assert len(commands) == 2
    assert all("--prompt 'the film is good' --chat" in command for command in commands)
    # A model without a template reads the texts as they are.
    assert not errors(opened(model="tiny-llama", text="The key", corrupted="The keys", chat="on", open=""))


def test_every_preset_of_an_embedded_model_has_texts_of_equal_length() -> None:
    for example in EXAMPLES:
        if example.model in list_models("text"):
            query = page_state._of_example(example).query
            assert patch_map(query).check.ok, example.title


def test_noise_needs_tokens_and_then_corrupts_them() -> None:
    page = opened(corruption="noise", open="")
    assert not errors(page)
    assert "Choose the tokens to corrupt" in drawn(page)
    page.multiselect(key("tokens")).set_value([4]).run()
    assert not errors(page)
    assert "4" in page.query_params["tokens"]
    assert "Gaussian noise (3 SD, one draw, seed 0) on “wonderful” (4)" in drawn(page)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"corrupted": "Bad."}, "corrupted: must have as many tokens as the clean text, 11, got 4"),
        ({"text": " "}, "text: must have at least one word"),
        ({"target": "red"}, "target: unknown name 'red'"),
        ({"site": "brain"}, "site: unknown name 'brain'"),
        ({"tokens": "a,b"}, "tokens: must be positions such as 3,4"),
        ({"model": "nowhere"}, "nowhere"),
    ],
)
def test_what_is_wrong_is_said(link: dict[str, str], words: str) -> None:
    assert any(words in text for text in errors(opened(open="", **link)))


def test_a_large_map_is_computed_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "MOST_OPERATIONS", 0.0)
    page = opened(open="", text="The film was great and I liked it.")
    assert "The exact map takes 82 evaluations of the model, up to about" in drawn(page)
    next(one for one in page.button if one.label == "Compute the exact map").click().run()
    assert "The exact map takes" not in drawn(page)
    assert "over 77 places (82 evaluations)" in drawn(page)


def test_a_stopped_map_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "MOST_OPERATIONS", 0.0)
    text = "The film was great and I loved it."
    page = opened(open="", text=text)
    exact = replace(STATE, text=text).query.key(EXACT)
    page.session_state[STOPPED] = [exact]
    next(one for one in page.button if one.label == "Compute the exact map").click().run()
    assert [one.value for one in page.info] == ["Stopped: below is the preview by gradients."]
    assert "restored share estimated by gradients" in drawn(page)
    next(one for one in page.button if one.label == "Go on").click().run()
    assert "Go on" not in [one.label for one in page.button]
    assert "over 77 places (82 evaluations)" in drawn(page)


def test_heads_over_a_data_set() -> None:
    page = opened(open="heads", examples="2")
    assert not errors(page)
    assert re.search(r"Head \d\.\d+ moves most: [\d.]+% of the prediction on average over 2 examples", drawn(page))


def test_cells_of_the_grids_say_their_numbers(lens_result: LensResult, maps: dict[str, PatchingResult]) -> None:
    lens_cells = html.unescape(lens_html(lens_result))
    assert lens_cells.count("<td") == 7 * 11
    assert lens_result.value[-1, 0] > 0.9995
    assert "Layer 5, [CLS] (0): positive >\xa099.9%" in lens_cells
    assert lens_cells.index("Layer 5") < lens_cells.index("Embedding")
    assert "<small>target " in lens_cells, "a number that is not of the word above it says whose it is"
    assert "Scroll sideways for more columns." in lens_cells
    exact = maps["residual"]
    cells = html.unescape(patch_html(exact.preview, "residual", exact.shares, True))
    assert f"Layer 4, wonderful (4): +{100 * exact.shares[5, 4]:.1f}%" in cells
    assert "← <bdi>terrible</bdi>" in cells
    assert "−100% to 100%" in cells


def test_a_phone_starts_at_the_columns_that_have_values(
    lens_result: LensResult, maps: dict[str, PatchingResult]
) -> None:
    assert "xg-from-end" not in lens_html(lens_result), "the classifier reads its first position"
    last = len(lens_result.tokens) - 1
    assert "xg-layers-box xg-from-end" in lens_html(replace(lens_result, read_position=last))
    exact = maps["residual"]
    assert "xg-from-end" not in patch_html(exact.preview, "residual", exact.shares, True)
    late = exact.shares.copy()
    late[:, :6], late[:, -1] = 0, 1
    assert "xg-layers-box xg-from-end" in patch_html(exact.preview, "residual", late, True)


def test_answers(lens_result: LensResult, maps: dict[str, PatchingResult]) -> None:
    assert "is first readable by the lens in layer 3" in lens_answer(lens_result)
    early = replace(lens_result, reading_top=("positive",) * 7)
    assert "can be read from the embedding on" in lens_answer(early)
    exact = maps["residual"]
    sentence = patch_answer(exact.preview, "residual", exact.shares, True)
    assert sentence.startswith("Restoring “<bdi>wonderful</bdi>” (4) brings back up to 70% of the difference")
    assert sentence.endswith("“<bdi>[CLS]</bdi>” (0) brings back 100% of the difference after layer 5.")
    nothing = np.zeros_like(exact.shares)
    assert patch_answer(exact.preview, "residual", nothing, True) == (
        "No position alone restores 10% of the difference."
    )
    heads = patch_answer(maps["heads"].preview, "heads", maps["heads"].shares, True)
    assert re.search(r"\d\.\d+ \(19%\).* are in the later half of the layers\.", heads)
    assert "attention outputs" in patch_answer(exact.preview, "attention", maps["attention"].shares, True)
    assert "Corruption: another text of equal length" in patch_facts_html(exact.preview, exact)
    routes = information_routes(RoutesQuery(STATE.model, STATE.example))
    assert "written from “<bdi>wonderful</bdi>”" in routes_answer(routes)


def test_runs_of_the_best_place() -> None:
    shares = np.array([[0.5, 0.1], [0.9, 0.2], [0.0, 0.05], [0.1, 1.0]])
    assert best_places(shares, 0.1) == [(0, 1, 0, 0.9), (3, 3, 1, 1.0)]
    assert best_places(shares, 2.0) == []
    assert best_places(np.array([[0.25, 0.24], [0.2, 0.5]]), 0.1) == [(0, 1, 1, 0.5)]


def test_tokens_are_escaped(lens_result: LensResult) -> None:
    hostile = replace(lens_result.tokens[1], text="<script>alert(1)</script>")
    changed = replace(lens_result, tokens=(lens_result.tokens[0], hostile, *lens_result.tokens[2:]))
    assert "<script>" not in lens_html(changed)


def test_the_command_repeats_the_page() -> None:
    command = panel._command(replace(STATE, site="heads", contrast="negative", seed=3), "patch")
    assert command == (
        "exegesis layers patch --model reviews-minilm --text 'The film was wonderful and I loved it.' --corrupted "
        "'The film was terrible and I hated it.' --site heads --metric logit_difference --contrast negative --seed 3"
    )
    pair = replace(STATE, has_pair=True, pair="Good.", corrupted_pair="Bad.")
    assert "--text-pair Good. --corrupted" in panel._command(pair, "patch")
    assert "--corrupted-pair Bad. --site" in panel._command(pair, "patch")
    assert panel._command(pair, "lens").endswith("--text-pair Good.")
    noisy = panel._command(replace(STATE, corruption="noise", tokens=(4, 7)), "patch")
    assert "--corruption noise --tokens 4,7" in noisy
