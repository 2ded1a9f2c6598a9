"""What each token or patch has of the prediction by several settings of the flow: small maps side by side, in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import Float

from components.attention.look import FlowLook
from components.widgets.patch_map import PatchMap, layers_html
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.patch_map.html import sentence
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from engine.heads.flow import flow_of_mean, gradient_flow, mean_over_heads
from engine.heads.readings import HeadReading
from engine.request import Example, Input
from engine.word_units import units

THESIS, HALF = 0.0, 0.5
"""The shares of the residual stream that the thesis, and Abnar and Zuidema (2020), take."""
NAMES = {THESIS: "Residual 0, as in the thesis", HALF: "Residual 0.5, as Abnar and Zuidema"}
ABOUT = {
    THESIS: "Attention alone: a layer keeps nothing of what a position was. After a few layers all positions are "
    "mixed, so the first layers decide the map and the last hardly count.",
    HALF: "Half of each position passes every layer unchanged, as skip connections let it. The map stays nearer to "
    "what each position was, and the position that the prediction reads keeps a share of its own.",
}
LATER = "Early layers mix positions most and overpower the rest: without them late layers are seen."
GRADIENT = (
    "Of attention only what speaks for the class counts; the rest of a position passes each layer unchanged. Another "
    "class has another map."
)


@dataclass(frozen=True)
class Setting:
    """Parameters of rollout, with the meaning that they have for the method `attention_rollout`."""

    residual: float
    start_layer: int = 0


@dataclass(frozen=True, eq=False)
class FlowMap:
    """What the positions of the input have of the prediction, and a sentence on how that came about."""

    title: str
    about: str
    shares: Float[np.ndarray, "position"]


def maps_of(reading: HeadReading, look: FlowLook) -> tuple[FlowMap, ...]:
    """Rollout by both papers, then the flow that was chosen; where that is one of theirs, one that begins later."""
    mean, layers = mean_over_heads(reading.attention, reading.scales), len(reading.attention)
    chosen = Setting(look.residual, look.start_layer) if look.kind == "rollout" else None
    rolled = [
        FlowMap(
            title_of(one, one == chosen),
            about(one, layers),
            flow_of_mean(mean, reading.reads, one.residual, one.start_layer).nodes[0],
        )
        for one in settings(chosen, layers)
    ]
    return (*rolled, *([] if chosen else [_gradient_map(reading, look.start_layer)]))


def settings(chosen: Setting | None, layers: int) -> tuple[Setting, ...]:
    """Those of both papers, and what else is compared with them. `chosen`: None where no rollout was."""
    known = (Setting(THESIS), Setting(HALF))
    if chosen is None:
        return known
    if chosen not in known:
        return (*known, chosen)
    return (*known, Setting(chosen.residual, layers // 2)) if layers > 1 else known


def title_of(setting: Setting, chosen: bool) -> str:
    """What a map is called."""
    plain = NAMES.get(setting.residual) if setting.start_layer == 0 else None
    name = plain or f"Residual {setting.residual:g}, from layer {setting.start_layer}"
    return f"{name} (chosen)" if chosen else name


def about(setting: Setting, layers: int) -> str:
    """What a setting does, in a sentence or two."""
    if setting.start_layer:
        return f"Only {counted(setting.start_layer, layers)}. {LATER}"
    share = f"{100 * setting.residual:.0f}\u00a0%"
    return ABOUT.get(
        setting.residual, f"{share} of each position passes every layer unchanged; attention gives the rest."
    )


def counted(start_layer: int, layers: int) -> str:
    """Which layers count: layers 3 to 5 count, layer 5 counts."""
    last = layers - 1
    return f"layer {last} counts" if start_layer == last else f"layers {start_layer} to {last} count"


def _gradient_map(reading: HeadReading, start_layer: int) -> FlowMap:
    since = f", from layer {start_layer}" if start_layer else ""
    flow = gradient_flow(reading.weighted, reading.reads, start_layer)
    return FlowMap(f"Gradient-weighted{since} (chosen)", GRADIENT, flow.nodes[0])


def maps_html(maps: tuple[FlowMap, ...], reading: HeadReading, example: Input) -> str:
    """The maps beside each other. Everything that is not ours is escaped."""
    return f'<div class="xg xg-flow-maps">{"".join(_card(shown, reading, example) for shown in maps)}</div>'


def _card(shown: FlowMap, reading: HeadReading, example: Input) -> str:
    drawn, legend = _text(shown, reading, example) if isinstance(example, Example) else _patches(shown, reading)
    return (
        f'<div class="xg-flow-card"><p class="xg-title">{escape(shown.title)}</p>{drawn}'
        f'<div class="xg-small">{legend}<p>{escape(shown.about)}</p></div></div>'
    )


def _text(shown: FlowMap, reading: HeadReading, example: Example) -> tuple[str, str]:
    texts = (example.text,) if example.text_pair is None else (example.text, example.text_pair)
    drawn = units(reading.of.tokens, shown.shares, example)
    view = TokenMap(drawn, texts, False, reading.of.provenance.target_label, reading.of.truncated)
    return f'<div class="xg-flow-text">{token_map_html(view)}</div>', legend_html(view)


def _patches(shown: FlowMap, reading: HeadReading) -> tuple[str, str]:
    view = PatchMap(_on_grid(shown.shares, reading), False, reading.of.provenance.target_label)
    said = escape(f"{shown.title}. {sentence(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{said}">{layers_html(view)}</div>', patch_legend(view)


def _on_grid(shares: Float[np.ndarray, "position"], reading: HeadReading) -> Float[np.ndarray, "row column"]:
    return shares[reading.of.features].reshape(reading.of.grid or (1, -1))
