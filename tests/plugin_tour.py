"""What a plugin adds, as a process with the example package sees it: `python -m tests.plugin_tour MODEL` prints JSON.

MODEL: a checkpoint of the family that the package adds. In a process of its own, since plugins are loaded once.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from unittest.mock import PropertyMock, patch

from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from components.charts.frame import method_colors, style_rows
from engine.cli.root import app
from engine.experiments.options import RANDOM
from engine.health import plugin_findings
from engine.registry import method_order
from tests.frame import pages_in_frame
from tests.project import ROOT

SECONDS = 240
METHODS, METRICS = "word_length,random", "gini,complexity"


def command(*words: str) -> Any:
    """What a command prints as JSON."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, (done.stdout, done.stderr, done.exception)
    return json.loads(done.stdout)


def page(name: str, **query: str | list[str]) -> AppTest:
    """A page as a script, opened by a link."""
    test = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=SECONDS)
    for field, value in query.items():
        test.query_params[field] = value
    with (
        pages_in_frame(),
        patch.object(ContextProxy, "ip_address", new_callable=PropertyMock, return_value=None),
    ):
        test.run()
    assert not test.exception, test.exception[0]
    return test


def options(test: AppTest) -> list[str]:
    """All options of all choices of a page."""
    return [option for choice in (*test.multiselect, *test.selectbox) for option in choice.options]


def html(test: AppTest) -> str:
    return "".join(element.proto.body for element in test.get("html"))


def main(model: str) -> None:
    evaluation = ("evaluate", "--models", model, "--dataset", "moods", "--methods", METHODS, "--metrics", METRICS,
                  "--examples", "4")  # fmt: skip
    [explained] = command("explain", "--model", model, "--method", "word_length", "--dataset", "moods", "--index", "0")
    evaluated = command(*evaluation)
    text = page("text", model=model, text="a quiet film", method=["word_length"])
    judged = page("evaluate", model=model, data="moods", method=METHODS.split(","), metric=METRICS.split(","),
                  examples="4")  # fmt: skip
    others = [id for id in method_order() if id != RANDOM]
    looks = zip(method_colors(others, "light"), map(str, style_rows(others)), strict=True)
    styles = dict(zip(others, looks, strict=True))
    print(
        json.dumps(
            {
                "explained": explained,
                "evaluated": evaluated,
                "job": command(*evaluation, "--seed", "1", "--job"),
                "datasets": [one["name"] for one in command("datasets")],
                "findings": [one.as_plain() for one in plugin_findings()],
                "text": html(text),
                "evaluate": [*options(judged), html(judged)],
                "study": options(page("study", new="1")),
                "library": html(page("library", section="device")),
                "same style": [id for id, style in styles.items() if style == styles["word_length"]],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
