// One head's map over the picture, a patch a pixel of the canvas that the browser enlarges without smoothing.
// The picture and its layers are those of picture_cards.css. A patch that is chosen becomes the one that looks.

const PATCH_KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e3], End: [0, 1e3], PageUp: [-1e3, 0], PageDown: [1e3, 0] };
const PATCH_HINT = "Hover a patch for its value. Click one, or press Enter on it, to see where it looks.";
const MAP_OPACITY = 70; // percent, as on the Images page

function drawOverlay(host, model, head) {
  drawingIn(host, OverlayDrawing, model, [head]);
}

class OverlayDrawing extends Drawing {
  build() {
    [this.at, this.cursor, this.byKey] = [null, 0, false];
    this.canvas = element("canvas");
    [this.looking, this.lit] = [element("i", { class: "xg-looking" }), element("i", { class: "xg-lit" })];
    const over = element("i", { class: "xg-over" }, this.canvas);
    this.map = element("div", { class: "xg-patches", tabindex: 0, role: "application", "aria-roledescription": "map of patches" }, element("i", { class: "xg-seen" }), over, this.looking, this.lit);
    this.slider = element("input", { type: "range", min: 0, max: 100, step: 5, value: MAP_OPACITY, "aria-label": "Opacity of the map in percent" });
    this.faint = element("input", { type: "checkbox" });
    const opacity = element("label", { class: "xg-small" }, "Picture", this.slider, "Map");
    this.tools = element("div", { class: "xg-one-tools" }, opacity, element("label", { class: "xg-small" }, this.faint, "Strengthen faint values"));
    this.from = element("p", { class: "xg-small" });
    this.said = element("p", { class: "xg-said" });
    this.legend = element("p", { class: "xg-small xg-one-legend" });
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.root = element("div", { class: "xg-one" }, this.from, this.map, this.tools, this.legend, this.said, this.told);
    this.listen();
  }

  listen() {
    this.on(this.map, "pointermove pointerdown", (event) => this.point(this.patchAt(event)));
    this.on(this.map, "pointerleave", (event) => event.pointerType === "mouse" && this.point(null));
    this.on(this.map, "click", (event) => this.ask(this.patchAt(event)));
    this.on(this.map, "keydown", (event) => this.onKey(event));
    this.on(this.map, "focus", () => this.map.matches(":focus-visible") && this.point(this.cursor, true));
    this.on(this.map, "blur", () => this.point(null));
    this.on(this.slider, "input", () => this.draw());
    this.on(this.faint, "change", () => this.draw());
  }

  show(model, [head]) {
    const { told } = model;
    Object.assign(this, { model, head, values: model.map(...head) });
    this.places = told.features ?? told.tokens.flatMap(({ special }, at) => (special ? [] : [at]));
    [this.rows, this.columns] = told.grid;
    this.root.style.setProperty("--xg-hue", headHue(head[1]));
    this.draw();
  }

  draw() {
    this.map.style.setProperty("--xg-opacity", Number(this.slider.value) / 100);
    this.paint();
    this.write();
  }

  /** Over the ground of the theme exactly the colours of the palette: the smaller, the more transparent. */
  paint() {
    Object.assign(this.canvas, { width: this.columns, height: this.rows });
    const pen = this.canvas.getContext("2d"), made = pen.createImageData(this.columns, this.rows), { data } = made;
    const table = new Uint8Array(this.model.table(1, 1).buffer), end = this.end(), ground = table.subarray(0, 3);
    this.values.forEach((value, at) => {
      const level = Number.isNaN(value) ? 0 : Math.round(LEVELS * Math.min(1, value / end) ** this.gamma), alpha = level / LEVELS;
      for (let part = 0; part < 3; part += 1) data[4 * at + part] = level ? ground[part] + (table[4 * level + part] - ground[part]) / alpha : 0;
      data[4 * at + 3] = 255 * alpha;
    });
    pen.putImageData(made, 0, 0);
  }

  get gamma() {
    return this.faint.checked ? FAINT_GAMMA : 1;
  }

  /** Where the colours end: the largest value, of this map or of all. */
  end() {
    return this.model.mapEnd(...this.head);
  }

  write() {
    const { told } = this.model, looks = told.view === "query" ? this.places.indexOf(told.query) : -1;
    this.ring(this.looking, looks);
    this.map.setAttribute("aria-label", `Map of head ${headName(this.head)} over the picture`);
    this.map.setAttribute("aria-description", `${this.rows} rows, ${this.columns} columns. ${PATCH_HINT}`);
    this.from.textContent = this.fromWords(looks);
    this.legend.replaceChildren(element("i", { class: "xg-scale xg-amount" }), `0 to ${plainNumber(this.end())}, without sign${bentWords(this.gamma, this.end())}`);
    this.say();
  }

  /** Who looks: a patch, the token that the model reads, or the mean of all. */
  fromWords(looks) {
    const { told } = this.model;
    if (looks >= 0) return `Where the outlined patch looks: ${this.placeOf(looks)}.`;
    if (told.view !== "query") return "What each patch receives, mean over all positions.";
    return told.viewWords ? `${told.viewWords}.` : `Where ${tokenName(told, told.query)} looks.`;
  }

  placeOf(at) {
    return `row ${Math.floor(at / this.columns) + 1}, column ${(at % this.columns) + 1}`;
  }

  ring(box, at) {
    box.hidden = at === null || at < 0;
    if (box.hidden) return;
    const { rows, columns } = this;
    Object.assign(box.style, { display: "block", inset: "auto", width: `${100 / columns}%`, height: `${100 / rows}%` });
    Object.assign(box.style, { top: `${(100 * Math.floor(at / columns)) / rows}%`, left: `${(100 * (at % columns)) / columns}%` });
  }

  say() {
    this.ring(this.lit, this.at);
    this.said.replaceChildren(this.at === null ? PATCH_HINT : this.valueWords(this.at));
  }

  valueWords(at) {
    const value = this.values[at];
    if (Number.isNaN(value)) return `may not attend · ${this.placeOf(at)}`;
    const above = this.values.reduce((count, other) => count + (other > value), 0);
    return `${plainNumber(value)} · rank ${1 + above} of ${this.values.length} · ${this.placeOf(at)}`;
  }

  point(at, byKey = false) {
    if (!this.values || (at === this.at && !byKey)) return;
    this.at = at;
    if (at !== null) this.cursor = at;
    this.say();
    if (at !== null && byKey) this.told.textContent = this.valueWords(at);
  }

  /** The patch below the pointer; null beside the picture. */
  patchAt({ clientX, clientY }) {
    const { left, top, width, height } = this.map.getBoundingClientRect(), { rows, columns } = this;
    const row = Math.floor(((clientY - top) / height) * rows), column = Math.floor(((clientX - left) / width) * columns);
    return row >= 0 && row < rows && column >= 0 && column < columns ? row * columns + column : null;
  }

  ask(at) {
    if (at !== null) this.model.ask({ query: this.places[at] });
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.values) return;
    if (event.key in PATCH_KEYS) this.move(PATCH_KEYS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.ask(this.cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  move([down, right]) {
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    const row = within(Math.floor(this.cursor / this.columns) + down, this.rows), column = within((this.cursor % this.columns) + right, this.columns);
    this.point(row * this.columns + column, true);
  }
}
