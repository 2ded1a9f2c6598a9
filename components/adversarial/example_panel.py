"""Attacks on one example: the run, the maps before and after, other methods, the change of the input."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.adversarial.before_after import (
    MapView,
    answer_html,
    before_after_html,
    build_columns,
    build_map,
    build_maps,
    describe_pale_map,
    map_html,
    pictures_html,
    rank_moves,
    ranks_html,
    share_scale,
    size_maps,
    sizes_html,
    use_adversarial_styles,
)
from components.adversarial.controls import key
from components.adversarial.descriptions import (
    CAUTION,
    EMPTY,
    NEAREST,
    OBJECTIVE_TITLES,
    STOPPED,
    WRONG_PREDICTION,
    describe_starts,
    result_notes,
    result_title,
)
from components.adversarial.export import ExampleExport, example_export_area
from components.adversarial.state import PATH, AdversarialState, parse_settings
from components.charts.frame import ChartFrame, blank_chart, style_chart
from components.compute import STOPPED as STOPPED_KEYS
from components.compute import is_stopped, run_cached
from components.errors import describe_error, show_error, show_note
from components.inputs.choices import CHOICES, Opened, label_name
from components.numbers import count, percent, plain, signed
from components.palette import Theme, browser_theme
from components.progress import ProgressLine, resume_button, run_with_progress
from components.tables import draw_table
from components.widgets.patch_map import picture_style
from engine.attacks.attack import TransferResult, attack_key, attack_many, measure_transfer, transfer_key
from engine.attacks.optimizer import StepValues
from engine.attacks.plan import AttackRequest
from engine.attacks.result import AttackResult, Trajectory
from engine.data.labels import NUMBERED_CLASS, UNNAMED_CLASS, match_classes
from engine.errors import Cancelled
from engine.format import visible_token
from engine.progress import CancelToken, cancellable
from engine.registry import Explainer
from engine.request import Example, Picture
from engine.store import result_store
from engine.vision.picture import read_view

REQUESTED = "adversarial_asked"
"""Session key: cache keys of the attacks to run."""
FAILURES = "adversarial_failed"
"""Session key: error messages of failed attacks by cache key."""
DRAW_SECONDS = 1.0
CURVES = {"objective": "Objective", "rank_change": "Rank change", "probability": "Probability"}
SCORE = "Score"
"""Title for regression, which has no probability."""
SHARES = ("rank_change", "probability")
CURVE_HEIGHT = 220
DIFFERENT = "another class"


class LiveAttack:
    """The steps of a running attack: the attacking thread adds them, the pages of all sessions read them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._points: list[tuple[int, float, float, float]] = []
        self.steps = 0

    def add(self, step: StepValues) -> None:
        """Add the values of a step if they are finite."""
        values = [float(own[0]) for own in (step.objective, step.rank_change, step.probability)]
        with self._lock:
            self.steps = step.steps
            if np.isfinite(values).all():
                self._points.append((step.step, values[0], values[1], values[2]))

    @property
    def share(self) -> float:
        """Progress from 0 to 1."""
        with self._lock:
            return self._points[-1][0] / self.steps if self._points and self.steps else 0.0

    @property
    def words(self) -> str:
        """Progress in words; empty before the first step."""
        with self._lock:
            return f"step {self._points[-1][0]:,} of {self.steps:,}" if self._points else ""

    def trajectory(self) -> Trajectory:
        """The steps so far, thinned. Class changes are not known yet."""
        with self._lock:
            points = np.array(self._points, dtype=np.float64).reshape(-1, 4)
        kept = np.ones(len(points), dtype=bool)
        trajectory = Trajectory(points[:, 0].astype(np.int64), points[:, 1], points[:, 2], points[:, 3], kept)
        return trajectory.thin([]) if len(points) else trajectory


_lock = threading.Lock()
_live: dict[str, LiveAttack] = {}


def live_attack(key: str) -> LiveAttack:
    """The running attack of a cache key, or a new one."""
    with _lock:
        return _live.setdefault(key, LiveAttack())


def forget(key: str) -> None:
    """Remove a finished attack."""
    with _lock:
        _live.pop(key, None)


def run_area(state: AdversarialState, place: DeltaGenerator) -> list[AttackResult]:
    """Return cached attacks and compute requested ones. `place`: place for errors."""
    try:
        requests = {attack_key(one): one for one in (state.request(objective) for objective in state.objectives)}
    except Exception as error:
        show_error(describe_error(error), place)
        return []
    requested = st.session_state.get(REQUESTED, [])
    missing = [own for own in requests if own not in requested and not result_store().contains(own)]
    if missing:
        _offer(state, missing)
    results = [_run(request, own) for own, request in requests.items() if own not in missing]
    return [result for result in results if result is not None]


def describe_run_cost(state: AdversarialState, attacks: int) -> str:
    """Describe the maximum cost of a run in passes through the model."""
    params = parse_settings(state.kind, state.strength)
    nodes = state.points if state.method == PATH else 1
    passes = attacks * params.starts * params.steps * nodes
    path = f", {nodes} points on the path" if nodes > 1 else ""
    starts = describe_starts(params.starts)
    return (
        f"{count(attacks, 'attack')}{starts}, at most {count(params.steps, 'step')}{path}: {passes:,} forward "
        f"{'pass' if passes == 1 else 'passes'} with two backward passes each."
    )


def _offer(state: AdversarialState, missing: Sequence[str]) -> None:
    with st.container(border=True, key="adversarial_to_do"):
        st.markdown(EMPTY)
        st.caption(describe_run_cost(state, len(missing)))
        st.button(
            "Run the attack", key=key(state.kind, "run"), type="primary", on_click=partial(_request_run, list(missing))
        )  # fmt: skip


def _request_run(keys: list[str]) -> None:
    st.session_state[REQUESTED] = sorted({*st.session_state.get(REQUESTED, []), *keys})
    st.session_state[STOPPED_KEYS] = [one for one in st.session_state.get(STOPPED_KEYS, []) if one not in keys]


def _run(request: AttackRequest, own: str) -> AttackResult | None:
    """Load an attack from the cache, or compute it with progress; None if it fails or is stopped.

    `own`: cache key of the attack.
    """
    title, failed = OBJECTIVE_TITLES[str(request.attack["objective"])], st.session_state.setdefault(FAILURES, {})
    progress, curves = st.empty(), st.empty()
    if is_stopped(own):
        resume_button(progress, own, STOPPED)
    elif own in failed:
        _show_failure(own, title, failed[own])
    else:
        try:
            result = run_cached(
                own, partial(_compute, request, own), _progress_callback(request, own, title, progress, curves)
            )
            progress.empty()
            return result
        except Cancelled:
            resume_button(progress, own, STOPPED)
        except Exception as error:
            failed[own] = describe_error(error)
            progress.empty()
            _show_failure(own, title, failed[own])
        finally:
            curves.empty()
    return None


def _show_failure(own: str, title: str, why: str) -> None:
    """Show an error and a button to try again."""
    show_error(f"{title}: {why}")
    st.button("Try again", key=f"adversarial_again.{own}", on_click=lambda: st.session_state[FAILURES].pop(own, None))


def _compute(request: AttackRequest, own: str, token: CancelToken) -> AttackResult:
    try:
        return attack_many([request], cancel=token, on_step=live_attack(own).add)[0]
    finally:
        forget(own)


def _progress_callback(
    request: AttackRequest, own: str, title: str, progress: DeltaGenerator, curves: DeltaGenerator
) -> Callable[[str], None]:
    """Return a callback that draws the progress at each tick and the curves every `DRAW_SECONDS`."""
    line, last_draw = ProgressLine(progress, [own], title), [0.0]

    def tick(words: str) -> None:
        live = live_attack(own)
        line.show(live.share, title)
        line.tick(", ".join(filter(None, (words.split(",")[0] if live.words else words, live.words))))
        if live.words and time.monotonic() - last_draw[0] > DRAW_SECONDS:
            last_draw[0] = time.monotonic()
            draw_curves([AttackCurve(str(request.attack["objective"]), live.trajectory())], curves)

    return tick


@dataclass(frozen=True)
class AttackCurve:
    """The steps of one attack. `best`: the best step, None while it runs or if there is none."""

    objective: str
    trajectory: Trajectory
    best: int | None = None


def curve_data(attacks: Sequence[AttackCurve], curve: str) -> pd.DataFrame:
    """One row per point: step, value, attack, class, whether it is the best step."""
    return pd.DataFrame(
        [
            {
                "step": int(step),
                "value": float(value),
                "name": OBJECTIVE_TITLES[one.objective],
                "class": "unchanged" if kept else DIFFERENT,
                "best": one.best == int(step),
                "shown": plain(float(value)),
            }
            for one in attacks
            for step, value, kept in zip(
                one.trajectory.step, getattr(one.trajectory, curve), one.trajectory.class_kept, strict=True
            )
        ]
    )


def curve_chart(attacks: Sequence[AttackCurve], curve: str, theme: Theme, regression: bool = False) -> alt.LayerChart:
    """Draw one of `CURVES`, with a large point at the best step and small points at steps in another class."""
    table = curve_data(attacks, curve)
    if table.empty:
        return blank_chart(ChartFrame({}, theme))
    names = [OBJECTIVE_TITLES[one.objective] for one in attacks]
    share = curve in SHARES and not (regression and curve == "probability")
    legend = alt.Legend(orient="bottom", columns=1, symbolType="stroke", symbolSize=420) if len(names) > 1 else None
    title = SCORE if regression and curve == "probability" else CURVES[curve]
    base = alt.Chart(table).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(tickMinStep=1, tickCount=4, grid=False)),
        y=alt.Y(
            "value:Q", title=title, scale=alt.Scale(domain=[0, 1]) if share else alt.Scale(zero=False),
            # An empty format would write a tick of 20 as "2e+1".
            axis=alt.Axis(tickCount=4, format="%") if share else alt.Axis(tickCount=4),
        ),
        color=alt.Color("name:N", scale=alt.Scale(domain=names), title=None, legend=legend),
        strokeDash=alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]][: len(names)]),
                                  title=None, legend=legend),
        tooltip=[alt.Tooltip("name:N", title="Attack"), alt.Tooltip("step:Q", title="Step"),
                 alt.Tooltip("shown:N", title=title), alt.Tooltip("class:N", title="Class")],
    )  # fmt: skip
    layers = [base.mark_line(strokeWidth=2)]
    for points, size in ((table[table["class"] == DIFFERENT], 26), (table[table["best"]], 110)):
        if len(points):
            layers.append(base.properties(data=points).mark_point(filled=True, opacity=1, size=size))
    return style_chart(alt.LayerChart(layer=layers), CURVE_HEIGHT + 24 * (len(names) if legend else 0) + 40, theme)


def draw_curves(attacks: Sequence[AttackCurve], place: DeltaGenerator, regression: bool = False) -> None:
    """Draw the curves of objective, rank change and probability side by side."""
    columns = place.container().columns(len(CURVES), gap="small")
    for column, (curve, title) in zip(columns, CURVES.items(), strict=True):
        column.altair_chart(curve_chart(attacks, curve, browser_theme(), regression), alt=f"{title} by step")


def model_picture(state: AdversarialState, results: list[AttackResult]) -> np.ndarray | None:
    """The picture as the model sees it before the attack; None for texts."""
    if not isinstance(state.input, Picture):
        return None
    shown = next((result.picture for result in results if result.picture is not None), None)
    return read_view(state.focus.model).transform(state.input.pixels) if shown is None else shown.before


def describe_wrong_prediction(state: AdversarialState, opened: Opened, result: AttackResult) -> str:
    """Return a sentence if the model was wrong before the attack; empty if it was right or this is unknown."""
    if result.prediction.regression:
        return ""
    label, true = _truth(state, opened, result.prediction.labels)
    if true is None or true == result.prediction.index:
        return ""
    return WRONG_PREDICTION.format(visible_token(result.prediction.label), label)


def _truth(state: AdversarialState, opened: Opened, labels: tuple[str, ...]) -> tuple[str, int | None]:
    """Return the label's name in the data set and the index of the model's class; empty and None if unknown."""
    label, names = CHOICES[state.kind].label(state.focus, opened), opened.data.label_names
    if not isinstance(label, int) or not 0 <= label < len(names):
        return "", None
    indices = match_classes(names, labels, NUMBERED_CLASS if state.kind == "image" else UNNAMED_CLASS).indices
    return label_name(state.kind, state.focus, opened), None if indices is None else indices[label]


def transfer_area(state: AdversarialState, results: Sequence[AttackResult], methods: Mapping[str, Explainer]) -> None:
    """Draw a row of maps for each other method, if they are shown."""
    if "others" in state.opened:
        for id in methods:
            if id != state.method and id in state.others:
                _transfer_row(state, results, methods[id])


def _transfer_row(state: AdversarialState, results: Sequence[AttackResult], method: Explainer) -> None:
    pairs = [(result, _transfer_result(state, result, method)) for result in results]
    complete = [(result, other) for result, other in pairs if other is not None]
    if complete and state.input is not None:
        st.html(transfer_row_html(state, complete, method))


def _transfer_result(state: AdversarialState, result: AttackResult, method: Explainer) -> TransferResult | None:
    """Load the maps of a method from the cache, or compute them; None if that fails or is stopped."""
    request = state.request(str(result.attack["objective"]))
    own = partial(transfer_key, request, method.id, {})

    def work(token: CancelToken) -> TransferResult:
        with cancellable(token):
            return measure_transfer(request, result, method.id, {})

    return run_with_progress(
        st.empty(), own, f"{method.title}, {result_title(result).lower()}", "Stopped before these maps were computed.",
        lambda tick: run_cached(own(), work, tick),
    )  # fmt: skip


def transfer_row_html(
    state: AdversarialState, pairs: Sequence[tuple[AttackResult, TransferResult]], method: Explainer
) -> str:
    """HTML of a method's maps before and after each attack, with the color scale that the page uses."""
    first, results = pairs[0], [result for result, _ in pairs]
    example = state.input
    assert example is not None
    signed_map = method.is_signed({})
    scores = [first[1].before, *(other.after for _, other in pairs)]
    views = [build_map(first[0], own, example, signed_map) for own in scores]
    views = share_scale(views) if state.scale == "one" else views
    picture = model_picture(state, results)
    style = "" if picture is None else picture_style(picture, scope=".xg-others")
    cells = "".join(f"<div>{cell}</div>" for cell in _transfer_cells(views, pairs))
    return (
        f'<div class="xg xg-others">{style}<p class="xg-title">{escape(method.title)}</p>'
        f'<div class="xg-sides">{cells}</div></div>'
    )


def _transfer_cells(views: Sequence[MapView], pairs: Sequence[tuple[AttackResult, TransferResult]]) -> Iterator[str]:
    yield f'<p class="xg-small">Before</p>{map_html(views[0], "Before")}'
    for view, (result, other) in zip(views[1:], pairs, strict=True):
        title = result_title(result)
        words = f'<p class="xg-small">{describe_transfer(other)}</p>'
        rank_change = f"<b>rank change {percent(other.rank_change)}</b>"
        yield f'<p class="xg-small">{escape(title)}: {rank_change}</p>{map_html(view, title)}{words}'


def describe_transfer(other: TransferResult) -> str:
    """Describe the drop in the scores of the method's own top features."""
    normalized = other.top_k_sum_change_normalised
    more = "" if normalized is None else f", normalized {signed(normalized)}"
    return f"Scores of its own top {other.k}: sum change {signed(other.top_k_sum_change)}{more}"


def attack_area(
    state: AdversarialState, methods: Mapping[str, Explainer], opened: Opened, place: DeltaGenerator
) -> None:
    """Draw the run and its results, the answer first."""
    results = run_area(state, place)
    example = state.input
    if not results or example is None:
        return
    use_adversarial_styles()
    title = methods[state.method].title
    st.html(answer_html(results, title))
    if wrong := describe_wrong_prediction(state, opened, results[0]):
        show_note(wrong)
    for note in result_notes(results):
        show_note(note)
    picture = model_picture(state, results)
    maps = build_maps(results, methods[state.method], example, shared=state.scale == "one")
    if pale := describe_pale_map(maps):
        st.caption(pale)
    st.html(before_after_html(build_columns(results, maps, picture), title))
    transfer_area(state, results, methods)
    st.caption(CAUTION)
    st.subheader("Ranks and measures", anchor=False)
    st.html(ranks_html(results))
    _changes_area(results, example, picture)
    _curves_area(results)
    example_export_area(ExampleExport(state, results, maps, picture, methods))


def _changes_area(results: list[AttackResult], example: object, picture: object) -> None:
    """Draw the change of each token or patch."""
    st.subheader("What changed in the input", anchor=False)
    if any(result.picture is not None for result in results):
        st.html(pictures_html(results))
    st.html(sizes_html(results, size_maps(results, example), picture))  # type: ignore[arg-type]
    if isinstance(example, Example):
        for result in results:
            with st.expander(
                f"{result_title(result)}: tokens and nearest words",
                key=f"adversarial.near.{result_title(result)}",
            ):
                st.caption(NEAREST)
                draw_table(tokens_table(result), f"near.{result_title(result)}")


def tokens_table(result: AttackResult) -> pd.DataFrame:
    """One row per ranked token: ranks before and after, size of the change, nearest words."""
    own = rank_moves(result.features.tolist(), result.order_before, result.order_after)
    rows = [
        {
            "Token": result.tokens[move.position].text,
            "Rank before": move.before,
            "Rank after": move.after,
            "Largest change": _round(result.largest[move.position]),
            "Euclidean norm": _round(result.length[move.position]),
            "Nearest words": _nearest_text(result, move.position),
        }
        for move in sorted(own, key=lambda move: move.position)
    ]
    return pd.DataFrame(rows)


def _nearest_text(result: AttackResult, position: int) -> str:
    return ", ".join(f"{word} ({far:.2f})" for word, far in result.nearest[position]) or "none"


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _curves_area(results: Sequence[AttackResult]) -> None:
    """Draw the curves by optimization step."""
    st.subheader("Optimization steps", anchor=False)
    attacks = [AttackCurve(str(result.attack["objective"]), result.trajectory, result.best) for result in results]
    draw_curves(attacks, st.empty(), results[0].prediction.regression)
    st.caption("Large point: the best step. Small points: steps with another predicted class.")
