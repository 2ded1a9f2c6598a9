"""One test example: the learned and the static explanations of it, on one scale, with what is known to matter."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import pandas as pd
import streamlit as st

from components.awaiting import awaited
from components.engine_room import computed
from components.keeping import file_button
from components.numbers import plain, signed
from components.scaffold.asking import asked as asked_on
from components.scaffold.look import SCALES
from components.scaffold.pick import number, switch
from components.scaffold.section_words import MAPS, TITLES, TRUTH
from components.scaffold.session import key
from components.scaffold.whose import median_of
from components.trouble import literal
from components.widgets.patch_map import PatchMap, layers_html
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.patch_map.html import sentence
from components.widgets.patch_map.picture import picture_style, use_picture_styles
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from components.widgets.token_map.rationale import TITLE, mark_units
from engine.data.examples import ImageExample, LabeledExample
from engine.data.sources import SourceExample
from engine.scaffold.asked import learned_of
from engine.scaffold.beside import Beside, beside, beside_key
from engine.scaffold.result import Scaffold
from engine.vision.view import read_view
from engine.word_units import units

EXAMPLES = 100
"""Of the test split, to choose from."""
UNIT = "word"


def maps_area(found: Scaffold, train_size: int) -> None:
    """The choice of an example, and its maps."""
    learned = learned_of(found.plan, median_of(found, train_size))
    asked, kind = asked_on(found.plan, EXAMPLES), found.plan.kind
    st.caption(MAPS.format("patches" if kind == "image" else "tokens, drawn by word with their sums"))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        chosen = number(kind, f"Test example, 1 to {len(asked.places)}", "example", len(asked.places))
        shared = switch(kind, "Colours", "scale", SCALES) == "shared"
    place = asked.places[chosen - 1]
    candidate, name = asked.source.read(place), beside_key(asked, place, learned)
    made = awaited(
        st.empty(), lambda: name, "Explaining the example", "Stopped.",
        lambda tick: computed(name, lambda token: beside(asked, place, learned, token), tick),
    )  # fmt: skip
    if made is None:
        return
    st.caption(said_words(made, candidate, asked.dataset))
    if isinstance(candidate.example, ImageExample):
        _pictures(made, candidate.example, asked.teacher, shared)
    else:
        st.html(texts_html(made, candidate.example, shared))
    file_button(
        "Maps, CSV", f"exegesis-scaffold-maps-{place}.csv", "text/csv", lambda: table_of(made).to_csv(index=False),
        "A row a token or patch, a column an explainer; special tokens have 0.", key(kind, f"maps_csv.{place}"),
    )  # fmt: skip


def said_words(made: Beside, candidate: SourceExample, dataset: str) -> str:
    """What is looked at and what the teacher says of it, as Markdown."""
    said = f"score {signed(made.score)}" if made.said is None else literal(made.said)
    label = "" if candidate.label is None else f" The data set says: {literal(str(candidate.label))}."
    return f"Example {candidate.index} of {literal(dataset)}. The teacher says: {said}.{label}"


def table_of(made: Beside) -> pd.DataFrame:
    """A row a position: its token or patch, and what each explainer gives it."""
    names = {"Feature": [token.text for token in made.tokens]}
    return pd.DataFrame(names | {TITLES[id]: scores for id, scores in made.maps.items()})


def texts_html(made: Beside, given: LabeledExample, shared: bool) -> str:
    """A row an explainer below what is marked, and the common scale. Everything that is not ours is escaped."""
    drawn = {id: _token_map(made, given, id) for id in made.maps}
    end = max(view.largest for view in drawn.values()) if shared else None
    views = {id: TokenMap(v.units, v.texts, False, "", v.truncated, end=end) for id, v in drawn.items()}
    rows = "".join(_row(TITLES[id], view, f"largest {plain(view.largest)}") for id, view in views.items())
    return f'<div class="xg">{_marks(made, given)}{rows}{_scale(views, shared)}</div>'


def pictures_html(made: Beside, shared: bool) -> str:
    """The maps over the picture, side by side, each with its scale."""
    end = max(float(grid.max()) for grid in map(made.on_grid, made.maps)) if shared else None
    cards = "".join(_card(TITLES[id], PatchMap(made.on_grid(id), False, "", end=end)) for id in made.maps)
    return f'<div class="xg"><div class="xg-beside">{cards}</div></div>'


def _pictures(made: Beside, given: ImageExample, teacher: str, shared: bool) -> None:
    use_picture_styles()
    eyes = read_view(teacher)
    truth = None if given.mask is None else eyes.transform_mask(given.mask)
    st.html(picture_style(eyes.transform(given.pixels), truth))
    st.html(pictures_html(made, shared))
    if truth is not None:
        st.caption(TRUTH)


def _token_map(made: Beside, given: LabeledExample, explainer: str) -> TokenMap:
    drawn = units(made.tokens, made.maps[explainer], given.example, UNIT)
    return TokenMap(drawn, _texts(given), False, "", made.truncated)


def _marks(made: Beside, given: LabeledExample) -> str:
    if not (given.rationale or given.rationale_pair):
        return ""
    view = TokenMap(mark_units(made.tokens, given, UNIT), _texts(given), False, "", made.truncated, marks=True)
    return _row(TITLE, view, "") + f'<p class="xg-small">{legend_html(view)}</p>'


def _texts(given: LabeledExample) -> tuple[str, ...]:
    return tuple(text for text in (given.text, given.text_pair) if text is not None)


def _row(title: str, view: TokenMap, told: str) -> str:
    return (
        f'<div class="xg-row"><div class="xg-side"><p class="xg-title">{escape(title)}</p>'
        f'<p class="xg-small">{escape(told)}</p></div><div>{token_map_html(view)}</div></div>'
    )


def _scale(views: Mapping[str, TokenMap], shared: bool) -> str:
    """The legend once for all, or that each has its own."""
    first = next(iter(views.values()))
    said = legend_html(first) if shared else "Each map has a scale of its own, from 0 to its largest score."
    return f'<p class="xg-small">{said}</p>'


def _card(title: str, view: PatchMap) -> str:
    told = escape(f"{title}. {sentence(view)}")
    return (
        f'<div><p class="xg-title">{escape(title)}</p><div class="xg-patches" role="img" aria-label="{told}">'
        f'{layers_html(view)}</div><div class="xg-small">{patch_legend(view)}</div></div>'
    )
