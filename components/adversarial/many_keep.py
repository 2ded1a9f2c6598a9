"""Means over attacks as they are drawn and kept: a chart's files, rows, the command that makes them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from components.adversarial.session import key
from components.adversarial.words import CITED
from components.charts.files import light_colors
from components.citing import cited_html
from components.experiment.export import TYPES
from components.keeping import REPEATS, cite_box, file_button
from engine.attacks.findings import METRICS
from engine.home import product_version

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from components.adversarial.state import AdversarialState
    from components.charts.files import ChartCaption
    from components.charts.frame import ChartFrame
    from components.palette import Theme
    from engine.attacks.findings import Findings, Score
    from engine.attacks.plan import AttackPlan

ROWS_HELP = "A row a model, example, method, objective and measure: what `exegesis attack --out` writes."
SCORES_HELP = "Every mean with its interval: what `exegesis attack --json` prints."


@dataclass(frozen=True)
class Means:
    """What is drawn of `found`: the means of the chosen measure, of maps as `Many.of` says."""

    state: AdversarialState
    found: Findings
    frame: ChartFrame

    @property
    def plan(self) -> AttackPlan:
        return self.found.plan

    @cached_property
    def scores(self) -> list[Score]:
        own = (score for score in self.found.scores if score.of.metric == self.state.many.measure)
        return [score for score in own if score.of.attacked == (self.attacked or score.of.method)]

    @property
    def attacked(self) -> str:
        """The method after whose attacks all maps are drawn; empty for each attacked method's own."""
        return self.state.many.of if self.state.many.of in self.plan.methods and self.plan.transfer else ""

    @property
    def company(self) -> Sequence[str]:
        """The methods whose maps these are."""
        if not self.attacked:
            return self.plan.methods
        return (self.attacked, *self.plan.others(self.attacked))

    @property
    def models(self) -> list[str]:
        """Those of which there is anything."""
        return [model for model in self.plan.models if self.of(model)]

    def of(self, model: str) -> list[Score]:
        return [score for score in self.scores if score.of.model == model]

    @property
    def file(self) -> str:
        return f"exegesis-attack-{self.state.many.measure.replace('_', '-')}"

    @property
    def table(self) -> pd.DataFrame:
        from components.adversarial.charts import table_of

        return table_of(self.scores, self.frame.titles)

    def key(self, kind: str) -> str:
        """Of a widget."""
        return key(self.state.kind, f"many.keep.{kind}")

    def chart(self, theme: Theme | None = None) -> alt.LayerChart:
        """All models below each other, as files hold them."""
        from components.adversarial.charts import means_chart, span_of

        frame = replace(self.frame, theme=theme) if theme else self.frame
        return means_chart(self.scores, frame, self.company, self.plan.objectives, span_of(self.scores), self.models)

    def spec(self) -> str:
        """As it stands on the page."""
        return self.chart().to_json()

    def svg(self) -> str:
        """In the light theme, whichever the page is seen in."""
        from components.charts.files import chart_svg

        return chart_svg(self.chart("light"), self.told(), self.table, light_colors())

    def html(self) -> str:
        """The same as a page."""
        from components.charts.files import chart_html

        return chart_html(self.chart("light"), self.told(), self.table, light_colors())

    def told(self) -> ChartCaption:
        """What the file says of it."""
        from components.charts.files import ChartCaption

        what = f"{METRICS[self.state.many.measure].title} under attack"
        of = f" on {self.frame.title(self.attacked)}" if self.attacked else ""
        title = f"{what}{of}, {', '.join(self.models)}, {self.plan.dataset}"
        return ChartCaption(title, [cite(self.plan), f"{REPEATS}:"], [command(self.plan)])


def keep_many(state: AdversarialState, found: Findings) -> None:
    """Rows and means as files, and how to repeat them."""
    from engine.attacks.export import FORMATS

    with st.container(horizontal=True, gap="small"):
        for ending, write in FORMATS.items():
            name = f"exegesis-attack.{ending}"
            file_button(
                f"Rows, {ending.upper()}", name, TYPES[ending], _rows(found, write), ROWS_HELP,
                key(state.kind, f"many.rows.{ending}"),
            )  # fmt: skip
        file_button(
            "Means, JSON", "exegesis-attack-means.json", TYPES["json"], lambda: means_json(found), SCORES_HELP,
            key(state.kind, "many.means"),
        )  # fmt: skip
    cite_box(
        cited_html(cite(found.plan), [CITED]), [(f"{REPEATS}:", command(found.plan))], key(state.kind, "many.cite")
    )


def means_json(found: Findings) -> str:
    """What the command prints."""
    from engine.cli.plain_attack import as_plain

    return json.dumps(as_plain(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def command(plan: AttackPlan, index: int | None = None) -> str:
    """The command that gives the same; what is not said is what it takes by itself. `index`: of the only example."""
    from engine.attacks.params import AttackParams
    from engine.attacks.plan import EXAMPLES

    given = ["exegesis", "attack", "--models", ",".join(plan.models), "--dataset", plan.dataset]
    given += ["--methods", ",".join(plan.methods)]
    given += ["--objective", plan.objectives[0] if len(plan.objectives) == 1 else "both"]
    for option, value, own in (
        ("index", index, None),
        ("examples", EXAMPLES if index is not None else plan.examples, EXAMPLES),
        ("seed", plan.seed, 0),
        ("split", plan.split, None),
    ):
        given += [] if value == own else [f"--{option}", str(value)]
    start = AttackParams()
    for name, held in plan.attack.items():
        if held != getattr(start, name):
            option = f"--{name.replace('_', '-')}"
            given += [option] if held is True else [option, f"{held:.12g}" if isinstance(held, float) else str(held)]
    given += ["--transfer", ",".join(plan.transfer)] if plan.transfer else []
    for method, own_params in plan.params.items():
        given += [part for name, value in own_params.items() for part in ("--param", f"{method}.{name}={value}")]
    return shlex.join([*given, "--out", "rows.csv"])


def cite(plan: AttackPlan) -> str:
    """One sentence: what made these numbers, of which models and data."""
    return (
        f"Exegesis {product_version()}. Attacks on {', '.join(plan.methods)} of {', '.join(plan.models)} on "
        f"{plan.dataset}, {plan.examples} examples, {' and '.join(plan.objectives)}, seed {plan.seed}, {plan.dtype}."
    )


def _rows(found: Findings, write: Callable[[Findings], bytes]) -> Callable[[], bytes]:
    return lambda: write(found)
