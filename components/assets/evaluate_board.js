// The leaderboard: hovering or focusing a cell tells it in words below, a click asks for its examples or an order.
// The tables come from Python, where every name in them is escaped; the words enter as text.

const boards = new WeakMap(); // by element: the HTML that it shows

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".xg-boards");
  if (boards.get(parentElement) !== data.html) {
    boards.set(parentElement, data.html);
    fill(root, data.html);
  }
  goesOn(parentElement, data.more);
  const line = parentElement.querySelector(".xg-told");
  const tell = ({ target }) => (line.textContent = target.closest("button")?.dataset.told ?? data.hint);
  line.textContent = data.hint;
  root.onmouseover = tell;
  root.addEventListener("focusin", tell);
  root.onclick = ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    const { sort, model, method, metric } = button.dataset;
    if (sort) setTriggerValue("sorted", sort);
    else setTriggerValue("picked", { model, method, metric });
  };
  const sized = new ResizeObserver(() => goesOn(parentElement, data.more));
  sized.observe(root);
  parentElement.dataset.shown = "";
  return () => {
    sized.disconnect();
    root.removeEventListener("focusin", tell);
  };
}

/** Says that a table has more columns, if one is wider than its box. */
function goesOn(parent, words) {
  const boxes = [...parent.querySelectorAll(".xg-scroll")];
  parent.querySelector(".xg-more").textContent = boxes.some((box) => box.scrollWidth > box.clientWidth + 1) ? words : "";
}

/** New tables, scrolled and focused as the old ones were. */
function fill(root, html) {
  const scrolled = [...root.querySelectorAll(".xg-scroll")].map((box) => box.scrollLeft);
  const place = [...root.querySelectorAll("button")].indexOf(document.activeElement);
  root.innerHTML = html;
  root.querySelectorAll(".xg-scroll").forEach((box, at) => (box.scrollLeft = scrolled[at] ?? 0));
  root.querySelectorAll("button")[place]?.focus();
}
