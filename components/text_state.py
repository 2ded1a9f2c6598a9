"""What the Text page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from components.look import PLAIN, Look
from components.look_link import read_look, write_look
from engine.data.datasets import Dataset
from engine.errors import ExegesisError, UsageError, unknown
from engine.kept import keep_text, kept_text
from engine.params import as_plain, from_mapping
from engine.registry import Explainer
from engine.request import Example
from engine.words import UNITS

Query = dict[str, list[str]]
Params = dict[str, dict[str, str]]

DATA = "reviews"
START = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion", "integrated_gradients",
         "kernel_shap", "random")  # fmt: skip
LONGEST_IN_LINK = 1500
PARAMETER = re.compile(r"(\w+)\.(\w+)")


@dataclass(frozen=True)
class TextState:
    """`index`: the example's place in the data set, while the texts are still its own. `params`: what was changed."""

    model: str
    methods: tuple[str, ...]
    text: str
    pair: str | None = None
    index: int | None = None
    target: str | None = None
    unit: str = "token"
    seed: int = 0
    look: Look = PLAIN
    params: Params = field(default_factory=dict)

    @property
    def example(self) -> Example:
        return Example(self.text, self.pair)


def read(
    query: Mapping[str, list[str]], models: list[str], methods: Mapping[str, Explainer], data: Dataset
) -> tuple[TextState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = {name: values[-1] for name, values in query.items() if values}
    text, pair, index = _texts(last, data, said)
    return TextState(
        model=last.get("model", models[0] if models else ""),
        methods=_methods(query.get("method", []), methods, said),
        text=text,
        pair=pair,
        index=index,
        target=last.get("target"),
        unit=_unit(last, said),
        seed=_seed(last, said),
        look=read_look(last, said),
        params=_params(last, methods, said),
    ), said


def write(state: TextState, data: Dataset) -> Query:
    """The link that reopens the state."""
    query: Query = {"model": [state.model], "method": list(state.methods) or ["none"]}
    if state.index is not None:
        query |= {"data": [data.id], "index": [str(state.index)]}
    else:
        query |= _text_query("text", state.text)
        query |= {} if state.pair is None else _text_query("pair", state.pair)
    if state.target is not None:
        query["target"] = [state.target]
    query |= {} if state.unit == UNITS[0] else {"unit": [state.unit]}
    query |= {} if state.seed == 0 else {"seed": [str(state.seed)]}
    query |= write_look(state.look)
    for method in state.methods:
        query |= {f"{method}.{name}": [value] for name, value in state.params.get(method, {}).items()}
    return query


def differing(method: Explainer, values: Mapping[str, object]) -> dict[str, str]:
    """The parameters that differ from the method's defaults, as texts."""
    chosen = as_plain(from_mapping(method.params, values, method.id))
    defaults = as_plain(method.params())
    return {name: str(value) for name, value in chosen.items() if value != defaults[name]}


def _text_query(name: str, text: str) -> Query:
    if len(text) <= LONGEST_IN_LINK:
        return {name: [text]}
    return {f"{name}_sha": [keep_text(text)]}


def _texts(last: Mapping[str, str], data: Dataset, said: list[str]) -> tuple[str, str | None, int | None]:
    text, pair = (_text(last, name, said) for name in ("text", "pair"))
    if text is not None:
        return text, pair, None
    index = _index(last, data, said)
    return data[index].text, data[index].text_pair, index


def _text(last: Mapping[str, str], name: str, said: list[str]) -> str | None:
    digest = last.get(f"{name}_sha")
    if digest is None:
        return last.get(name)
    found = kept_text(digest)
    if found is None:
        said.append(
            f"{name}: the link names a long text by its hash, which this machine no longer has. Paste it again."
        )
    return found or ""


def _index(last: Mapping[str, str], data: Dataset, said: list[str]) -> int:
    if last.get("data", data.id) != data.id:
        said.append(str(unknown("data", last["data"], [data.id])))
    given = last.get("index", "0")
    try:
        data[int(given)]
    except (ValueError, UsageError):
        said.append(
            f"index: must be 0 to {len(data) - 1} in {data.id}, got {given[:40]!r}. The first example is shown."
        )
        return 0
    return int(given)


def _methods(given: list[str], known: Mapping[str, Explainer], said: list[str]) -> tuple[str, ...]:
    if given == ["none"]:
        return ()
    said += [str(unknown("method", name[:40], known)) for name in given if name not in known]
    return tuple(dict.fromkeys(name for name in given or START if name in known))


def _unit(last: Mapping[str, str], said: list[str]) -> str:
    given = last.get("unit", UNITS[0])
    if given in UNITS:
        return given
    said.append(str(unknown("unit", given[:40], UNITS)))
    return UNITS[0]


def _seed(last: Mapping[str, str], said: list[str]) -> int:
    given = last.get("seed", "0")
    if given.isascii() and given.isdigit() and int(given) < 2**31:
        return int(given)
    said.append(f"seed: must be a whole number from 0 to {2**31 - 1}, got {given[:40]!r}. 0 is used.")
    return 0


def _params(last: Mapping[str, str], known: Mapping[str, Explainer], said: list[str]) -> Params:
    given: Params = {}
    for name, value in last.items():
        match = PARAMETER.fullmatch(name)
        if match and match[1] in known:
            given.setdefault(match[1], {})[match[2]] = value
    return {method: _checked(known[method], values, said) for method, values in given.items()}


def _checked(method: Explainer, values: Mapping[str, str], said: list[str]) -> dict[str, str]:
    good: dict[str, str] = {}
    for name, value in values.items():
        try:
            good |= differing(method, {name: value})
        except ExegesisError as error:
            said.append(f"{error} The default is used.")
    return good
