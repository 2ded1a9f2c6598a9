// Orders unnamed explanations by drag, touch and key; how Python is asked is in base.js.
// An explanation is HTML whose texts Python's builders have escaped: nothing else enters the page as markup.

const PLACES = "ABCDEF";
const ENDS = 1 / 3; // of a step: there a card is dropped before or after it, between them it ties
const MOVED = 4; // pixels: a pointer that went less far has pressed, not dragged
const NEAR = 70; // pixels from the ends of the screen: there a drag scrolls
const FASTEST = 14; // pixels of scrolling a frame
const GLIDE = 160; // milliseconds
const LATE = 6000; // milliseconds without an answer: then it may be sent again
const ORDINALS = ["1st", "2nd", "3rd", "4th", "5th", "6th"];
const HINT = "Put the best explanation first: drag the cards by their letters, or use the arrows.";
const BY_KEYBOARD = " By keyboard: arrow keys move a card, T ties it with the one above."; // not on phones
const UNTOUCHED = "To keep this order, press the letter button on any card (such as A), then Confirm.";
const KEYS = { ArrowUp: "up", ArrowLeft: "up", ArrowDown: "down", ArrowRight: "down", Home: "first", End: "last", t: "tie", T: "tie" };
// Where a move takes a card that is in step `at` of `count`, `alone` or not, `head` or not of its step.
const MOVES = {
  up: ({ at, alone }) => ({ at: alone ? at - 1 : at }),
  down: ({ at, alone }) => ({ at: at + (alone ? 2 : 1) }),
  first: () => ({ at: 0 }),
  last: ({ count }) => ({ at: count }),
  tie: ({ at, alone, head }) => (alone ? { at: at - 1, into: true } : { at: head ? at : at + 1 }),
};
const NOWHERE = { up: "nothing is above it", down: "nothing is below it", tie: "nothing is above it to tie with" };

export default function (given) {
  return showPicker(Ranking, given);
}

/** Steps with the card at step `at`: `into` it, or as a step of its own before it. */
function placed(steps, card, { at, into = false }) {
  if (into && steps[at].includes(card)) return steps;
  const next = steps.map((step) => step.filter((other) => other !== card));
  if (into) next[at] = [...next[at], card];
  else next.splice(at, 0, [card]);
  return next.filter((step) => step.length);
}

/** Competition ranks by place, 1 + how many are strictly better; back to steps. */
function ranksOf(steps) {
  const ranks = [];
  let rank = 1;
  for (const step of steps) {
    for (const card of step) ranks[card] = rank;
    rank += step.length;
  }
  return ranks;
}

function stepsOf(ranks) {
  const steps = [];
  ranks.forEach((rank, card) => (steps[rank] ??= []).push(card));
  return steps.filter(Boolean);
}

function together(names) {
  return names.length < 3 ? names.join(" and ") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** A random UUID; crypto.randomUUID is there on https and localhost only. */
function newToken() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const random = (digit) => (digit ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (digit / 4)))).toString(16);
  return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (digit) => random(Number(digit)));
}

function scrollerOf(inside) {
  for (let box = inside.parentElement; box; box = box.parentElement) {
    if (box.scrollHeight > box.clientHeight && /auto|scroll/.test(getComputedStyle(box).overflowY)) return box;
  }
  return document.scrollingElement;
}

class Ranking extends Owned {
  build() {
    this.cards = [];
    this.list = element("ol", { class: "xg-steps", role: "list", "aria-label": "Your order, best first" });
    this.cannot = element("button", { type: "button" }, "Cannot tell");
    this.undo = element("button", { type: "button" }, "Undo");
    this.confirm = element("button", { type: "button", class: "xg-confirm" }, "Confirm");
    this.said = element("p", { class: "xg-said" });
    this.told = element("div", { class: "xg-unseen", role: "status", "aria-live": "polite" });
    const buttons = element("div", { class: "xg-buttons" }, this.cannot, this.undo, this.confirm);
    const hint = element("p", { class: "xg-small" }, HINT, element("span", { class: "xg-by-keyboard" }, BY_KEYBOARD));
    this.root = element("div", { class: "xg xg-rank" }, hint, this.list, this.said, buttons, this.told);
    this.listen();
  }

  listen() {
    this.on(this.list, "keydown", (event) => this.onKey(event));
    this.on(this.list, "click", (event) => this.onClick(event));
    this.on(this.list, "pointerdown", (event) => this.onDown(event));
    this.on(document, "pointermove", (event) => this.onMove(event));
    this.on(document, "pointerup", (event) => this.onUp(event));
    this.on(document, "pointercancel", () => this.drop(null));
    this.on(document, "keydown", (event) => event.key === "Escape" && this.drop(null));
    this.on(this.cannot, "click", () => this.onCannot());
    this.on(this.undo, "click", () => this.onUndo());
    this.on(this.confirm, "click", () => this.onConfirm());
  }

  take(before) {
    if (before?.ballot === this.data.ballot) return;
    clearTimeout(this.timer);
    const { explanations, beside } = this.data;
    this.drag = this.token = this.drawn = this.before = null;
    [this.history, this.late, this.sent, this.answered] = [[], false, false, this.asked];
    this.state = { steps: explanations.map((_, card) => [card]), cannot: false };
    this.list.classList.toggle("xg-beside", beside);
    this.cards = explanations.map((html, card) => this.cardOf(html, card));
  }

  leave() {
    super.leave();
    clearTimeout(this.timer);
  }

  cardOf(html, card) {
    const name = PLACES[card];
    const grip = element("button", { type: "button", class: "xg-grip", "aria-description": "Arrow keys move it, T ties it with the one above or splits the tie, Enter keeps it where it is." }, name);
    const tools = ["up", "down", "tie"].map((move) => element("button", { type: "button", "data-move": move, tabindex: -1 }));
    const body = element("div", { class: "xg-body" });
    body.innerHTML = html;
    const whole = element("div", { class: "xg-ranked", role: "group", "aria-label": `Explanation ${name}`, "data-card": card }, grip, element("div", { class: "xg-tools" }, ...tools), body);
    return { name, whole, grip, tools };
  }

  adopt() {
    const { answer, explanations } = this.data, { sent } = this;
    clearTimeout(this.timer);
    this.late = this.sent = false;
    if (sent && this.confirmed) this.history = [];
    if (sent) this.told.textContent = this.confirmed ? `${this.answerInWords()} Confirmed.` : "Your answer was not saved.";
    if (!answer || this.history.length || this.confirmed) return;
    this.state = { steps: answer.ranks ? stepsOf(answer.ranks) : explanations.map((_, card) => [card]), cannot: !answer.ranks };
  }

  get waiting() {
    return this.asked > this.answered;
  }

  get ranks() {
    return this.state.cannot ? null : ranksOf(this.state.steps);
  }

  get confirmed() {
    const { answer } = this.data;
    return Boolean(answer) && JSON.stringify(answer.ranks) === JSON.stringify(this.ranks);
  }

  get mayConfirm() {
    return this.waiting ? this.late : this.history.length > 0 && !this.confirmed;
  }

  change(state) {
    if (this.waiting) return;
    this.history.push(this.state);
    this.state = state;
    this.draw();
  }

  onCannot() {
    this.change({ ...this.state, cannot: !this.state.cannot });
    this.told.textContent = this.answerInWords();
  }

  onUndo() {
    if (this.waiting || !this.history.length) return;
    this.state = this.history.pop();
    this.draw();
    this.told.textContent = `Undone. ${this.answerInWords()}`;
  }

  /** The same answer keeps its token, however often it is sent: it counts once. */
  onConfirm() {
    if (!this.mayConfirm) return;
    const { ballot } = this.data, { ranks } = this, written = JSON.stringify(ranks);
    if (this.token?.written !== written) this.token = { written, value: newToken() };
    if (!this.waiting) this.asked += 1;
    [this.late, this.sent] = [false, true];
    this.timer = setTimeout(() => this.onLate(), LATE);
    this.draw();
    this.send("ranked", { ballot, ranks, turn: this.asked, token: this.token.value });
  }

  onLate() {
    this.late = this.waiting;
    this.draw();
  }

  cardAt(event) {
    const whole = event.target.closest?.(".xg-ranked");
    return whole && this.list.contains(whole) ? Number(whole.dataset.card) : -1;
  }

  onKey(event) {
    const card = this.cardAt(event), move = KEYS[event.key];
    if (card < 0 || !move || hasModifier(event) || event.target.closest(".xg-body")) return;
    event.preventDefault();
    this.move(card, move);
    this.cards[card].whole.scrollIntoView({ block: "nearest" });
  }

  onClick(event) {
    const card = this.cardAt(event), button = event.target.closest("button");
    if (card < 0 || !button || button.closest(".xg-body")) return;
    if (button.dataset.move) this.move(card, button.dataset.move);
    else if (!event.detail || !this.wentFar(event)) this.put(card, this.state.steps);
  }

  /** Whether the pointer has moved since it was pressed; a click by key has no place. */
  wentFar({ clientX, clientY }) {
    const [x, y] = this.pressed;
    return Math.hypot(clientX - x, clientY - y) > MOVED;
  }

  move(card, move) {
    const { steps } = this.state, at = steps.findIndex((step) => step.includes(card)), step = steps[at];
    const target = MOVES[move]({ at, alone: step.length === 1, head: step[0] === card, count: steps.length });
    if (target.at >= 0 && target.at <= steps.length) this.put(card, placed(steps, card, target));
    else this.told.textContent = `${this.cards[card].name} stays ${this.placeOf(card)}: ${NOWHERE[move]}.`;
  }

  /** The order with this card where it was put; putting it where it was says that it is right there. */
  put(card, steps) {
    if (this.waiting) return;
    const stays = JSON.stringify(steps) === JSON.stringify(this.state.steps);
    this.change({ steps, cannot: false });
    this.told.textContent = `${this.cards[card].name} ${stays ? "stays" : "is now"} ${this.placeOf(card)}.`;
  }

  placeOf(card) {
    const ranks = ranksOf(this.state.steps), others = this.state.steps.find((step) => step.includes(card)).filter((other) => other !== card);
    const tied = others.length ? `, tied with ${together(others.map((other) => this.cards[other].name).sort())}` : "";
    return `${ORDINALS[ranks[card] - 1]} of ${ranks.length}${tied}`;
  }

  answerInWords() {
    if (this.state.cannot) return "You cannot tell.";
    const steps = this.state.steps.map((step) => together(step.map((card) => this.cards[card].name).sort()) + (step.length > 1 ? " (tied)" : ""));
    return `Your order: ${steps.join(", then ")}.`;
  }

  /** Starts a drag: by mouse anywhere on a card, by touch at its letter, because elsewhere a finger scrolls. */
  onDown(event) {
    const card = this.cardAt(event), grip = event.target.closest(".xg-grip");
    this.pressed = [event.clientX, event.clientY];
    if (card < 0 || event.button !== 0 || !event.isPrimary || this.waiting || this.drag) return;
    if (!grip && (event.pointerType !== "mouse" || event.target.closest("button, summary, a, input"))) return;
    const scroller = scrollerOf(this.root);
    this.drag = { card, scroller, id: event.pointerId, from: [event.clientX, event.clientY + scroller.scrollTop], moves: false };
  }

  onMove(event) {
    const { drag } = this;
    if (!drag || event.pointerId !== drag.id) return;
    drag.at = [event.clientX, event.clientY];
    if (!drag.moves && this.wentFar(event)) this.lift();
    if (drag.moves) this.carry();
  }

  lift() {
    const { drag } = this, { whole } = this.cards[drag.card];
    drag.moves = true;
    whole.setPointerCapture(drag.id);
    whole.classList.add("xg-lifted");
    const follow = () => this.drag === drag && (this.scroll(), requestAnimationFrame(follow));
    requestAnimationFrame(follow);
  }

  /** A drag near the ends of the screen scrolls, the faster the nearer. */
  scroll() {
    const { scroller, at } = this.drag, box = scroller.getBoundingClientRect();
    const top = Math.max(box.top, 0) + NEAR, bottom = Math.min(box.bottom, innerHeight) - NEAR;
    const beyond = Math.min(at[1] - top, 0) + Math.max(at[1] - bottom, 0);
    if (!beyond) return;
    scroller.scrollTop += Math.max(-1, Math.min(1, beyond / NEAR)) * FASTEST;
    this.carry();
  }

  carry() {
    const { card, from, at, scroller } = this.drag;
    this.cards[card].whole.style.translate = `${at[0] - from[0]}px ${at[1] + scroller.scrollTop - from[1]}px`;
    this.drag.target = this.targetAt(at);
    this.mark(this.drag.target);
  }

  /** The target of a drop here. Steps run down, or to the right where ranks are columns. */
  targetAt([x, y]) {
    const across = this.list.matches(".xg-beside") && getComputedStyle(this.list).gridAutoFlow === "column";
    const boxes = [...this.list.children].map((step) => step.getBoundingClientRect());
    const [start, size, here] = across ? ["left", "width", x] : ["top", "height", y];
    const at = boxes.findIndex((box) => here < box[start] + box[size]);
    if (at < 0) return { at: boxes.length };
    const part = (here - boxes[at][start]) / boxes[at][size];
    if (part < ENDS) return { at };
    return part > 1 - ENDS ? { at: at + 1 } : { at, into: true };
  }

  /** Shows where a card would be dropped; null: nowhere. */
  mark(target) {
    const steps = [...this.list.children];
    for (const step of steps) delete step.dataset.drop;
    if (!target) return;
    const [step, where] = target.into ? [steps[target.at], "into"] : target.at < steps.length ? [steps[target.at], "before"] : [steps.at(-1), "after"];
    step.dataset.drop = where;
  }

  onUp(event) {
    if (this.drag?.id === event.pointerId) this.drop(this.drag.target ?? null);
  }

  drop(target) {
    const { drag } = this;
    if (!drag) return;
    this.drag = null;
    this.mark(null);
    if (!drag.moves) return;
    const { whole, grip } = this.cards[drag.card];
    this.before = this.boxes();
    whole.classList.remove("xg-lifted");
    whole.style.translate = "";
    if (target) this.put(drag.card, placed(this.state.steps, drag.card, target));
    this.draw();
    this.glide();
    grip.focus({ preventScroll: true, focusVisible: false });
  }

  draw() {
    if (this.drag) return;
    this.arrange();
    const { steps, cannot } = this.state, locked = this.waiting;
    this.cards.forEach((_, card) => this.drawCard(card, steps));
    this.list.classList.toggle("xg-set-aside", cannot);
    this.cannot.setAttribute("aria-pressed", cannot);
    this.cannot.setAttribute("aria-disabled", locked);
    this.undo.setAttribute("aria-disabled", locked || !this.history.length);
    this.confirm.setAttribute("aria-disabled", !this.mayConfirm);
    this.confirm.textContent = this.late ? "Confirm again" : "Confirm";
    this.said.textContent = this.stateInWords();
  }

  stateInWords() {
    const answer = this.answerInWords();
    if (this.late) return `${answer} No answer from the server yet. Confirm again: your answer counts once.`;
    if (this.waiting) return `${answer} Saving …`;
    if (this.confirmed) return `${answer} Confirmed.`;
    return this.history.length ? `${answer} Not confirmed yet.` : UNTOUCHED;
  }

  drawCard(card, steps) {
    const { name, grip, tools: [up, down, tie] } = this.cards[card];
    const at = steps.findIndex((step) => step.includes(card)), alone = steps[at].length === 1;
    grip.setAttribute("aria-label", `Explanation ${name}, ${this.placeOf(card)}`);
    up.setAttribute("aria-label", `Move ${name} up`);
    up.setAttribute("aria-disabled", alone && at === 0);
    down.setAttribute("aria-label", `Move ${name} down`);
    down.setAttribute("aria-disabled", alone && at === steps.length - 1);
    tie.setAttribute("aria-label", alone ? `Tie ${name} with the one above` : `Split ${name} from the tie`);
    tie.setAttribute("aria-disabled", alone && at === 0);
    tie.textContent = alone ? "Tie" : "Split";
  }

  /** Cards are moved, never drawn anew: what is open in them stays open, and the keyboard's place is kept. */
  arrange() {
    const { steps } = this.state, written = JSON.stringify(steps), ranks = ranksOf(steps);
    if (written === this.drawn) return;
    const focused = this.root.contains(document.activeElement) ? document.activeElement : null;
    if (this.drawn) this.before ??= this.boxes();
    this.drawn = written;
    this.list.replaceChildren(...steps.map((step) => {
      const rank = ORDINALS[ranks[step[0]] - 1], names = together(step.map((card) => this.cards[card].name).sort());
      const label = element("div", { class: "xg-place", "aria-hidden": "true" }, rank, ...(step.length > 1 ? [element("span", {}, "tied")] : []));
      const cards = element("div", { class: "xg-tied" }, ...step.map((card) => this.cards[card].whole));
      return element("li", { role: "listitem", "aria-label": `${rank} of ${ranks.length}: ${names}${step.length > 1 ? ", tied" : ""}` }, label, cards);
    }));
    focused?.focus({ preventScroll: true });
    this.glide();
  }

  boxes() {
    return this.cards.map(({ whole }) => whole.getBoundingClientRect());
  }

  /** Cards glide from where they were, for those who like motion. */
  glide() {
    const { before } = this;
    this.before = null;
    if (!before || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.cards.forEach(({ whole }, card) => {
      const from = before[card], to = whole.getBoundingClientRect();
      if (from.left === to.left && from.top === to.top) return;
      whole.animate([{ transform: `translate(${from.left - to.left}px, ${from.top - to.top}px)` }, { transform: "none" }], { duration: GLIDE, easing: "ease-out" });
    });
  }
}
