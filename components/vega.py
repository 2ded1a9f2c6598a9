"""Vega without a browser, in a process of its own: it ends its process on what it cannot draw, and not the dashboard.

The library holds Vega, its fonts and a script engine; it loads nothing from anywhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from components.svg_sheet import clean
from engine.errors import ExegesisError

SECONDS = 60
_DRAW = "vl_convert.vegalite_to_svg(sys.stdin.read(), allowed_base_urls=[])"
_BUNDLE = "vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')"
_REFUSED = "This chart could not be made a picture. Its JSON and its CSV can still be saved."


def cleaned(part: Any) -> Any:
    """A specification without characters that XML may not hold, and on which Vega's fonts fail."""
    if isinstance(part, Mapping):
        return {name: cleaned(value) for name, value in part.items()}
    if isinstance(part, list):
        return [cleaned(value) for value in part]
    return clean(part) if isinstance(part, str) else part


def svg(spec: Mapping[str, Any]) -> str:
    """Vega-Lite as SVG, without an XML declaration. `spec`: cleaned."""
    return _run(_DRAW, json.dumps(spec))


@cache
def library() -> str:
    """Vega, Vega-Lite and `vegaEmbed` as a script, about 0.9 MB."""
    return _run(_BUNDLE, "")


def _run(call: str, given: str) -> str:
    code = f"import sys, vl_convert; sys.stdout.write({call})"
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "-c", code],
        input=given, capture_output=True, encoding="utf-8", errors="replace", timeout=SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ExegesisError(_REFUSED)
    return done.stdout
