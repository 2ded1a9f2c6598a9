// The board of heads: the map of their scores, their thumbnails, and one of them closely. Hovering costs no run: Python
// hears of a head that is locked, and of a position whose attention is asked for. How it is asked is in base.js.
//
// First all heads: a grid of cells that light up, are locked by a click and reached by arrow keys, the scores that color
// one grid, and small drawings on one canvas behind another: matrices, or the patches or tokens that a head looks at.

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

// The board itself.

const HINT = "Hover for a head's score, click to lock it, double-click to isolate it. Keyboard: arrows, Enter, Escape.";
const LOST_WORDS = "The attention is incomplete. Reload the page.";
const PALE_WORDS = "The colors of each head are scaled to its largest value, which may be outside this part. A pale head has little attention here.";
const MASK_WORDS = "hatched: masked, because the model reads from left to right";
const SCORE_HEIGHT = 20; // pixels at most
const BADGED = 48; // pixels across at least where each thumbnail has its name

/** The element draws the board, or only brings the bytes of heads into the window (model.js). */
export default function (given) {
  if (!(given.data instanceof Uint8Array)) return showPicker(Board, given);
  layDown(given.data);
  given.parentElement.dataset.shown = "";
}

class Board extends Owned {
  build() {
    Object.assign(this, { wanted: { head: null, alone: false }, lit: null, painted: "", due: 0 });
    this.scores = new HeadGrid("Score of each head", this);
    this.small = new HeadGrid("What each head attends to", this);
    this.thumbs = new Thumbs();
    this.scoreTitle = element("p", { class: "xg-title" });
    this.scoreFoot = element("div");
    this.smallTitle = element("p", { class: "xg-title" });
    this.smallFoot = element("div");
    this.state = element("span", { class: "xg-small", role: "status" });
    this.facts = element("p", { class: "xg-small", "aria-live": "polite" });
    this.badge = element("span");
    this.unlocker = element("button", { type: "button" }, "Unlock");
    this.isolator = element("button", { type: "button" }, "Alone");
    this.host = element("div", { class: "xg-host" });
    const [faint, fainter] = faintBox();
    this.faint = faint;
    this.stage = element("div", { class: "xg-stage" }, this.thumbs.canvas, this.small.root);
    const bar = element("div", { class: "xg-pick" }, this.badge, this.facts, this.unlocker, this.isolator);
    this.scorePart = element("section", { class: "xg-of-scores", "aria-label": "Map of scores" }, this.scoreTitle, this.scores.root, this.scoreFoot);
    const detail = element("section", { class: "xg-detail", "aria-label": "One head" }, bar, this.host);
    const thumbs = element("section", { class: "xg-of-thumbs", "aria-label": "All heads" }, element("div", { class: "xg-titled" }, this.smallTitle, this.state), this.stage, fainter, this.smallFoot);
    this.root = element("div", { class: "xg" }, element("div", { class: "xg-board" }, this.scorePart, detail, thumbs));
    this.listen();
  }

  listen() {
    this.on(this.unlocker, "click", () => this.unlock());
    this.on(this.isolator, "click", () => this.isolate(this.looked));
    this.on(this.faint, "change", () => this.draw());
    this.sized = new ResizeObserver(() => this.model?.colors.known && this.layOut());
    this.sized.observe(this.scorePart);
  }

  take() {
    const model = new BoardModel(this.data, new Colors(this.root), (wanted) => this.askFor(wanted));
    this.model = model;
    this.await(model, "grids", this.data.digest);
    if (this.data.exact) this.await(model, "whole", this.data.exact.digest);
  }

  /** Adds the bytes of a digest to the model, now or when they arrive. */
  await(model, part, digest) {
    const place = arrivalOf(digest);
    if (place.here) model[part] = place.here;
    else place.promise.then((here) => this.arrived(model, part, (place.here = here)), () => this.lost(model));
  }

  adopt() {
    this.wanted = { head: this.data.head, alone: this.data.alone };
  }

  arrived(model, part, here) {
    model[part] = here;
    if (this.model === model) part === "grids" ? this.draw() : this.drawShown();
  }

  lost(model) {
    if (this.model === model) this.state.textContent = LOST_WORDS;
  }

  leave() {
    super.leave();
    this.model = null;
    this.sized.disconnect();
    cancelAnimationFrame(this.due);
  }

  /** The head that is shown closely. */
  get looked() {
    return this.lit ?? this.wanted.head ?? this.data.strongest;
  }

  get gamma() {
    return this.faint.checked ? FAINT_GAMMA : 1;
  }

  light(head) {
    if (JSON.stringify(head) === JSON.stringify(this.lit)) return;
    this.lit = head;
    this.due ||= requestAnimationFrame(() => this.model?.colors.known && this.drawShown());
  }

  lock(head) {
    const alone = this.wanted.alone && headName(head) === headName(this.wanted.head);
    if (this.wanted.head && headName(head) === headName(this.wanted.head)) return;
    this.tell({ head, alone });
  }

  unlock() {
    this.lit = null;
    if (this.wanted.head) this.tell({ head: null, alone: false });
    else this.drawShown();
  }

  isolate(head) {
    const same = this.wanted.head && headName(head) === headName(this.wanted.head);
    this.tell({ head, alone: !(same && this.wanted.alone) });
  }

  tell(wanted) {
    this.wanted = wanted;
    this.asked += 1;
    this.drawShown();
    this.send("locked", { ...wanted, turn: this.asked });
  }

  askFor({ query }) {
    this.asked += 1;
    this.send("asked", { query, turn: this.asked });
  }

  draw() {
    if (!this.colored()) return;
    this.drawWords();
    this.layOut();
    this.drawShown();
  }

  /** Whether the page's style sheet is there; it may come later than this script, which then looks again. */
  colored() {
    const { model } = this;
    if (!model.colors.known) model.colors = new Colors(this.root);
    if (!model.colors.known) requestAnimationFrame(() => this.model === model && this.draw());
    this.ofScores = new Scores(this.data, model.colors);
    return model.colors.known;
  }

  /** Cells as wide as the place allows; by layer both grids have them in the same columns. */
  layOut() {
    const { layers, heads, order, grid, view } = this.data, width = this.scorePart.clientWidth;
    if (!width) return;
    const byLayer = layers.map((layer) => lineOf(layer, heads)), own = sideFor(width, heads.length);
    const across = order === "score" ? Math.min(heads.length, Math.floor(width / BADGED)) : heads.length;
    const ratio = view === "matrix" ? 1 : grid ? grid[0] / grid[1] : BARS;
    const side = sideFor(width, across), height = Math.round(side * ratio);
    this.scores.show(byLayer, heads, own, Math.min(own, SCORE_HEIGHT), "layer");
    if (order === "score") this.small.show(ranked(this.ofScores.sorted, across), [], side, height, "rank");
    else this.small.show(byLayer, heads, side, height, "layer");
    for (const [name, cell] of this.scores.cells) this.paintScore(cell, name.split(".").map(Number));
    this.paint(side, height);
    this.mark();
  }

  paintScore(cell, head) {
    cell.style.backgroundColor = this.ofScores.color(head);
    cell.classList.toggle("xg-none", this.ofScores.of(head) === null);
  }

  /** The thumbnails, unless they are there already. */
  paint(side, height) {
    const { digest, view, query, scale, order } = this.data, dense = window.devicePixelRatio || 1;
    if (!this.model.grids) return;
    const look = [digest, view, query, scale, order, this.small.drawn, side, dense, this.model.ink(1), this.model.ink(0), this.gamma];
    const wanted = JSON.stringify(look);
    if (this.painted === wanted) return;
    this.painted = wanted;
    const { width, height: high } = this.small.root.getBoundingClientRect(), { left, top } = this.small.root.getBoundingClientRect();
    const places = [...this.small.cells.values()].map((cell) => {
      const box = cell.getBoundingClientRect();
      return [Math.round((box.left - left) * dense), Math.round((box.top - top) * dense)];
    });
    const heads = this.small.lines.flatMap((line) => line.heads);
    const size = { width: Math.round(side * dense), height: Math.round(height * dense) };
    this.thumbs.draw(this.model, this.gamma, heads, places, size, { width: Math.round(width * dense), height: Math.round(high * dense) });
    Object.assign(this.thumbs.canvas.style, { width: `${width}px`, height: `${high}px` });
    this.thumbs.canvas.dataset.drawn = digest;
  }

  /** All that changes while a person goes from head to head. */
  drawShown() {
    cancelAnimationFrame(this.due);
    this.due = 0;
    this.mark();
    this.drawDetail();
  }

  mark() {
    const { wanted, lit, looked: shown } = this, dim = wanted.alone && !lit;
    const said = (head) => this.nameOf(head), change = (head) => changeOf(this.data, head);
    this.scores.mark({ shown, locked: wanted.head, lit, dim, said, badge: change });
    const badge = (head) => [this.data.order === "score" ? headName(head) : "", change(head)].filter(Boolean).join(" ");
    this.small.mark({ shown, locked: wanted.head, lit, dim, said, badge });
  }

  /** "layer 3, head 7: importance 0.12 logit, rank 3 of 72". */
  nameOf(head) {
    const { score } = this.data, change = changeOf(this.data, head);
    const words = score ? `: ${score.title} ${this.ofScores.words(head)}` : "";
    return `layer ${head[0]}, head ${head[1]}${words}${change === "off" ? ", switched off" : change ? `, scaled by ${change.slice(1)}` : ""}`;
  }

  drawDetail() {
    const { looked: shown, wanted, data } = this, isLocked = wanted.head && headName(shown) === headName(wanted.head);
    const name = this.nameOf(shown);
    this.badge.replaceChildren(headBadge(shown));
    this.facts.replaceChildren(element("b", {}, `${name[0].toUpperCase()}${name.slice(1)}`), ` · ${isLocked ? "locked" : this.lit ? "click to lock" : this.ofScores.none ? "the first" : "the strongest"}`);
    this.unlocker.hidden = !wanted.head;
    this.isolator.setAttribute("aria-pressed", wanted.alone);
    this.host.classList.toggle("xg-late", !this.model.grids);
    if (!this.model.grids) return this.host.childElementCount || (this.host.textContent = LOADING);
    if (data.detail === "lines") drawLines(this.host, this.model, this.activeHeads(), shown);
    else if (data.detail === "overlay") drawOverlay(this.host, this.model, shown);
    else drawMatrix(this.host, this.model, shown);
    if (this.model.whole) this.host.dataset.whole = data.exact.digest;
  }

  /** The heads whose lines are drawn: all visible ones of the layer, or the isolated one. */
  activeHeads() {
    const [layer] = this.looked, { heads } = this.data;
    return this.wanted.alone ? [this.looked] : heads.map((head) => [layer, head]);
  }

  drawWords() {
    const { score, viewWords, notes, order, view, part } = this.data;
    this.scoreTitle.textContent = score ? score.title : "No score";
    this.scoreFoot.replaceChildren(...(score ? [this.scoreLegend(), small(score.words)] : []), small(HINT));
    this.smallTitle.textContent = viewWords;
    const sorted = order === "score" ? [small("Sorted by absolute score, largest first.")] : [];
    const pale = part && view === "matrix" ? [small(PALE_WORDS)] : [];
    const masks = this.model.hatched ? [small(element("i", { class: "xg-scale xg-hatched" }), MASK_WORDS)] : [];
    this.smallFoot.replaceChildren(this.thumbLegend(), ...masks, ...pale, ...sorted, ...notes.map((note) => small(note)));
    this.state.textContent = this.model.grids ? "" : LOADING;
  }

  thumbLegend() {
    const { view, grid } = this.data, bars = view !== "matrix" && !grid, end = this.endWords();
    const bent = this.faint.checked ? ` · gamma ${FAINT_GAMMA}: half the ${bars ? "height" : "color"} at a quarter of it` : "";
    if (bars) return small(`One bar per token; full height: ${end}${bent}.`);
    return small("0 ", element("i", { class: "xg-scale xg-amount" }), end, bent);
  }

  /** The end of the scale of the thumbnails. */
  endWords() {
    const { scale, view, layers, heads, tokens, size } = this.data, { model } = this, isMatrix = view === "matrix";
    const least = isMatrix ? "" : `, at least ${plainNumber(1 / tokens.length)} (uniform attention)`;
    if (scale !== "shared") return `the largest of each head${least}`;
    const end = isMatrix ? model.end(layers[0], heads[0]) : model.mapEnd(layers[0], heads[0]);
    const all = layers.length * heads.length < size[0] * size[1] ? "the heads shown" : "all heads";
    return `${plainNumber(end)}, the largest of ${all}${least}`;
  }

  scoreLegend() {
    const { score } = this.data, { end, none } = this.ofScores, printed = (value) => this.ofScores.printed(value);
    if (none) return small("No head has this score for this input. Choose another score.");
    const scale = element("i", { class: `xg-scale ${score.signed ? "xg-signed" : "xg-amount"}` });
    return small(score.signed ? `${printed(-end)} ` : "0 ", scale, `${printed(end)} ${score.unit}`);
  }
}

function small(...words) {
  return element("p", { class: "xg-small" }, ...words);
}

function lineOf(layer, heads) {
  return { name: String(layer), said: `layer ${layer}`, heads: heads.map((head) => [layer, head]) };
}

/** Lines of so many heads in their order. */
function ranked(sorted, count) {
  return Array.from({ length: Math.ceil(sorted.length / count) }, (_, at) => {
    const heads = sorted.slice(at * count, (at + 1) * count), first = at * count + 1;
    return { name: String(first), said: `ranks ${first} to ${first + heads.length - 1}`, heads };
  });
}

/** "off", "×0.5", or nothing where the head is as it was. */
function changeOf(told, head) {
  const scale = told.changed[headName(head)];
  return scale === undefined ? "" : scale === 0 ? "off" : `×${plainNumber(scale)}`;
}
