// Small drawings of all heads on one canvas: their matrices, the patches or the tokens that they look at.

const HATCH = 4; // pixels from line to line where a query may not attend
const BARS = 0.62; // of its width: the height of a strip of tokens
const APART = 4; // pixels: bars that are as wide have a gap

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
    const pen = this.canvas.getContext("2d"), image = pen.createImageData(width, height), { colours } = model;
    const pixels = new Uint32Array(image.data.buffer);
    heads.forEach((head, at) => {
      this.paint(pixels, model, head, width, height, colours);
      pen.putImageData(image, ...places[at]);
    });
  }

  paint(pixels, model, head, width, height, colours) {
    const { told } = model;
    if (told.view === "matrix") return this.paintMatrix(pixels, model, head, width, height, colours);
    const levels = mapLevels(model.map(...head), model.mapEnd(...head));
    if (told.grid) fillCells(pixels, pooled(levels, ...told.grid, height, width), model.table(1, 1, this.gamma), width, colours);
    else fillBars(pixels, pooled(levels, 1, levels.length, 1, width), this.gamma, width, height, colours, levels.length);
  }

  paintMatrix(pixels, model, head, width, height, colours) {
    const { rows, columns } = model.size, table = model.table(model.scale(...head), model.end(...head), this.gamma);
    fillCells(pixels, pooled(model.cells(...head), rows, columns, height, width), table, width, colours);
  }
}

function maskedAt(at, width, { masked, hatch }) {
  return ((at % width) + Math.floor(at / width)) % HATCH ? masked : hatch;
}

function fillCells(pixels, raised, table, width, colours) {
  for (let at = 0; at < raised.length; at += 1) pixels[at] = raised[at] ? table[raised[at] - 1] : maskedAt(at, width, colours);
}

/** A bar a token, as high as its attention; pale colours would be lost in so little room. */
function fillBars(pixels, raised, gamma, width, height, colours, count) {
  const starts = width / count >= APART ? firstCells(count, width) : null, full = pixel(colours.at("amount", 1));
  for (let at = 0; at < pixels.length; at += 1) {
    const x = at % width, above = height - Math.floor(at / width), level = raised[x] - 1;
    const gap = starts && x + 1 < width && starts[x] !== starts[x + 1];
    const high = level > 0 ? Math.max(1, Math.round((level / LEVELS) ** gamma * height)) : 0;
    if (level < 0) pixels[at] = maskedAt(at, width, colours);
    else pixels[at] = above <= high && !gap ? full : colours.ground;
  }
}
