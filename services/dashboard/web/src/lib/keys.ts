/** Single keys that do something, everywhere except in fields; they can be switched off. */
import { signal } from "@preact/signals";

const STORED = "weir.keys";
const SEQUENCE_MS = 1_000;

/** Whether single keys are switched on. */
export const keysOn = signal(true);

const actions = new Map<string, () => void>();

/** Gives a key, or a sequence such as `g b`, something to do. Returns how to take it back. */
export function onKey(keys: string, act: () => void): () => void {
  actions.set(keys, act);
  return () => {
    if (actions.get(keys) === act) actions.delete(keys);
  };
}

/** Switches single keys on or off, for this browser. */
export function setKeysOn(on: boolean): void {
  keysOn.value = on;
  try {
    localStorage.setItem(STORED, on ? "on" : "off");
  } catch {
    // Storage can be forbidden; then it holds until the page is left.
  }
}

/** Listens to the keyboard. */
export function startKeys(): void {
  try {
    keysOn.value = localStorage.getItem(STORED) !== "off";
  } catch {
    keysOn.value = true;
  }
  let before = "";
  let beforeMs = 0;
  document.addEventListener("keydown", (key) => {
    const find = (key.ctrlKey || key.metaKey) && key.key.toLowerCase() === "k";
    if (find) return act(key, "/");
    if (!keysOn.value || key.ctrlKey || key.metaKey || key.altKey || isTyped(key)) return;
    const name = key.key === " " ? "Space" : key.key;
    const sequence = key.timeStamp - beforeMs < SEQUENCE_MS ? `${before} ${name}` : name;
    before = name;
    beforeMs = key.timeStamp;
    if (actions.has(sequence)) act(key, sequence);
    else if (actions.has(name)) act(key, name);
  });
}

function act(key: KeyboardEvent, name: string): void {
  const action = actions.get(name);
  if (!action) return;
  key.preventDefault();
  action();
}

/** Tells whether a key belongs to what has the focus. */
function isTyped(key: KeyboardEvent): boolean {
  const target = key.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("dialog")) return true;
  if (["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) return true;
  // Space presses what has the focus.
  return key.key === " " && target.closest("button, a, summary, [role=radio]") !== null;
}
