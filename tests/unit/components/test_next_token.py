"""The next token as HTML: what it says, which bars it has, and that no token acts on the page."""

from __future__ import annotations

import re
from html import unescape

from components.inputs.next_token import distribution_html, name_controls, next_token_html
from engine.errors import UsageError
from engine.next_token import NamedToken, NextTokens
from engine.result import OTHERS

HOSTILE = " <img src=x onerror=alert(1)>"


def tokens(target: NamedToken | None = None, contrast: NamedToken | None = None) -> NextTokens:
    usual = NamedToken(" are", -0.5108256, 1)
    return NextTokens((" are", HOSTILE, OTHERS), (0.6, 0.3, 0.1), 1.2955, 1000, target or usual, contrast)


def bars(html: str) -> list[tuple[str, str]]:
    return re.findall(r"<bdi>(.*?)</bdi>.*?xg-number[^>]*>([^<]*)<", html)


def test_the_sentence_says_the_token_its_share_and_the_entropy() -> None:
    html = next_token_html(tokens(), explained=False)
    assert "continues with <b><bdi>·are</bdi></b> (60.0%). The dot stands for a space. " in html
    assert "Entropy: 1.30 bits, like a choice among 2.45 equally likely tokens (the vocabulary has 1,000)." in html
    assert "Explained" not in html


def test_a_contrast_is_said_with_the_difference_of_the_logits() -> None:
    html = next_token_html(tokens(contrast=NamedToken(" is", -2.3025851, 3)), explained=True)
    assert (
        "why <b><bdi>·are</bdi></b> (60.0%, rank 1 of 1,000) rather than <b><bdi>·is</bdi></b> (10.0%, rank 3" in html
    )
    assert "difference of their logits is +1.79" in html  # ln 0.6 - ln 0.1 = ln 6


def test_a_token_without_its_space_is_said_where_the_one_with_it_is_likelier() -> None:
    bare, rare = NamedToken("are", -7.6009025, 300), NamedToken("is", -9.2103404, 700)  # 0.0005, 0.0001
    html = next_token_html(tokens(bare, rare), explained=True)
    said = "The target 'are' was read as the token without a space; ' are' is 1,200 times as probable."
    assert said in unescape(html)  # 0.6 / 0.0005
    assert "The contrast" not in html, "' is' is not among the likely ones"
    assert "without a space" not in next_token_html(tokens(bare, NamedToken(" are", -0.5108256, 1)), explained=True)
    assert "without a space" not in next_token_html(tokens(NamedToken("are", -0.1, 1)), explained=True)
    assert "without a space" not in next_token_html(tokens(bare), explained=False)
    unlikely = next_token_html(tokens(NamedToken("are", -800.0, 900)), explained=True)
    assert "is more than 100,000 times as probable" in unlikely


def test_an_error_names_the_control_as_the_page_does() -> None:
    said = [str(name_controls(UsageError(f"{name}: must be one."))) for name in ("target", "contrast", "text")]
    assert said == ["Explain: must be one.", "Rather than: must be one.", "text: must be one."]


def test_a_named_token_beyond_the_list_is_taken_out_of_the_others() -> None:
    html = distribution_html(tokens(contrast=NamedToken(" is", -3.2188758, 7)))  # 0.04
    assert bars(html)[-1] == ("·is", "4.0%")
    assert html.index("·is") < html.index(OTHERS)
    assert html.rstrip("</div>").endswith("6.0%</span")
    assert 'xg-label xg-chosen"><bdi>·are' in html
    assert 'xg-label xg-contrast"><bdi>·is' in html


def test_no_token_acts_on_the_page() -> None:
    named = NamedToken(HOSTILE, -1.2, 2)
    for html in (next_token_html(tokens(named), True), distribution_html(tokens(named))):
        assert "<img" not in html
        assert "·&lt;img src=x onerror=alert(1)&gt;" in html
