// What is said of a matrix: a value, where a token looks, who looks at one.

const MOST_NAMED_KEYS = 3;

class MatrixWords {
  constructor(told, data) {
    Object.assign(this, { told, data });
  }

  rowName(at) {
    return cellName(this.told, this.told.rows, this.data.factor, at);
  }

  columnName(at) {
    return cellName(this.told, this.told.columns, this.data.factor, at);
  }

  /** Where a square of the screen shows several cells. */
  together(together) {
    return together > 1 ? `On this screen a square shows the largest of ${together} × ${together} cells: zoom in to see each.` : "";
  }

  cell({ row, column }) {
    return `${this.rowName(row)} → ${this.columnName(column)}: ${saidValue(this.data, row * this.data.columns + column)}`;
  }

  row(row) {
    const { columns } = this.data, placeOf = (column) => row * columns + column;
    const named = this.namedLargest(columns, placeOf, (column) => this.columnName(column));
    return `${this.rowName(row)} looks most at ${named || "nothing shown here"}. ${this.sum(row)}`;
  }

  column(column) {
    const { rows, columns } = this.data, placeOf = (row) => row * columns + column;
    const named = this.namedLargest(rows, placeOf, (row) => this.rowName(row));
    return `${this.columnName(column)} is looked at most by ${named || "nothing shown here"}.`;
  }

  namedLargest(count, placeOf, nameOf) {
    const { data } = this, valueAt = (at) => (data.cells[placeOf(at)] === MASKED ? 0 : data.value(placeOf(at)));
    return largestOf(count, valueAt, MOST_NAMED_KEYS).map((at) => `${nameOf(at)} (${saidValue(data, placeOf(at))})`).join(", ");
  }

  /** Attention of one query is a share: its row has a sum of 1, of which a part may be shown. */
  sum(row) {
    const { data, told } = this, all = told.columns.length === told.tokens.length;
    if (data.factor > 1) return "";
    if (!data.exact) return all ? "A row adds up to 1." : "A row adds up to 1 over all tokens; some are not shown.";
    const places = Array.from({ length: data.columns }, (_, column) => row * data.columns + column);
    const sum = places.reduce((before, at) => before + (data.cells[at] === MASKED ? 0 : data.value(at)), 0).toFixed(2);
    return all ? `Its row adds up to ${sum}.` : `Its row adds up to ${sum} over the tokens shown, and to 1 over all.`;
  }
}
