"""A page that says the same words in every way that a page of ours has."""

from __future__ import annotations

import streamlit as st

from components.errors import escape_label, show_error, show_note
from components.styles import use_styles

SAID = [
    "![](http://evil.example/x.png) [a](http://evil.example/a)",
    '<img src="http://evil.example/x.png"> <b>x</b> &lt;i&gt; &amp;',
    "http://evil.example HTTPS://evil.example www.evil.example a@evil.example <http://evil.example>",
    "$math$ $$x$$ :material/home: :red[red] :smile: :streamlit: :blue-background[x] :small[x]",
    "`code` **bold** _lean_ ~~gone~~ # title - one 1. two > said -> <- >= -- | a | b |",
    "[a][b] [^1] \\* ![x][y] ^up^ ==marked== 'quoted' \"quoted\" !important /Users/a/my_own_file.csv",
]


use_styles()
for at, said in enumerate(SAID):
    show_error(said)
    show_note(said)
    st.toggle(escape_label(said), key=f"toggle-{at}")
    st.text_input(escape_label(said), key=f"input-{at}")
st.text("That is all")
