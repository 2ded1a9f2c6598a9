"""An English sentence and its German translation, with what in one stands for what in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from engine.data.quality.lexicon import (
    ADJECTIVES,
    ADVERBS,
    NAMES,
    OBJECTS,
    PERSONS,
    PLACES,
    VERBS,
    Adverb,
    Noun,
    Place,
    Verb,
)

ARTICLES = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
"""By gender, `p` for the plural."""
NUMBER, TENSE, WORD, ARTICLE = "number", "tense", "word", "article"


@dataclass(frozen=True, eq=False)
class Sense:
    """One German word with its English words; compared by identity: a sentence may say "the" twice.

    `wrong`: forms that would be an error here, by kind of error. `block`: words of one block, other than 0, stand
    together. `comma`: one stands before it, in both languages.
    """

    english: tuple[str, ...]
    german: str
    wrong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    block: int = 0
    comma: bool = False


@dataclass(frozen=True)
class Sentence:
    """`source`: the English words, each with what it stands for. `target`: the German words in their own order."""

    source: tuple[tuple[str, Sense], ...]
    target: tuple[Sense, ...]


@dataclass(frozen=True)
class Phrase:
    """A noun with its article and adjective; or a name."""

    senses: tuple[Sense, ...]
    several: bool = False


def sentence(chance: Random) -> Sentence:
    """One main clause, or two joined by a word."""
    first = _clause(chance, 1)
    if chance.random() < 0.7:
        return first
    english, german = chance.choice((("and", "und"), ("but", "aber")))
    joint, second = Sense((english,), german, comma=True), _clause(chance, 10)
    return Sentence((*first.source, (english, joint), *second.source), (*first.target, joint, *second.target))


def _clause(chance: Random, block: int) -> Sentence:
    verb, past = chance.choice(VERBS), chance.random() < 0.5
    subject = _subject(chance, block)
    taken = chance.choice([noun for noun in OBJECTS if noun.kind in verb.takes])
    others = [noun for noun in OBJECTS if noun.kind == taken.kind]
    thing = _phrase(taken, others, "accusative", chance, block + 1)
    negated = chance.random() < 0.15
    adverb = None if negated or chance.random() < 0.35 else _adverb(past, chance)
    place = None if negated or chance.random() < 0.5 else chance.choice(PLACES)
    return _ordered(subject, (verb, past, negated), thing, adverb, place, chance.random() < 0.5, block)


def _ordered(
    subject: Phrase,
    verb: tuple[Verb, bool, bool],
    thing: Phrase,
    adverb: Adverb | None,
    place: Place | None,
    adverb_first: bool,
    block: int,
) -> Sentence:
    """English keeps subject before verb; in German the verb is second, whatever comes first."""
    doing, not_ = _verb(*verb, subject.several), [Sense(("not",), "nicht")] if verb[2] else []
    when = [Sense(adverb.english, adverb.german, {WORD: _other_adverbs(adverb)})] if adverb else []
    where = _place(place, block + 2) if place else ()
    front, back = (when, []) if adverb_first else ([], when)
    before = [] if adverb is None or adverb.late else back
    after = back if adverb is not None and adverb.late else []
    source = [*_said(front), *_said(subject.senses), *_said(before), *_verb_said(doing, not_), *_said(thing.senses)]
    source += [*_said(where), *_said(after)]
    target = [*front, doing, *subject.senses] if front else [*subject.senses, doing, *back]
    return Sentence(tuple(source), (*target, *thing.senses, *not_, *where))


def _said(senses: Sequence[Sense]) -> list[tuple[str, Sense]]:
    return [(word, sense) for sense in senses for word in sense.english]


def _verb_said(doing: Sense, not_: Sequence[Sense]) -> list[tuple[str, Sense]]:
    """Not" stands between "does" and "read"."""
    words = _said([doing])
    return [words[0], *_said(not_), *words[1:]]


def _verb(verb: Verb, past: bool, negated: bool, several: bool) -> Sense:
    third, base, was = verb.english
    if negated:
        english: tuple[str, ...] = ("did" if past else "do" if several else "does", base)
    else:
        english = (was if past else base if several else third,)
    forms = verb.german
    wrong = {
        NUMBER: (forms[2 * past + (not several)],),
        TENSE: (forms[2 * (not past) + several],),
        WORD: tuple(v.german[2 * past + several] for v in VERBS if v != verb),
    }
    return Sense(english, forms[2 * past + several], wrong)


def _subject(chance: Random, block: int) -> Phrase:
    if chance.random() < 0.25:
        name = chance.choice(NAMES)
        return Phrase((Sense((name,), name, {WORD: tuple(n for n in NAMES if n != name)}, block),))
    return _phrase(chance.choice(PERSONS), PERSONS, "nominative", chance, block)


def _phrase(noun: Noun, others: Sequence[Noun], case: str, chance: Random, block: int) -> Phrase:
    several = chance.random() < 0.35
    form = "p" if several else noun.gender
    article = Sense(("the",), ARTICLES[case][form], {ARTICLE: _other_articles(case, form)}, block)
    adjective = _adjective(noun, _ending(case, form), chance, block) if chance.random() < 0.5 else ()
    words = (noun.german, noun.germans)
    alike = [n for n in others if n != noun and (several or n.gender == noun.gender)]
    wrong = {NUMBER: (words[not several],), WORD: tuple((n.german, n.germans)[several] for n in alike)}
    named = Sense(((noun.english, noun.englishes)[several],), words[several], wrong, block)
    return Phrase((article, *adjective, named), several)


def _adjective(noun: Noun, ending: str, chance: Random, block: int) -> tuple[Sense]:
    english, stem = chance.choice(ADJECTIVES[noun.kind])
    wrong = tuple(other + ending for _, other in ADJECTIVES[noun.kind] if other != stem)
    return (Sense((english,), stem + ending, {WORD: wrong}, block),)


def _ending(case: str, form: str) -> str:
    """Of an adjective after the definite article."""
    return "en" if form == "p" or (case, form) == ("accusative", "m") else "e"


def _other_articles(case: str, form: str) -> tuple[str, ...]:
    """Articles of another gender."""
    right = ARTICLES[case][form]
    return tuple(sorted({ARTICLES[case][other] for other in "mfn"} - {right}))


def _adverb(past: bool, chance: Random) -> Adverb:
    tense = "past" if past else "present"
    return chance.choice([adverb for adverb in ADVERBS if adverb.tense in ("", tense)])


def _other_adverbs(adverb: Adverb) -> tuple[str, ...]:
    return tuple(other.german for other in ADVERBS if other != adverb)


def _place(place: Place, block: int) -> tuple[Sense, ...]:
    """The preposition, alone or drawn together with the article, and the noun in the dative."""
    word, noun = place.german
    others = tuple(o.german[1] for o in PLACES if o.gender == place.gender and o.german[1] != noun)
    named = Sense((place.english[1],), noun, {WORD: others}, block)
    drawn = {"in": "im"}.get(word) if place.gender != "f" else None
    if drawn:
        return (Sense((place.english[0], "the"), drawn, {WORD: ("am", "zum")}, block), named)
    dative = ARTICLES["dative"][place.gender]
    article = Sense(("the",), dative, {ARTICLE: ("den", "das")}, block)
    return (Sense((place.english[0],), word, {WORD: ("über", "unter")}, block), article, named)
