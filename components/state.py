"""The state of a page: the plain values in its link, its widgets between runs, and the selection that pages share.

* `PageState`: the fields that the states of all pages with maps share; `read_shared` and `write_shared` are its link.
* `Selection`: the model, data set and example that all pages of a kind of input share.
* `PageSession`: fills the widgets from a link, writes the link from the widgets, and keeps both over page changes.
* `KindSessions`: one session for texts and one for pictures, for a page that explains both.

Streamlit can bind a widget to the address by itself (`bind="query-params"`). No widget here is bound, because with
Streamlit 1.67 links would change and break:

* The widget's key is its name in the link, in one namespace for all pages. Our links use `model`, `seed` or `view` on
  several pages, with values of different types, and separately for texts and pictures. The values of one page would go
  to another.
* A link would hold what the widget displays: "Shared top 15%" instead of `top_k`, `true` instead of `on`. Old links
  would silently lose these values, and a changed label would break new links.
* A widget that is not drawn, such as a control of results that are not computed yet, loses its part of the link.
* If two pages bind the same name, `st.page_link` opens the second with the value of the first instead of its own, and
  `st.switch_page` raises. A link to the current page leaves the address without its values.
* A number is parsed by `float`: 1.5 silently becomes 1, and 400 digits end the page with an error.

Errors in a link must be reported in any case, so its values have to be read and checked here first.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import streamlit as st

from components.browse.listing import DEFAULT_LISTING, Listing
from components.controls import (
    PERSIST,
    address_query,
    forget_changes,
    is_history_navigation,
    record_link,
    restore_controls,
    set_control,
)
from components.errors import escape_label, show_note
from components.inputs.datasets import complete_dataset, dataset_label, model_label, model_name, sort_by_task
from components.links import (
    Params,
    Query,
    Record,
    last_values,
    non_default_params,
    read_methods,
    read_params,
    read_record,
    seed_option,
    target_option,
    unknown_fields,
    write_methods,
    write_record,
)
from components.navigation import visit_number
from engine.errors import excerpt
from engine.experiments.options import Option, options_of
from engine.format import join_names
from engine.params import as_plain, from_mapping, option
from engine.registry import Explainer

QUESTIONS = ("curves", "agreement")
"""The tests of the maps of an example."""
MEASURES = ("spearman", "top_k")
"""Measures of the agreement of maps."""
LAST = "looked_at_last"
"""Session key: the `link` of the selection that was shown last."""
KIND_TITLES = {"text": "Text", "image": "Picture"}
KINDS = tuple(KIND_TITLES)
MODEL_HELP = (
    "A model of the list, the folder of a checkpoint, or a hub ID such as owner/name. The score is accuracy, or "
    "a correlation r, on the data set; there is none if the model was not measured on it."
)
MOST_NAMED = 4
"""Maximum number of unknown fields of a link that are named."""
PARAMETER = "input"
"""Name of the kind of input in a link."""


@dataclass(frozen=True, kw_only=True)
class PageState:
    """The fields that the states of all pages with maps share; those in `SHARED` have one control each.

    `pins`: indices of the pinned parts, ascending, from 0. `params`: parameters that differ from their defaults.
    `opened`: open sections of the page. `question`: the selected test of the maps; `removal` and `measure`: its
    settings.

    A page redeclares `pins`, `opened` and `removal` with its own options.
    """

    methods: tuple[str, ...]
    target: str | None = target_option()
    seed: int = seed_option()
    pins: tuple[int, ...] = ()
    browse: Listing = DEFAULT_LISTING
    opened: tuple[str, ...] = ()
    question: str = option(QUESTIONS[0], choices=QUESTIONS)
    removal: str
    measure: str = option(MEASURES[0], choices=MEASURES)
    params: Params = field(default_factory=dict)


SHARED = ("target", "seed", "pins", "question", "removal", "measure")
State = TypeVar("State", bound=PageState)


def read_shared(start: State, query: Query, methods: Mapping[str, Explainer], said: list[str]) -> State:
    """Return the state with the shared fields of a link. A sentence is added to `said` for each rejected value."""
    names = ("target", "seed", "pins", "browse", "opened", "question", "removal", "measure")
    chosen = read_methods(query.get("method", []), methods, start.methods, said)
    state = read_record(start, query, said, names=names)
    return replace(state, methods=chosen, params=read_params(last_values(query), methods, said))


def write_shared(state: PageState) -> Query:
    """Return the link of the shared fields: the methods, and other values if they differ from their defaults."""
    return write_methods(state.methods, state.params) | write_record(state, names=(*SHARED, "opened", "browse"))


def last_selection() -> str:
    """Return the `link` of the selection that the session showed last; empty before the first."""
    return str(st.session_state.get(LAST, ""))


@dataclass(frozen=True)
class Selection:
    """The model, data set and example of a page, shared by all pages of its kind of input.

    `widgets`: prefix of its widget keys. `link`: its session key. `names`: its names in a link.
    """

    widgets: str
    link: str
    names: Collection[str]

    def key(self, name: str) -> str:
        """Return the widget key of a control."""
        return self.widgets + name

    def value(self, name: str) -> object:
        """Return the value of a control, or None before it is drawn."""
        now = st.session_state.get(self.key(name))
        return model_name(now) if name == "model" and isinstance(now, str) else now

    def put(self, name: str, new: object) -> None:
        """Set a control before it is drawn."""
        set_control(self.key(name), new)

    def carried(self) -> Query:
        """Return the selection of the session as part of a link; empty before the first."""
        return st.session_state.get(self.link, {})

    def carry(self, link: Mapping[str, list[str]]) -> None:
        """Store the selection in a page's link for all other pages."""
        st.session_state[self.link] = self.focus_of(link)
        st.session_state[LAST] = self.link

    def turn_to(self, **names: str) -> None:
        """Select another model or data set. A new data set discards everything but the model."""
        link = self.carried()
        if "data" in names:
            link = {name: values for name, values in link.items() if name == "model"}
        st.session_state[self.link] = link | {name: [value] for name, value in names.items()}

    def focus_of(self, link: Mapping[str, list[str]]) -> Query:
        """Return the part of a link that holds the selection."""
        return {name: list(link[name]) for name in self.names if name in link}

    def model_control(self, known: Collection[str], misfits: Collection[str], data: str) -> None:
        """Draw the choice of the model. `misfits`: models that do not fit the data set `data`; they are marked."""
        options = sort_by_task(self.with_chosen(known, "model"), misfits)
        labels = {model: model_label(model, model not in misfits, data) for model in options}
        renew_models(self.key("model"), lambda model: labels.get(model, model))
        st.selectbox(
            "Model",
            options,
            key=self.key("model"),
            format_func=lambda model: labels.get(model, model),
            accept_new_options=True,
            placeholder="Pick one, or type a folder or hub ID",
            help=MODEL_HELP,
            persist_state=PERSIST,
        )

    def offer_fitting(self, reason: str, dataset: str, take: Callable[[], None], model: str) -> None:
        """Draw why the model does not fit the data set, with a button for a data set and one for a model that fit.

        `dataset`, `model`: their names, or empty for no button. `take`: shows the data set's first example.
        """
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=self.key("offer set")):
            st.caption(escape_label(reason), width="content")
            if dataset:
                st.button(
                    f"Use {escape_label(dataset)} instead", key=self.key("fitting set"), on_click=self._take_dataset,
                    args=(dataset, take),
                )  # fmt: skip
            if model:
                st.button(
                    f"Use {escape_label(model)}", key=self.key("better set"), on_click=self.put, args=("model", model)
                )

    def _take_dataset(self, dataset: str, take: Callable[[], None]) -> None:
        self.put("data", dataset)
        take()

    def data_control(
        self, known: Collection[str], help: str, on_change: Callable[[], None], own: str | None = None
    ) -> None:
        """Draw the choice of the data set. `own`: placeholder while the input is none of its examples."""
        st.selectbox(
            "Data set",
            self.with_chosen(known, "data"),
            key=self.key("data"),
            format_func=dataset_label,
            accept_new_options=True,
            placeholder=own,
            help=help,
            on_change=self._choose_dataset,
            args=(tuple(known), on_change),
            persist_state=PERSIST,
        )

    def _choose_dataset(self, known: Collection[str], on_change: Callable[[], None]) -> None:
        complete_dataset(self.key("data"), known)
        on_change()

    def with_chosen(self, known: Collection[str], name: str) -> list[str]:
        """Return the options of a control that accepts other values: the known ones and its current value."""
        chosen = self.value(name)
        return list(dict.fromkeys([*known, str(chosen)])) if chosen else list(known)


class Apart(Selection):
    """A selection that is not shared, because many of its models and examples do not fit other pages."""

    def carry(self, link: Mapping[str, list[str]]) -> None:
        """Do nothing."""


def apart(page: str) -> Apart:
    """Return the selection of a page that shares none."""
    return Apart(f"{page}_apart.", f"{page}_apart", ())


def renew_models(key: str, label_of: Callable[[str], str]) -> None:
    """Send the chosen models of a control to the browser again if their labels have changed.

    The browser sends back the labels that it shows, which may be earlier ones or bare names. `key`: widget key of a
    control of one or several models that is not drawn yet.
    """
    held = st.session_state.get(key)
    names = [model_name(str(one)) for one in ([held] if isinstance(held, str) else held or [])]
    new = names[0] if isinstance(held, str) else names
    labels, memory = list(map(label_of, names)), f"{key}.labels"
    if names and (new != held or st.session_state.get(memory, labels) != labels):
        st.session_state[key] = new
    st.session_state[memory] = labels


@dataclass(frozen=True)
class PageSession:
    """The widgets and the link of a page.

    `belonging`: names in a link that belong to one example. They are dropped when another page has changed the
    selection.
    """

    page: str
    selection: Selection
    belonging: Collection[str]

    @property
    def widgets(self) -> str:
        """Prefix of the keys of all widgets of the page except those of the selection."""
        return f"{self.page}_page."

    def key(self, name: str) -> str:
        """Return the widget key of a control."""
        return self.widgets + name

    def value(self, name: str) -> Any:
        """Return the value of a control, or None before it is drawn."""
        return st.session_state.get(self.key(name))

    def put(self, name: str, new: object) -> None:
        """Set a control before it is drawn."""
        set_control(self.key(name), new)

    def follow(self) -> tuple[Query, bool]:
        """Return the link of the page, and whether it was just opened, in which case no widget has a value yet."""
        address = address_query()
        is_stale = self._is_stale(address)
        changed = bool(address and address != st.session_state.get(self._seen_key)) and not is_stale
        fresh = self._link not in st.session_state or changed
        if fresh:
            forget_changes()
            self.clear()
            st.session_state[self._link] = address or self.selection.carried()
            # Now, because a run that a click interrupts never reaches `save`.
            self.selection.carry(st.session_state[self._link])
        elif self.selection.carried() != self.selection.focus_of(st.session_state[self._link]):
            self.clear()
            st.session_state[self._link] = self._with_selection(st.session_state[self._link], self.selection.carried())
        restore_controls()
        if not is_stale:
            st.session_state[self._seen_key], st.session_state[self._before] = address, (visit_number(), [])
        return st.session_state[self._link], fresh

    def tell(
        self, said: Sequence[str], fresh: bool, corrected: Callable[[], Query] | None = None, state: Any = None,
        more: Iterable[str] = (),
    ) -> list[str]:  # fmt: skip
        """Return the errors of the link, from when it was opened until the page shows something else.

        `corrected`: returns the link to store in place of one with errors, so that these are not passed on. Fields of
        the link that are neither in `state` nor in `more` are removed; `save` names them.
        """
        if fresh:
            link: Query = st.session_state[self._link]
            unknown = {} if state is None else unknown_fields(link, state, {*self.selection.names, *more})
            st.session_state[self._unknown_key] = unknown
            st.session_state[self._link] = {name: values for name, values in link.items() if name not in unknown}
            st.session_state[self._message_key] = list(said)
            if said and corrected is not None:
                st.session_state[self._link] = corrected()
        return list(st.session_state[self._message_key])

    def correct(self, link: Query, said: Sequence[str]) -> None:
        """Store this link in place of one with values that do not exist, and add the errors of that link."""
        st.session_state[self._message_key] = [*st.session_state[self._message_key], *said]
        st.session_state[self._link] = link

    def save(self, link: Query, changed: bool) -> None:
        """Store the link of the page if it changed, and put it into the address unless it is already there."""
        if changed:
            st.session_state[self._link], st.session_state[self._message_key] = link, []
            st.session_state[self._unknown_key] = {}
        if names := st.session_state.get(self._unknown_key):
            show_note(describe_unknown(names))
        shown: Query = st.session_state[self._link]
        self.selection.carry(shown)
        if shown != (address := address_query()):
            st.session_state[self._before][1].append(address)
            st.query_params.from_dict(shown)
            st.session_state[self._seen_key] = address_query()
        record_link(shown)

    def remember(self, state: Any, loaded: Any, write: Callable[[Any], Query], unsaid: bool = False) -> None:
        """Save the link of the state if it changed. `unsaid`: the address lacks the state even without a change."""
        changed = state != loaded or unsaid
        self.save(write(state) if changed else {}, changed)

    def fill(self, values: Mapping[str, object]) -> None:
        """Set the controls that have no value yet."""
        for name, initial in values.items():
            st.session_state.setdefault(self.key(name), initial)

    def fill_shared(self, state: PageState, methods: Mapping[str, Explainer]) -> None:
        """Set the controls of the fields of `PageState` that have no value yet."""
        self.fill({"methods": list(state.methods), **control_values("", state, SHARED)})
        self.fill(control_values("browse.", state.browse))
        self.fill({f"open.{name}": name in state.opened for name in sections_of(state)})
        self.fill_params(state.params, methods)

    def fill_params(self, params: Params, methods: Mapping[str, Explainer]) -> None:
        """Set the controls of the methods' parameters that have no value yet."""
        for id, texts in params.items():
            values = as_plain(from_mapping(methods[id].params, texts, id))
            self.fill({f"{id}.{name}": values[name] for name in texts})

    def read_shared(self, loaded: State, methods: Mapping[str, Explainer]) -> State:
        """Return the state with the shared fields as the controls show them."""
        return replace(
            self.read_record("", loaded, SHARED),
            methods=tuple(self.value("methods")),
            browse=self.read_record("browse.", loaded.browse),
            opened=self.opened_sections(loaded),
            params=self.params(methods),
        )

    def opened_sections(self, state: Any) -> tuple[str, ...]:
        """Return the open sections."""
        return tuple(name for name in sections_of(state) if self.value(f"open.{name}"))

    def params(self, methods: Mapping[str, Explainer]) -> Params:
        """Return the parameters of the chosen methods that differ from their defaults."""
        changed: Params = {}
        for id in self.value("methods") or ():
            names = as_plain(methods[id].params())
            values = {
                name: self.value(f"{id}.{name}") for name in names if self.key(f"{id}.{name}") in st.session_state
            }
            if differing := non_default_params(methods[id], values):
                changed[id] = differing
        return changed

    def values(self, prefix: str, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of the controls that have one, by name."""
        values = {name: self.value(prefix + name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def read_record(self, prefix: str, loaded: Record, names: Iterable[str] | None = None) -> Record:
        """Return the record that the controls show. A field whose control is not drawn keeps its loaded value.

        `names`: the fields that have a control; all by default.
        """
        record: type = type(loaded)
        options = options_of(record)
        names = options if names is None else names
        drawn = [name for name in names if self.key(prefix + name) in st.session_state]
        values = {name: _field_value(options[name], self.value(prefix + name)) for name in drawn}
        changed = {name: value for name, value in values.items() if value is not None or is_nullable(options[name])}
        return replace(loaded, **changed)  # type: ignore[type-var]

    def clear(self) -> None:
        """Remove the values of all controls."""
        self._keep(())

    def replace(self, values: Mapping[str, object]) -> None:
        """Set other values, in a callback; controls without a new value are reset.

        A choice made before the browser has received them sends the old values, so each new value is recorded (see
        `set_control`).
        """
        self._keep({self.key(name) for name in values})
        for name, new in values.items():
            self.put(name, new)

    def _keep(self, keys: Collection[str]) -> None:
        """Remove the values of all controls except these."""
        own = [name for name in st.session_state if str(name).startswith((self.widgets, self.selection.widgets))]
        for name in own:
            if name not in keys:
                del st.session_state[name]

    def _with_selection(self, link: Query, focus: Query) -> Query:
        """Return the link of this page with the selection of another page."""
        others = {name: values for name, values in link.items() if name not in self.selection.focus_of(link)}
        return {name: values for name, values in others.items() if name not in self.belonging} | focus

    def _is_stale(self, address: Query) -> bool:
        """Whether the browser has not received the last link yet: it sends an earlier one that nobody went back to.

        The address of a visitor who comes from another page is not stale: they opened that link.
        """
        number, links = st.session_state.get(self._before, (0, []))
        return address in links and number == visit_number() and not is_history_navigation()

    @property
    def _link(self) -> str:
        return f"{self.page}_kept_link"

    @property
    def _seen_key(self) -> str:
        return f"{self.page}_seen_link"

    @property
    def _before(self) -> str:
        """Session key: the visit to the page, and the links in its address since the browser's last response."""
        return f"{self.page}_links_before"

    @property
    def _message_key(self) -> str:
        return f"{self.page}_said"

    @property
    def _unknown_key(self) -> str:
        return f"{self.page}_unknown"


def describe_unknown(unknown: Mapping[str, str]) -> str:
    """Describe the fields of a link that a page does not have, with the most similar ones that it has."""
    names, nearest = list(unknown), dict.fromkeys(filter(None, unknown.values()))
    hint = f": did you mean {', '.join(nearest)}?" if nearest else "."
    quoted = join_names([excerpt(name, 40) for name in names[:MOST_NAMED]])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{quoted}{more} in the link {verb} not known here{hint} The page opened with the rest of the link."


class KindSessions:
    """The sessions of a page that serves texts and pictures, one for each, so that switching loses nothing.

    The kind of input comes from the link, the switch or the last selection. `page`: prefix of the session keys.
    `selections`: by kind; without them the page shares none. `belonging`: see `PageSession`.
    """

    def __init__(
        self, page: str, selections: Mapping[str, Selection] | None = None, belonging: Collection[str] = ()
    ) -> None:
        self.page = page
        self.selections = selections or dict.fromkeys(KINDS, apart(page))
        self._sessions = {kind: PageSession(f"{page}_{kind}", one, belonging) for kind, one in self.selections.items()}

    def __getitem__(self, kind: str) -> PageSession:
        return self._sessions[kind]

    def key(self, kind: str, name: str) -> str:
        """Return the widget key of a control."""
        return self[kind].key(name)

    def put(self, kind: str, name: str, value: object) -> None:
        """Set a control before it is drawn."""
        self[kind].put(name, value)

    def remember(self, state: Any, loaded: Any, write: Callable[[Any], Query]) -> None:
        """Store the link of the state if it changed, and put it into the address unless it is already there."""
        # An address without a kind is that of a text.
        unsaid = state.kind != KINDS[0] and st.query_params.get(PARAMETER) != state.kind
        self[state.kind].remember(state, loaded, write, unsaid)

    def show(self, kind: str, values: Mapping[str, object]) -> None:
        """Switch to this kind with other values of the controls, in a callback."""
        self[kind].replace(values)
        st.session_state[self.switched] = kind

    @property
    def switched(self) -> str:
        """Widget key of the switch."""
        return f"{self.page}.kind"

    @property
    def last_kind_key(self) -> str:
        """Session key: the kind of input that the page showed last."""
        return f"{self.page}.seen_kind"

    def chosen(self) -> str:
        """Return the kind of a new link, else of the switch, else the one that this page or the session showed last."""
        linked = st.query_params.get(PARAMETER)
        if linked in KINDS and linked != st.session_state.get(self.last_kind_key):
            st.session_state[self.switched] = linked
        elif st.session_state.get(self.switched) not in KINDS:
            st.session_state[self.switched] = st.session_state.get(self.last_kind_key) or self._last_kind()
        kind = str(st.session_state[self.switched])
        if st.session_state.get(self.last_kind_key) not in (kind, None):
            st.query_params.clear()  # the address is still that of the other kind
        st.session_state[self.last_kind_key] = kind
        return kind

    def switch(self) -> None:
        """Draw the switch between texts and pictures."""
        st.segmented_control(
            "Input",
            list(KINDS),
            key=self.switched,
            required=True,
            format_func=KIND_TITLES.__getitem__,
            label_visibility="collapsed",
        )

    def _last_kind(self) -> str:
        return next((kind for kind, one in self.selections.items() if one.link == last_selection()), KINDS[0])


def control_values(prefix: str, record: Any, names: Iterable[str] | None = None) -> dict[str, object]:
    """Return the values of a record's controls, by name; `PageSession.read_record` reads them back."""
    kind: type = type(record)
    options = options_of(kind)
    names = options if names is None else names
    return {f"{prefix}{name}": _control_value(options[name], getattr(record, name)) for name in names}


def sections_of(state: Any) -> tuple[str, ...]:
    """Return the sections of the page that can be opened (see `opened_option`)."""
    kind: type = type(state)
    return options_of(kind)["opened"].get("sections", ())


def is_nullable(one: Option) -> bool:
    """Whether the option may be None."""
    return type(None) in typing.get_args(one.hint)


def _control_value(one: Option, value: Any) -> object:
    if value is None and str in typing.get_args(one.hint):
        return ""
    return list(value) if one.is_list else value


def _field_value(one: Option, value: Any) -> Any:
    """Convert a control's value to that of a field.

    Strings are stripped, numbers are rounded as in a link, and a list of choices is put in the order of the options.
    """
    if isinstance(value, str):
        return (value if one.get("exact") else value.strip()) or (None if is_nullable(one) else "")
    if value is not None and one.get("digits"):
        return round(value, one.get("digits"))
    if not isinstance(value, list | tuple):
        return value
    if one.get("exact") or one.is_number_list or not one.is_list:
        return tuple(value)
    if known := one.get("choices"):
        return tuple(name for name in known if name in value)
    return tuple(dict.fromkeys(filter(None, (str(name).strip() for name in value))))
