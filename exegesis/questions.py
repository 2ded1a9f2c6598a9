"""Questions in plain English, answered by the same commands as on the page Ask."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from engine.errors import ExegesisError
from engine.lazy import LazyModule
from engine.models.catalog import DEFAULT_MODEL
from engine.query.grammar import OPERATIONS, ParsedQuery
from exegesis.display import output_html, working
from exegesis.experiments import compare
from exegesis.explaining import explain
from exegesis.inputs import example
from exegesis.models import model_name
from exegesis.results import ExperimentRun, TabularResult

if TYPE_CHECKING:
    from engine import query
    from engine.experiments import run
    from engine.query import command
else:
    command = LazyModule("engine.query.command")
    query = LazyModule("engine.query")
    run = LazyModule("engine.experiments.run")

EXPLAINING = ("explain", "top", "predict")


@dataclass(frozen=True)
class QuestionAnswer:
    """How a question was understood, the commands that answer it, and their results.

    results: of an explanation, an experiment or a comparison the result itself, else what the command prints with
    `--json`. notes: what the question names and the answer does not narrow down.
    """

    question: str
    sentence: str
    query: ParsedQuery
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[Any, ...] = ()

    @property
    def result(self) -> Any:
        """The only result, or the last: after an edit the edited text. Errors: the question was not run."""
        if not self.results:
            raise ExegesisError("result: the question was not run. Ask it with run=True, or run its commands.")
        return self.results[-1]

    def to_dict(self) -> dict[str, Any]:
        """What `exegesis ask --json` prints, and the results."""
        plain: dict[str, Any] = {"operation": self.query.operation, "title": self._title, "sentence": self.sentence}
        plain |= {**self.query.slots(), "commands": list(self.commands), "notes": list(self.notes)}
        return plain | {"results": [one.to_dict() if isinstance(one, TabularResult) else one for one in self.results]}

    @property
    def _title(self) -> str:
        return OPERATIONS[self.query.operation].title

    def __repr__(self) -> str:
        lines = [f"{self._title}: {self.sentence}", *self.commands, *self.notes]
        return "\n".join([*lines, *map(repr, self.results)])

    def _repr_html_(self) -> str:
        head = f"<p><b>{escape(self._title)}:</b> {escape(self.sentence)}</p>"
        commands = "".join(f"<pre>{escape(one)}</pre>" for one in self.commands)
        notes = "".join(f'<p class="xg-note">{escape(one)}</p>' for one in self.notes)
        plain = (f"<pre>{escape(_text(one))}</pre>" for one in self.results if not isinstance(one, TabularResult))
        shown = (one.to_html() for one in self.results if isinstance(one, TabularResult))
        return output_html([head, commands, notes, *plain]) + "".join(shown)


def ask(
    question: str,
    *,
    model: Any = DEFAULT_MODEL,
    dataset: str = "",
    index: int | None = None,
    run: bool = True,
    progress: bool = True,
) -> QuestionAnswer:
    """Answer a question in plain English by a small grammar. What was understood is part of the answer.

    Parameters
    ----------
    question : str
        Such as "what if 'not' is deleted in example 3 of reviews?".
    model, dataset, index
        What the question is about where it names nothing else.
    run : bool
        Whether to run the commands. False returns them alone.
    progress : bool
        Whether to draw a bar.

    >>> import exegesis
    >>> exegesis.ask("which words matter most in example 3 of reviews?", run=False).query.operation
    'top'

    Errors: a question that is not understood lists the nearest forms.
    """
    return _answer(question, query.QueryContext(model_name(model), dataset, index), run, progress)


def _answer(question: str, context: Any, runs: bool, progress: bool) -> QuestionAnswer:
    parsed = query.complete(query.parse(question), context)
    commands, notes = query.commands_of(parsed), query.notes_of(parsed)
    sentence, lines = query.write_sentence(parsed), tuple(one.line for one in commands)
    results = _results(parsed, commands, progress) if runs else ()
    return QuestionAnswer(question, sentence, parsed, lines, notes, results)


def _results(parsed: ParsedQuery, commands: Any, progress: bool) -> tuple[Any, ...]:
    operation = parsed.operation
    if operation in EXPLAINING:
        methods = ["random"] if operation == "predict" else list(parsed.methods)
        return (explain(parsed.models[0], _input(parsed), methods, target=parsed.target, progress=progress),)
    if operation in command.EXPERIMENTS:
        plan = command.plan_of_query(parsed)
        with working(operation, progress) as (report, cancel):
            return (ExperimentRun(run.carry_out(plan, report, cancel)),)
    if operation in ("compare", "disagree"):
        many = parsed.example is None and parsed.text is None
        place = {"dataset": parsed.dataset} if many else {"text": _input(parsed)}
        return (compare(command.pairs_of(parsed), **place, target=parsed.target, progress=progress),)
    if operation in ("delete", "replace"):
        texts = (_input(parsed), command.edited_example(parsed))
        return tuple(explain(parsed.models[0], text, ["random"], progress=progress) for text in texts)
    return tuple(_run(one) for one in commands)


def _input(parsed: ParsedQuery) -> Any:
    return (
        command.example_of(parsed)
        if parsed.text is not None
        else example(str(parsed.dataset), int(parsed.example or 0))
    )


def _run(one: Any) -> Any:
    """What a command prints as JSON. Errors: those of the command."""
    root = LazyModule("engine.cli.root")
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = 0
        try:
            root.app(args=[*one.arguments, *([] if one.stdin else ["--json"])], prog_name="exegesis")
        except SystemExit as end:
            status = int(end.code or 0)
    if status:
        raise ExegesisError(errors.getvalue().strip().splitlines()[-1] if errors.getvalue() else f"{one.line}: failed.")
    return json.loads(output.getvalue())


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
