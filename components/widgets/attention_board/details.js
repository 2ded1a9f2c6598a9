// One head closely in two other ways than as a matrix: lines between tokens, and a map over the picture.

// Lines from tokens that look (left) to those that they look at (right), a hue a head; opacity is weight by the number
// of heads (BertViz). Only what is seen of a long text is drawn.

const LINES = { row: 21, most: 3000, faintest: 0.01, names: 0.34, widest: 170, high: 460, wide: 2, long: 100 };
const LINES_HINT = "Left: queries. Right: the keys that they attend to. Hover a token, or use the arrow keys, to see only its lines.";
const LINES_ASK = " Click a token on the left, or press Enter, to see what it attends to in all heads.";
const MOST_NAMED_LINES = 4;

/** Lines of `heads`; of a long text at first those of the shown one alone. */
function drawLines(host, model, heads, shown) {
  drawingIn(host, LinesDrawing, model, heads, shown);
}

class LinesDrawing extends Drawing {
  build() {
    this.at = null;
    this.title = element("div", { class: "xg-heads" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    [this.queries, this.keys] = ["Queries", "Keys"].map((name) => element("div", { class: "xg-lines-names", role: "listbox", "aria-label": name }));
    this.sheet = element("div", { class: "xg-lines-sheet" }, this.queries, this.canvas, this.keys);
    this.scroller = element("div", { class: "xg-lines-scroll" }, this.sheet);
    this.said = element("p", { class: "xg-said" });
    this.note = element("p", { class: "xg-small" });
    this.every = element("button", { type: "button", "aria-pressed": "false" });
    this.tools = element("div", { class: "xg-one-tools" }, this.every);
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.root = element("div", { class: "xg-one" }, this.tools, this.title, this.scroller, this.said, this.note, this.told);
    this.listen();
  }

  listen() {
    this.on(this.scroller, "scroll", () => this.data && this.paint());
    this.on(this.sheet, "pointerover", (event) => event.pointerType === "mouse" && this.point(this.placeOf(event)));
    this.on(this.sheet, "pointerleave", (event) => event.pointerType === "mouse" && this.point(this.focused()));
    this.on(this.sheet, "click", (event) => this.onClick(event));
    this.on(this.sheet, "focusin", (event) => this.point(this.placeOf(event), true));
    this.on(this.sheet, "focusout", () => this.point(null));
    this.on(this.sheet, "keydown", (event) => this.onKey(event));
    this.on(this.every, "click", () => this.toggle());
  }

  /** Switches between all heads and one, for a long text. */
  toggle() {
    this.all = !this.all;
    this.show(this.model, this.given, this.shown);
  }

  show(model, given, shown) {
    const isLong = Math.max(model.told.rows.length, model.told.columns.length) > LINES.long && given.length > 1;
    const heads = isLong && !this.all ? [shown] : given;
    Object.assign(this, { given, shown, isLong });
    if (this.data && model === this.model && String(heads) === String(this.heads)) return;
    Object.assign(this, { model, heads, data: heads.map((head) => headCells(model, head)) });
    if (!heads.length || this.data.includes(null)) this.data = null;
    this.title.replaceChildren(...heads.map(headBadge));
    this.title.hidden = heads.length < 2;
    this.root.style.setProperty("--xg-hue", heads.length === 1 ? headHue(heads[0][1]) : "");
    this.scroller.hidden = !this.data;
    this.tools.hidden = !isLong;
    this.every.textContent = `All ${given.length} heads`;
    this.every.setAttribute("aria-pressed", Boolean(this.all));
    if (!this.data) return this.wait();
    this.name();
    this.draw();
  }

  wait() {
    this.note.textContent = "";
    this.said.textContent = this.heads.length ? LOADING : "No head is selected. Click one in the score map.";
  }

  /** The tokens of both sides, anew where they are others than before. */
  name() {
    const { told } = this.model, { factor, rows, columns } = this.data[0];
    const names = [[told.rows, rows], [told.columns, columns]].map(([shown, count]) => Array.from({ length: count }, (_, at) => [cellName(told, shown, factor, at), told.tokens[shown[at * factor]]]));
    const written = JSON.stringify(names);
    if (this.written === written) return;
    [this.written, this.at] = [written, null];
    [this.queries, this.keys].forEach((list, side) => {
      const edge = partEdge(told, side ? told.columns : told.rows, factor);
      list.replaceChildren(...names[side].map(([name, token], at) => this.option(name, token, side, at, edge)));
    });
  }

  option(name, token, side, at, edge) {
    const classes = [token.special && "xg-special-name", at === edge && "xg-edge"].filter(Boolean).join(" ");
    const option = element("div", { role: "option", "aria-selected": "false", class: classes, tabindex: at ? -1 : 0, "data-side": side, "data-at": at, title: name, "aria-label": name });
    option.append(element("span", {}, name), element("b"));
    return option;
  }

  draw() {
    const width = this.root.clientWidth;
    if (!this.data || !width) return;
    const { rows, columns } = this.data[0], longest = Math.max(rows, columns);
    this.sheet.style.height = `${longest * LINES.row}px`;
    this.high = Math.min(longest * LINES.row, LINES.high);
    this.scroller.style.maxHeight = `${this.high}px`;
    const names = Math.min(LINES.widest, this.scroller.clientWidth * LINES.names);
    this.sheet.style.gridTemplateColumns = `${names}px minmax(0, 1fr) ${names}px`;
    this.wide = this.scroller.clientWidth - 2 * names;
    this.colors = this.heads.map(([, head]) => resolved(this.root, headHue(head)));
    this.cut = this.leastDrawn();
    this.paint();
    this.write();
  }

  /** The weight from which lines are drawn: 0.01, or more where there would be too many to tell apart. */
  leastDrawn() {
    const least = LINES.faintest, hundredths = new Float64Array(101);
    for (const head of this.data) {
      for (let at = 0; at < head.cells.length; at += 1) {
        if (head.cells[at] !== MASKED) hundredths[Math.min(100, Math.floor(100 * head.value(at)))] += 1;
      }
    }
    let [from, lines] = [100, hundredths[100]];
    while (from > 1 && lines + hundredths[from - 1] <= LINES.most) lines += hundredths[(from -= 1)];
    return Math.max(least, from / 100);
  }

  paint() {
    const pen = sharpPen(this.canvas, this.wide, this.high), top = this.scroller.scrollTop;
    pen.lineWidth = LINES.wide;
    this.data.forEach((head, number) => {
      pen.strokeStyle = this.colors[number];
      this.at ? this.paintOne(pen, head, top) : this.paintAll(pen, head, top);
    });
  }

  paintAll(pen, head, top) {
    const { columns, cells } = head;
    for (let at = 0; at < cells.length; at += 1) {
      if (cells[at] === MASKED || head.value(at) < this.cut) continue;
      this.paintLine(pen, Math.floor(at / columns), at % columns, head.value(at) / this.heads.length, top);
    }
  }

  paintOne(pen, head, top) {
    for (const { row, column, at } of this.linesOf(head)) this.paintLine(pen, row, column, head.value(at), top);
  }

  /** The lines of the token in hand that can be seen. */
  linesOf({ columns, rows, cells, value }) {
    const { side, at: place } = this.at, lines = [];
    for (let other = 0; other < (side ? rows : columns); other += 1) {
      const [row, column] = side ? [other, place] : [place, other], at = row * columns + column;
      if (cells[at] !== MASKED && value(at) >= LINES.faintest) lines.push({ row, column, at, other });
    }
    return lines;
  }

  paintLine(pen, row, column, opacity, top) {
    const from = (row + 0.5) * LINES.row - top, to = (column + 0.5) * LINES.row - top;
    if (Math.max(from, to) < 0 || Math.min(from, to) > this.high) return;
    pen.globalAlpha = Math.min(1, opacity);
    pen.beginPath();
    pen.moveTo(0, from);
    pen.bezierCurveTo(this.wide / 2, from, this.wide / 2, to, this.wide, to);
    pen.stroke();
  }

  write() {
    const { told } = this.model, { rows, columns } = this.data[0];
    const scrolls = Math.max(rows, columns) * LINES.row > LINES.high ? "Scroll to see all tokens; some lines end out of view." : "";
    const { length } = this.heads, many = this.cut > LINES.faintest;
    const opacity = length > 1 ? `Line opacity is the weight divided by ${length}, the number of heads shown; for a selected token, the weight itself.` : "Line opacity is the weight.";
    const cut = `Lines below ${plainNumber(this.cut)} are not drawn${many ? `; for a selected token, lines from ${LINES.faintest} are` : ""}.`;
    const masked = this.data.some(({ cells }) => cells.includes(MASKED)) ? "Masked keys have no line." : "";
    const one = this.isLong && length === 1 ? "The text is long, so only the lines of one head are drawn." : "";
    this.note.textContent = [one, opacity, cut, masked, scrolls, shrunkWords(told, this.data[0])].filter(Boolean).join(" ");
    this.mark();
    this.say();
  }

  /** Values stand beside the other ends of the lines of the token in hand. */
  mark() {
    const { at } = this, lit = new Set(at ? this.data.flatMap((head) => this.linesOf(head).map(({ other }) => other)) : []);
    for (const option of this.sheet.querySelectorAll("[data-side]")) {
      const { side, at: place } = this.placeOf({ target: option }), across = at && side !== at.side;
      this.markOne(option, across && lit.has(place) ? this.meanOf(place) : undefined, Boolean(at) && !across && place === at.at);
    }
  }

  /** The attention between the token in hand and another, mean over the heads. */
  meanOf(place) {
    const [row, column] = this.at.side ? [place, this.at.at] : [this.at.at, place];
    const values = this.data.map(({ cells, columns, value }) => (cells[row * columns + column] === MASKED ? 0 : value(row * columns + column)));
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  markOne(option, mean, inHand) {
    const number = option.lastChild, words = mean === undefined ? "" : mean < 0.005 ? "<0.01" : mean.toFixed(2);
    if (number.textContent !== words) number.textContent = words;
    option.classList.toggle("xg-out", Boolean(this.at) && !inHand && mean === undefined);
    if (option.classList.toggle("xg-in-hand", inHand) !== (option.ariaSelected === "true")) option.ariaSelected = inHand;
  }

  say() {
    const { at } = this;
    this.said.replaceChildren(at ? this.words() : LINES_HINT + (this.model.told.view === "query" ? LINES_ASK : ""));
  }

  /** The largest attention from or to the token in hand, by head, in words. */
  words() {
    const { side, at } = this.at, [own, other] = side ? [this.keys, this.queries] : [this.queries, this.keys];
    const name = (list, place) => list.children[place].title;
    const all = this.data.flatMap((head, number) => this.linesOf(head).map((line) => ({ ...line, head, number })));
    const named = all.sort((a, b) => b.head.value(b.at) - a.head.value(a.at)).slice(0, MOST_NAMED_LINES).map((line) => {
      const by = this.heads.length > 1 ? ` by ${headName(this.heads[line.number])}` : "";
      return `${name(other, line.other)} ${saidValue(line.head, line.at)}${by}`;
    });
    const verb = side ? "receives most attention from" : "attends most to";
    const beside = this.heads.length > 1 ? " The numbers beside tokens are means over the heads shown." : "";
    return `${name(own, at)} ${verb} ${named.join(", ") || "nothing shown here"}.${beside}`;
  }

  placeOf(event) {
    const option = event.target.closest?.("[data-side]");
    return option ? { side: Number(option.dataset.side), at: Number(option.dataset.at) } : null;
  }

  focused() {
    return this.sheet.contains(document.activeElement) ? this.placeOf({ target: document.activeElement }) : null;
  }

  point(at, byKey = false) {
    if (!this.data || (at?.side === this.at?.side && at?.at === this.at?.at)) return;
    this.at = at;
    this.paint();
    this.mark();
    this.say();
    if (at && byKey) this.told.textContent = this.words();
  }

  onClick(event) {
    event.target.closest?.("[data-side]")?.focus({ preventScroll: true });
    this.ask(this.placeOf(event));
  }

  /** Asks for the attention of a token on the left, where all heads show that of one token. */
  ask(at) {
    const { told } = this.model;
    if (at && !at.side && told.view === "query") this.model.ask({ query: told.rows[at.at * this.data[0].factor] });
  }

  onKey(event) {
    const at = this.placeOf(event), { key } = event;
    if (!at || hasModifier(event)) return;
    const list = at.side ? this.keys : this.queries, other = at.side ? this.queries : this.keys, end = list.children.length - 1;
    const places = { ArrowUp: at.at - 1, ArrowDown: at.at + 1, Home: 0, End: end, PageUp: at.at - 10, PageDown: at.at + 10 };
    if (key in places) this.focusOn(list, places[key]);
    else if (key === "Enter") this.ask(at);
    else if (key === "ArrowLeft" || key === "ArrowRight") this.focusOn((key === "ArrowRight") === Boolean(at.side) ? list : other, at.at);
    else return;
    stop(event);
  }

  focusOn(list, place) {
    const option = list.children[within(place, list.children.length)];
    for (const sibling of list.children) sibling.tabIndex = sibling === option ? 0 : -1;
    option.focus();
  }
}

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
