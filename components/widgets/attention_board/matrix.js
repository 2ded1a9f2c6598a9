// One head as a matrix: a row is a token that looks (query), a column what it looks at (key). First which of its cells are
// seen, then what is said of them, then how they are painted; the drawing that people use comes last.

const MATRIX_HINT = "Rows are queries, columns are keys. Hover for values.";
const MATRIX_ASK = " Click a row, or press Enter, to see what its token attends to in all heads.";
const MATRIX_KEYS = { ...ARROWS, PageUp: [-10, 0], PageDown: [10, 0] };
const MATRIX = { most: 36, side: 560, label: 104, labelShare: 0.28, font: 11.5, letters: 40, line: 12.5, gridFrom: 9, strip: 9 };
const MOST_NAMED_KEYS = 3;
const FULL_CELL = 26; // pixels: a cell is drawn no larger
const ZOOM_STEP = 1.5;

/** Which of the cells are seen: by wheel, pinch, buttons, keys and dragging. */
class Zoom {
  constructor() {
    Object.assign(this, { times: 1, row: 0, column: 0, rows: 1, columns: 1, most: 1 });
  }

  /** Fits a matrix of so many cells, each `side` pixels wide when all are visible. */
  fit(rows, columns, side) {
    if (rows !== this.rows || columns !== this.columns) Object.assign(this, { times: 1, row: 0, column: 0 });
    Object.assign(this, { rows, columns, most: Math.max(1, FULL_CELL / side) });
    this.hold();
  }

  get seenRows() {
    return this.rows / this.times;
  }

  get seenColumns() {
    return this.columns / this.times;
  }

  /** Nearer by a factor; what lies at these shares of the width and height stays there. */
  by(factor, across = 0.5, down = 0.5) {
    const column = this.column + across * this.seenColumns, row = this.row + down * this.seenRows;
    this.times = Math.min(this.most, Math.max(1, this.times * factor));
    this.column = column - across * this.seenColumns;
    this.row = row - down * this.seenRows;
    this.hold();
  }

  /** Moves what is seen, in cells. */
  pan(columns, rows) {
    this.column += columns;
    this.row += rows;
    this.hold();
  }

  /** Moves so that a cell is seen. */
  reach(row, column) {
    this.row = Math.min(Math.max(this.row, row + 1 - this.seenRows), row);
    this.column = Math.min(Math.max(this.column, column + 1 - this.seenColumns), column);
    this.hold();
  }

  hold() {
    this.times = Math.min(this.times, this.most);
    this.row = Math.max(0, Math.min(this.row, this.rows - this.seenRows));
    this.column = Math.max(0, Math.min(this.column, this.columns - this.seenColumns));
  }
}

/** A matrix in words: a value, the largest of a row, the largest of a column. */
class MatrixWords {
  constructor(told, data) {
    Object.assign(this, { told, data });
  }

  rowName(at) {
    return cellName(this.told, this.told.rows, this.data.factor, at);
  }

  columnName(at) {
    return cellName(this.told, this.told.columns, this.data.factor, at);
  }

  /** The note on a screen whose squares show several cells. */
  together(together) {
    return together > 1 ? `Each square shows the largest of ${together} × ${together} cells. Zoom in to see all.` : "";
  }

  cell({ row, column }) {
    return `${this.rowName(row)} → ${this.columnName(column)}: ${saidValue(this.data, row * this.data.columns + column)}`;
  }

  row(row) {
    const { columns } = this.data, placeOf = (column) => row * columns + column;
    const named = this.namedLargest(columns, placeOf, (column) => this.columnName(column));
    return `${this.rowName(row)} attends most to ${named || "nothing shown here"}. ${this.sum(row)}`;
  }

  column(column) {
    const { rows, columns } = this.data, placeOf = (row) => row * columns + column;
    const named = this.namedLargest(rows, placeOf, (row) => this.rowName(row));
    return `${this.columnName(column)} receives most attention from ${named || "nothing shown here"}.`;
  }

  namedLargest(count, placeOf, nameOf) {
    const { data } = this, valueAt = (at) => (data.cells[placeOf(at)] === MASKED ? 0 : data.value(placeOf(at)));
    return largestOf(count, valueAt, MOST_NAMED_KEYS).map((at) => `${nameOf(at)} (${saidValue(data, placeOf(at))})`).join(", ");
  }

  /** Attention of one query is a share: its row has a sum of 1, of which a part may be shown. */
  sum(row) {
    const { data, told } = this, all = told.columns.length === told.tokens.length;
    if (data.factor > 1) return "";
    if (!data.exact) return all ? "Each row sums to 1." : "Each row sums to 1 over all tokens; some are not shown.";
    const places = Array.from({ length: data.columns }, (_, column) => row * data.columns + column);
    const sum = places.reduce((before, at) => before + (data.cells[at] === MASKED ? 0 : data.value(at)), 0).toFixed(2);
    return all ? `Its row sums to ${sum}.` : `Its row sums to ${sum} over the tokens shown and to 1 over all.`;
  }
}

/** Paints `data` (see `headCells`) as far as the zoom shows it; `at` is the cell in hand. */
class MatrixPainting extends Drawing {
  /** The row whose token all heads are asked about; -1 where they are not. */
  get queried() {
    const { view, rows, query, grid } = this.model.told;
    return view === "query" && !grid ? Math.floor(rows.indexOf(query) / this.data.factor) : -1;
  }

  /** Places the cells on the canvas, in pixels. */
  place() {
    const { rows, columns, factor } = this.data, { told } = this.model, width = this.root.clientWidth, most = Math.min(MATRIX.label, width * MATRIX.labelShare);
    const pen = this.canvas.getContext("2d");
    this.font = `${MATRIX.font}px ${getComputedStyle(this.root).fontFamily}`;
    pen.font = `bold ${this.font}`;
    const longest = (count, ofRows) => Math.max(...Array.from({ length: count }, (_, at) => pen.measureText(this.label(at, ofRows)).width));
    if (this.measured?.told !== told || this.measured.factor !== factor) this.measured = { told, factor, names: [longest(rows, true), longest(columns, false)] };
    const [left, top] = this.measured.names.map((name) => Math.ceil(Math.min(most, name)) + MATRIX.strip + 4);
    const side = Math.min(width - left - 2, MATRIX.side);
    const across = Math.min(MATRIX.most, side / columns), down = Math.min(MATRIX.most, side / rows);
    this.box = { left, top, width: across * columns, height: down * rows };
    this.zoom.fit(rows, columns, Math.min(across, down));
  }

  get cellSize() {
    return { across: this.box.width / this.zoom.seenColumns, down: this.box.height / this.zoom.seenRows };
  }

  /** Beside the matrix the first token of a cell is enough, and a patch is short. */
  label(at, ofRows) {
    const { told } = this.model, { factor } = this.data, name = tokenName(told, (ofRows ? told.rows : told.columns)[at * factor]);
    const short = told.grid ? name.replace(/row (\d+), column (\d+)$/, "r$1 c$2") : name;
    return `${short.slice(0, MATRIX.letters)}${factor > 1 ? " …" : ""}`;
  }

  paint() {
    const { left, top, width, height } = this.box;
    const pen = sharpPen(this.canvas, left + width + 2, top + height + 2);
    this.colors ??= Object.fromEntries(["text", "muted", "ground"].map((name) => [name, resolved(this.root, `var(--xg-${name})`)]));
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    this.paintCells(pen);
    this.paintLines(pen);
    pen.restore();
    this.paintLabels(pen, true);
    this.paintLabels(pen, false);
    this.paintCross(pen);
  }

  /** Paints the cells over the hatch, which shows where a query may not attend: those cells have no color. */
  paintCells(pen) {
    const { left, top, width, height } = this.box, { zoom } = this;
    pen.fillStyle = pen.createPattern(this.hatch(), "repeat");
    pen.fillRect(left, top, width, height);
    const { down, across } = this.cellSize, together = Math.ceil(1 / (Math.min(down, across) * (window.devicePixelRatio || 1)) - 0.01);
    if (this.image?.together !== together) this.image = this.imageOf(Math.max(1, together));
    pen.imageSmoothingEnabled = false;
    const { picture } = this.image, by = this.image.together;
    pen.drawImage(picture, zoom.column / by, zoom.row / by, zoom.seenColumns / by, zoom.seenRows / by, left, top, width, height);
  }

  /** A pixel a cell, or for the largest of `together` x `together` cells where the screen has too few pixels. */
  imageOf(together) {
    const { cells, columns, rows, step } = this.data, [wide, high] = [Math.ceil(columns / together), Math.ceil(rows / together)];
    const picture = Object.assign(document.createElement("canvas"), { width: wide, height: high }), pen = picture.getContext("2d");
    const made = pen.createImageData(wide, high), pixels = new Uint32Array(made.data.buffer);
    const table = this.inks(step * LEVELS), seen = new Int16Array(wide * high).fill(-1);
    for (let at = 0; at < cells.length; at += 1) {
      if (cells[at] === MASKED) continue;
      const to = Math.floor(Math.floor(at / columns) / together) * wide + Math.floor((at % columns) / together);
      if (cells[at] > seen[to]) seen[to] = cells[at];
    }
    seen.forEach((most, at) => most >= 0 && (pixels[at] = table[most]));
    pen.putImageData(made, 0, 0);
    return { together, picture };
  }

  /** A pixel for each level of a head whose largest value is `top`. */
  inks(top) {
    const table = this.model.table(1, 1), share = top / this.model.end(...this.head);
    return table.map((_, level) => table[Math.round(LEVELS * Math.min(1, (share * level) / LEVELS) ** this.gamma)]);
  }

  hatch() {
    const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 }), pen = tile.getContext("2d");
    pen.strokeStyle = this.colors.muted;
    pen.globalAlpha = 0.6;
    pen.stroke(new Path2D("M-1 1L1 -1M-1 7L7 -1M5 7L7 5"));
    return tile;
  }

  /** Paints lines between large cells, and between the two texts of a pair. */
  paintLines(pen) {
    const { across, down } = this.cellSize, { told } = this.model, { factor, rows, columns } = this.data;
    pen.fillStyle = this.colors.ground;
    if (across >= MATRIX.gridFrom) for (let at = 0; at <= columns; at += 1) pen.fillRect(this.xOf(at) - 0.5, 0, 1, 1e4);
    if (down >= MATRIX.gridFrom) for (let at = 0; at <= rows; at += 1) pen.fillRect(0, this.yOf(at) - 0.5, 1e4, 1);
    pen.fillStyle = this.colors.text;
    const [row, column] = [partEdge(told, told.rows, factor), partEdge(told, told.columns, factor)];
    if (row > 0) pen.fillRect(0, this.yOf(row) - 0.75, 1e4, 1.5);
    if (column > 0) pen.fillRect(this.xOf(column) - 0.75, 0, 1.5, 1e4);
  }

  xOf(column) {
    return this.box.left + (column - this.zoom.column) * this.cellSize.across;
  }

  yOf(row) {
    return this.box.top + (row - this.zoom.row) * this.cellSize.down;
  }

  /** Paints as many labels as there is room for, and always the one in hand. Columns are written upwards. */
  paintLabels(pen, ofRows) {
    const { zoom, box } = this, size = ofRows ? this.cellSize.down : this.cellSize.across;
    const [first, seen] = ofRows ? [zoom.row, zoom.seenRows] : [zoom.column, zoom.seenColumns];
    const every = Math.ceil(MATRIX.line / size), inHand = (ofRows ? this.at?.row ?? this.queried : this.at?.column) ?? -1;
    pen.save();
    pen.textBaseline = "middle";
    if (!ofRows) pen.transform(0, -1, 1, 0, 0, 0);
    for (let at = Math.floor(first); at < first + seen; at += 1) {
      const middle = (ofRows ? this.yOf(at) : this.xOf(at)) + size / 2, start = ofRows ? box.top : box.left;
      const beside = inHand >= 0 && Math.abs(at - inHand) * size < MATRIX.line;
      if (middle < start || middle > start + (ofRows ? box.height : box.width)) continue;
      this.paintStrip(pen, at, middle, size, ofRows);
      if (at === inHand || (at % every === 0 && !beside)) this.paintLabel(pen, at, middle, at === inHand, ofRows);
    }
    pen.restore();
  }

  paintLabel(pen, at, middle, inHand, ofRows) {
    const { told } = this.model, room = (ofRows ? this.box.left : this.box.top) - MATRIX.strip - 3;
    const token = told.tokens[(ofRows ? told.rows : told.columns)[at * this.data.factor]];
    pen.fillStyle = token.special && !inHand ? this.colors.muted : this.colors.text;
    pen.font = inHand ? `bold ${this.font}` : this.font;
    const name = fitted(pen, this.label(at, ofRows), room);
    // Turned by a quarter, a label begins at the far end, and the matrix lies at negative places.
    pen.textAlign = ofRows ? "right" : "left";
    pen.fillText(name, ofRows ? room : -room, middle);
  }

  /** Paints a strip beside the tokens of a pair: wide for text A, narrow for text B. */
  paintStrip(pen, at, middle, size, ofRows) {
    const { told } = this.model, { part } = told.tokens[(ofRows ? told.rows : told.columns)[at * this.data.factor]];
    if (!isPair(told) || part < 0) return;
    const end = (ofRows ? this.box.left : -this.box.top) - (ofRows ? 3 : -3), wide = part ? 1 : 4;
    pen.fillStyle = this.colors.muted;
    pen.fillRect(ofRows ? end - wide : end, middle - size / 2, wide, size + 0.2);
  }

  /** The row and the column in hand, and their cell. */
  paintCross(pen) {
    if (!this.at) return;
    const { row, column } = this.at, { left, top, width, height } = this.box, { across, down } = this.cellSize;
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.strokeStyle = this.colors.text;
    if (row !== null) pen.strokeRect(left + 0.5, this.yOf(row) - 0.5, width - 1, down + 1);
    if (column !== null) pen.strokeRect(this.xOf(column) - 0.5, top + 0.5, across + 1, height - 1);
    if (row === null || column === null) return;
    pen.lineWidth = 2;
    pen.strokeRect(this.xOf(column) - 0.5, this.yOf(row) - 0.5, across + 1, down + 1);
  }
}

function drawMatrix(host, model, head) {
  drawingIn(host, MatrixDrawing, model, [head]);
}

class MatrixDrawing extends MatrixPainting {
  build() {
    [this.zoom, this.pointers, this.at] = [new Zoom(), new Map(), null];
    this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-roledescription": "matrix" });
    this.closer = element("button", { type: "button", "aria-label": "Zoom in", title: "Zoom in: +" }, "+");
    this.farther = element("button", { type: "button", "aria-label": "Zoom out", title: "Zoom out: −" }, "−");
    this.whole = element("button", { type: "button", title: "Whole matrix: 0" }, "Whole");
    const hint = element("span", { class: "xg-small" }, "Drag to pan. Click, then scroll to zoom.");
    this.zoomer = element("span", { class: "xg-one-tools" }, this.closer, this.farther, this.whole, hint);
    const [faint, fainter] = faintBox();
    this.faint = faint;
    this.tools = element("div", { class: "xg-one-tools" }, fainter, this.zoomer);
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
    this.on(this.faint, "change", () => this.recolor());
  }

  show(model, [head]) {
    Object.assign(this, { model, head, image: null, colors: null });
    this.data = headCells(model, head);
    this.words = this.data && new MatrixWords(model.told, this.data);
    const { row = 0, column = 0 } = this.at ?? {};
    if (this.data && (row >= this.data.rows || column >= this.data.columns)) this.at = null;
    this.root.style.setProperty("--xg-hue", headHue(head[1]));
    this.draw();
  }

  recolor() {
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
    this.canvas.setAttribute("aria-label", `Attention of head ${headName(this.head)}: ${rows} queries by ${columns} keys`);
    this.canvas.style.touchAction = this.zoom.times > 1 ? "none" : "pan-y";
    this.zoomer.hidden = this.zoom.most <= 1;
    const hatched = cells.includes(MASKED) ? [element("i", { class: "xg-hatch" }), element("span", {}, "masked")] : [];
    const end = this.model.end(...this.head);
    this.legend.replaceChildren(element("i", { class: "xg-scale xg-amount" }), `0 to ${plainNumber(end)}${bentWords(this.gamma, end)}`, ...hatched);
    if (isPair(told)) this.legend.append(element("span", {}, "A: first text, B: second text"));
    this.note.textContent = [shrunkWords(told, this.data), factor > 1 && "Lock the head to see all values.", this.words.together(this.image.together)].filter(Boolean).join(" ");
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

  /** Zooms by a factor towards a place of the canvas; 0 shows the whole matrix. */
  zoomBy(factor, place = null) {
    const { left, top, width, height } = this.box, share = (value) => Math.min(1, Math.max(0, value));
    const [across, down] = place ? [share((place[0] - left) / width), share((place[1] - top) / height)] : this.middle();
    this.zoom.by(factor, across, down);
    this.paint();
    this.write();
  }

  /** The place of the cell in hand as shares of the visible part; else its middle. */
  middle() {
    const { row, column } = this.at ?? {}, { zoom } = this;
    if (row == null || column == null) return [0.5, 0.5];
    return [(column + 0.5 - zoom.column) / zoom.seenColumns, (row + 0.5 - zoom.row) / zoom.seenRows];
  }

  onKey(event) {
    if (hasModifier(event) || !this.data) return;
    if (event.key in MATRIX_KEYS) this.step(MATRIX_KEYS[event.key]);
    else if ("+=".includes(event.key)) this.zoomBy(ZOOM_STEP);
    else if (event.key === "-") this.zoomBy(1 / ZOOM_STEP);
    else if (event.key === "0") this.zoomBy(0);
    else if (event.key === "Enter" && this.at) this.ask(this.at);
    else return;
    stop(event);
  }

  /** Asks for the attention of the token of a row, where all heads show that of one token. */
  ask(at) {
    if (this.queried >= 0 && at && at.row !== null) this.model.ask({ query: this.model.told.rows[at.row * this.data.factor] });
  }

  /** The next cell; where it is not seen, what is seen moves along. */
  step([down, right]) {
    const { rows, columns } = this.data;
    this.point({ row: within((this.at?.row ?? 0) + down, rows), column: within((this.at?.column ?? 0) + right, columns) }, true);
  }
}
