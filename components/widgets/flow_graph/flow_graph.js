// The flow of attention as a layered graph: a row a position, a column a depth, the prediction at the right.

const ROW = 24; // pixels from row to row
const PAD = 16; // pixels around the outermost nodes
const GAPS = [22, 240]; // the least and the most pixels from depth to depth
const WIDEST = 10; // pixels of the step that carries most
const FAINTEST = 0.35;
const LARGEST = 8; // radius of a node that all of the prediction runs through
const LEAST = 0.0001; // smaller shares are not told apart
const HINT = "Hover a step or a node for its share; click a node for the most important path through it. By keyboard: arrows and Enter.";

export default function (given) {
  return showPicker(FlowGraph, given);
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** 12.3%, 0.02%, < 0.01%: a share of 1. */
function percent(share) {
  if (share > 0 && share < LEAST) return `<\u00a0${100 * LEAST}%`;
  return `${Number((100 * share).toPrecision(3))}%`;
}

class FlowGraph extends Owned {
  build() {
    [this.selected, this.cursor, this.hovered] = [null, null, null];
    this.from = element("div", { class: "xg-flow-from" });
    this.layers = element("div", { class: "xg-flow-layers", "aria-hidden": "true" });
    this.labels = element("div", { class: "xg-flow-labels", "aria-hidden": "true" });
    this.svg = drawn("svg", { role: "group" });
    this.sheet = element("div", { class: "xg-flow-sheet" }, this.from, this.layers, this.labels, this.svg);
    this.box = element("div", { class: "xg-flow-box" }, this.sheet);
    this.outlines = drawn("svg", { class: "xg-flow-outlines", preserveAspectRatio: "none" });
    this.picture = element("div", { class: "xg-patches xg-alone xg-flow-picture", role: "img", "aria-label": "The picture, with the patches of the path outlined" }, element("i", { class: "xg-seen" }), this.outlines);
    this.predicted = element("p", { class: "xg-flow-predicted" });
    this.said = element("p", { class: "xg-flow-said", role: "status" });
    this.told = element("div", { class: "xg-unseen", "aria-live": "polite" });
    this.tip = element("div", { class: "xg xg-tip xg-flow-tip", hidden: "" });
    const main = element("div", { class: "xg-flow-main" }, element("div", {}, this.predicted, this.box), this.picture);
    this.root = element("div", { class: "xg xg-flow" }, main, this.said, element("p", { class: "xg-small" }, HINT), this.told);
    (this.parent.closest(".stApp") ?? document.body).append(this.tip); // where the theme is, and nothing cuts it off
    this.listen();
  }

  listen() {
    this.on(this.svg, "pointerover", (event) => this.onOver(event));
    this.on(this.svg, "pointerleave", () => this.hover(null));
    this.on(this.svg, "click", (event) => this.onClick(event));
    this.on(this.svg, "keydown", (event) => this.onKey(event));
    // Of the sheet: Chromium gives the keyboard's focus to an SVG that listens for it.
    this.on(this.sheet, "focusin", (event) => event.target.matches(":focus-visible") && this.hover(this.thing(event), true));
    this.on(this.sheet, "focusout", () => this.hover(null));
    this.on(window, "scroll", () => this.hover(null));
    this.resized = new ResizeObserver(() => this.box.clientWidth !== this.width && this.data && this.draw());
    this.resized.observe(this.box);
  }

  leave() {
    super.leave();
    this.resized.disconnect();
    this.tip.remove();
  }

  /** The same node may still be there when other steps are drawn: by its depth and position. */
  take(before) {
    const names = before && [this.selected, this.cursor].map((node) => node === null ? null : this.nameOf(before, node));
    const nodes = this.data.nodes.map((_, node) => this.nameOf(this.data, node));
    [this.selected, this.cursor] = (names ?? [null, null]).map((name) => (nodes.includes(name) ? nodes.indexOf(name) : null));
    this.connect();
  }

  adopt() {}

  nameOf({ nodes, rows, start }, node) {
    return `${start + nodes[node][0]}:${rows[nodes[node][1]][3]}`;
  }

  /** Steps into and out of each node, the largest flow first. */
  connect() {
    const { nodes, edges } = this.data, places = new Map(nodes.map(([depth, row], node) => [`${depth}:${row}`, node]));
    this.depths = this.data.layers - this.data.start;
    this.steps = edges.map(([layer, from, to, weight, flow]) => ({ from: places.get(`${layer}:${from}`), to: places.get(`${layer + 1}:${to}`), layer, weight, flow }));
    this.into = nodes.map((_, node) => this.steps.flatMap((step, at) => (step.to === node ? [at] : [])));
    this.outOf = nodes.map((_, node) => this.steps.flatMap((step, at) => (step.from === node ? [at] : [])));
    this.cursor ??= nodes.findIndex(([depth, row]) => depth === this.depths && row === this.data.best[0].at(-1));
  }

  draw() {
    this.root.classList.toggle("xg-flow-patched", Boolean(this.data.grid));
    this.width = this.box.clientWidth;
    const held = this.svg.contains(document.activeElement);
    this.drawLabels(); // first: the rest has the room that they leave
    this.drawHead();
    this.drawGraph();
    this.drawPath();
    this.hover(null);
    if (held) this.focus(this.cursor);
  }

  drawHead() {
    const { start, layers, label, sure, rows } = this.data;
    this.from.textContent = start ? `Before layer ${start}` : "Input";
    this.predicted.replaceChildren("Prediction: ", element("b", {}, element("bdi", {}, label)), ` ${sure}`);
    const room = this.width - this.labels.offsetWidth - 2 * PAD;
    this.gap = Math.max(GAPS[0], Math.min(GAPS[1], room / (this.depths + 1)));
    const numbers = Array.from({ length: layers - start }, (_, at) => this.headOf(at, `${start + at}`, `Layer ${start + at}`));
    this.layers.replaceChildren(...numbers, this.headOf(this.depths, "→", "Read for the prediction"));
    const width = 2 * PAD + (this.depths + 1) * this.gap, height = rows.length * ROW;
    this.layers.style.width = `${width}px`;
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": `Flow from the input through ${layers - start} layers to ${label}` })) this.svg.setAttribute(name, value);
  }

  headOf(at, text, title) {
    const made = element("span", { title }, this.gap > 60 && text !== "→" ? title : text);
    made.style.left = `${PAD + (at + 0.5) * this.gap}px`;
    return made;
  }

  drawLabels() {
    const { rows, grid } = this.data;
    this.labels.replaceChildren(...rows.map(([name, special, patch]) => {
      const label = element("div", { title: name, class: special ? "xg-flow-special" : "" });
      if (!grid || patch === null) label.append(element("bdi", {}, name));
      else label.append(this.thumb(patch), element("span", {}, name), element("span", {}, `r${Math.floor(patch / grid[1]) + 1} c${(patch % grid[1]) + 1}`));
      return label;
    }));
  }

  thumb(patch) {
    const [rows, columns] = this.data.grid, made = element("i"), part = (at, of) => `${of > 1 ? (100 * at) / (of - 1) : 0}%`;
    made.style.backgroundSize = `${100 * columns}% ${100 * rows}%`;
    made.style.backgroundPosition = `${part(patch % columns, columns)} ${part(Math.floor(patch / columns), rows)}`;
    return made;
  }

  x(depth) {
    return PAD + depth * this.gap;
  }

  y(row) {
    return (row + 0.5) * ROW;
  }

  /** The row of the prediction: among the positions that it reads. */
  get top() {
    const { reads } = this.data, total = reads.reduce((sum, [, share]) => sum + share, 0);
    return reads.reduce((sum, [row, share]) => sum + (row * share) / total, 0);
  }

  curve(depth, from, to) {
    const [left, right, middle] = [this.x(depth), this.x(depth + 1), this.x(depth + 0.5)];
    return `M${left} ${this.y(from)}C${middle} ${this.y(from)} ${middle} ${this.y(to)} ${right} ${this.y(to)}`;
  }

  drawGraph() {
    const { edges, reads, nodes } = this.data, most = Math.max(...edges.map((edge) => edge[4]), ...reads.map((read) => read[1]));
    const lineOf = (depth, from, to, flow) => drawn("path", { class: "xg-flow-step", d: this.curve(depth, from, to), "stroke-width": this.wide(flow, most), "stroke-opacity": this.opaque(flow, most) });
    this.lines = edges.map(([layer, from, to, , flow]) => lineOf(layer, from, to, flow));
    this.ends = new Map(reads.map(([row, share]) => [row, lineOf(this.depths, row, this.top, share)]));
    const near = edges.map(([layer, from, to], at) => drawn("path", { class: "xg-flow-near", d: this.curve(layer, from, to), "data-step": at }));
    this.over = drawn("g");
    this.dots = nodes.map((_, node) => this.dot(node));
    const end = drawn("circle", { class: "xg-flow-end", cx: this.x(this.depths + 1), cy: this.y(this.top), r: LARGEST });
    const ordered = (lines, flows) => lines.map((line, at) => [flows[at], line]).sort((a, b) => a[0] - b[0]).map(([, line]) => line);
    this.svg.replaceChildren(...ordered(this.lines, edges.map((edge) => edge[4])), ...this.ends.values(), this.over, ...[...near].reverse(), ...this.dots, end);
  }

  wide(flow, most) {
    return Math.max(1, WIDEST * Math.sqrt(flow / most)).toFixed(2);
  }

  opaque(flow, most) {
    return (FAINTEST + (1 - FAINTEST) * Math.sqrt(flow / most)).toFixed(2);
  }

  dot(node) {
    const [depth, row, share] = this.data.nodes[node], place = { cx: this.x(depth), cy: this.y(row) };
    return drawn("g", { class: "xg-flow-node", role: "button", "data-node": node, "aria-label": this.factsOf(node) },
      drawn("circle", { ...place, r: ROW / 2, class: "xg-flow-near" }),
      drawn("circle", { ...place, r: (2.5 + (LARGEST - 2.5) * Math.sqrt(share)).toFixed(2), class: "xg-flow-dot" }));
  }

  /** The selected path on top of the rest, in words, and on the picture. */
  drawPath() {
    const { best, nodes, rows, label } = this.data, [path, share] = this.selected === null ? best : nodes[this.selected][3];
    const way = [...path, this.top].slice(1).map((row, at) => this.curve(at, path[at], row)).join("");
    this.over.replaceChildren(drawn("path", { class: "xg-flow-halo", d: way }), drawn("path", { class: "xg-flow-path", d: way }));
    this.dots.forEach((dot, node) => {
      const [depth, row] = nodes[node];
      dot.classList.toggle("xg-flow-on", path[depth] === row);
      dot.setAttribute("aria-pressed", node === this.selected);
      dot.setAttribute("tabindex", node === this.cursor ? 0 : -1);
    });
    const names = path.flatMap((row, at) => (at && path[at - 1] === row ? [] : [at ? `“${rows[row][0]}” (layer ${this.data.start + at - 1})` : `“${rows[row][0]}”`]));
    const begins = rows[path[0]][1] ? "" : ` from a ${this.data.grid ? "patch" : "token"}`; // special tokens hold nothing of the input
    const which = `Most important path${begins}${this.selected === null ? "" : ` through ${this.placeOf(this.selected)}`}: `;
    this.said.replaceChildren(element("b", {}, which), `${[...names, label].join(" → ")}. ${percent(share)} of the prediction takes exactly this path.`);
    this.outline(path);
  }

  outline(path, also = []) {
    const { grid, rows } = this.data;
    if (!grid) return;
    const box = (patch, name) => drawn("rect", { x: patch % grid[1], y: Math.floor(patch / grid[1]), width: 1, height: 1, class: name });
    const of = (list) => [...new Set(list)].map((row) => rows[row][2]).filter((patch) => patch !== null);
    const [own, others] = [of(path), of(also)];
    this.outlines.setAttribute("viewBox", `0 0 ${grid[1]} ${grid[0]}`);
    this.outlines.replaceChildren(...others.map((patch) => box(patch, "xg-flow-some")), ...own.map((patch) => box(patch, "xg-flow-halo")), ...own.map((patch) => box(patch, "xg-flow-path")));
  }

  thing({ target }) {
    const found = target.closest?.("[data-step], [data-node]");
    return found && ("step" in found.dataset ? { step: Number(found.dataset.step) } : { node: Number(found.dataset.node) });
  }

  onOver(event) {
    this.hover(this.thing(event));
  }

  onClick(event) {
    const found = this.thing(event);
    if (found?.node !== undefined) this.select(found.node);
  }

  select(node) {
    [this.selected, this.cursor] = [this.selected === node ? null : node, node];
    this.drawPath();
  }

  onKey(event) {
    if (hasModifier(event)) return;
    const next = { ArrowLeft: () => this.along(this.into, "from"), ArrowRight: () => this.along(this.outOf, "to"), ArrowUp: () => this.beside(-1), ArrowDown: () => this.beside(1) }[event.key];
    if (next) this.focus(next());
    else if (event.key === "Enter" || event.key === " ") this.select(this.cursor);
    else if (event.key === "Escape" && this.selected !== null) this.select(this.selected);
    else return;
    event.preventDefault();
  }

  /** Along the largest flow; where none is drawn, to the next node of the next depth. */
  along(steps, end) {
    const here = this.cursor, [depth, row] = this.data.nodes[here], found = steps[here][0];
    if (found !== undefined) return this.steps[found][end];
    const near = this.column(depth + (end === "to" ? 1 : -1)).sort((a, b) => Math.abs(this.data.nodes[a][1] - row) - Math.abs(this.data.nodes[b][1] - row));
    return near[0] ?? here;
  }

  beside(by) {
    const column = this.column(this.data.nodes[this.cursor][0]), at = column.indexOf(this.cursor) + by;
    return column[within(at, column.length)];
  }

  /** The nodes of a depth from top to bottom. */
  column(depth) {
    return this.data.nodes.flatMap((node, at) => (node[0] === depth ? [at] : []));
  }

  focus(node) {
    this.dots[this.cursor]?.setAttribute("tabindex", -1);
    this.cursor = node;
    this.dots[node].setAttribute("tabindex", 0);
    this.dots[node].focus();
    this.hover({ node }, true);
  }

  placeOf(node) {
    const [depth, row] = this.data.nodes[node], { start, rows } = this.data;
    return `“${rows[row][0]}” ${depth ? `after layer ${start + depth - 1}` : start ? `before layer ${start}` : "in the input"}`;
  }

  factsOf(node) {
    const place = this.placeOf(node);
    return `${place}: ${percent(this.data.nodes[node][2])} of the prediction passes through it`;
  }

  stepFacts({ from, to, layer, weight, flow }) {
    const { nodes, rows, start } = this.data, [source, target] = [from, to].map((node) => rows[nodes[node][1]][0]);
    const what = source === target ? `“${source}” stays in place` : `“${source}” goes to “${target}”`;
    return `Layer ${start + layer}: ${what} · weight ${percent(weight)} of “${target}” after the layer · flow ${percent(flow)} of the prediction`;
  }

  /** Lights a step or a node with all that runs through it, and says its numbers. */
  hover(thing, byKey = false) {
    const lit = thing ? this.through(thing) : new Set();
    this.svg.classList.toggle("xg-flow-dim", Boolean(thing));
    this.lines.forEach((line, at) => line.classList.toggle("xg-flow-lit", lit.has(at)));
    this.outline(this.selected === null ? this.data.best[0] : this.data.nodes[this.selected][3][0], this.rowsOf(thing, lit));
    this.tip.hidden = !thing;
    if (!thing) return;
    const said = "node" in thing ? this.factsOf(thing.node) : this.stepFacts(this.steps[thing.step]);
    this.tip.textContent = said;
    this.place("node" in thing ? this.dots[thing.node] : this.svg.querySelector(`[data-step="${thing.step}"]`));
    if (byKey) this.told.textContent = said;
  }

  rowsOf(thing, lit) {
    if (!thing) return [];
    const ends = [...lit].flatMap((at) => [this.steps[at].from, this.steps[at].to]);
    return ("node" in thing ? [thing.node] : ends).map((node) => this.data.nodes[node][1]);
  }

  /** The steps through which what runs through a node, or along a step, comes and goes. */
  through(thing) {
    const lit = new Set("step" in thing ? [thing.step] : []), { from, to } = "step" in thing ? this.steps[thing.step] : { from: thing.node, to: thing.node };
    const follow = (node, steps, end) => steps[node].forEach((at) => lit.has(at) || (lit.add(at), follow(this.steps[at][end], steps, end)));
    follow(from, this.into, "from");
    follow(to, this.outOf, "to");
    return lit;
  }

  place(mark) {
    const box = mark.getBoundingClientRect(), tip = this.tip, page = document.documentElement;
    const left = box.left + box.width / 2 - tip.offsetWidth / 2, above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(4, Math.min(left, page.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${above > 60 ? above : box.bottom + 6}px`;
  }
}
