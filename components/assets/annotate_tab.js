// What the participant's tab does by itself: until it is closed it keeps the code and how far they have read, and how
// long they have seen a screen. A new screen begins at its top.

const CODE = "exegesis-code:";
const LOOK = "exegesis-look";
let look = null; // the screen, the milliseconds that it was seen before `since`, whom to tell; hidden: no `since`

export default function ({ data, setTriggerValue }) {
  const { study, code, step, wish, screen } = data;
  keep(CODE + study, code && JSON.stringify({ code, step }), wish, (kept) => setTriggerValue("kept", kept));
  if (look?.screen !== screen) show(screen);
  look.known = Boolean(step); // somebody takes part: else nothing of the screen is kept
  look.tell = (seen) => setTriggerValue("seen", seen);
  if (look.before) tellSeen();
  document.addEventListener("visibilitychange", turn);
  return () => document.removeEventListener("visibilitychange", turn);
}

/** A browser that forbids storage only has to be told the code again. */
function keep(place, held, wish, tell) {
  stored((storage) => {
    if (held) storage.setItem(place, held);
    if (wish === "forget") [place, LOOK].forEach((name) => storage.removeItem(name));
    const kept = wish === "ask" && storage.getItem(place);
    if (kept) tell(JSON.parse(kept));
  });
}

function stored(work) {
  try {
    work(sessionStorage);
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
  }
}

/** The first screen after a reload may be the one before it, which goes on; any other begins. */
function show(screen) {
  if (look) begin();
  const first = !look;
  look = { screen, seen: 0, before: 0, since: document.hidden ? null : performance.now() };
  if (first) stored((storage) => {
    const kept = JSON.parse(storage.getItem(LOOK));
    if (kept?.screen === screen) look.seen = look.before = kept.seen;
  });
}

/** Who looks elsewhere does not look here: what was seen before is kept when they go, and told when they return. */
function turn() {
  const now = performance.now(), { screen, since } = look;
  if (since !== null) look.seen += now - since;
  look.since = document.hidden ? null : now;
  if (!document.hidden) tellSeen();
  else if (look.known) stored((storage) => storage.setItem(LOOK, JSON.stringify({ screen, seen: look.seen })));
}

function tellSeen() {
  const { screen, seen } = look;
  look.before = 0;
  look.tell({ screen, seconds: seen / 1000 });
}

/** The keyboard and the screen reader go on at the heading, which is seen. */
function begin() {
  const heading = document.querySelector("h1");
  heading.tabIndex = -1;
  heading.style.outline = "none";
  heading.focus({ preventScroll: true });
  for (let box = heading; box; box = box.parentElement) box.scrollTop = 0;
}
