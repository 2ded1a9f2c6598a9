"""The sentences above the charts of a randomization, against curves written by hand."""

from __future__ import annotations

import pytest

from components.randomization.page import signed_and_absolute, summarize_verdicts, summary_html
from engine.randomization.curves import Curve, CurvePoint, Verdict, judge
from engine.randomization.result import Stage

STAGES = (Stage("cascading", "2", 1, ("2",)), Stage("cascading", "1", 2, ("2", "1")))
Ends = tuple[float, float, float]
FLAT = "its map has no order"


def curve(method: str, ends: Ends | None, metric: str = "spearman", n: int = 16) -> Curve:
    """A value and its interval at the last stage, after a first stage of 0.5."""
    values = [(0.5, 0.4, 0.6), ends]
    points = tuple(
        CurvePoint(stage, None, None, 0, (None,), {FLAT: n})
        if own is None
        else CurvePoint(stage, own[0], own[1:], n, (own[0],), {})
        for stage, own in zip(STAGES, values if ends else [None, None], strict=True)
    )
    return Curve("m", "d", method, metric, "cascading", 1.0, points)


def sentences(
    *cases: tuple[str, Ends | None], absolute: Ends | None = None, n: int = 16,
    verdicts: dict[str, Verdict] | None = None,
) -> list[str]:  # fmt: skip
    judged = []
    for method, ends in cases:
        curves = [curve(method, ends, n=n), curve(method, absolute or ends, "spearman_abs", n)]
        verdict = (verdicts or {}).get(method) or judge(*curves)
        judged.append((method.capitalize(), verdict, signed_and_absolute(curves, method)))
    return summarize_verdicts(judged, "text")


def test_one_method_is_named_with_its_value_and_interval() -> None:
    assert sentences(("gradient", (0.05, -0.02, 0.12)), ("random", (0.0, -0.1, 0.1))) == [
        "Gradient depends on the model (rank correlation falls to 0.05, 95% interval −0.02 to 0.12)."
    ]


def test_methods_of_one_verdict_share_a_sentence_with_the_range_of_their_values() -> None:
    told = sentences(
        ("gradient", (0.05, -0.02, 0.12)), ("gradient_l2", (-0.01, -0.2, 0.19)), ("attention_mean", (0.72, 0.7, 0.8))
    )
    assert told == [
        "Gradient and Gradient_l2 depend on the model "
        "(rank correlation falls to between −0.01 and 0.05, 95% intervals within −0.20 to 0.19).",
        "Attention_mean stays similar (rank correlation 0.72, 95% interval 0.70 to 0.80) "
        "and so mostly shows the input.",
    ]


def test_an_interval_around_the_limit_is_undecided_and_says_from_how_many_examples() -> None:
    told = sentences(("gradient", (0.05, -0.02, 0.12)), ("gradient_l2", (0.15, -0.1, 0.21)))
    assert told[-1] == "1 of 2 cannot be decided from 16 examples: Gradient_l2."
    assert sentences(("gradient", (0.05, 0.0, 0.1)), n=1) == [
        "1 of 1 cannot be decided from 1 example (a verdict needs at least 5): Gradient."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "absolute", "sentence"),
    [
        ((0.4, 0.3, 0.5), None, "only partly (rank correlation falls to 0.40, 95% interval 0.30 to 0.50)."),
        (
            (0.0, -0.1, 0.1), (0.6, 0.5, 0.7),
            "only partly: the signs become random, but the order of absolute scores stays similar "
            "(rank correlation 0.60, 95% interval 0.50 to 0.70).",
        ),
        (None, None, "Gradient cannot be judged: no map has a rank correlation with the original."),
    ],
)  # fmt: skip
def test_what_does_not_pass_is_not_praised(ends: Ends | None, absolute: Ends | None, sentence: str) -> None:
    [told] = sentences(("gradient", ends), absolute=absolute)
    assert told.endswith(sentence)


def test_a_map_that_never_moves_does_not_change() -> None:
    unmoved = Verdict("gradient", "invariant", False, 2, "")
    [told] = sentences(("gradient", (0.98, 0.96, 1.0)), verdicts={"gradient": unmoved})
    assert told == (
        "Gradient hardly changes "
        "(rank correlation at least 0.95 at every stage; at the last 0.98, 95% interval 0.96 to 1.00)."
    )


def test_methods_that_the_check_is_not_for_and_a_model_that_did_not_change_are_not_judged() -> None:
    assert sentences(("lime", (0.0, -0.1, 0.1))) == [
        "Lime is not judged: the check is not for methods that use only the model's predictions."
    ]
    same = {name: Verdict(name, "same_model", None, 0, "") for name in ("gradient", "lime")}
    assert sentences(("gradient", (0.0, 0.0, 0.1)), ("lime", (0.0, 0.0, 0.1)), verdicts=same) == [
        "Gradient and Lime cannot be judged: most predictions did not change when the model was randomized."
    ]


def test_many_names_are_counted_and_all_are_escaped() -> None:
    names = [f"<m{at}>" for at in range(8)]
    curves = [curve("gradient", (0.0, -0.1, 0.1)), curve("gradient", (0.0, -0.1, 0.1), "spearman_abs")]
    rows = [(name, judge(*curves), signed_and_absolute(curves, "gradient")) for name in names]
    assert summarize_verdicts(rows, "text")[0].startswith("<m0>, <m1>, <m2>, <m3>, <m4>, <m5> and 2 more depend on")
    html = summary_html(rows, "text")
    assert "<m0>" not in html
    assert "&lt;m0&gt;" in html
