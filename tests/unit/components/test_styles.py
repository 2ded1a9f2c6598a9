"""Style sheets and scripts in fewer bytes say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from components.styles import compact_css, compact_script

COMPONENTS = Path("components").resolve()
SHEETS = sorted(COMPONENTS.rglob("*.css"))
SCRIPTS = sorted(COMPONENTS.rglob("*.js"))


@pytest.mark.parametrize(
    ("sheet", "expected"),
    [
        ("/* why */\n.a { color: red; }\n", ".a{color:red}"),
        (".a :is(b, i) > u:hover { margin: 0 -1px }", ".a :is(b,i) > u:hover{margin:0 -1px}"),
        (
            '.a::after { content: " ·  of; " attr(x) "/* no */ , " }',
            '.a::after{content:" ·  of; " attr(x) "/* no */ , "}',
        ),
        ("@media (max-width: 9rem) {\n  .a { top: 0; }\n}", "@media (max-width:9rem){.a{top:0}}"),
        (".a { width: calc(2px * var(--x, 0) + 1px) }", ".a{width:calc(2px * var(--x,0) + 1px)}"),
    ],
)
def test_a_sheet_without_what_only_people_need(sheet: str, expected: str) -> None:
    assert compact_css(sheet) == expected
    assert compact_css(expected) == expected


@pytest.mark.parametrize("file", SHEETS, ids=lambda file: file.name)
def test_our_sheets_keep_every_rule_and_every_quoted_text(file: Path) -> None:
    sheet = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    made = compact_css(file.read_text(encoding="utf-8"))
    assert (made.count("{"), made.count("}")) == (sheet.count("{"), sheet.count("}"))
    assert re.findall(r'"[^"]*"', made) == re.findall(r'"[^"]*"', sheet)
    assert re.findall(r"[\w#.%-]+", made) == re.findall(r"[\w#.%-]+", sheet)
    assert len(made) < len(sheet)


def test_a_script_without_lines_that_only_comment() -> None:
    script = '// why\nconst a = "// kept";\n\n  /** What. */\n  run(a); // kept too\n'
    assert compact_script(script) == 'const a = "// kept";\nrun(a); // kept too'


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_our_scripts_have_no_text_or_comment_over_several_lines(file: Path) -> None:
    """Its lines would lose their indentation, or stay in part."""
    for line in file.read_text(encoding="utf-8").splitlines():
        assert line.count("`") % 2 == 0
        assert line.count("/*") == line.count("*/")
