// Brings the bytes of all heads into the window; see attention_cells.js.

export default function ({ data }) {
  layDown(data);
}
