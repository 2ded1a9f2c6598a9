"""Matching of a sentence with the forms of the grammar: one operation with its slots, or the reason for a failure."""

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
    NO_WORD,
    OPERATIONS,
    REFUSALS,
    THIS,
    TOKENS,
    WORD,
    ParsedQuery,
)
from engine.query.names import (
    QUOTE_MARK,
    Reading,
    Sentence,
    class_labels,
    name_pattern,
    read_names,
    read_quotes,
    words_of,
)
from engine.registry import KINDS, all_explainers, method_order

ALL = frozenset(OPERATIONS)
LONGEST, LONGEST_UNQUOTED = 2000, 500
"""Maximum number of characters of a sentence, and of its unquoted part."""
NEAREST = 3
NUMBERS_OF = {"example", "count", "layer", "head"}
OPTIONAL, PLACE = re.compile(r"\[([^\]]*)\]"), re.compile(r"{(\w+)(?::\d)?}")
NEEDED = re.compile(r"{(\w+)(?::(\d))?}")
"""Parts of a template that stay only if their slots are filled; places of slots; these with their number of names."""
SAMPLES: Mapping[str, Any] = {
    "methods": ("lime", "integrated_gradients"), "models": ("reviews-minilm", "bert-reviews"), "example": 3, "count": 5,
    "target": "positive", "text": "A man sleeps.", "text_pair": "A person rests.", "word": "not",
    "replacement": "very", "layer": 2, "head": 1, "token": " are", "contrast": " is",
}  # fmt: skip
"""Slot values of suggested sentences."""


class NotUnderstood(UsageError):
    """Raised for a sentence that the grammar does not match. `nearest`: similar sentences that it matches."""

    def __init__(self, reason: str, nearest: tuple[str, ...]) -> None:
        self.reason, self.nearest = reason, nearest
        listed = "; ".join(f"“{sentence}”" for sentence in nearest)
        super().__init__(f"query: not understood. {reason} Nearest: {listed}.")


def parse(text: str, operations: Collection[str] = ALL) -> ParsedQuery:
    """Parse a sentence. Errors: it asks for nothing or several things, or no slot and no form explains a word."""
    if len(text) > LONGEST:
        raise NotUnderstood(f"It is longer than {LONGEST:,} characters.", nearest_forms(text[:LONGEST], operations))
    sentence = read_quotes(text)
    if len(sentence.text) > LONGEST_UNQUOTED:
        reason = f"It is longer than {LONGEST_UNQUOTED} characters outside quotation marks."
        raise NotUnderstood(reason, nearest_forms(sentence.text[:LONGEST_UNQUOTED], operations))
    rest: tuple[str, ...] | None = None
    for reading in _readings(sentence):
        queries = [query for id in OPERATIONS if id in operations and (query := _match(id, reading))]
        tier = max((OPERATIONS[query.operation].tier for query in queries), default=0)
        queries = [query for query in queries if OPERATIONS[query.operation].tier == tier]
        if reason := next((r for query in queries if (r := _refusal(query, reading))), ""):
            raise NotUnderstood(reason, nearest_forms(text, operations))
        if len(queries) == 1 and _asks_twice(queries[0], reading):
            raise NotUnderstood("It asks for two things. Ask one at a time.", nearest_forms(text, operations))
        if len(queries) == 1:
            return queries[0]
        if queries:
            titles = " or ".join(sorted(OPERATIONS[query.operation].title.lower() for query in queries))
            raise NotUnderstood(f"It can mean {titles}.", nearest_forms(text, operations))
        rest = _unexplained(reading) if rest is None else rest
    reason = f"Not known here: {', '.join(excerpt(word, 40) for word in rest)}." if rest else "No form has these words."
    raise NotUnderstood(reason, nearest_forms(text, operations))


def write_sentence(query: ParsedQuery, template: str = "") -> str:
    """Return the sentence of a query by a template; by default the first of its operation that has all slots."""
    slots = {name: _write_slot(name, value) for name, value in query.slots().items()}
    templates = OPERATIONS[query.operation].templates
    complete = (one for one in templates if slots.keys() <= set(PLACE.findall(one)))
    template = template or next(complete, templates[0])

    def fill(match: re.Match[str]) -> str:
        return match[1] if slots.keys() >= set(PLACE.findall(match[1])) else ""

    line = OPTIONAL.sub(fill, template)
    return " ".join(PLACE.sub(lambda match: slots.get(match[1], "it"), line).split())


def nearest_forms(text: str, operations: Collection[str] = ALL, count: int = NEAREST) -> tuple[str, ...]:
    """Return the sentences of the grammar that are most similar to the text, one for each operation."""
    classes = {name for word in words_of(text) for name in CLASSES_OF.get(word, ())}

    def likeness(id: str) -> float:
        return max(len(form.words & classes) / (1 + len(form.words)) for form in OPERATIONS[id].forms)

    def nearest(id: str) -> tuple[float, str]:
        sentences = (sample_sentence(id, template) for template in OPERATIONS[id].templates)
        return max((difflib.SequenceMatcher(None, text.lower(), one.lower()).ratio(), one) for one in sentences)

    best = sorted(((likeness(id), *nearest(id)) for id in OPERATIONS if id in operations), reverse=True)
    return tuple(sentence for *_, sentence in best[:count])


def sample_sentences(operations: Collection[str] = ALL) -> tuple[str, ...]:
    """Return sentences for autocompletion: one of each template, and more with each method, class and model."""
    ids = [id for id in OPERATIONS if id in operations]
    values: Mapping[str, Iterable[str]] = {
        "methods": method_order(),
        "target": class_labels(),
        "models": list_models(KINDS[0]),
    }
    slots: Iterator[tuple[str, Any]] = (
        (id, {slot: value if slot == "target" else (value,)})
        for id, slot in VARIED
        if id in ids
        for value in values[slot]
    )
    more = (_vary(id, **own) for id, own in slots)
    samples = (sample_sentence(id, template) for id in ids for template in OPERATIONS[id].templates)
    return tuple(dict.fromkeys((*samples, *more)))


VARIED = (("attack", "methods"), ("evaluate", "methods"), ("explain", "methods"), ("mistakes", "models"),
          ("randomize", "methods"), ("top", "methods"), ("top", "target"))  # fmt: skip
"""Operations and slots for which a sentence with each name is suggested."""


def _vary(id: str, **slots: Any) -> str:
    template = OPERATIONS[id].templates[0]
    return write_sentence(replace(sample_query(id, template), **slots), template)


def sample_sentence(id: str, template: str) -> str:
    """Return the sentence of `sample_query`."""
    return write_sentence(sample_query(id, template), template)


def sample_query(id: str, template: str) -> ParsedQuery:
    """Return a query of the template, with the slots that it needs, and an example and a method if it allows them."""
    needs = {name: int(number or 1) for name, number in NEEDED.findall(OPTIONAL.sub("", template))}
    usual = {"example"} if "text_pair" not in needs else set()
    usual |= {"methods"} if "models" not in needs else set()
    usual |= {"target"} if id == "top" else set()
    names = needs.keys() | (usual & set(PLACE.findall(template)))
    slots = {name: SAMPLES[name] for name in names}
    for name in {"methods", "models"} & names:
        slots[name] = slots[name][: max(needs.get(name, 1), OPERATIONS[id].least[0].get(name, 1))]
    return ParsedQuery(id, **slots)


def _write_slot(name: str, value: object) -> str:
    if name in ("text", "text_pair", "word", "replacement", "token", "contrast"):
        return f"“{value}”" if '"' in str(value) else f'"{value}"'
    if name == "example":
        return "this example" if value == THIS else f"example {value}"
    if name == "methods" and isinstance(value, list):
        return join_names([method_title(one) for one in value])
    return join_names(value) if isinstance(value, list) else str(value)


def method_title(id: str) -> str:
    """Return the title of a method for any kind of input."""
    return next(methods[id].title for kind in KINDS if id in (methods := all_explainers(kind)))


def _readings(sentence: Sentence) -> Iterator[Reading]:
    """Yield the ways to read a sentence, the most specific first: with a next token, with an edited word, with neither.

    The word "attention" is first read as a question about the heads, and then as a method.
    """
    for text, edit in (*_next_tokens(sentence), *_edits(sentence)):
        for attention in (False, True):
            reading = read_names(sentence, text, attention)
            reading.names.update(edit)
            yield reading


def _next_tokens(sentence: Sentence) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the sentence with marks for next tokens, and these tokens. A quotation of several words is not a token."""
    for pattern in TOKENS:
        for match in pattern.finditer(sentence.text):
            quotes = {name: QUOTE_MARK.fullmatch(mark) for name, mark in match.groupdict().items()}
            tokens = {name: [sentence.quotes[int(mark[1])] if mark else match[name]] for name, mark in quotes.items()}
            if not _are_classes(match) and all(len(token.split()) == 1 for [token] in tokens.values()):
                marks = " ".join(f"<{name}0>" for name in tokens)
                yield f"{sentence.text[: match.start()]} {marks} {sentence.text[match.end() :]}", tokens


def _edits(sentence: Sentence) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the sentence without the words of an edit, and these words; finally the unchanged sentence."""
    for operation, pattern in EDITS:
        for match in pattern.finditer(sentence.text):
            edit = {name: [value] for name in EDITED if (value := _edited_word(sentence, match, name))}
            if len(edit) == (2 if operation == "replace" else 1) and not _are_classes(match):
                verb = "replaced" if operation == "replace" else "removed"
                first = min(match.start(name) for name in edit)
                place = EDITED_MARK if re.fullmatch(WORD, sentence.text[match.start() : first]) else ""
                yield f"{sentence.text[: match.start()]} {place} {verb} {sentence.text[match.end() :]}", edit
    if len(sentence.quotes) == 1 and BESIDE.search(" ".join(words_of(sentence.text))):
        yield sentence.text.replace("«0»", EDITED_MARK), {"word": list(sentence.quotes)}
    yield sentence.text, {}


def _are_classes(match: re.Match[str]) -> bool:
    """Whether the words of an edit are classes, as in "negative instead of positive"."""
    known, words = name_pattern(False)[1], match.groupdict().values()
    chosen = len(words) > 1 and re.search("instead|rather", match[0])
    return bool(chosen) and all(known.get(word.lower(), ("",))[0] == "target" for word in words)


def _edited_word(sentence: Sentence, match: re.Match[str], name: str) -> str:
    """Return the word that an edit names; empty if it names none."""
    if name not in match.re.groupindex:
        return ""
    word = match[name]
    if quote := QUOTE_MARK.fullmatch(word):
        return sentence.quotes[int(quote[1])]
    before = sentence.text[: match.start(name)].lower().split()[-1:]
    if before and before[0] in ("word", "token", "term"):
        return word
    plain = " ".join(words_of(word))
    after = words_of(sentence.text[match.end(name) :])[:1]
    if after and after[0] in COUNTED:  # "two words", "two of the words"
        return ""
    slot = name_pattern(False)[1].get(plain, ("", ""))[0]
    names_other = slot in ("methods", "models", "dataset")
    states = _names_an_example(sentence) if before == ["the"] else _states_an_edit(sentence)
    return "" if plain in NO_WORD or names_other or not states else word


def _states_an_edit(sentence: Sentence) -> bool:
    """Whether the sentence gives evidence that its words are those of an example."""
    return "«" in sentence.text or bool(EVIDENCE & set(words_of(sentence.text))) or _names_an_example(sentence)


@functools.lru_cache(16)
def _names_an_example(sentence: Sentence) -> bool:
    return bool(read_names(sentence, sentence.text).names.get("example"))


COUNTED = CLASSES["word"] | {"of", "letters", "characters", "sentences"}
NO_REMOVAL = {"leave", "left", "minus", "out", "take", "taken", "takes", "taking", "without"}
_REMOVE = "|".join(sorted(CLASSES["remove"] - NO_REMOVAL))
_BE = "(?:(?:is|are|was|were|be|been|being|and|to) )*"
BESIDE = re.compile(
    rf"(?<!\w)(?:{_REMOVE}) (?:(?:the|word|phrase) )*«0»|«0» {_BE}(?:{_REMOVE})(?!\w)|«0» .*(?:{_REMOVE}) it(?!\w)"
)
"""A quotation next to a verb that removes it. After "leave only" or "the words before", it is not what is removed."""
EDITED_MARK = "<edited>"
"""Mark of a word that is removed or replaced, unless the verb precedes the word."""
EVIDENCE = {word for name in ("effect", "if", "predict", "score", "change") for word in CLASSES[name]} - {"by"}
"""Words of questions about the effect of an edit on a prediction; without them "delete results" is not an edit."""


def _unexplained(reading: Reading) -> tuple[str, ...]:
    return tuple(word for word in reading.words if word not in FILLERS and word not in CLASSES_OF)


def _match(id: str, reading: Reading) -> ParsedQuery | None:
    """Return the query if the reading fits a form of the operation, which allows all words and names, else None."""
    operation, slots = OPERATIONS[id], _slots(reading.names)
    if slots is None or not slots.keys() <= operation.slots:
        return None
    counts = {name: len(value) if isinstance(value, tuple) else 1 for name, value in slots.items()}
    if any(number > operation.most.get(name, 1) for name, number in counts.items()):
        return None
    if "text" in slots and slots.get("example") == THIS:  # this text: "..."
        del slots["example"], counts["example"]
    counts["input"] = counts.get("example", 0) + counts.get("text", 0)
    if counts["input"] > 1 or not any(_has(counts, least) for least in operation.least):
        return None
    classes = [CLASSES_OF.get(word, frozenset()) for word in reading.words]
    hard = [own for word, own in zip(reading.words, classes, strict=True) if word not in FILLERS]
    present = frozenset().union(*classes)
    fits = any(
        form.words <= present
        and not form.without & present
        and _has(counts, form.least)
        and all(own & (form.words | operation.allows) for own in hard)
        for form in operation.forms
    )
    return ParsedQuery(id, **slots) if fits else None


def _asks_twice(query: ParsedQuery, reading: Reading) -> bool:
    """Whether the parts before and after an "and" are questions of different operations."""
    for match in AND.finditer(reading.line):
        first, second = (
            _meanings(reading, part) for part in (reading.line[: match.start()], reading.line[match.end() :])
        )
        if first and second and not first & second and not second <= FOLLOWING.get(query.operation, frozenset()):
            return True
    return False


_JOINT = " (?:and|then|also|plus)(?: (?:and|then|also))* "
AND = re.compile(rf"(?<!>){_JOINT}|{_JOINT}(?!<)")
"""An "and" that does not join two names."""
FOLLOWING = {
    "delete": frozenset(("predict",)), "replace": frozenset(("predict",)),
    "randomize": frozenset(("explain", "predict")),
}  # fmt: skip
"""Operations that another one includes: the prediction after an edit, the explanation with random weights."""


def _meanings(reading: Reading, line: str) -> frozenset[str]:
    """Return the operations that a part of a reading fits, with the names in it."""
    edited = "removed" in line or "replaced" in line
    names = {
        slot: own
        for slot, values in reading.names.items()
        if (own := [v for n, v in enumerate(values) if f"<{slot}{n}>" in line or (edited and slot in EDITED)])
    }
    return frozenset(id for id in OPERATIONS if _match(id, Reading(line, names)))


EDITED = ("word", "replacement")


def _refusal(query: ParsedQuery, reading: Reading) -> str:
    """Return the reason why the sentence does not mean the query, or an empty string."""
    if found := next((r for r in REFUSALS if query.operation in r.operations and r.pattern.search(reading.line)), None):
        return found.reason
    texts = [text for text in (query.text, query.text_pair) if text is not None]
    if texts and query.word is not None and not any(query.word.lower() in text.lower() for text in texts):
        return f"{excerpt(query.word, 40)} is not in the quoted text."
    marks = re.findall(r"(\S+(?: \S+)?) <text(\d+)>", f". . {reading.line}")
    for before, index in () if query.operation in ("similarity", "rules") else marks:
        is_word = len(reading.names["text"][int(index)].split()) == 1
        if is_word and not BEFORE_SHORT_TEXT.search(before):
            return "A quoted word is no input to explain here: write “the text” before a text of one word."
    return ""


BEFORE_SHORT_TEXT = re.compile(
    r"(?:^|\s)(?:text|review|sentence|input|prompt|next_token|predict|classify|for|in|about|"
    r"<text\d+>|<text\d+> (?:and|/|vs|versus)|"
    r"(?:run <models\d+>|model|it) on|(?:prediction|sentiment|class|verdict|explanation) of)$"
)
"""Words that precede a quoted word which is a whole input."""


def _has(counts: Mapping[str, int], least: Mapping[str, int]) -> bool:
    return all(counts.get(name, 0) >= number for name, number in least.items())


def _slots(names: Mapping[str, list[str]]) -> dict[str, Any] | None:
    """Return the slots of a query, or None if a slot for one value has several."""
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
