// What our widgets have in common: a widget shows a change at once and asks Python, which owns the state, to make it.
// Texts come from anywhere: they enter the page as text nodes and attributes only.

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e4], End: [0, 1e4] };
const GRID_KEYS = { ...ARROWS, PageUp: [-1e4, 0], PageDown: [1e4, 0] }; // rows down and columns to the right
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

/** The value, or the nearest of 0 to `count` - 1. */
function within(value, count) {
  return Math.min(Math.max(value, 0), count - 1);
}

function hasModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function stop(event) {
  event.preventDefault();
  event.stopPropagation();
}

/** The patch below the pointer, row by row from 0; -1 beside the map. */
function patchAt(map, { rows, columns }, { clientX, clientY }) {
  const { left, top, width, height } = map.getBoundingClientRect();
  const row = Math.floor(((clientY - top) / height) * rows), column = Math.floor(((clientX - left) / width) * columns);
  return row >= 0 && row < rows && column >= 0 && column < columns ? row * columns + column : -1;
}

/** The patch so many rows and columns away, as far as there are any. */
function patchBeside(at, { rows, columns }, [down, right]) {
  return within(Math.floor(at / columns) + down, rows) * columns + within((at % columns) + right, columns);
}

/** The place of a patch in words. */
function patchName(at, columns) {
  return `row ${Math.floor(at / columns) + 1}, column ${(at % columns) + 1}`;
}

/** The box of a patch on its map, as CSS properties. */
function patchBox(at, { rows, columns }) {
  const [top, left] = [(100 * Math.floor(at / columns)) / rows, (100 * (at % columns)) / columns];
  return { display: "block", width: `${100 / columns}%`, height: `${100 / rows}%`, top: `${top}%`, left: `${left}%` };
}

/** A slider from the picture to its map, in percent. */
function opacitySlider(label, value) {
  const slider = element("input", { type: "range", min: 0, max: 100, step: 5, value, "aria-label": label });
  return [slider, element("label", { class: "xg-small" }, "Picture", slider, "Map")];
}

/** Listens until it leaves. */
class Listener {
  constructor() {
    this.listening = new AbortController();
  }

  on(target, names, handle, options = {}) {
    for (const name of names.split(" ")) target.addEventListener(name, handle, { signal: this.listening.signal, ...options });
  }

  leave() {
    this.listening.abort();
  }
}

/** Builds `root`, listens, and draws what Python holds: `build`, `take`, `adopt` and `draw` are the heir's own. */
class Owned extends Listener {
  constructor(parent) {
    super();
    this.parent = parent;
    this.shown = this.asked = this.answered = 0;
    this.build();
    this.parent.append(this.root);
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
    super.leave();
    this.root.remove();
    pickers.delete(this.parent);
  }
}

/** Pins of any strip: each click asks for the pins that it would have, and Esc for none. */
class Pins extends Owned {
  constructor(parent) {
    super(parent);
    this.pins = new Set();
    this.on(document, "keydown", (event) => event.key === "Escape" && this.pins.size && this.hears(event.target) && this.ask(new Set()));
  }

  /** Whether a key was pressed in the strip, in a map or nowhere: not in a field, a menu or a dialog. */
  hears(target) {
    return target.matches("body, [data-testid=stMain]") || this.root.contains(target) || Boolean(target.closest(this.data.scope));
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
