"""The input and the explanations of a ballot, shown by color alone.

All maps share one scale and show no numbers, because the digits of a score would reveal its method. This module has no
access to method names.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.styles import use_sheet
from components.widgets.patch_map import LAYERS, PatchMap, layers_html, picture_style, place, use_picture_styles
from components.widgets.token_map import TokenMap, direction, token_map_html
from engine.request import Example, Input, Picture
from engine.study.ballots import BallotMap
from engine.study.design import BY_RANK, BY_SIGN, BY_SIZE
from engine.substitution import Edit
from engine.word_units import units

TOP = 3
"""Number of parts named in the description of a map for screen readers."""
COLOR_MEANINGS = {
    BY_RANK: "The stronger the teal, the more a part matters compared with the other parts. Colors do not show whether "
    "a part speaks for or against the answer.",
    BY_SIZE: "The stronger the teal, the more a part matters. Colors do not show whether it speaks for or against the "
    "answer.",
    BY_SIGN: "Blue parts speak for the answer, orange parts against it. The stronger the color, the more a part "
    "matters. Some explanations show only how much parts matter, in blue.",
}
"""Meaning of the colors, by the study's color rule. It is the same for every method."""
END = 1.0
"""The end of every scale, since scores of a ballot are shares of the largest score."""


def explanation_html(model_input: Input, one: BallotMap) -> str:
    """HTML of one explanation, in colors and, for screen readers, in words. All text is escaped."""
    if isinstance(model_input, Example):
        return _text_map(model_input, one)
    patches = one.scores[[not token.special for token in one.tokens]]
    return _picture_map(patches.reshape(one.grid or (1, -1)), one.colors == BY_SIGN)


def input_html(model_input: Input) -> str:
    """HTML of the text, of both texts of a pair, or of the frame for the picture that `draw_input` adds as a style."""
    if isinstance(model_input, Example):
        texts = [model_input.text] if model_input.text_pair is None else [model_input.text, model_input.text_pair]
        paragraphs = "".join(f'<p class="xg-text" dir="{direction(text)}">{escape(text)}</p>' for text in texts)
        return f'<div class="xg xg-asked">{paragraphs}</div>'
    picture = f'<div class="xg-patches xg-alone" role="img" aria-label="The picture">{LAYERS}</div>'
    return f'<div class="xg xg-asked">{picture}</div>'


def edit_html(example: Example, edit: Edit) -> str:
    """HTML of the text, or of both texts of a pair, with the changed word struck out and the new word beside it."""
    word = edit.word
    new = f" <ins>{escape(edit.replacement)}</ins>" if edit.replacement else ""
    texts = [example.text] if example.text_pair is None else [example.text, example.text_pair]
    changed = [escape(text) for text in texts]
    before, after = texts[word.segment][: word.start], texts[word.segment][word.end :]
    changed[word.segment] = f"{escape(before)}<del>{escape(word.text)}</del>{new}{escape(after)}"
    paragraphs = "".join(
        f'<p class="xg-text" dir="{direction(text)}">{marked}</p>' for text, marked in zip(texts, changed, strict=True)
    )
    return f'<div class="xg xg-asked"><p class="xg-small">After the edit</p>{paragraphs}</div>'


def scale_html(target: str | None, colors: str) -> str:
    """HTML of the color legend of all maps. `target`: the explained class; None if it is hidden or not known yet.

    Only a signed scale names the class. `colors`: the color rule, as in the study's design.
    """
    if colors == BY_SIGN:
        answer = "the model's answer" if target is None else f"<bdi>{escape(target)}</bdi>"
        scale = f'<i class="xg-scale xg-signed"></i><b>against {answer}</b><span>for {answer}</span>'
    else:
        scale = '<i class="xg-scale xg-amount"></i><b>matters least</b><span>matters most</span>'
    return f'<div class="xg xg-key"><p class="xg-ends">{scale}</p><p class=xg-small>{COLOR_MEANINGS[colors]}</p></div>'


def draw_input(model_input: Input) -> None:
    """Draw the input and add the style sheets of this module; call it once on a page, before the explanations."""
    use_ballot_styles()
    if isinstance(model_input, Picture):
        st.html(picture_style(model_input.pixels))
    st.html(input_html(model_input))


def use_ballot_styles() -> None:
    """Add the style sheets to the page; they take no space. Colors come with `styles.use_styles`."""
    use_picture_styles()
    use_sheet("ballot")


def _text_map(example: Example, one: BallotMap) -> str:
    texts = (example.text,) if example.text_pair is None else (example.text, example.text_pair)
    parts = tuple(unit for unit in units(one.tokens, one.scores, example) if not unit.special)
    signed = one.colors == BY_SIGN
    view = TokenMap(parts, texts, signed, "", one.truncated, bare=True, end=END)
    strongest = _strongest([unit.text for unit in parts], np.array([unit.score for unit in parts]), signed)
    return (
        f'<div class="xg xg-unnamed" role="group" aria-description="{escape(strongest)}">{token_map_html(view)}</div>'
    )


def _picture_map(scores: Float[np.ndarray, "gh gw"], signed: bool) -> str:
    view = PatchMap(scores, signed, "", end=END)
    strongest = _strongest([place(at, scores.shape[1]) for at in range(scores.size)], scores.ravel(), signed)
    picture = f'<div class="xg-patches" role="img" aria-label="{escape(strongest)}">{layers_html(view)}</div>'
    return f'<div class="xg xg-unnamed">{picture}</div>'


def _strongest(names: Sequence[str], scores: Float[np.ndarray, "part"], signed: bool) -> str:
    """Describe the parts with the largest scores, without numbers; parts without color are left out."""
    order = [at for at in np.argsort(-np.abs(scores), kind="stable")[:TOP].tolist() if scores[at]]
    if not order:
        return "Nothing is colored."
    side = {True: " (for)", False: " (against)"} if signed else {True: ""}
    parts = [names[at] + side[bool(scores[at] > 0)] for at in order]
    return f"Strongest: {', '.join(parts)}."
