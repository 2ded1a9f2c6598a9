"""Vocabulary of generated reviews: words that express or modify sentiment, and six domains with their parts.

Each domain has two groups of parts, with suitable plain adjectives.
"""

from __future__ import annotations

from dataclasses import dataclass


def parse_list(text: str) -> tuple[str, ...]:
    """Split a string at commas and normalize white space."""
    return tuple(" ".join(entry.split()) for entry in text.split(","))


@dataclass(frozen=True)
class Sides:
    """Positive and negative entries."""

    good: tuple[str, ...]
    bad: tuple[str, ...]

    def by_sign(self, sign: int) -> tuple[str, ...]:
        return self.good if sign > 0 else self.bad


def parse_sides(good: str, bad: str) -> Sides:
    return Sides(parse_list(good), parse_list(bad))


PLAIN_WEIGHT, STRONG_WEIGHT = 2, 3
"""Weights of adjectives without a modifier."""
STRONG_ADJECTIVES = Sides(
    parse_list("excellent, superb, wonderful, brilliant, outstanding, magnificent, perfect, fantastic"),
    parse_list("terrible, awful, dreadful, horrible, appalling, atrocious, abysmal, disastrous"),
)
INTENSIFIERS = parse_list("very, really, truly, remarkably, extremely, so")
"""Words that raise the weight of a plain adjective by one."""
STRONG_INTENSIFIERS = parse_list("absolutely, simply, utterly, truly")
"""Words that raise the weight of a strong adjective by one."""
DIMINISHERS = parse_sides("fairly, reasonably, somewhat, moderately", "a bit, slightly, somewhat, a little")
"""Words that lower the weight of a plain adjective by one."""

LIKING_VERBS = {
    2: parse_sides("liked, enjoyed", "disliked, resented"),
    4: parse_sides("loved, adored", "hated, detested"),
}
LIKING_VERB_STEMS = Sides(parse_list("like, enjoy, admire"), parse_list("dislike, mind, resent"))
"""Infinitives, to be negated."""
QUALITIES = parse_sides("charm, character, polish, warmth, flair", "flaws, faults, defects, shortcomings, weak spots")
"""Qualities that a part has or lacks."""

NEGATED_BE = parse_list(
    "was not, wasn't, was not very, was not at all, was never, was hardly, was anything but, was far from"
)
NEGATED_DO = parse_list("did not, didn't, never did")
NEGATED_FIND = (*NEGATED_DO, "could not")
DENIALS = parse_list(
    "it is not true that, it is simply wrong that, nobody could say that, I cannot agree that, I doubt that"
)
HEDGES = {
    True: parse_list("I think, I suppose, perhaps"),
    False: parse_list("I think, I suppose, perhaps, it seemed to me that, I would say that, apparently"),
}
"""True: before a clause in the first person; False: before any other."""
PEOPLE = parse_list(
    "my sister, my neighbour, an old friend, the man beside me, a colleague, one critic, the local paper, my brother"
)
AGREEMENTS = {
    True: parse_list("and that is right, and I agree, and rightly so"),
    False: parse_list("but that is wrong, but I disagree, which is nonsense"),
}
"""The writer's comment on another person's view."""
OUTCOMES = {
    True: parse_list("and so it turned out, and I was right"),
    False: parse_list("but I was mistaken, but not at all"),
}
"""The writer's comment, by whether an expectation was met."""
EXPECTATIONS = parse_list("I had expected, I was sure, I had assumed")
SUMMARIES = parse_list("all in all, overall, in the end, on the whole, all things considered, to sum up")
CONTRASTS = (
    "{aside}, but {main}",
    "{aside}, yet {main}",
    "although {aside}, {main}",
    "while {aside}, {main}",
    "even if {aside}, {main}",
    "{main}, although {aside}",
    "{main}, even though {aside}",
    "{aside}; still, {main}",
    "{aside}; nevertheless, {main}",
)
"""Contrasts of two clauses, of which only the main one counts."""


@dataclass(frozen=True)
class PartGroup:
    """Parts described by the same adjectives."""

    singular: tuple[str, ...]
    plural: tuple[str, ...]
    adjectives: Sides


@dataclass(frozen=True)
class ReviewDomain:
    """The things that are reviewed, and their parts.

    `verdicts`: concluding clauses with brackets. `neutral`: sentences without an opinion.
    """

    name: str
    things: tuple[str, ...]
    groups: tuple[PartGroup, ...]
    verdicts: Sides
    neutral: tuple[str, ...]


def parse_group(singular: str, plural: str, good: str, bad: str) -> PartGroup:
    return PartGroup(parse_list(singular), parse_list(plural), parse_sides(good, bad))


FILMS = ReviewDomain(
    "films",
    parse_list("film, thriller, comedy, documentary, drama, western"),
    (
        parse_group(
            "plot, story, ending, dialogue, script, opening", "jokes, twists, scenes, characters",
            "clever, original, gripping, touching, witty, believable",
            "dull, predictable, clumsy, tedious, confusing, contrived",
        ),
        parse_group(
            "acting, music, camera work, lead actor, editing", "costumes, effects, performances, songs",
            "elegant, inventive, impressive, lively, graceful", "wooden, sloppy, lifeless, amateurish, forgettable",
        ),
    ),
    parse_sides(
        "I would [[gladly]] watch it again, it was [[worth]] the ticket, I [[recommend]] it to anyone",
        "I [[regret]] buying the ticket, it [[wasted]] my evening, I [[warn]] everyone off it",
    ),
    parse_list(
        "we saw it on a Tuesday, the screening began at nine, it runs for two hours, it was shot in Lisbon, "
        "there were twenty people in the room, it is set in the nineties"
    ),
)  # fmt: skip
FOOD = ReviewDomain(
    "food",
    parse_list("restaurant, diner, bistro, canteen, tavern, tea room"),
    (
        parse_group(
            "soup, bread, lamb, pasta, fish, cake, salad", "dumplings, vegetables, pancakes, chips",
            "fresh, tasty, tender, fragrant, delicious, well seasoned", "stale, bland, greasy, soggy, burnt, tasteless",
        ),
        parse_group(
            "service, waiter, manager, staff at the bar", "waiters, owners, cooks",
            "friendly, attentive, prompt, courteous, cheerful", "rude, slow, careless, grumpy, inattentive",
        ),
    ),
    parse_sides(
        "I would [[gladly]] eat there again, it was [[worth]] the bill, I [[recommend]] a table there",
        "I [[regret]] booking a table, it [[ruined]] our evening, I [[warn]] everyone off it",
    ),
    parse_list(
        "we sat by the window, it was a Friday night, I had booked a table for four, we walked there from the station, "
        "the menu is one page long, we came at noon"
    ),
)  # fmt: skip
HOTELS = ReviewDomain(
    "hotels",
    parse_list("hotel, guest house, hostel, inn, motel, lodge"),
    (
        parse_group(
            "room, bathroom, lobby, breakfast room, garden, bed", "beds, towels, corridors, curtains",
            "clean, comfortable, spacious, cosy, bright, spotless", "dirty, cramped, damp, shabby, gloomy, musty",
        ),
        parse_group(
            "receptionist, owner, porter, night manager", "cleaners, hosts, receptionists",
            "helpful, welcoming, polite, patient, obliging", "unhelpful, surly, impolite, impatient, dismissive",
        ),
    ),
    parse_sides(
        "I would [[gladly]] stay again, it was [[worth]] the price, I [[recommend]] a night there",
        "I [[regret]] staying there, it [[spoiled]] our trip, I [[warn]] everyone off it",
    ),
    parse_list(
        "we stayed for three nights, our window faced the harbour, it has forty rooms, we arrived after dark, "
        "it stands beside the old bridge, there is a lift"
    ),
)  # fmt: skip
BOOKS = ReviewDomain(
    "books",
    parse_list("novel, memoir, biography, story collection, guide, mystery"),
    (
        parse_group(
            "plot, first chapter, prose, ending, argument, style", "chapters, characters, dialogues, footnotes",
            "vivid, engaging, thoughtful, insightful, lucid, moving",
            "tiresome, shallow, muddled, dreary, clichéd, laboured",
        ),
        parse_group(
            "translation, cover, index, binding, layout", "maps, drawings, photographs",
            "handsome, neat, tasteful, sturdy, useful", "ugly, flimsy, crooked, useless, careless",
        ),
    ),
    parse_sides(
        "I would [[gladly]] read it again, it was [[worth]] the hours, I [[recommend]] it to any reader",
        "I [[regret]] finishing it, it [[wasted]] my weekend, I [[warn]] every reader off it",
    ),
    parse_list(
        "I read it on the train, it has three hundred pages, it came out last spring, it is told by two sisters, "
        "my copy is a paperback, it is set on an island"
    ),
)  # fmt: skip
PHONES = ReviewDomain(
    "phones",
    parse_list("phone, handset, tablet, smartwatch, headset, camera"),
    (
        parse_group(
            "screen, battery, speaker, microphone, software, charger", "buttons, menus, updates, controls",
            "reliable, fast, responsive, efficient, accurate, handy",
            "unreliable, sluggish, faulty, erratic, awkward, fragile",
        ),
        parse_group(
            "design, case, finish, strap, packaging", "colours, edges, accessories",
            "sleek, solid, stylish, durable, attractive", "tacky, cheap, ugly, crude, shoddy",
        ),
    ),
    parse_sides(
        "I would [[gladly]] buy it again, it was [[worth]] the money, I [[recommend]] it to my friends",
        "I [[regret]] ordering it, it [[wasted]] my savings, I [[warn]] my friends off it",
    ),
    parse_list(
        "I have had it since March, it came in a grey box, it weighs about as much as an apple, I use it at work, "
        "it replaced a model from years ago, the order took four days"
    ),
)  # fmt: skip
SHOPS = ReviewDomain(
    "shops",
    parse_list("shop, bakery, garage, bookshop, market stall, hairdresser"),
    (
        parse_group(
            "shop window, counter, selection, website, parking", "shelves, prices, displays, opening hours",
            "tidy, sensible, generous, convenient, pleasant", "messy, absurd, meagre, inconvenient, unpleasant",
        ),
        parse_group(
            "owner, cashier, delivery, repair, advice", "assistants, mechanics, answers",
            "competent, honest, quick, kind, professional", "incompetent, dishonest, late, unkind, unprofessional",
        ),
    ),
    parse_sides(
        "I would [[gladly]] go back, it was [[worth]] the detour, I [[recommend]] it to the whole street",
        "I [[regret]] going in, it [[wasted]] my morning, I [[warn]] the whole street off it",
    ),
    parse_list(
        "it lies behind the station, I went on a Monday, it opened in spring, there were two people before me, "
        "I needed a present, it closes at six"
    ),
)  # fmt: skip
DOMAINS = (FILMS, FOOD, HOTELS, BOOKS, PHONES, SHOPS)
