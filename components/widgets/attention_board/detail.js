// What the drawings of one head have in common: its name and hue, its cells, the names of tokens, values in words.
// The model that they are given is that of cells.js.
// A host keeps its drawing, so that zoom, focus and place stay while a person goes from head to head.

const HUES = 16;
const LOADING = "Loading the attention …";
const drawings = new WeakMap(); // by host
const pairs = new WeakMap(); // by what Python told: whether it is of two texts

/** The host's drawing of that kind, made anew where it shows another one; it leaves with its host. */
function drawingIn(host, Drawing, model, heads, shown = heads[0]) {
  const there = drawings.get(host);
  if (there instanceof Drawing && there.root.parentElement === host) return there.show(model, heads, shown);
  there?.leave();
  const made = new Drawing();
  drawings.set(host, made);
  host.replaceChildren(made.root);
  made.show(model, heads, shown);
}

function headHue(head) {
  return `var(--xg-head-${head % HUES})`;
}

function headName([layer, head]) {
  return `${layer}.${head}`;
}

/** The name in the hue of the head. */
function headBadge(head) {
  const badge = element("b", { class: "xg-badge" }, headName(head));
  badge.style.setProperty("--xg-hue", headHue(head[1]));
  return badge;
}

/** A colour of the style sheet as the page resolves it: a canvas knows no variables. */
function resolved(inside, colour) {
  const probe = inside.appendChild(element("i"));
  probe.style.color = colour;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Three significant digits, as components/numbers.py prints them. */
function plainNumber(value) {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** Of colours or heights that strengthen faint values, where the scale ends. */
function bentWords(gamma, end) {
  return gamma === 1 ? "" : ` · gamma ${gamma}: half the colour at ${plainNumber(end * 0.5 ** (1 / gamma))}`;
}

/** One head's cells, row by row: exact and whole where Python has sent them, else the byte that all heads have. */
function headCells(model, head) {
  const { exact } = model.told;
  if (model.whole && headName(exact.head) === headName(head)) return model.whole;
  const cells = model.cells(...head), step = model.scale(...head) / LEVELS;
  return cells && { cells, ...model.size, step, exact: false, value: (at) => cells[at] * step };
}

/** A cell's value in words; a byte knows it to half a step. */
function saidValue(head, at) {
  if (head.cells[at] === MASKED) return "may not attend";
  if (head.exact) return plainNumber(head.value(at));
  return `about ${head.value(at).toFixed(Math.max(2, Math.round(-Math.log10(head.step))))}`;
}

/** "3 good"; of a pair "A 3 good". Special tokens of a pair belong to no text. */
function tokenName(told, position) {
  const { text, part } = told.tokens[position];
  return `${isPair(told) && part >= 0 ? `${"AB"[part]} ` : ""}${position} ${text}`;
}

/** A cell may stand for several tokens: the first and the last are named. */
function cellName(told, shown, factor, at) {
  const first = shown[at * factor], last = shown[Math.min((at + 1) * factor, shown.length) - 1];
  return first === last ? tokenName(told, first) : `${tokenName(told, first)} … ${tokenName(told, last)}`;
}

/** Of a head whose cells stand for several positions, in words. */
function shrunkWords(told, { rows, columns, factor }) {
  if (factor === 1) return "";
  return `${told.rows.length} × ${told.columns.length} values are drawn as ${rows} × ${columns} cells, each the largest of ${factor} × ${factor}.`;
}

function isPair(told) {
  if (!pairs.has(told)) pairs.set(told, told.tokens.some((token) => token.part === 1));
  return pairs.get(told);
}

/** Where B begins among the cells of one side; -1 where it does not. */
function partEdge(told, shown, factor) {
  const first = shown.findIndex((position) => told.tokens[position].part === 1);
  return isPair(told) && first > 0 ? Math.floor(first / factor) : -1;
}

/** The largest `most` of numbers, as places. */
function largestOf(count, valueAt, most) {
  const places = Array.from({ length: count }, (_, at) => at).filter((at) => valueAt(at) > 0);
  return places.sort((a, b) => valueAt(b) - valueAt(a)).slice(0, most);
}

/** What a drawing has: a root, what it listens to, and a new look whenever its width changes. */
class Drawing {
  constructor() {
    this.listening = new AbortController();
    this.build();
    this.resized = new ResizeObserver(() => this.model && this.draw());
    this.resized.observe(this.root);
  }

  on(target, names, handle, more = {}) {
    for (const name of names.split(" ")) target.addEventListener(name, handle, { signal: this.listening.signal, ...more });
  }

  leave() {
    this.listening.abort();
    this.resized.disconnect();
  }
}

/** A canvas as sharp as the screen, its pen in pixels of the page. */
function sharpPen(canvas, width, height) {
  const dense = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(width * dense), height: Math.round(height * dense) });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  return pen;
}

/** The text, cut to a width. */
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let kept = [...text];
  while (kept.length && pen.measureText(`${kept.join("")}…`).width > width) kept = kept.slice(0, -1);
  return `${kept.join("")}…`;
}
