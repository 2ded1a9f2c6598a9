// What strips of pins have in common. Python owns the pins; here they are shown at once and asked for.
// Texts come from anywhere: they enter the page as text nodes and attributes only.

const pickers = new WeakMap();

// Streamlit calls a component again with the same parent whenever the data or the theme changes, and runs only the
// last call's clean-up: one picker a parent listens, and it leaves when nothing newer has been shown.
function showPicker(Picker, { data, parentElement, setTriggerValue }) {
  const picker = pickers.get(parentElement) ?? new Picker(parentElement);
  pickers.set(parentElement, picker);
  return picker.show(data, setTriggerValue);
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Builds `root`, listens, and draws what Python holds: `build`, `take` and `draw` are the strip's own. */
class Pins {
  constructor(parent) {
    this.parent = parent;
    this.pins = new Set();
    this.shown = this.asked = this.answered = 0;
    this.listening = new AbortController();
    this.build();
    this.parent.append(this.root);
  }

  on(target, names, handle) {
    for (const name of names.split(" ")) target.addEventListener(name, handle, { signal: this.listening.signal });
  }

  /** Shows what Python holds, unless an answer to the latest click is still to come. Returns the clean-up. */
  show(data, send) {
    const before = this.data;
    Object.assign(this, { data, send });
    this.take(before);
    if (this.asked <= this.answered || data.turn >= this.asked) {
      this.pins = new Set(data.pinned);
      this.asked = this.answered = data.turn;
    }
    this.draw();
    const mine = ++this.shown;
    return () => this.shown === mine && this.leave();
  }

  leave() {
    this.listening.abort();
    this.root.remove();
    pickers.delete(this.parent);
  }

  ask(pins) {
    this.pins = pins;
    this.asked += 1;
    this.draw();
    this.send("picked", { pins: this.sorted(), turn: this.asked });
  }

  sorted() {
    return [...this.pins].sort((a, b) => a - b);
  }
}
