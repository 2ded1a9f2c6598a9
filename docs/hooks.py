"""MkDocs hooks: put documents from outside `docs/` into the site, and rewrite links between them."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.md",
    "benchmarks/README.md": "benchmarks.md",
    "engine/models/embedded/reviews-minilm/card.md": "reviews-minilm.md",
}
"""Documents outside `docs/`, and their pages of the site."""
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"""(\]\(|src(?:set)?=")(?!https?:|mailto:|#)([^)#"\s]+)""")


def on_files(files: Any, config: Any) -> Any:
    """Add the documents from outside `docs/`, and the icon."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "LICENSE":
            text = f"# License\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ROOT / "components/assets/icon.svg")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that are relative to a document's place in the repository into links of the site."""
    uri = page.file.src_uri
    here = dirname(SOURCES.get(uri, f"docs/{uri}"))

    def site_link(match: re.Match[str]) -> str:
        target = normpath(join(here, match[2]))
        return match[1] + relpath(PAGES.get(target, target.removeprefix("docs/")), dirname(uri) or ".")

    return LINK.sub(site_link, markdown)
