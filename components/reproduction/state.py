"""The state of the Reproduction page: plain values that a link fills, the widgets hold, and a page change keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.experiment.session import Apart
from components.inputs.link import Query
from components.link_choice import whole
from components.page_session import PageSession
from components.request_link import last_values, read_seed, write_unusual
from engine.errors import not_allowed, unknown
from engine.reproduction.claims import declaration, thesis_claims
from engine.reproduction.papers import PAPERS
from engine.reproduction.query import ReproductionQuery
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import ThesisQuery, split_topics
from engine.reproduction.verdicts import FORMER_NAMES, VERDICTS

SCALE = "embedded"
THESIS, SMAT = PAPERS
MOST_EXAMPLES = 1_000
FEWEST_EXAMPLES = 2
SESSION = PageSession("reproduction", Apart("reproduction_apart.", "reproduction_apart", ()), ())
OPEN = "open."
FIELDS = ("paper", "examples", "seed", "show")
key = SESSION.key


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
    def queries(self) -> tuple[ReproductionQuery, ...]:
        """The same as `exegesis reproduce` asks, topic by topic."""
        return (SmatQuery(),) if self.paper == SMAT else self.thesis_queries

    @property
    def thesis_queries(self) -> tuple[ThesisQuery, ...]:
        """The queries of the thesis, whichever paper is shown."""
        declared = declaration().examples[SCALE]
        return split_topics(ThesisQuery(SCALE, None if self.examples == declared else self.examples, self.seed))


def default_state() -> ReproductionState:
    """The state that the page opens with: what was declared."""
    return ReproductionState(examples=declaration().examples[SCALE])


def read(query: Query) -> tuple[ReproductionState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    errors: list[str] = []
    last = last_values(query)
    state = ReproductionState(
        examples=_examples(last.get("examples"), errors),
        seed=read_seed(last, errors),
        show=_known("show", [FORMER_NAMES.get(one, one) for one in query.get("show", [])], VERDICTS, errors),
        opened=_known("claim", query.get("claim", []), claim_ids(), errors),
        paper=_paper(last.get("paper"), errors),
    )
    return state, errors


def write(state: ReproductionState) -> Query:
    """The link that reopens the state: only what differs from the default is written."""
    query: Query = {"show": list(state.show)} if state.show else {}
    query |= {"claim": list(state.opened)} if state.opened else {}
    start = default_state()
    return query | write_unusual(
        (name, getattr(state, name), getattr(start, name)) for name in ("paper", "examples", "seed")
    )


def claim_ids() -> tuple[str, ...]:
    """Of all papers, in their order."""
    return (*(claim.id for claim in thesis_claims()), *declaration(SMAT).ids)


def _paper(given: str | None, errors: list[str]) -> str:
    if given is None or given in PAPERS:
        return given or THESIS
    errors.append(str(unknown("paper", given[:40], tuple(PAPERS))))
    return THESIS


def _examples(given: str | None, errors: list[str]) -> int:
    start = default_state().examples
    number = start if given is None else whole(given, MOST_EXAMPLES)
    if number is not None and number >= FEWEST_EXAMPLES:
        return number
    allowed = f"a whole number from {FEWEST_EXAMPLES} to {MOST_EXAMPLES}"
    errors.append(str(not_allowed("examples", allowed, (given or "")[:40], f"{start} is used.")))
    return start


def _known(name: str, given: Sequence[str], known: Sequence[str], errors: list[str]) -> tuple[str, ...]:
    errors += [str(unknown(name, one[:40], known)) for one in given if one not in known]
    return tuple(one for one in known if one in given)


def load() -> tuple[ReproductionState, list[str]]:
    """Fill the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    link, fresh = SESSION.follow()
    state, errors = read(link)
    SESSION.fill({"paper": state.paper, "examples": state.examples, "seed": state.seed, "show": list(state.show)})
    SESSION.fill({f"{OPEN}{id}": True for id in state.opened})
    current = SESSION.tell(errors, fresh)
    if fresh and errors:
        SESSION.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, current


def from_widgets(loaded: ReproductionState) -> ReproductionState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    values = {name: getattr(loaded, name) if (one := SESSION.value(name)) is None else one for name in FIELDS}
    is_open = {id: SESSION.value(f"{OPEN}{id}") for id in claim_ids()}
    return ReproductionState(
        paper=values["paper"],
        examples=values["examples"],
        seed=values["seed"],
        show=tuple(values["show"]),
        opened=tuple(id for id, value in is_open.items() if (id in loaded.opened if value is None else value)),
    )


def save(state: ReproductionState, loaded: ReproductionState) -> None:
    """Remember the state and put it into the address, unless the address says it already."""
    SESSION.save(write(state), state != loaded)
