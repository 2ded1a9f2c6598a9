"""Completion of the slots that a question leaves out, and the commands that answer it."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.behavior.plan import BEHAVIOR
from engine.comparison.plan import EXAMPLES
from engine.corpus.plan import CORPUS
from engine.data import datasets
from engine.data.tasks import PAIRS, task_of_dataset
from engine.errors import UsageError, excerpt
from engine.evaluation.plan import EVALUATE
from engine.experiments.options import RANDOM
from engine.format import hidden_token, join_names
from engine.input_kinds import kind_of_dataset, kind_of_model, list_models
from engine.lazy import LazyModule
from engine.models.catalog import DEFAULT_MODEL
from engine.models.summary import fitting_dataset, fitting_model, summarize_model
from engine.next_token import is_causal
from engine.query.grammar import OPERATIONS, THIS, ParsedQuery
from engine.query.parser import write_sentence
from engine.randomization.plan import RANDOMIZE
from engine.request import Example, Prompt
from engine.rules.plan import RULES
from engine.shipped.gallery import METHODS, PICTURE_METHODS

if TYPE_CHECKING:
    from engine import substitution
else:  # it loads torch, which only questions about edits need
    substitution = LazyModule("engine.substitution")

ATTACK_STEPS = 100
"""Steps of an attack, as on the page Adversarial."""
METHOD = "gradient_x_input"
"""The default method of comparisons of models and of attacks."""
TEXT_ONLY = ("delete", "replace", "flip", "similarity", "significance", "rules", "behavior", "lens")
CONTINUED = ("next_token", "continuation")
"""Operations on prompts, which need a language model."""
PAIR_DATASET = "nli"
EXPERIMENTS = {"evaluate": EVALUATE, "randomize": RANDOMIZE, "corpus": CORPUS, "rules": RULES, "behavior": BEHAVIOR}
PER_METHOD = {"explain", "top", "next_token", "compare", "disagree", "attack", *EXPERIMENTS}


@dataclass(frozen=True)
class QueryContext:
    """Defaults for what a question leaves out: the model, the data set and the example that a page shows.

    `text`, `text_pair`: a custom text in place of the example. `dataset`: empty for one that fits the model. `example`:
    None if no page shows one; a question that names none is then about the first. `token`, `contrast` and `chat`: those
    of the prompt that the page shows.
    """

    model: str = DEFAULT_MODEL
    dataset: str = ""
    example: int | None = None
    text: str | None = None
    text_pair: str | None = None
    token: str | None = None
    contrast: str | None = None
    chat: bool = False

    @property
    def shows_input(self) -> bool:
        """Whether a page shows an example or a text."""
        return self.example is not None or self.text is not None


@dataclass(frozen=True)
class QueryCommand:
    """A command. `arguments`: those of `exegesis`. `stdin`: its standard input."""

    arguments: tuple[str, ...]
    stdin: str = ""

    @property
    def line(self) -> str:
        """The command, quoted for a shell."""
        return shlex.join(("exegesis", *self.arguments)) + (f" <<< {shlex.quote(self.stdin)}" if self.stdin else "")


def complete(query: ParsedQuery, context: QueryContext = QueryContext()) -> ParsedQuery:
    """Return the query with model, data set, example and methods filled in, from the context or by default.

    Errors: a question about words of a picture; "this example" of a data set that the page does not show; a next token
    of a classifier.
    """
    query = _with_data(query, context)
    kind = kind_of(query)
    if (query.operation in CONTINUED or query.token is not None) and not reads_prompts(query):
        raise UsageError(
            f"query: {query.models[0]} is a classifier, which has no next token. Name a language model: with the model "
            f"{next(filter(is_causal, list_models('text')), 'FOLDER')}."
        )
    if kind != "text" and query.operation in TEXT_ONLY:
        raise UsageError(
            f"query: pictures have no words, got {query.dataset or query.models[0]}. Name a data set of texts."
        )
    if query.operation in PER_METHOD and not query.methods:
        query = replace(query, methods=_usual_methods(query, kind))
    return _with_tokens(_with_example(query, context), context)


def _with_tokens(query: ParsedQuery, context: QueryContext) -> ParsedQuery:
    """Fill in the tokens of a prompt: spaced as they follow its text, or those of the page if the query names none."""
    if not reads_prompts(query):
        return query
    prompt = (query.text, query.dataset if query.text is None else None, query.example)
    shown = (context.text, None, None) if context.text is not None else (None, context.dataset, context.example)
    if query.token is None and prompt == shown and query.models == (context.model,):
        return replace(query, token=context.token, contrast=context.contrast, chat=context.chat or None)
    if query.token is None:
        return query
    if query.text is None and query.example is None:
        return query
    ends_word = example_of(replace(query, token=None, contrast=None)).text[-1:].strip() != ""
    token, contrast = (
        f" {name}" if name is not None and ends_word and name[:1].isalnum() else name
        for name in (hidden_token(query.token), query.contrast and hidden_token(query.contrast))
    )
    return replace(query, token=token, contrast=contrast or None)


def _with_data(query: ParsedQuery, context: QueryContext) -> ParsedQuery:
    """Fill in the model and the data set: those of the context if they fit what the query names."""
    if query.operation == "similarity":  # it uses its own sentence encoder
        pairs = task_of_dataset(context.dataset).endswith(PAIRS)
        names_other = query.text is not None or query.dataset is not None or isinstance(query.example, int)
        if context.text is not None and context.text_pair is not None and not names_other:
            query = replace(query, example=None, text=context.text, text_pair=context.text_pair)
            return replace(query, dataset=context.dataset if pairs else PAIR_DATASET)
        return replace(query, dataset=query.dataset or (context.dataset if pairs else PAIR_DATASET))
    models = query.models
    own_prompt = query.operation == "lens" and query.text is not None and query.text_pair is None
    needs_prompt = query.operation in CONTINUED or query.token is not None
    needs_prompt |= own_prompt and query.target is None and not context.shows_input
    if not models and needs_prompt and not is_causal(context.model) and not _is_about(query, context):
        causal = [name for name in list_models("text") if is_causal(name)]
        fitting = [name for name in causal if query.dataset is None or fits(name, query.dataset)]
        models = tuple(fitting[:1])
    if not models:
        names = (context.model, *(model for kind in ("text", "image") for model in list_models(kind)))
        fitting = [name for name in names if query.dataset is None or fits(name, query.dataset)]
        best = context.model if context.model in fitting else fitting_model(fitting, query.dataset or "")
        models = (best or context.model,)
    dataset = query.dataset
    if dataset is None:
        is_shown = context.shows_input and models == (context.model,)
        own = context.dataset if context.dataset and (is_shown or fits(models[0], context.dataset)) else ""
        dataset = own or fitting_dataset(summarize_model(models[0])) or context.dataset or "reviews"
    return replace(query, models=models, dataset=dataset)


def _is_about(query: ParsedQuery, context: QueryContext) -> bool:
    """Whether a query is about the input that the page shows, and so about the page's model."""
    return context.shows_input and query.text is None and query.dataset is None


def reads_prompts(query: ParsedQuery) -> bool:
    """Whether the query's model is a language model, so that its text is a prompt."""
    return bool(query.models) and is_causal(query.models[0])


def fits(model: str, dataset: str) -> bool:
    """Whether a model reads the inputs of a data set, and both have the same task as far as their tasks are known."""
    if kind_of_model(model) != kind_of_dataset(dataset):
        return False
    tasks = {summarize_model(model).task, task_of_dataset(dataset)} - {""}
    return len(tasks) < 2


def kind_of(query: ParsedQuery) -> str:
    """Return the kind of input of a completed query, "text" or "image"."""
    return kind_of_model(query.models[0]) if query.models else "text"


def _usual_methods(query: ParsedQuery, kind: str) -> tuple[str, ...]:
    if query.operation in EXPERIMENTS:
        methods: tuple[str, ...] = EXPERIMENTS[query.operation].opens_with[kind].methods
        return methods
    if query.operation in ("explain", "top", "next_token"):
        return METHODS if kind == "text" else PICTURE_METHODS
    return (METHOD,)


def _with_example(query: ParsedQuery, context: QueryContext) -> ParsedQuery:
    slots = OPERATIONS[query.operation].slots
    if "example" not in slots or query.text is not None or isinstance(query.example, int):
        return query
    if query.example is None and query.operation in ("disagree", "randomize"):  # on many examples
        return query
    if context.text is not None and kind_of(query) == "text" and context.dataset in ("", query.dataset):
        return replace(query, example=None, text=context.text, text_pair=context.text_pair)
    shown = context.example if context.dataset in ("", query.dataset) else None
    if query.example == THIS and shown is None:
        source = (
            f"is one of {context.dataset}" if context.dataset else "is the one that a page shows, which is none here"
        )
        raise UsageError(
            f"query: this example {source}, got {query.dataset}. Name an example, such as example 0 of {query.dataset}."
        )
    return replace(query, example=shown or 0)


def example_of(query: ParsedQuery) -> Example:
    """Return the text, pair or prompt of a completed query about texts. Errors: the data set has no such example."""
    if query.text is not None:
        example = Example(query.text, query.text_pair)
    else:
        example = datasets.load(str(query.dataset))[int(query.example or 0)].example
    if not reads_prompts(query):
        return example
    own = example if isinstance(example, Prompt) else Prompt(example.text, example.text_pair)
    own = replace(own, chat=bool(query.chat))
    return own if query.token is None else replace(own, target=query.token, contrast=query.contrast)


def edited_example(query: ParsedQuery) -> Example:
    """Return the example with each occurrence of the word removed or replaced. Errors: the word is not in it."""
    example, word = example_of(query), str(query.word)
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    edits = [
        substitution.Edit(
            substitution.Word(segment, found.start(), found.end(), found[0]),
            substitution.like(found[0], query.replacement) if query.replacement else "",
        )
        for segment, text in enumerate((example.text, example.text_pair or ""))
        for found in pattern.finditer(text)
    ]
    if not edits:
        place = "the text" if query.text is not None else f"example {query.example} of {query.dataset}"
        raise UsageError(f"query: {excerpt(word, 40)} is not in {place}, which reads {excerpt(example.text, 160)}.")
    return substitution.edited(example, edits)


def plan_of_query(query: ParsedQuery) -> Any:
    """Return the plan of the experiment that a completed query asks for, with its page's default number of examples."""
    plan = EXPERIMENTS[query.operation].opens_with[kind_of(query)]
    rules = {"rules": (f'"{query.text}" -> {query.target}',)} if query.operation == "rules" else {}
    return replace(plan, models=query.models, dataset=query.dataset, methods=query.methods, **rules)


def commands_of(query: ParsedQuery) -> tuple[QueryCommand, ...]:
    """Return the commands that answer a completed query; none for an attack on a custom text.

    Errors: a word that is not in the text; a single text for an operation on pairs.
    """
    return tuple(QueryCommand(tuple(arguments), _stdin(query)) for arguments in _arguments(query))


def sentence_of(query: ParsedQuery) -> str:
    """Return a sentence that asks a completed query. A custom text has no data set."""
    own = query.text is not None and query.operation not in EXPERIMENTS
    return write_sentence(replace(query, dataset=None) if own else query)


def notes_of(query: ParsedQuery, context: QueryContext = QueryContext()) -> tuple[str, ...]:
    """Return notes on parts of a completed query that its commands ignore, and on a model other than the context's."""
    notes = []
    needs_prompt = query.operation in CONTINUED or query.token is not None
    if needs_prompt and context.shows_input and context.model not in query.models and not is_causal(context.model):
        notes.append(f"{context.model} is a classifier. This asks the language model {join_names(query.models)}.")
    if query.count is not None:
        notes.append(f"All of them are shown. Read the first {query.count}.")
    if query.operation == "mistakes" and query.target is not None:
        notes.append(f"The command predicts all examples: only the page picks those of class {query.target}.")
    if query.operation in EXPERIMENTS and query.example is not None:
        notes.append(f"The command is about many examples: only the page opens example {query.example}.")
    if query.operation == "similarity" and query.models:
        notes.append(f"Similarity is that of a sentence encoder, not of {join_names(query.models)}.")
    if query.operation == "attention" and (query.layer is None) != (query.head is None):
        place = f"head {query.head}" if query.layer is None else f"layer {query.layer}"
        notes.append(f"The command lists all heads: only the page picks {place}.")
    return tuple(notes)


def _stdin(query: ParsedQuery) -> str:
    """Return the standard input of the commands: the specification of a job, or an empty string."""
    if query.operation == "mistakes":
        return json.dumps({"model": query.models[0], "data": query.dataset})
    return ""


def _arguments(query: ParsedQuery) -> list[list[str]]:
    operation, model = query.operation, query.models[0] if query.models else ""
    if operation in ("explain", "top", "next_token"):
        return [_explain(query, query.methods)]
    if operation == "continuation":
        prompt = example_of(query)
        return [["generate", "--model", model, "--prompt", prompt.text, *(["--chat"] if query.chat else [])]]
    if operation == "predict":
        return [_explain(query, (RANDOM,))]
    if operation in ("delete", "replace"):
        after = edited_example(query)
        edited = replace(query, example=None, text=after.text, text_pair=after.text_pair)
        if isinstance(after, Prompt):
            edited = replace(edited, token=after.target, contrast=after.contrast)
        return [_explain(one, (RANDOM,)) for one in (query, edited)]
    if operation in ("compare", "disagree"):
        return [_compare(query)]
    if operation == "flip":
        return [["counterfactuals", "--model", model, *_input(query), *_target(query)]]
    if operation == "mistakes":
        return [["jobs", "run", "-", "--kind", "predict"]]
    if operation in EXPERIMENTS:
        return [_experiment(plan_of_query(query), operation)]
    if operation == "attack":
        return [] if query.text is not None else [_attack(query, model)]
    if operation == "attention":
        return [_attention(query, model)]
    example = example_of(query)
    if operation == "significance":
        own = replace(query, text=example.text, text_pair=example.text_pair)
        return [["significance", "--model", model, *_input(own), *_target(query)]]
    if operation == "lens":
        target = example.target if isinstance(example, Prompt) else query.target
        pair = [] if example.text_pair is None else ["--text-pair", example.text_pair]
        named = [] if target is None else ["--target", target]
        read = ["--prompt", example.text, "--chat"] if query.chat else ["--text", example.text, *pair]
        return [["layers", "lens", "--model", model, *read, *named]]
    if example.text_pair is None:
        raise UsageError(
            f"query: needs two texts, got one: {excerpt(example.text)}. Quote both, or name a data set of pairs."
        )
    return [["similarity", "--text", example.text, "--text-pair", example.text_pair]]


def _explain(query: ParsedQuery, methods: Sequence[str]) -> list[str]:
    return ["explain", "--model", query.models[0], "--method", ",".join(methods), *_input(query), *_target(query)]


def _compare(query: ParsedQuery) -> list[str]:
    columns = [part for pair in pairs_of(query) for part in ("--column", pair)]
    many = query.example is None and query.text is None
    where = ["--dataset", str(query.dataset), "--examples", str(EXAMPLES)] if many else _input(query)
    return ["compare", *columns, *where, *_target(query)]


def pairs_of(query: ParsedQuery) -> list[str]:
    """Return the columns of a comparison: each method on each model."""
    return [f"{method}@{model}" for model, method in itertools.product(query.models, query.methods)]


def _experiment(plan: Any, operation: str) -> list[str]:
    arguments = [operation, "--models", ",".join(plan.models), "--dataset", plan.dataset]
    arguments += ["--rule", ",".join(plan.rules)] if operation == "rules" else []
    return [*arguments, "--methods", ",".join(plan.methods), "--examples", str(plan.examples)]


def _attack(query: ParsedQuery, model: str) -> list[str]:
    arguments = ["attack", "--models", model, "--dataset", str(query.dataset), "--methods", query.methods[0]]
    return [*arguments, "--index", str(query.example), "--steps", str(ATTACK_STEPS)]


def _attention(query: ParsedQuery, model: str) -> list[str]:
    if query.layer is None or query.head is None:
        return ["heads", "--model", model, *_input(query)]
    params = [f"attention_head.layer={query.layer}", f"attention_head.head={query.head}"]
    flags = [part for param in params for part in ("--param", param)]
    return ["explain", "--model", model, "--method", "attention_head", *flags, *_input(query)]


def _input(query: ParsedQuery) -> list[str]:
    if reads_prompts(query) and (query.text is not None or query.token is not None or query.chat):
        prompt = example_of(query)
        assert isinstance(prompt, Prompt)
        tokens = (("--target", prompt.target), ("--contrast", prompt.contrast))
        named = [part for option, token in tokens if token is not None for part in (option, token)]
        return ["--prompt", prompt.text, *named, *(["--chat"] if prompt.chat else [])]
    if query.text is None:
        return ["--dataset", str(query.dataset), "--index", str(query.example)]
    return ["--text", query.text, *([] if query.text_pair is None else ["--text-pair", query.text_pair])]


def _target(query: ParsedQuery) -> list[str]:
    return [] if query.target is None else ["--target", query.target]
