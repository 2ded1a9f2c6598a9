"""Whether a page that serves both looks at a text or a picture: by its link, its switch, what was looked at last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from components.looking import Looking, last_looked

KIND_TITLES = {"text": "Text", "image": "Picture"}
KINDS = tuple(KIND_TITLES)
PARAMETER = "input"
"""The name by which a link says it."""


@dataclass(frozen=True)
class InputKind:
    """`page`: how its session keys start. `lookings`: by kind, what chooses what is looked at."""

    page: str
    lookings: Mapping[str, Looking]

    @property
    def switched(self) -> str:
        """The key of the switch."""
        return f"{self.page}.kind"

    @property
    def seen(self) -> str:
        """In the session: the kind that was last looked at on the page."""
        return f"{self.page}.seen_kind"

    def chosen(self) -> str:
        """What a new link says, else the switch, else what was looked at last."""
        asked = st.query_params.get(PARAMETER)
        if asked in KINDS and asked != st.session_state.get(self.seen):
            st.session_state[self.switched] = asked
        elif st.session_state.get(self.switched) not in KINDS:
            st.session_state[self.switched] = st.session_state.get(self.seen) or self._looked_at_last()
        kind = str(st.session_state[self.switched])
        if st.session_state.get(self.seen) not in (kind, None):
            st.query_params.clear()  # the address is still that of the other kind
        st.session_state[self.seen] = kind
        return kind

    def switch(self) -> None:
        """The control."""
        st.segmented_control(
            "Input",
            list(KINDS),
            key=self.switched,
            required=True,
            format_func=KIND_TITLES.__getitem__,
            label_visibility="collapsed",
        )

    def unsaid(self, kind: str) -> bool:
        """Whether the address should say the kind and does not: one that says none is that of a text."""
        return kind != KINDS[0] and st.query_params.get(PARAMETER) != kind

    def _looked_at_last(self) -> str:
        return next((kind for kind, looking in self.lookings.items() if looking.link == last_looked()), KINDS[0])
