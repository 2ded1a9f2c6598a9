"""The drawings of one head alone; in its address `show` for one of SHOWN, `detail`, `head`, `alone`, `view`, `whole`.

`whole`: Python sends the head's exact matrix. It writes what position it was asked for.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache

import numpy as np
import streamlit as st

from components.styles import use_styles
from components.widgets.attention_board import HERE, add_digest, map_data, pack_head, use_head_colors
from components.widgets.base import BASE, Component
from components.widgets.patch_map import picture_style, use_picture_styles
from engine.heads.matrices import MatrixSelection, largest_values, pack_heads
from engine.heads.scores import received

LAYERS, HEADS = 2, 12
GRID, SIDE = (6, 8), 16
"""Rows and columns of patches, and pixels of a patch."""
DRAWINGS = ("model", "matrix", "details")
WORDS = ("[CLS]", "the", "actors", "are", "warm", "&", "<b>funny</b>", "and", "very", "good", "good", "[SEP]")
DRAW = """
export default function ({ data, parentElement, setTriggerValue }) {
const host = parentElement.querySelector(".host") ?? parentElement.appendChild(element("div", { class: "xg host" }));
const model = new BoardModel(data.told, new Colors(host), ({ query }) => setTriggerValue("asked", query));
const bytes = Uint8Array.from(atob(data.body), (letter) => letter.charCodeAt(0));
const [layer, head] = data.head;
const draw = { matrix: drawMatrix, overlay: drawOverlay }[data.told.detail];
const active = data.alone ? [[layer, head]] : data.told.heads.map((one) => [layer, one]);
const show = () => (draw ? draw(host, model, [layer, head]) : drawLines(host, model, active));
const whole = data.whole && Uint8Array.from(atob(data.whole), (letter) => letter.charCodeAt(0));
Promise.all([unpacked(bytes), whole && wholeHead(whole)]).then(([grids, one]) => {
Object.assign(model, { grids, whole: one });
colored();
});
function colored() {
model.colors = new Colors(host);
if (!model.colors.known) return requestAnimationFrame(colored);
show();
parentElement.dataset.shown = "";
}
}
"""


@dataclass(frozen=True)
class Case:
    """An input: its tokens, where the second text begins, whether it is causal, its grid of patches."""

    words: tuple[str, ...]
    second: int | None = None
    causal: bool = False
    grid: tuple[int, int] | None = None


def _patches() -> tuple[str, ...]:
    rows, columns = GRID
    return ("[CLS]", *(f"row {at // columns + 1}, column {at % columns + 1}" for at in range(rows * columns)))


SHOWN = {
    "text": Case(WORDS),
    "causal": Case(WORDS, causal=True),
    "one": Case(("good",)),
    "pair": Case((*WORDS, "a", "dull", "film", "[SEP]"), second=len(WORDS)),
    "sixty": Case(tuple(f"word{at}" for at in range(60))),
    "long": Case(tuple(f"word{at}" for at in range(512)), causal=True),
    "image": Case(_patches(), grid=GRID),
}


def seen() -> np.ndarray:
    """A picture that is brighter to the right and redder to its foot."""
    rows, columns = (np.linspace(40, 220, SIDE * count, dtype=np.uint8) for count in GRID)
    red, green = np.meshgrid(rows, columns, indexing="ij")
    return np.stack([red, green, 255 - red], axis=2)


@cache
def attention(name: str) -> np.ndarray:
    """Rows of shares in half precision; a head looks near, the one after it at few tokens."""
    case, random = SHOWN[name], np.random.default_rng(3)
    n = len(case.words)
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    raw = random.normal(size=(LAYERS, HEADS, n, n)).astype(np.float32) * 1.5
    raw -= steps / np.linspace(1, n / 2 + 1, HEADS)[:, None, None]
    raw = np.where(np.tri(n, dtype=bool) | (not case.causal), raw, -np.inf)
    shares = np.exp(raw - raw.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    shares[np.isneginf(raw)] = np.nan
    return shares.astype(np.float16)


def part_of(name: str, between: str) -> MatrixSelection:
    n, second = len(SHOWN[name].words), SHOWN[name].second
    sides = {"all": (range(n), range(n)), "a_to_b": (range(second or n), range(second or 0, n))}
    rows, columns = sides[between]
    return MatrixSelection(tuple(rows), tuple(columns))


def told(name: str, part: MatrixSelection, head: tuple[int, int]) -> dict[str, object]:
    case, query = SHOWN[name], st.query_params
    special = [word.startswith("[") for word in case.words]
    features = np.flatnonzero(~np.array(special))
    looks = int(query.get("query", 0)) if query.get("view") == "query" else None
    return {
        "size": [LAYERS, HEADS],
        "layers": list(range(LAYERS)),
        "heads": list(range(HEADS)),
        "tokens": [
            {"text": word, "special": special[at], "part": _segment(case, at)} for at, word in enumerate(case.words)
        ],
        "rows": part.rows,
        "columns": part.columns,
        "features": features.tolist(),
        "grid": case.grid,
        "causal": case.causal,
        "view": query.get("view", "received"),
        "viewWords": "What [CLS] attends to",
        "query": looks,
        "maps": map_data(received(attention(name), features, looks)),
        "scale": query.get("scale", "own"),
        "detail": query.get("detail", "matrix"),
        "ends": largest_values(attention(name)).tolist(),
        "exact": {"head": head} if "whole" in query else None,
        "changed": {},
    }


def _segment(case: Case, at: int) -> int:
    if case.words[at].startswith("["):
        return -1
    return int(case.second is not None and at >= case.second)


@cache
def component() -> Component:
    paths = [BASE, *(HERE / name for name in DRAWINGS)]
    css = "\n".join(path.with_suffix(".css").read_text("utf-8") for path in (BASE, HERE / "board"))
    script = "\n".join([*(path.with_suffix(".js").read_text("utf-8") for path in paths), DRAW])
    return st.components.v2.component("exegesis_detail", css=css, js=script, isolate_styles=False)


if __name__ == "__main__":
    name = st.query_params.get("show", "text")
    layer, place = map(int, st.query_params.get("head", "1.7").split("."))
    part = part_of(name, st.query_params.get("between", "all"))
    shown = attention(name)[:, :, part.rows][..., part.columns]
    use_styles()
    use_picture_styles()
    use_head_colors()
    st.html(picture_style(seen()))
    body, whole = add_digest(pack_heads(shown)).body, add_digest(pack_head(attention(name), (layer, place), part))
    data = {
        "told": told(name, part, (layer, place)),
        "body": b64encode(body).decode(),
        "whole": b64encode(whole.body).decode() if "whole" in st.query_params else None,
        "head": [layer, place],
        "alone": "alone" in st.query_params,
    }
    with st.container(width=int(st.query_params.get("width", 560))):
        component()(key="detail", data=data, on_asked_change=lambda: None)
    st.text(f"Asked for {st.session_state.detail.get('asked')}")
