// Copies the address of the page and says so for two seconds.

const SECONDS = 2;
const timers = new WeakMap(); // by button: it says its own label again when this one ends

export default function ({ data, parentElement }) {
  const [button, status] = parentElement.querySelectorAll(".xc-copy, .xc-copied");
  if (!timers.has(button)) {
    button.textContent = data.label;
  }
  button.onclick = async () => {
    const said = (await copy(window.location.href)) ? data.copied : data.failed;
    button.textContent = said;
    status.textContent = said;
    clearTimeout(timers.get(button));
    timers.set(
      button,
      setTimeout(() => {
        button.textContent = data.label;
        status.textContent = "";
        timers.delete(button);
      }, SECONDS * 1000),
    );
  };
  parentElement.dataset.shown = "";
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text); // over plain http there is no clipboard, and it may be refused
  }
}

function copySelected(text) {
  const [field, focused] = [document.createElement("textarea"), document.activeElement];
  field.value = text;
  field.readOnly = true;
  field.style.cssText = "position: fixed; opacity: 0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}
