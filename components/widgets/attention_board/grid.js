// All heads: a grid of cells that light up, are locked by a click and reached by arrow keys, the scores that color one
// grid, and small drawings on one canvas behind another: matrices, or the patches or tokens that a head looks at.

const LABEL = 31; // pixels: the column of numbers of layers, with its gap
const GAP = 3;
const SIDE_LEAST = 22;
const SIDE_MOST = 200;
const HATCH = 4; // pixels from line to line where a query may not attend
const BARS = 0.62; // of its width: the height of a strip of tokens
const APART = 4; // pixels: bars that are as wide have a gap

/** The side of a cell so that `count` of them fill a width. */
function sideFor(width, count) {
  return Math.min(SIDE_MOST, Math.max(SIDE_LEAST, Math.floor((width - LABEL) / count) - GAP));
}

/** A grid of heads. `board` has `light(head)`, `lock(head)`, `isolate(head)` and `unlock()`. */
class HeadGrid {
  constructor(name, board) {
    Object.assign(this, { board, cells: new Map(), lines: [], drawn: "" });
    this.root = element("div", { class: "xg-head-grid", role: "grid", "aria-label": name });
    board.on(this.root, "pointerover", (event) => event.pointerType === "mouse" && this.board.light(this.headOf(event)));
    board.on(this.root, "pointerleave", () => this.board.light(null));
    board.on(this.root, "click", (event) => this.onClick(event));
    board.on(this.root, "keydown", (event) => this.onKey(event));
    board.on(this.root, "focusin", (event) => event.target.matches(":focus-visible") && this.board.light(this.headOf(event)));
    board.on(this.root, "focusout", () => this.board.light(null));
  }

  /** Lines of heads `[layer, head]` under `names`; each line has a name of its own, and `axis` says what these are. */
  show(lines, names, side, height, axis) {
    this.root.style.setProperty("--side", `${side}px`);
    this.root.style.setProperty("--height", `${height}px`);
    this.root.style.setProperty("--count", names.length || lines[0].heads.length);
    const wanted = JSON.stringify([lines, names, axis]);
    if (this.drawn === wanted) return;
    this.drawn = wanted;
    this.lines = lines;
    this.build(names, axis);
  }

  build(names, axis) {
    const focused = this.root.contains(document.activeElement) && this.headOf({ target: document.activeElement });
    this.cells.clear();
    const head = element("div", { role: "row" }, element("span", { role: "columnheader", class: "xg-axis" }, axis));
    head.append(...names.map((name) => element("span", { role: "columnheader", "aria-label": `head ${name}` }, String(name))));
    const above = names.length ? [element("i", { class: "xg-axis", "aria-hidden": "true" }, "head")] : [];
    this.root.replaceChildren(...above, head, ...this.lines.map((line) => this.row(line)));
    if (focused) this.cells.get(headName(focused))?.focus({ preventScroll: true });
  }

  row({ name, said, heads }) {
    const cells = heads.map((head) => {
      const cell = element("div", { role: "gridcell", tabindex: -1, "data-head": headName(head) });
      this.cells.set(headName(head), cell);
      return cell;
    });
    return element("div", { role: "row" }, element("span", { role: "rowheader", "aria-label": said }, name), ...cells);
  }

  /** Says of each cell which one it is, which is locked, lit or dim, and which of them the keyboard reaches. */
  mark({ shown, locked, lit, dim, said, badge }) {
    const names = { shown: headName(shown), locked: locked && headName(locked), lit: lit && headName(lit) };
    const reached = this.cells.has(names.shown) ? names.shown : this.cells.keys().next().value;
    for (const [name, cell] of this.cells) {
      const head = name.split(".").map(Number);
      cell.setAttribute("aria-label", said(head));
      cell.setAttribute("aria-selected", name === names.locked);
      cell.tabIndex = name === reached ? 0 : -1;
      cell.classList.toggle("xg-now", name === names.shown);
      cell.classList.toggle("xg-lit-head", name === names.lit);
      cell.classList.toggle("xg-dim", dim && name !== names.shown);
      cell.dataset.badge = badge(head);
    }
  }

  headOf({ target }) {
    const cell = target.closest?.("[data-head]");
    return cell && this.root.contains(cell) ? cell.dataset.head.split(".").map(Number) : null;
  }

  onClick(event) {
    const head = this.headOf(event);
    if (!head) return;
    if (event.detail === 2) this.board.isolate(head);
    else if (event.detail < 2) this.board.lock(head);
  }

  onKey(event) {
    const head = this.headOf(event);
    if (!head || hasModifier(event)) return;
    if (event.key in ARROWS) this.move(head, ARROWS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.board.lock(head);
    else if (event.key === "Escape") this.board.unlock();
    else return;
    event.preventDefault();
  }

  move(head, [down, right]) {
    const name = headName(head), row = this.lines.findIndex(({ heads }) => heads.some((other) => headName(other) === name));
    const column = this.lines[row].heads.findIndex((other) => headName(other) === name);
    const { heads } = this.lines[within(row + down, this.lines.length)];
    const next = this.cells.get(headName(heads[within(column + right, heads.length)]));
    for (const cell of this.cells.values()) cell.tabIndex = cell === next ? 0 : -1;
    next.focus();
  }
}

/** Scores of heads: the end of their color scale, and the color, words and rank of each. */
class Scores {
  constructor({ score, layers, heads }, colors) {
    Object.assign(this, { score, colors });
    this.shown = layers.flatMap((layer) => heads.map((head) => [layer, head]));
    const sizes = this.shown.map((head) => this.sizeOf(head)).filter((size) => size >= 0);
    this.none = !sizes.length;
    this.end = Math.max(0, ...sizes);
    this.sorted = this.shown.toSorted((one, other) => this.sizeOf(other) - this.sizeOf(one));
    this.ranks = new Map(this.sorted.map((head, at) => [headName(head), at + 1]));
  }

  of([layer, head]) {
    return this.score?.values[layer][head] ?? null;
  }

  sizeOf(head) {
    const value = this.of(head);
    return value === null ? -1 : Math.abs(value);
  }

  color(head) {
    const value = this.of(head);
    if (value === null) return "";
    const side = this.score.signed ? (value < 0 ? "against" : "for") : "amount";
    return this.colors.css(side, this.end ? Math.abs(value) / this.end : 0);
  }

  /** "0.12 logit, rank 3 of 72". */
  words(head) {
    const value = this.of(head);
    if (value === null) return this.score ? "no value" : "";
    const rank = this.ranks.get(headName(head));
    return `${this.printed(value)} ${this.score.unit}, ${rank ? `rank ${rank} of ${this.shown.length}` : "not among the heads shown"}`;
  }

  printed(value) {
    return `${this.score.signed && value > 0 ? "+" : ""}${plainNumber(value)}`;
  }
}

/** For each of so many pixels, the first cell that it shows; cells are drawn together where pixels are fewer. */
function firstCells(cells, pixels) {
  return Int32Array.from({ length: pixels + 1 }, (_, at) => Math.floor((at * cells) / pixels));
}

/** Levels raised by one, 0 where a query may not attend: the largest cell of each pixel, or the cell around it. */
function pooled(levels, rows, columns, height, width) {
  const across = firstCells(columns, width), down = firstCells(rows, height);
  const lines = new Uint8Array(rows * width), found = new Uint8Array(height * width);
  for (let row = 0; row < rows; row += 1) {
    for (let at = 0; at < width; at += 1) {
      const end = Math.max(across[at + 1], across[at] + 1);
      let most = 0;
      for (let column = across[at]; column < end; column += 1) most = Math.max(most, (levels[row * columns + column] + 1) & 255);
      lines[row * width + at] = most;
    }
  }
  for (let at = 0; at < height; at += 1) {
    const end = Math.max(down[at + 1], down[at] + 1);
    for (let row = down[at]; row < end; row += 1) {
      for (let x = 0; x < width; x += 1) found[at * width + x] = Math.max(found[at * width + x], lines[row * width + x]);
    }
  }
  return found;
}

/** A head's map in levels. */
function mapLevels(map, end) {
  return Uint8Array.from(map, (value) => (Number.isNaN(value) ? 255 : Math.round((value / end) * LEVELS)));
}

/** Fills a canvas with drawings at places `[left, top]`; all have one size, in pixels of the canvas. */
class Thumbs {
  constructor() {
    this.canvas = element("canvas", { "aria-hidden": "true" });
  }

  draw(model, gamma, heads, places, { width, height }, canvasSize) {
    Object.assign(this.canvas, canvasSize);
    this.gamma = gamma;
    const pen = this.canvas.getContext("2d"), image = pen.createImageData(width, height), { colors } = model;
    const pixels = new Uint32Array(image.data.buffer);
    heads.forEach((head, at) => {
      this.paint(pixels, model, head, width, height, colors);
      pen.putImageData(image, ...places[at]);
    });
  }

  paint(pixels, model, head, width, height, colors) {
    const { told } = model;
    if (told.view === "matrix") return this.paintMatrix(pixels, model, head, width, height, colors);
    const levels = mapLevels(model.map(...head), model.mapEnd(...head));
    if (told.grid) fillCells(pixels, pooled(levels, ...told.grid, height, width), model.table(1, 1, this.gamma), width, colors);
    else fillBars(pixels, pooled(levels, 1, levels.length, 1, width), this.gamma, width, height, colors, levels.length);
  }

  paintMatrix(pixels, model, head, width, height, colors) {
    const { rows, columns } = model.size, table = model.table(model.scale(...head), model.end(...head), this.gamma);
    fillCells(pixels, pooled(model.cells(...head), rows, columns, height, width), table, width, colors);
  }
}

function maskedAt(at, width, { masked, hatch }) {
  return ((at % width) + Math.floor(at / width)) % HATCH ? masked : hatch;
}

function fillCells(pixels, raised, table, width, colors) {
  for (let at = 0; at < raised.length; at += 1) pixels[at] = raised[at] ? table[raised[at] - 1] : maskedAt(at, width, colors);
}

/** A bar a token, as high as its attention; pale colors would be lost in so little room. */
function fillBars(pixels, raised, gamma, width, height, colors, count) {
  const starts = width / count >= APART ? firstCells(count, width) : null, full = pixel(colors.at("amount", 1));
  for (let at = 0; at < pixels.length; at += 1) {
    const x = at % width, above = height - Math.floor(at / width), level = raised[x] - 1;
    const gap = starts && x + 1 < width && starts[x] !== starts[x + 1];
    const high = level > 0 ? Math.max(1, Math.round((level / LEVELS) ** gamma * height)) : 0;
    if (level < 0) pixels[at] = maskedAt(at, width, colors);
    else pixels[at] = above <= high && !gap ? full : colors.ground;
  }
}
