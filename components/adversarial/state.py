"""State of the Adversarial page as plain values, read from its link and written to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from components.adversarial.descriptions import BOTH
from components.experiment.state import read_models
from components.inputs import choices
from components.inputs.choices import Focus, Opened
from components.inputs.text_choice import TextFocus
from components.links import (
    Query,
    last_values,
    opened_option,
    read_choice,
    read_methods,
    read_record,
    seed_option,
    write_record,
)
from engine.attacks.plan import (
    METHODS,
    OBJECTIVES,
    PATH_STEPS,
    PIXELS,
    PLACES,
    AttackParams,
    AttackPlan,
    AttackRequest,
    check_method,
)
from engine.errors import ExegesisError, UsageError
from engine.params import Plain, from_mapping, option, parse_fraction
from engine.registry import Explainer
from engine.request import Input

NAMES = tuple(field.name for field in dataclasses.fields(AttackParams) if field.name != "objective")
HELP = {field.name: field.metadata["help"] for field in dataclasses.fields(AttackParams)}
DEFAULT_PLACE = {"text": PLACES[0], "image": PIXELS}
"""Pixels for pictures, so that the attacked picture can be shown."""
DEFAULT_STEPS = 100
"""Enough to change most maps, at a fifth of the thesis's 500 steps."""
EPSILON_TEXTS = {PLACES[0]: "2", PIXELS: "8/255"}
SettingTexts = dict[str, str]
"""Non-default settings as strings."""
METHOD = "gradient_x_input"
CHOICES = (BOTH, *OBJECTIVES)
OTHERS = {"text": ("gradient_l2", "attention_rollout", "occlusion"), "image": ("gradient_l2", "attention_rollout")}
"""Other methods whose maps of the attacked input are shown."""
PATH = "integrated_gradients"
"""The method that integrates along a path, the only one with its own parameters here."""
MANY_METHODS = ("gradient_l2",)
MANY_OTHERS = ("gradient_x_input", "attention_rollout")
EXAMPLES, MOST_EXAMPLES = 50, 1000
"""The default number of examples, for which results are shipped (`engine.shipped.make`), and the largest number."""
SCALES = {"own": "Own", "one": "Shared"}
"""Color scales of the maps before and after."""
MEASURES = ("rank_change", "top_k_sum_change_normalised", "top_k_sum_change", "probability_change",
            "probability_distance", "class_kept", "constraint_kept", "fooled")  # fmt: skip
MOST_POINTS = 1024
"""Largest number of points on a path."""
WHICH = {"all": "All", "right": "Predicted right", "wrong": "Predicted wrong"}


LINK_FIELDS = (*NAMES, "other", "on", "attacked", "bar", "asked")
"""Names of fields in a link that are not fields of the state."""


def default_settings(kind: str) -> dict[str, object]:
    """Return the initial values of the controls; `epsilon` is a string, because it may be a fraction or empty."""
    plain = dataclasses.asdict(AttackParams(place=DEFAULT_PLACE[kind], steps=DEFAULT_STEPS))
    return {name: "" if name == "epsilon" else plain[name] for name in NAMES}


def settings_as_text(kind: str, widgets: Mapping[str, object]) -> SettingTexts:
    """Return the settings that differ from their defaults, as strings."""
    start = default_settings(kind)
    values = {name: value.strip() if isinstance(value, str) else value for name, value in widgets.items()}
    return {name: _as_text(values[name]) for name in NAMES if name in values and values[name] != start[name]}


def widget_settings(kind: str, strength: SettingTexts) -> dict[str, object]:
    """Return the values of the controls for valid settings (`read_settings`)."""
    params = parse_settings(kind, strength)
    values = {**default_settings(kind), **{name: getattr(params, name) for name in strength}}
    return values | {"epsilon": strength.get("epsilon", "")}


def parse_settings(kind: str, strength: SettingTexts, objective: str | None = None) -> AttackParams:
    """Return the parameters of the attack. Errors: a value that is not allowed."""
    values: dict[str, object] = {"place": DEFAULT_PLACE[kind], "steps": DEFAULT_STEPS, **strength}
    values |= {"epsilon": parse_fraction("epsilon", strength["epsilon"])} if "epsilon" in strength else {}
    values |= {"objective": objective} if objective else {}
    params: AttackParams = from_mapping(AttackParams, values, "attack")
    return params


def engine_settings(params: AttackParams) -> dict[str, Plain]:
    """Return the settings as `exegesis attack` passes them, so that both share cached results."""
    plain = {name: getattr(params, name) for name in NAMES}
    return {name: value for name, value in plain.items() if name != "epsilon" or value is not None}


def read_settings(kind: str, last: Mapping[str, str], errors: list[str]) -> SettingTexts:
    """Return the settings of a link. A value that is not allowed adds an error and is replaced by its default."""
    settings: SettingTexts = {}
    for name in NAMES:
        if name in last:
            try:
                parse_settings(kind, {name: last[name]})
                settings[name] = last[name]
            except ExegesisError as error:
                errors.append(f"{error} The default is used.")
    return settings_as_text(kind, widget_settings(kind, settings))


def _as_text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class ManyExamples:
    """Settings of attacks on many examples.

    `models`: empty for the model of the single attack. `which`: the included examples, by whether the model was right
    before the attack. `picked`: the selected bar, as model, method and objective. `transfer`: other methods measured on
    the attacked inputs. `of`: the method after whose attacks all methods are shown; empty to show each attacked method
    after its own attacks.
    """

    models: tuple[str, ...] = ()
    methods: tuple[str, ...] = MANY_METHODS
    examples: int = option(EXAMPLES, low=1, high=MOST_EXAMPLES, fallback="{} are used.")
    measure: str = option(MEASURES[0], choices=MEASURES)
    which: str = option("all", choices=tuple(WHICH))
    picked: tuple[str, ...] = option((), exact=True)
    transfer: tuple[str, ...] = MANY_OTHERS
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class AdversarialState:
    """State of the Adversarial page.

    `objective`: one objective, or both. `strength`: non-default settings. `others`: other methods shown for the
    attacked input. `points`: points on the path of integrated gradients. `start`: baseline of that path, empty for the
    default.
    """

    kind: str
    focus: Focus
    method: str = METHOD
    objective: str = option(BOTH, choices=CHOICES)
    strength: SettingTexts = field(default_factory=dict)
    seed: int = seed_option()
    points: int = option(PATH_STEPS, low=1, high=MOST_POINTS, fallback="{} are used.")
    start: str = ""
    scale: str = option("own", choices=tuple(SCALES))
    others: tuple[str, ...] = ()
    opened: tuple[str, ...] = opened_option("others", default=("others",))
    many: ManyExamples = field(default_factory=ManyExamples)

    @property
    def input(self) -> Input | None:
        """The text or picture, or None if there is none."""
        return self.focus.input

    @property
    def objectives(self) -> tuple[str, ...]:
        return OBJECTIVES if self.objective == BOTH else (self.objective,)

    @property
    def path(self) -> dict[str, Plain]:
        """Non-default parameters of integrated gradients."""
        points = {} if self.points == PATH_STEPS else {"n_steps": self.points}
        return points | ({"baseline": self.start} if self.start else {})

    def request(self, objective: str) -> AttackRequest:
        """The request for one attack. Errors: no picture, an invalid parameter."""
        if self.input is None:
            raise UsageError("picture: none is selected. Choose one above.")
        attack = {**engine_settings(parse_settings(self.kind, self.strength, objective)), "objective": objective}
        params = self.path if self.method == PATH else {}
        return AttackRequest(self.focus.model, self.method, self.input, attack, params, self.seed)

    def plan(self) -> AttackPlan:
        """Return the plan of attacks on many examples, which equals that of `exegesis attack`."""
        return AttackPlan(
            models=self.many.models or (self.focus.model,),
            dataset=self.focus.data,
            methods=self.many.methods,
            objectives=self.objectives,
            examples=self.many.examples,
            seed=self.seed,
            split=self.focus.split or None,
            attack=engine_settings(parse_settings(self.kind, self.strength)),
            params={PATH: self.path} if PATH in self.many.methods and self.path else {},
            transfer=self.many.transfer,
        )


def read_state(
    kind: str, query: Query, models: list[str], methods: Mapping[str, Explainer], opened: Opened
) -> tuple[AdversarialState, list[str]]:
    """Return the state of a link to an input of the given kind, and its errors."""
    errors: list[str] = []
    last = last_values(query)
    focus = choices.CHOICES[kind].from_link(last, models, opened, errors)
    attackable = {id: method for id, method in methods.items() if id in METHODS}
    state = AdversarialState(kind=kind, focus=focus, method=_method(last, attackable, methods, errors))
    state = read_record(state, query, errors, names=["objective"])
    state = replace(state, strength=read_settings(kind, last, errors))
    state = read_record(state, query, errors, names=["seed", "scale"])
    state = replace(state, others=read_methods(query.get("other", []), methods, OTHERS[kind], errors))
    state = read_record(state, query, errors, names=["opened", "points"])
    start = read_choice("start", last, ("", *baselines(methods)), errors)
    return replace(state, start=start, many=_many(query, attackable, methods, errors)), errors


def write(state: AdversarialState) -> Query:
    """The link that reopens the state: the kind and all non-default values."""
    focus = choices.CHOICES[state.kind].to_link(state.focus)
    many = state.many
    unusual = write_record(state, names=["method", "objective", "seed", "points", "start", "scale", "opened"])
    unusual |= write_record(many, names=["examples", "measure", "which", "of"])
    lists = (
        ("other", state.others, OTHERS[state.kind]), ("on", many.models, ()), ("attacked", many.methods, MANY_METHODS),
        ("bar", many.picked, ()), ("asked", many.transfer, MANY_OTHERS),
    )  # fmt: skip
    several: Query = {name: list(value) or ["none"] for name, value, usual in lists if value != usual}
    strength: Query = {name: [value] for name, value in state.strength.items()}
    return {"input": [state.kind]} | focus | unusual | strength | several


def _method(
    last: Mapping[str, str], attackable: Mapping[str, Explainer], methods: Mapping[str, Explainer], errors: list[str]
) -> str:
    """Return the attacked method of a link. If it cannot be attacked, add an error and return the default."""
    method = last.get("method", METHOD)
    if method in attackable:
        return method
    try:
        check_method(method, next(iter(methods.values())).kind)
    except ExegesisError as error:
        errors.append(str(error))
    return METHOD


def baselines(methods: Mapping[str, Explainer]) -> tuple[str, ...]:
    """The baselines of integrated gradients, the default first."""
    baseline = next((field for field in fields(methods[PATH].params) if field.name == "baseline"), None)
    if baseline is None:
        return ()
    return tuple(sorted(baseline.metadata["choices"], key=lambda one: one != baseline.default))


def _many(
    query: Query, attackable: Mapping[str, Explainer], methods: Mapping[str, Explainer], errors: list[str]
) -> ManyExamples:
    many = read_record(ManyExamples(), query, errors, names=["examples"])
    picked = tuple(query.get("bar", []))
    many = replace(
        many,
        models=read_models([name for name in query.get("on", []) if name != "none"], (), errors),
        methods=read_methods(query.get("attacked", []), attackable, MANY_METHODS, errors),
        picked=picked if len(picked) == 3 else (),
    )
    many = read_record(many, query, errors, names=["measure", "which"])
    transfer = read_methods(query.get("asked", []), methods, MANY_OTHERS, errors)
    return replace(many, transfer=transfer, of=read_choice("of", last_values(query), ("", *attackable), errors))


def state_of_plan(plan: AttackPlan, measure: str) -> AdversarialState:
    """Return the state that shows the results of a plan on texts by one measure, with the first text above."""
    return AdversarialState(
        kind="text",
        focus=TextFocus(plan.models[0], "", None, 0, plan.dataset),
        objective=plan.objectives[0] if len(plan.objectives) == 1 else BOTH,
        strength=settings_as_text("text", plan.attack),
        seed=plan.seed,
        many=ManyExamples(plan.models, plan.methods, plan.examples, measure, transfer=plan.transfer),
    )
