// Which of the cells of a matrix are seen: by wheel, pinch, buttons, keys and dragging.

const FULL_CELL = 26; // pixels: a cell is drawn no larger
const ZOOM_STEP = 1.5;

class Zoom {
  constructor() {
    Object.assign(this, { times: 1, row: 0, column: 0, rows: 1, columns: 1, most: 1 });
  }

  /** Of a matrix of so many cells, which are `side` pixels wide where all are seen. */
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
