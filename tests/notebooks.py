"""The notebooks of the documentation: cells run one after the other, as Jupyter would, and their outputs stored.

`python -m tests.notebooks` runs all of them and rewrites their outputs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.project import ROOT

FOLDER = ROOT / "docs" / "notebooks"
Outputs = list[dict[str, Any]]


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any], count: int = 1) -> Outputs:
    """Run a cell. Its outputs are what it prints and the value of a last expression, in the format of notebooks."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None  # noqa: S307
    outputs: Outputs = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if html := getattr(value, "_repr_html_", lambda: None)():
            data["text/html"] = html.splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return outputs


def run_notebook(notebook: Path) -> list[Outputs]:
    """The outputs of each code cell."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), names, at) for at, cell in enumerate(code_cells(notebook), start=1)]


def rewrite(notebook: Path) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    outputs = iter(enumerate(run_notebook(notebook), start=1))
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = next(outputs)
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["EXEGESIS_HOME"] = home
        for one in notebooks():
            rewrite(one)
            print(f"{one.name}: {one.stat().st_size:,} bytes")
