"""What is kept: files that parse, numbers that come back exactly, text that stays text, a command that repeats."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from components.export import stdin_file, stdin_text
from components.method_row import rationale_rows
from components.palette import STEPS
from components.svg import CELLS, TextPiece, count_cells, wrap_lines
from components.text.export import TextExport, command, command_arguments, csv_table, export_html, export_svg, json_list
from components.widgets.token_map.svg import in_sight
from components.widgets.view_options import ViewOptions
from engine.cli.root import app
from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.explain import explain
from engine.home import product_version
from engine.registry import explainer
from engine.request import Example, Request
from engine.table_io import escape_cell
from tests.tiny import save_checkpoint
from tests.unit.components.making import explanation

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "img", "link"}
HARD = {
    "markup": "<script>alert(1)</script> &lt;b&gt; \"quoted\" 'too' ]]>",
    "closing": "</style></pre><!-- --><img src=x onerror=alert(1)>",
    "right to left": "הסרט היה נהדר, والنهاية دافئة",
    "emoji": "good 👩\u200d👩\u200d👧 film 👍🏽 🇵🇹 e\u0301",
    "cjk": "这部电影非常好看",
    "control": "a\x00b \x1b[31m red \u202e turned \ufffe",
    "lines": "first line\n\nsecond\tline",
    "address": "see http://example.org/x for more",
}


class Reader(HTMLParser):
    """Tags in balance, the text between them, and every attribute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def kept(text: str, pair: str | None = None, unit: str = "token", **made: object) -> TextExport:
    example = Example(text, pair)
    names = ("occlusion", "attention_mean")
    found = [explanation(example, method=name, pieces=r"\S+", **made) for name in names]  # type: ignore[arg-type]
    return TextExport(example, unit, tuple((explainer(name), one) for name, one in zip(names, found, strict=True)))


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_the_page_stands_alone_and_text_stays_text(text: str) -> None:
    page = export_html(kept(text, pair=text, labels=("a", "<u>c</u>"), notes=("<i>note</i>",)))
    seen = Reader(page)
    assert not seen.tags & {"script", "img", "link", "iframe", "object", "u", "base", "a"}
    assert not any(name.startswith("on") or name in ("src", "href", "srcset", "action") for name, _ in seen.attributes)
    assert "<i>note" in seen.text
    style = "".join(re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL))
    assert not re.search(r"https?:|url\(|@import", style)
    assert "light-dark(" in style
    assert "color-scheme:light dark" in style
    assert " ".join(text.split()) in " ".join(seen.text.split())


def test_the_page_holds_each_map_and_rows_above_them() -> None:
    one = kept("a warm film")
    marked = replace(one.rows[0], title="marked by people", view=replace(one.rows[0].view, marks=True))
    page = export_html(replace(one, above=(marked,)))
    assert page.count('class="xg-map') == 3
    assert page.index("marked by people") < page.index('class="xg-map')
    assert "marked by people" in export_svg(replace(one, above=(marked,)))
    assert page.index("Cite this") > page.rindex('class="xg-map')
    assert f"Exegesis {product_version()}. Model model-a, revision 0123abcd" in page
    assert explainer("occlusion").citation.split(";")[0] in Reader(page).text


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_picture_is_well_formed_and_nothing_leaves_its_ground(text: str, unit: str) -> None:
    picture = export_svg(kept(text, pair=text, unit=unit, labels=("a", "<u>c</u>")))
    root = ElementTree.fromstring(picture.encode())
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert {e.tag for e in root.iter()} == {
        SVG + t for t in ("svg", "style", "defs", "linearGradient", "stop", "rect", "g", "text", "title")
    }
    for shape in root.iter():
        assert not {name for name in shape.attrib if "href" in name or name.startswith("on")}
        if shape.tag in (SVG + "rect", SVG + "text") and "x" in shape.attrib:
            right = float(shape.attrib["x"]) + float(shape.attrib.get("width", shape.attrib.get("textLength", 0)))
            assert 0 <= float(shape.attrib["x"]) <= right <= width
            assert 0 <= float(shape.attrib["y"]) <= height
    without = picture.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("http://example.org", "")
    assert not re.search(r"https?:", without)


def test_files_are_drawn_as_the_page_is() -> None:
    one = kept("a warm film", scores=[1.0, -4.0, 2.0])
    example = one.example
    shown = (one.methods[0], (explainer("occlusion"), explanation(example, [8.0, 1.0, 1.0], pieces=r"\S+")))
    look = ViewOptions(gamma=0.5, scale="shared", style="underline", values=True)
    bent = TextExport(example, "token", shown, (), look)
    page, picture = export_html(bent), export_svg(bent)
    assert page.count('class="xg-map xg-under xg-values"') == 2
    for drawn in (Reader(page).text, picture):
        assert drawn.count("\u22128 against, +8 for positive") == 2
        assert "gamma 0.5" in drawn
    root = ElementTree.fromstring(picture.encode())
    [name, *_] = [g.find(SVG + "rect").attrib["class"] for g in root.iter(SVG + "g")][2:]  # type: ignore[union-attr]
    assert name == f"against-{round(STEPS * (4 / 8) ** 0.5)}"
    thick = {g.find(SVG + "rect").attrib["height"] for g in root.iter(SVG + "g")}  # type: ignore[union-attr]
    assert thick == {"3", "22"}, "special tokens stay gray boxes"


def test_a_right_to_left_line_starts_at_the_right() -> None:
    def first_and_last(text: str) -> tuple[float, float]:
        root = ElementTree.fromstring(export_svg(kept(text)).encode())
        chips = [g.find(SVG + "rect") for g in root.iter(SVG + "g")]
        return float(chips[1].attrib["x"]), float(chips[3].attrib["x"])  # type: ignore[union-attr]

    left, right = first_and_last("one two three"), first_and_last("הסרט היה נהדר")
    assert left[0] < left[1]
    assert right[0] > right[1]


@pytest.mark.parametrize(
    ("text", "expected"), [("abc", 3), ("电影", 4), ("e\u0301", 1), ("👍🏽", 2), ("", 0), ("\u200d", 0)], ids=repr
)
def test_a_text_takes_as_many_cells_as_it_shows(text: str, expected: int) -> None:
    assert count_cells(text) == expected


def test_lines_are_broken_between_pieces_and_inside_one_that_is_too_long() -> None:
    pieces = [TextPiece("abcd", 0), TextPiece(" "), TextPiece("efg", 1), TextPiece("\n"), TextPiece("x" * 12, 2)]
    assert [[p.text for p in line] for line in wrap_lines(pieces, 6)] == [["abcd", " "], ["efg"], ["x" * 6], ["x" * 6]]


@pytest.mark.parametrize(
    ("words", "rightwards", "seen"),
    [
        ("a film", True, "a film"),
        ("a א ב ג film", True, "a ג ב א film"),
        ("a א 5 ב film", True, "a ב 5 א film"),
        ("א warm film ב", False, "א film warm ב"),
        ("א ב !", False, "א ב !"),
        ("a א !", True, "a א !"),
    ],
)
def test_a_phrase_of_the_other_direction_is_turned_around(words: str, rightwards: bool, seen: str) -> None:
    pieces = [TextPiece(part) for word in words.split() for part in (word, " ")][:-1]
    assert [piece.text for piece in in_sight(pieces, rightwards)] == [part for w in seen.split() for part in (w, " ")][
        :-1
    ]


def test_a_line_end_between_units_starts_a_line() -> None:
    root = ElementTree.fromstring(export_svg(kept("one two\nthree")).encode())
    heights = [float(g.find(SVG + "rect").attrib["y"]) for g in root.iter(SVG + "g")][1:4]  # type: ignore[union-attr]
    assert heights[0] == heights[1] < heights[2]


def test_a_long_text_wraps_and_keeps_every_character() -> None:
    text = "verylongword " * 60
    root = ElementTree.fromstring(export_svg(kept(text)).encode())
    chips = list(root.iter(SVG + "g"))
    drawn = "".join(g.find(SVG + "text").text or "" for g in chips)  # type: ignore[union-attr]
    assert drawn.count("verylongword") == 120
    heights = {g.find(SVG + "rect").attrib["y"] for g in chips}  # type: ignore[union-attr]
    assert len(heights) >= 2 * len(text) // CELLS


@pytest.mark.parametrize("first", ["=1+1", "+1", "-1", "@a", "\tx", "\rx"], ids=repr)
def test_a_cell_that_a_spreadsheet_would_run_is_defused(first: str) -> None:
    assert escape_cell(first) == f"'{first}"
    assert escape_cell(f"a{first}") == f"a{first}"


def test_the_table_holds_every_token_and_its_numbers_exactly() -> None:
    scores = [0.1, -1 / 3, 1e-300]
    one = kept('=SUM(A1) say,"it" fine', scores=scores)
    rows = list(csv.reader(io.StringIO(csv_table(one), newline="")))
    assert rows[0] == ["token", "start", "end", "segment", "special", "occlusion", "attention_mean"]
    assert [row[0] for row in rows[1:]] == ["[CLS]", "'=SUM(A1)", 'say,"it"', "fine", "[SEP]"]
    assert [row[1:5] for row in rows[1:3]] == [["0", "0", "", "true"], ["0", "8", "0", "false"]]
    for column, (_, made) in enumerate(one.methods, start=5):
        assert [float(row[column]) for row in rows[1:]] == made.scores.tolist()
    assert rows[3][5] == "-0.3333333333333333", "a number is no formula"


@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_table_holds_the_rationale_before_the_methods(unit: str) -> None:
    labeled = LabeledExample("a warm, funny film", label=1, rationale=((2, 6), (8, 13)))
    data = replace(load("reviews"), examples=(labeled,))
    one = kept(labeled.text, unit=unit)
    above = tuple(rationale_rows(data, 0, one.methods[0][1], unit))
    rows = list(csv.reader(io.StringIO(csv_table(replace(one, above=above)), newline="")))
    assert rows[0][5:] == ["rationale", "occlusion", "attention_mean"]
    assert {row[0]: float(row[5]) for row in rows[1:]} == {
        "[CLS]": 0, "a": 0, "warm,": 1, "funny": 1, "film": 0, "[SEP]": 0,
    }  # fmt: skip


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_json_and_table_survive_hard_texts(text: str) -> None:
    one = kept(text, pair="a pair")
    found = json.loads(json_list(one))
    assert [f["text"] for f in found[0]["features"]] == [token.text for token in one.tokens]
    assert [[f["score"] for f in method["features"]] for method in found] == [m.scores.tolist() for _, m in one.methods]
    rows = list(csv.reader(io.StringIO(csv_table(one), newline="")))
    assert [row[0].removeprefix("'") for row in rows[1:]] == [token.text.removeprefix("'") for token in one.tokens]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("it's a model") / "tiny"))


EXAMPLES = {
    "plain": Example('the film isn\'t good, "but" $HOME `warm` \\ !'),
    "option": Example("--seed 5"),
    "dash": Example("-"),
    "pair": Example("a warm film", "-"),
    "long": Example("the film is good. " * 120),
    "line ends": Example("\ufeffa film\x0b\r\n\r\n"),
    "markup": Example("<script>alert(1)</script>\nהסרט 👍🏽"),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_command_makes_the_same_numbers(
    model: str, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = explain(Request(model, "random", example)).prediction
    target = other.labels[1 - other.index]
    asked = {"occlusion": {"window": "2"}, "smoothgrad": {"n_samples": "3"}, "random": {}}
    made = {id: explain(Request(model, id, example, given, target, 7)) for id, given in asked.items()}
    one = TextExport(example, "token", tuple((explainer(id), answer) for id, answer in made.items()))
    line, _, file = command(one).partition(" < ") if stdin_text(one.example) else (command(one), "", "")
    words = shlex.split(line)
    assert words == ["exegesis", *command_arguments(one)]
    assert bool(file) == (stdin_text(one.example) is not None)
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "elsewhere"))
    done = CliRunner().invoke(app, words[1:], input=stdin_file(one.example) if file else b"")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert not any(answer["cached"] for answer in found), "the numbers are made again"
    same = ("model", "revision", "method", "version", "params", "target", "seed", "dtype", "features", "prediction")
    for answer, before in zip(found, json.loads(json_list(one)), strict=True):
        assert {name: answer[name] for name in same} == {name: before[name] for name in same}


def test_the_picture_prints_values_and_stays_within_its_lines() -> None:
    scores = [1.0, -4.0, 2.0]
    one = replace(kept("a warm film", scores=scores), view=ViewOptions(values=True))
    root = ElementTree.fromstring(export_svg(one).encode())
    printed = [[text.text for text in g.iter(SVG + "text")][1:] for g in root.iter(SVG + "g")]
    assert printed[:5] == [[], ["+1.0"], ["\u22124.0"], ["+2.0"], []]
    boxes = [g.find(SVG + "rect").attrib for g in root.iter(SVG + "g")][1:4]  # type: ignore[union-attr]
    ends = [float(box["x"]) + float(box["width"]) for box in boxes]
    assert all(end <= float(after["x"]) for end, after in zip(ends, boxes[1:], strict=False))
    assert "+1.0" not in export_svg(replace(one, view=ViewOptions()))


@pytest.mark.parametrize(("unit", "ringed"), [("token", ["wa"]), ("word", ["warm"])])
def test_pinned_units_are_ringed_in_files(unit: str, ringed: list[str]) -> None:
    example = Example("a warm film")
    made = explanation(example, pieces=r"a\b|wa|rm|film")
    one = TextExport(example, unit, ((explainer("occlusion"), made),), pins=(2,))
    root = ElementTree.fromstring(export_svg(one).encode())
    found = [g for g in root.iter(SVG + "g") if "stroke" in g.find(SVG + "rect").attrib]  # type: ignore[union-attr]
    assert [g.find(SVG + "text").text for g in found] == ringed  # type: ignore[union-attr]
    assert ".st-key-text_rows :is(.xi0 .j2, .xi0.j2){outline:2px solid" in export_html(one)
    assert 'stroke="' not in export_svg(replace(one, pins=()))


def test_the_page_has_the_layout_of_the_maps_and_the_picture_may_be_light_only() -> None:
    one = kept("a warm film")
    assert "<table" in export_html(replace(one, view=ViewOptions(layout="aligned")))
    assert "<table" not in export_html(one)
    assert "prefers-color-scheme" in export_svg(one)
    assert "prefers-color-scheme" not in export_svg(one, dark=False)
