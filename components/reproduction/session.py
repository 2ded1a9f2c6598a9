"""The Reproduction page between runs: a link fills the widgets, they write the link, a page change keeps both."""

from __future__ import annotations

from components.evaluate.session import Apart
from components.page_session import PageSession
from components.reproduction.state import ReproductionState, claim_ids, read, write

SESSION = PageSession("reproduction", Apart("reproduction_apart.", "reproduction_apart", ()), ())
OPEN = "open."
FIELDS = ("paper", "examples", "seed", "show")
key = SESSION.key


def load() -> tuple[ReproductionState, list[str]]:
    """Fills the widgets that have no value yet. Returns the state of the last link and what was wrong in it."""
    link, fresh = SESSION.follow()
    state, said = read(link)
    SESSION.fill({"paper": state.paper, "examples": state.examples, "seed": state.seed, "show": list(state.show)})
    SESSION.fill({f"{OPEN}{id}": True for id in state.opened})
    told = SESSION.tell(said, fresh)
    if fresh and said:
        SESSION.correct(write(state), [])  # what is wrong in a link is not passed on
    return state, told


def from_widgets(loaded: ReproductionState) -> ReproductionState:
    """The state that the controls now show; what is not drawn stays as it was loaded."""
    held = {name: getattr(loaded, name) if (one := SESSION.value(name)) is None else one for name in FIELDS}
    return ReproductionState(
        paper=held["paper"],
        examples=held["examples"],
        seed=held["seed"],
        show=tuple(held["show"]),
        opened=tuple(id for id in claim_ids() if _is_open(id, loaded)),
    )


def _is_open(id: str, loaded: ReproductionState) -> bool:
    held = SESSION.value(f"{OPEN}{id}")
    return id in loaded.opened if held is None else bool(held)


def save(state: ReproductionState, loaded: ReproductionState) -> None:
    """Remembers the state and puts it into the address, unless the address says it already."""
    SESSION.save(write(state), state != loaded)
