"""Questions in plain English, answered by the same commands as on the page Ask."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from engine.data.labels import match_classes
from engine.data.sources import load_source
from engine.errors import ExegesisError, UsageError
from engine.experiments.run import carry_out
from engine.input_kinds import kind_of_dataset
from engine.lazy import LazyModule
from engine.models.catalog import DEFAULT_MODEL
from engine.predictions import predictions
from engine.query import (
    OPERATIONS,
    ParsedQuery,
    QueryCommand,
    QueryContext,
    commands_of,
    complete,
    notes_of,
    parse,
    sentence_of,
)
from engine.query.command import EXPERIMENTS, edited_example, example_of, pairs_of, plan_of_query
from engine.request import Input
from exegesis.display import output_html, working
from exegesis.experiments import compare
from exegesis.explaining import explain
from exegesis.inputs import example
from exegesis.models import model_name
from exegesis.results import ExperimentRun, TabularResult

EXPLAINING = ("explain", "top", "predict")


@dataclass(frozen=True)
class QuestionAnswer:
    """How a question was understood, the commands that answer it, and their results.

    results: the results of explanations, experiments and comparisons; for mistakes, the misclassified examples;
    otherwise the output of the command with `--json`. notes: remarks, such as parts of the question that the answer
    ignores.
    """

    question: str
    sentence: str
    query: ParsedQuery
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[Any, ...] = ()

    @property
    def result(self) -> Any:
        """The only result, or the last one: after an edit that of the edited text. Errors: the question was not run."""
        if not self.results:
            raise ExegesisError("result: the question was not run. Ask it with run=True, or run its commands.")
        return self.results[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `exegesis ask --json`, with the results."""
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
    """Answer a question in plain English, parsed by a small grammar. The answer states how it was understood.

    Parameters
    ----------
    question : str
        Such as "what if 'not' is deleted in example 3 of reviews?".
    model, dataset, index
        What the question is about unless it names something else.
    run : bool
        Whether to run the commands. If False, they are only returned.
    progress : bool
        Whether to show a progress bar.

    >>> import exegesis
    >>> exegesis.ask("which words matter most in example 3 of reviews?", run=False).query.operation
    'top'

    Errors: a question that is not understood lists the nearest forms.
    """
    context = QueryContext(model_name(model), dataset, index)
    parsed = complete(parse(question), context)
    commands, notes = commands_of(parsed), notes_of(parsed, context)
    sentence, lines = sentence_of(parsed), tuple(one.line for one in commands)
    results = _results(parsed, commands, progress) if run else ()
    return QuestionAnswer(question, sentence, parsed, lines, notes, results)


def _results(parsed: ParsedQuery, commands: Sequence[QueryCommand], progress: bool) -> tuple[Any, ...]:
    operation = parsed.operation
    if operation in EXPLAINING:
        methods = ["random"] if operation == "predict" else list(parsed.methods)
        return (explain(parsed.models[0], _input(parsed), methods, target=parsed.target, progress=progress),)
    if operation in EXPERIMENTS:
        plan = plan_of_query(parsed)
        with working(operation, progress) as (report, cancel):
            return (ExperimentRun(carry_out(plan, report, cancel)),)
    if operation in ("compare", "disagree"):
        many = parsed.example is None and parsed.text is None
        place = {"dataset": parsed.dataset} if many else {"text": _input(parsed)}
        return (compare(pairs_of(parsed), **place, target=parsed.target, progress=progress),)
    if operation in ("delete", "replace"):
        texts = (_input(parsed), edited_example(parsed))
        return tuple(explain(parsed.models[0], text, ["random"], progress=progress) for text in texts)
    if operation == "mistakes":
        return (_mistakes(parsed, progress),)
    return tuple(_run(one) for one in commands)


def _mistakes(parsed: ParsedQuery, progress: bool) -> list[dict[str, Any]]:
    """Return the misclassified examples, most confident first; only of the true class `target` if one is named."""
    model, dataset = parsed.models[0], str(parsed.dataset)
    source = load_source(kind_of_dataset(dataset), dataset)
    rows = [source.read(index) for index in range(source.count)]
    with working("predicting", progress) as (report, cancel):
        answers = predictions(model, [row.input for row in rows], report=report, cancel=cancel)
    wrong = []
    for row, answer in zip(rows, answers, strict=True):
        match = match_classes(source.labels, answer.labels, source.unnamed)
        if match.indices is None or row.class_index is None:
            raise UsageError(f"query: {dataset} has no classes that {model} predicts. {match.note}".strip())
        if match.indices[row.class_index] != answer.index and parsed.target in (None, row.label):
            example = {"index": row.index, "text": getattr(row.input, "text", None), "label": row.label}
            wrong.append({**example, "predicted": answer.label, "probability": answer.confidence})
    return sorted(wrong, key=lambda one: -one["probability"])


def _input(parsed: ParsedQuery) -> Input:
    if parsed.text is not None:
        return example_of(parsed)
    return example(str(parsed.dataset), int(parsed.example or 0))


def _run(one: QueryCommand) -> Any:
    """Run a command and return its JSON output. Errors: those of the command."""
    root = LazyModule("engine.cli.root")
    output, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            root.app(args=[*one.arguments, "--json"], prog_name="exegesis")
        except SystemExit as end:
            status = int(end.code or 0)
    if status:
        raise ExegesisError((errors.getvalue().strip() or f"{one.line}: failed.").splitlines()[-1])
    return json.loads(output.getvalue())


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
