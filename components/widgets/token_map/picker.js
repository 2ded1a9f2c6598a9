// Pins units of the maps by click and by key; what strips of pins have in common is in base.js.

const MOST_NAMED = 12; // pinned units that the strip names; the rest is a number
const DRAG = 4; // pixels: a pointer that moved further has selected text, not clicked
const RING = ["0 -2px", "0 3px", "inset 1px 0", "inset -2px 0"].map((side) => `${side} var(--xg-text)`).join();
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const UNIT = ":is([class^='j'], [class*=' j'])"; // what has the low digit of a position

export default function (given) {
  return showPicker(TokenPins, given);
}

/** The position of a drawn unit, from the two digits that `place_classes` writes into its classes. */
function positionOf(unit, digits) {
  const high = /\bxi(\d+)/.exec(unit.closest("[class*='xi']")?.className);
  const low = /(?:^| )j(\w)\b/.exec(unit.className);
  return high && low ? digits * Number(high[1]) + Number.parseInt(low[1], digits) : -1;
}

/** The selector of a unit in every map (`unit_selector` in styles.py). */
function selectorOf(position, { scope, digits }) {
  const high = `.xi${Math.floor(position / digits)}`, low = `.j${(position % digits).toString(digits)}`;
  return `${scope} :is(${high} ${low}, ${high}${low})`;
}

class TokenPins extends Pins {
  build() {
    this.anchor = this.lit = this.pressed = null;
    this.style = element("style");
    this.said = element("div", { class: "xg-pins xg-small", role: "status" });
    this.clear = element("button", { type: "button" }, "Clear");
    this.summary = element("summary", {}, "Pick by keyboard or touch");
    this.row = element("div", { role: "toolbar", "aria-label": "Tokens of the text" });
    const keys = element("details", { class: "xg-keys xg-small" }, this.summary, this.row);
    this.root = element("div", { class: "xg xg-pick" }, this.style, this.said, this.clear, keys);
    this.on(document, "mousedown", (event) => this.onDown(event));
    this.on(document, "click", (event) => this.onClick(event));
    this.on(this.root, "keydown", (event) => this.onKey(event));
    this.on(this.row, "click", (event) => this.onButton(event));
    this.on(this.row, "focusin", (event) => this.onFocus(event.target));
    this.on(this.row, "focusout", () => this.onFocus(null));
    this.on(this.clear, "click", () => this.onClear());
  }

  take(before) {
    if (JSON.stringify(before?.texts) !== JSON.stringify(this.data.texts)) this.fillRow();
  }

  /** Pins or unpins a unit, or pins the range from the last one to this. */
  choose(position, range) {
    if (!this.isPickable(position)) return;
    const from = range ? (this.anchor ?? position) : position, wanted = new Set(this.pins);
    this.anchor = from;
    if (range) this.rangeOf(from, position).forEach((at) => wanted.add(at));
    else if (!wanted.delete(position)) wanted.add(position);
    this.ask(wanted);
  }

  rangeOf(from, to) {
    const first = Math.min(from, to), count = Math.abs(to - from) + 1;
    return Array.from({ length: count }, (_, step) => first + step).filter((at) => this.isPickable(at));
  }

  isPickable(position) {
    return position >= 0 && position < this.data.texts.length && !this.data.special.includes(position);
  }

  unitAt(event) {
    return event.target.closest?.(`${this.data.scope} ${UNIT}`);
  }

  onDown(event) {
    this.pressed = [event.clientX, event.clientY];
    if (event.shiftKey && this.unitAt(event)) event.preventDefault(); // else the browser selects the text between
  }

  onClick(event) {
    const unit = this.unitAt(event);
    const [x, y] = this.pressed ?? [event.clientX, event.clientY];
    const dragged = Math.hypot(event.clientX - x, event.clientY - y) > DRAG;
    if (!unit || dragged || event.detail > 1) return; // a double click selects a word of the text
    this.choose(positionOf(unit, this.data.digits), event.shiftKey);
  }

  onButton(event) {
    const button = event.target.closest("button");
    if (button) this.choose(Number(button.dataset.position), event.shiftKey);
  }

  onKey(event) {
    const buttons = [...this.row.children], at = buttons.indexOf(event.target), last = buttons.length - 1;
    if (at < 0) return;
    const forward = this.row.dir === "rtl" && event.key.match(/Left|Right/) ? -1 : 1;
    const ends = { Home: 0, End: last };
    const next = ends[event.key] ?? at + forward * (STEPS[event.key] ?? 0);
    if (!(event.key in ends || event.key in STEPS)) return;
    event.preventDefault();
    buttons[within(next, buttons.length)].focus();
  }

  onFocus(button) {
    this.lit = button ? Number(button.dataset.position) : null;
    if (button) for (const other of this.row.children) other.tabIndex = other === button ? 0 : -1;
    this.drawUnits();
  }

  onClear() {
    this.summary.focus(); // the button is about to vanish, the keyboard's place must not
    this.ask(new Set());
  }

  /** One tab stop for all units: arrows move inside. */
  fillRow() {
    const positions = [...this.data.texts.keys()].filter((position) => this.isPickable(position));
    const buttons = positions.map((position, at) => {
      const name = `${this.data.texts[position]}, index ${this.data.places[position] ?? position}`;
      const tabindex = at === 0 ? 0 : -1;
      const attributes = { type: "button", "aria-label": name, "data-position": position, tabindex };
      return element("button", attributes, element("bdi", {}, this.data.texts[position]));
    });
    this.row.replaceChildren(...buttons);
    this.row.dir = this.data.direction;
    this.anchor = this.lit = null;
  }

  draw() {
    this.drawUnits();
    this.drawStrip();
    this.clear.hidden = this.pins.size === 0;
    for (const button of this.row.children) {
      button.setAttribute("aria-pressed", this.pins.has(Number(button.dataset.position)));
    }
  }

  drawStrip() {
    const pinned = this.sorted(), left = pinned.length - MOST_NAMED;
    const names = pinned.slice(0, MOST_NAMED).flatMap((at) => [" ", element("bdi", {}, this.data.texts[at])]);
    const more = left > 0 ? [` and ${left} more`] : [];
    this.said.replaceChildren(...(pinned.length ? [element("b", {}, "Pinned"), ...names, ...more] : []));
  }

  /** Rules and not classes: they hold for maps that are drawn later, and need no walk over the page. */
  drawUnits() {
    const { scope } = this.data;
    const rules = [`${scope} ${UNIT}:not(.xg-special) { cursor: pointer }`];
    // Twice the scope: the ring outweighs the lines between the columns of a table.
    const pinned = this.sorted().map((position) => scope + selectorOf(position, this.data)).join();
    if (pinned) rules.push(`${pinned} { box-shadow: ${RING} }`);
    if (this.lit !== null) rules.push(`${selectorOf(this.lit, this.data)} { outline: 2px solid var(--xg-text) }`);
    this.style.textContent = rules.join("\n");
  }
}
