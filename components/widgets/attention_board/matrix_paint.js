// How a matrix is painted: cells, the hatch where a token may not attend, labels as far as there is room, the cross.

const MATRIX = { most: 36, side: 560, label: 104, labelShare: 0.28, font: 11.5, letters: 40, line: 12.5, gridFrom: 9, strip: 9 };
const FAINT_GAMMA = 0.5; // of the colours where faint values are wanted

/** Of `data` as `headCells` gives it, as far as the zoom shows it; `at` is the cell in hand. */
class MatrixPainting extends Drawing {
  get gamma() {
    return this.faint.checked ? FAINT_GAMMA : 1;
  }

  /** The row whose token all heads are asked about; -1 where they are not. */
  get queried() {
    const { view, rows, query, grid } = this.model.told;
    return view === "query" && !grid ? Math.floor(rows.indexOf(query) / this.data.factor) : -1;
  }

  /** Where the cells are, in pixels of the canvas, and how large all of them are. */
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
    this.colours ??= Object.fromEntries(["text", "muted", "ground"].map((name) => [name, resolved(this.root, `var(--xg-${name})`)]));
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

  /** Below each cell lies the hatch of those that may not be attended to, which have no colour of their own. */
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
    pen.strokeStyle = this.colours.muted;
    pen.globalAlpha = 0.6;
    pen.stroke(new Path2D("M-1 1L1 -1M-1 7L7 -1M5 7L7 5"));
    return tile;
  }

  /** Between large cells, and between the two texts of a pair. */
  paintLines(pen) {
    const { across, down } = this.cellSize, { told } = this.model, { factor, rows, columns } = this.data;
    pen.fillStyle = this.colours.ground;
    if (across >= MATRIX.gridFrom) for (let at = 0; at <= columns; at += 1) pen.fillRect(this.xOf(at) - 0.5, 0, 1, 1e4);
    if (down >= MATRIX.gridFrom) for (let at = 0; at <= rows; at += 1) pen.fillRect(0, this.yOf(at) - 0.5, 1e4, 1);
    pen.fillStyle = this.colours.text;
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

  /** As many as there is room for; the one in hand is always there. Columns are written upwards. */
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
    pen.fillStyle = token.special && !inHand ? this.colours.muted : this.colours.text;
    pen.font = inHand ? `bold ${this.font}` : this.font;
    const name = fitted(pen, this.label(at, ofRows), room);
    // Turned by a quarter, a label begins at the far end, and the matrix lies at negative places.
    pen.textAlign = ofRows ? "right" : "left";
    pen.fillText(name, ofRows ? room : -room, middle);
  }

  /** Of a pair: full beside tokens of A, a line beside those of B. */
  paintStrip(pen, at, middle, size, ofRows) {
    const { told } = this.model, { part } = told.tokens[(ofRows ? told.rows : told.columns)[at * this.data.factor]];
    if (!isPair(told) || part < 0) return;
    const end = (ofRows ? this.box.left : -this.box.top) - (ofRows ? 3 : -3), wide = part ? 1 : 4;
    pen.fillStyle = this.colours.muted;
    pen.fillRect(ofRows ? end - wide : end, middle - size / 2, wide, size + 0.2);
  }

  /** The row and the column in hand, and their cell. */
  paintCross(pen) {
    if (!this.at) return;
    const { row, column } = this.at, { left, top, width, height } = this.box, { across, down } = this.cellSize;
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.strokeStyle = this.colours.text;
    if (row !== null) pen.strokeRect(left + 0.5, this.yOf(row) - 0.5, width - 1, down + 1);
    if (column !== null) pen.strokeRect(this.xOf(column) - 0.5, top + 0.5, across + 1, height - 1);
    if (row === null || column === null) return;
    pen.lineWidth = 2;
    pen.strokeRect(this.xOf(column) - 0.5, this.yOf(row) - 0.5, across + 1, down + 1);
  }
}
