"""A page of the choice of a picture and the list of its set alone: no model is run for it."""

from __future__ import annotations

import streamlit as st

from components.browse.listing import DEFAULT_LISTING
from components.browse.lists import draw_picture_list
from components.errors import describe_error, escape_label, show_error
from components.images.results import describe_picture
from components.inputs import picture_choice as picture_focus_controls
from components.inputs.datasets import open_pictures
from components.inputs.picture_choice import read_picture_focus, write_picture_focus
from components.links import last_values, read_record, write_record
from components.state import PageSession, control_values
from components.styles import use_styles
from engine.models.catalog import embedded_image_models

use_styles()
session = PageSession("picture", picture_focus_controls.SELECTION, ())
link, fresh = session.follow()
opened = open_pictures(*picture_focus_controls.requested_dataset(link))
last = last_values(link)
said: list[str] = []
loaded = read_picture_focus(last, embedded_image_models(), opened, said), read_record(DEFAULT_LISTING, link, said)
picture_focus_controls.fill_controls(loaded[0], opened)
session.fill({**control_values("browse.", loaded[1]), "open.browse": last.get("open") == "browse"})
for told in session.tell(said, fresh):
    show_error(told)
picture_focus_controls.draw_focus_controls(embedded_image_models(), opened)
picture_focus_controls.draw_split_control(opened)
draw_picture_list(opened, session.key)
focus, browse = picture_focus_controls.read_controls(opened), session.read_record("browse.", DEFAULT_LISTING)
opens = {"open": ["browse"]} if session.value("open.browse") else {}
session.save(
    write_picture_focus(focus) | write_record(browse, DEFAULT_LISTING) | opens, (focus, browse) != loaded or bool(opens)
)
try:
    for line in describe_picture(focus, opened):
        st.caption(escape_label(line))
except Exception as error:
    show_error(describe_error(error))
st.text(f"digest {focus.picture.digest if focus.picture else 'none'}")
