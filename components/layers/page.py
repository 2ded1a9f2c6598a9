"""The Layers page: the answer, the logit lens, the patching map, the information flow routes, and the export."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compute import explain, run_cached
from components.controls import PERSIST, options_popover, seed_input
from components.errors import describe_error, escape_label, show_error, show_note
from components.export import REPEATS, citation_box, citation_html, file_button, text_arguments
from components.inputs.datasets import complete_dataset, dataset_label
from components.inputs.next_token import name_html
from components.layers import state as page_state
from components.layers.grids import (
    HEADS,
    RESIDUAL,
    best_places,
    heads_html,
    layer_name,
    lens_html,
    patch_html,
)
from components.layers.state import (
    CORRUPTIONS,
    METRICS,
    MOST_CHARACTERS,
    SESSION,
    SITES,
    VIEWS,
    LayersState,
    key,
    patch_examples,
)
from components.method_row import check_html
from components.numbers import count, hundredths, percent, plain, rough_duration, signed
from components.progress import run_with_progress
from components.styles import use_sheet
from components.widgets.flow_graph import (
    THRESHOLDS,
    build_flow_graph,
    describe_carried_share,
    flow_csv,
    flow_graph,
    flow_svg,
    format_share,
)
from engine.data.sources import list_datasets
from engine.errors import UsageError
from engine.format import visible_token
from engine.home import product_version
from engine.input_kinds import list_models
from engine.inside import lens, patching, routes
from engine.inside.lens import LensResult
from engine.inside.patching import PatchingResult, PatchPreview
from engine.inside.routes import HeadImportance, InformationRoutes
from engine.metrics.ablation import PROBE
from engine.next_token import has_chat_template
from engine.progress import CancelToken, cancellable
from engine.request import Request
from engine.table_io import to_csv

T = TypeVar("T")
MOST_OPERATIONS = 2e11
"""Number of operations up to which an exact map is computed at once; more take many seconds on a CPU."""
READABLE, MOST_EDGES = 60, 400
"""Maximum number of edges of a readable graph, and of any graph that is drawn."""
LEAST_SHARE = 0.1
"""Smallest restored share that the sentence names; half of it for sites other than the residual stream."""
SOURCES = (
    "Logit lens: nostalgebraist (2020), interpreting GPT: the logit lens.",
    "Activation patching: F. Zhang and N. Nanda (2024), Towards best practices of activation patching in language "
    "models: metrics and methods, ICLR.",
    "Attribution patching: N. Nanda (2023), Attribution patching: activation patching at industrial scale.",
    "Information flow routes: J. Ferrando and E. Voita (2024), Information flow routes: automatically interpreting "
    "language models at scale, EMNLP.",
)
PATCHING = (
    "An activation of the clean run is put into the corrupted run. The restored share is 0% where that changes "
    "nothing, and 100% where it alone brings back the clean value."
)
ROUTES = (
    "Each position is a sum of what stays in place and what heads move there. An edge’s importance is its share of "
    "that sum, by proximity in the L1 norm (Ferrando and Voita, 2024). It has no sign and does not depend on a class."
)
IMPORTANCE = (
    "For each example, a head’s share of the residual stream at every position, weighted by the share of the "
    "prediction that passes through there."
)
SINK = (
    "Attention often goes to the first token without need (an attention sink, Xiao et al., 2024), so a large share "
    "does not show that it matters."
)
SITE_HELP = (
    "The residual stream before and after blocks, what attention or the MLP of a block adds to it, or the output of "
    "one head before the output projection, at all positions."
)
METRIC_HELP = (
    "Logit difference: of the target and the contrast. Probability: of the target. KL divergence: from the clean "
    "prediction. The metric changes the map."
)
CORRUPTION_HELP = (
    "Another text of as many tokens, Gaussian noise of three standard deviations on the embeddings of chosen tokens, "
    "or the mean embedding in their place. The corruption changes the map."
)
VIEW_HELP = "Exact: a run for each place. Gradient preview: attribution patching, two forward and one backward pass."


def layers_page() -> None:
    """Draw the page."""
    loaded, errors = page_state.load()
    for error in errors:
        show_error(error)
    use_sheet("layers")
    _draw_inputs(loaded)
    state = page_state.from_widgets(loaded)
    page_state.save(state, loaded)
    answer = st.container()
    result = _lens_area(state, answer)
    if result is None:
        return
    _patch_area(state, result, answer)
    _routes_area(state)
    _heads_area(state)
    _cite(state)


def _draw_inputs(loaded: LayersState) -> None:
    line = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
    with line:
        SESSION.selection.model_control(list_models("text"), (), "")
        for example in patch_examples():
            st.button(
                example.title, key=key(f"example.{example.title}"), on_click=page_state.show_example, args=(example,),
                help=f"Show an example for {example.model}.",
            )  # fmt: skip
    options = options_popover(key(""), line)
    if options is not None:
        _draw_options(options)
    is_text = (SESSION.value("corruption") or loaded.corruption) == "text"
    _draw_texts("text", "Clean text", "corrupted", "Corrupted text", is_text)
    if SESSION.value("has_pair"):
        _draw_texts("pair", "Clean second text", "corrupted_pair", "Corrupted second text", is_text)


def _draw_texts(clean: str, clean_label: str, corrupted: str, corrupted_label: str, is_text: bool) -> None:
    """Draw a clean text next to its corrupted one. `is_text`: whether the corrupted run has its own text."""
    left, right = st.columns(2, gap="small")
    left.text_area(clean_label, key=key(clean), height=68, persist_state=PERSIST, max_chars=MOST_CHARACTERS)
    if is_text:
        right.text_area(
            corrupted_label, key=key(corrupted), height=68, persist_state=PERSIST, max_chars=MOST_CHARACTERS,
            help="As many tokens as the clean text. Change the word that the prediction depends on.",
        )  # fmt: skip
    elif clean == "text":
        right.caption("The tokens that are corrupted are chosen below the grid of the logit lens.")


def _draw_options(place: DeltaGenerator) -> None:
    with place:
        st.segmented_control(
            "Corruption", list(CORRUPTIONS), key=key("corruption"), required=True, persist_state=PERSIST,
            format_func=CORRUPTIONS.__getitem__, help=CORRUPTION_HELP,
        )  # fmt: skip
        st.toggle("Second text, for models that read pairs", key=key("has_pair"), persist_state=PERSIST)
        if has_chat_template(str(SESSION.selection.value("model") or "")) or SESSION.value("chat"):
            st.toggle(
                "Chat template", key=key("chat"), persist_state=PERSIST,
                help="Puts both texts into the model’s chat template, as a user’s message.",
            )  # fmt: skip
        st.text_input(
            "Target", key=key("target"), persist_state=PERSIST,
            help="The class, or the next token with its leading space. Empty: the predicted one.",
        )  # fmt: skip
        st.text_input(
            "Contrast", key=key("contrast"), persist_state=PERSIST,
            help="What the target’s logit is compared with. Empty: the strongest other one of the corrupted run.",
        )  # fmt: skip
        seed_input(key, 120)


def _compute(task: Callable[[], T], token: CancelToken) -> T:
    with cancellable(token):
        return task()


def _run(cache_key: str, task: Callable[[], T]) -> T:
    return run_cached(cache_key, partial(_compute, task))


def _lens_area(state: LayersState, answer: DeltaGenerator) -> LensResult | None:
    """Draw the logit lens and return its result, or None if it failed: then the sections below would fail too."""
    try:
        if not state.text.strip():
            raise UsageError("text: must have at least one word, got none. Type a text, or choose an example above.")
        query = lens.LensQuery(state.model, state.example, state.target)
        result = _run(query.key, partial(lens.logit_lens, query))
    except Exception as error:
        show_error(describe_error(error), answer)
        return None
    answer.html(f'<div class="xg"><p class="xg-answer">{lens_answer(result)}</p></div>')
    st.subheader("Logit lens", anchor=False, help="What the model would predict if it ended after each layer.")
    st.html(lens_html(result))
    if result.truncated:
        show_note(f"{count(result.truncated, 'token')} of the text not read: the model reads {len(result.tokens):,}.")
    st.html(f'<div class="xg"><p class="xg-small">{escape(result.explanation)}</p>{check_html(result.check)}</div>')
    _files(
        "lens", lambda: to_csv(lens.lens_rows(result)), lambda: lens.lens_to_json(result),
        "A row for each layer and position.", _command(state, "lens"),
    )  # fmt: skip
    return result


def lens_answer(result: LensResult) -> str:
    """Return a sentence, as HTML, on the layer from which the lens reads the prediction."""
    final, value = f"“{name_html(result.reading_top[-1])}”", float(result.reading_top_value[-1])
    if result.regression:
        nearest = int(abs(result.reading - result.reading[-1]).argmin())
        return f"The score is {signed(value)}. After {layer_name(nearest).lower()} the lens reads that value."
    made = result.decided
    if made == 0:
        return f"The prediction, {final} ({percent(value)}), can be read from the embedding on."
    before, share = result.reading_top[made - 1], float(result.reading_top_value[made - 1])
    start = f"The prediction, {final} ({percent(value)}), is first readable by the lens in {layer_name(made).lower()}"
    return f"{start}: before it, the lens reads “{name_html(before)}” ({percent(share)})."


def _patch_area(state: LayersState, result: LensResult, answer: DeltaGenerator) -> None:
    st.subheader("Patching", anchor=False, help=PATCHING)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.selectbox(
            "Restore", list(SITES), key=key("site"), format_func=SITES.__getitem__, persist_state=PERSIST, width=190,
            help=SITE_HELP,
        )  # fmt: skip
        st.selectbox(
            "Metric", list(METRICS), key=key("metric"), format_func=METRICS.__getitem__, persist_state=PERSIST,
            width=170, help=METRIC_HELP,
        )  # fmt: skip
        st.segmented_control(
            "Shares", list(VIEWS), key=key("view"), format_func=VIEWS.__getitem__, required=True,
            persist_state=PERSIST, help=VIEW_HELP,
        )  # fmt: skip
    if state.corruption != "text":
        names = {
            at: f"{at} {escape_label(visible_token(token.text))}"
            for at, token in enumerate(result.tokens)
            if not token.special
        }
        st.multiselect(
            "Corrupted tokens", list(names), key=key("tokens"), format_func=lambda at: names.get(at, str(at)),
            persist_state=PERSIST,
        )  # fmt: skip
        if not state.tokens:
            show_note("Choose the tokens to corrupt, to see which activations bring the prediction back.")
            return
    try:
        query = state.query
        preview = _run(query.key(patching.PREVIEW), partial(patching.patch_preview, query))
        exact = _exact_map(state, preview)
    except Exception as error:
        show_error(describe_error(error))
        return
    is_exact = state.view == "exact" and exact is not None
    shares = exact.shares if exact is not None and is_exact else preview.effects[state.site]
    sentence = patch_answer(preview, state.site, shares, is_exact)
    answer.html(f'<div class="xg"><p class="xg-answer">{sentence}</p></div>')
    st.html(patch_html(preview, state.site, shares, is_exact))
    st.html(patch_facts_html(preview, exact))
    _files(
        "patching", lambda: to_csv(patching.map_rows(preview, state.site, exact)),
        lambda: patching.preview_to_json(preview, state.site) if exact is None else patching.map_to_json(exact),
        "A row for each place, with both shares.", _command(state, "patch"),
    )  # fmt: skip


def _exact_map(state: LayersState, preview: PatchPreview) -> PatchingResult | None:
    """Return the exact map, or None if it is not available.

    A cached map is always returned. Others are computed only for the exact view: at once if quick, else on request.
    """
    query = state.query
    map_key, evaluations = query.key(patching.EXACT), patching.evaluations(preview, state.site)
    is_there = patching.is_patched(query)
    if state.view != "exact" and not is_there:
        return None
    is_quick = evaluations * preview.operations <= MOST_OPERATIONS
    if not (is_there or is_quick or st.session_state.get(key("started")) == map_key):
        many, seconds = count(evaluations, "evaluation"), rough_duration(evaluations * preview.pass_seconds)
        show_note(
            f"The exact map takes {many} of the model, up to about {seconds}. Below is the preview by gradients until "
            "you start it."
        )
        st.button("Compute the exact map", key=key("start"), on_click=_start_map, args=(map_key,))
        return None
    return run_with_progress(
        st.empty(), lambda: map_key, "Exact map", "Stopped: below is the preview by gradients.",
        lambda tick: run_cached(map_key, partial(_compute, partial(patching.patch_map, query)), tick),
    )  # fmt: skip


def _start_map(map_key: str) -> None:
    """Request this map, for this and later reruns of the page (a callback)."""
    st.session_state[key("started")] = map_key


def patch_answer(preview: PatchPreview, site: str, shares: Any, exact: bool) -> str:
    """Return a sentence, as HTML, on the places that restore most of the difference."""
    estimated = "" if exact else " (estimated by gradients)"
    if site == RESIDUAL:
        runs = best_places(shares, LEAST_SHARE)
        if not runs:
            return f"No position alone restores {LEAST_SHARE:.0%} of the difference{estimated}."
        parts = [
            f"{_place(preview, place)} brings back {'up to ' * (first < last)}{100 * share:.0f}% of the difference "
            f"{_rows(first, last)}"
            for first, last, place, share in runs[:3]
        ]
        return f"Restoring {'; '.join(parts)}{estimated}."
    order = [divmod(int(at), shares.shape[1]) for at in (-shares).ravel().argsort(kind="stable")[:3]]
    named = [
        f"{f'{row}.{at}' if site == HEADS else f'{layer_name(row, site).lower()} at {_place(preview, at)}'} "
        f"({100 * float(shares[row, at]):.0f}%)"
        for row, at in order
        if shares[row, at] >= LEAST_SHARE / 2
    ]
    what = "heads" if site == HEADS else SITES[site].lower() + "s"
    if not named:
        return f"None of the {what} alone restores {LEAST_SHARE / 2:.0%} of the difference{estimated}."
    late = ""
    if site == HEADS:
        half, top = shares.shape[0] / 2, order[: len(named)]
        later = sum(row >= half for row, _ in top)
        late = f" {later} of these {len(named)} {'is' if later == 1 else 'are'} in the later half of the layers."
    return f"The {what} that restore most of the difference{estimated}: {', '.join(named)}.{late}"


def _place(preview: PatchPreview, at: int) -> str:
    return f"“{name_html(preview.tokens[at].text)}” ({at})"


def _rows(first: int, last: int) -> str:
    """Return a range of rows of the residual stream in words."""
    if first == last:
        return f"at the {layer_name(first).lower()}" if first == 0 else f"after {layer_name(first).lower()}"
    start = "from the embedding" if first == 0 else f"from {layer_name(first).lower()}"
    return f"{start} to {layer_name(last).lower()}"


def patch_facts_html(preview: PatchPreview, exact: PatchingResult | None) -> str:
    """HTML of the corruption, the metric, both runs, the correlation of preview and exact map, and the check."""
    unit = {"probability": percent, "kl": plain}.get(preview.query.metric, signed)
    runs = [
        f"{name} run: {name_html(top)} ({percent(value) if preview.contrast else signed(value)})"
        for name, (top, value) in (("Clean", preview.predicted), ("corrupted", preview.corrupted_predicted))
    ]
    facts = (
        f"Corruption: {escape(preview.corruption_name)}. Metric: {escape(preview.metric_name)}; clean "
        f"{unit(preview.clean)}, corrupted {unit(preview.corrupted)}. {', '.join(runs)}."
    )
    compared = check = ""
    if exact is not None:
        many = count(exact.evaluations, "evaluation")
        compared = (
            f'<p class="xg-small">Pearson correlation of exact shares and gradient preview: '
            f"{hundredths(exact.correlation)} over {exact.shares.size:,} places ({many}).</p>"
        )
        check = check_html(exact.check)
    return f'<div class="xg"><p class="xg-small">{facts}</p>{compared}{check}</div>'


def _routes_area(state: LayersState) -> None:
    st.subheader("Information flow routes", anchor=False, help=ROUTES)
    if not st.toggle("Routes from the input to the prediction", key=key("open.routes"), persist_state=PERSIST):
        return
    try:
        query = routes.RoutesQuery(state.model, state.example)
        result = _run(query.key, partial(routes.information_routes, query))
        explanation = explain(Request(state.model, PROBE, state.example))
    except Exception as error:
        show_error(describe_error(error))
        return
    readable = readable_threshold(result)
    threshold = readable if state.threshold is None else state.threshold
    _threshold_slider(threshold, key(f"step.{readable:g}"))
    pruned = routes.prune_edges(result.flow, threshold, MOST_EDGES)
    graph = build_flow_graph(explanation, result.flow, 0, threshold, pruned)
    st.html(f'<div class="xg"><p class="xg-summary">{routes_answer(result)}</p></div>')
    st.caption(describe_carried_share(graph))
    flow_graph(graph, key("routes"))
    st.html(f'<div class="xg">{check_html(result.check)}</div>')
    _files(
        "routes", lambda: flow_csv(graph), lambda: routes.routes_to_json(result, threshold), "A row for each edge.",
        _command(state, "routes", ["--threshold", f"{threshold:g}"]), lambda: flow_svg(graph, explanation),
    )  # fmt: skip


def routes_answer(result: InformationRoutes) -> str:
    """Return sentences, as HTML, on the tokens that the prediction is written from and the heads that move most."""
    shares = result.flow.nodes[0]
    tokens = [
        f"“{name_html(result.tokens[at].text)}” ({percent(float(shares[at]))})"
        for at in (-shares).argsort(kind="stable")[:3].tolist()
    ]
    moved = result.head_shares
    best = [divmod(int(at), moved.shape[1]) for at in (-moved).ravel().argsort(kind="stable")[:3]]
    heads = ", ".join(f"{layer}.{head} ({percent(float(moved[layer, head]))})" for layer, head in best)
    sink = f" {SINK}" if len(shares) > 1 and int(shares.argmax()) == 0 else ""
    return f"Most of the prediction is written from {', '.join(tokens)}.{sink} The heads that move most of it: {heads}."


def readable_threshold(result: InformationRoutes) -> float:
    """Return the smallest threshold at which the graph has at most `READABLE` edges, the largest one if none has."""
    chosen = max(THRESHOLDS)
    for threshold in sorted(THRESHOLDS, reverse=True):
        pruned = routes.prune_edges(result.flow, threshold, READABLE)
        if pruned.left_out:
            break
        chosen = threshold
    return chosen


def _threshold_slider(threshold: float, slider: str) -> None:
    """Draw a slider at the threshold of the drawing, chosen or default. Only a choice of the user is stored.

    `slider`: its key, which must differ for each default; otherwise the browser reports the last value as a choice.
    """
    st.session_state[slider] = threshold

    def choose() -> None:
        st.session_state[key("threshold")] = st.session_state[slider]

    st.select_slider(
        "Draw edges of at least", sorted({*THRESHOLDS, threshold}, reverse=True), key=slider, width=300,
        format_func=format_share, on_change=choose, help="Hides edges with a smaller importance, from the top down.",
    )  # fmt: skip


def _heads_area(state: LayersState) -> None:
    st.subheader("Heads over a data set", anchor=False, help=IMPORTANCE)
    if not st.toggle("Mean share of each head over a data set", key=key("open.heads"), persist_state=PERSIST):
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.selectbox(
            "Data set", known := list_datasets("text"), key=key("data"), format_func=dataset_label,
            persist_state=PERSIST, accept_new_options=True, width=320, on_change=complete_dataset,
            args=(key("data"), tuple(known)),
        )  # fmt: skip
        st.number_input("Examples", 1, 1000, key=key("examples"), step=10, persist_state=PERSIST, width=140)
    name = f"importance {state.model} {state.data} {state.examples} {state.seed}"
    task = partial(routes.head_importance, state.model, state.data, state.examples, state.seed)
    try:
        result = _run(name, task)
    except Exception as error:
        show_error(describe_error(error))
        return
    at = int(result.mean.argmax())
    layer, head = divmod(at, result.mean.shape[1])
    st.html(
        f'<div class="xg"><p class="xg-summary">Head {layer}.{head} moves most: '
        f"{percent(float(result.mean[layer, head]))} of the prediction on average over "
        f"{count(result.examples, 'example')} of <bdi>{escape(result.dataset)}</bdi>.</p></div>"
    )
    st.html(heads_html(result.mean, result.error))
    for reason, failures in result.failed.items():
        show_note(f"{count(failures, 'example')} left out: {reason}")
    command = ["layers", "heads", "--model", state.model, "--dataset", state.data, "--examples", str(state.examples)]
    command += [] if state.seed == 0 else ["--seed", str(state.seed)]
    _files(
        "heads", lambda: to_csv(_head_rows(result)), lambda: routes.importance_to_json(result), "A row for each head.",
        shlex.join(["exegesis", *command]),
    )  # fmt: skip


def _head_rows(result: HeadImportance) -> Iterator[dict[str, Any]]:
    for layer, values in enumerate(result.mean.tolist()):
        for head, mean in enumerate(values):
            error = float(result.error[layer, head])
            yield {
                "layer": layer,
                "head": head,
                "mean_share": mean,
                "standard_error": None if error != error else error,
            }


def _command(state: LayersState, name: str, more: list[str] | None = None) -> str:
    """Return the command that computes the same values, without the options that have their default value."""
    arguments = ["exegesis", "layers", name, "--model", state.model, *text_arguments(state.example)]
    if name == "patch":
        arguments += (
            ["--corrupted", state.corrupted] if state.corruption == "text"
            else ["--corruption", state.corruption, "--tokens", ",".join(map(str, state.tokens))]
        )  # fmt: skip
        if state.query.corrupted_pair:
            arguments += ["--corrupted-pair", state.corrupted_pair]
        arguments += ["--site", state.site, "--metric", state.metric]
        arguments += [] if state.contrast is None else ["--contrast", state.contrast]
        arguments += [] if state.seed == 0 else ["--seed", str(state.seed)]
    if name != "routes" and state.target is not None:
        arguments += ["--target", state.target]
    return shlex.join([*arguments, *(more or [])])


def _files(
    name: str, csv: Callable[[], str], plain_json: Callable[[], Any], help: str, command: str,
    svg: Callable[[], str] | None = None,
) -> None:  # fmt: skip
    """Draw a popover with the files of one section and the command that repeats it."""
    with st.popover(f"Export {name}"):
        file_button("CSV", f"exegesis-{name}.csv", "text/csv", csv, help, key(f"{name}.csv"))
        file_button(
            "JSON", f"exegesis-{name}.json", "application/json",
            lambda: json.dumps(plain_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
            "The output of the command with `--json`.", key(f"{name}.json"),
        )  # fmt: skip
        if svg is not None:
            file_button("SVG", f"exegesis-{name}.svg", "image/svg+xml", svg, "The drawing.", key(f"{name}.svg"))
        st.caption(f"{REPEATS}:")
        st.code(command, language="bash", wrap_lines=True)


def _cite(state: LayersState) -> None:
    cited = f"Exegesis {product_version()}. Layers of {state.model}, seed {state.seed}, float32."
    citation_box(citation_html(cited, SOURCES), [], key("cite"))
