"""What the Reproduction page shows, as plain values: read from the link and written back to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.link_choice import whole
from components.request_link import last_values, read_seed, write_unusual
from components.text.focus import Query
from engine.errors import not_allowed, unknown
from engine.reproduction.asked import Asked, of_topics
from engine.reproduction.claims import declared, every_claim
from engine.reproduction.smat.claims import declared as smat_declared
from engine.reproduction.verdicts import RENAMED, VERDICTS

SCALE = "embedded"
THESIS, SMAT = PAPERS = ("thesis", "smat")
MOST_EXAMPLES = 1_000
FEWEST_EXAMPLES = 2


@dataclass(frozen=True, kw_only=True)
class ReproductionState:
    """`show`: verdicts whose claims are listed, none for all. `opened`: claims whose numbers are open. `paper`: whose
    claims they are."""

    examples: int
    seed: int = 0
    show: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    paper: str = THESIS

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The same as `exegesis reproduce thesis` asks, topic by topic."""
        declared_count = declared().examples[SCALE]
        return of_topics(Asked(SCALE, None if self.examples == declared_count else self.examples, self.seed))


def usual() -> ReproductionState:
    """What the page opens with: what was declared."""
    return ReproductionState(examples=declared().examples[SCALE])


def read(query: Query) -> tuple[ReproductionState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    state = ReproductionState(
        examples=_examples(last.get("examples"), said),
        seed=read_seed(last, said),
        show=_known("show", [RENAMED.get(one, one) for one in query.get("show", [])], VERDICTS, said),
        opened=_known("claim", query.get("claim", []), claim_ids(), said),
        paper=_paper(last.get("paper"), said),
    )
    return state, said


def write(state: ReproductionState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    query: Query = {"show": list(state.show)} if state.show else {}
    query |= {"claim": list(state.opened)} if state.opened else {}
    start = usual()
    return query | write_unusual(
        (name, getattr(state, name), getattr(start, name)) for name in ("paper", "examples", "seed")
    )


def claim_ids() -> tuple[str, ...]:
    """Of all papers, in their order."""
    return (*(claim.id for claim in every_claim()), *smat_declared().ids)


def _paper(given: str | None, said: list[str]) -> str:
    if given is None or given in PAPERS:
        return given or THESIS
    said.append(str(unknown("paper", given[:40], PAPERS)))
    return THESIS


def _examples(given: str | None, said: list[str]) -> int:
    start = usual().examples
    found = start if given is None else whole(given, MOST_EXAMPLES)
    if found is not None and found >= FEWEST_EXAMPLES:
        return found
    allowed = f"a whole number from {FEWEST_EXAMPLES} to {MOST_EXAMPLES}"
    said.append(str(not_allowed("examples", allowed, (given or "")[:40], f"{start} is used.")))
    return start


def _known(name: str, given: Sequence[str], known: Sequence[str], said: list[str]) -> tuple[str, ...]:
    said += [str(unknown(name, one[:40], known)) for one in given if one not in known]
    return tuple(one for one in known if one in given)
