"""Names in a sentence: quoted texts, methods, models, data sets, classes, examples, layers, heads and numbers.

Names are those of the registries. Each is replaced by a mark such as `<methods0>`; plain words remain.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.data.sources import list_datasets
from engine.input_kinds import list_models
from engine.models import catalog, downloads
from engine.query.grammar import CLASSES, CLASSES_OF, FILLERS, GRAMMAR, PHRASES, THIS
from engine.registry import KINDS, all_explainers

QUOTED = re.compile(
    r"\"([^\"]+)\"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|`([^`]+)`|(?<!\w)'(.+?)'(?!\w)|‘(.+?)’(?!\w)", re.DOTALL
)
MARK_LIKE = re.compile(r"[<>«»](?=\d|\w+>)")
"""Text outside quotations that looks like a mark."""
QUOTE_MARK = re.compile(r"«(\d+)»")
TOKEN = re.compile(
    r"«\d+»|<\w+>|\d+(?:[.,]\d+)*(?:st|nd|rd|th)?(?![^\W_])|\d+|[^\W\d_]+n't\b|[^\W\d_]+|(?<!\w)-(?=\d)|[^\s\w.,;:?!()/'’-]"
)
CONTRACTION = re.compile(r"(?<=\w)['’](?:s|d|re|ve|ll|m)\b")
SYMBOLS = {"×": "x", "*": "x", "&": "and", "+": "and"}
ALIASES: Mapping[str, Sequence[str]] = GRAMMAR["names"]["methods"]
"""Other names of methods besides their ids and titles."""
AS_METHOD = ("attention weights", "attention scores", "raw attention", "attention")
"""Names of average attention if they mean a method, rather than a question about the heads."""
NO_METHOD = "attention_head"
"""A method that is not recognized: its title is that of the heads themselves, which have a layer and a number."""
WEAK = ("reviews", "movies", "sentences", "quality", "agreement", "facts")
"""Data sets whose names are common words: they count as names after a preposition or next to "data set"."""
BEFORE_WEAK = tuple(
    f"{preposition} {article}"
    for preposition in ("of", "on", "in", "from", "for", "over", "across", "within", "using", "dataset", "data", "and")
    for article in ("", "the ")
)
MOST_LABELS = 12
"""Labels of a model with more classes are not recognized."""
MOST_INDEX = 999_999
SHORTEST_SWAPPED, SHORTEST_CORRECTED = 5, 6
"""Minimum length of words that are corrected if two letters are swapped, and if one letter is wrong."""
SHORTEST_INFLECTED = 3
BRITISH = re.compile(r"is(?=(?:e|ed|es|ing|ation|ations)$)")

NUMBERS, ORDINALS = (GRAMMAR["names"][name].split() for name in ("numbers", "ordinals"))
_NUMBER = rf"(?P<n>\d+|{'|'.join(NUMBERS)})(?![\w.,])"
_ORDINAL = rf"(?P<ordinal>\d+(?:st|nd|rd|th)|{'|'.join(ORDINALS)})"
_NOUN = rf"(?:{'|'.join((*sorted(CLASSES['example']), 'row', 'entry', 'record'))})"
_PLURAL = "|".join(sorted(CLASSES["examples"]))
_NO = r"(?:(?:with|at|the|number|no|nr|index|id|#) )*"
_LAYER = r"(?:layer|block)"
_WORD, _MOST = ("|".join(sorted(CLASSES[name])) for name in ("word", "most"))
_COUNTED = "|".join(word for name in ("most", "important", "word", "drive", "wrong") for word in sorted(CLASSES[name]))
PLACES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (slot, re.compile(rf"(?<![\w<]){pattern}(?![\w>])"))
    for slot, pattern in (
        ("both", r"(?:l|layer) (?P<layer>\d+) h(?:ead)? (?P<n>\d+)"),
        ("both", r"head (?P<layer>\d+)\.(?P<n>\d+)"),
        ("layer", rf"{_LAYER} {_NO}{_NUMBER}"),
        ("layer", rf"{_ORDINAL} {_LAYER}"),
        ("head", rf"head {_NO}{_NUMBER}"),
        ("head", rf"{_ORDINAL} (?:attention )?head"),
        ("this", rf"(?:this|the current|current) (?:<dataset\d+> )?(?:{_NOUN}|one)(?: pair)?(?! \d)"),
        ("example", rf"{_NOUN} (?:pair )?{_NO}{_NUMBER}"),
        ("example", rf"{_ORDINAL} (?:<dataset\d+> )?(?:<target\d+> )?{_NOUN}(?: pair)?"),
        ("example", rf"(?:#|index|number|no|nr) (?:# )?{_NUMBER}"),
        ("example", r"(?<=<dataset\d> )(?P<n>\d+)(?![.,\w])"),
        ("target", r"(?:class|label|category) (?P<n>\d+)(?![.,\w])"),
        ("count", rf"(?:(?<=top )|(?<=best )|first ){_NUMBER}"),
        ("count", rf"{_NUMBER}(?= (?:{_COUNTED}|examples|reviews)(?!\w))"),
        ("count", rf"(?:single|one)(?= most)|single(?= (?:{_WORD}) .*(?:{_MOST})(?!\w))"),
        ("example", r"(?<=<methods\d> )(?P<n>\d+)(?![.,\w])"),
    )
)
"""Patterns of numbers by slot, the most specific first. Ordinals and indices differ: the first example has index 0."""


@dataclass(frozen=True)
class Sentence:
    """A text with a mark in place of each quotation."""

    text: str
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """The words of a sentence, and the names and numbers in it by slot."""

    line: str
    """The sentence in lower case, with marks in place of names and numbers."""
    names: dict[str, list[str]] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the line that are not marks."""
        return tuple(word for word in re.sub(r"first (?=<count)", "", self.line).split() if not word.startswith("<"))


def read_quotes(text: str) -> Sentence:
    """Return the text with marks in place of quotations, and the quoted texts."""
    quotes: list[str] = []

    def mark(match: re.Match[str]) -> str:
        quotes.append(next(part for part in match.groups() if part is not None))
        return f" «{len(quotes) - 1}» "

    parts: list[str] = []
    end = 0
    for match in QUOTED.finditer(text):
        parts += [MARK_LIKE.sub(" ? ", text[end : match.start()]), mark(match)]
        end = match.end()
    marked = "".join((*parts, MARK_LIKE.sub(" ? ", text[end:])))
    return Sentence(" ".join(marked.split()), tuple(quotes))


def tokens_of(text: str) -> list[str]:
    """Return the words, numbers and marks of a text in lower case, without punctuation."""
    plain = CONTRACTION.sub("", text.lower().replace("’", "'"))
    return [SYMBOLS.get(token, token) for token in TOKEN.findall(plain)]


def words_of(text: str) -> list[str]:
    """Return the tokens of a text, each in its base form and with its spelling corrected."""
    return list(map(base_word, tokens_of(text)))


def read_names(sentence: Sentence, text: str, attention: bool = False) -> Reading:
    """Find the names in `text`, which is the text of the sentence, possibly with marks of an edit.

    `attention`: whether the word "attention" is the name of a method.
    """
    names: dict[str, list[str]] = {}
    line = " ".join(words_of(_unquote(sentence, text)))
    for phrase, word in PHRASES:
        line = re.sub(rf"(?<![\w<])(?:{phrase})(?![\w>])", word, line)

    def mark(slot: str, value: str) -> str:
        names.setdefault(slot, []).append(value)
        return f"<{slot}{len(names[slot]) - 1}>"

    pattern, known = name_pattern(attention)
    line = _join_alternatives(line)
    line = pattern.sub(lambda match: mark(*known[match[0]]), line)
    for slot, place in PLACES:
        line = place.sub(lambda match, slot=slot: _mark_number(match, slot, mark), line)  # type: ignore[misc]
    line = QUOTE_MARK.sub(lambda match: mark("text", sentence.quotes[int(match[1])]), line)
    return Reading(line, names)


def _join_alternatives(line: str) -> str:
    """Replace a choice of classes by "class": "positive or negative" asks for the class."""
    label = "|".join(class_labels())
    line = re.sub(
        rf"(?<![\w<])(?P<label>{label}) (?:instead of|rather than) (?:{label})(?![\w>])", r"\g<label> otherwise", line
    )
    return re.sub(rf"(?<![\w<])(?:{label})(?: (?:{label}))* or (?:{label})(?![\w>])", "class", line)


def _mark_number(match: re.Match[str], slot: str, mark: object) -> str:
    parts = match.groupdict()
    assert callable(mark)
    if slot == "this":
        return str(mark("example", THIS))
    if ordinal := parts.get("ordinal"):
        number = ORDINALS.index(ordinal) if ordinal in ORDINALS else int(ordinal[:-2]) - 1
    else:
        given = parts.get("n") or "one"
        number = NUMBERS.index(given) if given in NUMBERS else int(given)
    if not (slot == "count") <= number <= MOST_INDEX:
        return match[0]
    if slot == "count" and match[0].startswith("first "):
        return f"first {mark(slot, str(number))}"
    if slot == "both":
        return f"{mark('layer', str(int(parts['layer'])))} {mark('head', str(number))}"
    return str(mark(slot, str(number)))


def _unquote(sentence: Sentence, text: str) -> str:
    """Restore quoted names of methods, models and data sets in the text, and of classes after words such as "for"."""
    _, known = name_pattern(True)

    def restore(match: re.Match[str]) -> str:
        quote = sentence.quotes[int(match[1])]
        slot, _ = known.get(" ".join(tokens_of(quote)), ("", ""))
        before = text[: match.start()].lower().split()[-1:]
        is_name = slot in ("methods", "models", "dataset") or (
            slot == "target" and before and before[0] in BEFORE_CLASS
        )
        return quote if is_name else match[0]

    return QUOTE_MARK.sub(restore, text)


BEFORE_CLASS = ("for", "class", "label", "towards", "toward", "against", "to")


@functools.cache
def vocabulary() -> frozenset[str]:
    """Return all words that have a meaning in the grammar: those of names, classes and fillers."""
    names = {token for _, _, name in _all_names() for token in tokens_of(name)}
    phrases = {token for phrase, _ in PHRASES for token in re.findall(r"[a-z]+", phrase)}
    nouns = {*NUMBERS, *ORDINALS, "layer", "block", "row", "entry", "record", "index", "number", "no", "nr"}
    return frozenset(names | phrases | nouns | FILLERS | {word for words in CLASSES.values() for word in words})


@functools.cache
def english_words() -> frozenset[str]:
    """Return the words of MiniLM's vocabulary, which count as correctly spelled."""
    folder = downloads.minilm_package_folder()
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines() if folder else ()
    return frozenset(line for line in lines if line.isalpha())


@functools.cache
def inflected_words() -> Mapping[str, str]:
    """Map the words of the grammar and their inflected forms to the words of the grammar."""
    words = sorted(FILLERS | CLASSES_OF.keys())
    forms = {form: word for word in words if len(word) >= SHORTEST_INFLECTED for form in _inflect(word)}
    return forms | {word: word for word in vocabulary()}


def _inflect(word: str) -> Iterator[str]:
    """Yield the regular forms of a word as a verb or noun, whether or not it is one."""
    stem = word[:-1] if word.endswith(("e", "y")) else word
    doubled = word + word[-1]
    yield from (word + "s", word + "es", word + "ed", word + "ing", doubled + "ed", doubled + "ing")
    yield from (stem + "ed", stem + "ing") if word.endswith("e") else ()
    yield from (stem + "ies", stem + "ied") if word.endswith("y") else ()


@functools.lru_cache(4096)
def base_word(word: str) -> str:
    """Return the word of the grammar that this one is a form of, or differs from by one letter or a swap of letters.

    Other English words, short words and words that are close to several words of the grammar are returned unchanged: a
    wrong guess would change the meaning.
    """
    forms = inflected_words()
    if american := next((one for one in (word, BRITISH.sub("iz", word)) if one in forms), ""):
        return forms[american]
    if len(word) < SHORTEST_SWAPPED or not word.isalpha() or word in english_words():
        return word
    pairs = itertools.pairwise(word)
    near = {word[:at] + two + one + word[at + 2 :] for at, (one, two) in enumerate(pairs)} & forms.keys()
    if not near:
        near = {other for other in forms if len(other) >= SHORTEST_CORRECTED and is_one_edit(word, other)}
    classes = {CLASSES_OF.get(forms[other], other) for other in near}  # "faithfull" is near to two words
    return forms[min(near)] if len(classes) == 1 else word


def is_one_edit(one: str, two: str) -> bool:
    """Whether one added, missing or different letter turns one word into the other."""
    short, long = sorted((one, two), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    return short[start + (len(short) == len(long)) :] == long[start + 1 :]


@functools.cache
def name_pattern(attention: bool) -> tuple[re.Pattern[str], dict[str, tuple[str, str]]]:
    """Return a pattern of all names as tokens, longest first, and the slot and value of each name."""
    known: dict[str, tuple[str, str]] = {}
    for slot, value, name in _all_names():
        known.setdefault(" ".join(tokens_of(name)), (slot, value))
    for name in AS_METHOD if attention else ():
        known.setdefault(name, ("methods", "attention_mean"))
    strong = sorted((name for name in known if name not in WEAK and name != "random"), key=len, reverse=True)
    before = "|".join(f"(?<=(?<!\\w){place})" for place in BEFORE_WEAK)
    weak = "|".join(WEAK)
    parts = (
        "|".join(map(re.escape, strong)),
        rf"(?:{before})(?:{weak})|(?:{weak})(?= (?:data|dataset|datasets|set|corpus|examples?|collection)(?!\w))"
        rf"|(?<=examples )(?:{weak})(?!\w)",
        rf"(?<!at )random(?! (?:{_NOUN}|{_PLURAL}|words?|tokens?|order|sample)(?!\w))",
    )
    return re.compile(rf"(?<![\w<])(?:{'|'.join(parts)})(?![\w>])"), known


def _all_names() -> Iterator[tuple[str, str, str]]:
    """Yield slot, value and name of everything that has a name."""
    for kind in KINDS:
        for model in list_models(kind):
            yield "models", model, model
        for dataset in list_datasets(kind):
            yield "dataset", dataset, dataset
        for id, method in all_explainers(kind).items():
            if id == NO_METHOD:
                continue
            names = (id, method.title, re.sub(r"\s*\(.*\)", "", method.title), *ALIASES.get(id, ()))
            yield from (("methods", id, name) for name in names)
    for label in class_labels():
        yield "target", label, label


def class_labels() -> tuple[str, ...]:
    """Return the class labels of the embedded models that are words; models with many classes are left out."""
    labels = (
        catalog.card(m).get("labels") or [] for kind in KINDS for m in list_models(kind) if catalog.is_embedded(m)
    )
    few = (label for own in labels if 1 < len(own) <= MOST_LABELS for label in own)
    return tuple(dict.fromkeys(label for label in few if label.isalpha()))
