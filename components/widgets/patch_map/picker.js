// Pins patches of a picture's maps by click, stroke and key; what strips of pins have in common is in base.js.
// Opacity and flip live on the page's root element: they hold for cards that are drawn later, and for another strip.

const FLIP = "f"; // held down it flips between picture and map
const MOST_NAMED = 3; // pinned patches that the strip names; more are counted
const LINES = { pins: 2.5, "pins-halo": 5.5 }; // pixels
const root = document.documentElement;

export default function (given) {
  return showPicker(PatchPins, given);
}

/** A score as `patch_map.score` prints it, from the few characters that the card has of it. */
function printed(value, signed) {
  const whole = value.replace(/^(-?)\./, "$10.").replaceAll("-", "−");
  return signed && value !== "0" && !value.startsWith("-") ? `+${whole}` : whole;
}

/** The outline of patches as the mask of a line, stretched over a map; lines are as wide on every card. */
function lineMask(patches, rows, columns, width) {
  const inside = (row, column) => column >= 0 && column < columns && patches.has(row * columns + column);
  const edges = [...patches].flatMap((at) => {
    const row = Math.floor(at / columns), column = at % columns;
    return [
      inside(row - 1, column) ? "" : `M${column} ${row}h1`,
      inside(row + 1, column) ? "" : `M${column} ${row + 1}h1`,
      inside(row, column - 1) ? "" : `M${column} ${row}v1`,
      inside(row, column + 1) ? "" : `M${column + 1} ${row}v1`,
    ];
  });
  const path = `<path d='${edges.join("")}' stroke='#000' stroke-width='${width}' stroke-linecap='square' vector-effect='non-scaling-stroke'/>`;
  const svg = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ${columns} ${rows}' preserveAspectRatio='none'>${path}</svg>`;
  return `url("data:image/svg+xml,${encodeURIComponent(svg)}")`;
}

class PatchPins extends Pins {
  build() {
    this.lit = this.painting = this.focused = this.anchor = null;
    [this.cursor, this.sent] = [0, []];
    this.alone = this.held = this.over = false;
    [this.rings, this.box] = [element("style"), element("style")];
    const [slider, opacity] = opacitySlider("Opacity of the maps in percent", 0);
    this.slider = slider;
    this.flip = element("button", { type: "button", title: "Hold F over a map to see the picture alone" }, "Picture alone");
    this.said = element("div", { class: "xg-pins xg-small", role: "status" });
    this.clear = element("button", { type: "button" }, "Clear");
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.tip = element("div", { class: "xg xg-tip", hidden: "" });
    this.root = element("div", { class: "xg xg-pick" }, this.rings, this.box, opacity, this.flip, this.said, this.clear, this.told);
    (this.parent.closest(".stApp") ?? document.body).append(this.tip); // where the theme is, and nothing cuts it off
    this.listen();
  }

  listen() {
    this.on(document, "pointerdown", (event) => this.onDown(event));
    this.on(document, "pointermove", (event) => this.onMove(event));
    this.on(document, "pointerup", () => this.onUp());
    this.on(document, "pointercancel", () => this.onCancel());
    this.on(document, "keydown", (event) => this.onKey(event));
    this.on(document, "keyup", (event) => event.key.toLowerCase() === FLIP && this.hold(false));
    this.on(document, "focusin focusout", (event) => this.onFocus(event));
    this.renewed = new MutationObserver(() => this.onRenewed());
    this.renewed.observe(document.body, { childList: true, subtree: true });
    this.on(window, "blur", () => this.hold(false));
    this.on(window, "scroll", () => this.light(null));
    this.on(this.slider, "input", () => this.fade(Number(this.slider.value)));
    this.on(this.slider, "change", () => this.keep(Number(this.slider.value)));
    this.on(this.flip, "click", () => this.turn(!this.alone));
    this.on(this.clear, "click", () => this.onClear());
  }

  take() {
    const { opacity, rows, columns } = this.data;
    if (this.cursor >= rows * columns) this.cursor = 0;
    if (this.anchor >= rows * columns) this.anchor = null;
    const answered = this.sent.indexOf(opacity);
    if (answered >= 0) this.sent.splice(0, answered + 1);
    else if (root.dataset.xgGiven !== String(opacity) && !this.sent.length) root.dataset.xgOpacity = opacity;
    if (!this.sent.length) root.dataset.xgGiven = opacity;
    this.slider.value = root.dataset.xgOpacity;
    this.drawOpacity();
  }

  leave() {
    super.leave();
    this.renewed.disconnect();
    this.tip.remove();
    root.style.removeProperty("--xg-opacity");
  }

  fade(opacity) {
    root.dataset.xgOpacity = opacity;
    this.turn(false);
  }

  /** Sends the opacity for the link where Python wants it. Its late answers are not taken for new settings. */
  keep(opacity) {
    if (!this.data.asks) return;
    this.sent.push(opacity);
    this.send("opacity", opacity);
  }

  turn(alone) {
    this.alone = alone;
    this.drawOpacity();
  }

  hold(held) {
    if (this.held === held) return;
    this.held = held;
    this.drawOpacity();
  }

  drawOpacity() {
    const alone = this.alone !== this.held;
    root.style.setProperty("--xg-opacity", alone ? 0 : Number(root.dataset.xgOpacity) / 100);
    this.flip.setAttribute("aria-pressed", alone);
  }

  mapOf(event) {
    const map = event.target.closest?.(`${this.data.scope} [data-g]`);
    return map?.dataset.g === `${this.data.rows}x${this.data.columns}` ? map : null;
  }

  onDown(event) {
    const map = this.mapOf(event);
    if (!map) return this.light(null);
    const at = patchAt(map, this.data, event);
    if (at < 0 || event.button !== 0 || !event.isPrimary) return;
    const range = event.shiftKey && this.anchor !== null;
    this.painting = { map, last: at, adds: range || !this.pins.has(at), before: new Set(this.pins) };
    this.cursor = at;
    this.light(map, at);
    if (range) return this.pinRange(this.anchor, at);
    this.anchor = at;
    this.paint(at);
  }

  /** Pins the rectangle between two patches. */
  pinRange(from, to) {
    const { columns } = this.data, [a, b] = [from, to].map((at) => [Math.floor(at / columns), at % columns]);
    const [top, left] = a.map((place, axis) => Math.min(place, b[axis])), [bottom, right] = a.map((place, axis) => Math.max(place, b[axis]));
    this.pins = new Set(this.pins);
    for (let row = top; row <= bottom; row += 1) for (let column = left; column <= right; column += 1) this.pins.add(row * columns + column);
    this.draw();
  }

  onMove(event) {
    const map = this.mapOf(event), at = map ? patchAt(map, this.data, event) : -1;
    this.over = at >= 0;
    if (!this.painting) return this.over || !this.lit?.byKey ? this.light(this.over ? map : null, at) : null;
    if (!this.painting.map.isConnected) this.painting.map = map; // a run of the script draws the cards anew
    if (!this.over || map !== this.painting.map || at === this.painting.last) return;
    this.light(map, at);
    this.paint(at);
  }

  /** Pins or frees all patches from the last one to this: a fast stroke leaves no gap. */
  paint(to) {
    const { columns } = this.data, { last, adds } = this.painting;
    const [fromRow, fromColumn] = [Math.floor(last / columns), last % columns];
    const [down, right] = [Math.floor(to / columns) - fromRow, (to % columns) - fromColumn];
    const steps = Math.max(Math.abs(down), Math.abs(right), 1);
    this.pins = new Set(this.pins);
    for (let step = 0; step <= steps; step += 1) {
      const at = (fromRow + Math.round((step * down) / steps)) * columns + fromColumn + Math.round((step * right) / steps);
      this.pins[adds ? "add" : "delete"](at);
    }
    this.painting.last = to;
    this.draw();
  }

  onUp() {
    if (!this.painting) return;
    this.painting = null;
    this.ask(this.pins);
  }

  /** The browser scrolls instead: what the finger began to paint was not meant. */
  onCancel() {
    if (!this.painting) return;
    this.pins = this.painting.before;
    this.painting = null;
    this.light(null);
    this.draw();
  }

  onKey(event) {
    const map = this.mapOf(event), key = event.key;
    if (key.toLowerCase() === FLIP && this.mayFlip(event)) return this.hold(true);
    if (!map || hasModifier(event)) return;
    if (key in GRID_KEYS) this.move(map, GRID_KEYS[key]);
    else if (key === " " || key === "Enter") this.toggle(map);
    else return;
    event.preventDefault();
  }

  mayFlip(event) {
    if (hasModifier(event) || event.target.matches?.("input:not([type=range]), textarea, select, [contenteditable]")) return false;
    return this.over || this.root.contains(event.target) || Boolean(this.mapOf(event));
  }

  move(map, step) {
    this.cursor = patchBeside(this.cursor, this.data, step);
    this.light(map, this.cursor, true);
  }

  toggle(map) {
    const wanted = new Set(this.pins);
    if (!wanted.delete(this.cursor)) wanted.add(this.cursor);
    this.ask(wanted);
    this.light(map, this.cursor, true);
  }

  onFocus(event) {
    const map = this.mapOf(event);
    if (!map) return;
    if (event.type === "focusin") this.focused = map;
    else queueMicrotask(() => map.isConnected && this.focused === map && (this.focused = null));
    if (event.type === "focusout") this.lit?.byKey && this.light(null);
    else if (map.matches(":focus-visible")) this.move(map, [0, 0]);
  }

  /** A run of the script draws the cards anew: the keyboard's place is kept. */
  onRenewed() {
    if (!this.focused || this.focused.isConnected || document.activeElement !== document.body) return;
    const maps = [...document.querySelectorAll(`${this.data.scope} [data-g]`)];
    maps.find((map) => map.ariaLabel === this.focused.ariaLabel)?.focus({ preventScroll: true });
  }

  onClear() {
    this.slider.focus(); // the button is about to vanish, the keyboard's place must not
    this.ask(new Set());
  }

  /** Rings a patch on every card and says beside `map` what that map has there; null: none. */
  light(map, at, byKey = false) {
    const same = map && this.lit?.map === map && this.lit.at === at;
    if (same && !byKey) return;
    const moved = this.lit?.at !== (map ? at : undefined);
    this.lit = map ? { map, at, byKey } : null;
    if (moved) this.drawLit();
    this.drawTip();
  }

  factsOf(map, at) {
    const { v, r } = map.dataset, { columns } = this.data, values = v.split(" ");
    const digits = r.length / values.length, rank = Number.parseInt(r.slice(at * digits, (at + 1) * digits), 36);
    const value = printed(values[at], "s" in map.dataset);
    return `${value} · rank ${rank} of ${values.length} · ${patchName(at, columns)}`;
  }

  draw() {
    this.drawRings();
    const pinned = this.sorted(), all = this.data.rows * this.data.columns;
    const named = pinned.length > MOST_NAMED ? `${pinned.length} of ${all} patches` : pinned.map((at) => patchName(at, this.data.columns)).join("; ");
    this.said.replaceChildren(...(pinned.length ? [element("b", {}, "Pinned"), ` ${named}`] : []));
    this.clear.hidden = pinned.length === 0;
  }

  /** Rules and not elements: they hold for cards that are drawn later, and need no walk over the page. */
  drawRings() {
    const { rows, columns, scope } = this.data;
    const lines = Object.entries(LINES).map(([name, width]) => `--xg-${name}: ${lineMask(this.pins, rows, columns, width)}`);
    this.rings.textContent = `${scope} [data-g="${rows}x${columns}"] { ${lines.join("; ")} }`;
  }

  drawLit() {
    const { rows, columns, scope } = this.data;
    const rules = Object.entries(this.lit ? patchBox(this.lit.at, this.data) : {}).map(([name, value]) => `${name}: ${value}`);
    this.box.textContent = `${scope} [data-g="${rows}x${columns}"] > .xg-lit { ${rules.join("; ")} }`;
  }

  drawTip() {
    this.tip.hidden = !this.lit;
    if (!this.lit) return;
    const { map, at, byKey } = this.lit, { rows, columns } = this.data;
    const said = this.factsOf(map, at), box = map.getBoundingClientRect();
    this.tip.textContent = said;
    const x = box.left + ((at % columns) + 0.5) * (box.width / columns) - this.tip.offsetWidth / 2;
    const top = box.top + Math.floor(at / columns) * (box.height / rows), above = top - this.tip.offsetHeight - 6;
    this.tip.style.left = `${Math.max(4, Math.min(x, root.clientWidth - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${above < 4 ? top + box.height / rows + 6 : above}px`; // never over the patch
    if (byKey) this.told.textContent = `${said}${this.pins.has(at) ? " · pinned" : ""}`;
  }
}
