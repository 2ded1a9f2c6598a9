"""What reviews are about: six domains, each with two groups of parts and the plain adjectives that fit them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.data.grammar.words import Sides, listed, sides


@dataclass(frozen=True)
class Group:
    """Parts that can be called the same things. `several` are in the plural."""

    one: tuple[str, ...]
    several: tuple[str, ...]
    called: Sides


@dataclass(frozen=True)
class Domain:
    """`things`: what is reviewed. `verdicts`: what one would do again or never, as whole clauses with marks.

    `neutral`: sentences that say nothing of the thing's worth.
    """

    name: str
    things: tuple[str, ...]
    groups: tuple[Group, ...]
    verdicts: Sides
    neutral: tuple[str, ...]


def group(one: str, several: str, good: str, bad: str) -> Group:
    return Group(listed(one), listed(several), sides(good, bad))


FILMS = Domain(
    "films",
    listed("film, thriller, comedy, documentary, drama, western"),
    (
        group(
            "plot, story, ending, dialogue, script, opening", "jokes, twists, scenes, characters",
            "clever, original, gripping, touching, witty, believable",
            "dull, predictable, clumsy, tedious, confusing, contrived",
        ),
        group(
            "acting, music, camera work, lead actor, editing", "costumes, effects, performances, songs",
            "elegant, inventive, impressive, lively, graceful", "wooden, sloppy, lifeless, amateurish, forgettable",
        ),
    ),
    sides(
        "I would [[gladly]] watch it again, it was [[worth]] the ticket, I [[recommend]] it to anyone",
        "I [[regret]] buying the ticket, it [[wasted]] my evening, I [[warn]] everyone off it",
    ),
    listed(
        "we saw it on a Tuesday, the screening began at nine, it runs for two hours, it was shot in Lisbon, "
        "there were twenty people in the room, it is set in the nineties"
    ),
)  # fmt: skip
FOOD = Domain(
    "food",
    listed("restaurant, diner, bistro, canteen, tavern, tea room"),
    (
        group(
            "soup, bread, lamb, pasta, fish, cake, salad", "dumplings, vegetables, pancakes, chips",
            "fresh, tasty, tender, fragrant, delicious, well seasoned", "stale, bland, greasy, soggy, burnt, tasteless",
        ),
        group(
            "service, waiter, manager, staff at the bar", "waiters, owners, cooks",
            "friendly, attentive, prompt, courteous, cheerful", "rude, slow, careless, grumpy, inattentive",
        ),
    ),
    sides(
        "I would [[gladly]] eat there again, it was [[worth]] the bill, I [[recommend]] a table there",
        "I [[regret]] booking a table, it [[ruined]] our evening, I [[warn]] everyone off it",
    ),
    listed(
        "we sat by the window, it was a Friday night, I had booked a table for four, we walked there from the station, "
        "the menu is one page long, we came at noon"
    ),
)  # fmt: skip
HOTELS = Domain(
    "hotels",
    listed("hotel, guest house, hostel, inn, motel, lodge"),
    (
        group(
            "room, bathroom, lobby, breakfast room, garden, bed", "beds, towels, corridors, curtains",
            "clean, comfortable, spacious, cosy, bright, spotless", "dirty, cramped, damp, shabby, gloomy, musty",
        ),
        group(
            "receptionist, owner, porter, night manager", "cleaners, hosts, receptionists",
            "helpful, welcoming, polite, patient, obliging", "unhelpful, surly, impolite, impatient, dismissive",
        ),
    ),
    sides(
        "I would [[gladly]] stay again, it was [[worth]] the price, I [[recommend]] a night there",
        "I [[regret]] staying there, it [[spoiled]] our trip, I [[warn]] everyone off it",
    ),
    listed(
        "we stayed for three nights, our window faced the harbour, it has forty rooms, we arrived after dark, "
        "it stands beside the old bridge, there is a lift"
    ),
)  # fmt: skip
BOOKS = Domain(
    "books",
    listed("novel, memoir, biography, story collection, guide, mystery"),
    (
        group(
            "plot, first chapter, prose, ending, argument, style", "chapters, characters, dialogues, footnotes",
            "vivid, engaging, thoughtful, insightful, lucid, moving",
            "tiresome, shallow, muddled, dreary, clichéd, laboured",
        ),
        group(
            "translation, cover, index, binding, layout", "maps, drawings, photographs",
            "handsome, neat, tasteful, sturdy, useful", "ugly, flimsy, crooked, useless, careless",
        ),
    ),
    sides(
        "I would [[gladly]] read it again, it was [[worth]] the hours, I [[recommend]] it to any reader",
        "I [[regret]] finishing it, it [[wasted]] my weekend, I [[warn]] every reader off it",
    ),
    listed(
        "I read it on the train, it has three hundred pages, it came out last spring, it is told by two sisters, "
        "my copy is a paperback, it is set on an island"
    ),
)  # fmt: skip
PHONES = Domain(
    "phones",
    listed("phone, handset, tablet, smartwatch, headset, camera"),
    (
        group(
            "screen, battery, speaker, microphone, software, charger", "buttons, menus, updates, controls",
            "reliable, fast, responsive, efficient, accurate, handy",
            "unreliable, sluggish, faulty, erratic, awkward, fragile",
        ),
        group(
            "design, case, finish, strap, packaging", "colours, edges, accessories",
            "sleek, solid, stylish, durable, attractive", "tacky, cheap, ugly, crude, shoddy",
        ),
    ),
    sides(
        "I would [[gladly]] buy it again, it was [[worth]] the money, I [[recommend]] it to my friends",
        "I [[regret]] ordering it, it [[wasted]] my savings, I [[warn]] my friends off it",
    ),
    listed(
        "I have had it since March, it came in a grey box, it weighs about as much as an apple, I use it at work, "
        "it replaced a model from years ago, the order took four days"
    ),
)  # fmt: skip
SHOPS = Domain(
    "shops",
    listed("shop, bakery, garage, bookshop, market stall, hairdresser"),
    (
        group(
            "shop window, counter, selection, website, parking", "shelves, prices, displays, opening hours",
            "tidy, sensible, generous, convenient, pleasant", "messy, absurd, meagre, inconvenient, unpleasant",
        ),
        group(
            "owner, cashier, delivery, repair, advice", "assistants, mechanics, answers",
            "competent, honest, quick, kind, professional", "incompetent, dishonest, late, unkind, unprofessional",
        ),
    ),
    sides(
        "I would [[gladly]] go back, it was [[worth]] the detour, I [[recommend]] it to the whole street",
        "I [[regret]] going in, it [[wasted]] my morning, I [[warn]] the whole street off it",
    ),
    listed(
        "it lies behind the station, I went on a Monday, it opened in spring, there were two people before me, "
        "I needed a present, it closes at six"
    ),
)  # fmt: skip
DOMAINS = (FILMS, FOOD, HOTELS, BOOKS, PHONES, SHOPS)
