"""The Suppressor page: the answer at one correlation, the charts, the methods, texts and pictures, and the export."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from components.compute import run_cached
from components.controls import PERSIST, options_popover, seed_input
from components.errors import describe_error, show_error
from components.export import REPEATS, citation_box, citation_html, file_button
from components.numbers import hundredths, percent, small
from components.palette import browser_theme
from components.suppressor import state as page_state
from components.suppressor.charts import ShareCurves, scatter_chart, share_chart, share_curves
from components.suppressor.state import SuppressorState, key
from components.tables import draw_table
from engine.errors import ExegesisError
from engine.format import join_names
from engine.home import product_version
from engine.metrics.results import share_interval
from engine.progress import CancelToken, Report, silent
from engine.suppressor import scene, text
from engine.suppressor.criterion import CREDITS, CRITERION, LEVEL, NEITHER, PASSES, SuppressorVerdict
from engine.suppressor.gaussian import LEAST_SCALE, MOST_CORRELATION, MOST_SCALE, GaussianProblem
from engine.suppressor.measurement import ERRORS, METHODS, RANDOM, GaussianResult, MethodMeasurement, measure_gaussian
from engine.suppressor.trained import ALL_ZERO, ProblemChecks, TrainedResult, method_title
from engine.table_io import to_csv

SOURCE = (
    "Wilming et al. (2023), Theoretical behavior of XAI methods in the presence of suppressor variables, section 3; "
    "Haufe et al. (2014), On the interpretation of weight vectors of linear models in multivariate neuroimaging."
)
ABOUT = (
    "Feature 1 is the class plus noise. The **suppressor**, feature 2, is noise alone: by itself it says nothing about "
    "the class. Where both noises are correlated, the best classifier still uses it, to subtract the noise."
)
CHART_NOTE = "Lines: closed forms. Points: all methods, measured. Share: of the three features’ mean |score|."
BEHIND = (
    "A third feature is noise that the classifier does not use. It is the yardstick: a suppressor that a method scores "
    "no higher than this feature is not credited."
)
WORDS = {
    CREDITS: "✗\N{NO-BREAK SPACE}credits",
    PASSES: "✓\N{NO-BREAK SPACE}passes",
    NEITHER: "·\N{NO-BREAK SPACE}neither",
}
"""Sign and word of each verdict, joined by a no-break space."""
LEGEND = (
    "✗ credits the suppressor. ✓ credits the informative feature only. · credits neither: not even the informative "
    "feature stands out. The percentage is the suppressor’s share. Permutation importance, and FIRM on texts and "
    "pictures, are counted over data sets instead of examples."
)
PROBLEM_TITLES = {"gaussian": "Gaussian", "text": "Texts", "image": "Pictures"}
ENLARGED = 6
"""Factor by which the example picture is enlarged."""


def suppressor_page() -> None:
    """Draw the page."""
    loaded, errors = page_state.load()
    for error in errors:
        show_error(error)
    _controls()
    state = page_state.from_widgets(loaded)
    page_state.save(state, loaded)
    try:
        result = _measured(state.problem, state.seed)
        curves = _curves(state.problem.scale, state.problem.suppressor_scale, state.seed)
    except ExegesisError as error:
        show_error(describe_error(error))
        return
    _gaussian_area(result, curves)
    trained = _trained_area()
    st.subheader("Which methods pass", anchor=False)
    st.html(f'<div class="xg"><p class="xg-small">{escape(CRITERION)} {escape(LEGEND)}</p></div>')
    draw_table(verdict_table(result, trained), "verdicts")
    _export_area(state, result, trained)


def _controls() -> None:
    """Draw the slider of the correlation, and in a popover the standard deviations and the seed."""
    line = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    line.slider(
        "Correlation of the noise", -MOST_CORRELATION, MOST_CORRELATION, key=key("correlation"), step=0.05,
        persist_state=PERSIST, help="At 0 the suppressor is of no use and the classifier ignores it.",
    )  # fmt: skip
    if (options := options_popover(key(""), line)) is None:
        return
    with options:
        for name, label in (("scale", "Noise of feature 1"), ("suppressor_scale", "Noise of the suppressor")):
            st.slider(
                label, LEAST_SCALE, MOST_SCALE, key=key(name), step=0.1, persist_state=PERSIST,
                help="Standard deviation. The class means of feature 1 are −1 and +1.",
            )  # fmt: skip
        seed_input(key, 110)


@st.cache_resource(max_entries=64, show_spinner=False)
def _measured(problem: GaussianProblem, seed: int) -> GaussianResult:
    return measure_gaussian(problem, seed)


@st.cache_resource(max_entries=8, show_spinner="Measuring all methods at seven correlations …")
def _curves(scale: float, suppressor_scale: float, seed: int) -> ShareCurves:
    return share_curves(scale, suppressor_scale, seed)


def _gaussian_area(result: GaussianResult, curves: ShareCurves) -> None:
    """Draw the answer, the charts and the table of the Gaussian problem."""
    st.subheader(answer(result), anchor=False)
    st.markdown(ABOUT)
    theme = browser_theme()
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Both classes and the decision line**", help=weights_text(result.problem))
        _draw(scatter_chart(result.problem, result.seed, theme), "scatter")
    with right:
        st.markdown("**What the suppressor gets as the correlation varies**", help=BEHIND)
        _draw(share_chart(result.problem, curves, theme), "shares")
    st.caption(f"{weights_text(result.problem)} {CHART_NOTE}")
    st.subheader("Measured and theoretical shares", anchor=False)
    st.caption(agreement_text(result.methods))
    draw_table(gaussian_table(result), "gaussian")


def _draw(chart: alt.LayerChart, name: str) -> None:
    st.altair_chart(chart, key=key(f"chart.{name}"), theme="streamlit")


def answer(result: GaussianResult) -> str:
    """Return how many methods credit the suppressor at this correlation, and which do not."""
    judged = result.judged
    failing = [one for one in judged if one.measured.verdict == CREDITS]
    others = [one.method.name for one in judged if one.measured.verdict != CREDITS]
    at = f"At correlation {hundredths(result.problem.correlation)}"
    if not failing:
        return f"{at}, none of {len(judged)} methods credits the suppressor: the classifier does not use it."
    if not others:
        return f"{at}, all {len(judged)} methods credit the suppressor."
    verb = "does" if len(others) == 1 else "do"
    return f"{at}, {len(failing)} of {len(judged)} methods credit the suppressor. {join_names(others)} {verb} not."


def weights_text(problem: GaussianProblem) -> str:
    """Return a sentence with the weights of the best classifier."""
    first, second, _ = problem.weights
    return f"The best classifier weighs feature 1 by {hundredths(first)} and the suppressor by {hundredths(second)}."


def agreement_text(methods: Sequence[MethodMeasurement]) -> str:
    """Return sentences on the largest difference of measured and closed-form scores, and whether all are in limits."""
    estimated = [one for one in methods if one.method.id == "permutation"]
    exact = [one for one in methods if one.difference is not None and one not in estimated]
    largest = max(one.difference or 0.0 for one in exact)
    off = [one.method.name for one in methods if not one.ok]
    verdict = f"Not within the limits: {join_names(off)}." if off else "All are within their limits."
    return (
        f"Largest difference between a measured score and its closed form: {small(largest)}; for permutation "
        f"importance, which is estimated, {small(estimated[0].difference or 0.0)} (limit: {ERRORS:g} standard errors). "
        f"{verdict} The classifier’s score is explained. Features are removed by their mean, 0, and LIME has no "
        "penalty."
    )


def gaussian_table(result: GaussianResult) -> pd.DataFrame:
    """Return a row for each method: closed form of the suppressor's score, measured and theoretical share, verdict."""
    return pd.DataFrame(
        [
            {
                "Method": one.method.name,
                "Score of the suppressor": form.formula if (form := one.method.closed_form) else None,
                "Measured": percent(one.measured.share),
                "Theory": None if one.theory is None else percent(one.theory),
                "Verdict": WORDS[one.measured.verdict],
            }
            for one in result.methods
        ]
    )


def _trained_area() -> list[TrainedResult]:
    """Draw the results on texts and pictures side by side, and return those that are computed."""
    st.subheader("Trained models", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Texts**")
        st.html(example_text_html())
        texts = _trained("text", text.text_key(), text.cached_text_result, text.text_result)
    with right:
        st.markdown("**Pictures**")
        _example_picture()
        pictures = _trained("image", scene.scene_key(), scene.cached_scene_result, scene.scene_result)
    return [one for one in (texts, pictures) if one is not None]


def _trained(
    kind: str, result_key: str, cached: Callable[[], TrainedResult | None],
    compute: Callable[[Report, CancelToken], TrainedResult],
) -> TrainedResult | None:  # fmt: skip
    """Draw the result of a trained model and return it, or draw the button that trains it and return None."""
    found = cached()
    if found is None and st.button("Train the model and judge its methods", key=key(f"train.{kind}")):
        try:
            found = run_cached(result_key, lambda token: compute(silent, token))
        except ExegesisError as error:
            show_error(describe_error(error))
    if found is None:
        st.caption("Not computed yet with the current methods. It takes about a minute.")
        return None
    st.markdown(trained_text(found))
    st.caption(checks_text(found.checks))
    return found


def trained_text(result: TrainedResult) -> str:
    """Return how many methods credit the suppressor, and which pass."""
    judged = [one for one in result.verdicts if one.method != RANDOM]
    failing, neither = (sum(one.verdict == verdict for one in judged) for verdict in (CREDITS, NEITHER))
    passing = [f"“{method_title(one.method, result.kind)}”" for one in judged if one.verdict == PASSES]
    ending = f"{join_names(passing)} {'passes' if len(passing) == 1 else 'pass'}." if passing else "None passes."
    rest = f" {neither} {'credits' if neither == 1 else 'credit'} neither feature." if neither else ""
    return f"{failing} of {len(judged)} methods credit the suppressor. {ending}{rest}"


def checks_text(checks: ProblemChecks) -> str:
    """Return sentences on whether the model uses the suppressor, and whether the feature is a suppressor.

    The model uses it if its accuracy is above the interval of the accuracy with the suppressor of another example.
    """
    _, high = share_interval(round(checks.without * checks.examples), checks.examples)
    used = "the model uses the suppressor" if checks.accuracy > high else "the model is not shown to use the suppressor"
    alone = (
        "Alone it is significantly associated with the class, so that it is no suppressor"
        if checks.association < LEVEL
        else "Alone it is not significantly associated with the class"
    )
    return (
        f"Accuracy {percent(checks.accuracy)}. With the suppressor of another example it is {percent(checks.without)}, "
        f"with the unused feature of another {percent(checks.without_unused)}: {used}. {alone} (χ² test, "
        f"p = {checks.association:.2g}; {checks.examples} held-out examples)."
    )


def example_text_html() -> str:
    """HTML of a text with its three feature words marked."""
    roles = dict(zip(text.FEATURES, ("informative", "suppressor", "unused"), strict=True))
    words = [
        f"<b>{escape(word)}</b> <span class='xg-small'>({roles[at]})</span>" if at in roles else escape(word)
        for at, word in enumerate(text.ClockText(1, 0, 0, 0).text.split())
    ]
    return (
        f'<div class="xg"><p>“{" ".join(words)}”</p><p class="xg-small">Is it early (eight) or late (nine)? The shown '
        "hour is the true one plus the clock’s error. How the clock runs says nothing about the hour by itself.</p>"
        "</div>"
    )


def _example_picture() -> None:
    """Draw a scene with its three plates."""
    scenes = scene.draw_scenes(1, "example")
    st.image(np.kron(scenes.pixels()[0], np.ones((ENLARGED, ENLARGED, 1), dtype=np.uint8)), width=32 * ENLARGED)
    st.caption(
        "Is the lamp (third row, second column) dim or bright? Haze lightens or darkens it. The sky (first row, third "
        "column) shows the haze alone, the wall (last row, last column) nothing of use."
    )


def verdict_table(result: GaussianResult, trained: Sequence[TrainedResult]) -> pd.DataFrame:
    """Return verdict and share of the suppressor: one row per method, one column per problem."""
    cells = {
        "gaussian": {one.measured.method: one.measured for one in result.methods},
        **{one.kind: {verdict.method: verdict for verdict in one.verdicts} for one in trained},
    }
    titles = {
        id: method_title(id, one.kind) for one in trained for id in (*(v.method for v in one.verdicts), *one.skipped)
    }
    titles = {one.id: one.name for one in METHODS} | titles
    skipped = {
        (one.kind, id): "all scores are 0" if why == ALL_ZERO else f"left out: {why}"
        for one in trained
        for id, why in one.skipped.items()
    }
    order = sorted(titles, key=lambda id: id == RANDOM)  # stable: the baseline goes last
    columns = {
        PROBLEM_TITLES[problem]: [_cell(own[id]) if id in own else skipped.get((problem, id)) for id in order]
        for problem, own in cells.items()
    }
    return pd.DataFrame({"Method": [titles[id] for id in order], **columns})


def _cell(verdict: SuppressorVerdict) -> str:
    return f"{WORDS[verdict.verdict]}, {percent(verdict.share)}"


def export_rows(result: GaussianResult, trained: Sequence[TrainedResult]) -> Iterator[dict[str, Any]]:
    """Yield a row for each method and problem, for files."""
    names = ("informative", "suppressor", "unused", "share", "above", "low", "high", "p", "verdict")
    for one in result.methods:
        plain = one.as_json()
        theory = {"theory_share": plain["theory_share"], "difference": plain["difference"]}
        yield {"problem": "gaussian", "method": one.method.id, **{name: plain[name] for name in names}, **theory}
    for own in trained:
        for verdict in own.verdicts:
            plain = verdict.as_json()
            values = {name: plain[name] for name in names}
            yield {"problem": own.kind, "method": verdict.method, **values, "theory_share": None, "difference": None}


def result_json(result: GaussianResult, trained: Sequence[TrainedResult]) -> str:
    """Return the output of the command with `--json`, including the results on texts and pictures."""
    plain = {**result.as_json(), "trained": [one.as_json() for one in trained]}
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _export_area(state: SuppressorState, result: GaussianResult, trained: Sequence[TrainedResult]) -> None:
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=key("export")):
        file_button(
            "CSV",
            "exegesis-suppressor.csv",
            "text/csv",
            lambda: to_csv(export_rows(result, trained)),
            "A row for each method and problem.",
            key("export.csv"),
        )
        file_button(
            "JSON", "exegesis-suppressor.json", "application/json", lambda: result_json(result, trained),
            "The same with closed forms, weights and checks.", key("export.json"),
        )  # fmt: skip
    cited = f"Exegesis {product_version()}. Suppressor variables, seed {state.seed}. {SOURCE}"
    citation_box(
        citation_html(cited, (f"{one.name}: {one.source.rstrip('.')}." for one in METHODS)),
        [
            (f"{REPEATS} of the Gaussian problem:", page_state.command(state)),
            (f"{REPEATS} of texts:", "exegesis suppressor --problem text"),
            (f"{REPEATS} of pictures:", "exegesis suppressor --problem scene"),
        ],
        key("export.cite"),
    )
