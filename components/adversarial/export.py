"""Files of attacks on one example, and the citation and command of attacks on one or many examples."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from components.adversarial.before_after import (
    MapView,
    adversarial_sheet,
    answer_html,
    before_after_html,
    build_columns,
    pictures_html,
    rank_moves,
    ranks_html,
    size_maps,
    sizes_html,
)
from components.adversarial.controls import key
from components.adversarial.descriptions import (
    CAUTION,
    NO_COMMAND,
    attack_references,
    cite_attack,
    describe_reach,
    result_title,
    summarize_attacks,
    titled_headline,
)
from components.adversarial.state import PATH, AdversarialState
from components.export import REPEATS, citation_box, citation_html, file_button, png_button, standalone_page, to_png
from components.widgets.patch_map import PatchCard, PatchMap, picture_sheet
from components.widgets.patch_map.png import Sheet, sheet_png
from components.widgets.token_map import TokenMap
from components.widgets.token_map.svg import maps_svg
from engine.attacks.plan import EXAMPLES, AttackParams, AttackPlan
from engine.attacks.result import AttackResult, pack
from engine.home import product_version
from engine.registry import Explainer

HTML_HELP = "Before and after as one HTML file without scripts; works offline."
MAPS_HELP = "The maps before and after (light theme) with their settings and references."
CSV_HELP = "One row per token or patch and attack: scores and ranks before and after, size of the change, outcome."
JSON_HELP = "Everything except the change itself: predictions, scores, curves, parameters, notes."
NPY_HELP = "The change as a NumPy array: tokens or patches by numbers."
PNG_HELP = "The picture after the attack as the model sees it, rounded to 8 bits per color."


@dataclass(frozen=True, eq=False)
class ExampleExport:
    """The attacks as shown. `maps`: before, then after each attack. `picture`: None for texts."""

    state: AdversarialState
    results: Sequence[AttackResult]
    maps: Sequence[MapView]
    picture: np.ndarray | None
    methods: Mapping[str, Explainer]

    @property
    def title(self) -> str:
        origin = self.results[0].provenance
        return f"Attack on {self.methods[origin.method].title} of {origin.model}"

    @property
    def citation(self) -> list[str]:
        """The citation and the references."""
        return [cite_attack(self.results[0]), *attack_references(self.results[0], self.methods)]

    @property
    def titled_maps(self) -> Iterator[tuple[str, MapView]]:
        """The maps with their titles."""
        return zip(("Before", *map(result_title, self.results)), self.maps, strict=True)


def example_html(export: ExampleExport) -> str:
    """Return the result as one HTML file without scripts or external resources, light and dark."""
    results, example = list(export.results), export.state.input
    assert example is not None
    title = export.methods[results[0].provenance.method].title
    pictures = pictures_html(results) if any(result.picture is not None for result in results) else ""
    command = example_command(export.state)
    sections = (
        answer_html(results, title)
        + before_after_html(build_columns(results, export.maps, export.picture), title)
        + ranks_html(results)
        + f"<p>{escape(CAUTION)}</p>",
        f"<h2>What changed in the input</h2>{pictures}"
        + sizes_html(results, size_maps(results, example), export.picture),
        f"<h2>Cite this</h2>{citation_html(export.citation[0], export.citation[1:])}"
        + (f"<pre>{escape(command)}</pre>" * bool(command)),
    )
    sheets = (
        sheet.removeprefix("<style>").removesuffix("</style>") for sheet in (picture_sheet(), adversarial_sheet())
    )
    return standalone_page(export.title, sections, "".join(sheets))


def example_svg(export: ExampleExport) -> str:
    """Return the maps of a text as SVG, in the light theme."""
    rows = [(title, view) for title, view in export.titled_maps if isinstance(view, TokenMap)]
    return maps_svg(
        [(f"{export.title}. {rows[0][0]}", rows[0][1]), *rows[1:]], [*_headlines(export), *export.citation], dark=False
    )


def example_png(export: ExampleExport) -> bytes:
    """Return the picture and its maps before and after as PNG, in the light theme."""
    assert export.picture is not None
    cards = tuple(PatchCard(title, view, None, "") for title, view in export.titled_maps if isinstance(view, PatchMap))
    return sheet_png(Sheet(export.picture, cards, (export.title, *_headlines(export)), tuple(export.citation)), "light")


def example_command(state: AdversarialState) -> str:
    """Return the command that reproduces the attack; empty for an input that is not from a data set."""
    index = state.focus.place
    if index is None:
        return ""
    params = {PATH: state.path} if state.method == PATH and state.path else {}
    others = tuple(id for id in state.others if id != state.method) if "others" in state.opened else ()
    models, methods = (state.focus.model,), (state.method,)
    plan = replace(state.plan(), models=models, methods=methods, params=params, transfer=others)
    return experiment_command(plan, index)


def _headlines(export: ExampleExport) -> list[str]:
    title = export.methods[export.results[0].provenance.method].title
    lines = (f"{name}: {sentence}." for name, sentence in map(titled_headline, export.results))
    return [summarize_attacks(export.results, title), *filter(None, [describe_reach(export.results)]), *lines]


def example_export_area(export: ExampleExport) -> None:
    """Draw download buttons and the citation. Each file is built when its button is pressed."""
    st.subheader("Export", anchor=False)
    state, results, kind, name = export.state, export.results, export.state.kind, "exegesis-attack"
    with st.container(horizontal=True, gap="small", key=key(kind, "keep")):
        file_button(
            "HTML", f"{name}.html", "text/html", partial(example_html, export), HTML_HELP, key(kind, "keep.html")
        )
        if export.picture is not None:
            file_button(
                "PNG", f"{name}.png", "image/png", partial(example_png, export), MAPS_HELP, key(kind, "keep.png")
            )
        file_button(
            "Numbers, CSV", f"{name}.csv", "text/csv", lambda: rank_csv(results), CSV_HELP, key(kind, "keep.csv")
        )
        file_button(
            "All, JSON", f"{name}.json", "application/json", lambda: results_json(results), JSON_HELP,
            key(kind, "keep.json"),
        )  # fmt: skip
        for result in results:
            _attack_files(kind, name, result)
        if export.picture is None:
            # Last, because its element takes the rest of the line.
            png_button("PNG", f"{name}.png", partial(example_svg, export), MAPS_HELP, key(kind, "keep.png"))
    citation = citation_html(export.citation[0], export.citation[1:])
    command = example_command(state)
    citation_box(citation, [(f"{REPEATS}:", command)] if command else [], key(kind, "keep.cite"))
    if not command:
        st.caption(NO_COMMAND)


def _attack_files(kind: str, name: str, result: AttackResult) -> None:
    objective = str(result.attack["objective"])
    file_button(
        f"Change, {objective}", f"{name}-{objective}.npy", "application/octet-stream",
        lambda: to_npy(result.delta), NPY_HELP, key(kind, f"keep.npy.{objective}"),
    )  # fmt: skip
    if result.picture is not None:
        picture = result.picture.after
        file_button(
            f"Picture, {objective}", f"{name}-{objective}.png", "image/png", lambda: to_png(picture), PNG_HELP,
            key(kind, f"keep.png.{objective}"),
        )  # fmt: skip


def rank_csv(results: Sequence[AttackResult]) -> str:
    """Return the ranks as CSV, one row per ranked position and attack."""
    rows = [
        {
            "objective": result.attack["objective"], "position": move.position,
            "token": result.tokens[move.position].text, "score_before": result.before[move.position],
            "score_after": result.after[move.position], "place_before": move.before, "place_after": move.after,
            "largest_change": result.largest[move.position], "length_of_change": result.length[move.position],
            "outcome": result.outcome,
        }
        for result in results
        for move in rank_moves(result.features.tolist(), result.order_before, result.order_after)
    ]  # fmt: skip
    return str(pd.DataFrame(rows).to_csv(index=False))


def results_json(results: Sequence[AttackResult]) -> str:
    """Return the results as a JSON list with one object per attack."""
    return (
        json.dumps([_result_json(result) for result in results], indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def to_npy(values: np.ndarray) -> bytes:
    """Return the array as a NumPy file."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def _result_json(result: AttackResult) -> dict[str, object]:
    meta, arrays = pack(result)
    large = {"delta", *(name for name in arrays if name.startswith("picture_"))}
    numbers = {
        "rank_change": result.rank_change, "top_k_sum_change": result.top_k_sum_change,
        "top_k_sum_change_normalised": result.top_k_sum_change_normalised,
        "probability_change": result.probability_change, "class_kept": result.class_kept,
        "constraint_kept": result.constraint_kept, "outcome": result.outcome,
    }  # fmt: skip
    return {
        "title": result_title(result), **numbers, **meta,
        **{name: values.tolist() for name, values in arrays.items() if name not in large},
    }  # fmt: skip


def experiment_command(plan: AttackPlan, index: int | None = None) -> str:
    """Return the command that reproduces the plan, without default options. `index`: index of a single example."""
    parts = ["exegesis", "attack", "--models", ",".join(plan.models), "--dataset", plan.dataset]
    parts += ["--methods", ",".join(plan.methods)]
    parts += ["--objective", plan.objectives[0] if len(plan.objectives) == 1 else "both"]
    for option, value, own in (
        ("index", index, None),
        ("examples", EXAMPLES if index is not None else plan.examples, EXAMPLES),
        ("seed", plan.seed, 0),
        ("split", plan.split, None),
    ):
        parts += [] if value == own else [f"--{option}", str(value)]
    start = AttackParams()
    for name, setting in plan.attack.items():
        if setting != getattr(start, name):
            option = f"--{name.replace('_', '-')}"
            text = f"{setting:.12g}" if isinstance(setting, float) else str(setting)
            parts += [option] if setting is True else [option, text]
    parts += ["--transfer", ",".join(plan.transfer)] if plan.transfer else []
    for method, values in plan.params.items():
        parts += [part for name, value in values.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*parts, "--out", "rows.csv"])


def cite_experiment(plan: AttackPlan) -> str:
    """Cite the models, the data and the settings."""
    return (
        f"Exegesis {product_version()}. Attacks on {', '.join(plan.methods)} of {', '.join(plan.models)} on "
        f"{plan.dataset}, {plan.examples} examples, {' and '.join(plan.objectives)}, seed {plan.seed}, {plan.dtype}."
    )
