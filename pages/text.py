"""Text: one text, its prediction, and how many methods explain it, side by side."""

from __future__ import annotations

from components.engine_room import explainers, warm_up
from components.frame import TEXT, guard, heading
from components.inputs.text_choice import draw_focus_controls, draw_text_fields
from components.styles import use_styles
from components.text import session as text_session
from components.text.browse import draw_browser
from components.text.controls import method_controls
from components.text.edited import edited_area
from components.text.keep import keep_area
from components.text.pins import pin_area, widened
from components.text.questions import question_area
from components.text.results import method_rows, prediction_area
from components.text.without import without_area
from components.trouble import say_error
from components.widgets.token_map.rationale import rationale_rows
from engine.input_kinds import list_models

guard()
use_styles()
heading(TEXT)

methods, models = explainers(), list_models("text")
loaded, opened, said = text_session.load(models, methods)
for sentence in said:
    say_error(sentence)

draw_focus_controls(models, opened)
draw_browser(opened)
draw_text_fields()
method_controls(methods)
state = text_session.from_widgets(loaded, methods, opened)
text_session.save(state, loaded)

probe = prediction_area(state)
if probe is not None:
    pin_area(state, probe)
    above = rationale_rows(opened.data, state.focus.index, probe, state.unit, state.look)
    made = method_rows(state, methods, probe, above)
    asked = widened(state, probe)
    without_area(asked, methods, made, probe)
    edited_area(asked, methods, made, probe)
    question_area(state, methods, made, probe)
    keep_area(state, methods, made, above)
warm_up()  # last: see components/engine_room.py
