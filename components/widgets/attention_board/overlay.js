// One head's map over the picture, a patch a pixel of the canvas that the browser enlarges without smoothing.
// The picture and its layers are those of patch_map.css. A patch that is chosen becomes the one that looks.

const PATCH_HINT = "Hover a patch for its value. Click one, or press Enter, to see what it attends to.";
const MAP_OPACITY = 70; // percent, as on the Images page

function drawOverlay(host, model, head) {
  drawingIn(host, OverlayDrawing, model, [head]);
}

class OverlayDrawing extends Drawing {
  build() {
    [this.at, this.cursor] = [-1, 0];
    this.canvas = element("canvas");
    [this.looking, this.lit] = [element("i", { class: "xg-looking" }), element("i", { class: "xg-lit" })];
    const over = element("i", { class: "xg-over" }, this.canvas);
    this.map = element("div", { class: "xg-patches", tabindex: 0, role: "application", "aria-roledescription": "map of patches" }, element("i", { class: "xg-seen" }), over, this.looking, this.lit);
    const [slider, opacity] = opacitySlider("Opacity of the map in percent", MAP_OPACITY), [faint, fainter] = faintBox();
    Object.assign(this, { slider, faint });
    this.tools = element("div", { class: "xg-one-tools" }, opacity, fainter);
    this.from = element("p", { class: "xg-small" });
    this.said = element("p", { class: "xg-said" });
    this.legend = element("p", { class: "xg-small xg-one-legend" });
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.root = element("div", { class: "xg-one" }, this.from, this.map, this.tools, this.legend, this.said, this.told);
    this.listen();
  }

  listen() {
    this.on(this.map, "pointermove pointerdown", (event) => this.point(patchAt(this.map, this, event)));
    this.on(this.map, "pointerleave", (event) => event.pointerType === "mouse" && this.point(-1));
    this.on(this.map, "click", (event) => this.ask(patchAt(this.map, this, event)));
    this.on(this.map, "keydown", (event) => this.onKey(event));
    this.on(this.map, "focus", () => this.map.matches(":focus-visible") && this.point(this.cursor, true));
    this.on(this.map, "blur", () => this.point(-1));
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

  /** Over the ground of the theme exactly the colors of the palette: the smaller, the more transparent. */
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

  /** The end of the color scale: the largest value of this map or of all. */
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

  /** The source of the attention in words: a patch, the token that the model reads, or the mean of all. */
  fromWords(looks) {
    const { told } = this.model;
    if (looks >= 0) return `Attention from the outlined patch, ${patchName(looks, this.columns)}.`;
    if (told.view !== "query") return "Mean attention that each patch receives.";
    return told.viewWords ? `${told.viewWords}.` : `Attention from ${tokenName(told, told.query)}.`;
  }

  ring(box, at) {
    box.hidden = at < 0;
    if (!box.hidden) Object.assign(box.style, { inset: "auto", ...patchBox(at, this) });
  }

  say() {
    this.ring(this.lit, this.at);
    this.said.replaceChildren(this.at < 0 ? PATCH_HINT : this.valueWords(this.at));
  }

  valueWords(at) {
    const value = this.values[at];
    if (Number.isNaN(value)) return `masked · ${patchName(at, this.columns)}`;
    const above = this.values.reduce((count, other) => count + (other > value), 0);
    return `${plainNumber(value)} · rank ${1 + above} of ${this.values.length} · ${patchName(at, this.columns)}`;
  }

  point(at, byKey = false) {
    if (!this.values || (at === this.at && !byKey)) return;
    this.at = at;
    if (at >= 0) this.cursor = at;
    this.say();
    if (at >= 0 && byKey) this.told.textContent = this.valueWords(at);
  }

  ask(at) {
    if (at >= 0) this.model.ask({ query: this.places[at] });
  }

  onKey(event) {
    if (hasModifier(event) || !this.values) return;
    if (event.key in GRID_KEYS) this.point(patchBeside(this.cursor, this, GRID_KEYS[event.key]), true);
    else if (event.key === "Enter" || event.key === " ") this.ask(this.cursor);
    else return;
    stop(event);
  }
}
