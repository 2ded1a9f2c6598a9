// One head as a matrix: a row is a token that looks (query), a column what it looks at (key).

const MATRIX_HINT = "A row is a token that looks (query), a column what it looks at (key). Hover for values.";
const MATRIX_ASK = " Click a row, or press Enter in it, to see in all heads what its token looks at.";
const MATRIX_KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e4], End: [0, 1e4], PageUp: [-10, 0], PageDown: [10, 0] };

function drawMatrix(host, model, head) {
  drawingIn(host, MatrixDrawing, model, [head]);
}

class MatrixDrawing extends MatrixPainting {
  build() {
    [this.zoom, this.pointers, this.at] = [new Zoom(), new Map(), null];
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-roledescription": "matrix" });
    this.closer = element("button", { type: "button", "aria-label": "Zoom in", title: "Zoom in: +" }, "+");
    this.farther = element("button", { type: "button", "aria-label": "Zoom out", title: "Zoom out: −" }, "−");
    this.whole = element("button", { type: "button", title: "The whole matrix: 0" }, "Whole");
    const hint = element("span", { class: "xg-small" }, "Drag to move. Click, then wheel to zoom.");
    this.zoomer = element("span", { class: "xg-one-tools" }, this.closer, this.farther, this.whole, hint);
    this.faint = element("input", { type: "checkbox" });
    this.tools = element("div", { class: "xg-one-tools" }, element("label", { class: "xg-small" }, this.faint, "Strengthen faint values"), this.zoomer);
    this.said = element("p", { class: "xg-said" });
    this.legend = element("p", { class: "xg-small xg-one-legend" });
    this.note = element("p", { class: "xg-small" });
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.root = element("div", { class: "xg-one" }, this.canvas, this.tools, this.said, this.legend, this.note, this.told);
    this.listen();
  }

  listen() {
    const { canvas } = this;
    this.on(canvas, "pointerdown", (event) => this.onDown(event));
    this.on(canvas, "pointermove", (event) => this.onMove(event));
    this.on(canvas, "pointerup pointercancel", (event) => this.pointers.delete(event.pointerId));
    this.on(canvas, "click", (event) => !this.dragged && this.ask(this.cellAt(event)));
    this.on(canvas, "pointerleave", (event) => event.pointerType === "mouse" && this.point(null));
    this.on(canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    this.on(canvas, "keydown", (event) => this.onKey(event));
    this.on(canvas, "focus", () => canvas.matches(":focus-visible") && !this.at && this.point({ row: 0, column: 0 }, true));
    this.on(canvas, "blur", () => this.point(null));
    this.on(this.closer, "click", () => this.zoomBy(ZOOM_STEP));
    this.on(this.farther, "click", () => this.zoomBy(1 / ZOOM_STEP));
    this.on(this.whole, "click", () => this.zoomBy(0));
    this.on(this.faint, "change", () => this.recolour());
  }

  show(model, [head]) {
    Object.assign(this, { model, head, image: null, colours: null });
    this.data = headCells(model, head);
    this.words = this.data && new MatrixWords(model.told, this.data);
    const { row = 0, column = 0 } = this.at ?? {};
    if (this.data && (row >= this.data.rows || column >= this.data.columns)) this.at = null;
    this.root.style.setProperty("--xg-hue", headHue(head[1]));
    this.draw();
  }

  recolour() {
    this.image = null;
    this.draw();
  }

  draw() {
    this.canvas.hidden = !this.data;
    if (!this.data) return (this.said.textContent = LOADING);
    this.place();
    this.paint();
    this.write();
  }

  /** Words below the matrix, and what a screen reader hears of it. */
  write() {
    const { rows, columns, cells, factor } = this.data, { told } = this.model;
    this.canvas.setAttribute("aria-label", `Attention of head ${headName(this.head)}: ${rows} rows that look, ${columns} columns that they look at`);
    this.canvas.style.touchAction = this.zoom.times > 1 ? "none" : "pan-y";
    this.zoomer.hidden = this.zoom.most <= 1;
    const hatched = cells.includes(MASKED) ? [element("i", { class: "xg-hatch" }), element("span", {}, "may not attend")] : [];
    const end = this.model.end(...this.head);
    this.legend.replaceChildren(element("i", { class: "xg-scale xg-amount" }), `0 to ${plainNumber(end)}${bentWords(this.gamma, end)}`, ...hatched);
    if (isPair(told)) this.legend.append(element("span", {}, "A: first text, B: second text"));
    this.note.textContent = [shrunkWords(told, this.data), factor > 1 && "Lock the head to see each.", this.words.together(this.image.together)].filter(Boolean).join(" ");
    this.say();
  }

  say() {
    const { at } = this;
    if (!at) return this.said.replaceChildren(MATRIX_HINT + (this.queried < 0 ? "" : MATRIX_ASK));
    if (at.row === null) return this.said.replaceChildren(this.words.column(at.column));
    const cell = at.column === null ? [] : [element("b", {}, this.words.cell(at)), element("br")];
    this.said.replaceChildren(...cell, this.words.row(at.row));
  }

  /** The cell in hand; null: none. By key it is also told. */
  point(at, byKey = false) {
    if (!this.data || (at?.row === this.at?.row && at?.column === this.at?.column && Boolean(at) === Boolean(this.at))) return;
    this.at = at;
    if (at && byKey) this.zoom.reach(at.row, at.column);
    if (at && byKey) this.told.textContent = `${this.words.cell(at)}. ${this.words.row(at.row)}`;
    this.paint();
    this.say();
  }

  /** The cell below the pointer; a label alone has no column, or no row. */
  cellAt({ offsetX, offsetY }) {
    const { left, top, width, height } = this.box, { zoom } = this, { across, down } = this.cellSize;
    if (offsetX >= left + width || offsetY >= top + height) return null;
    const column = offsetX < left ? null : Math.floor(zoom.column + (offsetX - left) / across);
    const row = offsetY < top ? null : Math.floor(zoom.row + (offsetY - top) / down);
    return row === null && column === null ? null : { row, column };
  }

  onDown(event) {
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.dragged = false;
    this.canvas.setPointerCapture(event.pointerId);
    this.point(this.cellAt(event));
  }

  onMove(event) {
    const from = this.pointers.get(event.pointerId), to = [event.offsetX, event.offsetY];
    if (!from) return this.point(this.cellAt(event));
    if (this.pointers.size === 1) this.drag(from, to);
    else this.pinch(event.pointerId, from, to);
    this.pointers.set(event.pointerId, to);
  }

  drag(from, to) {
    const { across, down } = this.cellSize;
    this.dragged ||= this.zoom.times > 1 && String(from) !== String(to);
    this.zoom.pan((from[0] - to[0]) / across, (from[1] - to[1]) / down);
    this.paint();
  }

  /** The finger that stays is where the matrix stays. */
  pinch(moved, from, to) {
    const [, still] = [...this.pointers].find(([id]) => id !== moved), far = ([x, y]) => Math.hypot(x - still[0], y - still[1]) || 1;
    this.zoomBy(far(to) / far(from), still);
  }

  onWheel(event) {
    if (this.zoom.most <= 1 || !(event.ctrlKey || event.metaKey || document.activeElement === this.canvas)) return;
    event.preventDefault();
    this.zoomBy(Math.exp(-event.deltaY / 300), [event.offsetX, event.offsetY]);
  }

  /** By a factor, towards a place of the canvas; 0: the whole matrix. */
  zoomBy(factor, place = null) {
    const { left, top, width, height } = this.box, share = (value) => Math.min(1, Math.max(0, value));
    const [across, down] = place ? [share((place[0] - left) / width), share((place[1] - top) / height)] : this.middle();
    this.zoom.by(factor, across, down);
    this.paint();
    this.write();
  }

  /** Where the cell in hand is, as shares of what is seen; else the middle. */
  middle() {
    const { row, column } = this.at ?? {}, { zoom } = this;
    if (row == null || column == null) return [0.5, 0.5];
    return [(column + 0.5 - zoom.column) / zoom.seenColumns, (row + 0.5 - zoom.row) / zoom.seenRows];
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.data) return;
    if (event.key in MATRIX_KEYS) this.step(MATRIX_KEYS[event.key]);
    else if ("+=".includes(event.key)) this.zoomBy(ZOOM_STEP);
    else if (event.key === "-") this.zoomBy(1 / ZOOM_STEP);
    else if (event.key === "0") this.zoomBy(0);
    else if (event.key === "Enter" && this.at) this.ask(this.at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Where all heads show what one token looks at, that of the row becomes the one. */
  ask(at) {
    if (this.queried >= 0 && at && at.row !== null) this.model.ask({ query: this.model.told.rows[at.row * this.data.factor] });
  }

  /** The next cell; where it is not seen, what is seen moves along. */
  step([down, right]) {
    const { rows, columns } = this.data, within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    this.point({ row: within((this.at?.row ?? 0) + down, rows), column: within((this.at?.column ?? 0) + right, columns) }, true);
  }
}
