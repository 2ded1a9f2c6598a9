"""Export: citations and commands that reproduce a page's results, downloads, and standalone HTML pages."""

from __future__ import annotations

import json
import shlex
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from html import escape
from typing import TypeVar

import numpy as np
import streamlit as st
from PIL import Image

from components.inputs.choices import Focus
from components.inputs.picture_choice import PictureFocus
from components.links import LONGEST_IN_LINK, non_default_params
from components.method_row import explained_name
from components.styles import ASSETS, ThemeChoice, stylesheet
from components.widgets.base import component_key
from components.widgets.patch_map import png_file
from engine.home import product_version
from engine.registry import Explainer
from engine.request import Example, Input, Picture, Prompt
from engine.result import Explanation, Provenance, explanation_to_json

ExplainedMethods = tuple[tuple[Explainer, Explanation], ...]
"""Methods with their explanations, all of one model, one input and one class."""
Shown = TypeVar("Shown")
FileOf = tuple[str, str, str, Callable[[Shown], str | bytes], str]
"""A downloadable file of a page: its label, file name, media type, builder and help text."""
TEXT_FILE, PICTURE_FILE = "text.txt", "picture.png"
REPEATS = "This command makes the same numbers"
PNG_BUTTON = "exegesis_png_button"
PNG_SCALE = 2
"""Pixels of the PNG file per pixel of the picture."""
_BUTTON_CSS = """
button { font: inherit; font-size: 0.875rem; line-height: 1.6; padding: 0.25rem 0.75rem; min-height: 2.5rem;
  cursor: pointer; color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color);
  border-radius: var(--st-button-radius); white-space: nowrap; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
"""
_CSS = (
    "body{margin:0;background:var(--xg-ground);color:var(--xg-text);font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:70rem;margin:0 auto;padding:1.5rem}h1{font-size:1.35rem;margin:0 0 1rem}"
    "h2{font-size:1.05rem;margin:0 0 .4rem}section{margin:0 0 1.5rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--xg-special);padding:.7rem;border-radius:4px}"
    "ul{margin:.4rem 0;padding-inline-start:1.2rem}"
)
# Nothing in the file may run or be fetched, whatever a text contains. The policy makes the browser enforce this.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def text_arguments(example: Example) -> list[str]:
    """Return the command-line arguments for a text, a pair or a prompt; `-` stands for a text from standard input."""
    read = stdin_text(example)
    text = "-" if read == "text" else example.text
    if isinstance(example, Prompt):
        tokens = (("--target", example.target), ("--contrast", example.contrast))
        named = [part for name, token in tokens if token is not None for part in (name, token)]
        return ["--prompt", text, *named, *(["--chat"] if example.chat else [])]
    arguments = ["--text", text]
    if example.text_pair is not None:
        arguments += ["--text-pair", "-" if read == "text_pair" else example.text_pair]
    return arguments


def command_line(arguments: list[str], example: Input | None = None) -> str:
    """Return the command, quoted for a POSIX shell. It reads the example's text from a file if necessary."""
    reads = isinstance(example, Example) and stdin_text(example) is not None
    return shlex.join(["exegesis", *arguments]) + (f" < {TEXT_FILE}" if reads else "")


def stdin_text(example: Example) -> str | None:
    """Return which text the command reads from standard input: the first unfit for a command line, or None."""
    texts = {"text": example.text, "text_pair": example.text_pair}
    return next((name for name, text in texts.items() if text is not None and _needs_file(text)), None)


def stdin_file(example: Example) -> bytes:
    """Return the content of the file that the command reads, so that it gets exactly this text."""
    text = (example.text_pair if stdin_text(example) == "text_pair" else example.text) or ""
    # The command drops one byte order mark and one line ending, so a text that has its own keeps them.
    return f"\ufeff{text}\r\n".encode()


def input_arguments(focus: Focus) -> list[str]:
    """Return the arguments for an input: a text, an uploaded picture's file, or a picture's place in the data set."""
    if not isinstance(focus, PictureFocus):
        return text_arguments(focus.example)
    if focus.own:
        return ["--image", PICTURE_FILE]
    split = ["--split", focus.split] if focus.split else []
    return ["--dataset", focus.data, *split, "--index", str(focus.index)]


def reads_file(focus: Focus) -> bool:
    """Whether the command reads its input from a file."""
    return focus.own if isinstance(focus, PictureFocus) else stdin_text(focus.example) is not None


def to_png(pixels: np.ndarray) -> bytes:
    """Encode the picture as a PNG file, without loss."""
    return png_file(Image.fromarray(pixels))


def explanations_json(shown: ExplainedMethods) -> str:
    """Return the output of `exegesis explain --json`: a list with one object per method."""
    return (
        json.dumps([explanation_to_json(made) for _, made in shown], indent=2, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def explain_arguments(shown: ExplainedMethods, input_arguments: list[str], example: Input | None) -> list[str]:
    """Return the arguments of `exegesis explain`, without values at their defaults."""
    first = shown[0][1]
    origin, methods = first.provenance, ",".join(method.id for method, _ in shown)
    arguments = ["explain", "--model", origin.model, "--method", methods, *input_arguments]
    arguments += target_arguments(first, example)
    for method, made in shown:
        for name, value in non_default_params(method, made.provenance.params).items():
            arguments += ["--param", f"{method.id}.{name}={value}"]
    return [*arguments, *run_arguments(origin, origin.seed), "--json"]


def target_arguments(made: Explanation, example: Input | None) -> list[str]:
    """Return the argument for the class, if it is not the command's default. A prompt names its token itself."""
    if isinstance(example, Prompt) and example.target is not None:
        return []
    if made.prediction.regression or made.provenance.target == made.prediction.index:
        return []
    return ["--target", _target(made)]


def run_arguments(origin: Provenance, seed: int) -> list[str]:
    """Return the arguments for the run: scaled heads, seed and precision."""
    arguments = [part for layer, head, scale in origin.heads for part in ("--head", f"{layer}.{head}={scale:g}")]
    arguments += [] if seed == 0 else ["--seed", str(seed)]
    return arguments + ([] if origin.dtype == "float32" else ["--dtype", origin.dtype])


def cite_html(shown: ExplainedMethods, example: Input | None) -> str:
    """HTML of the citation: product, version, model and revision, and a reference for each method."""
    return citation_html(cite(shown, example), references(shown))


def citation_html(sentence: str, lines: Iterable[str]) -> str:
    """HTML of a citation: a sentence, followed by a list of references. All text is escaped."""
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="xg"><p>{escape(sentence)}</p><ul class="xg-small">{listed}</ul></div>'


def cite(shown: ExplainedMethods, example: Input | None) -> str:
    """Return the sentence that cites the explanations, which are all of one run."""
    return citation(shown[0][1], example)


def citation(explanation: Explanation, example: Input | None) -> str:
    """Return the sentence that cites an explanation: product, model, explained class, run and scaled heads."""
    origin = explanation.provenance
    prediction, name = explanation.prediction, explained_name(explanation, example)
    explained = "its score" if prediction.regression else f"{prediction.class_word} {name}"
    heads = ", ".join(f"{layer}.{head} x {scale:g}" for layer, head, scale in origin.heads)
    return (
        f"Exegesis {product_version()}. Model {origin.model}, revision {origin.revision}, {explained}, "
        f"{origin.dtype} on {origin.device}, seed {origin.seed}{f', heads scaled: {heads}' if heads else ''}."
    )


def references(shown: ExplainedMethods) -> Iterator[str]:
    """Yield a reference for each method, with its version and its paper."""
    for method, made in shown:
        yield f"{method.title} ({method.id}, version {made.provenance.version}): {method.citation.rstrip('.')}."


def file_button(label: str, name: str, kind: str, build: Callable[[], str | bytes], help: str, key: str) -> None:
    """Draw a download button; the file is built when it is pressed."""
    st.download_button(label, build, name, kind, key=key, help=help, on_click="ignore", width="content")


def input_button(focus: Focus, key: str) -> None:
    """Draw a download button for the input. A text has one only if the command reads it from a file."""
    shown = focus.input
    if isinstance(shown, Picture):
        help = "The picture as it came, before the model's preprocessing."
        file_button("Picture", PICTURE_FILE, "image/png", partial(to_png, shown.pixels), help, key)
    elif isinstance(shown, Example) and stdin_text(shown) is not None:
        help = "What the command below reads."
        file_button("Text", TEXT_FILE, "text/plain", partial(stdin_file, shown), help, key)


def how_to_repeat(focus: Focus) -> str:
    """Return the line above a command on an input."""
    if not reads_file(focus):
        return f"{REPEATS}:"
    noun, file = ("picture", PICTURE_FILE) if isinstance(focus, PictureFocus) else ("text", TEXT_FILE)
    return f"{REPEATS}. It reads the {noun} from a file: save {file} with the button above."


def export_area(
    page: str, files: Sequence[FileOf[Shown]], shown: Shown, focus: Focus, command: str, cited: str,
    png: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Draw the download buttons and the citation. A file is only built when its button is pressed.

    `page`: prefix of the widget keys. `command`: the command that reproduces the page. `cited`: the citation as HTML.
    `png`: draws the PNG button.
    """
    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, gap="small", key=f"{page}_keep"):
        for label, name, kind, build, help in files:
            file_button(label, name, kind, partial(build, shown), help, f"{page}_keep_{label}")
        input_button(focus, f"{page}_keep_input")
        if png is not None:  # last: its element is as wide as the rest of the line
            png()
    citation_box(cited, [(how_to_repeat(focus), command)], f"{page}_cite")


def citation_box(citation: str, commands: Sequence[tuple[str, str]], key: str) -> None:
    """Draw the citation (HTML) and the commands that reproduce the page, each after its sentence."""
    with st.expander("Cite this", key=key):
        st.html(citation)
        for how, command in commands:
            st.caption(how)
            st.code(command, language="bash", wrap_lines=True)


def standalone_page(
    title: str, sections: Iterable[str], css: str = "", theme: ThemeChoice = "auto", script: str = ""
) -> str:
    """HTML of a standalone page: styles are inline, nothing is fetched, and no script runs except `script`.

    `sections`: HTML. `theme`: "auto" follows the reader's setting. `script`: a script of ours.
    """
    scheme = "light dark" if theme == "auto" else theme
    body = "".join(f"<section>{section}</section>" for section in sections)
    script_html = script_policy = ""
    if script:  # allowed by its hash: no other text on the page can run
        script_html = f"<script>{script}</script>"
        script_policy = f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}{script_policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>{stylesheet(theme)}"
        f"<style>:root{{color-scheme:{scheme}}}{_CSS}{css}</style></head>"
        f'<body class="xg"><main><h1>{escape(title)}</h1>{body}</main>{script_html}</body></html>\n'
    )


def command_html(example: Input, *commands: str) -> str:
    """HTML of the commands that reproduce the page, and a note on the file that they read, if any."""
    html = "".join(f"<pre>{escape(command)}</pre>" for command in commands)
    return html + _stdin_html(example) if isinstance(example, Example) else html


def png_button(label: str, file: str, build: Callable[[], str], help: str, key: str) -> None:
    """Draw a button that saves a picture as PNG: the browser renders our SVG with its own fonts and fetches nothing.

    The SVG is built and sent to the browser only once the button is pressed.
    """

    @st.fragment
    def button() -> None:
        _draw_png_button(label, file, build, help, component_key(key))

    button()


def _needs_file(text: str) -> bool:
    """Whether a text is too long to paste, means standard input, or has control characters."""
    acting = any(unicodedata.category(c) == "Cc" and c != "\n" for c in text)
    return len(text) > LONGEST_IN_LINK or text == "-" or acting


def _target(made: Explanation) -> str:
    """Return the label of the class, or its index if an earlier class has the same label."""
    index, labels = made.provenance.target, made.prediction.labels
    return labels[index] if labels.index(labels[index]) == index else str(index)


def _stdin_html(example: Example) -> str:
    name = stdin_text(example)
    if name is None:
        return ""
    which = "second text" if name == "text_pair" else "text"
    return f'<p class="xg-small">Save the {which} as {TEXT_FILE}: it is too long or too special for a command line.</p>'


def _draw_png_button(label: str, file: str, build: Callable[[], str], help: str, key: str) -> None:
    turn = st.session_state.get(_turn_key(key), 0)
    svg = build() if st.session_state.pop(_request_key(key), False) else ""
    data = {"label": label, "help": help, "name": file, "scale": PNG_SCALE, "turn": turn, "svg": svg}
    _png_component()(key=key, data=data, on_asked_change=partial(_request_png, key), width="content")


def _request_png(key: str) -> None:
    st.session_state[_request_key(key)] = True
    st.session_state[_turn_key(key)] = st.session_state.get(_turn_key(key), 0) + 1


def _request_key(key: str) -> str:
    return f"{key}.asked"


def _turn_key(key: str) -> str:
    return f"{key}.turn"


@cache
def _png_component() -> Callable[..., object]:
    script = (ASSETS / "png_button.js").read_text(encoding="utf-8")
    return st.components.v2.component(PNG_BUTTON, html='<button type="button"></button>', css=_BUTTON_CSS, js=script)
