// Small pictures as buttons.

const drawn = new WeakMap(); // by element: the cells that it shows

export default function ({ data, parentElement, setTriggerValue }) {
  const cells = JSON.stringify(data.cells);
  if (drawn.get(parentElement) !== cells) {
    drawn.set(parentElement, cells);
    fill(parentElement.querySelector(".xg-thumbs"), data.cells);
  }
  for (const button of parentElement.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Number(button.value) === data.current));
    button.onclick = () => setTriggerValue("chosen", Number(button.value));
  }
  parentElement.dataset.shown = "";
}

function fill(grid, cells) {
  const buttons = cells.map(({ index, url, name, label, verdict, wrong }) => {
    const button = element("button", { type: "button", value: index, title: name, "aria-label": name });
    const picture = url ? element("img", { src: url, alt: "" }) : element("i", {}, "not readable");
    button.append(picture, element("b", {}, label));
    if (verdict) button.append(element("span", { class: wrong ? "xg-wrong" : "" }, verdict));
    return button;
  });
  grid.replaceChildren(...buttons);
  grid.scrollTop = 0;
}
