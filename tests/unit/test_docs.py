"""The documents: links lead somewhere, each metric is explained, and they build as a website that works offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from engine.metrics.catalog import METRICS
from tests.project import ROOT

DOCS = ROOT / "docs"
DOCUMENTS = [*ROOT.glob("*.md"), *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_in_the_documents_lead_somewhere(document: Path) -> None:
    """Those of Markdown and the sources of pictures, each relative to its document."""
    text = document.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    assert not [link for link in links if not (document.parent / link).exists()]


def nav_pages(entry: object) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else []
    return [page for value in values for page in nav_pages(value)]


def test_the_navigation_of_the_website_has_every_document_once() -> None:
    listed = nav_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert {str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md")} <= set(listed)
    assert len(listed) == len(set(listed))


def test_every_metric_is_explained_with_its_better_direction() -> None:
    text = (DOCS / "numbers.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (high|low|neither) \|", text, flags=re.MULTILINE))
    assert rows == {metric.id: metric.better for metric in METRICS.values() if metric.needs != "pair"}


@pytest.fixture(scope="module")
def website(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The website, built as `make docs` builds it: a warning is an error."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_website_builds_without_a_warning_and_starts_with_the_readme(website: Path) -> None:
    text = (website / "index.html").read_text(encoding="utf-8")
    assert "make app" in text
    assert 'href="pages/text.html"' in text


def test_no_file_of_the_website_is_loaded_from_another_server(website: Path) -> None:
    pages = [file.read_text(encoding="utf-8") for file in website.rglob("*.html")]
    loaded = [tag for text in pages for tag in re.findall(r"<(?:script|link|img|source|iframe)\b[^>]*>", text)]
    styles = [file.read_text(encoding="utf-8") for file in website.rglob("*.css")]
    assert len(loaded) > 100
    assert not [tag for tag in loaded if re.search(r"""(?:src|srcset|href)=["']?(?:https?:)?//""", tag)]
    assert not re.search(r"url\([\"']?(?:https?:)?//", "".join(styles))


def test_the_search_of_the_website_works_from_disk(website: Path) -> None:
    text = (website / "pages" / "text.html").read_text(encoding="utf-8")
    assert '<script src="../assets/iframe-worker.js">' in text
    assert (website / "search" / "search_index.js").is_file()
