/** What was typed into the form and is not stored. */
import { useState } from "preact/hooks";

/** Tells whether something was typed that is lost with the page: what was suggested is no loss. */
export function useUnsaved(text: string) {
  const [begun, setBegun] = useState<string | null>(null);
  const [sent, setSent] = useState<string | null>(null);
  /** Takes note that what is changed from now on was typed. */
  const typing =
    <T>(change: (to: T) => void) =>
    (value: T) => {
      if (begun === null) setBegun(text);
      change(value);
    };
  const isUnsaved = begun !== null && text !== begun && text !== sent;
  return { isUnsaved, busy: sent !== null, setSent, typing };
}
