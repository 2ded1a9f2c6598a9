"""A picture of one's own, from a file or the camera: opened with care, kept by its hash, or refused in one sentence."""

from __future__ import annotations

import streamlit as st

from components.looking import Looking
from components.trouble import say_error, sentence
from engine.blob_store import store_picture
from engine.data.picture_files import open_picture

KINDS = ("png", "jpg", "jpeg", "webp", "gif")
BEFORE = "The picture before is still shown."
NOT_YET = "Until a picture is given, the example of the data set stays."


def own_picture_controls(looking: Looking) -> None:
    """Takes a file, or a photograph once the camera is asked for. What cannot be read leaves the last picture as it is.

    The hash of what was taken is then the control `picture_sha`.
    """
    st.file_uploader(
        "A picture: PNG, JPEG, WebP or GIF",
        KINDS,
        key=looking.key("upload"),
        on_change=take,
        args=(looking, "upload"),
        help="It stays on this machine. Only its pixels are kept, no names and no places.",
    )
    if st.toggle("Use the camera", key=looking.key("camera_on")):
        st.camera_input("Photograph", key=looking.key("camera"), on_change=take, args=(looking, "camera"))
    given = bool(looking.value("picture_sha"))
    if refused := looking.value("refused"):
        # The uploader goes on naming the file that was refused.
        say_error(f"{refused} {BEFORE if given else NOT_YET}")
    elif not given:
        st.caption(NOT_YET)


def take(looking: Looking, name: str) -> None:
    """Looks at what that control has just been given."""
    looking.put("refused", "")
    given = st.session_state.get(looking.key(name))
    if given is None:
        return
    try:
        looking.put("picture_sha", store_picture(open_picture(given.getvalue(), given.name)))
    except Exception as error:
        looking.put("refused", sentence(error))
