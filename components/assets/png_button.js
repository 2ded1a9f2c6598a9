// Draws the picture that Python sends onto a canvas and saves it. Python sends it only when the button asked for it.

const MOST_PIXELS = 16000; // a side of a canvas that every browser can hold
const drawn = new WeakMap(); // by element: the number of the picture that was saved last

export default function ({ data, parentElement, setTriggerValue }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.title = data.help;
  button.disabled = false;
  button.onclick = () => {
    button.disabled = true;
    setTriggerValue("asked", true);
  };
  if (data.svg && drawn.get(parentElement) !== data.turn) {
    drawn.set(parentElement, data.turn);
    save(data);
  }
}

async function save({ svg, name, scale }) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const { naturalWidth: width, naturalHeight: height } = picture;
  const factor = Math.min(scale, MOST_PIXELS / Math.max(width, height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(factor * width), Math.round(factor * height)];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(address);
    setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser reads it after the click
  }, "image/png");
}
