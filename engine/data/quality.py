"""`quality`: English sentences with German translations of varying quality, and exact tags of the wrong words.

A sentence and its translation are generated together from the lexicon below, so that their words are aligned. Then
typical errors are inserted into the translation, which determines the wrong words on both sides. Weak nouns, and verbs
whose English tenses look alike (they read, they read), are left out of the lexicon: their translation is ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from engine.data.examples import Dataset, LabeledExample, Span
from engine.data.generation import SPLIT_SIZES, GeneratedExamples, GeneratedParams, example_count, make_dataset
from engine.data.registry import LoadRequest, choose_split
from engine.params import from_mapping

Gender = Literal["m", "f", "n"]


@dataclass(frozen=True)
class Noun:
    """A noun. `kind`: person, thing, text or food; verbs take certain kinds as objects."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: Gender
    kind: str


@dataclass(frozen=True)
class Verb:
    """A verb in the third person: `english` writes, write, wrote; `german` schreibt, schreiben, schrieb, schrieben.

    `takes`: kinds of objects.
    """

    english: tuple[str, str, str]
    german: tuple[str, str, str, str]
    takes: tuple[str, ...]


@dataclass(frozen=True)
class Adverb:
    """An adverb. `late`: at the end of an English sentence, else before the verb. `tense`: the only tense it allows."""

    english: tuple[str, ...]
    german: str
    late: bool
    tense: Literal["", "present", "past"] = ""


@dataclass(frozen=True)
class LexiconPlace:
    """A place: preposition and noun in each language."""

    english: tuple[str, str]
    german: tuple[str, str]
    gender: Gender


def _parse_nouns(kind: str, table: str) -> tuple[Noun, ...]:
    rows = [entry.split() for entry in table.split(",")]
    return tuple(Noun(a, b, c, d, gender, kind) for a, b, c, d, gender in rows)  # type: ignore[arg-type]


def _parse_verbs(takes: str, table: str) -> tuple[Verb, ...]:
    rows = [entry.split() for entry in table.split(",")]
    return tuple(Verb((a, b, c), (d, e, f, g), tuple(takes.split())) for a, b, c, d, e, f, g in rows)


def _parse_adjectives(table: str) -> tuple[tuple[str, str], ...]:
    rows = [entry.split() for entry in table.split(",")]
    return tuple((english, stem) for english, stem in rows)


PERSONS = _parse_nouns(
    "person",
    "man men Mann Männer m, woman women Frau Frauen f, child children Kind Kinder n, doctor doctors Arzt Ärzte m, "
    "teacher teachers Lehrerin Lehrerinnen f, cook cooks Koch Köche m, daughter daughters Tochter Töchter f, "
    "son sons Sohn Söhne m, guest guests Gast Gäste m, painter painters Malerin Malerinnen f, "
    "judge judges Richterin Richterinnen f, sister sisters Schwester Schwestern f, brother brothers Bruder Brüder m, "
    "singer singers Sängerin Sängerinnen f, thief thieves Dieb Diebe m, queen queens Königin Königinnen f",
)
THINGS = _parse_nouns(
    "thing",
    "table tables Tisch Tische m, chair chairs Stuhl Stühle m, lamp lamps Lampe Lampen f, "
    "bottle bottles Flasche Flaschen f, picture pictures Bild Bilder n, car cars Auto Autos n, "
    "bicycle bicycles Fahrrad Fahrräder n, "
    "coat coats Mantel Mäntel m, hat hats Hut Hüte m, shoe shoes Schuh Schuhe m, flower flowers Blume Blumen f, "
    "ring rings Ring Ringe m, bag bags Tasche Taschen f, clock clocks Uhr Uhren f, box boxes Kiste Kisten f, "
    "cloth cloths Tuch Tücher n, glass glasses Glas Gläser n",
)
TEXTS = _parse_nouns(
    "text",
    "book books Buch Bücher n, letter letters Brief Briefe m, story stories Geschichte Geschichten f, "
    "poem poems Gedicht Gedichte n, newspaper newspapers Zeitung Zeitungen f, report reports Bericht Berichte m",
)
FOODS = _parse_nouns(
    "food",
    "apple apples Apfel Äpfel m, egg eggs Ei Eier n, soup soups Suppe Suppen f, fish fishes Fisch Fische m, "
    "pear pears Birne Birnen f, potato potatoes Kartoffel Kartoffeln f",
)
OBJECTS = (*PERSONS, *THINGS, *TEXTS, *FOODS)

NAMES = ("Anna", "Paul", "Lena", "Max", "Clara", "Jonas", "Eva", "Felix", "Ida", "Emil")

ADJECTIVES = {
    "person": _parse_adjectives(
        "young jung, friendly freundlich, tired müd, rich reich, poor arm, clever klug, old alt, small klein, "
        "quiet still"
    ),
    "thing": _parse_adjectives(
        "old alt, new neu, small klein, big groß, red rot, green grün, black schwarz, heavy schwer, cheap billig, "
        "beautiful schön"
    ),
    "text": _parse_adjectives("long lang, short kurz, new neu, old alt, sad traurig"),
    "food": _parse_adjectives("fresh frisch, small klein, big groß, cheap billig, hot heiß"),
}
"""English adjectives and German stems, by kind of noun."""

VERBS = (
    *_parse_verbs(
        "text",
        "keeps keep kept behält behalten behielt behielten, writes write wrote schreibt schreiben schrieb schrieben",
    ),
    *_parse_verbs(
        "thing food text",
        "buys buy bought kauft kaufen kaufte kauften, sells sell sold verkauft verkaufen verkaufte verkauften, "
        "finds find found findet finden fand fanden, brings bring brought bringt bringen brachte brachten, "
        "needs need needed braucht brauchen brauchte brauchten, "
        "forgets forget forgot vergisst vergessen vergaß vergaßen",
    ),
    *_parse_verbs(
        "thing",
        "loses lose lost verliert verlieren verlor verloren, carries carry carried trägt tragen trug trugen, "
        "cleans clean cleaned putzt putzen putzte putzten, hides hide hid versteckt verstecken versteckte versteckten, "
        "steals steal stole stiehlt stehlen stahl stahlen",
    ),
    *_parse_verbs(
        "person",
        "loves love loved liebt lieben liebte liebten, visits visit visited besucht besuchen besuchte besuchten, "
        "knows know knew kennt kennen kannte kannten, asks ask asked fragt fragen fragte fragten, "
        "greets greet greeted grüßt grüßen grüßte grüßten",
    ),
    *_parse_verbs("person thing", "sees see saw sieht sehen sah sahen"),
    *_parse_verbs("food", "eats eat ate isst essen aß aßen, cooks cook cooked kocht kochen kochte kochten"),
)
ADVERBS = (
    Adverb(("today",), "heute", True),
    Adverb(("yesterday",), "gestern", True, "past"),
    Adverb(("now",), "jetzt", True, "present"),
    Adverb(("in", "the", "evening"), "abends", True),
    Adverb(("on", "Mondays"), "montags", True),
    Adverb(("often",), "oft", False),
    Adverb(("sometimes",), "manchmal", False),
    Adverb(("secretly",), "heimlich", False),
)
PLACES = (
    LexiconPlace(("in", "garden"), ("in", "Garten"), "m"),
    LexiconPlace(("in", "kitchen"), ("in", "Küche"), "f"),
    LexiconPlace(("in", "village"), ("in", "Dorf"), "n"),
    LexiconPlace(("in", "town"), ("in", "Stadt"), "f"),
    LexiconPlace(("at", "market"), ("auf", "Markt"), "m"),
    LexiconPlace(("behind", "church"), ("hinter", "Kirche"), "f"),
    LexiconPlace(("behind", "house"), ("hinter", "Haus"), "n"),
    LexiconPlace(("beside", "station"), ("neben", "Bahnhof"), "m"),
    LexiconPlace(("beside", "school"), ("neben", "Schule"), "f"),
    LexiconPlace(("near", "bridge"), ("bei", "Brücke"), "f"),
)
SPURIOUS_WORDS = ("doch", "sehr", "auch", "schon", "nur", "einmal")
"""German words that can be inserted without a counterpart in the source."""


ARTICLES = {
    "nominative": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
}
"""Definite articles by case and gender; `p`: plural."""
NUMBER, TENSE, WORD, ARTICLE = "number", "tense", "word", "article"

MAX_ERROR_SHARE = 0.6
"""Largest share of errors per word of a translation."""
CORRECT_SHARE = 0.12
"""Share of translations without any error."""


@dataclass(frozen=True, eq=False)
class Sense:
    """A German word with the English words that it translates. Compared by identity: a sentence may have "the" twice.

    `wrong`: incorrect forms, by kind of error. `block`: the phrase that the word belongs to, 0 for none. `comma`:
    whether a comma precedes the word, in both languages.
    """

    english: tuple[str, ...]
    german: str
    wrong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    block: int = 0
    comma: bool = False


@dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation. `source`: English words with their senses. `target`: senses in German order."""

    source: tuple[tuple[str, Sense], ...]
    target: tuple[Sense, ...]


@dataclass(frozen=True)
class NounPhrase:
    """A noun with article and optional adjective, or a name."""

    senses: tuple[Sense, ...]
    plural: bool = False


def make_sentence(rng: Random) -> SentencePair:
    """Generate one main clause, or two joined by a conjunction."""
    first = _make_clause(rng, 1)
    if rng.random() < 0.7:
        return first
    english, german = rng.choice((("and", "und"), ("but", "aber")))
    joint, second = Sense((english,), german, comma=True), _make_clause(rng, 10)
    return SentencePair((*first.source, (english, joint), *second.source), (*first.target, joint, *second.target))


def _make_clause(rng: Random, block: int) -> SentencePair:
    verb, past = rng.choice(VERBS), rng.random() < 0.5
    subject = _make_subject(rng, block)
    noun = rng.choice([noun for noun in OBJECTS if noun.kind in verb.takes])
    others = [other for other in OBJECTS if other.kind == noun.kind]
    thing = _make_phrase(noun, others, "accusative", rng, block + 1)
    negated = rng.random() < 0.15
    adverbs = [adverb for adverb in ADVERBS if adverb.tense in ("", "past" if past else "present")]
    adverb = None if negated or rng.random() < 0.35 else rng.choice(adverbs)
    place = None if negated or rng.random() < 0.5 else rng.choice(PLACES)
    return _order_words(subject, (verb, past, negated), thing, adverb, place, rng.random() < 0.5, block)


def _order_words(
    subject: NounPhrase,
    verb: tuple[Verb, bool, bool],
    thing: NounPhrase,
    adverb: Adverb | None,
    place: LexiconPlace | None,
    adverb_first: bool,
    block: int,
) -> SentencePair:
    """Order the words: in English the subject precedes the verb; in German the verb is always second."""
    action, not_ = _conjugate(*verb, subject.plural), [Sense(("not",), "nicht")] if verb[2] else []
    others = tuple(other.german for other in ADVERBS if other != adverb)
    when = [Sense(adverb.english, adverb.german, {WORD: others})] if adverb else []
    where = _make_place(place, block + 2) if place else ()
    front, back = (when, []) if adverb_first else ([], when)
    before = [] if adverb is None or adverb.late else back
    after = back if adverb is not None and adverb.late else []
    first, *rest = _source_words([action])
    source = [*_source_words([*front, *subject.senses, *before]), first, *_source_words(not_), *rest]
    source += _source_words([*thing.senses, *where, *after])
    target = [*front, action, *subject.senses] if front else [*subject.senses, action, *back]
    return SentencePair(tuple(source), (*target, *thing.senses, *not_, *where))


def _source_words(senses: Sequence[Sense]) -> list[tuple[str, Sense]]:
    return [(word, sense) for sense in senses for word in sense.english]


def _conjugate(verb: Verb, past: bool, negated: bool, plural: bool) -> Sense:
    third, base, preterite = verb.english
    if negated:
        english: tuple[str, ...] = ("did" if past else "do" if plural else "does", base)
    else:
        english = (preterite if past else base if plural else third,)
    forms = verb.german
    wrong = {
        NUMBER: (forms[2 * past + (not plural)],),
        TENSE: (forms[2 * (not past) + plural],),
        WORD: tuple(v.german[2 * past + plural] for v in VERBS if v != verb),
    }
    return Sense(english, forms[2 * past + plural], wrong)


def _make_subject(rng: Random, block: int) -> NounPhrase:
    if rng.random() < 0.25:
        name = rng.choice(NAMES)
        return NounPhrase((Sense((name,), name, {WORD: tuple(n for n in NAMES if n != name)}, block),))
    return _make_phrase(rng.choice(PERSONS), PERSONS, "nominative", rng, block)


def _make_phrase(noun: Noun, others: Sequence[Noun], case: str, rng: Random, block: int) -> NounPhrase:
    plural = rng.random() < 0.35
    form = "p" if plural else noun.gender
    article = ARTICLES[case][form]
    genders = tuple(sorted({ARTICLES[case][other] for other in "mfn"} - {article}))
    senses = [Sense(("the",), article, {ARTICLE: genders}, block)]
    if rng.random() < 0.5:
        ending = "en" if plural or article == "den" else "e"  # after the definite article
        english, stem = rng.choice(ADJECTIVES[noun.kind])
        adjectives = tuple(other + ending for _, other in ADJECTIVES[noun.kind] if other != stem)
        senses.append(Sense((english,), stem + ending, {WORD: adjectives}, block))
    words = (noun.german, noun.german_plural)
    alike = [n for n in others if n != noun and (plural or n.gender == noun.gender)]
    wrong = {NUMBER: (words[not plural],), WORD: tuple((n.german, n.german_plural)[plural] for n in alike)}
    senses.append(Sense(((noun.english, noun.english_plural)[plural],), words[plural], wrong, block))
    return NounPhrase(tuple(senses), plural)


def _make_place(place: LexiconPlace, block: int) -> tuple[Sense, ...]:
    """Return the preposition, separate from or contracted with the article, and the noun in the dative."""
    word, noun = place.german
    others = tuple(o.german[1] for o in PLACES if o.gender == place.gender and o.german[1] != noun)
    head = Sense((place.english[1],), noun, {WORD: others}, block)
    contracted = {"in": "im"}.get(word) if place.gender != "f" else None
    if contracted:
        return (Sense((place.english[0], "the"), contracted, {WORD: ("am", "zum")}, block), head)
    dative = ARTICLES["dative"][place.gender]
    article = Sense(("the",), dative, {ARTICLE: ("den", "das")}, block)
    return (Sense((place.english[0],), word, {WORD: ("über", "unter")}, block), article, head)


@dataclass(frozen=True, eq=False)
class TranslatedWord:
    """A word of the translation; `sense` is None if no word of the source corresponds to it."""

    text: str
    sense: Sense | None
    bad: bool = False


@dataclass(frozen=True)
class Translation:
    """A translation with errors. `missing`: omitted senses. `lost`: senses of the source that are not conveyed.

    `errors`: the kinds of errors in order of insertion.
    """

    words: tuple[TranslatedWord, ...]
    missing: tuple[Sense, ...] = ()
    lost: tuple[Sense, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """Share of correct words among those present or missing, 0 to 1."""
        intact = sum(not word.bad for word in self.words)
        return intact / (len(self.words) + len(self.missing))


def make_translation(sentence: SentencePair, rng: Random) -> Translation:
    """Translate with errors in at most about six of ten words; each word of the source is affected at most once."""
    translation = Translation(tuple(TranslatedWord(sense.german, sense) for sense in sentence.target))
    errors = 0 if rng.random() < CORRECT_SHARE else round(rng.random() * MAX_ERROR_SHARE * len(translation.words))
    free = list(sentence.target)
    rng.shuffle(free)
    while free and len(translation.errors) < errors:
        translation = _spoil(translation, free.pop(), free, rng)
    return translation


def _spoil(translation: Translation, sense: Sense, free: list[Sense], rng: Random) -> Translation:
    """Insert an error in one word; unchanged if no kind of error applies to the word."""
    # Wrong forms apply to few words, so they are more likely to be tried first.
    kinds = sorted(ERRORS, key=lambda kind: rng.random() * (0.4 if kind.startswith("wrong") else 1))
    at = next(i for i, word in enumerate(translation.words) if word.sense is sense)
    for kind in kinds:
        spoiled = ERRORS[kind](translation, at, sense, free, rng)
        if spoiled is not None:
            return replace(spoiled, errors=(*translation.errors, kind))
    return translation


def _replace_word(
    text: Translation, at: int, words: tuple[TranslatedWord, ...], sense: Sense | None = None
) -> Translation:
    """Replace a word by others; `sense`, if any, is no longer conveyed."""
    lost = text.lost if sense is None else (*text.lost, sense)
    return replace(text, words=(*text.words[:at], *words, *text.words[at + 1 :]), lost=lost)


def _drop(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
    return replace(_replace_word(text, at, (), sense), missing=(*text.missing, sense))


def _double(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
    return _replace_word(text, at, (text.words[at], TranslatedWord(sense.german, None, True)))


def _add(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
    return _replace_word(text, at, (text.words[at], TranslatedWord(rng.choice(SPURIOUS_WORDS), None, True)))


def _swap(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
    """Swap a word with the next one of the same phrase, in which every other order is wrong; None if there is none."""
    after = text.words[at + 1] if at + 1 < len(text.words) else None
    if after is None or after.sense not in free or not sense.block or after.sense.block != sense.block:
        return None
    free.remove(after.sense)
    swapped = (replace(after, bad=True), replace(text.words[at], bad=True))
    return replace(text, words=(*text.words[:at], *swapped, *text.words[at + 2 :]))


def _leave_untranslated(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
    if len(sense.english) > 1 or sense.english[0] == sense.german:
        return None
    return _replace_word(text, at, (TranslatedWord(sense.english[0], sense, True),), sense)


def _wrong_form(kind: str, conveyed: bool = False) -> ErrorMaker:
    """Return the error of using another form of the word, or another word in the same form.

    `conveyed`: whether the sense of the word is still conveyed.
    """

    def make(text: Translation, at: int, sense: Sense, free: list[Sense], rng: Random) -> Translation | None:
        forms = [form for form in sense.wrong.get(kind, ()) if form != sense.german]
        if not forms:
            return None
        word = TranslatedWord(rng.choice(forms), sense, True)
        return _replace_word(text, at, (word,), None if conveyed else sense)

    return make


ErrorMaker = Callable[[Translation, int, Sense, list[Sense], Random], Translation | None]
ERRORS: dict[str, ErrorMaker] = {
    "dropped": _drop,
    "doubled": _double,
    "added": _add,
    "swapped": _swap,
    "untranslated": _leave_untranslated,
    "wrong word": _wrong_form(WORD),
    "wrong number": _wrong_form(NUMBER),
    "wrong tense": _wrong_form(TENSE),
    "wrong article": _wrong_form(ARTICLE, conveyed=True),
}


def load_quality(request: LoadRequest) -> Dataset:
    """Load `quality`: sentence pairs labeled with the share of correct words in the translation, 0 to 1."""
    params = from_mapping(GeneratedParams, request.options, "quality")
    split = choose_split(request.split, SPLIT_SIZES)

    def make(index: int) -> LabeledExample:
        rng = Random(f"{params.seed}/{split}/{index}/quality")
        sentence = make_sentence(rng)
        return make_example(sentence, make_translation(sentence, rng))

    count = example_count(params, split, request.limit)
    return make_dataset("quality", params, split, GeneratedExamples(count, make), ())


def make_example(sentence: SentencePair, translation: Translation) -> LabeledExample:
    """Convert a translation to an example, with spans of wrong words and tags: one digit per word, 1 is wrong."""
    source, source_spans = write_sentence([(word, sense.comma) for word, sense in sentence.source])
    target, target_spans = write_sentence(
        [(word.text, word.sense is not None and word.sense.comma) for word in translation.words]
    )
    lost = {id(sense) for sense in translation.lost}
    source_bad = [id(sense) in lost for _, sense in sentence.source]
    target_bad = [word.bad for word in translation.words]
    extra: dict[str, object] = {
        "reference": write_sentence([(sense.german, sense.comma) for sense in sentence.target])[0],
        "source_tags": "".join(str(int(bad)) for bad in source_bad),
        "target_tags": "".join(str(int(bad)) for bad in target_bad),
        "missing": len(translation.missing),
        "errors": list(translation.errors),
    }
    rationale, rationale_pair = _bad_spans(source_spans, source_bad), _bad_spans(target_spans, target_bad)
    return LabeledExample(source, target, translation.score, rationale, rationale_pair, extra)


def write_sentence(words: Sequence[tuple[str, bool]]) -> tuple[str, list[Span]]:
    """Write words as a sentence: (text, span of each word). `words`: each word, and whether a comma precedes it."""
    text, spans = "", list[Span]()
    for word, comma in words:
        text += ", " if comma and text else " " if text else ""
        spans.append((len(text), len(text) + len(word)))
        text += word if spans[0][0] != len(text) else word[0].upper() + word[1:]
    return f"{text}.", spans


def _bad_spans(spans: Sequence[Span], bad: Sequence[bool]) -> tuple[Span, ...]:
    return tuple(span for span, is_bad in zip(spans, bad, strict=True) if is_bad)
