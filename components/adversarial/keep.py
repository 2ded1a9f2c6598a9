"""What is kept of attacks: numbers as files, the attacked picture, how to cite."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.adversarial.keep_maps import Kept, command_of_one, html, png, svg
from components.adversarial.session import key
from components.adversarial.told import title_of
from components.adversarial.words import NO_COMMAND
from components.citing import cited_html
from components.keeping import REPEATS, cite_box, file_button
from components.png_button import png_button
from engine.attacks.result import Attacked, pack

if TYPE_CHECKING:
    import numpy as np


HTML_HELP = "Before and after as one page that needs no network and runs no script."
MAPS_HELP = "The maps before and after, light, with what made them and references."
CSV_HELP = (
    "A row a token or patch and attack: scores and places before and after, how far it was moved, the attack's outcome."
)
JSON_HELP = "Everything but the change of each number: predictions, scores, curves, parameters, notes."
NPY_HELP = "What is added to each number: an array of tokens or patches by numbers, as NumPy reads it."
PNG_HELP = "The picture after the attack as the model sees it, rounded to 8 bits a colour."


def keep_area(kept: Kept) -> None:
    """Files to download and how to cite. A file is built when its button is pressed, not before."""
    st.subheader("Keep", anchor=False)
    state, founds, kind, name = kept.state, kept.founds, kept.state.kind, "exegesis-attack"
    with st.container(horizontal=True, gap="small", key=key(kind, "keep")):
        file_button("HTML", f"{name}.html", "text/html", partial(html, kept), HTML_HELP, key(kind, "keep.html"))
        if kept.seen is not None:
            file_button("PNG", f"{name}.png", "image/png", partial(png, kept), MAPS_HELP, key(kind, "keep.png"))
        file_button("Numbers, CSV", f"{name}.csv", "text/csv", lambda: csv_of(founds), CSV_HELP, key(kind, "keep.csv"))
        file_button(
            "All, JSON", f"{name}.json", "application/json", lambda: json_of(founds), JSON_HELP, key(kind, "keep.json")
        )
        for found in founds:
            _of_one(kind, name, found)
        if kept.seen is None:
            # Last: its element is as wide as the rest of the line.
            png_button("PNG", f"{name}.png", partial(svg, kept), MAPS_HELP, key(kind, "keep.png"))
    cited = cited_html(kept.cited[0], kept.cited[1:])
    again = command_of_one(state)
    cite_box(cited, [(f"{REPEATS}:", again)] if again else [], key(kind, "keep.cite"))
    if not again:
        st.caption(NO_COMMAND)


def _of_one(kind: str, name: str, found: Attacked) -> None:
    objective = str(found.attack["objective"])
    file_button(
        f"Change, {objective}", f"{name}-{objective}.npy", "application/octet-stream",
        lambda: npy_of(found.delta), NPY_HELP, key(kind, f"keep.npy.{objective}"),
    )  # fmt: skip
    if found.picture is not None:
        shown = found.picture.after
        file_button(
            f"Picture, {objective}", f"{name}-{objective}.png", "image/png", lambda: png_of(shown), PNG_HELP,
            key(kind, f"keep.png.{objective}"),
        )  # fmt: skip


def csv_of(founds: Sequence[Attacked]) -> str:
    """A row a ranked position and attack."""
    import pandas as pd

    from components.adversarial.moves import moves

    rows = [
        {
            "objective": found.attack["objective"], "position": move.position,
            "token": found.tokens[move.position].text, "score_before": found.before[move.position],
            "score_after": found.after[move.position], "place_before": move.before, "place_after": move.after,
            "largest_change": found.largest[move.position], "length_of_change": found.length[move.position],
            "outcome": found.outcome,
        }
        for found in founds
        for move in moves(found.features.tolist(), found.order_before, found.order_after)
    ]  # fmt: skip
    return str(pd.DataFrame(rows).to_csv(index=False))


def json_of(founds: Sequence[Attacked]) -> str:
    """A list, an object an attack."""
    return json.dumps([_plain(found) for found in founds], indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def npy_of(values: np.ndarray) -> bytes:
    """The array as a file."""
    import numpy as np

    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def png_of(pixels: np.ndarray) -> bytes:
    """The picture as a file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def _plain(found: Attacked) -> dict[str, object]:
    meta, arrays = pack(found)
    large = {"delta", *(name for name in arrays if name.startswith("picture_"))}
    numbers = {
        "rank_change": found.rank_change, "top_k_sum_change": found.top_k_sum_change,
        "top_k_sum_change_normalised": found.top_k_sum_change_normalised,
        "probability_change": found.probability_change, "class_kept": found.class_kept,
        "constraint_kept": found.constraint_kept, "outcome": found.outcome,
    }  # fmt: skip
    return {
        "title": title_of(found), **numbers, **meta,
        **{name: values.tolist() for name, values in arrays.items() if name not in large},
    }  # fmt: skip
