"""Match a sentence with the forms of the grammar: one operation with its slots, or the reason why not."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.errors import UsageError, excerpt
from engine.format import join_names
from engine.input_kinds import list_models
from engine.query.grammar import (
    CLASSES,
    CLASSES_OF,
    EDITS,
    FILLERS,
    FORMS,
    NO_WORD,
    OPERATIONS,
    REFUSALS,
    THIS,
    ParsedQuery,
    QueryForm,
)
from engine.query.names import (
    QUOTE_MARK,
    Reading,
    Sentence,
    class_labels,
    name_pattern,
    read_names,
    read_quotes,
    tokens_of,
)
from engine.registry import KINDS, all_explainers, method_order

ALL = frozenset(OPERATIONS)
LONGEST, LONGEST_UNQUOTED = 2000, 500
"""Characters of a sentence, and of what is not quoted in it."""
NEAREST = 3
NUMBERS_OF = {"example", "count", "layer", "head"}
TEMPLATE_PART = re.compile(r"\[([^\]]*)\]")
SAMPLES: Mapping[str, Any] = {
    "methods": ("lime", "integrated_gradients"), "models": ("reviews-minilm", "bert-reviews"), "example": 3, "count": 5,
    "target": "positive", "text": "A man sleeps.", "text_pair": "A person rests.", "word": "not",
    "replacement": "very", "layer": 2, "head": 1,
}  # fmt: skip
"""The slots of sentences that are suggested."""


class NotUnderstood(UsageError):
    """A sentence that is no question of the grammar. `nearest`: sentences that are."""

    def __init__(self, reason: str, nearest: tuple[str, ...]) -> None:
        self.reason, self.nearest = reason, nearest
        listed = "; ".join(f"“{sentence}”" for sentence in nearest)
        super().__init__(f"query: not understood. {reason} Nearest: {listed}.")


def parse(text: str, operations: Collection[str] = ALL) -> ParsedQuery:
    """What the sentence asks. Errors: nothing, several things, or a word that no slot and no form explains."""
    if len(text) > LONGEST:
        raise NotUnderstood(f"It is longer than {LONGEST:,} characters.", nearest_forms(text[:LONGEST], operations))
    sentence = read_quotes(text)
    if len(sentence.text) > LONGEST_UNQUOTED:
        reason = f"It is longer than {LONGEST_UNQUOTED} characters outside quotation marks."
        raise NotUnderstood(reason, nearest_forms(sentence.text[:LONGEST_UNQUOTED], operations))
    rest: tuple[str, ...] | None = None
    for reading in _readings(sentence):
        queries = {query for form in FORMS if form.operation in operations and (query := _match(form, reading))}
        if reason := next((r for query in queries if (r := _refusal(query, reading))), ""):
            raise NotUnderstood(reason, nearest_forms(text, operations))
        if len(queries) == 1:
            return queries.pop()
        if queries:
            titles = " or ".join(sorted(OPERATIONS[query.operation].title.lower() for query in queries))
            raise NotUnderstood(f"It can mean {titles}.", nearest_forms(text, operations))
        rest = _unexplained(reading) if rest is None else rest
    reason = f"Not known here: {', '.join(excerpt(word, 40) for word in rest)}." if rest else "No form has these words."
    raise NotUnderstood(reason, nearest_forms(text, operations))


def write_sentence(query: ParsedQuery, form: QueryForm | None = None) -> str:
    """The sentence that asks the query by that form, or the first one of its operation that has all slots."""
    slots = {name: _write_slot(name, value) for name, value in query.slots().items()}
    forms = [form] if form else [one for one in FORMS if one.operation == query.operation]
    template = next((one.template for one in forms if all(f"{{{name}}}" in one.template for name in slots)), None)
    template = forms[0].template if template is None else template

    def fill(match: re.Match[str]) -> str:
        names = re.findall(r"{(\w+)}", match[1])
        return match[1] if all(name in slots for name in names) else ""

    line = TEMPLATE_PART.sub(fill, template)
    return " ".join(re.sub(r"{(\w+)}", lambda match: slots.get(match[1], "it"), line).split())


def nearest_forms(text: str, operations: Collection[str] = ALL, count: int = NEAREST) -> tuple[str, ...]:
    """The sentences of the grammar that have most in common with the text, one for each operation."""
    words = set(tokens_of(text))
    classes = {name for word in words for name in CLASSES_OF.get(word, ())}

    def likeness(form: QueryForm) -> tuple[float, float]:
        share = sum(name in classes for name in form.words) / max(1, len(form.words))
        return share, difflib.SequenceMatcher(None, text.lower(), sample_sentence(form).lower()).ratio()

    forms = sorted((form for form in FORMS if form.operation in operations), key=likeness, reverse=True)
    best: dict[str, QueryForm] = {}
    for form in forms:
        best.setdefault(form.operation, form)
    return tuple(sample_sentence(form) for form in list(best.values())[:count])


def sample_sentences(operations: Collection[str] = ALL) -> tuple[str, ...]:
    """Sentences that complete what is typed: one of each form, and more with each method, class and model."""
    forms = [form for form in FORMS if form.operation in operations]
    first = {form.operation: form for form in reversed(forms)}
    values: Mapping[str, Iterable[str]] = {
        "methods": method_order(),
        "target": class_labels(),
        "models": list_models(KINDS[0]),
    }
    varied = {("explain", "methods"), ("top", "methods"), ("top", "target"), ("evaluate", "methods"),
              ("randomize", "methods"), ("attack", "methods"), ("mistakes", "models")}  # fmt: skip
    slots: Iterator[tuple[str, Any]] = (
        (id, {slot: value if slot == "target" else (value,)})
        for id, slot in sorted(varied)
        if id in first
        for value in values[slot]
    )
    more = (write_sentence(replace(sample_query(first[id]), **own), first[id]) for id, own in slots)
    return tuple(dict.fromkeys((*map(sample_sentence, forms), *more)))


def sample_sentence(form: QueryForm) -> str:
    """The sentence of `sample_query`."""
    return write_sentence(sample_query(form), form)


def sample_query(form: QueryForm) -> ParsedQuery:
    """A query of the form: with the slots that it needs, and an example and a method where it may have them."""
    operation = OPERATIONS[form.operation]
    least = {**operation.least[0], **form.least} if not set(form.least) & {"models"} else dict(form.least)
    names = set(re.findall(r"{(\w+)}", form.template)) & operation.slots
    usual = {"example"} - ({"example"} if "text_pair" in least else set())
    usual |= {"methods"} if "models" not in least else set()
    usual |= {"target"} if form.operation == "top" else set()
    slots = {name: SAMPLES[name] for name in names if least.get(name) or name in usual}
    for name in ("methods", "models"):
        if name in slots:
            slots[name] = slots[name][: least.get(name, 1)]
    return ParsedQuery(form.operation, **slots)


def _write_slot(name: str, value: object) -> str:
    if name in ("text", "text_pair", "word", "replacement"):
        return f"“{value}”" if '"' in str(value) else f'"{value}"'
    if name == "example":
        return "this example" if value == THIS else f"example {value}"
    if name == "methods" and isinstance(value, list):
        return join_names([method_title(one) for one in value])
    return join_names(value) if isinstance(value, list) else str(value)


def method_title(id: str) -> str:
    """The title of a method, whatever it explains."""
    return next(methods[id].title for kind in KINDS if id in (methods := all_explainers(kind)))


def _readings(sentence: Sentence) -> Iterator[Reading]:
    """The ways to read a sentence, the most specific first: with a word removed or replaced, then without.

    The word "attention" is a question about the heads in the first place, and a method in the second.
    """
    for text, edit in _edits(sentence):
        for attention in (False, True):
            reading = read_names(sentence, text, attention)
            reading.names.update(edit)
            yield reading


def _edits(sentence: Sentence) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """The sentence without the words of an edit, and these; at last the sentence as it is."""
    for operation, pattern in EDITS:
        for match in pattern.finditer(sentence.text):
            edit = {name: [value] for name in ("word", "replacement") if (value := _edited_word(sentence, match, name))}
            if len(edit) == (2 if operation == "replace" else 1) and not _are_classes(match):
                verb = "replaced" if operation == "replace" else "removed"
                yield f"{sentence.text[: match.start()]} {verb} {sentence.text[match.end() :]}", edit
    if len(sentence.quotes) == 1 and REMOVE & set(tokens_of(sentence.text)):
        yield sentence.text.replace("«0»", " "), {"word": list(sentence.quotes)}
    yield sentence.text, {}


def _are_classes(match: re.Match[str]) -> bool:
    """Whether the words of an edit are classes, as in "negative instead of positive"."""
    known = name_pattern(False)[1]
    return (
        all(known.get(word.lower(), ("",))[0] == "target" for word in match.groupdict().values())
        and len(match.groupdict()) > 1
    )


def _edited_word(sentence: Sentence, match: re.Match[str], name: str) -> str:
    """The word that an edit names; empty where it names none."""
    if name not in match.re.groupindex:
        return ""
    word = match[name]
    if quote := QUOTE_MARK.fullmatch(word):
        return sentence.quotes[int(quote[1])]
    before = sentence.text[: match.start(name)].lower().split()[-1:]
    if before and before[0] in ("word", "token", "term"):
        return word
    plain = " ".join(tokens_of(word))
    after = tokens_of(sentence.text[match.end(name) :])[:1]
    if after and after[0] in COUNTED:  # "two words", "two of the words"
        return ""
    slot = name_pattern(False)[1].get(plain, ("", ""))[0]
    names_other = slot in ("methods", "models", "dataset")
    return "" if plain in NO_WORD or names_other or not _states_an_edit(sentence) else word


@functools.lru_cache(16)
def _states_an_edit(sentence: Sentence) -> bool:
    """Whether something in the sentence says that words are those of an example."""
    return bool(
        "«" in sentence.text
        or EVIDENCE & set(tokens_of(sentence.text))
        or read_names(sentence, sentence.text).names.get("example")
    )


COUNTED = CLASSES["word"] | {"of", "letters", "characters", "sentences"}
REMOVE = CLASSES["remove"]
EVIDENCE = {word for name in ("effect", "if", "predict", "score", "change") for word in CLASSES[name]} - {"by"}
"""Words of a sentence that asks what an edit does to a prediction; without them "delete results" is none."""


def _unexplained(reading: Reading) -> tuple[str, ...]:
    return tuple(word for word in reading.words if word not in FILLERS and word not in CLASSES_OF)


def _match(form: QueryForm, reading: Reading) -> ParsedQuery | None:
    """The query if the reading fits the form, else None."""
    operation = OPERATIONS[form.operation]
    allowed = {*form.words, *operation.allows}
    classes = [CLASSES_OF.get(word, frozenset()) for word in reading.words]
    explained = all(word in FILLERS or own & allowed for word, own in zip(reading.words, classes, strict=True))
    required = all(any(name in own for own in classes) for name in form.words)
    barred = any(name in own for own in classes for name in form.without)
    if barred or not explained or not required:
        return None
    slots = _slots(reading.names)
    if slots is None or not set(slots) <= operation.slots:
        return None
    if any(isinstance(v, tuple) and len(v) > operation.most.get(name, 1) for name, v in slots.items()):
        return None
    counts = {name: len(value) if isinstance(value, tuple) else 1 for name, value in slots.items()}
    if "text" in slots and slots.get("example") == THIS:  # this text: "..."
        del slots["example"], counts["example"]
    counts["input"] = counts.get("example", 0) + counts.get("text", 0)
    if counts["input"] > 1 or not any(_has(counts, least) for least in operation.least) or not _has(counts, form.least):
        return None
    return ParsedQuery(form.operation, **slots)


def _refusal(query: ParsedQuery, reading: Reading) -> str:
    """Why the query is not what the sentence means; empty if it may be."""
    if found := next((r for r in REFUSALS if query.operation in r.operations and r.pattern.search(reading.line)), None):
        return found.reason
    texts = [text for text in (query.text, query.text_pair) if text is not None]
    if texts and query.word is not None and not any(query.word.lower() in text.lower() for text in texts):
        return f"{excerpt(query.word, 40)} is not in the quoted text."
    marks = re.findall(r"(\S+(?: \S+)?) <text(\d+)>", f". . {reading.line}")
    for before, index in () if query.operation == "similarity" else marks:
        is_word = len(reading.names["text"][int(index)].split()) == 1
        if is_word and not BEFORE_SHORT_TEXT.search(before):
            return "A quoted word is no input to explain here: write “the text” before a text of one word."
    return ""


BEFORE_SHORT_TEXT = re.compile(
    r"(?:^|\s)(?:text|review|sentence|input|predict|classify|for|in|about|<text\d+>|<text\d+> (?:and|/|vs|versus)|"
    r"(?:run <models\d+>|model|it) on|(?:prediction|sentiment|class|verdict|explanation) of)$"
)
"""What stands before a quoted word that is a whole input."""


def _has(counts: Mapping[str, int], least: Mapping[str, int]) -> bool:
    return all(counts.get(name, 0) >= number for name, number in least.items())


def _slots(names: Mapping[str, list[str]]) -> dict[str, Any] | None:
    """The slots of a query; None where a slot that holds one value has several."""
    slots: dict[str, Any] = {}
    for slot, all_values in names.items():
        values = list(dict.fromkeys(all_values))
        if slot in ("methods", "models"):
            slots[slot] = tuple(values)
        elif slot == "text" and len(all_values) == 2:
            slots |= {"text": all_values[0], "text_pair": all_values[1]}
        elif len(values) > 1:
            return None
        else:
            slots[slot] = int(values[0]) if slot in NUMBERS_OF and values[0] != THIS else values[0]
    return slots
