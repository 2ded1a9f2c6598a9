// What the participant's tab does by itself: it keeps the code until it is closed, and a new screen begins at its top.

const PREFIX = "exegesis-code:";
let last = null; // the screen that was shown before

export default function ({ data, setTriggerValue }) {
  const { study, code, wish, screen } = data;
  keep(PREFIX + study, code, wish, (found) => setTriggerValue("code", found));
  if (last !== null && last !== screen) begin();
  last = screen;
}

/** A browser that forbids storage only has to be told the code again. */
function keep(place, code, wish, tell) {
  try {
    if (code) sessionStorage.setItem(place, code);
    if (wish === "forget") sessionStorage.removeItem(place);
    const found = wish === "ask" && sessionStorage.getItem(place);
    if (found) tell(found);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}

/** The keyboard and the screen reader go on at the heading, which is seen. */
function begin() {
  const heading = document.querySelector("h1");
  heading.tabIndex = -1;
  heading.style.outline = "none";
  heading.focus({ preventScroll: true });
  for (let box = heading; box; box = box.parentElement) box.scrollTop = 0;
}
