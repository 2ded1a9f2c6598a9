// Layers and heads as a grid of cells that light up, are locked by a click and reached by arrow keys: the map of the
// score, and the places of the thumbnails.

const STEPS_OF_KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e4], End: [0, 1e4] };
const LABEL = 31; // pixels: the column of numbers of layers, with its gap
const GAP = 3;
const SIDE_LEAST = 22;
const SIDE_MOST = 200;

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
    if (!head || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in STEPS_OF_KEYS) this.move(head, STEPS_OF_KEYS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.board.lock(head);
    else if (event.key === "Escape") this.board.unlock();
    else return;
    event.preventDefault();
  }

  move(head, [down, right]) {
    const name = headName(head), row = this.lines.findIndex(({ heads }) => heads.some((other) => headName(other) === name));
    const column = this.lines[row].heads.findIndex((other) => headName(other) === name);
    const within = (at, list) => list[Math.min(Math.max(at, 0), list.length - 1)];
    const next = this.cells.get(headName(within(column + right, within(row + down, this.lines).heads)));
    for (const cell of this.cells.values()) cell.tabIndex = cell === next ? 0 : -1;
    next.focus();
  }
}

/** What the scores say: where their colours end, the colour, words and rank of each head. */
class Scores {
  constructor({ score, layers, heads }, colours) {
    Object.assign(this, { score, colours });
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

  colour(head) {
    const value = this.of(head);
    if (value === null) return "";
    const side = this.score.signed ? (value < 0 ? "against" : "for") : "amount";
    return this.colours.css(side, this.end ? Math.abs(value) / this.end : 0);
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
