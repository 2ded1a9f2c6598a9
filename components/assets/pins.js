// What is shown at once and asked of Python, which owns it: first for anything, then for strips of pins.
// Texts come from anywhere: they enter the page as text nodes and attributes only.

const pickers = new WeakMap();

// Streamlit calls a component again with the same parent whenever the data or the theme changes, and runs only the
// last call's clean-up: one picker a parent listens, and it leaves when nothing newer has been shown.
function showPicker(Picker, { data, parentElement, setTriggerValue }) {
  const picker = pickers.get(parentElement) ?? new Picker(parentElement);
  pickers.set(parentElement, picker);
  const leave = picker.show(data, setTriggerValue);
  parentElement.dataset.shown = ""; // from now on a click is heard
  return leave;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Builds `root`, listens, and draws what Python holds: `build`, `take`, `adopt` and `draw` are the heir's own. */
class Owned {
  constructor(parent) {
    this.parent = parent;
    this.shown = this.asked = this.answered = 0;
    this.listening = new AbortController();
    this.build();
    this.parent.append(this.root);
  }

  on(target, names, handle) {
    for (const name of names.split(" ")) target.addEventListener(name, handle, { signal: this.listening.signal });
  }

  /** Adopts what Python holds, unless an answer to the latest click is still to come. Returns the clean-up. */
  show(data, send) {
    const before = this.data;
    Object.assign(this, { data, send });
    this.take(before);
    if (this.asked <= this.answered || data.turn >= this.asked) {
      this.asked = this.answered = data.turn;
      this.adopt();
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
}

/** Pins of any strip: each click asks for the pins that it would have. */
class Pins extends Owned {
  constructor(parent) {
    super(parent);
    this.pins = new Set();
  }

  adopt() {
    this.pins = new Set(this.data.pinned);
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
