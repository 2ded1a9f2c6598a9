"""What a generated pair says, read from its words alone and tried in many random worlds. Slow on purpose."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import numpy as np

KINDS = {
    "poodles": "dogs", "terriers": "dogs", "dogs": "animals", "cats": "animals", "robins": "birds", "sparrows": "birds",
    "birds": "animals", "animals": "", "girls": "children", "boys": "children", "children": "", "women": "adults",
    "men": "adults", "adults": "", "tourists": "visitors", "visitors": "", "taxis": "cars", "cars": "vehicles",
    "trucks": "vehicles", "bicycles": "vehicles", "vehicles": "", "roses": "flowers", "tulips": "flowers",
    "oaks": "trees", "birches": "trees", "flowers": "plants", "trees": "plants", "plants": "",
}  # fmt: skip
FORMS = {
    "sleeping": "resting", "running": "moving", "jumping": "moving", "eating meat": "eating", "whispering": "talking",
    "shouting": "talking", "reading letters": "reading", "burnt": "damaged", "dark blue": "blue", "bright red": "red",
    "soaked": "wet", "hugged": "touched", "pushed": "touched", "chased": "followed", "greeted": "noticed",
    "insulted": "noticed", "rescued": "helped",
}  # fmt: skip
EXCLUSIVE = [
    ("resting", "moving"), ("whispering", "shouting"), ("sitting", "standing"), ("blue", "red"), ("wet", "dry"),
    ("healthy", "sick"),
]  # fmt: skip
NUMBERS = {"two": 2, "three": 3, "four": 4}
PASTS = {
    "hug": "hugged", "chase": "chased", "notice": "noticed", "rescue": "rescued", "praise": "praised", "pay": "paid",
}  # fmt: skip
COUNT = re.compile(
    r"(all|some|no|not all|(?:exactly|at least|at most) (?:two|three|four)) (\w+) (?:in|at) the (\w+) are ([\w ]+)"
)
ACT = re.compile(r"(?:in|at) the (\w+), the (\w+) (?:(was not|was|did not) )?(\w+)( by)? the (\w+)")
WORLDS = 40_000
Table = tuple[tuple[bool, ...], ...]


def read(text: str) -> dict[str, tuple[str, ...]]:
    """What a text says about each place."""
    return dict(map(_read_sentence, text.lower().removesuffix(".").split(". ")))


def _read_sentence(words: str) -> tuple[str, tuple[str, ...]]:
    counted, acted = COUNT.fullmatch(words), ACT.fullmatch(words)
    if counted:
        quantifier, noun, place, form = counted.groups()
        return place, ("count", quantifier, noun, form)
    assert acted, words
    place, first, helper, verb, by, second = acted.groups()
    agent, patient = (second, first) if by else (first, second)
    past = PASTS.get(verb, f"{verb}ed") if helper == "did not" else verb
    return place, ("act", agent, patient, past, "not" if helper and "not" in helper else "")


def label(premise: str, hypothesis: str) -> int:
    """0, 1 or 2: the hypothesis holds in all, in some, or in none of the worlds of the premise."""
    [(place, claim)] = read(hypothesis).items()
    told = read(premise).get(place)
    if told is None or told[0] != claim[0]:
        return 1
    true, follows = _counts(told, claim) if told[0] == "count" else _acts(told, claim)
    assert true.any(), (premise, hypothesis)
    return 0 if follows[true].all() else 1 if follows[true].any() else 2


def _lineage(word: str) -> set[str]:
    above = FORMS.get(word) or KINDS.get(word)
    return {word} | (_lineage(above) if above else set())


def _counts(told: tuple[str, ...], claim: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Whether two statements about groups are true in each of many random worlds."""
    nouns, forms = (told[2], claim[2]), (told[3], claim[3])
    kinds = (_lineage(nouns[0]), _lineage(nouns[1]), set[str]())
    described = tuple(tuple(noun in kind for noun in nouns) for kind in kinds)
    formed = []
    for chosen in product((False, True), repeat=2):
        closure = set[str]().union(*(_lineage(form) for form, has in zip(forms, chosen, strict=True) if has))
        possible = not any(set(pair) <= closure for pair in EXCLUSIVE)
        formed.append((*(form in closure for form in forms), possible))
    return _try((told[1], claim[1]), described, tuple(formed))


@cache
def _try(quantifiers: tuple[str, str], described: Table, formed: Table) -> tuple[np.ndarray, np.ndarray]:
    """`described`: by kind, whether each noun describes it. `formed`: by combination, whether each form is true of it,
    and whether the combination is possible."""
    sorts = [(kind, forms) for kind in described for forms in formed]
    worlds = _worlds(len(sorts)) * [forms[2] for _, forms in sorts]
    true, named = [], []
    for side, quantifier in enumerate(quantifiers):
        yes, no = (worlds @ [kind[side] and forms[side] is has for kind, forms in sorts] for has in (True, False))
        true.append(_quantified(quantifier, yes, no))
        named.append(yes + no > 0)
    return true[0] & named[0] & named[1], true[1]


@cache
def _worlds(sorts: int) -> np.ndarray:
    """Random worlds: how many things there are of each sort, mostly none."""
    rng = np.random.default_rng(0)
    present = rng.random((WORLDS, sorts)) < rng.choice([0.1, 0.3, 0.6], (WORLDS, 1))
    return rng.integers(1, 6, (WORLDS, sorts)) * present


def _quantified(quantifier: str, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    simple = {"all": no == 0, "some": yes > 0, "no": yes == 0, "not all": no > 0}
    if quantifier in simple:
        return simple[quantifier]
    kind, _, number = quantifier.rpartition(" ")
    return {"exactly": np.equal, "at least": np.greater_equal, "at most": np.less_equal}[kind](yes, NUMBERS[number])


def _acts(told: tuple[str, ...], claim: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Whether two statements about acts are true in each world, by which of the acts happened."""
    true, follows = [], []
    for happened in product((False, True), repeat=4):
        facts = set()
        for people, verb in product({told[1:3], claim[1:3]}, sorted({told[3], claim[3]})):
            if happened[2 * (people == told[1:3]) + (verb == told[3])]:
                facts |= {(people, word) for word in _lineage(verb)}
        true.append(((told[1:3], told[3]) in facts) != bool(told[4]))
        follows.append(((claim[1:3], claim[3]) in facts) != bool(claim[4]))
    return np.array(true), np.array(follows)
