/** The dialogs that every page has: find, keys, more. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { lazy } from "./lazy";

export type DialogName = "find" | "keys" | "more";

const open = signal<DialogName | null>(null);

/** Opens a dialog in place of the one that is open. */
export function openDialog(name: DialogName): void {
  open.value = name;
}

const close = () => {
  open.value = null;
};

const load = () => import("./dialog");
const Dialog = lazy(load);

/** Whichever dialog is open. */
export function Dialogs() {
  useEffect(() => {
    // Who opens one later waits for nothing; what failed is tried again then.
    load().catch(() => undefined);
  }, []);
  return open.value === null ? null : <Dialog name={open.value} close={close} />;
}
