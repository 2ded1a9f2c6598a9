"""Heads switched and scaled on the Attention page: what becomes of the model is told, and all of it can be undone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import engine.heads.readings as readings
from components.attention.state import key
from engine import runtime
from engine.explain import explain, key_of
from engine.heads.readings import read_heads, switch_off_each
from engine.input_kinds import load_classifier
from engine.request import Example, HeadScales, Request
from tests.alerts import errors
from tests.app.heads_page import TEXT, html_of, link_of, opened, press
from tests.explaining import fingerprint
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

ALL_OFF = ",".join(f"{layer}.{head}x0" for layer in range(3) for head in range(4))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three layers of four heads."""
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("score") / "tiny", labels=1))


def beside(page: AppTest) -> str:
    """Both predictions and what is told of them; empty where nothing is changed."""
    return next((html for html in html_of(page) if "xg-beside" in html), "")


def switched(page: AppTest) -> str:
    """The changed heads as the link says them."""
    return link_of(page).get("switched", "")


def test_nothing_is_computed_before_a_head_is_changed(model: str) -> None:
    page = opened(model=model, head="1.2")
    assert beside(page) == ""
    assert any("No head is changed." in caption.value for caption in page.caption)
    assert "Switch heads off, or scale them" in [toggle.label for toggle in page.toggle]


def test_everything_is_restored_bit_for_bit(model: str) -> None:
    asked = Request(model, "gradient_x_input", Example(TEXT))
    loaded = load_classifier("text", model, "float32", runtime.device())
    page = opened(model=model, head="1.2")
    drawn, before, named, weights = list(html_of(page)), explain(asked), key_of(asked), fingerprint(loaded)
    for label in ("Switch off head 1.2", "Switch off all of layer 1", "Restore all heads"):
        press(page, label)
    assert switched(page) == ""
    assert list(html_of(page)) == drawn
    assert load_classifier("text", model, "float32", runtime.device()) is loaded
    assert fingerprint(loaded) == weights
    assert key_of(asked) == named
    loaded.memo.clear()
    encoded = [loaded.encode(Example(TEXT))]
    fresh = loaded.predictions(loaded.logits(loaded.collate(encoded)).detach(), encoded)[0]
    assert fresh == before.prediction


def test_a_head_switched_off_shows_the_engines_own_numbers(model: str) -> None:
    page = press(opened(model=model, head="2.1"), "Switch off head 2.1")
    assert page.session_state[key("text", "switched")] == "2.1x0"  # a plain value: a reload replaces classes
    assert switched(page) == "2.1x0"
    plain = Request(model, "random", Example(TEXT))
    off = switch_off_each(plain)
    target = off.target
    shares = [f"{100 * value:.1f}%" for value in (off.whole[target], off.off[2, 1, target])]
    told = beside(page)
    assert f"{shares[0]} → {shares[1]}" in told
    assert "percentage points" in told
    assert ("The predicted class changes" in told) == bool(off.flipped[2, 1])
    assert [button.label for button in page.button if button.label.endswith(" off")] == ["2.1 off"]
    assert link_of(page)["head"] == "2.1"


def test_a_head_is_scaled_by_its_slider_and_taken_back_by_its_button(model: str) -> None:
    page = opened(model=model, head="0.3")
    page.slider(key("text", "scale.0.3")).set_value(1.5).run()
    assert switched(page) == "0.3x1.5"
    request = Request(model, "random", Example(TEXT), heads=HeadScales(((0, 3, 1.5),)))
    share = explain(request).prediction
    assert any(f"{100 * value:.1f}%" in beside(page) for value in share.probabilities)
    press(page, "0.3 × 1.5")
    assert switched(page) == ""
    assert page.slider(key("text", "scale.0.3")).value == 1.0


def test_the_shown_head_stays_where_the_change_makes_another_the_strongest(model: str) -> None:
    page = opened(model=model)
    strongest = read_heads(Request(model, "random", Example(TEXT))).scores["importance"].argmax()
    name = f"{strongest // 4}.{strongest % 4}"
    press(page, f"Switch off head {name}")
    assert link_of(page)["head"] == name
    assert f"Switch on head {name}" in [button.label for button in page.button]


def test_the_map_before_and_after_is_of_any_method_and_of_one_class(model: str) -> None:
    page = opened(model=model, switched="0.0x0,1.1x0", method="attn_lrp")
    [maps] = [html for html in html_of(page) if "xg-pair" in html]
    assert "AttnLRP" in maps
    assert re.search(r"ρ = [+\u2212][\d.]+ over 5 tokens", maps)
    page.selectbox(key("text", "method")).set_value("occlusion").run()
    [maps] = [html for html in html_of(page) if "xg-pair" in html]
    assert "Occlusion" in maps
    target = explain(Request(model, "random", Example(TEXT))).prediction.label
    assert any(
        f"the same class, <bdi>{target}</bdi>, even where another is predicted" in html for html in html_of(page)
    )


def test_all_heads_off_has_numbers_and_says_what_that_is(model: str) -> None:
    page = opened(model=model, switched=ALL_OFF)
    assert not errors(page)
    assert any("All heads are off" in caption.value for caption in page.caption)
    assert not re.search(r"\bnan\b", "".join(html_of(page)), re.IGNORECASE)
    assert [f"layer {layer} off" for layer in range(3)] == [b.label for b in page.button if b.label.startswith("layer")]
    press(page, "layer 1 off")
    assert "1.0x0" not in switched(page)
    assert "0.0x0" in switched(page)


def test_a_link_to_heads_that_the_model_does_not_have_says_so_and_can_be_undone(model: str) -> None:
    page = opened(model=model, switched="7.1x0")
    assert errors(page) == ["heads: must be layers from 0 to 2 for this model, got 7."]
    press(page, "Restore all heads")
    assert not errors(page)
    assert switched(page) == ""


def test_a_model_that_yields_no_attention_says_so(model: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    no_attention = readings.require_attention
    monkeypatch.setattr(readings, "require_attention", lambda of, _: no_attention(of, 0))
    page = opened(model=model, text="not read before")
    [said] = errors(page)
    assert "0 of its 3 layers yield attention, so its heads cannot be shown" in said
    assert key("text", "open.switch") not in [toggle.key for toggle in page.toggle]


def test_a_regression_head_has_a_score_instead_of_probabilities(regression: str) -> None:
    page = opened(model=regression, switched="1.0x0", score="off")
    assert not errors(page)
    assert re.search(r"The score <bdi>.*</bdi> goes from .* to .*, by <b>", beside(page))


def test_a_picture_has_cards_before_and_after(tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit"))
    page = opened(input="image", model=vit, data="scenes:count=3", switched="0.0x0")
    titles = [html for html in html_of(page) if "xg xg-card" in html]
    assert [title in html for title, html in zip(("As the model sees it", "original model", "changed heads"),
                                                 titles, strict=True)] == [True] * 3  # fmt: skip
    assert "between the 9 scores of the two maps" in titles[0]
    assert all("scale shared by the two maps" in html for html in titles[1:])
