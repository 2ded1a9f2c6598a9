"""Results of the Images page: the prediction, a card for each method once it is computed, and tests of the maps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float
from streamlit.delta_generator import DeltaGenerator

from components.ablation import PICTURE_WORDS, ablation_area, removable_pins
from components.compute import Tick, explain
from components.controls import PERSIST
from components.errors import show_note
from components.images.state import PictureState, key
from components.inputs.datasets import OpenPictures
from components.inputs.picture_choice import PictureFocus, true_class
from components.map_preview import as_preview, is_useful, preview_note, preview_request
from components.numbers import count, percent
from components.prediction import PROBE, prediction_area
from components.progress import Ends, MethodPlace, fill_places, share_scales
from components.questions import QuestionPage, draw_map_summary, question_section
from components.styles import use_sheet
from components.widgets.patch_map import (
    CARDS_KEY,
    extent,
    patch_card,
    patch_card_html,
    picture_card_html,
    picture_style,
    quiet_card_html,
)
from engine.format import join_names
from engine.metrics.plausibility import TruthScores, expected_truth_scores, truth_scores, truth_skip_reason
from engine.metrics.ranking import is_constant
from engine.models.catalog import needs_labels
from engine.models.label_prompts import split_prompts
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store
from engine.vision.picture import ModelView, read_view
from engine.word_units import BASELINE

PatchMask = Bool[np.ndarray, "row column"]
"""The patches that show the labeled object."""
CHANCE = "Chance, on average"
TYPE_LABELS = "Type two or more labels above, such as: a cat, a dog."
MOST_CLASSES = 3
"""Number of classes with a bar; few, so that the maps are near the top of the page."""
TRUTH_MEANING = (
    "Overlap: how many patches of the object are among the same number of highest-scored patches. Pointing game: "
    "whether the highest-scored patch is one of them (Zhang et al., 2018). Coverage: how many of the highest-scored "
    "patches are needed to include them all."
)
POINTED, MISSED = "hit: the highest-scored patch is on the object", "missed: the highest-scored patch is elsewhere"
TRUTH_CAUTION = (
    "The outline marks the labeled object, not what the model uses. A map can be correct for a model that looks "
    "elsewhere."
)
Explanations = Mapping[str, Explanation]
EVEN = 0.02
"""Aspect ratios that differ by less count as the same, because sides are whole pixels."""
Size = tuple[int, int]
"""Height and width in pixels."""


def true_patches(model: str, mask: Bool[np.ndarray, "height width"] | None) -> PatchMask | None:
    """Return the patches covered by a picture's mask, in the model's own grid, or None if the truth is unknown."""
    return None if mask is None else read_view(model).patches(mask)


def describe_agreement(explanation: Explanation, truth: PatchMask | None, seed: int) -> list[str]:
    """Describe the overlap of a map with the truth and the pointing game, one line each."""
    if truth is None:
        return []
    if reason := truth_skip_reason(truth, "patch"):
        return [f"Not compared with the object: {reason}"]
    scores = truth_scores(explanation.on_grid, truth, (seed,))
    hits, by_chance = round(scores.overlap * scores.size), expected_truth_scores(scores.n, scores.size).overlap
    lines = [
        f"Overlap {percent(scores.overlap)}, chance {percent(by_chance)} ({hits} of {count(scores.size, 'patch')})",
        f"Pointing game {POINTED if scores.pointing else MISSED}",
    ]
    equal = is_constant(explanation.on_grid.ravel())
    return [*lines, "All scores are equal, so this is the level of chance."] if equal else lines


def explain_agreement(chance: TruthScores) -> str:
    """Describe what the maps are compared with."""
    covers = "at least half of each" if chance.size > 1 else "at least half of it, or more of it than of any other"
    shown = "shows" if chance.size == 1 else "show"
    return f"{chance.size} of {chance.n} patches {shown} the object: the outline covers {covers}. {TRUTH_CAUTION}"


def draw_truth(
    methods: Mapping[str, Explainer], explanations: Mapping[str, Explanation], truth: PatchMask | None, seed: int
) -> None:
    """Draw what the maps are compared with, and on request a table; nothing if the truth is unknown."""
    if truth is None or truth_skip_reason(truth) or not explanations:
        return
    chance = expected_truth_scores(truth.size, int(truth.sum()))
    st.subheader("Do the maps find the object?", anchor=False)
    use_sheet("questions")
    rows = {methods[id].title: truth_scores(one.on_grid, truth, (seed,)) for id, one in explanations.items()}
    blind = [
        methods[id].title
        for id, one in explanations.items()
        if is_constant(one.on_grid.ravel()) or methods[id].family == BASELINE
    ]
    st.html(f'<div class="xg"><p class="xg-answer">{escape(truth_answer(rows, chance, blind))}</p></div>')
    st.caption(explain_agreement(chance))
    # On request, because the lines next to the maps contain most of it.
    if not st.toggle(
        "Compare all methods with chance", key=key("open.truth"), persist_state=PERSIST, help=TRUTH_MEANING
    ):
        return
    st.html(truth_table_html(rows, chance))


def truth_answer(rows: Mapping[str, TruthScores], chance: TruthScores, blind: Collection[str]) -> str:
    """Describe the methods with the highest overlap and the number of hits in the pointing game, compared with chance.

    `blind`: methods that are not counted, because their scores are random or all equal.
    """
    told = {name: scores for name, scores in rows.items() if name not in blind}
    if not told:
        return "No map tells patches apart: all scores of each are equal."
    most = max(scores.overlap for scores in told.values())
    best = [name for name, scores in told.items() if scores.overlap == most]
    hits, pointing = round(most * chance.size), sum(scores.pointing == 1 for scores in told.values())
    found = f"{hits} of {chance.size} patches (chance {percent(chance.overlap)})"
    finds = f"{join_names(best)} {'finds' if len(best) == 1 else 'find'} the most of it" if hits else "No map finds it"
    return (
        f"{finds}: {found}. The highest-scored patch shows it for {pointing} of {count(len(told), 'method')} (chance "
        f"{percent(chance.pointing)}). One picture cannot rank methods; Evaluate compares them over many."
    )


def truth_table_html(rows: Mapping[str, TruthScores], chance: TruthScores) -> str:
    """HTML of the scores of chance and of the methods, the best overlap first. Names are escaped."""
    best = sorted(rows.items(), key=lambda row: (-row[1].overlap, row[1].mean_rank))
    names = ("overlap", "pointing game", f"coverage: patches needed, of {chance.n}", "mean rank of the object")
    lines = [_row_html(CHANCE, chance, percent(chance.pointing))]
    lines += [_row_html(name, scores, "hit" if scores.pointing else "missed") for name, scores in best]
    head = "".join(f'<th class="xg-number">{name}</th>' for name in names)
    return (
        f'<div class="xg"><table class="xg-table xg-narrow"><thead><tr><th>method</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _row_html(name: str, scores: TruthScores, game: str) -> str:
    cells = (percent(scores.overlap), game, f"{scores.mean_rank:.1f}", f"{scores.mean_of_ranks:.1f}")
    numbers = "".join(f'<td class="xg-number">{escape(cell)}</td>' for cell in cells)
    return f"<tr><th>{escape(name)}</th>{numbers}</tr>"


def draw_prediction(state: PictureState, control_place: DeltaGenerator | None) -> Explanation | None:
    """Draw the prediction as bars and return its explanation, or draw the reason why there is none and return None.

    `control_place`: container of the choice of the class.
    """
    if state.picture is None:  # its controls have drawn the reason
        return None
    if not state.model:
        st.info("Pick a model above, or type the folder of a checkpoint or a hub ID.")
        return None
    if needs_labels(state.model) and split_prompts(state.model)[1] is None:
        st.info(TYPE_LABELS)
        return None
    probe = Request(state.model, PROBE, state.picture, {}, None, state.seed)
    return prediction_area(probe, state.target, key("target"), "picture", MOST_CLASSES, control_place)


def draw_methods(
    state: PictureState,
    methods: Mapping[str, Explainer],
    probe: Explanation,
    truth: PatchMask | None,
    lines: Sequence[str],
) -> dict[str, Explanation]:
    """Draw the picture with `lines` below it, then a card for each chosen method. Return the computed explanations."""
    progress, cards = st.empty(), st.container(gap=None, key=CARDS_KEY)
    _draw_picture(state, cards, lines)
    if not state.methods:
        st.info("Pick at least one method above.")
        return {}

    def draw(method: Explainer, explanation: Explanation, ends: Ends | None) -> str:
        agreement = tuple(describe_agreement(explanation, truth, state.seed))
        card = patch_card(method, explanation, probe.notes, state.view.maps, ends, agreement)
        notes = preview_note(state.request(method.id), explanation)
        return patch_card_html(replace(card, notes=(*card.notes, *notes)))

    def draw_preview(method: Explainer, wanted: Request, tick: Tick) -> str:
        preview = explain(wanted, tick)
        if not is_useful(preview):
            return ""
        return patch_card_html(as_preview(patch_card(method, preview, preview.notes, state.view.maps), preview))

    places = []
    for id in state.methods:
        wanted = preview_request(state.request(id))
        preview = None if wanted is None else partial(draw_preview, methods[id], wanted)
        place = MethodPlace(methods[id], state.request(id), cards.empty(), quiet=quiet_card_html, preview=preview)
        places.append(place)

    fill_places(places, lambda method, explanation: draw(method, explanation, None), progress)
    if state.view.maps.shared:
        share_scales(places, extent, draw)
    if status := result_store().status:
        show_note(status)
    return {place.method.id: place.made for place in places if place.made is not None}


def _draw_picture(state: PictureState, cards: DeltaGenerator, lines: Sequence[str]) -> None:
    """Add the picture as the model sees it, once for all cards, and draw it on a card of its own."""
    if state.picture is None:
        return
    view, mask = read_view(state.model), state.focus.mask if state.view.outline else None
    outlined = None if mask is None else view.transform_mask(mask)
    cards.html(picture_style(view.transform(state.picture.pixels), outlined))
    cards.html(picture_card_html("As the model sees it", tuple(lines)))


def draw_summary(
    state: PictureState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw the summary sentence of the maps."""
    names = [probe.tokens[position].text for position in probe.features]
    draw_map_summary(methods, explanations, _patch_scores, names, "patch")


def draw_questions(
    state: PictureState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw the deletion and insertion curves or the agreement of the maps, computed on request."""
    page = QuestionPage("picture", state, PICTURE_WORDS, "patch", state.request, key, _patch_scores)
    question_section(page, methods, explanations, probe)


def draw_ablation(
    state: PictureState, methods: Mapping[str, Explainer], explanations: Explanations, probe: Explanation
) -> None:
    """Draw the prediction without the pinned patches."""
    # Pins are indices of patches; an index beyond the patches is also beyond the positions, and is dropped.
    positions = [int(probe.features[0]) + patch for patch in state.pins]
    names = [probe.tokens[position].text for position in removable_pins(positions, probe.tokens)]
    ablation_area(state.request(PROBE), positions, names, PICTURE_WORDS, methods, explanations, probe)


def _patch_scores(explanation: Explanation) -> Float[np.ndarray, "patch"]:
    return explanation.scores[explanation.features]


def describe_picture(focus: PictureFocus, opened: OpenPictures) -> tuple[str, ...]:
    """Return lines on the picture: its name and true class, whether the model has that class, and its preprocessing.

    No model is loaded. Errors: those of a model whose files cannot be read.
    """
    if focus.picture is None:
        return ()
    view = read_view(focus.model)
    truth = true_class(focus, opened, view.labels)
    height, width, _ = focus.picture.pixels.shape
    return tuple(
        filter(None, (describe_name(focus, truth.label), truth.note, describe_preprocessing(view, (height, width))))
    )


def describe_name(focus: PictureFocus, label: str) -> str:
    """Return the name of the picture, with its label if known."""
    name = focus.name or f"example {focus.index}"
    if not {".", "/"} & set(name):  # the name of a file is left unchanged
        name = f"{name[:1].upper()}{name[1:]}"
    return f"{name}: {label}." if label else f"{name}."


def describe_preprocessing(view: ModelView, size: Size) -> str:
    """Describe the preprocessing of a picture of this size; empty if the model sees every pixel unchanged."""
    resized = replace(view.preprocessing, crop=None).output_size(*size)
    steps = [*_describe_resize(size, resized), *_describe_crop(resized, view.size)]
    return f"{_describe_size(size)} pixels, {join_names(steps)}." if steps else ""


def _describe_resize(size: Size, resized: Size) -> list[str]:
    if size == resized:
        return []
    stretched = abs(size[1] * resized[0] / (size[0] * resized[1]) - 1) > EVEN
    return [f"resized to {_describe_size(resized)}{' (aspect ratio not kept)' if stretched else ''}"]


def _describe_crop(resized: Size, view: Size) -> list[str]:
    if resized == view:
        return []
    inside = min(resized[0], view[0]), min(resized[1], view[1])
    cropped = [f"cropped to the central {_describe_size(inside)}"] if inside != resized else []
    return [*cropped, *([f"padded with black to {_describe_size(view)}"] if inside != view else [])]


def _describe_size(size: Size) -> str:
    return f"{size[1]:,} × {size[0]:,}"
