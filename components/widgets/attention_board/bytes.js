// Brings the bytes of all heads into the window; see cells.js.

export default function ({ data, parentElement }) {
  layDown(data);
  parentElement.dataset.shown = "";
}
