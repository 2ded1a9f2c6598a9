// All heads' attention as bytes (engine/heads/matrices.py), unpacked once, and what the board's drawings have in common:
// names and hues of heads, their cells, names of tokens, values in words.
// Two elements of a page meet in the window: one brings the bytes, under their digest the other waits for them.

const DIGEST = 16; // characters before the bytes
const LEVELS = 254; // of a cell: its share of the head's largest value
const MASKED = 255; // of a cell whose query may not attend to its key
const WHOLE = "EXO1"; // how the bytes of one head begin
const KEPT = 4; // bodies in the window: all heads and one of them whole, those shown and those on their way
const STEPS = 20; // of color, as components/palette.py has them
const SIDES = { for: "f", against: "a", amount: "m" };
const MAP_TOP = 65534; // of a map's levels; one more may not be attended to
const HUES = 16;
const FAINT_GAMMA = 0.5; // of colors and heights where faint values are wanted
const LOADING = "Loading the attention …";
const drawings = new WeakMap(); // by host
const pairs = new WeakMap(); // by what Python told: whether it is of two texts
const shelf = (window.exegesisAttention ??= new Map());

/** The place where the bytes of a digest arrive; made by the first who asks. */
function arrivalOf(digest) {
  const place = shelf.get(digest) ?? {};
  place.promise ??= new Promise((resolve, reject) => Object.assign(place, { resolve, reject }));
  shelf.delete(digest);
  shelf.set(digest, place);
  for (const old of [...shelf.keys()].slice(0, -KEPT)) shelf.delete(old);
  return place;
}

/** Lays bytes down for the board, unless they are there already. */
function layDown(data) {
  const bytes = data.slice(); // from the start of its memory: floats are read in place
  const place = arrivalOf(new TextDecoder().decode(bytes.subarray(0, DIGEST)));
  if (place.begun) return;
  place.begun = true;
  const read = new TextDecoder().decode(bytes.subarray(DIGEST, DIGEST + 4)) === WHOLE ? wholeHead : unpacked;
  read(bytes).then(place.resolve, place.reject);
}

/** One head's matrix as `pack_head` in data.py writes it. */
async function wholeHead(bytes) {
  const view = new DataView(bytes.buffer), [rows, columns] = [4, 8].map((at) => view.getUint32(DIGEST + at, true));
  const values = Float32Array.from(new Uint16Array(bytes.buffer, DIGEST + 12), halfFloat);
  const top = values.reduce((most, value) => (value > most ? value : most), 0) || 1;
  const cells = Uint8Array.from(values, (value) => (Number.isNaN(value) ? MASKED : Math.round((value / top) * LEVELS)));
  return { cells, rows, columns, factor: 1, step: top / LEVELS, exact: true, value: (at) => values[at] };
}

/** A number in half precision (IEEE 754) without a sign, as attention has none. */
function halfFloat(bits) {
  const power = (bits >> 10) & 31, fraction = bits & 1023;
  if (power === 31) return fraction ? NaN : Infinity;
  return power ? (1024 + fraction) * 2 ** (power - 25) : fraction * 2 ** -24;
}

async function unpacked(bytes) {
  const start = DIGEST + 8, size = new DataView(bytes.buffer).getUint32(DIGEST + 4, true);
  const { shape, factor } = JSON.parse(new TextDecoder().decode(bytes.subarray(start, start + size)));
  const scales = new Float32Array(bytes.buffer, start + size, shape[0] * shape[1]);
  const packed = new Blob([bytes.subarray(start + size + scales.byteLength)]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("deflate"));
  const cells = new Uint8Array(await new Response(stream).arrayBuffer());
  if (cells.length !== shape.reduce((all, part) => all * part)) throw new Error("attention: cells are missing");
  return { shape, factor, scales, cells };
}

/** The colors of the page's theme: of every step, and where a query may not attend. */
class Colors {
  constructor(inside) {
    const probe = inside.appendChild(element("i", { class: "xg" })), dot = probe.appendChild(element("i"));
    const read = (name, background = "") => {
      dot.className = name;
      dot.style.backgroundColor = background;
      return getComputedStyle(dot).backgroundColor.match(/[\d.]+/g).slice(0, 3).map(Number);
    };
    const named = (name) => read("", `var(--xg-${name})`);
    this.known = getComputedStyle(probe).getPropertyValue("--xg-ground") !== "";
    const steps = (tone) => Array.from({ length: STEPS + 1 }, (_, step) => (step ? read(`${tone}${step}`) : named("ground")));
    this.sides = Object.fromEntries(Object.entries(SIDES).map(([side, tone]) => [side, steps(tone)]));
    [this.masked, this.hatch, this.ground] = [named("special"), named("line"), named("ground")].map(pixel);
    probe.remove();
  }

  /** Red, green, blue of a share of the scale, between two steps where it lies there. */
  at(side, share) {
    const place = Math.min(Math.max(share, 0), 1) * STEPS, low = Math.min(Math.floor(place), STEPS - 1);
    const [from, to] = this.sides[side].slice(low, low + 2);
    return from.map((channel, at) => Math.round(channel + (place - low) * (to[at] - channel)));
  }

  css(side, share) {
    return `rgb(${this.at(side, share).join(" ")})`;
  }

  /** A pixel for each level, whose largest has this share of the scale; a gamma below 1 strengthens faint values. */
  table(share, gamma) {
    return Uint32Array.from({ length: LEVELS + 1 }, (_, level) => pixel(this.at("amount", ((share * level) / LEVELS) ** gamma)));
  }
}

/** A color as a pixel of ImageData. */
function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The model of all drawings: the data from Python, the bytes once they arrive, the colors, and a callback. */
class BoardModel {
  constructor(told, colors, ask) {
    Object.assign(this, { told, colors, ask, grids: null, whole: null, tables: new Map() });
    if (told.maps) this.maps = mapsOf(told);
  }

  get size() {
    const [, , rows, columns] = this.grids.shape;
    return { rows, columns, factor: this.grids.factor };
  }

  /** Levels of a head, row by row; null while they are on their way. */
  cells(layer, head) {
    if (!this.grids) return null;
    const { rows, columns } = this.size, start = this.place(layer, head) * rows * columns;
    return this.grids.cells.subarray(start, start + rows * columns);
  }

  scale(layer, head) {
    return this.grids.scales[this.place(layer, head)];
  }

  /** The end of a head's color scale: the largest value of its whole matrix, also where a part is shown. */
  end(layer, head) {
    return this.endOf(this.told.ends, layer, head);
  }

  /** The end of one head, or the largest of all that are shown. */
  endOf(ends, layer, head) {
    const { scale, layers, heads } = this.told;
    return scale === "shared" ? Math.max(...layers.flatMap((one) => heads.map((other) => ends[one][other]))) : ends[layer][head];
  }

  /** The attention to each feature; NaN where it may not be attended to. */
  map(layer, head) {
    const { levels, ends, count } = this.maps, at = this.place(layer, head), step = ends[at] / MAP_TOP;
    return Float32Array.from(levels.subarray(at * count, (at + 1) * count), (level) => (level > MAP_TOP ? NaN : level * step));
  }

  /** Less than what attention to all alike would give has never the full color. */
  mapEnd(layer, head) {
    return Math.max(this.endOf(this.told.maps.ends, layer, head), 1 / this.told.tokens.length);
  }

  /** Whether anything that is drawn of all heads may not be attended to. */
  get hatched() {
    const { told, maps, grids } = this;
    if (!told.causal) return false;
    if (told.view !== "matrix") return maps.levels.includes(MAP_TOP + 1);
    return Boolean(grids) && (grids.hatched ??= grids.cells.includes(MASKED));
  }

  ink(share) {
    return this.colors.css("amount", share);
  }

  /** Pixels of a head's levels where the colors end at `end`. */
  table(scale, end, gamma = 1) {
    const share = scale / end, name = `${share} ${gamma}`;
    if (!this.tables.has(name)) this.tables.set(name, this.colors.table(share, gamma));
    return this.tables.get(name);
  }

  place(layer, head) {
    return layer * this.told.size[1] + head;
  }
}

function mapsOf({ maps, features }) {
  const bytes = Uint8Array.from(atob(maps.levels), (letter) => letter.charCodeAt(0));
  return { levels: new Uint16Array(bytes.buffer), ends: maps.ends.flat(), count: features.length };
}

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

/** A color of the style sheet as the page resolves it: a canvas knows no variables. */
function resolved(inside, color) {
  const probe = inside.appendChild(element("i"));
  probe.style.color = color;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Three significant digits, as components/numbers.py prints them. */
function plainNumber(value) {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** A box that strengthens faint values, and its label. */
function faintBox() {
  const box = element("input", { type: "checkbox" });
  return [box, element("label", { class: "xg-small" }, box, "Strengthen faint values")];
}

/** The note on a gamma that strengthens faint values, on a scale to `end`. */
function bentWords(gamma, end) {
  return gamma === 1 ? "" : ` · gamma ${gamma}: half the color at ${plainNumber(end * 0.5 ** (1 / gamma))}`;
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
  if (head.cells[at] === MASKED) return "masked";
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

/** The note on cells that stand for several positions. */
function shrunkWords(told, { rows, columns, factor }) {
  if (factor === 1) return "";
  return `${told.rows.length} × ${told.columns.length} values are drawn as ${rows} × ${columns} cells, each the largest of ${factor} × ${factor}.`;
}

function isPair(told) {
  if (!pairs.has(told)) pairs.set(told, told.tokens.some((token) => token.part === 1));
  return pairs.get(told);
}

/** The cell at which text B begins; -1 where it does not. */
function partEdge(told, shown, factor) {
  const first = shown.findIndex((position) => told.tokens[position].part === 1);
  return isPair(told) && first > 0 ? Math.floor(first / factor) : -1;
}

/** The largest `most` of numbers, as places. */
function largestOf(count, valueAt, most) {
  const places = Array.from({ length: count }, (_, at) => at).filter((at) => valueAt(at) > 0);
  return places.sort((a, b) => valueAt(b) - valueAt(a)).slice(0, most);
}

/** A drawing with its root, drawn anew whenever its width changes. `faint`: a box that strengthens faint values. */
class Drawing extends Listener {
  constructor() {
    super();
    this.build();
    this.resized = new ResizeObserver(() => this.model && this.draw());
    this.resized.observe(this.root);
  }

  get gamma() {
    return this.faint.checked ? FAINT_GAMMA : 1;
  }

  leave() {
    super.leave();
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
