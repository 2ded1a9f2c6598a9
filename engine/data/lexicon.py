"""English-German lexicon: nouns, adjectives, verbs, adverbs, places.

Weak nouns, and verbs whose English tenses look alike (they read, they read), are left out, because their translation
would be ambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    """An adverb. `late`: at the end of an English sentence, not before the verb. `tense`: the only tense it allows."""

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
